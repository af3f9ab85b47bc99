//! The report for people: the answer first, a section for each experiment, published numbers, and the run itself with
//! how to repeat it.

mod asked;
mod brief;
mod claim;
mod compared;
mod own;
mod published;
mod rounds;
mod section;
mod spread;
mod stacked;

use super::model::{Experiment, Priced, Report, Suspicion};
use super::summary::{Claim, Topic};
use super::{head, picture};
use dunnage_analysis::group::in_groups;

use crate::distinct;
use crate::document::{Block, Cell, Column, Document, Item, Look, Section, Table, Tone};
use crate::record::ComponentFacts;
use crate::report::text::{capital, clean, estimated, in_brackets, in_shell, listed, percent, with_interval};
use crate::stats::Estimate;
use crate::units::counted;
use crate::verdict::Warning;

/// Settings that fit next to each other.
const BESIDE: usize = 2;
/// The most expensive pieces to name.
const DEAREST: usize = 4;
/// Warnings of one kind that are listed in full.
const IN_FULL: usize = 10;
/// Characters of a checksum that are shown.
const SHORT: usize = 12;

pub(super) use brief::brief;
pub(super) use claim::opened;

/// The report as a document.
pub(super) fn document(report: &Report, look: &Look) -> Document {
    let mut document = Document::titled(&match &report.imported {
        Some(imported) => format!("What containers cost, imported from {}", imported.from.replace('`', "")),
        None => format!("What containers cost on {}", report.host.as_deref().unwrap_or_default()),
    });
    let names = [format!("dunnage {}", report.dunnage), format!("run {}", report.run)];
    document.about = names.into_iter().chain([head::started(&report.started)]).collect();
    document.fact("where", &head::machine(report).join(" · "));
    document.fact("with", &head::versions(report).join(" · "));
    document.fact("how", &head::rounds(report));
    document.fact("precision", report.precision.as_ref().map_or("", |one| &one.sentence));
    for note in report.imported.iter().flat_map(|one| &one.notes) {
        document.fact("imported", note);
    }
    document.fact("tags", &listed(report.tags.iter().map(|(key, value)| format!("{key}={value}")), " "));
    let rows = report.experiments.iter().flat_map(|one| one.rows());
    document.subjects = distinct(rows.map(|(_, _, row)| row.label.clone()));
    let at_length = |one: &Suspicion| match one.mechanism.as_str() {
        "" => alarm(one),
        why => alarm(one).detail(format!("Probably: {why}")),
    };
    document.alarms = report.suspects.iter().map(at_length).collect();
    document.answer = answer(report);
    document.sections = section::sections(report, &document.subjects);
    document.sections.extend(published::section(&report.references));
    document.sections.push(run(report, look));
    document
}

/// What a rule found, and where.
fn alarm(suspicion: &Suspicion) -> Item {
    let of = suspicion.experiment.map_or(String::new(), |name| format!("{name}: "));
    Item::of(format!("{of}{}", suspicion.evidence)).named(suspicion.rule)
}

/// The experiment that the answer is about.
fn lead(report: &Report) -> Option<&Experiment> {
    let told =
        |one: &&Experiment| !one.speaks_for_itself() && !one.metrics.is_empty() && !one.settings.is_empty();
    report.experiments.iter().find(told)
}

/// Whether the first picture of an experiment is in the answer, and therefore not in its section.
fn shows_first_of(report: &Report, experiment: &Experiment) -> bool {
    let shown = lead(report).or(report.experiments.first());
    shown.is_some_and(|one| one.name == experiment.name) && picture::summary(report).is_none()
}

/// The answer: the ranked subjects of the first experiment, and a few lines for every other experiment.
fn answer(report: &Report) -> Vec<Block> {
    let lead = lead(report);
    let mut blocks = Vec::new();
    if !report.suspects.is_empty() {
        let them = if report.suspects.len() == 1 { "it" } else { "them" };
        let many = counted(report.suspects.len(), "suspect finding");
        let many = format!("{many} at the top: read {them} first");
        blocks.push(Block::Words(Tone::Alarm, many));
    }
    blocks.extend(nothing_measured(report));
    if let Some(lead) = lead {
        let metric = &lead.metrics[0];
        blocks.push(Block::title(capital(lead.question)));
        blocks.push(Block::note(format!("`{}` of {}: {}.", metric.name, lead.name, metric.meaning)));
    }
    blocks.extend(asked::predicted(report));
    let drawn = lead.or(report.experiments.first());
    // The picture of the whole run; without layers, the first picture of the experiment.
    let first = || picture::of_experiment(report, drawn?).into_iter().next();
    let figure = picture::summary(report).or_else(first).map(Block::picture);
    let tables = lead.into_iter().flat_map(|lead| {
        let shown = 0..lead.settings.len().min(BESIDE);
        shown.map(|setting| Block::Table(compared::at_a_glance(lead, setting, 0, report.job.as_ref())))
    });
    blocks.push(Block::Beside(figure.into_iter().chain(tables).collect()));
    if let Some(lead) = lead {
        if lead.settings.len() > BESIDE {
            let more = counted(lead.settings.len() - BESIDE, "more setting");
            blocks.push(Block::note(format!("{more} below.")));
        }
        blocks.push(Block::note(legend(lead)));
    }
    blocks.push(asked::meanings(report));
    blocks.extend(asked::job(report));
    let told = lead.into_iter().flat_map(|lead| decisions(report, lead));
    blocks.push(Block::List(told.map(|one| Item::of(&one.answer).named(&one.question)).collect()));

    let others = report.experiments.iter().filter(|one| lead.is_none_or(|lead| lead.name != one.name));
    let others = others.map(|one| {
        let item = Item::of(capital(one.question)).named(one.name);
        in_short(report, one).iter().fold(item, |item, text| item.detail(text))
    });
    blocks.push(Block::List(others.collect()));
    blocks
}

/// Why there are no samples, if there are none.
fn nothing_measured(report: &Report) -> Option<Block> {
    let ended = if report.rounds.complete == 0 { "no round was complete" } else { "no sample was taken" };
    let why = report.failures.first().map_or(ended, |one| one.reason.as_str());
    (report.samples == 0).then(|| Block::Words(Tone::Alarm, clean(&format!("Nothing was measured: {why}"))))
}

/// What the verdict words mean in the first metric of an experiment.
fn legend(experiment: &Experiment) -> String {
    let Some(metric) = experiment.metrics.first() else { return String::new() };
    if !experiment.has_verdicts() {
        return "Medians with their 95 % intervals.".into();
    }
    let (absolute, relative) = metric.margin;
    format!(
        "Medians with their 95 % intervals. Verdicts rest on differences round by round. slower, faster: the interval \
         excludes zero and the difference exceeds {} or {}, whichever is larger; same: the whole interval is within that; \
         undecided: neither; in noise: slower or faster, but by no more than twins differ. Places follow from verdicts, \
         not from medians: 2= is a shared place, the difference is too small to matter; 3–4 is a range that this run \
         cannot resolve. Intervals of differences and multiples have the higher level of each verdict, so that all \
         verdicts of a family together hold at 95 %: the questions asked first, and all others.",
        with_interval(metric.unit, absolute, None),
        percent(relative)
    )
}

/// What its tables and findings mean for a decision. Differences of pairs are in the section.
fn decisions<'a>(report: &'a Report, experiment: &Experiment) -> impl Iterator<Item = &'a Claim> {
    let of = experiment.name;
    report.claims.iter().filter(move |one| one.experiment == of && one.topic != Topic::Difference)
}

/// The most expensive pieces of each subject after each prestate, without those whose interval includes zero.
fn dearest(experiment: &Experiment) -> Vec<String> {
    let Some(metric) = experiment.metrics.first() else { return Vec::new() };
    let places = distinct(experiment.prices.iter().map(|one| (one.label.as_str(), one.prestate)));
    let of = |place: (&str, &str)| {
        let own = experiment.prices.iter().filter(|one| (one.label.as_str(), one.prestate) == place);
        let rung = |one: &'_ Priced| {
            let price = one.amount(metric.name)?.price;
            let costs = price.interval.is_some_and(|interval| interval.low > 0.0);
            (one.way == "ladder" && costs).then_some((one.piece, price))
        };
        let mut rungs: Vec<(&str, Estimate)> = own.filter_map(rung).collect();
        rungs.sort_by(|(_, one), (_, other)| other.value.total_cmp(&one.value));
        let told = rungs.iter().take(DEAREST);
        let told = told.map(|(piece, price)| format!("{piece} {}", estimated(metric.unit, price)));
        let told = listed(told, ", ");
        (!told.is_empty()).then(|| format!("most expensive pieces of {}, {}: {told}", place.0, place.1))
    };
    places.into_iter().filter_map(of).collect()
}

/// An experiment in a few sentences.
fn in_short(report: &Report, experiment: &Experiment) -> Vec<String> {
    let mut sentences = dearest(experiment);
    sentences.extend(decisions(report, experiment).map(Claim::text));
    if experiment.speaks_for_itself() || !sentences.is_empty() {
        return sentences;
    }
    let Some(metric) = experiment.metrics.first() else { return sentences };
    for setting in experiment.settings.iter().take(BESIDE) {
        let Some(ladder) = setting.ladders.first() else { continue };
        let told = ladder.rows.iter().filter(|row| row.variant_of.is_none()).filter_map(|row| {
            let value = row.values.first()?.as_ref()?;
            let mark = if row.is_suspect(0) { " (suspect)" } else { "" };
            let median = with_interval(metric.unit, value.summary.median.value, None);
            Some(format!("{} {median}{mark}", row.short))
        });
        let (told, named) = (listed(told, ", "), in_brackets(&setting.values));
        if !told.is_empty() {
            sentences.push(format!("{}{named}: {told}", metric.name));
        }
    }
    sentences
}

/// The warnings about an experiment, or about the whole run; those of one kind with the same remedy are combined.
fn warned(report: &Report, experiment: Option<&str>) -> Vec<Item> {
    let own = report.warnings.iter().filter(|one| one.experiment == experiment);
    let own = own.filter(|one| !matches!(one.kind, "failures" | "skipped"));
    let item = |(_, all): (_, Vec<&Warning>)| {
        let item = Item::of(&all[0].seen).named(all[0].kind);
        let item = all.iter().skip(1).take(IN_FULL - 1).fold(item, |item, one| item.detail(&one.seen));
        let item = match all.len().saturating_sub(IN_FULL) {
            0 => item,
            more => item.detail(format!("and {more} more of this kind: see `--format json`")),
        };
        item.detail(format!("hint: {}", all[0].remedy))
    };
    in_groups(own, |one| (one.kind, &one.remedy)).into_iter().map(item).collect()
}

/// The machine, the programs, and how to repeat the run.
fn run(report: &Report, look: &Look) -> Section {
    let place = clean(&look.place);
    let typed = in_shell([&place]);
    let unusable = in_groups(&report.unavailable, |(_, why)| why)
        .into_iter()
        .map(|(why, all)| Item::of(why).named(listed(all.iter().map(|(name, _)| format!("`{name}`")), ", ")));
    let is_mitigation = |name: &str| name.starts_with("mitigation_");
    let facts = report.machine.iter().filter(|(name, _)| !is_mitigation(name));
    let facts = facts.map(|(name, fact)| (name.as_str(), fact.as_str()));
    let host = report.host.iter().map(|host| ("host", host.as_str()));
    let facts = host.chain([("probe", report.probe.as_str())]).chain(facts);
    let mitigations = report.machine.iter().filter(|(name, _)| is_mitigation(name));
    let mitigations = mitigations.map(|(name, fact)| (name.trim_start_matches("mitigation_"), fact.as_str()));
    let columns = ["path", "part", "version", "SHA-256"].map(Column::words);
    let mut programs = Table::of("Programs that were measured or took part", columns.into());
    for ComponentFacts { role, path, version, sha256 } in &report.programs {
        let sum = sha256.get(..SHORT).unwrap_or(sha256);
        programs.row(&[], vec![Cell::code(path), Cell::words(role), Cell::words(version), Cell::code(sum)]);
    }
    let mut blocks = Block::titled("Warnings about the run", vec![Block::List(warned(report, None))]);
    blocks.extend(Block::titled("Found but not usable", vec![Block::List(unusable.collect())]));
    let samples = format!(
        "{} samples are in `{place}`. All samples: `dunnage report {typed} --format csv`. Every verdict with its interval: \
         `dunnage report {typed} --format json`.",
        report.samples
    );
    // An imported run cannot be repeated by dunnage.
    blocks.extend(match report.imported {
        Some(_) => [Block::title("The samples"), Block::words(samples)],
        None => [
            Block::title("How to repeat it"),
            Block::words(format!(
                "Seed {} repeats the order of cells. {samples} One machine, one boot, one daemon of each engine: n = 1 \
                 for each of these. The clock's smallest step is {} ns; {}.",
                report.rounds.seed,
                report.timer_step * 1e9,
                head::carry_over(report)
            )),
        ],
    });
    blocks.extend([
        Block::hidden("Command lines", vec![Block::copy(head::repeat(report))]),
        Block::hidden("Environment", vec![Block::facts(facts)]),
        Block::hidden("Mitigations of the CPU", vec![Block::facts(mitigations)]),
        Block::hidden("Programs", vec![Block::Table(programs)]),
    ]);
    Section { name: "run".into(), title: "The run".into(), blocks }
}

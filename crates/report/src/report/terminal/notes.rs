//! What stands around the ladders: what was measured where and how, what must not be believed,
//! differences in sentences, failures, warnings, and where to go from here.

use super::ladder::tone_of;
use crate::document::Tone;
use crate::document::page::Page;
use crate::report::Look;
use crate::report::head;
use crate::report::model::{Change, Experiment, Notice, Pair, PairKind, Report, Row, Topic};
use crate::report::text::{left, percent, shorten, width, with_interval};
use crate::units::counted;
use crate::verdict::Verdict;
use crate::verdict::prediction::Came;

/// Warnings of one kind that are told in full.
const IN_FULL: usize = 2;

/// What, where, how.
pub(super) fn head(page: &mut Page, report: &Report) {
    page.line(&[
        (Tone::Strong, "dunnage "),
        (Tone::Strong, &report.dunnage),
        (Tone::Plain, &format!(" · run {} · {}", report.run, report.started)),
    ]);
    for experiment in &report.experiments {
        page.paragraph(Tone::Plain, "what   ", &format!("{}: {}", experiment.name, experiment.question));
    }
    let mut place = vec![report.host.clone()];
    place.extend(head::machine(report));
    place.retain(|text| !text.is_empty());
    page.paragraph(Tone::Plain, "where  ", &place.join(" · "));
    let versions = head::versions(report);
    if !versions.is_empty() {
        page.paragraph(Tone::Plain, "with   ", &versions.join(" · "));
    }
    page.paragraph(Tone::Plain, "how    ", &head::rounds(report));
    if let Some(precision) = &report.precision {
        page.paragraph(Tone::Plain, "       ", &precision.sentence);
    }
    if !report.tags.is_empty() {
        let tags: Vec<_> = report.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
        page.paragraph(Tone::Plain, "tags   ", &tags.join(" "));
    }
}

/// Whether any two subjects are compared in it.
fn is_compared(experiment: &Experiment) -> bool {
    experiment.pairs.iter().chain(&experiment.twins).any(|pair| !pair.changes.is_empty())
}

/// Whether any subject differs from the baseline by no more than the noise floor.
fn in_noise(experiment: &Experiment) -> bool {
    let first = |row: &Row| row.against_baseline.first()?.as_ref()?.hidden_by_noise;
    experiment.rows().any(|(_, _, row)| first(row).is_some())
}

/// What the words of the verdicts mean.
pub(super) fn legend(page: &mut Page, experiment: &Experiment) {
    let Some(metric) = experiment.metrics.first() else { return };
    if !is_compared(experiment) {
        return page.paragraph(Tone::Faint, "", "● median, ├─┤ its 95 % interval.");
    }
    let (absolute, relative) = metric.margin;
    let absolute = with_interval(metric.unit, absolute, None);
    page.paragraph(
        Tone::Faint,
        "",
        &format!(
            "● median, ├─┤ its 95 % interval. Verdicts rest on differences round by round. slower, faster: the \
             interval leaves zero and the difference exceeds {absolute} or {}, whichever is larger; same: the whole \
             interval lies within that; undecided: neither{}.",
            percent(relative),
            if in_noise(experiment) { "; in noise: slower or faster, but by no more than twins differ" } else { "" }
        ),
    );
}

/// What must not be believed: first, and loud.
pub(super) fn suspects(page: &mut Page, report: &Report) {
    if report.suspects.is_empty() {
        return;
    }
    page.title(Tone::Alarm, "SUSPECT: do not believe these numbers");
    for (index, suspect) in report.suspects.iter().enumerate() {
        page.paragraph(
            Tone::Alarm,
            &format!("{:2} ", index + 1),
            &format!("{}: {}", suspect.rule, suspect.evidence),
        );
        page.paragraph(Tone::Plain, "   ", &format!("probably: {}", suspect.mechanism));
    }
}

/// Pairs other than with the baseline, in sentences.
pub(super) fn differences(page: &mut Page, experiment: &Experiment) {
    let groups = [
        "one thing differs: what it costs or saves",
        "what each step adds",
        "several things differ at once, so no cause is named",
        "against the baseline",
    ];
    let group = |kind: &PairKind| match kind {
        PairKind::OneKey(_) => 0,
        PairKind::Step => 1,
        PairKind::Choice | PairKind::Predicted | PairKind::Several | PairKind::Twin => 2,
        PairKind::Baseline => 3,
    };
    // That a layer is slower than the baseline stands in the ladders; what is open or the same
    // needs more than a word, and so does a neighbour.
    let is_told = |pair: &&Pair| {
        let open = |change: &Change| matches!(change.verdict, Verdict::Undecided { .. } | Verdict::Same);
        pair.kind != PairKind::Baseline
            || pair.same_layer
            || pair.changes.iter().any(|change| change.metric == 0 && open(change))
    };
    let metric = experiment.metrics.first().map_or("", |metric| metric.name);
    let mut titled = false;
    for (index, title) in groups.into_iter().enumerate() {
        let pairs: Vec<&Pair> =
            experiment.pairs.iter().filter(|pair| group(&pair.kind) == index).filter(is_told).collect();
        if pairs.is_empty() {
            continue;
        }
        if !std::mem::replace(&mut titled, true) {
            page.title(Tone::Strong, &format!("what differs in {metric} of {}", experiment.name));
        }
        page.gap();
        page.line(&[(Tone::Faint, title)]);
        for pair in pairs {
            pair_in_settings(page, experiment, pair);
        }
    }
}

fn pair_in_settings(page: &mut Page, experiment: &Experiment, pair: &Pair) {
    let mut name = pair.phrase.chars();
    let capital: String = name.next().into_iter().flat_map(char::to_lowercase).chain(name).collect();
    page.paragraph(Tone::Strong, "  ", &capital);
    let settings = widest_setting(experiment);
    for change in pair.changes.iter().filter(|change| change.metric == 0) {
        let setting = experiment.settings.get(change.setting).map_or("", |setting| &setting.values);
        let first =
            if settings == 0 { "    ".to_owned() } else { format!("    {}  ", left(setting, settings)) };
        let other = |metric: usize| {
            let fits = |one: &&Change| one.metric == metric && one.setting == change.setting;
            let other = pair.changes.iter().find(fits)?;
            // That a metric is missing is said once, among the warnings.
            let differs = other.verdict != Verdict::NoData
                && other.word() != change.word()
                && experiment.metrics[metric].decisive;
            differs.then(|| format!("{} {}", experiment.metrics[metric].name, other.word()))
        };
        let others: Vec<_> = (1..experiment.metrics.len()).filter_map(other).collect();
        let others = if others.is_empty() { String::new() } else { format!(" (but {})", others.join(", ")) };
        page.paragraph(tone_of(change), &first, &format!("{}{others}", change.predicate));
    }
}

/// The columns that the values of settings take.
fn widest_setting(experiment: &Experiment) -> usize {
    experiment.settings.iter().map(|setting| width(&setting.values)).max().unwrap_or(0).min(24)
}

/// What gave no sample, and what could not be tried at all.
pub(super) fn failures(page: &mut Page, report: &Report) {
    if !report.failures.is_empty() {
        page.title(Tone::Alarm, "failures");
        for failure in &report.failures {
            let often = format!("{} of {}", failure.times, counted(failure.planned, "sample"));
            page.paragraph(Tone::Strong, "  ", &format!("{}: {}, {often}", failure.label, failure.class));
            page.paragraph(Tone::Plain, "    ", &failure.reason);
        }
        let checks = "`dunnage check` tries every cell once and says what is wrong";
        page.paragraph(Tone::Faint, "  ", checks);
    }
    if !report.unavailable.is_empty() {
        page.title(Tone::Strong, "found, but not usable");
        for (name, why) in &report.unavailable {
            page.paragraph(Tone::Plain, &format!("  {name}: "), why);
        }
    }
}

/// Warnings by kind; of many of one kind a few in full.
pub(super) fn notices(page: &mut Page, report: &Report) {
    let told: Vec<&Notice> =
        report.notices.iter().filter(|notice| !matches!(notice.kind, "failures" | "skipped")).collect();
    if told.is_empty() {
        return;
    }
    page.title(Tone::Open, "warnings");
    let mut kinds: Vec<&str> = Vec::new();
    for notice in &told {
        if !kinds.contains(&notice.kind) {
            kinds.push(notice.kind);
        }
    }
    for kind in kinds {
        let same: Vec<_> = told.iter().filter(|notice| notice.kind == kind).collect();
        for notice in same.iter().take(IN_FULL) {
            page.paragraph(Tone::Plain, "  ", &notice.seen);
        }
        if same.len() > IN_FULL {
            let mut labels: Vec<&str> = Vec::new();
            for label in same[IN_FULL..].iter().flat_map(|notice| &notice.labels) {
                if !labels.contains(&label.as_str()) {
                    labels.push(label);
                }
            }
            let rest = same.len() - IN_FULL;
            let more = match (labels.is_empty(), rest) {
                (false, 1) => format!("and {kind} in 1 more cell of {}", labels.join(", ")),
                (false, _) => format!("and {kind} in {rest} more cells of {}", labels.join(", ")),
                // About the run itself, not about cells.
                (true, _) => format!("and {rest} more of this kind; `--format json` has them all"),
            };
            page.paragraph(Tone::Plain, "  ", &more);
        }
        if let Some(first) = same.first() {
            page.paragraph(Tone::Faint, "    hint: ", &first.remedy);
        }
    }
}

/// What was predicted, and what came of it; of what held, nothing more needs to be said.
pub(super) fn predictions(page: &mut Page, report: &Report) {
    if report.predictions.is_empty() {
        return;
    }
    page.title(Tone::Strong, "predicted before measuring");
    for prediction in &report.predictions {
        let first = format!("  {} ", left(prediction.came.words(), Came::DidNotHold.words().len()));
        page.paragraph(came(prediction.came), &first, &prediction.text);
        for link in prediction.links.iter().filter(|link| link.came != Came::Held) {
            let setting = if link.values.is_empty() { String::new() } else { format!(" ({})", link.values) };
            let text = format!("{}{setting} {}: {}", link.text, link.came.words(), link.because);
            page.paragraph(Tone::Plain, "    ", &text);
        }
    }
}

fn came(came: Came) -> Tone {
    match came {
        Came::Held => Tone::Better,
        Came::DidNotHold => Tone::Worse,
        Came::NotDecided => Tone::Open,
    }
}

/// The way up the ladder in a line or two, for whoever sees only the end of the page.
pub(super) fn in_short(page: &mut Page, report: &Report) {
    page.section("in short", |page| sentences(page, report));
}

fn sentences(page: &mut Page, report: &Report) {
    if !report.suspects.is_empty() {
        let many = match report.suspects.len() {
            1 => "1 suspect finding stands at the top; read it first".to_owned(),
            many => format!("{many} suspect findings stand at the top; read them first"),
        };
        page.paragraph(Tone::Alarm, "  ", &many);
    }
    if report.samples == 0
        && let Some(first) = report.failures.first()
    {
        let reason = format!("nothing was measured: {} (see failures)", first.reason);
        page.paragraph(Tone::Alarm, "  ", &reason);
        return;
    }
    for experiment in &report.experiments {
        let Some(metric) = experiment.metrics.first() else { continue };
        if !experiment.price_lists.is_empty() {
            super::prices::in_short(page, experiment);
        }
        super::exhibits::in_short(page, experiment);
        if experiment.speaks_for_itself() {
            continue;
        }
        let settings = widest_setting(experiment);
        for setting in &experiment.settings {
            let Some(ladder) = setting.ladders.first() else { continue };
            let mut text = String::new();
            let mut layer = "";
            // What an experiment left out of a subject explains it, and stands in the table.
            for row in ladder.rows.iter().filter(|row| row.variant_of.is_none()) {
                let Some(value) = row.values.first().and_then(Option::as_ref) else { continue };
                text.push_str(match layer {
                    "" => "",
                    same if same == row.layer => ", ",
                    _ => " → ",
                });
                layer = row.layer;
                let shown = with_interval(metric.unit, value.median.value, None);
                let doubt = if row.is_suspect(0) { " (suspect)" } else { "" };
                text.push_str(&format!("{} {shown}{doubt}", row.short));
            }
            // No subject has a value: there is nothing to say in short.
            if text.is_empty() {
                continue;
            }
            let first = format!("  {} {}  ", metric.name, left(&setting.values, settings));
            page.paragraph(Tone::Plain, &shorten(&first, page.width / 2), &text);
        }
    }
    // What two subjects differ by stands above.
    for sentence in report.sentences.iter().filter(|one| one.topic != Topic::Difference) {
        page.paragraph(Tone::Plain, "  - ", &sentence.text);
    }
}

/// Where to go from here.
pub(super) fn closing(page: &mut Page, report: &Report, look: &Look) {
    page.title(Tone::Strong, "and further");
    page.paragraph(Tone::Plain, "  ", &head::carry_over(report));
    page.paragraph(
        Tone::Plain,
        "  ",
        "one machine, one boot, and one daemon of each engine: n = 1 in each of these",
    );
    let place = crate::report::text::clean(&look.place);
    page.paragraph(
        Tone::Plain,
        "  ",
        &format!(
            "{} in {place}; all of them: dunnage report {place} --format csv",
            counted(report.samples, "sample")
        ),
    );
    page.paragraph(
        Tone::Plain,
        "  ",
        &format!("every verdict with its interval: dunnage report {place} --format json"),
    );
}

//! From a run and its analysis to the plain data of a report.

use std::collections::BTreeSet;

use super::compared::Compared;
use super::{
    Experiment, Ladder, Metric, Noise, Program, Replicated, Report, Rounds, Row, Setting, Value, notices,
    priced,
};
use crate::experiment::{self, Weight};
use crate::outcome::FailureClass;
use crate::plan::{self, Entry, Plan};
use crate::record::Recorded;
use crate::report::text::clean;
use crate::stats::{self, Family};
use crate::verdict::exhibit::{Exhibit, Item};
use crate::verdict::{Analysis, CellSummary, MOST_POINTS, MOST_STEPS, MetricSummary, Shape};

impl Report {
    /// Everything that the run shows.
    pub fn of(run: &Recorded, analysis: &Analysis) -> Report {
        let environment = &run.environment;
        let plan = &run.plan;
        let pairs = |(name, fact): (&String, &String)| (clean(name), clean(fact));
        let command: Vec<_> = environment.command.iter().map(|word| clean(word)).collect();
        Report {
            run: clean(&run.run),
            dunnage: clean(&environment.dunnage),
            started: clean(&environment.started),
            command: command.join(" "),
            tags: environment.tags.iter().map(pairs).collect(),
            host: clean(&environment.host),
            machine: environment.machine.iter().map(pairs).collect(),
            timer_step: environment.timer.step as f64 / 1e9,
            probe: clean(&environment.probe),
            programs: programs(run),
            unavailable: environment.unavailable.iter().map(pairs).collect(),
            rounds: Rounds {
                complete: analysis.rounds,
                planned: plan.rounds,
                warmups: plan.warmups,
                seed: plan.seed,
            },
            precision: super::precision::precision(run, analysis),
            job: None,
            predictions: super::predicted::predictions(run, analysis),
            sentences: super::summary::sentences(run, analysis),
            experiments: experiments(run, analysis),
            notices: notices::notices(run, analysis),
            suspects: notices::suspicions(run, analysis),
            failures: failures(run, analysis),
            carry_over_tested: analysis.carry_over_tested,
            samples: samples(run),
            imported: environment.origin.as_ref().map(|origin| super::Imported {
                from: format!("{} `{}`", clean(&origin.format), clean(&origin.file)),
                order: origin.order,
                notes: origin.notes.iter().map(|note| clean(note)).collect(),
            }),
            references: Vec::new(),
        }
    }
}

/// An exhibit whose texts, labels and engines' words among them, fool no terminal.
fn cleaned(exhibit: &Exhibit) -> Exhibit {
    let item = |item: &Item| match item {
        Item::Text(text) => Item::Text(clean(text)),
        Item::Nothing(why) => Item::Nothing(clean(why)),
        number => number.clone(),
    };
    Exhibit {
        title: clean(&exhibit.title),
        rows: exhibit.rows.iter().map(|row| row.iter().map(item).collect()).collect(),
        summary: exhibit.summary.iter().map(|sentence| clean(sentence)).collect(),
        notes: exhibit.notes.iter().map(|note| clean(note)).collect(),
        ..exhibit.clone()
    }
}

/// The programs of the subjects in the order of the plan, each once.
fn programs(run: &Recorded) -> Vec<Program> {
    let mut programs = Vec::new();
    let known = run.plan.subjects.iter().filter_map(|entry| run.environment.subjects.get(&entry.label));
    for component in known.flat_map(|facts| &facts.components) {
        let program = Program {
            role: clean(&component.role),
            path: clean(&component.path),
            version: clean(component.version.trim().lines().next().unwrap_or_default()),
            sha256: clean(&component.sha256),
        };
        if !programs.contains(&program) {
            programs.push(program);
        }
    }
    // No program, and part of what floor and runtimes are all the same.
    programs.extend(run.environment.filter.as_ref().map(|filter| Program {
        role: "system call filter".into(),
        path: String::new(),
        version: format!("system call filter of floor and runtimes: {}", clean(&filter.origin)),
        sha256: clean(&filter.sha256),
    }));
    programs
}

/// How many samples count.
fn samples(run: &Recorded) -> usize {
    let complete: Vec<_> = run.contexts.iter().skip(run.plan.warmups).map(Option::is_some).collect();
    let taken = |round: usize, series: &crate::record::Series| {
        series.values.iter().any(|column| column.get(round).is_some_and(|value| value.is_finite()))
    };
    let of_cell = |series: &crate::record::Series| {
        (0..complete.len()).filter(|&round| complete[round] && taken(round, series)).count()
    };
    run.series.iter().map(of_cell).sum()
}

fn experiments(run: &Recorded, analysis: &Analysis) -> Vec<Experiment> {
    let plan = &run.plan;
    let mut names: Vec<&'static str> = Vec::new();
    for cell in &plan.cells {
        if !names.contains(&cell.experiment) {
            names.push(cell.experiment);
        }
    }
    names.into_iter().filter_map(|name| one_experiment(run, analysis, name)).collect()
}

fn one_experiment(run: &Recorded, analysis: &Analysis, name: &'static str) -> Option<Experiment> {
    let definition = experiment::find(name)?;
    let metrics = definition.about().metrics.iter().map(|metric| Metric {
        name: metric.name,
        unit: metric.unit,
        better: metric.better,
        meaning: metric.meaning,
        decisive: metric.weight == Weight::Verdict,
        margin: run.plan.margin_of(name, metric).parts(),
    });
    let metrics: Vec<_> = metrics.collect();
    let settings = settings(&run.plan, name);
    let compared = Compared { plan: &run.plan, analysis, name, metrics: &metrics, settings: &settings };
    let built = (0..settings.len()).map(|index| one_setting(run, analysis, &compared, index)).collect();
    let (pairs, twins) = compared.pairs();
    let factors = super::factors::factors(&compared);
    let price_lists = priced::price_lists(run, analysis, name);
    let family = run.plan.verdicts.iter().find(|own| own.experiment == name).map_or(0, |own| own.asked);
    Some(Experiment {
        name,
        question: definition.about().question,
        verdicts_in_family: family,
        verdict_level: Family::of(family).per_comparison().get(),
        rounds: Some(run.plan.rounds_of(name)).filter(|rounds| *rounds < run.plan.rounds),
        settings: built,
        pairs,
        twins,
        factors,
        maps: definition
            .about()
            .maps
            .iter()
            .filter_map(|name| metrics.iter().position(|one| one.name == *name))
            .collect(),
        replicates: definition.about().replicates,
        metrics,
        price_lists,
        exhibits: analysis.exhibits.iter().filter(|one| one.experiment == name).map(cleaned).collect(),
    })
}

/// The settings of an experiment in the order of the plan.
fn settings(plan: &Plan, name: &str) -> Vec<experiment::Setting> {
    let mut settings: Vec<experiment::Setting> = Vec::new();
    for cell in plan.cells.iter().filter(|cell| cell.experiment == name) {
        if !settings.contains(&cell.setting) {
            settings.push(cell.setting.clone());
        }
    }
    settings
}

fn one_setting(run: &Recorded, analysis: &Analysis, compared: &Compared<'_>, index: usize) -> Setting {
    let plan = &run.plan;
    let setting = &compared.settings[index];
    let in_setting =
        |cell: &usize| plan.cells[*cell].experiment == compared.name && plan.cells[*cell].setting == *setting;
    let cells: Vec<usize> = (0..plan.cells.len()).filter(in_setting).collect();
    let ladders = [plan::Ladder::AsInstalled, plan::Ladder::Equalised]
        .into_iter()
        .filter_map(|kind| ladder(run, analysis, compared, &cells, index, kind))
        .collect();
    let noise = analysis.noise.iter().filter(|noise| cells.contains(&noise.cell)).map(|noise| {
        let twin = &plan.subjects[plan.cells[noise.cell].subject];
        let original = twin.twin_of.map_or(twin, |original| &plan.subjects[original]);
        Noise {
            layer: original.layer.name(),
            label: clean(&original.label),
            metric: noise.metric,
            place: compared.place(index, noise.metric),
            units: noise.floor.units,
            share: noise.floor.relative,
            holds_zero: noise.floor.holds_zero,
        }
    });
    let mut noise: Vec<_> = noise.collect();
    noise.sort_by_key(|noise| (noise.metric, layer_rank(noise.layer)));
    let values: Vec<_> = setting.0.iter().map(|(_, value)| *value).collect();
    Setting { text: setting.to_string(), values: values.join(", "), ladders, noise }
}

/// The place of a layer in the order of layers.
fn layer_rank(layer: &str) -> usize {
    ["bare", "floor", "runtime", "engine"].iter().position(|name| *name == layer).unwrap_or(usize::MAX)
}

/// A ladder of this kind; none where it would show nothing that another does not.
fn ladder(
    run: &Recorded,
    analysis: &Analysis,
    compared: &Compared<'_>,
    cells: &[usize],
    setting: usize,
    kind: plan::Ladder,
) -> Option<Ladder> {
    let plan = &run.plan;
    let entry = |cell: usize| &plan.subjects[plan.cells[cell].subject];
    let is_engine = |entry: &Entry| entry.layer.name() == "engine";
    let originals: Vec<usize> = cells.iter().copied().filter(|&cell| entry(cell).twin_of.is_none()).collect();
    let own = |cell: &usize| entry(*cell).ladder == kind;
    let engine = |cell: &usize| is_engine(entry(*cell));
    // Without any engine there is one ladder, of what there is.
    let is_needed = originals.iter().any(|cell| own(cell) && engine(cell))
        || (kind == plan::Ladder::AsInstalled && !originals.iter().any(engine));
    if !is_needed {
        return None;
    }
    let stands = |cell: &usize| own(cell) || !is_engine(entry(*cell));
    let on_it: Vec<usize> = originals.into_iter().filter(stands).collect();
    let engines: Vec<&Entry> =
        on_it.iter().map(|cell| entry(*cell)).filter(|entry| is_engine(entry)).collect();
    let equalised = kind == plan::Ladder::Equalised;
    let shared = if equalised { shared_keys(&engines) } else { BTreeSet::new() };
    let mut rows: Vec<(Row, f64)> = Vec::new();
    for cell in on_it {
        let row = row(run, analysis, compared, cell, setting, &shared);
        let median = row.values.first().and_then(|value| value.as_ref()).map(|value| value.median.value);
        rows.push((row, median.unwrap_or(f64::INFINITY)));
    }
    rows.sort_by(|(one, quick), (other, slow)| {
        layer_rank(one.layer).cmp(&layer_rank(other.layer)).then(quick.total_cmp(slow))
    });
    let mut rows: Vec<Row> = rows.into_iter().map(|(row, _)| row).collect();
    keep_short_labels_distinct(&mut rows);
    let shown: Vec<_> =
        shared.iter().map(|(key, value)| format!("{}={}", clean(key), clean(value))).collect();
    Some(Ladder {
        name: if equalised { "equalised" } else { "as installed" },
        equalised,
        shared_keys: shown.join(", "),
        baseline: clean(&plan.subjects[plan.baseline_of(compared.name)].label),
        rows,
    })
}

fn shared_keys(engines: &[&Entry]) -> BTreeSet<(String, String)> {
    let keys = |entry: &&Entry| entry.spec.keys.iter().cloned().collect::<BTreeSet<_>>();
    engines.iter().map(keys).reduce(|one, other| &one & &other).unwrap_or_default()
}

fn keep_short_labels_distinct(rows: &mut [Row]) {
    let shorts: Vec<_> = rows.iter().map(|row| row.short.clone()).collect();
    for row in rows.iter_mut() {
        if shorts.iter().filter(|short| **short == row.short).count() > 1 {
            row.short = row.label.clone();
        }
    }
}

fn row(
    run: &Recorded,
    analysis: &Analysis,
    compared: &Compared<'_>,
    cell: usize,
    setting: usize,
    shared: &BTreeSet<(String, String)>,
) -> Row {
    let plan = &run.plan;
    let subject = plan.cells[cell].subject;
    let entry = &plan.subjects[subject];
    let mut short = entry.spec.clone();
    short.keys.retain(|pair| !shared.contains(pair));
    let summary = &analysis.cells[cell];
    let is_derived = entry.label == entry.spec.to_string();
    let value = |(metric, summary): (usize, &Option<MetricSummary>)| {
        let MetricSummary { median, range } = summary.clone()?;
        let Shape { quartiles, steps, course } = analysis.shapes[cell][metric].clone()?;
        let points = if median.interval.is_some() { Vec::new() } else { points(run, cell, metric) };
        let Metric { name, unit, .. } = compared.metrics[metric];
        Some(Value { metric: name, unit, median, range, quartiles, points, steps, course })
    };
    Row {
        short: clean(&if is_derived { short.to_string() } else { entry.label.clone() }),
        label: clean(&entry.label),
        subject: clean(&entry.spec.to_string()),
        layer: entry.layer.name(),
        is_baseline: subject == plan.baseline_of(compared.name),
        variant_of: entry.variant_of.as_deref().map(clean),
        runtime: entry.runtime.as_deref().map(clean),
        values: summary.metrics.iter().enumerate().map(value).collect(),
        against_baseline: compared.with_baseline(subject, setting),
        floor_share: analysis.floor_shares.iter().find(|one| one.cell == cell).map(|one| one.share),
        replicates: replicated(run, cell),
        lost: lost(summary),
    }
}

/// What replicates within the first sample of a cell that counts.
fn replicated(run: &Recorded, cell: usize) -> Vec<Option<Replicated>> {
    let declared =
        experiment::find(run.plan.cells[cell].experiment).map_or(&[][..], |one| one.about().replicates);
    let counted = run.contexts.iter().skip(run.plan.warmups);
    let mut samples = run.series[cell].samples.iter().zip(counted);
    let first = samples.find_map(|(sample, context)| sample.as_ref().filter(|_| context.is_some()));
    let of_sample = |declared: &experiment::Replicates| {
        let sample = first?;
        let values = sample.series(declared.series)?;
        let values: Vec<f64> = values.iter().map(|value| *value as f64 / declared.divisor).collect();
        let present: Vec<Option<f64>> = values.iter().copied().map(Some).collect();
        Some(Replicated {
            count: values.len(),
            steps: stats::steps(&stats::Sample::new(values).ok()?, MOST_STEPS),
            course: stats::course(&present, MOST_POINTS),
            every: (declared.every)(sample),
        })
    };
    declared.iter().map(of_sample).collect()
}

/// The values of complete rounds that count.
fn points(run: &Recorded, cell: usize, metric: usize) -> Vec<f64> {
    let counted = run.contexts.iter().skip(run.plan.warmups);
    let values = run.series[cell].values[metric].iter().zip(counted);
    values
        .filter(|(value, context)| context.is_some() && value.is_finite())
        .map(|(value, _)| *value)
        .collect()
}

fn lost(summary: &CellSummary) -> usize {
    summary.failures.iter().map(|(_, count, _)| count).sum::<usize>() + summary.skipped
}

/// What gave no sample, by experiment, subject and class over all settings.
fn failures(run: &Recorded, analysis: &Analysis) -> Vec<super::Failure> {
    let mut failures: Vec<super::Failure> = Vec::new();
    let planned = run.plan.rounds;
    for (index_of_cell, (cell, summary)) in run.plan.cells.iter().zip(&analysis.cells).enumerate() {
        let label = clean(&run.plan.subjects[cell.subject].label);
        let index = failures.len();
        let mut add = |class: &'static str, times: usize, reason: &str| {
            let same = |one: &&mut super::Failure| {
                one.experiment == cell.experiment && one.label == label && one.class == class
            };
            match failures[..index].iter_mut().find(same) {
                Some(known) => {
                    known.times += times;
                    known.planned += planned;
                    known.settings.push(cell.setting.to_string());
                }
                None => failures.push(super::Failure {
                    experiment: cell.experiment,
                    label: label.clone(),
                    class,
                    settings: vec![cell.setting.to_string()],
                    times,
                    planned,
                    reason: clean(reason),
                }),
            }
        };
        for (class, times, reason) in &summary.failures {
            let own = reason.strip_prefix(class.name()).and_then(|rest| rest.strip_prefix(": "));
            add(FailureClass::name(*class), *times, own.unwrap_or(reason));
        }
        if summary.skipped > 0 {
            let reason = notices::first_skip(run, index_of_cell).unwrap_or_default();
            add("skipped", summary.skipped, &reason);
        }
    }
    failures
}

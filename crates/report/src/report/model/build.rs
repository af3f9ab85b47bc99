//! Builds the plain data of a report from a run and its analysis.

use std::collections::BTreeSet;

use super::compared::Compared;
use super::{Experiment, Ladder, Noise, Replicated, Report, Rounds, Row, Setting, Value, priced};
use dunnage_analysis::subject::defaults::lacks;

use crate::distinct;
use crate::experiment;
use crate::plan;
use crate::record::{ComponentFacts, Recorded};
use crate::report::text::{clean, listed};
use crate::report::words::{setting_values, shared_keys, without_keys};
use crate::report::{predicted, summary};
use crate::stats;
use crate::verdict::{self, Analysis, FloorShare, MOST_POINTS, MOST_STEPS, MetricSummary, Suspect};

impl Report {
    /// The report of a run.
    pub fn of(run: &Recorded, analysis: &Analysis) -> Report {
        let environment = &run.environment;
        let plan = &run.plan;
        let pairs = |(name, fact): (&String, &String)| (clean(name), clean(fact));
        Report {
            run: clean(&run.run),
            dunnage: clean(&environment.dunnage),
            started: clean(&environment.started),
            // A single sample has no time from the first to the last.
            lasted: run.lasted.filter(|time| time.0 > 0 && !run.resumed && environment.origin.is_none()),
            command: environment.command.iter().map(|word| clean(word)).collect(),
            tags: environment.tags.iter().map(pairs).collect(),
            host: Some(clean(&environment.host)).filter(|host| !host.is_empty()),
            machine: environment.machine.iter().map(pairs).collect(),
            timer_step: environment.origin.as_ref().map_or(environment.timer.step as f64 / 1e9, |_| f64::NAN),
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
            predictions: predicted::predictions(run, analysis),
            claims: summary::claims(run, analysis),
            meanings: summary::meanings(run, analysis),
            experiments: experiments(run, analysis),
            warnings: analysis.warnings.clone(),
            suspects: suspicions(run, analysis),
            failures: super::failures::failures(run, analysis),
            carry_over_tested: analysis.carry_over_tested,
            samples: samples(run),
            imported: environment.origin.as_ref().map(|origin| super::Imported {
                from: format!("{} `{}`", clean(&origin.format), clean(&origin.file)),
                order: origin.order,
                notes: origin.notes.iter().map(|note| clean(note)).collect(),
            }),
            opened: None,
            references: Vec::new(),
        }
    }
}

/// The programs of the subjects in the order of the plan, each once.
fn programs(run: &Recorded) -> Vec<ComponentFacts> {
    let known = run.plan.subjects.iter().filter_map(|entry| run.environment.subjects.get(&entry.label));
    let program = |component: &ComponentFacts| ComponentFacts {
        role: clean(&component.role),
        path: clean(&component.path),
        version: clean(component.version.trim().lines().next().unwrap_or_default()),
        sha256: clean(&component.sha256),
    };
    // Not a program, but part of floor and runtimes.
    let filter = run.environment.filter.as_ref().map(|filter| ComponentFacts {
        role: "system call filter".into(),
        path: String::new(),
        version: format!("system call filter of floor and runtimes: {}", clean(&filter.origin)),
        sha256: clean(&filter.sha256),
    });
    distinct(known.flat_map(|facts| &facts.components).map(program).chain(filter))
}

/// The number of counted samples.
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
    let names = distinct(run.plan.cells.iter().map(|cell| cell.experiment));
    names.into_iter().filter_map(|name| one_experiment(run, analysis, name)).collect()
}

fn one_experiment(run: &Recorded, analysis: &Analysis, name: &'static str) -> Option<Experiment> {
    let about = experiment::find(name)?;
    let metrics = run.plan.metric_facts(about);
    let own = run.plan.cells.iter().filter(|cell| cell.experiment == name);
    let settings = distinct(own.map(|cell| &cell.setting));
    let compared = Compared { run, analysis, name, metrics: &metrics };
    let settings = settings.into_iter().map(|setting| compared.setting(setting)).collect();
    let (comparisons, twins) = compared.told();
    let factors = super::factors::factors(&compared);
    let family = run.plan.verdicts_of(name);
    let tables = analysis.experiment_tables.iter().filter(|one| one.experiment == name);
    Some(Experiment {
        name,
        question: about.question,
        first_verdicts: family.map_or(0, |own| own.first),
        first_level: run.plan.alpha_for(name, plan::Role::First).get(),
        verdicts_in_family: family.map_or(0, |own| own.asked),
        verdict_level: run.plan.alpha(name).get(),
        rounds: Some(run.plan.rounds_of(name)).filter(|rounds| *rounds < run.plan.rounds),
        settings,
        comparisons,
        twins,
        factors,
        about,
        metrics,
        prices: priced::prices(run, analysis, name),
        sums: analysis.sums.iter().filter(|sum| sum.experiment == name).cloned().collect(),
        experiment_tables: tables.cloned().collect(),
        spikes: analysis.spikes.iter().find(|one| one.experiment == name).cloned(),
    })
}

impl Compared<'_> {
    fn setting(&self, setting: &experiment::Setting) -> Setting {
        let plan = &self.run.plan;
        let in_setting =
            |cell: &usize| plan.cells[*cell].experiment == self.name && plan.cells[*cell].setting == *setting;
        let cells: Vec<usize> = (0..plan.cells.len()).filter(in_setting).collect();
        let ladders = [plan::Ladder::AsInstalled, plan::Ladder::Equalised].into_iter();
        let original = |noise: &verdict::Noise| {
            let twin = &plan.subjects[plan.cells[noise.cell].subject];
            twin.twin_of.map_or(twin, |original| &plan.subjects[original])
        };
        let own = self.analysis.noise.iter().filter(|noise| cells.contains(&noise.cell));
        let mut own: Vec<&verdict::Noise> = own.collect();
        own.sort_by_key(|noise| (noise.metric, original(noise).layer));
        let noise = |noise: &verdict::Noise| Noise {
            layer: original(noise).layer.name(),
            label: clean(&original(noise).label),
            place: self.place(noise.cell, noise.metric),
            floor: noise.floor,
        };
        Setting {
            text: setting.to_string(),
            values: setting_values(plan, self.name, setting),
            ladders: ladders.filter_map(|kind| self.ladder(&cells, kind)).collect(),
            noise: own.into_iter().map(noise).collect(),
        }
    }

    /// A ladder of this kind; none if it shows nothing new.
    fn ladder(&self, cells: &[usize], kind: plan::Ladder) -> Option<Ladder> {
        let plan = &self.run.plan;
        let entry = |cell: usize| &plan.subjects[plan.cells[cell].subject];
        let is_engine = |cell: usize| entry(cell).layer == plan::Layer::Engine;
        let originals: Vec<usize> =
            cells.iter().copied().filter(|&cell| entry(cell).twin_of.is_none()).collect();
        let own = |cell: usize| entry(cell).ladder == kind;
        // Without engines there is one ladder of all subjects.
        let is_needed = originals.iter().any(|&cell| own(cell) && is_engine(cell))
            || (kind == plan::Ladder::AsInstalled && !originals.iter().any(|&cell| is_engine(cell)));
        if !is_needed {
            return None;
        }
        let mut on_it = originals;
        on_it.retain(|&cell| own(cell) || !is_engine(cell));
        let median = |cell: usize| {
            let first = self.analysis.cells[cell].metrics.first().and_then(Option::as_ref);
            first.map_or(f64::INFINITY, |values| values.median.value)
        };
        on_it.sort_by(|&one, &other| {
            entry(one).layer.cmp(&entry(other).layer).then(median(one).total_cmp(&median(other)))
        });
        let engines = on_it.iter().filter(|cell| is_engine(**cell)).map(|cell| entry(*cell));
        let equalised = kind == plan::Ladder::Equalised;
        let shared = if equalised { shared_keys(engines) } else { BTreeSet::new() };
        let mut rows: Vec<Row> = on_it.iter().map(|cell| self.row(*cell, &shared)).collect();
        keep_short_labels_distinct(&mut rows);
        let shown = shared.iter().map(|(key, value)| format!("{}={}", clean(key), clean(value)));
        Some(Ladder {
            name: if equalised { "equalised" } else { "as installed" },
            equalised,
            shared_keys: listed(shown, ", "),
            baseline: clean(&plan.subjects[plan.baseline_of(self.name)].label),
            rows,
        })
    }

    fn row(&self, cell: usize, shared: &BTreeSet<(String, String)>) -> Row {
        let Compared { run, analysis, .. } = self;
        let subject = run.plan.cells[cell].subject;
        let entry = &run.plan.subjects[subject];
        let summary = &analysis.cells[cell];
        let value = |(metric, summary): (usize, &Option<MetricSummary>)| {
            Some(Value {
                metric: self.metrics[metric].name,
                unit: self.metrics[metric].unit,
                summary: summary.clone()?,
                shape: analysis.shapes[cell][metric].clone()?,
            })
        };
        let share = analysis.floor_shares.iter().find(|one| one.cell == cell);
        let label = |share: &FloorShare| clean(&run.plan.subjects[share.floor].label);
        Row {
            short: without_keys(entry, shared),
            label: clean(&entry.label),
            subject: clean(&entry.spec.to_string()),
            layer: entry.layer.name(),
            is_baseline: subject == run.plan.baseline_of(self.name),
            variant_of: entry.variant_of.as_deref().map(clean),
            lacks: lacks(&entry.spec),
            runtime: entry.runtime.as_deref().map(clean),
            values: summary.metrics.iter().enumerate().map(value).collect(),
            against_baseline: self.with_baseline(cell),
            floor_share: share.map(|one| one.share),
            floor: share.map(|one| (label(one), one.unlike.clone())),
            replicates: replicated(run, cell),
            lost: summary.failures.iter().map(|(_, count, _)| count).sum::<usize>() + summary.skipped,
        }
    }
}

fn keep_short_labels_distinct(rows: &mut [Row]) {
    let shorts: Vec<_> = rows.iter().map(|row| row.short.clone()).collect();
    for row in rows.iter_mut() {
        if shorts.iter().filter(|short| **short == row.short).count() > 1 {
            row.short = row.label.clone();
        }
    }
}

/// The values that replicate within the first counted sample of a cell.
fn replicated(run: &Recorded, cell: usize) -> Vec<Option<Replicated>> {
    let declared = experiment::find(run.plan.cells[cell].experiment).map_or(&[][..], |one| one.replicates);
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
            steps: stats::steps(&stats::Sample::new(values)?, MOST_STEPS),
            time_series: stats::time_series(&present, MOST_POINTS),
            every: (declared.every)(sample),
        })
    };
    declared.iter().map(of_sample).collect()
}

/// The rules that fired.
fn suspicions(run: &Recorded, analysis: &Analysis) -> Vec<super::Suspicion> {
    let one = |suspect: &Suspect| {
        let first = suspect.cells.first().map(|&cell| &run.plan.cells[cell]);
        let metric = suspect.metric.and_then(|metric| run.plan.metrics(first?).get(metric));
        let subjects = suspect.cells.iter().map(|cell| run.plan.cells[*cell].subject);
        super::Suspicion {
            rule: suspect.rule,
            experiment: first.map(|cell| cell.experiment),
            labels: distinct(subjects).into_iter().map(|one| clean(&run.plan.subjects[one].label)).collect(),
            metric: metric.map(|metric| metric.name),
            evidence: clean(&suspect.evidence),
            mechanism: clean(&suspect.mechanism),
        }
    };
    analysis.suspects.iter().map(one).collect()
}

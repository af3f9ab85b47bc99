//! The analysis for other programs: every number in base units with full precision and with its
//! interval. The wire format stands apart, and is described in `docs/report-json.md`.

mod wire;

use self::wire::*;
use super::model::{
    Change, Ground, Job, Pair, PairKind, PredictedLink, Prediction, Report, Row, Sentence, Value,
};
use crate::stats::{Family, Goal};
use crate::verdict::Verdict;
use crate::verdict::exhibit::{Column, Exhibit, Item};

/// What programs read of a report.
pub(super) fn file(report: &Report) -> impl serde::Serialize + '_ {
    File {
        run: &report.run,
        measured_with: &report.dunnage,
        started: &report.started,
        command: &report.command,
        tags: by_name(&report.tags),
        host: &report.host,
        machine: by_name(&report.machine),
        timer_step_s: report.timer_step,
        probe_sha256: &report.probe,
        programs: report
            .programs
            .iter()
            .map(|one| ProgramFile {
                role: &one.role,
                path: &one.path,
                version: &one.version,
                sha256: &one.sha256,
            })
            .collect(),
        unavailable: by_name(&report.unavailable),
        rounds: RoundsFile {
            complete: report.rounds.complete,
            planned: report.rounds.planned,
            warmups: report.rounds.warmups,
            seed: report.rounds.seed.to_string(),
        },
        precision: report.precision.as_ref().map(|one| PrecisionFile {
            asked: one.asked,
            pilot_rounds: one.pilot_rounds,
            predicted: one.predicted,
            capped: one.capped,
            reached: one.reached,
            sentence: &one.sentence,
        }),
        samples: report.samples,
        carry_over_tested: report.carry_over_tested,
        sentences: report.sentences.iter().map(sentence).collect(),
        predictions: report.predictions.iter().map(prediction).collect(),
        job: report.job.as_ref().map(job),
        experiments: report.experiments.iter().map(|one| experiment(report, one)).collect(),
        failures: report
            .failures
            .iter()
            .map(|one| FailureFile {
                experiment: one.experiment,
                label: &one.label,
                class: one.class,
                settings: &one.settings,
                times: one.times,
                planned: one.planned,
                reason: &one.reason,
            })
            .collect(),
        warnings: report
            .notices
            .iter()
            .map(|one| WarningFile {
                kind: one.kind,
                labels: &one.labels,
                seen: &one.seen,
                remedy: &one.remedy,
            })
            .collect(),
        suspects: report
            .suspects
            .iter()
            .map(|one| SuspectFile {
                rule: one.rule,
                labels: &one.labels,
                metric: one.metric,
                evidence: &one.evidence,
                mechanism: &one.mechanism,
            })
            .collect(),
        imported: report.imported.as_ref().map(|one| ImportedFile {
            from: &one.from,
            order: one.order,
            notes: &one.notes,
        }),
        references: &report.references,
    }
}

fn by_name(pairs: &[(String, String)]) -> Facts<'_> {
    pairs.iter().map(|(name, fact)| (name.as_str(), fact.as_str())).collect()
}

fn sentence(one: &Sentence) -> SentenceFile<'_> {
    SentenceFile {
        experiment: one.experiment,
        topic: one.topic.word(),
        sentence: &one.text,
        rests_on: one.rests_on.iter().map(ground).collect(),
    }
}

fn job(one: &Job) -> JobFile<'_> {
    let shares = one.shares.iter().map(|one| JobShareFile {
        experiment: one.experiment,
        occasion: one.occasion,
        setting: &one.setting,
        label: &one.label,
        against: &one.against,
        share: one.share,
        verdict: one.kind.word(),
    });
    JobFile { length_s: one.length, shares: shares.collect() }
}

fn prediction(one: &Prediction) -> PredictionFile<'_> {
    PredictionFile {
        prediction: &one.text,
        outcome: one.came.words(),
        links: one.links.iter().map(link).collect(),
    }
}

fn link(one: &PredictedLink) -> LinkFile<'_> {
    LinkFile {
        link: &one.text,
        setting: one.setting.as_deref(),
        outcome: one.came.words(),
        verdict: one.verdict,
        sentence: &one.because,
    }
}

fn ground(one: &Ground) -> GroundFile<'_> {
    GroundFile { setting: &one.setting, metric: one.metric, subject: &one.subject, against: &one.against }
}

fn experiment<'a>(report: &Report, one: &'a super::model::Experiment) -> ExperimentFile<'a> {
    let family = report.verdicts.iter().find(|own| own.experiment == one.name).map_or(0, |own| own.asked);
    let metrics = one.metrics.iter().map(|metric| MetricFile {
        name: metric.name,
        unit: metric.unit.name(),
        better: metric.better.name(),
        meaning: metric.meaning,
        decisive: metric.decisive,
        margin_absolute: metric.margin.0,
        margin_relative: metric.margin.1,
    });
    let mut cells: Vec<CellFile<'_>> = Vec::new();
    let mut comparisons: Vec<ComparisonFile<'_>> = Vec::new();
    for (setting, ladder, row) in one.rows() {
        let known = cells.iter_mut().find(|cell| cell.setting == setting.text && cell.label == row.label);
        if let Some(cell) = known {
            cell.ladders.push(ladder.name);
            continue;
        }
        cells.push(cell(one, setting, ladder.name, row));
    }
    for pair in one.pairs.iter().chain(&one.twins) {
        let sentence = |change: &Change| format!("{} {}", pair.phrase, change.predicate);
        let ends = [pair.subject.as_str(), pair.against.as_str()];
        let of_pair = pair.changes.iter();
        comparisons
            .extend(of_pair.map(|change| comparison(one, change, ends, relation(pair), sentence(change))));
    }
    let noise = one.settings.iter().flat_map(|setting| {
        setting.noise.iter().map(|noise| NoiseFile {
            setting: &setting.text,
            metric: one.metrics[noise.metric].name,
            unit: one.metrics[noise.metric].unit.name(),
            layer: noise.layer,
            label: &noise.label,
            floor: noise.units,
            floor_share: noise.share,
            holds_zero: noise.holds_zero,
        })
    });
    ExperimentFile {
        prices: prices(one),
        price_sums: price_sums(one),
        exhibits: one.exhibits.iter().map(exhibit).collect(),
        name: one.name,
        question: one.question,
        verdicts_in_family: family,
        verdict_level: Family::of(family).per_comparison().get(),
        rounds: one.rounds,
        metrics: metrics.collect(),
        noise_floors: noise.collect(),
        cells,
        comparisons,
        factorial: one.factors.as_ref().map(|factors| factorial(one, factors)),
    }
}

fn exhibit(one: &Exhibit) -> ExhibitFile<'_> {
    let item = |item| match item {
        &Item::Value(value) => ItemFile::Value(value),
        Item::Text(text) => ItemFile::Text(text),
        Item::Interval(interval) => ItemFile::Estimate(*interval),
        Item::Nothing(why) => ItemFile::Nothing { nothing: why },
    };
    let column = |column: &'_ Column| column.unit.map(|unit| unit.name());
    ExhibitFile {
        name: one.name,
        title: &one.title,
        columns: one.columns.iter().map(|own| ColumnFile { name: &own.name, unit: column(own) }).collect(),
        rows: one.rows.iter().map(|row| row.iter().map(item).collect()).collect(),
        notes: &one.notes,
        summary: &one.summary,
    }
}

fn factorial<'a>(
    experiment: &'a super::model::Experiment,
    factors: &'a super::model::Factors,
) -> FactorialFile<'a> {
    let effect = |one: &'a super::model::Effect| {
        let (smallest_visible, new_run) = undecided(&one.verdict);
        let name = |index: &usize| factors.factors[*index].0.as_str();
        EffectFile {
            setting: &experiment.settings[one.setting].text,
            metric: experiment.metrics[one.metric].name,
            unit: experiment.metrics[one.metric].unit.name(),
            factors: one.factors.iter().map(name).collect(),
            verdict: match one.kind.of_the_one_named() {
                kind if kind.is_difference() && one.factors.len() > 1 => "interaction",
                kind => kind.word(),
            },
            slower_level: one.slower.as_deref(),
            difference: one.difference,
            ratio: one.ratio,
            matters: one.matters,
            smallest_visible,
            new_run,
            rounds_needed: match one.verdict {
                Verdict::TooFew { need, .. } => Some(need),
                _ => None,
            },
            suspect: match one.verdict {
                Verdict::Suspect(index) => Some(index),
                _ => None,
            },
            sentence: &one.sentence,
        }
    };
    FactorialFile {
        question: &factors.question,
        factors: factors.factors.iter().map(|(name, levels)| FactorFile { name, levels }).collect(),
        answers: factors
            .answers
            .iter()
            .map(|one| AnswerFile {
                setting: &experiment.settings[one.setting].text,
                metric: experiment.metrics[one.metric].name,
                text: &one.text,
            })
            .collect(),
        effects: factors.effects.iter().map(effect).collect(),
    }
}

/// What an undecided verdict says of itself.
fn undecided(verdict: &Verdict) -> (Option<f64>, Option<NewRunFile>) {
    let Verdict::Undecided { smallest_visible, new_run } = verdict else { return (None, None) };
    let new_run = new_run.map(|run| NewRunFile {
        rounds: run.rounds,
        goal: match run.goal {
            Goal::Same => "same",
            Goal::Difference => "difference",
        },
    });
    (Some(*smallest_visible), new_run)
}

/// Every price in every metric that has one.
fn prices(one: &super::model::Experiment) -> Vec<PriceFile<'_>> {
    let mut prices = Vec::new();
    for list in &one.price_lists {
        for line in &list.lines {
            for (prestate, amounts) in list.prestates.iter().zip(&line.amounts) {
                let priced = one.metrics.iter().zip(amounts);
                prices.extend(priced.filter_map(|(metric, amount)| {
                    let amount = amount.as_ref()?;
                    Some(PriceFile {
                        label: &list.label,
                        piece: line.piece,
                        way: line.way,
                        prestate,
                        setting: &amount.setting,
                        reference: amount.reference.as_deref(),
                        metric: metric.name,
                        unit: metric.unit.name(),
                        price: amount.price,
                        below_zero: amount.below_zero,
                        suspect: amount.suspect,
                    })
                }));
            }
        }
    }
    prices
}

fn price_sums(one: &super::model::Experiment) -> Vec<SumFile<'_>> {
    let Some(metric) = one.metrics.first() else { return Vec::new() };
    let totals = one.price_lists.iter().flat_map(|list| list.totals.iter().map(move |total| (list, total)));
    totals
        .map(|(list, total)| SumFile {
            label: &list.label,
            prestate: total.prestate,
            unit: metric.unit.name(),
            rungs: total.rungs,
            last_rung: total.last,
            measured_whole: total.whole,
        })
        .collect()
}

fn relation(pair: &Pair) -> (&str, Option<&str>) {
    match &pair.kind {
        PairKind::OneKey(key) => ("one key", Some(key)),
        PairKind::Step => ("step", None),
        PairKind::Choice => ("one choice", None),
        PairKind::Several => ("several", None),
        PairKind::Baseline => ("baseline", None),
        PairKind::Predicted => ("predicted", None),
        PairKind::Twin => ("twin", None),
    }
}

fn cell<'a>(
    experiment: &'a super::model::Experiment,
    setting: &'a super::model::Setting,
    ladder: &'a str,
    row: &'a Row,
) -> CellFile<'a> {
    let value = |(metric, value): (&super::model::Metric, &Option<Value>)| {
        let value = value.as_ref()?;
        Some(ValueFile {
            metric: metric.name,
            unit: metric.unit.name(),
            median: value.median,
            smallest: value.range.0,
            lower_quartile: value.quartiles.0,
            upper_quartile: value.quartiles.1,
            largest: value.range.1,
        })
    };
    CellFile {
        setting: &setting.text,
        label: &row.label,
        subject: &row.subject,
        layer: row.layer,
        ladders: vec![ladder],
        runtime: row.runtime.as_deref(),
        baseline: row.is_baseline,
        lost_rounds: row.lost,
        floor_share: row.floor_share,
        values: experiment.metrics.iter().zip(&row.values).filter_map(value).collect(),
    }
}

fn comparison<'a>(
    experiment: &'a super::model::Experiment,
    change: &Change,
    [subject, against]: [&'a str; 2],
    (relation, key): (&'a str, Option<&'a str>),
    sentence: String,
) -> ComparisonFile<'a> {
    let metric = &experiment.metrics[change.metric];
    let (smallest_visible, new_run) = undecided(&change.verdict);
    ComparisonFile {
        setting: &experiment.settings[change.setting].text,
        metric: metric.name,
        unit: metric.unit.name(),
        subject,
        against,
        relation,
        key,
        verdict: change.kind.word(),
        difference: change.difference,
        ratio: change.ratio,
        matters: change.matters,
        smallest_visible,
        new_run,
        rounds_needed: match change.verdict {
            Verdict::TooFew { need, .. } => Some(need),
            _ => None,
        },
        suspect: match change.verdict {
            Verdict::Suspect(index) => Some(index),
            _ => None,
        },
        hidden_by_noise_floor: change.hidden_by_noise,
        sentence,
    }
}

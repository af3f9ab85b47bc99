//! Samples far from the others of their cell: when each was taken, what ran before it, and what the machine
//! did in its round but not in the rounds of the cell's ordinary samples.
//!
//! Described, not tested: fixed rules say which values are far and which readings of the machine differ.
//! Readings are of whole rounds, because they are taken once a round.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Columns;
use super::columns::{by_cell, resolution};
use crate::distinct;
use crate::experiment::Weight;
use crate::record::{Recorded, RoundContext};
use crate::stats::{self, Sample};
use crate::text::clean;
use crate::units::Unit;

/// With fewer values, none counts as far from the others.
const FEWEST: usize = 8;

/// The samples of an experiment that are far from the others.
#[derive(Debug, Clone, Serialize)]
pub struct Spikes {
    /// The experiment's name.
    #[serde(skip)]
    pub experiment: &'static str,
    /// Each of them, the farthest first.
    pub samples: Vec<Spike>,
    /// The circumstances in their rounds, and in those of the ordinary samples of the same cells.
    pub circumstances: Vec<Circumstance>,
}

/// A sample far from the others of its cell.
#[derive(Debug, Clone, Serialize)]
pub struct Spike {
    /// The cell's index in the plan.
    #[serde(skip)]
    pub cell: usize,
    /// The label of its subject.
    pub label: String,
    /// Its setting, as `key=value` joined by `;`.
    pub setting: String,
    /// Its round, from 1, warm-ups not counted.
    pub round: usize,
    /// Its place in the order of the round, from 1; none if samples are not in rounds.
    pub position: Option<usize>,
    /// The subject that ran just before it in the round, with what differs among its experiment's settings; none if it was first.
    pub predecessor: Option<String>,
    /// Its values that are far from the others, the most important metric first; at least one.
    pub values: Vec<Far>,
    /// How many readings of the machine could be compared with those of ordinary samples.
    #[serde(rename = "readings_compared")]
    pub compared: usize,
    /// Those that differ.
    pub differs: Vec<Circumstance>,
}

/// A value far from the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Far {
    /// The metric's name.
    pub metric: &'static str,
    /// The base unit of both numbers.
    pub unit: Unit,
    /// The value.
    pub value: f64,
    /// The median of all values of the cell.
    pub median: f64,
}

/// Something that was the case with samples far from the others, and with ordinary ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Circumstance {
    /// Its name.
    pub what: String,
    /// The base unit of both numbers.
    pub unit: Unit,
    /// For those far from the others: the reading or its median, or a share of them.
    pub far: f64,
    /// The same for ordinary samples.
    pub ordinary: f64,
}

/// Something that is read from the machine in each round.
struct Reading {
    name: &'static str,
    unit: Unit,
    /// The smallest difference that counts.
    least: f64,
    /// Its value, if known.
    of: fn(&RoundContext) -> Option<f64>,
}

static READINGS: [Reading; 7] = [
    Reading { name: "stolen CPU time", unit: Unit::Share, least: 0.01, of: |round| round.steal },
    Reading { name: "waiting for CPU", unit: Unit::Share, least: 0.1, of: |round| round.cpu_pressure },
    Reading { name: "waiting for I/O", unit: Unit::Share, least: 0.1, of: |round| round.io_pressure },
    Reading {
        name: "other containers",
        unit: Unit::Count,
        least: 0.5,
        of: |round| round.containers.map(|count| count as f64),
    },
    Reading { name: "load", unit: Unit::Ratio, least: 1.0, of: |round| round.load },
    Reading {
        name: "CPU frequency in GHz",
        unit: Unit::Ratio,
        least: 0.1,
        of: |round| Some(round.frequency? / 1e9),
    },
    Reading {
        name: "available memory",
        unit: Unit::Bytes,
        least: 256.0 * 1024.0 * 1024.0,
        of: |round| round.available_memory.map(|bytes| bytes as f64),
    },
];

/// A reading with the ordinary samples of a cell.
struct Usual {
    reading: &'static Reading,
    median: f64,
    fences: std::ops::RangeInclusive<f64>,
}

/// A sample: its cell, and the index of its round among the complete ones.
type Place = (usize, usize);

/// A run with its complete rounds that count, each with its index and the state of the machine.
struct Rounds<'a> {
    run: &'a Recorded,
    complete: Vec<(usize, &'a RoundContext)>,
}

/// The samples far from the others of their cell, by experiment.
pub(super) fn all(run: &Recorded, columns: &Columns) -> Vec<Spikes> {
    let counted = run.contexts.iter().skip(run.plan.warmups).enumerate();
    let complete = counted.filter_map(|(round, context)| Some((round, context.as_ref()?))).collect();
    let rounds = Rounds { run, complete };
    let found = by_cell(run, |cell| rounds.of_cell(columns, cell));
    let of_experiment = |experiment: &'static str| {
        let (mut far, mut ordinary) = (Vec::new(), Vec::new());
        for ((own, others), cell) in found.iter().zip(&run.plan.cells) {
            if cell.experiment == experiment && !own.is_empty() {
                far.extend(own.iter().cloned());
                ordinary.extend(others);
            }
        }
        far.sort_by(|(_, one), (_, other)| other.reach().total_cmp(&one.reach()));
        let (far, samples): (Vec<Place>, Vec<Spike>) = far.into_iter().unzip();
        let circumstances = rounds.circumstances(&far, &ordinary);
        (!samples.is_empty()).then_some(Spikes { experiment, samples, circumstances })
    };
    let experiments = distinct(run.plan.cells.iter().map(|cell| cell.experiment));
    experiments.into_iter().filter_map(of_experiment).collect()
}

impl Spike {
    /// How many medians it is away from the median, in the metric in which it is farthest.
    fn reach(&self) -> f64 {
        self.values.iter().map(|one| (one.value / one.median - 1.0).abs()).fold(0.0, f64::max)
    }
}

impl Rounds<'_> {
    /// The samples of a cell that are far from the others, and the others.
    fn of_cell(&self, columns: &Columns, cell: usize) -> (Vec<(Place, Spike)>, Vec<Place>) {
        let metrics = self.run.plan.metrics(&self.run.plan.cells[cell]).iter().enumerate();
        let mut far: BTreeMap<usize, Vec<Far>> = BTreeMap::new();
        for (index, metric) in metrics.filter(|(index, one)| *index == 0 || one.weight == Weight::Verdict) {
            let sample = columns.sample(cell, index).filter(|sample| sample.count() >= FEWEST);
            let Some(sample) = sample else { continue };
            let fences = stats::outer_fences(&sample, resolution(self.run, metric));
            let median = sample.median();
            let one = |value| Far { metric: metric.name, unit: metric.unit, value, median };

            for (at, value) in columns.get(cell, index).iter().enumerate() {
                if let Some(value) = value.filter(|value| !fences.contains(value)) {
                    far.entry(at).or_default().push(one(value));
                }
            }
        }
        let first = columns.get(cell, 0).iter().enumerate();
        let ordinary = first.filter(|(at, value)| value.is_some() && !far.contains_key(at));
        let ordinary: Vec<Place> = ordinary.map(|(at, _)| (cell, at)).collect();
        let usual = |reading: &'static Reading| {
            let others = self.read(reading, &ordinary)?;
            Some(Usual {
                reading,
                median: others.median(),
                fences: stats::outer_fences(&others, reading.least / 3.0),
            })
        };
        let usual: Vec<Usual> =
            if far.is_empty() { Vec::new() } else { READINGS.iter().filter_map(usual).collect() };
        let spike = |(at, values)| ((cell, at), self.spike((cell, at), values, &usual));
        (far.into_iter().map(spike).collect(), ordinary)
    }

    fn spike(&self, (cell, at): Place, values: Vec<Far>, usual: &[Usual]) -> Spike {
        let Rounds { run, complete } = self;
        let (round, series) = (complete[at].0, &run.series[cell]);
        let compare = |usual: &Usual| {
            let far = (usual.reading.of)(complete[at].1)?;
            Some((!usual.fences.contains(&far), usual.reading.compared(far, usual.median)))
        };
        let compared: Vec<(bool, Circumstance)> = usual.iter().filter_map(compare).collect();
        Spike {
            cell,
            label: clean(&run.plan.entry(cell).label),
            setting: clean(&run.plan.cells[cell].setting.to_string()),
            round: round + 1,
            position: series.positions[round].filter(|_| !run.is_in_blocks()).map(|position| position + 1),
            predecessor: series.predecessors[round].map(|before| clean(&run.plan.named(before))),
            values,
            compared: compared.len(),
            differs: compared.into_iter().filter(|(differs, _)| *differs).map(|(_, one)| one).collect(),
        }
    }

    /// A reading in the rounds of some samples; none if unknown.
    fn read(&self, reading: &Reading, of: &[Place]) -> Option<Sample> {
        Sample::new(of.iter().filter_map(|(_, at)| (reading.of)(self.complete[*at].1)))
    }

    /// The circumstances of the samples far from the others, and of the others.
    fn circumstances(&self, far: &[Place], ordinary: &[Place]) -> Vec<Circumstance> {
        let readings = READINGS.iter().filter_map(|reading| {
            let [far, others] = [far, ordinary].map(|of| Some(self.read(reading, of)?.median()));
            Some(reading.compared(far?, others?))
        });
        let before = |&(cell, at): &Place| self.run.series[cell].predecessors[self.complete[at].0];
        let share = |what: String, [far_so, ordinary_so]: [usize; 2]| {
            let [far, ordinary] =
                [far_so as f64 / far.len() as f64, ordinary_so as f64 / ordinary.len() as f64];
            Circumstance { what, unit: Unit::Share, far, ordinary }
        };
        let is_marked = |(_, at): &&Place| self.complete[*at].1.disturbed.is_some();
        let marked = [far, ordinary].map(|of| of.iter().filter(is_marked).count());
        let marked = share("in a disturbed round".into(), marked);
        // By the subject that ran before, and last those that were first in their round.
        let subjects = self.run.plan.subjects.len();
        let subject = |place| before(place).map_or(subjects, |cell| self.run.plan.cells[cell].subject);
        let counted = [far, ordinary].map(|of| {
            let mut counts = vec![0; subjects + 1];
            of.iter().for_each(|place| counts[subject(place)] += 1);
            counts
        });
        let after = distinct(far.iter().map(subject)).into_iter().map(|own| {
            let what = match self.run.plan.subjects.get(own) {
                Some(entry) => format!("right after `{}`", clean(&entry.label)),
                None => "first in its round".to_owned(),
            };
            share(what, [counted[0][own], counted[1][own]])
        });
        readings.chain([marked]).chain(after).collect()
    }
}

impl Reading {
    fn compared(&self, far: f64, ordinary: f64) -> Circumstance {
        Circumstance { what: self.name.into(), unit: self.unit, far, ordinary }
    }
}

//! What findings mean for a decision: what costs what, when that matters, how far the rounds bound the risk,
//! which choice is open. A statement is made of decided findings, and those only of findings: nothing can be
//! said of a cell that was not measured, nor of numbers that are suspect or drown in the noise.
//!
//! Deliberately absent: words. Experiments appear here by what they declare of themselves, none by name.

mod choice;
mod decided;
mod otherwise;

pub use decided::{Decided, Way};
pub use otherwise::Turned;

use super::{Analysis, Finding, Verdict};
use crate::experiment::{self, Occasion, Setting, Weight};
use crate::plan::{Comparison, Entry, Ladder, Layer, Relation};
use crate::record::Recorded;
use crate::stats::Alpha;
use crate::units::Better;

/// What findings of one experiment mean.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// The experiment's name.
    pub experiment: &'static str,
    /// What is said.
    pub says: Says,
}

/// What is said. The findings of a list are of one metric, unless it says otherwise.
#[derive(Debug, Clone, PartialEq)]
pub enum Says {
    /// The subjects of a layer take more than the baseline.
    Costs {
        /// The layer.
        layer: Layer,
        /// Every one of them in every setting, the least first.
        more: Vec<Decided>,
    },
    /// When what layers take more matters to whoever it happens to.
    Matters {
        /// The smallest share that matters, as fixed in the plan.
        share: f64,
        /// By layer.
        layers: Vec<Threshold>,
        /// What that rests on.
        more: Vec<Decided>,
    },
    /// How a layer compares with the baseline in all decisive metrics.
    Ranks {
        /// The layer.
        layer: Layer,
        /// What takes more, the largest ratio last.
        more: Vec<Decided>,
        /// What takes less.
        less: Vec<Decided>,
        /// What makes no difference that matters.
        same: Vec<Decided>,
        /// What differs, but not by more than the noise floor: indices into the findings.
        hidden: Vec<usize>,
        /// What is not decided, likewise.
        open: Vec<usize>,
    },
    /// Of the subjects of a layer on one ladder, one takes the least.
    Least {
        /// The layer.
        layer: Layer,
        /// The ladder.
        ladder: Ladder,
        /// The subject's index.
        subject: usize,
        /// By setting, against every other; the next one first. The differences are of the other subject.
        leads: Vec<Vec<Decided>>,
    },
    /// Which of several takes the least is open; none of the others does.
    Among {
        /// The layer.
        layer: Layer,
        /// The ladder.
        ladder: Ladder,
        /// The setting.
        setting: Setting,
        /// Those which no other was shown to beat: the subjects' indices.
        subjects: Vec<usize>,
        /// How they compare with each other: indices into the findings.
        open: Vec<usize>,
        /// What shows that the others take more.
        over: Vec<Decided>,
    },
    /// Pairs of which one takes less of another metric, and is not shown to take less of the first.
    Otherwise {
        /// The layer.
        layer: Layer,
        /// The ladder.
        ladder: Ladder,
        /// Of one metric, the largest difference first; there is at least one.
        turned: Vec<Turned>,
    },
    /// What a pair comes to, by setting.
    Pair {
        /// Index into the plan's comparisons.
        comparison: usize,
        /// All that is decided of it.
        decided: Vec<Decided>,
    },
    /// The slowest that was seen, and how many may be slower.
    Tail {
        /// The cell.
        cell: usize,
        /// The largest value, as a multiple of the median.
        multiple: f64,
        /// At most this share of all that would ever be is slower, at 95 %.
        beyond: f64,
        /// What shows that the cell was measured.
        rests_on: Decided,
    },
    /// What is not decided.
    Open {
        /// Indices into the findings, the largest differences first.
        open: Vec<usize>,
        /// What differs, but not by more than the noise floor.
        hidden: Vec<usize>,
        /// Among how many.
        all: usize,
        /// Rounds with which a new run might decide this many of those that are open.
        new_run: Option<(usize, usize)>,
    },
    /// There are too few rounds.
    TooFew {
        /// Indices into the findings.
        open: Vec<usize>,
        /// Complete rounds.
        have: usize,
        /// Rounds needed.
        need: usize,
    },
    /// What rests on numbers that must not be believed: indices into the findings.
    Void(Vec<usize>),
}

/// When what a layer takes more is a share that matters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold {
    /// The layer.
    pub layer: Layer,
    /// It is more than the share for whoever it happens to once in so many seconds, or more often…
    pub always: f64,
    /// …and less for whoever it happens to once in so many seconds, or more rarely.
    pub never: f64,
}

impl Says {
    /// The findings that it rests on: indices, the most telling first.
    pub fn rests_on(&self) -> Vec<usize> {
        let of = |all: &[Decided]| all.iter().map(Decided::finding).collect::<Vec<_>>();
        match self {
            Says::Costs { more, .. } | Says::Matters { more, .. } => of(more),
            Says::Ranks { more, less, same, hidden, open, .. } => {
                [of(more), of(less), of(same), hidden.clone(), open.clone()].concat()
            }
            Says::Least { leads, .. } => leads.iter().flat_map(|lead| of(lead)).collect(),
            Says::Among { open, over, .. } => [open.clone(), of(over)].concat(),
            Says::Otherwise { turned, .. } => {
                turned.iter().flat_map(|one| [one.decided.finding(), one.first]).collect()
            }
            Says::Pair { decided, .. } => of(decided),
            Says::Tail { rests_on, .. } => vec![rests_on.finding()],
            Says::Open { open, hidden, .. } => [open.clone(), hidden.clone()].concat(),
            Says::TooFew { open, .. } | Says::Void(open) => open.clone(),
        }
    }
}

/// Everything that the findings of a run mean, by experiment in the order of the plan.
pub fn statements(run: &Recorded, analysis: &Analysis) -> Vec<Statement> {
    let mut names: Vec<&'static str> = Vec::new();
    for comparison in &run.plan.comparisons {
        if !names.contains(&comparison.experiment) {
            names.push(comparison.experiment);
        }
    }
    let of_experiment = |name: &'static str| {
        let one = One::of(run, analysis, name)?;
        Some(one.all().into_iter().map(move |says| Statement { experiment: name, says }))
    };
    names.into_iter().filter_map(of_experiment).flatten().collect()
}

/// The findings of one experiment.
struct One<'a> {
    run: &'a Recorded,
    analysis: &'a Analysis,
    name: &'static str,
    occasion: Occasion,
    /// Which values of the first metric a person wishes for.
    better: Better,
    /// Of decisive metrics, and of subjects that were asked for: no twins, no variants.
    findings: Vec<usize>,
}

impl<'a> One<'a> {
    fn of(run: &'a Recorded, analysis: &'a Analysis, name: &'static str) -> Option<One<'a>> {
        let about = experiment::find(name)?.about();
        let plan = &run.plan;
        let is_meant = |index: &usize| {
            let finding = &analysis.findings[*index];
            let comparison = &plan.comparisons[finding.comparison];
            let is_decisive =
                plan.metrics(&plan.cells[finding.cell])[finding.metric].weight == Weight::Verdict;
            comparison.experiment == name
                && is_decisive
                && (finding.metric == 0 || !about.occasion.has_one_answer())
                && [comparison.subject, comparison.against].iter().all(|one| plan.is_original(*one))
        };
        let findings = (0..analysis.findings.len()).filter(is_meant).collect();
        Some(One { run, analysis, name, occasion: about.occasion, better: about.metrics[0].better, findings })
    }

    fn all(&self) -> Vec<Says> {
        let mut all = Vec::new();
        for layer in self.above_the_baseline() {
            all.extend(if self.is_a_cost() { self.costs(layer) } else { self.ranks(layer) });
        }
        if self.is_a_cost() {
            all.extend(self.matters());
        }
        if self.occasion.has_one_answer() {
            all.extend(self.choices());
            all.extend(self.otherwise());
        }
        all.extend(self.pairs());
        if self.better == Better::Less {
            all.extend(self.tail());
        }
        all.extend(self.open());
        all
    }

    /// Whether the first metric is what a person waits for or pays.
    fn is_a_cost(&self) -> bool {
        self.occasion.has_one_answer() && self.better == Better::Less
    }

    fn finding(&self, index: usize) -> &'a Finding {
        &self.analysis.findings[index]
    }

    fn comparison(&self, index: usize) -> &'a Comparison {
        &self.run.plan.comparisons[self.finding(index).comparison]
    }

    fn setting(&self, index: usize) -> &'a Setting {
        &self.run.plan.cells[self.finding(index).cell].setting
    }

    fn entry(&self, subject: usize) -> &'a Entry {
        &self.run.plan.subjects[subject]
    }

    fn decided(&self, index: usize) -> Option<Decided> {
        Decided::of(self.analysis, index)
    }

    /// The findings that compare a layer with the baseline.
    fn against_baseline(&self, layer: Layer) -> impl Iterator<Item = usize> {
        let baseline = self.run.plan.baseline_of(self.name);
        let fits = move |index: &usize| {
            let comparison = self.comparison(*index);
            comparison.against == baseline && self.entry(comparison.subject).layer == layer
        };
        self.findings.iter().copied().filter(fits)
    }

    /// What a layer takes more than the baseline, the least first.
    fn more(&self, layer: Layer) -> Vec<Decided> {
        let decided = self.against_baseline(layer).filter_map(|index| self.decided(index));
        let mut more: Vec<_> = decided.filter(|one| one.way() == Way::More).collect();
        more.sort_by(|one, other| one.difference().value.total_cmp(&other.difference().value));
        more
    }

    fn costs(&self, layer: Layer) -> Option<Says> {
        let more = self.more(layer);
        (!more.is_empty()).then_some(Says::Costs { layer, more })
    }

    /// A difference is a share of the time from one occasion to the next. Every interval holds at once, so from
    /// the largest upper end on none reaches the share, and up to the smallest lower end all exceed it. So all of a layer
    /// must be decided: of one that is not, nobody knows from which length on it matters.
    fn matters(&self) -> Option<Says> {
        let (Occasion::Once(_) | Occasion::Often(_)) = self.occasion else { return None };
        let metric = &experiment::find(self.name)?.about().metrics[0];
        let (_, share) = self.run.plan.margin_of(self.name, metric).parts();
        let mut all = Vec::new();
        let threshold = |layer: Layer| {
            // Of many kinds of calls the first stands for those that do the least.
            let is_first = |index: usize| self.finding(index).metric == 0;
            let asked = self.against_baseline(layer).filter(|index| is_first(*index)).count();
            let mut more = self.more(layer);
            more.retain(|one| is_first(one.finding()));
            if more.len() < asked {
                return None;
            }
            let ends = more.iter().map(|one| (one.interval().low, one.interval().high));
            let (low, high) = ends.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))?;
            all.extend(more);
            Some(Threshold { layer, always: low / share, never: high / share })
        };
        let layers: Vec<_> = self.above_the_baseline().filter_map(threshold).collect();
        (share > 0.0 && !layers.is_empty()).then_some(Says::Matters { share, layers, more: all })
    }

    fn above_the_baseline(&self) -> impl Iterator<Item = Layer> + use<> {
        let baseline = self.entry(self.run.plan.baseline_of(self.name)).layer;
        [Layer::Floor, Layer::Runtime, Layer::Engine].into_iter().filter(move |layer| *layer > baseline)
    }

    fn ranks(&self, layer: Layer) -> Option<Says> {
        let all: Vec<usize> = self.against_baseline(layer).collect();
        let of = |way: Way| -> Vec<Decided> {
            let mut decided: Vec<_> = all.iter().filter_map(|index| self.decided(*index)).collect();
            decided.retain(|one| one.way() == way);
            let ratio = |one: &Decided| one.ratio().map_or(0.0, |ratio| ratio.value);
            decided.sort_by(|one, other| ratio(one).total_cmp(&ratio(other)));
            decided
        };
        let such =
            |is: fn(&Self, usize) -> bool| all.iter().copied().filter(|index| is(self, *index)).collect();
        let (hidden, open): (Vec<_>, Vec<_>) = (such(Self::is_hidden), such(Self::is_open));
        let (more, less, same) = (of(Way::More), of(Way::Less), of(Way::Same));
        let is_empty = more.is_empty() && less.is_empty() && same.is_empty() && hidden.is_empty();
        (!is_empty).then_some(Says::Ranks { layer, more, less, same, hidden, open })
    }

    /// A difference that does not rise above the noise floor.
    fn is_hidden(&self, index: usize) -> bool {
        self.finding(index).noise.is_some()
    }

    fn is_open(&self, index: usize) -> bool {
        matches!(self.finding(index).verdict, Verdict::Undecided { .. })
    }

    /// Pairs that differ in one thing, and pairs of the baseline's own layer.
    fn pairs(&self) -> Vec<Says> {
        let mut all: Vec<Says> = Vec::new();
        for &index in &self.findings {
            let comparison = self.comparison(index);
            let is_baseline = comparison.against == self.run.plan.baseline_of(self.name);
            let beside =
                is_baseline && self.entry(comparison.subject).layer == self.entry(comparison.against).layer;
            if !beside && !matches!(comparison.relation, Relation::OneKey(_)) {
                continue;
            }
            let Some(one) = self.decided(index) else { continue };
            let own = self.finding(index).comparison;
            match all
                .iter_mut()
                .find(|says| matches!(says, Says::Pair { comparison, .. } if *comparison == own))
            {
                Some(Says::Pair { decided, .. }) => decided.push(one),
                _ => all.push(Says::Pair { comparison: own, decided: vec![one] }),
            }
        }
        all
    }

    /// Of the highest layer that was compared, the cell whose slowest value is farthest from its median. With
    /// n values, the largest exceeds the quantile q with probability 1 − qⁿ, whatever the distribution.
    fn tail(&self) -> Option<Says> {
        let layers = [Layer::Engine, Layer::Runtime, Layer::Floor];
        let decided = |layer: Layer| self.against_baseline(layer).filter_map(|index| self.decided(index));
        let all: Vec<Decided> =
            layers.into_iter().map(|layer| decided(layer).collect()).find(|all: &Vec<_>| !all.is_empty())?;
        let tail = |one: &Decided| {
            let finding = self.finding(one.finding());
            let values = self.analysis.cells[finding.cell].metrics[finding.metric].as_ref()?;
            let multiple = values.range.1 / values.median.value;
            let beyond = 1.0 - Alpha::FIVE_PERCENT.get().powf(1.0 / values.median.rounds as f64);
            multiple.is_finite().then_some(Says::Tail {
                cell: finding.cell,
                multiple,
                beyond,
                rests_on: *one,
            })
        };
        let multiple = |says: &Says| if let Says::Tail { multiple, .. } = says { *multiple } else { 0.0 };
        all.iter().filter_map(tail).max_by(|one, other| multiple(one).total_cmp(&multiple(other)))
    }

    /// What was not resolved, and what must not be believed.
    fn open(&self) -> Vec<Says> {
        let mut all = Vec::new();
        let of = |fits: &dyn Fn(usize) -> bool| -> Vec<usize> {
            self.findings.iter().copied().filter(|index| fits(*index)).collect()
        };
        let few = of(&|index| matches!(self.finding(index).verdict, Verdict::TooFew { .. }));
        if let Some(Verdict::TooFew { have, need }) =
            few.first().map(|index| self.finding(*index).verdict.clone())
        {
            all.push(Says::TooFew { open: few, have, need });
        }
        let mut open = of(&|index| self.is_open(index));
        let hidden = of(&|index| self.is_hidden(index));
        if !open.is_empty() || !hidden.is_empty() {
            let rounds = |index: &usize| match self.finding(*index).verdict {
                Verdict::Undecided { new_run, .. } => {
                    Some(new_run?.rounds).filter(|one| *one <= super::HOPELESS)
                }
                _ => None,
            };
            let mut needed: Vec<usize> = open.iter().filter_map(rounds).collect();
            needed.sort_unstable();
            // As many as half of them need: what it takes to decide the last one would frighten off.
            let new_run = needed.get(needed.len() / 2).map(|rounds| (*rounds, needed.len() / 2 + 1));
            let size =
                |index: &usize| self.finding(*index).numbers.map_or(0.0, |one| one.difference.value.abs());
            open.sort_by(|one, other| size(other).total_cmp(&size(one)));
            all.push(Says::Open { open, hidden, all: self.findings.len(), new_run });
        }
        let void = of(&|index| matches!(self.finding(index).verdict, Verdict::Suspect(_)));
        if !void.is_empty() {
            all.push(Says::Void(void));
        }
        all
    }
}

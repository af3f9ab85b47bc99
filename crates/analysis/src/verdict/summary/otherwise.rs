//! Where it matters what is waited for: pairs of one layer and ladder of which one takes less of another metric than
//! the other does, and yet not less of the first metric, by which the choice was told.

use super::{Decided, One, Says};
use crate::experiment::Weight;
use crate::plan::{Ladder, Layer};
use crate::units::Better;
use crate::verdict::Verdict;

/// A pair that the first metric orders otherwise, or not at all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turned {
    /// What is decided of the other metric.
    pub decided: Decided,
    /// The finding about the first metric: an index.
    pub first: usize,
}

impl One<'_> {
    /// By layer, ladder and metric, the largest difference first.
    pub(super) fn otherwise(&self) -> Vec<Says> {
        let mut all = Vec::new();
        for layer in [Layer::Runtime, Layer::Engine] {
            for ladder in [Ladder::AsInstalled, Ladder::Equalised] {
                let mut turned = self.turned(layer, ladder);
                let size = |one: &Turned| one.decided.difference().value.abs();
                turned.sort_by(|one, other| size(other).total_cmp(&size(one)));
                let metric = |one: &Turned| self.finding(one.decided.finding()).metric;
                let mut metrics: Vec<usize> = turned.iter().map(metric).collect();
                metrics.sort_unstable();
                metrics.dedup();
                for own in metrics {
                    let turned = turned.iter().copied().filter(|one| metric(one) == own).collect();
                    all.push(Says::Otherwise { layer, ladder, turned });
                }
            }
        }
        all
    }

    fn turned(&self, layer: Layer, ladder: Ladder) -> Vec<Turned> {
        let plan = &self.run.plan;
        let stands = |subject: usize| {
            let entry = self.entry(subject);
            entry.layer == layer && entry.ladder == ladder && plan.is_original(subject)
        };
        let of = |index: usize| -> Option<Turned> {
            let finding = self.finding(index);
            let comparison = self.comparison(index);
            let metric = plan.metrics(&plan.cells[finding.cell]).get(finding.metric)?;
            let is_meant = comparison.experiment == self.name
                && finding.metric > 0
                && metric.weight == Weight::Verdict
                && stands(comparison.subject)
                && stands(comparison.against);
            if !is_meant {
                return None;
            }
            let decided = self.decided(index).filter(|one| one.is_worse() || one.is_better())?;
            let same_pair = |other: &usize| {
                let other = self.finding(*other);
                (other.comparison, other.cell, other.metric) == (finding.comparison, finding.cell, 0)
            };
            let first = (0..self.analysis.findings.len()).find(same_pair)?;
            let in_first = self.finding(first);
            let is_known = matches!(
                in_first.verdict,
                Verdict::More | Verdict::Less | Verdict::Same | Verdict::Undecided { .. }
            );
            let is_more = in_first.numbers?.difference.value > 0.0;
            let is_worse = is_more == (self.better == Better::Less);
            let is_turned = is_worse != decided.is_worse() || in_first.verdict == Verdict::Same;
            (is_known && self.better != Better::Neither && is_turned).then_some(Turned { decided, first })
        };
        (0..self.analysis.findings.len()).filter_map(of).collect()
    }
}

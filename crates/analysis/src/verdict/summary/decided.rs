//! A finding that says something, so that a claim can be made of it, and of nothing else.

use crate::stats::{Estimate, Interval};
use crate::verdict::{Analysis, Kind, Verdict};

/// A finding that says something. It comes from [`Decided::of`] alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decided {
    finding: usize,
    way: Way,
    difference: Estimate,
    interval: Interval,
    ratio: Option<Estimate>,
    kind: Kind,
}

/// What a decided finding says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Less of it.
    Less,
    /// Any difference is smaller than what matters.
    Same,
    /// More of it.
    More,
}

impl Decided {
    /// The finding with this index, if it is decided, not suspect, and rises above the noise floor.
    pub fn of(analysis: &Analysis, finding: usize) -> Option<Decided> {
        let found = analysis.findings.get(finding)?;
        let numbers = found.numbers?;
        let way = match found.verdict {
            Verdict::Less => Way::Less,
            Verdict::Same => Way::Same,
            Verdict::More => Way::More,
            _ => return None,
        };
        let interval = numbers.difference.interval?;
        let hidden = way != Way::Same && found.noise.is_some();
        let decided = Decided {
            finding,
            way,
            difference: numbers.difference,
            interval,
            ratio: numbers.ratio,
            kind: found.kind(),
        };
        (!hidden).then_some(decided)
    }

    /// Index into the findings.
    pub fn finding(&self) -> usize {
        self.finding
    }

    /// What it says.
    pub fn way(&self) -> Way {
        self.way
    }

    /// Whether the subject is the worse one, and whether it is the better one; of a metric that only describes, neither.
    pub fn is_worse(&self) -> bool {
        self.kind.is_worse()
    }

    /// See [`Decided::is_worse`].
    pub fn is_better(&self) -> bool {
        self.kind.is_better()
    }

    /// Median of the paired differences.
    pub fn difference(&self) -> Estimate {
        self.difference
    }

    /// The interval of the difference.
    pub fn interval(&self) -> Interval {
        self.interval
    }

    /// Median of the paired ratios, where there is one.
    pub fn ratio(&self) -> Option<Estimate> {
        self.ratio
    }
}

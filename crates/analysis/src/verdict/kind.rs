//! The words of verdicts, in one place: what a run says about its cells and what a comparison says about runs
//! use the same word for the same thing.

use serde::Serialize;

use crate::units::{Better, Unit};

/// A verdict without its subject; changes come first. Files use its word.
#[derive(Serialize, strum::EnumIter, strum::IntoStaticStr)]
#[serde(into = "&'static str")]
#[strum(serialize_all = "lowercase")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Of a time or a rate: slower.
    Slower,
    /// Of an amount with a better direction: worse.
    Worse,
    /// Of a time or a rate: faster.
    Faster,
    /// Of an amount with a better direction: better.
    Better,
    /// Of an amount that only describes: more of it.
    More,
    /// Less of it.
    Less,
    /// Any difference is smaller than what matters.
    Same,
    /// Between two runs: it changed, and so did the subjects that show the machine.
    #[strum(serialize = "machine changed")]
    Machine,
    /// Between two runs: settings disagree.
    Mixed,
    /// Not decided.
    Undecided,
    /// Too few rounds for any verdict.
    #[strum(serialize = "too few")]
    TooFew,
    /// The numbers must not be believed.
    Suspect,
    /// A side has no values.
    #[strum(serialize = "no data")]
    NoData,
    /// Shown with its interval; nothing is decided.
    Context,
}

impl Kind {
    /// All of them, what changed first.
    pub fn all() -> impl Iterator<Item = Kind> {
        <Kind as strum::IntoEnumIterator>::iter()
    }

    /// What a difference is called: by the metric's unit and better direction.
    pub const fn of_difference(is_more: bool, unit: Unit, better: Better) -> Kind {
        let is_worse = match better {
            Better::Less => is_more,
            Better::More => !is_more,
            Better::Neither if is_more => return Kind::More,
            Better::Neither => return Kind::Less,
        };
        match (is_worse, unit.is_about_speed()) {
            (true, true) => Kind::Slower,
            (false, true) => Kind::Faster,
            (true, false) => Kind::Worse,
            (false, false) => Kind::Better,
        }
    }

    /// The same as seen from the other side, to name the slower one, the worse one, or the one with more.
    pub const fn of_the_one_named(self) -> Kind {
        match self {
            Kind::Faster => Kind::Slower,
            Kind::Better => Kind::Worse,
            Kind::Less => Kind::More,
            other => other,
        }
    }

    /// Whether it is a change for the worse.
    pub const fn is_worse(self) -> bool {
        matches!(self, Kind::Slower | Kind::Worse)
    }

    /// Whether it is a change for the better.
    pub const fn is_better(self) -> bool {
        matches!(self, Kind::Faster | Kind::Better)
    }

    /// Whether it is a difference.
    pub const fn is_difference(self) -> bool {
        self.is_worse() || self.is_better() || matches!(self, Kind::More | Kind::Less)
    }

    /// The word used in tables and files.
    pub fn word(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_follow_unit_and_direction() {
        let word = |is_more, unit, better| Kind::of_difference(is_more, unit, better).word();
        assert_eq!(word(true, Unit::Seconds, Better::Less), "slower");
        assert_eq!(word(true, Unit::PerSecond, Better::More), "faster");
        assert_eq!(word(false, Unit::BytesPerSecond, Better::More), "slower");
        assert_eq!(word(true, Unit::Bytes, Better::Less), "worse");
        assert_eq!(word(true, Unit::Count, Better::More), "better");
        assert_eq!(word(true, Unit::Bytes, Better::Neither), "more");
        assert_eq!(word(false, Unit::Seconds, Better::Neither), "less");
    }
}

//! The words of verdicts: one home for what a run says of its cells and what a comparison says of runs, so that
//! a word means the same wherever it stands.

use serde::Serialize;

use crate::units::{Better, Unit};

/// A verdict without what it is about; what changed comes first. In files it stands by its word.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, strum::EnumIter, strum::IntoStaticStr,
)]
#[serde(into = "&'static str")]
#[strum(serialize_all = "lowercase")]
pub enum Kind {
    /// Of a time or a rate: the slower one.
    Slower,
    /// Of an amount of which a person wishes for less, or for more: the worse one.
    Worse,
    /// Of a time or a rate: the faster one.
    Faster,
    /// The better one.
    Better,
    /// Of an amount that only describes: more of it.
    More,
    /// Less of it.
    Less,
    /// Any difference is smaller than what matters.
    Same,
    /// Of two runs: it changed, and so did what shows the machine.
    #[strum(serialize = "machine changed")]
    Machine,
    /// Of two runs: what holds in one setting does not in another.
    Mixed,
    /// Not decided.
    Undecided,
    /// Too few rounds for any verdict.
    #[strum(serialize = "too few")]
    TooFew,
    /// The numbers are not to be believed.
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

    /// What a difference is called: by the metric's unit, and by which values a person wishes for.
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

    /// The same told of the other side, where that is the one to be named: the slower, the worse, the one with more.
    pub const fn of_the_one_named(self) -> Kind {
        match self {
            Kind::Faster => Kind::Slower,
            Kind::Better => Kind::Worse,
            Kind::Less => Kind::More,
            other => other,
        }
    }

    /// Whether it is a difference for the worse.
    pub const fn is_worse(self) -> bool {
        matches!(self, Kind::Slower | Kind::Worse)
    }

    /// Whether it is a difference for the better.
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

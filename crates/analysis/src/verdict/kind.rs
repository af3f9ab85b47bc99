//! The words of verdicts: one home for what a run says of its cells and what a comparison says of runs, so that
//! a word means the same wherever it stands.

/// A verdict without what it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// More of it.
    Slower,
    /// Less of it.
    Faster,
    /// Any difference is smaller than what matters.
    Same,
    /// Of two runs: it changed, and so did what shows the machine.
    Machine,
    /// Of two runs: what holds in one setting does not in another.
    Mixed,
    /// Not decided.
    Undecided,
    /// Too few rounds for any verdict.
    TooFew,
    /// The numbers are not to be believed.
    Suspect,
    /// A side has no values.
    NoData,
    /// Shown with its interval; nothing is decided.
    Context,
}

impl Kind {
    /// All of them, what changed first.
    pub const ALL: [Kind; 10] = [
        Kind::Slower,
        Kind::Faster,
        Kind::Same,
        Kind::Machine,
        Kind::Mixed,
        Kind::Undecided,
        Kind::TooFew,
        Kind::Suspect,
        Kind::NoData,
        Kind::Context,
    ];

    /// The word used in tables and files.
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Slower => "slower",
            Kind::Faster => "faster",
            Kind::Same => "same",
            Kind::Machine => "machine changed",
            Kind::Mixed => "mixed",
            Kind::Undecided => "undecided",
            Kind::TooFew => "too few",
            Kind::Suspect => "suspect",
            Kind::NoData => "no data",
            Kind::Context => "context",
        }
    }
}

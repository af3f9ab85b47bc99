//! Which subjects an experiment adds.

/// A key of subjects that an experiment varies on its own.
#[derive(Debug)]
pub struct Variation {
    /// The key; subjects whose kind lacks it are not varied.
    pub key: &'static str,
    /// Its values. Each one makes another subject next to the one that was asked for, unless the kind rejects
    /// it or has it anyway.
    pub values: &'static [&'static str],
    /// Which subjects are varied.
    pub of: Varied,
    /// Whether it is varied only if the user asks why.
    pub if_asked: bool,
}

/// Which subjects an experiment varies in a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Varied {
    /// Every one that has the key.
    Every,
    /// The floor, if it has the key: it has the kernel's part of it and nothing else.
    Floor,
    /// Engines that have the key.
    Engines,
    /// Engines that have the key and work for an ordinary user.
    OrdinaryUsers,
    /// Those below a measured subject of a higher layer, which alone needs them.
    BelowOthers,
}

impl Variation {
    /// For every subject that has the key.
    pub const fn of(key: &'static str, values: &'static [&'static str]) -> Variation {
        Variation { key, values, of: Varied::Every, if_asked: false }
    }

    /// The same for other subjects.
    pub(super) const fn only(self, of: Varied) -> Variation {
        Variation { of, ..self }
    }

    /// The same only if the user asks why.
    pub(super) const fn if_asked(self) -> Variation {
        Variation { if_asked: true, ..self }
    }
}

//! Which formula an engine's own tool has for the memory of a container. It depends on the tool, its version, and the version of
//! cgroups, so two tools, or two versions of one, give different figures for the same container.

use strum::{Display, EnumString, IntoStaticStr};

/// What a tool makes of the figures of a cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Formula {
    /// All that is charged.
    Charged,
    /// The same less page cache of files that was not used lately.
    WithoutInactiveFile,
    /// The same less all page cache.
    WithoutCache,
    /// Memory of processes alone.
    Anon,
    /// The same with shared memory.
    AnonLists,
}

/// Figures of a cgroup, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// `memory.current`, or `memory.usage_in_bytes`.
    pub charged: i64,
    /// Page cache of files that was not used lately.
    pub inactive_file: i64,
    /// All page cache, shared memory included.
    pub cache: i64,
    /// Memory of processes.
    pub anon: i64,
    /// Both lists of memory without a file, on which shared memory is too.
    pub lists: i64,
}

impl Formula {
    /// Its value.
    pub fn of(self, figures: &Figures) -> i64 {
        match self {
            Formula::Charged => figures.charged,
            // Where figures are not of the same moment, tools print the whole instead of less than nothing.
            Formula::WithoutInactiveFile if figures.inactive_file > figures.charged => figures.charged,
            Formula::WithoutInactiveFile => figures.charged - figures.inactive_file,
            Formula::WithoutCache => figures.charged - figures.cache,
            Formula::Anon => figures.anon,
            Formula::AnonLists => figures.lists,
        }
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Formula::Charged => "all that is charged",
            Formula::WithoutInactiveFile => "charged, less inactive page cache",
            Formula::WithoutCache => "charged, less page cache",
            Formula::Anon => "memory of processes alone",
            Formula::AnonLists => "memory of processes and shared memory",
        }
    }
}

/// From which version on a tool has which formulas, in cgroup versions 1 and 2; none where it does not know that version.
type Known = (&'static str, (u32, u32), [Option<Formula>; 2]);

/// The oldest first. From the tools' source: docker's `stats_helpers.go`; podman's `memory.go` and `memory_linux.go` in
/// containers/common; containerd's `metrics.go`; runc's `events.go`.
const KNOWN: [Known; 8] = [
    ("docker", (17, 3), [Some(Formula::WithoutCache), None]),
    ("docker", (20, 10), [Some(Formula::WithoutInactiveFile); 2]),
    ("podman", (3, 0), [Some(Formula::Charged); 2]),
    ("podman", (4, 0), [Some(Formula::Charged), Some(Formula::Anon)]),
    ("podman", (4, 8), [Some(Formula::AnonLists), Some(Formula::Anon)]),
    ("podman", (5, 6), [Some(Formula::WithoutInactiveFile); 2]),
    ("containerd", (1, 2), [Some(Formula::Charged); 2]),
    ("runc", (1, 0), [Some(Formula::Charged); 2]),
];

/// The formula of a kind of subject, from the version of its client.
pub fn known(kind: &str, version: (u32, u32), is_version_2: bool) -> Option<Formula> {
    let from = KNOWN.iter().rfind(|(own, from, _)| *own == kind && version >= *from)?;
    from.2[usize::from(is_version_2)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_formula_holds_from_one_version_to_the_next() {
        let of = |kind, version, second| known(kind, version, second);
        assert_eq!(of("docker", (19, 3), false), Some(Formula::WithoutCache));
        assert_eq!(of("docker", (29, 7), true), Some(Formula::WithoutInactiveFile));
        assert_eq!(of("podman", (4, 3), false), Some(Formula::Charged));
        assert_eq!(of("podman", (4, 3), true), Some(Formula::Anon));
        assert_eq!(of("podman", (5, 4), false), Some(Formula::AnonLists));
        assert_eq!(of("podman", (5, 8), true), Some(Formula::WithoutInactiveFile));
        assert_eq!((of("podman", (2, 2), true), of("floor", (1, 0), true)), (None, None));
    }

    #[test]
    fn formulas_differ_on_a_container_with_memory_of_every_kind() {
        const MEBIBYTES: i64 = 1 << 20;
        let figures = Figures {
            charged: 65 * MEBIBYTES,
            inactive_file: 16 * MEBIBYTES,
            cache: 48 * MEBIBYTES,
            anon: 16 * MEBIBYTES,
            lists: 32 * MEBIBYTES,
        };
        let all = [
            Formula::Charged,
            Formula::WithoutInactiveFile,
            Formula::WithoutCache,
            Formula::Anon,
            Formula::AnonLists,
        ];
        assert_eq!(all.map(|one| one.of(&figures) / MEBIBYTES), [65, 49, 17, 16, 32]);
        assert!(all.iter().all(|one| one.to_string().parse() == Ok(*one)));
        // Figures of two moments.
        let young = Figures { charged: 4096, inactive_file: 8192, ..Figures::default() };
        assert_eq!(Formula::WithoutInactiveFile.of(&young), 4096);
    }
}

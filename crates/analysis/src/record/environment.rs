//! `env.json`: what a reader of the samples must know about the machine and the programs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::share;

/// The environment of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Environment {
    /// The version of dunnage.
    pub dunnage: String,
    /// SHA-256 of the executable, which is the probe both on the host and inside.
    pub probe: String,
    /// The run.
    pub run: String,
    /// The host's name.
    #[serde(serialize_with = "share::host")]
    pub host: String,
    /// When it began, RFC 3339, in UTC.
    pub started: String,
    /// The command line that began it.
    pub command: Vec<String>,
    /// The subjects that the user asked for by name, as labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty", serialize_with = "share::label")]
    pub asked: Vec<String>,
    /// The user's labels for the run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", serialize_with = "share::tags")]
    pub tags: BTreeMap<String, String>,
    /// Facts about the machine, by name.
    pub machine: BTreeMap<String, String>,
    /// The clock's resolution: the smallest step and the cost of a reading, in nanoseconds.
    pub timer: Timer,
    /// The programs of each subject, by its label.
    #[serde(serialize_with = "share::by_label")]
    pub subjects: BTreeMap<String, SubjectFacts>,
    /// What was found but could not be used, with the reason and what to do about it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", serialize_with = "share::by_label")]
    pub unavailable: BTreeMap<String, String>,
    /// For these, the reason with the whole output of a program, if it was more than a line.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub words: BTreeMap<String, String>,
    /// Why the CPU time of whole launches is unknown, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_cpu_accounting: Option<String>,
    /// The system call filter of the floor and of runtimes that dunnage starts itself, if one was loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<FilterFacts>,
    /// Where the samples come from, if dunnage did not measure them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// Where imported samples come from, and what is known about how they were measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The file's format: `hyperfine's JSON`.
    pub format: String,
    /// The name of the file, without its directory.
    #[serde(serialize_with = "share::file")]
    pub file: String,
    /// SHA-256 of the file, hexadecimal.
    pub sha256: String,
    /// The order in which the samples were measured.
    pub order: Order,
    /// What a reader must know: what the file does not say, and what in it has no place in a run.
    #[serde(default, skip_serializing_if = "Vec::is_empty", serialize_with = "share::quoting")]
    pub notes: Vec<String>,
    /// What was suspect in the file itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub issues: Vec<IssueFacts>,
}

/// The order in which imported samples were measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Every round visits all cells: samples of one round are compared with each other.
    Rounds,
    /// One cell after the other, so no two samples of different cells belong together: each is in a round
    /// of its own, and there are no verdicts.
    Blocks,
}

/// Something suspect in an imported file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueFacts {
    /// The name of the rule, one of [`IMPORT_RULES`].
    pub rule: String,
    /// The subjects concerned, by label; empty for all.
    #[serde(serialize_with = "share::label")]
    pub labels: Vec<String>,
    /// The metric concerned; none for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// What was seen.
    #[serde(serialize_with = "share::quoting")]
    pub evidence: String,
    /// What probably caused it.
    #[serde(serialize_with = "share::quoting")]
    pub mechanism: String,
}

/// The rules that are applied while a file is read; all others check the run made of it.
pub const IMPORT_RULES: [&str; 11] = [
    "not what its raw data give",
    "columns that are copies",
    "no time at all",
    "longer than there was time",
    "impossible stamp",
    "malformed stamp",
    "memory of the whole machine",
    "memory by an unknown formula",
    "no line through these times",
    "a sibling, not inside",
    "faster than the device",
];

/// Facts about the machine that stay the same during a run; if one changes, it is another run.
const LASTING: [&str; 7] =
    ["kernel", "kernel_version", "kernel_command_line", "boot_time", "cpu", "cpu_usable", "cgroup_mode"];

impl Environment {
    /// The differences from another environment that make their samples two runs:
    /// the host, its kernel and boot, and the programs. Empty if there are none.
    pub fn differences(&self, other: &Environment) -> Vec<String> {
        let mut all = Vec::new();
        if self.host != other.host {
            all.push(format!("the host (`{}` and `{}`)", other.host, self.host));
        }
        for name in LASTING {
            // The kernel's boot time is computed from a clock that is being corrected.
            let near = |one: &str, other: &str| match (one.parse::<i64>(), other.parse::<i64>()) {
                (Ok(one), Ok(other)) if name == "boot_time" => one.abs_diff(other) <= 5,
                _ => one == other,
            };
            let unknown = String::new();
            let (new, old) =
                (self.machine.get(name).unwrap_or(&unknown), other.machine.get(name).unwrap_or(&unknown));
            if !near(new, old) {
                all.push(format!("{name} (`{old}` and `{new}`)"));
            }
        }
        let filter = |one: &Environment| one.filter.as_ref().map(|filter| filter.sha256.clone());
        if filter(self) != filter(other) {
            all.push("the system call filter of `floor` and runtimes".to_owned());
        }
        for (label, old) in &other.subjects {
            let new = self.subjects.get(label);
            if !new.is_some_and(|new| self.are_the_same(&new.components, &old.components)) {
                all.push(format!("the programs of `{label}`"));
            } else if old.notes.get("daemon").is_none_or(|daemon| daemon != "private")
                && new.and_then(|new| new.notes.get("daemon started")) != old.notes.get("daemon started")
            {
                all.push(format!("the daemon of `{label}` was restarted"));
            }
        }
        all
    }

    /// Whether programs are the same. dunnage's own executable is in the state directory, which can be
    /// another one than before, so its bytes count and its path does not.
    fn are_the_same(&self, new: &[ComponentFacts], old: &[ComponentFacts]) -> bool {
        let same = |(new, old): (&ComponentFacts, &ComponentFacts)| {
            let place = new.path == old.path || new.sha256 == self.probe;
            place && (&new.role, &new.version, &new.sha256) == (&old.role, &old.version, &old.sha256)
        };
        new.len() == old.len() && new.iter().zip(old).all(same)
    }
}

/// A system call filter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FilterFacts {
    /// Where it comes from.
    pub origin: String,
    /// SHA-256 of the profile, hexadecimal.
    pub sha256: String,
    /// The profile as under `linux.seccomp` of an OCI bundle, as JSON in a text. A pack has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// The timer's resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Timer {
    /// The smallest step, in nanoseconds.
    pub step: i64,
    /// The cost of a reading, in nanoseconds.
    pub cost: i64,
}

/// What a subject is made of.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SubjectFacts {
    /// Its programs.
    pub components: Vec<ComponentFacts>,
    /// More about it, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", serialize_with = "share::notes")]
    pub notes: BTreeMap<String, String>,
}

/// A program.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ComponentFacts {
    /// Its role.
    pub role: String,
    /// Its path.
    #[serde(serialize_with = "share::program")]
    pub path: String,
    /// Its version as it prints it.
    pub version: String,
    /// SHA-256, hexadecimal.
    pub sha256: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_state_directory_is_no_other_program_and_other_bytes_are() {
        let of = |role: &str, path: &str, sum: &str| {
            let component = ComponentFacts {
                role: role.into(),
                path: path.into(),
                version: "1".into(),
                sha256: sum.into(),
            };
            let facts = SubjectFacts { components: vec![component], ..SubjectFacts::default() };
            let subjects = [("x".to_owned(), facts)].into();
            Environment { probe: "00".into(), subjects, ..Environment::default() }
        };
        let before = of("probe", "/a/dunnage", "00");
        assert_eq!(of("probe", "/b/dunnage", "00").differences(&before), [""; 0]);
        assert_eq!(of("probe", "/a/dunnage", "01").differences(&before), ["the programs of `x`"]);
        let runtime = of("runtime", "/a/crun", "02");
        assert_eq!(of("runtime", "/b/crun", "02").differences(&runtime), ["the programs of `x`"]);
    }
}

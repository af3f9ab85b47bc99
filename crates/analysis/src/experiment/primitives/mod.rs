//! What does the kernel charge for each piece of a container? Launches with one piece more than
//! another launch, and pieces done by themselves between two readings of the clock.
//!
//! Three ways to a price. *Alone*: a launch with this piece and what it cannot do without, less the
//! same launch without it. *Ladder*: a launch with all pieces up to this one, less the launch one rung
//! below. *Call*: the system calls by themselves. What the kernel takes down later, in its own time, is
//! paid by whoever comes next; so every piece is measured after quiet, and after itself.

pub mod sums;
pub mod suspects;

use super::question::{About, Metric, Question, Weight};
use super::setting::{Setting, SettingKey, Taken};
use crate::outcome::Sample;
use crate::stats::Margin;
use crate::subject::Need;
use crate::units::{Better, Nanos, Unit};

/// How long the kernel is left alone before an idle sample.
pub const QUIET: Nanos = Nanos::from_millis(100);

/// The experiment `primitives`.
pub struct Primitives;

/// A process that nothing is done to.
pub const SPAWN: &str = "spawn";
/// What no container here can do without.
pub const LEAST: &str = "least";
/// The namespace that only those who are not root need; on no rung.
const USER: &str = "user";

/// Pieces that can be launched with, the piece itself, and the last of those that it cannot do
/// without; in the order of the ladder.
pub const LAUNCHED: [(&str, &str); 15] = [
    ("user", SPAWN),
    ("mount", LEAST),
    ("uts", LEAST),
    ("ipc", LEAST),
    ("net", LEAST),
    ("pid", LEAST),
    ("cgroup", LEAST),
    ("cgroup_ns", LEAST),
    ("overlay", "mount"),
    ("filesystems", "overlay"),
    ("masked", "filesystems"),
    ("read_only", "filesystems"),
    ("capabilities", LEAST),
    ("no_new_privs", LEAST),
    ("seccomp", LEAST),
];

/// The rungs above the least: what an ordinary launch has. A user namespace is among it only where
/// nothing goes without, and then it belongs to the least.
pub fn rungs() -> impl Iterator<Item = &'static str> {
    LAUNCHED.iter().map(|(name, _)| *name).filter(|name| *name != USER)
}

/// Pieces that are done by themselves.
const CALLED: [&str; 11] = [
    "cgroup_create",
    "cgroup_enter_tasks",
    "cgroup_enter_procs",
    "cgroup_enter_v2",
    "cgroup_remove",
    "overlay_mount",
    "pivot_root",
    "seccomp_load",
    "time_ns",
    "veth_pair",
    "bridge_port",
];

const fn seconds(name: &'static str, meaning: &'static str, derive: fn(&Sample) -> Option<f64>) -> Metric {
    let margin = Margin::fixed(20e-6, 0.03);
    let (unit, better) = (Unit::Seconds, Better::Less);
    Metric { name, unit, better, weight: Weight::Context, margin, meaning, derive }
}

static METRICS: [Metric; 4] = [
    seconds(
        "time",
        "of a launch: from right before the first system call until it is reaped and its cgroups and directories are \
         removed, less the probe's own work; of a call: from right before the first system call of the piece until \
         right after its last, undoing not included",
        |sample| match sample.seconds("began", "made") {
            Some(call) => Some(call),
            None => Some(sample.seconds("spawn", "returned")? - sample.seconds("main", "ready")?),
        },
    ),
    seconds(
        "undo",
        "of a call: from right before the first system call that undoes it until right after the last; none where \
         the end of the process undoes it",
        |sample| sample.seconds("undo", "undone"),
    ),
    seconds(
        "first_instruction",
        "of a launch: from right before the first system call until the ELF entry of the probe inside",
        |sample| sample.seconds("spawn", "first"),
    ),
    seconds(
        "client_cpu",
        "of a launch: CPU time of the process and of this thread in launch and removal; what is missing to `time` was \
         waiting",
        |sample| Some(Nanos(sample.counter("client_cpu")?).seconds()),
    ),
];

static KEYS: [SettingKey; 3] = [
    SettingKey {
        name: "way",
        values: &["alone", "ladder", "call"],
        taken: Taken::Listed,
        meaning: "`alone`: a launch with this piece less the launch without; `ladder`: the same on top of all pieces \
                  before it; `call`: its system calls by themselves",
    },
    SettingKey {
        name: "piece",
        values: &[
            "spawn",
            "least",
            "user",
            "mount",
            "uts",
            "ipc",
            "net",
            "pid",
            "cgroup",
            "cgroup_ns",
            "overlay",
            "filesystems",
            "masked",
            "read_only",
            "capabilities",
            "no_new_privs",
            "seccomp",
            "cgroup_create",
            "cgroup_enter_tasks",
            "cgroup_enter_procs",
            "cgroup_enter_v2",
            "cgroup_remove",
            "overlay_mount",
            "pivot_root",
            "seccomp_load",
            "time_ns",
            "veth_pair",
            "bridge_port",
        ],
        taken: Taken::Listed,
        meaning: "what is priced; `spawn` is a process that nothing is done to, `least` what no container here can do \
                  without: nothing as root (so its price is what a price of nothing looks like), else a user namespace",
    },
    SettingKey {
        name: "prestate",
        values: &["idle", "primed"],
        taken: Taken::Listed,
        meaning: "what ran just before: `idle` is at least 100 ms of quiet, `primed` one untimed run of the same piece",
    },
];

static ABOUT: About = About {
    keys: &KEYS,
    ..About::of("primitives", "what does the kernel charge for each piece?", Need::Pieces, &METRICS)
};

impl Question for Primitives {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn has(&self, setting: &Setting) -> bool {
        let Some((way, piece)) = setting.get("way").zip(setting.get("piece")) else { return false };
        let is_launched = LAUNCHED.iter().any(|(name, _)| *name == piece);
        match way {
            "alone" => is_launched || [SPAWN, LEAST].contains(&piece),
            "ladder" => rungs().any(|name| name == piece),
            _ => CALLED.contains(&piece),
        }
    }

    /// Without quiet before each, all pieces take seconds.
    fn quick_values(&self, key: &SettingKey) -> Vec<&'static str> {
        if key.name == "prestate" { vec!["primed"] } else { key.values.to_vec() }
    }

    fn reference(&self, setting: &Setting) -> Option<Setting> {
        let (way, piece, prestate) = (setting.get("way")?, setting.get("piece")?, setting.get("prestate")?);
        let of = |way, piece| Some(Setting(vec![("way", way), ("piece", piece), ("prestate", prestate)]));
        match way {
            "alone" if piece == LEAST => of("alone", SPAWN),
            "alone" => {
                let (_, before) = LAUNCHED.iter().find(|(name, _)| *name == piece)?;
                of("alone", before)
            }
            "ladder" => {
                let rung = rungs().position(|name| name == piece)?;
                match rung.checked_sub(1).and_then(|below| rungs().nth(below)) {
                    Some(below) => of("ladder", below),
                    None => of("alone", LEAST),
                }
            }
            _ => None,
        }
    }

    fn cost(&self, setting: &Setting, launch: Nanos) -> Nanos {
        // A call is a part of a launch, and most are small ones.
        let one = if setting.get("way") == Some("call") { Nanos(launch.0 / 4) } else { launch };
        match setting.get("prestate") {
            Some("primed") => one + one,
            _ => QUIET + one,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::settings_of;
    use crate::units::Stamp;

    fn setting(way: &'static str, piece: &'static str) -> Setting {
        Setting(vec![("way", way), ("piece", piece), ("prestate", "idle")])
    }

    fn everything() -> Vec<Setting> {
        settings_of(&Primitives, |key| key.values.to_vec())
    }

    #[test]
    fn every_piece_of_a_launch_is_priced_alone_and_on_the_ladder() {
        let ladder = |setting: &&Setting| setting.get("way") == Some("ladder");
        assert_eq!(everything().iter().filter(ladder).count(), 2 * 14);
        assert_eq!(everything().len(), 2 * (17 + 14 + 11));
    }

    #[test]
    fn what_is_chosen_brings_its_references_along() {
        let chosen = |key: &SettingKey| match key.name {
            "way" => vec!["ladder"],
            "piece" => vec!["uts"],
            _ => vec!["idle"],
        };
        let expected = [("ladder", "uts"), ("ladder", "mount"), ("alone", LEAST), ("alone", SPAWN)];
        assert_eq!(settings_of(&Primitives, chosen), expected.map(|(way, piece)| setting(way, piece)));
    }

    #[test]
    fn the_probes_own_work_is_no_part_of_the_price() {
        let at = |name: &'static str, nanos| (name.into(), Stamp(nanos));
        let stamps =
            vec![at("spawn", 10), at("first", 20), at("main", 30), at("ready", 70), at("returned", 100)];
        let launch = Sample { stamps, ..Sample::default() };
        assert!(((METRICS[0].derive)(&launch).unwrap() - 50e-9).abs() < 1e-15);
        let call = Sample {
            stamps: vec![at("began", 5), at("made", 9), at("undo", 10), at("undone", 12), at("gone", 20)],
            ..Sample::default()
        };
        assert!(((METRICS[0].derive)(&call).unwrap() - 4e-9).abs() < 1e-15);
        assert!(((METRICS[1].derive)(&call).unwrap() - 2e-9).abs() < 1e-15);
        assert_eq!((METRICS[1].derive)(&launch), None);
    }
}

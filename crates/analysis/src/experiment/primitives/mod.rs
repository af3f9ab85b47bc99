//! What does the kernel charge for each piece of a container? Launches with one piece more than
//! another launch, and pieces done by themselves between two readings of the clock.
//!
//! Three ways to a price. *Alone*: a launch with this piece and what it cannot do without, less the
//! same launch without it. *Ladder*: a launch with all pieces up to this one, less the launch one rung
//! below. *Call*: the system calls by themselves. What the kernel takes down later, in its own time, is
//! paid by whoever comes next; so every piece is measured after quiet, and after itself.

pub mod sums;
pub mod suspects;

use super::question::{Experiment, Metric, QUIET, nanos, probe_work};
use super::setting::{Setting, SettingKey};
use crate::subject::Need;
use crate::units::Nanos;

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

/// Everything that is priced.
static PIECES: [&str; 2 + LAUNCHED.len() + CALLED.len()] = {
    let mut all = [SPAWN; 2 + LAUNCHED.len() + CALLED.len()];
    all[1] = LEAST;
    let mut at = 0;
    while at < LAUNCHED.len() {
        all[2 + at] = LAUNCHED[at].0;
        at += 1;
    }
    while at < LAUNCHED.len() + CALLED.len() {
        all[2 + at] = CALLED[at - LAUNCHED.len()];
        at += 1;
    }
    all
};

static METRICS: [Metric; 4] = [
    Metric::by("time", |sample| match sample.seconds("began", "made") {
        Some(call) => Some(call),
        None => Some(sample.seconds("spawn", "returned")? - probe_work(sample)?),
    })
    .context()
    .meaning(
        "of a launch: from right before the first system call until it is reaped and its cgroups and \
         directories are removed, less the probe's own work; of a call: from right before the first \
         system call of the piece until right after its last, undoing not included",
    ),
    Metric::span("undo", "undo", "undone").context().meaning(
        "of a call: from right before the first system call that undoes it until right after the last; \
         none where the end of the process undoes it",
    ),
    Metric::span("first_instruction", "spawn", "first").context().meaning(
        "of a launch: from right before the first system call until the ELF entry of the probe inside",
    ),
    Metric::named("client_cpu", nanos, "client_cpu").context().meaning(
        "of a launch: CPU time of the process and of this thread in launch and removal; what is missing \
         to `time` was waiting",
    ),
];

/// The experiment `primitives`.
pub static PRIMITIVES: Experiment = Experiment {
    keys: &[
    SettingKey::of("way", &["alone", "ladder", "call"]).meaning(
        "`alone`: a launch with this piece less the launch without; `ladder`: the same on top of all \
          pieces before it; `call`: its system calls by themselves",
    ),
    SettingKey::of("piece", &PIECES).meaning(
        "what is priced; `spawn` is a process that nothing is done to, `least` what no container here can \
          do without: nothing as root (so its price is what a price of nothing looks like), else a user \
          namespace",
    ),
    SettingKey::of("prestate", &["idle", "primed"]).meaning(
        "what ran just before: `idle` is at least 100 ms of quiet, `primed` one untimed run of the same \
          piece",
    ),
],
    has,
    // Without quiet before each, all pieces take seconds.
    quick_values: |key| if key.name == "prestate" { &["primed"] } else { key.values },
    reference,
    cost: |setting, launch| {
        // A call is a part of a launch, and most are small ones.
        let one = if setting.get("way") == Some("call") { Nanos(launch.0 / 4) } else { launch };
        if setting.get("prestate") == Some("primed") { one + one } else { QUIET + one }
    },
    ..Experiment::of("primitives", "what does the kernel charge for each piece?", Need::Pieces, &METRICS)
};

/// Whether the way prices the piece.
fn has(setting: &Setting) -> bool {
    let Some((way, piece)) = setting.get("way").zip(setting.get("piece")) else { return false };
    match way {
        "alone" => [SPAWN, LEAST].contains(&piece) || LAUNCHED.iter().any(|(name, _)| *name == piece),
        "ladder" => rungs().any(|name| name == piece),
        _ => CALLED.contains(&piece),
    }
}

/// The launch without the piece, and the rung below.
fn reference(setting: &Setting) -> Option<Setting> {
    let (way, piece, prestate) = (setting.get("way")?, setting.get("piece")?, setting.get("prestate")?);
    let (way, before) = match way {
        "alone" if piece == LEAST => ("alone", SPAWN),
        "alone" => ("alone", LAUNCHED.iter().find(|(name, _)| *name == piece)?.1),
        "ladder" => {
            let rung = rungs().position(|name| name == piece)?;
            rungs().take(rung).last().map_or(("alone", LEAST), |below| ("ladder", below))
        }
        _ => return None,
    };
    Some(Setting(vec![("way", way), ("piece", before), ("prestate", prestate)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::settings_of;
    use crate::outcome::Sample;
    use crate::units::Stamp;

    fn setting(way: &'static str, piece: &'static str) -> Setting {
        Setting(vec![("way", way), ("piece", piece), ("prestate", "idle")])
    }

    fn everything() -> Vec<Setting> {
        settings_of(&PRIMITIVES, |key| key.values.to_vec())
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
        assert_eq!(settings_of(&PRIMITIVES, chosen), expected.map(|(way, piece)| setting(way, piece)));
    }

    #[test]
    fn the_probes_own_work_is_no_part_of_the_price() {
        let at = |name: &'static str, nanos| (name.into(), Stamp(nanos));
        let stamps =
            vec![at("spawn", 10), at("first", 20), at("main", 30), at("ready", 70), at("returned", 100)];
        let launch = Sample { stamps, ..Sample::default() };
        assert!((METRICS[0].value(&launch).unwrap() - 50e-9).abs() < 1e-15);
        let call = Sample {
            stamps: vec![at("began", 5), at("made", 9), at("undo", 10), at("undone", 12), at("gone", 20)],
            ..Sample::default()
        };
        assert!((METRICS[0].value(&call).unwrap() - 4e-9).abs() < 1e-15);
        assert!((METRICS[1].value(&call).unwrap() - 2e-9).abs() < 1e-15);
        assert_eq!(METRICS[1].value(&launch), None);
    }
}

//! What does the kernel charge for each piece of a container? Three kinds of measurement: one launch with the
//! clock read between its pieces, launches with one piece more than another launch, and single pieces between
//! two readings of the clock.
//!
//! Four ways to a price. *Stamps*: the time between two readings of the clock within one launch that has all
//! pieces, so the pieces add up to it. *Alone*: a launch with this piece and what it requires, less the same
//! launch without the piece, which shows costs that fall elsewhere. *Call*: only the system calls. *Ladder*,
//! on request: a launch with all pieces up to this one, less the launch one rung below. What the kernel tears
//! down later, in its own time, is paid by what runs next; so every piece is measured both after quiet
//! and after itself.

pub mod sums;
pub mod suspects;
pub mod tables;

use super::question::{Experiment, Metric, QUIET, probe_work};
use super::setting::{Setting, SettingKey, fits};
use crate::launch::names::{self as launch, BEGAN, MADE, UNDO, UNDONE};
use crate::outcome::Sample;
use crate::subject::Need;
use crate::units::Nanos;

/// Its name.
pub const NAME: &str = "primitives";
/// A process without any of the pieces.
pub const SPAWN: &str = "spawn";
/// The minimum that every container here needs.
pub const LEAST: &str = "least";
/// The namespace that only ordinary users need; on no rung.
const USER: &str = "user";

/// The pieces that a launch can have, each with the last of the pieces that it requires; in the order of the
/// ladder.
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

/// The rungs above the minimum: what an ordinary launch has. A user namespace is one of its pieces only if
/// nothing works without, and then it belongs to the minimum.
pub fn rungs() -> impl Iterator<Item = &'static str> {
    LAUNCHED.iter().map(|(name, _)| *name).filter(|name| *name != USER)
}

/// Pieces that are measured without a launch.
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

/// A launch with all pieces, as the floor makes them.
pub const WHOLE: &str = "whole";
/// The launches that can be stamped: the whole, and others that make some pieces in another way (a value of
/// one of the floor's keys), each with the one to subtract.
pub const STAMPED: [(&str, &str); 5] =
    [(WHOLE, ""), ("procs", WHOLE), ("born", "procs"), ("fsmount", WHOLE), ("open_tree", WHOLE)];

/// Everything that is priced.
static PIECES: [&str; 2 + LAUNCHED.len() + CALLED.len() + STAMPED.len()] = {
    let mut all = [SPAWN; 2 + LAUNCHED.len() + CALLED.len() + STAMPED.len()];
    all[1] = LEAST;
    let mut at = 2;
    while at < all.len() {
        let (launched, called) = (at - 2, (at - 2).wrapping_sub(LAUNCHED.len()));
        all[at] = if launched < LAUNCHED.len() {
            LAUNCHED[launched].0
        } else if called < CALLED.len() {
            CALLED[called]
        } else {
            STAMPED[called - CALLED.len()].0
        };
        at += 1;
    }
    all
};

/// The number of metrics before those of single pieces.
const OF_ALL: usize = 4;

/// The metrics of single pieces between stamps, by index; most have the name of the piece.
pub fn pieces() -> impl Iterator<Item = (usize, &'static str)> {
    METRICS.iter().enumerate().skip(OF_ALL).map(|(index, metric)| (index, metric.name))
}

/// The piece that a stamp ends, if the name does not say so: a name is the piece, a dot, and the part of it.
fn piece_of(stamp: &str) -> &str {
    match stamp {
        // Where the probe of an earlier version started libc, that was part of executing it.
        "first" | "main" => "exec",
        "returned" => "exit",
        // The probe's own work belongs to no piece.
        "ready" => "",
        other => other.split('.').next().unwrap_or_default(),
    }
}

/// A launch's time for a piece: the sum of all stretches that end with one of its stamps. None if the clock
/// was not read between the pieces, or the launch lacks this one.
fn piece(sample: &Sample, name: &str) -> Option<f64> {
    sample.stamp(launch::CLONE)?;
    let stretch = |pair: &[(crate::outcome::Word, crate::units::Stamp)]| {
        (piece_of(&pair[1].0) == name).then(|| pair[1].1.since(pair[0].1))
    };
    let own = sample.stamps.windows(2).filter_map(stretch);
    own.reduce(|one, other| one + other).map(Nanos::seconds)
}

/// A metric of a piece, with the part of it between stamps.
const fn of_piece(name: &'static str, meaning: &'static str) -> Metric {
    Metric::named(name, piece, name).context().meaning(meaning)
}

static METRICS: [Metric; OF_ALL + 19] = [
    Metric::by("time", |sample| match sample.seconds(BEGAN, MADE) {
        Some(call) => Some(call),
        None => Some(sample.seconds(launch::SPAWN, launch::RETURNED)? - probe_work(sample)?),
    })
    .context()
    .meaning(
        "for a launch: from right before the first system call until it is reaped and its cgroups and \
         directories are removed, less the probe's own work; for a call: from right before the piece's first \
         system call until right after its last, without undoing it",
    ),
    Metric::span("undo", UNDO, UNDONE).context().meaning(
        "for a call: from right before the first system call that undoes it until right after the last; \
         none if the end of the process undoes it",
    ),
    Metric::span("first_instruction", launch::SPAWN, launch::FIRST).context().meaning(
        "for a launch: from right before the first system call until the ELF entry of the probe inside",
    ),
    Metric::nanos("client_cpu", launch::CLIENT_CPU).context().meaning(
        "for a launch: CPU time of the process and of dunnage's thread, for launch and removal; the rest of \
         `time` was waiting",
    ),
    of_piece(
        "clone",
        "between stamps: `clone`, directly into the cgroup of version 2 if it is created there",
    ),
    of_piece("session", "between stamps: session, umask, standard streams"),
    of_piece("exec", "between stamps: from resetting signals to the ELF entry of the probe"),
    of_piece("user", "between stamps: mapping the user and the group; the clone made the namespace"),
    of_piece("pid", "between stamps: the PID namespace"),
    of_piece("cgroup", "between stamps: creating, entering and removing a cgroup in every hierarchy"),
    of_piece("net", "between stamps: the network namespace, and bringing up loopback"),
    of_piece("ipc", "between stamps: the IPC namespace"),
    of_piece("cgroup_ns", "between stamps: the cgroup namespace"),
    of_piece(
        "mount",
        "between stamps: the mount namespace, made private, `pivot_root`, and detaching the old root",
    ),
    of_piece(
        "overlay",
        "between stamps: creating three directories, mounting and entering the overlay, removing the directories",
    ),
    of_piece("filesystems", "between stamps: `/proc`, `/dev`, `/sys`, cgroups and their contents"),
    of_piece("masked", "between stamps: hiding paths"),
    of_piece("read_only", "between stamps: making paths read-only"),
    of_piece("uts", "between stamps: the UTS namespace and the host name"),
    of_piece("capabilities", "between stamps: dropping all but fourteen"),
    of_piece("no_new_privs", "between stamps: setting the flag"),
    of_piece("seccomp", "between stamps: loading the filter"),
    of_piece(
        "exit",
        "between stamps: from the probe's message until its process is reaped; the kernel tears down namespaces and mounts \
         meanwhile",
    ),
];

/// The experiment `primitives`.
pub static PRIMITIVES: Experiment = Experiment {
    keys: &[
    SettingKey::of("way", &["stamps", "alone", "call"])
        .or(|value| fits(value == "ladder", "stamps, alone, call, ladder"))
        .meaning(
            "`stamps`: one launch with the clock read between its pieces; `alone`: a launch with this piece less the launch \
             without it; `call`: only its system calls; `ladder`, only on request: like `alone`, on top of all pieces before \
             it",
        ),
    SettingKey::of("piece", &PIECES).meaning(
        "the piece; `spawn` is a process without any piece, `least` the minimum that every container here \
         needs: nothing as root (so its price shows what a price of nothing looks like), otherwise a user \
         namespace; `whole` is a launch with all pieces; `procs`, `born`, `fsmount` and `open_tree` are the same \
         with that value of a key of the floor",
    ),
    SettingKey::of("prestate", &["idle", "primed"]).meaning(
        "what ran just before: `idle` is at least 100 ms of quiet, `primed` is one untimed run of the same \
         piece",
    ),
],
    has,
    // Without quiet before each, all pieces together take seconds.
    quick_values: |key| if key.name == "prestate" { &["primed"] } else { key.values },
    reference,
    cost: |setting, launch| {
        // A call is part of a launch, and most calls are small parts.
        let one = if setting.get("way") == Some("call") { Nanos(launch.0 / 4) } else { launch };
        if setting.get("prestate") == Some("primed") { one + one } else { QUIET + one }
    },
    ..Experiment::of(NAME, "what does the kernel charge for each piece of a container?", Need::Pieces, &METRICS)
};

/// Whether this way can price the piece.
fn has(setting: &Setting) -> bool {
    let Some((way, piece)) = setting.get("way").zip(setting.get("piece")) else { return false };
    match way {
        "alone" => [SPAWN, LEAST].contains(&piece) || LAUNCHED.iter().any(|(name, _)| *name == piece),
        "ladder" => rungs().any(|name| name == piece),
        "stamps" => STAMPED.iter().any(|(name, _)| *name == piece),
        _ => CALLED.contains(&piece),
    }
}

/// The launch without the piece, or the rung below.
fn reference(setting: &Setting) -> Option<Setting> {
    let (way, piece, prestate) = (setting.get("way")?, setting.get("piece")?, setting.get("prestate")?);
    let (way, before) = match way {
        "alone" if piece == LEAST => ("alone", SPAWN),
        "alone" => ("alone", LAUNCHED.iter().find(|(name, _)| *name == piece)?.1),
        "ladder" => {
            let rung = rungs().position(|name| name == piece)?;
            rungs().take(rung).last().map_or(("alone", LEAST), |below| ("ladder", below))
        }
        "stamps" if piece != WHOLE => ("stamps", STAMPED.iter().find(|(name, _)| *name == piece)?.1),
        _ => return None,
    };
    Some(Setting(vec![("way", way), ("piece", before), ("prestate", prestate)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::settings_of;
    use crate::launch::names::{self as launch, BEGAN, MADE, UNDO, UNDONE};
    use crate::names::StampName;
    use crate::outcome::Sample;
    use crate::units::Stamp;

    fn setting(way: &'static str, piece: &'static str) -> Setting {
        Setting(vec![("way", way), ("piece", piece), ("prestate", "idle")])
    }

    fn everything() -> Vec<Setting> {
        settings_of(&PRIMITIVES, |key| key.values.to_vec())
    }

    #[test]
    fn every_piece_of_a_launch_is_priced_between_stamps_and_alone_and_on_the_ladder_where_it_is_asked_for() {
        assert_eq!(everything().len(), 2 * (5 + 17 + 11));
        let ladder = |key: &SettingKey| if key.name == "way" { vec!["ladder"] } else { key.values.to_vec() };
        let on_it = |setting: &&Setting| setting.get("way") == Some("ladder");
        assert_eq!(settings_of(&PRIMITIVES, ladder).iter().filter(on_it).count(), 2 * 14);
        assert_eq!(PRIMITIVES.keys[0].take("ladder"), Ok("ladder"));
        assert!(PRIMITIVES.keys[0].take("leiter").is_err());
        for (name, _) in LAUNCHED {
            assert!(pieces().any(|(_, own)| own == name), "{name}");
        }
    }

    #[test]
    fn what_lies_between_stamps_is_each_pieces_own_and_all_of_it_is_the_whole() {
        let stamps = [
            (launch::SPAWN, 10),
            (launch::CGROUP_CREATE, 30),
            (launch::CLONE, 33),
            (launch::CGROUP_ENTER, 40),
            (launch::FIRST, 45),
            (launch::MAIN, 46),
            (launch::READY, 60),
            (launch::EXIT, 80),
            (launch::CGROUP_REMOVE, 85),
            (launch::OVERLAY_REMOVE, 86),
            (launch::RETURNED, 86),
        ];
        let mut sample = Sample::default().with(stamps.map(|(name, nanos)| (name, Stamp(nanos))));
        let of = |sample: &Sample, name: &str| piece(sample, name).map(|seconds| (seconds * 1e9).round());
        assert_eq!(of(&sample, "cgroup"), Some(20.0 + 7.0 + 5.0));
        assert_eq!(["clone", "exec"].map(|name| of(&sample, name)), [3.0, 5.0 + 1.0].map(Some));
        assert_eq!((of(&sample, "exit"), of(&sample, "uts")), (Some(20.0), None));
        let all: f64 = pieces().filter_map(|(_, name)| of(&sample, name)).sum();
        assert_eq!(Some(all), METRICS[0].value(&sample).map(|seconds| (seconds * 1e9).round()));
        sample.forget(launch::CLONE);
        assert_eq!(of(&sample, "exec"), None, "the clock was not read between its pieces");
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
        let of = |stamps: [(StampName, u64); 5]| {
            Sample::default().with(stamps.map(|(name, nanos)| (name, Stamp(nanos))))
        };
        let [spawn, first, main] = [(launch::SPAWN, 10), (launch::FIRST, 20), (launch::MAIN, 30)];
        let launched = of([spawn, first, main, (launch::READY, 70), (launch::RETURNED, 100)]);
        assert!((METRICS[0].value(&launched).unwrap() - 50e-9).abs() < 1e-15);
        let call = of([(BEGAN, 5), (MADE, 9), (UNDO, 10), (UNDONE, 12), (launch::GONE, 20)]);
        assert!((METRICS[0].value(&call).unwrap() - 4e-9).abs() < 1e-15);
        assert!((METRICS[1].value(&call).unwrap() - 2e-9).abs() < 1e-15);
        assert_eq!(METRICS[1].value(&launched), None);
    }
}

//! What does the kernel charge for each piece of a container? Launches with one piece more than
//! another launch, and pieces done by themselves between two readings of the clock.
//!
//! Three ways to a price. *Alone*: a launch with this piece and what it cannot do without, less the
//! same launch without it. *Ladder*: a launch with all pieces up to this one, less the launch one rung
//! below. *Call*: the system calls by themselves. What the kernel takes down later, in its own time, is
//! paid by whoever comes next; so every piece is measured after quiet, and after itself.

use super::{About, Experiment, Metric, Setting, SettingKey, Taken, Weight};
use crate::outcome::{Abort, Failure, FailureClass, Sample};
use crate::stats::Margin;
use crate::subject::pieces::{Apart, Piece, Pieces, Primitive, Timed};
use crate::subject::{Launch, Need, RunContext, Subject};
use crate::units::{Nanos, Unit};

/// How long the kernel is left alone before an idle sample.
const QUIET: Nanos = Nanos::from_millis(100);

/// The experiment `primitives`.
pub struct Primitives;

/// A process that nothing is done to.
const SPAWN: &str = "spawn";
/// What no container here can do without.
const LEAST: &str = "least";

/// Pieces that can be launched with, the piece itself, and the last of those that it cannot do
/// without; in the order of the ladder.
const LAUNCHED: [(&str, Piece, &str); 15] = [
    ("user", Piece::User, SPAWN),
    ("mount", Piece::Mounts, LEAST),
    ("uts", Piece::Uts, LEAST),
    ("ipc", Piece::Ipc, LEAST),
    ("net", Piece::Network, LEAST),
    ("pid", Piece::Pid, LEAST),
    ("cgroup", Piece::Cgroup, LEAST),
    ("cgroup_ns", Piece::CgroupNamespace, LEAST),
    ("overlay", Piece::Overlay, "mount"),
    ("filesystems", Piece::Filesystems, "overlay"),
    ("masked", Piece::MaskedPaths, "filesystems"),
    ("read_only", Piece::ReadOnlyPaths, "filesystems"),
    ("capabilities", Piece::Capabilities, LEAST),
    ("no_new_privs", Piece::NoNewPrivileges, LEAST),
    ("seccomp", Piece::Seccomp, LEAST),
];

/// The rungs above the least: what an ordinary launch has. A user namespace is among it only where
/// nothing goes without, and then it belongs to the least.
fn rungs() -> impl Iterator<Item = (&'static str, Piece)> {
    LAUNCHED.iter().filter(|(_, piece, _)| *piece != Piece::User).map(|(name, piece, _)| (*name, *piece))
}

/// Pieces that are done by themselves.
const CALLED: [(&str, Primitive); 11] = [
    ("cgroup_create", Primitive::CgroupCreate),
    ("cgroup_enter_tasks", Primitive::CgroupEnterTasks),
    ("cgroup_enter_procs", Primitive::CgroupEnterProcesses),
    ("cgroup_enter_v2", Primitive::CgroupEnterVersion2),
    ("cgroup_remove", Primitive::CgroupRemove),
    ("overlay_mount", Primitive::OverlayMount),
    ("pivot_root", Primitive::PivotRoot),
    ("seccomp_load", Primitive::SeccompLoad),
    ("time_ns", Primitive::TimeNamespace),
    ("veth_pair", Primitive::VethPair),
    ("bridge_port", Primitive::BridgePort),
];

const fn seconds(name: &'static str, meaning: &'static str, derive: fn(&Sample) -> Option<f64>) -> Metric {
    let margin = Margin::fixed(20e-6, 0.03);
    Metric { name, unit: Unit::Seconds, weight: Weight::Context, margin, meaning, derive }
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

/// What a setting asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// A launch with nothing.
    Spawn,
    /// A launch with these pieces beside the least.
    With(Pieces),
    /// An ordinary launch.
    Whole,
    /// A piece by itself.
    Call(Primitive),
}

fn asked(setting: &Setting) -> Option<Asked> {
    let piece = setting.get("piece")?;
    match (setting.get("way")?, piece) {
        ("alone", SPAWN) => Some(Asked::Spawn),
        ("alone", LEAST) => Some(Asked::With(Pieces::NONE)),
        ("alone", _) => alone(piece).map(Asked::With),
        ("ladder", _) => {
            let rung = rungs().position(|(name, _)| name == piece)?;
            let below = || rungs().take(rung + 1).fold(Pieces::NONE, |all, (_, piece)| all.with(piece));
            Some(if rung + 1 == rungs().count() { Asked::Whole } else { Asked::With(below()) })
        }
        ("call", _) => CALLED.iter().find(|(name, _)| *name == piece).map(|(_, one)| Asked::Call(*one)),
        _ => None,
    }
}

/// A piece with all that it cannot do without.
fn alone(name: &str) -> Option<Pieces> {
    let (_, piece, before) = LAUNCHED.iter().find(|(own, ..)| *own == name)?;
    let before = alone(before).unwrap_or(Pieces::NONE);
    Some(before.with(*piece))
}

static ABOUT: About = About {
    keys: &KEYS,
    ..About::of("primitives", "what does the kernel charge for each piece?", Need::Pieces, &METRICS)
};

impl Experiment for Primitives {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn has(&self, setting: &Setting) -> bool {
        asked(setting).is_some()
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
                let (.., before) = LAUNCHED.iter().find(|(name, ..)| *name == piece)?;
                of("alone", before)
            }
            "ladder" => {
                let rung = rungs().position(|(name, _)| name == piece)?;
                match rung.checked_sub(1).and_then(|below| rungs().nth(below)) {
                    Some((below, _)) => of("ladder", below),
                    None => of("alone", LEAST),
                }
            }
            _ => None,
        }
    }

    fn measure(
        &self,
        subject: &mut dyn Subject,
        setting: &Setting,
        run: &RunContext,
    ) -> Result<Sample, Abort> {
        let unsupported = |reason: &str| Failure::new(FailureClass::Unsupported, reason);
        let asked = asked(setting).ok_or_else(|| unsupported("there is no such piece"))?;
        let apart = subject.pieces().ok_or_else(|| unsupported(Need::Pieces.lacking()))?;
        let pieces = match asked {
            Asked::Spawn => Pieces::NONE,
            Asked::With(pieces) => apart.least().and(pieces),
            Asked::Whole | Asked::Call(_) => apart.whole(),
        };
        apart.get_ready(pieces)?;
        match setting.get("prestate") {
            Some("primed") => take(apart, asked, pieces, run).map(drop)?,
            _ => run.quiet(QUIET)?,
        }
        take(apart, asked, pieces, run)
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

fn take(apart: &mut dyn Apart, asked: Asked, pieces: Pieces, run: &RunContext) -> Result<Sample, Abort> {
    match asked {
        Asked::Call(primitive) => Ok(called(&apart.time(primitive, run)?)),
        _ => Ok(launched(&apart.launch_with(pieces, run)?)?),
    }
}

fn called(timed: &Timed) -> Sample {
    let undone = timed.undone.into_iter().flat_map(|(from, to)| [("undo", from), ("undone", to)]);
    let stamps = [("began", timed.began), ("made", timed.made)].into_iter().chain(undone);
    let stamps = stamps.chain([("gone", timed.gone)]).map(|(name, stamp)| (name.into(), stamp));
    Sample { stamps: stamps.collect(), ..Sample::default() }
}

fn launched(launch: &Launch) -> Result<Sample, Failure> {
    let message = &launch.message;
    let order = [
        ("spawn", launch.spawned),
        ("first", message.entry),
        ("main", message.main),
        ("ready", message.ready),
        ("returned", launch.returned),
    ];
    super::in_order(&order)?;
    let mut sample =
        Sample { stamps: order.map(|(name, stamp)| (name.into(), stamp)).to_vec(), ..Sample::default() };
    sample.treatment = launch.treatment.iter().map(|(name, fact)| ((*name).into(), fact.clone())).collect();
    match &launch.cpu {
        Ok(cpu) => sample.counters.push(("client_cpu".into(), cpu.client.0)),
        Err(why) => sample.missing.push(("client_cpu".into(), why.clone())),
    }
    Ok(sample)
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
        let last = rungs().last().unwrap();
        assert_eq!((last.0, asked(&setting("ladder", last.0))), ("seccomp", Some(Asked::Whole)));
        // The rungs together are what an ordinary launch of root has.
        let all = rungs().fold(Pieces::NONE, |all, (_, piece)| all.with(piece));
        assert_eq!(all, Pieces::engine());
    }

    #[test]
    fn a_reference_has_everything_but_the_piece() {
        let pieces = |setting: &Setting| match asked(setting) {
            Some(Asked::With(pieces)) => pieces,
            Some(Asked::Whole) => Pieces::engine(),
            other => panic!("{setting}: {other:?}"),
        };
        for (name, piece, _) in LAUNCHED {
            for way in ["alone", "ladder"] {
                let own = setting(way, name);
                let Some(reference) = Primitives.reference(&own) else {
                    assert_eq!((way, name), ("ladder", "user"), "only the user namespace is on no rung");
                    continue;
                };
                let before = match asked(&reference) {
                    Some(Asked::Spawn) => Pieces::NONE,
                    _ => pieces(&reference),
                };
                assert_eq!(before.with(piece), pieces(&own), "{own} against {reference}");
                assert!(!before.has(piece), "{own} against {reference}");
            }
        }
        assert_eq!(Primitives.reference(&setting("alone", LEAST)), Some(setting("alone", SPAWN)));
        assert_eq!(Primitives.reference(&setting("alone", SPAWN)), None);
        assert_eq!(Primitives.reference(&setting("call", "veth_pair")), None);
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
        let timed =
            Timed { began: Stamp(5), made: Stamp(9), undone: Some((Stamp(10), Stamp(12))), gone: Stamp(20) };
        let call = called(&timed);
        assert!(((METRICS[0].derive)(&call).unwrap() - 4e-9).abs() < 1e-15);
        assert!(((METRICS[1].derive)(&call).unwrap() - 2e-9).abs() < 1e-15);
        assert_eq!((METRICS[1].derive)(&launch), None);
    }
}

//! `primitives`: launches with only some of their pieces, and single pieces.

use dunnage_analysis::launch::names::{BEGAN, CLIENT_CPU, GONE, MADE, RETURNED, UNDO, UNDONE};

use super::{in_order, sample_of, stamps};
use crate::experiment::primitives::{LAUNCHED, LEAST, SPAWN, WHOLE, rungs};
use crate::experiment::{QUIET, Setting};
use crate::outcome::{Abort, Failure, FailureClass, Sample};
use crate::subject::pieces::{ALL, Apart, Making, Mounts, PRIMITIVES, Piece, Pieces, Primitive, Timed, Way};
use crate::subject::{Launch, Need, RunContext, Subject};

fn piece_of(name: &str) -> Option<Piece> {
    ALL.iter().find(|(own, _)| *own == name).map(|(_, piece)| *piece)
}

/// Takes a sample.
pub fn measure(subject: &mut dyn Subject, setting: &Setting, run: &RunContext) -> Result<Sample, Abort> {
    let unsupported = |reason: &str| Failure::new(FailureClass::Unsupported, reason);
    let asked = asked(setting).ok_or_else(|| unsupported("unknown piece"))?;
    let apart = subject.pieces().ok_or_else(|| unsupported(Need::Pieces.lacking()))?;
    let making = match asked {
        Asked::Spawn => Pieces::NONE.into(),
        Asked::With(pieces) => apart.least().and(pieces).into(),
        Asked::Whole | Asked::Call(_) => apart.whole().into(),
        Asked::Stamped(way, mounts) => Making { pieces: apart.whole(), way, mounts, stamped: true },
    };
    apart.get_ready(making)?;
    match setting.get("prestate") {
        Some("primed") => take(apart, asked, making, run).map(drop)?,
        _ => run.quiet(QUIET)?,
    }
    take(apart, asked, making, run)
}

/// What a setting asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// A launch without pieces.
    Spawn,
    /// A launch with these pieces in addition to the least.
    With(Pieces),
    /// An ordinary launch.
    Whole,
    /// A launch with clock readings between its pieces, which are made this way.
    Stamped(Way, Mounts),
    /// A single piece.
    Call(Primitive),
}

fn asked(setting: &Setting) -> Option<Asked> {
    let piece = setting.get("piece")?;
    match (setting.get("way")?, piece) {
        ("alone", SPAWN) => Some(Asked::Spawn),
        ("alone", LEAST) => Some(Asked::With(Pieces::NONE)),
        ("alone", _) => alone(piece).map(Asked::With),
        ("ladder", _) => {
            let rung = rungs().position(|name| name == piece)?;
            let below = || rungs().take(rung + 1).filter_map(piece_of).fold(Pieces::NONE, Pieces::with);
            Some(if rung + 1 == rungs().count() { Asked::Whole } else { Asked::With(below()) })
        }
        ("stamps", WHOLE) => Some(Asked::Stamped(Way::default(), Mounts::default())),
        ("stamps", "procs") => Some(Asked::Stamped(Way::Procs, Mounts::default())),
        ("stamps", "born") => Some(Asked::Stamped(Way::Born, Mounts::default())),
        ("stamps", "fsmount") => Some(Asked::Stamped(Way::default(), Mounts::Fsmount)),
        ("stamps", "open_tree") => Some(Asked::Stamped(Way::default(), Mounts::OpenTree)),
        ("call", _) => PRIMITIVES.iter().find(|(name, _)| *name == piece).map(|(_, one)| Asked::Call(*one)),
        _ => None,
    }
}

/// Why this kernel cannot make a piece in the way that a value of a setting names.
pub fn lacking(key: &str, value: &str) -> Option<&'static str> {
    match (key, value) {
        ("piece", "fsmount") => Mounts::Fsmount.lacking(),
        ("piece", "open_tree") => Mounts::OpenTree.lacking(),
        _ => None,
    }
}

/// A piece with everything that it depends on.
fn alone(name: &str) -> Option<Pieces> {
    let (_, before) = LAUNCHED.iter().find(|(own, _)| *own == name)?;
    let before = alone(before).unwrap_or(Pieces::NONE);
    Some(before.with(piece_of(name)?))
}

fn take(apart: &mut dyn Apart, asked: Asked, making: Making, run: &RunContext) -> Result<Sample, Abort> {
    match asked {
        Asked::Call(primitive) => Ok(called(&apart.time(primitive, run)?)),
        _ => Ok(launched(&apart.launch_with(making, run)?)?),
    }
}

fn called(timed: &Timed) -> Sample {
    let undone = timed.undone.into_iter().flat_map(|(from, to)| [(UNDO, from), (UNDONE, to)]);
    let made = [(BEGAN, timed.began), (MADE, timed.made)];
    sample_of(made.into_iter().chain(undone).chain([(GONE, timed.gone)]).collect(), &[])
}

fn launched(launch: &Launch) -> Result<Sample, Failure> {
    let mut order = stamps(launch.spawned, &launch.message, &[(RETURNED, launch.returned)]);
    in_order(&order)?;
    in_order(&launch.parts)?;
    // Parts end before the probe's own stamps or after them; the last one ends with the launch.
    order.splice(1..1, launch.parts.iter().copied());
    order.sort_by_key(|(_, stamp)| *stamp);
    let mut sample = sample_of(order, &launch.treatment);
    match &launch.observed.cpu {
        Ok(cpu) => sample.add(CLIENT_CPU, cpu.client.0),
        Err(why) => sample.lacks(&["client_cpu"], why),
    }
    Ok(sample)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::primitives::PRIMITIVES;
    use crate::experiment::settings_of;
    use crate::units::Stamp;

    fn setting(way: &'static str, piece: &'static str) -> Setting {
        Setting(vec![("way", way), ("piece", piece), ("prestate", "idle")])
    }

    #[test]
    fn what_is_priced_is_what_can_be_asked_for() {
        for setting in settings_of(&PRIMITIVES, |key| key.values.to_vec()) {
            assert!(asked(&setting).is_some(), "{setting}");
        }
        let last = rungs().last().unwrap();
        assert_eq!((last, asked(&setting("ladder", last))), ("seccomp", Some(Asked::Whole)));
        // All rungs together are an ordinary launch of root.
        let all = rungs().filter_map(piece_of).fold(Pieces::NONE, Pieces::with);
        assert_eq!(all, Pieces::engine());
    }

    #[test]
    fn a_reference_has_everything_but_the_piece() {
        let pieces = |setting: &Setting| match asked(setting) {
            Some(Asked::With(pieces)) => pieces,
            Some(Asked::Whole) => Pieces::engine(),
            other => panic!("{setting}: {other:?}"),
        };
        for (name, piece) in ALL {
            for way in ["alone", "ladder"] {
                let own = setting(way, name);
                let Some(reference) = (PRIMITIVES.reference)(&own) else {
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
        assert_eq!((PRIMITIVES.reference)(&setting("alone", LEAST)), Some(setting("alone", SPAWN)));
        assert_eq!((PRIMITIVES.reference)(&setting("alone", SPAWN)), None);
        assert_eq!((PRIMITIVES.reference)(&setting("call", "veth_pair")), None);
    }

    #[test]
    fn a_call_is_stamped_at_both_its_ends() {
        let timed =
            Timed { began: Stamp(5), made: Stamp(9), undone: Some((Stamp(10), Stamp(12))), gone: Stamp(20) };
        let call = called(&timed);
        let stamps = [BEGAN, MADE, UNDO, UNDONE, GONE].map(|name| call.stamp(name).unwrap().0);
        assert_eq!(stamps, [5, 9, 10, 12, 20]);
    }
}

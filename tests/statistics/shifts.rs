//! Two runs of the same subject show no difference at the nominal rate.

use dunnage::stats::{Alpha, Rng, Sample, shift};

use crate::statistics::bounds::{assert_at_least, assert_at_most};
use crate::statistics::shapes::{BIMODAL, COARSE, LOG_NORMAL, NORMAL};

/// Two runs of the same subject: independent samples of one shape, whose shift is zero.
fn shifts_that_hold_zero(
    old: (usize, f64),
    new: (usize, f64),
    trials: usize,
    draw: fn(&mut Rng) -> f64,
) -> (usize, f64) {
    shifts_at(Alpha::FIVE_PERCENT, old, new, trials, draw)
}

/// The same at a level.
fn shifts_at(
    level: Alpha,
    old: (usize, f64),
    new: (usize, f64),
    trials: usize,
    draw: fn(&mut Rng) -> f64,
) -> (usize, f64) {
    let mut rng = Rng::for_stream(40, (old.0 * 1000 + new.0) as u64);
    let mut promised = 0.0;
    let mut sample = |(count, width): (usize, f64)| {
        Sample::new((0..count).map(|_| width * draw(&mut rng)).collect::<Vec<_>>()).unwrap()
    };
    let held = (0..trials).filter(|_| {
        let interval = shift(&sample(old), &sample(new), level).interval.unwrap();
        promised = interval.coverage;
        interval.contains(0.0)
    });
    (held.count(), promised)
}

#[test]
fn shifts_between_runs_are_held_as_often_as_promised() {
    for shape in [NORMAL, LOG_NORMAL, BIMODAL] {
        for (old, new) in [(10, 10), (30, 30), (15, 40)] {
            let (held, promised) = shifts_that_hold_zero((old, 1.0), (new, 1.0), 2000, shape.draw);
            let what = format!("{} with {old} and {new}", shape.name);
            assert!(promised >= 0.95);
            assert_at_least(promised, held, 2000, &what);
            assert_at_most(promised, held, 2000, &what);
        }
    }
    // Ties make it more cautious, never less; and neither do blocks of neighbours.
    let (held, promised) = shifts_that_hold_zero((20, 1.0), (20, 1.0), 2000, COARSE.draw);
    assert_at_least(promised, held, 2000, "coarse");
    let (held, promised) = shifts_that_hold_zero((150, 1.0), (170, 1.0), 1000, LOG_NORMAL.draw);
    assert_at_least(promised, held, 1000, "blocks");
}

/// The same subject in a short run and in a long one: the value for many rounds must be neither narrower nor
/// shifted compared with that for few.
#[test]
fn runs_of_unequal_length_do_not_differ_by_their_length() {
    for shape in [NORMAL, LOG_NORMAL, BIMODAL] {
        for (old, new) in [(12, 600), (60, 120), (100, 2000)] {
            let (held, promised) = shifts_that_hold_zero((old, 1.0), (new, 1.0), 500, shape.draw);
            assert_at_least(promised, held, 500, &format!("{} with {old} and {new}", shape.name));
        }
    }
}

/// The shift is exact for distributions that differ only in location. If one is three times as wide, samples
/// of the same length keep 93 % of the nominal 95 %, and a wide sample against one twice as long keeps 90 %.
#[test]
fn shifts_of_unequal_widths_lose_little() {
    for (old, new, promised) in [(30, 30, 0.93), (15, 15, 0.93), (30, 15, 0.90), (15, 30, 0.95)] {
        let (held, _) = shifts_that_hold_zero((old, 1.0), (new, 3.0), 2000, NORMAL.draw);
        assert_at_least(promised, held, 2000, &format!("{old} and {new}, the new ones wider"));
    }
    // At the level of one of 27 intervals, two, six and ten times the nominal number of misses, and rarely
    // more.
    let level = Alpha::shared_by(27);
    for (old, new, times) in [(30, 30, 2.0), (30, 15, 6.0), (60, 15, 10.5)] {
        let (held, _) = shifts_at(level, (old, 1.0), (new, 3.0), 3000, NORMAL.draw);
        assert_at_least(1.0 - times * level.get(), held, 3000, &format!("{old} and {new} at {level:?}"));
    }
}

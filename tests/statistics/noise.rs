//! The noise floor covers the differences of twins.

use dunnage::stats::{Alpha, NoiseFloor, Pairs, Rng};

use crate::statistics::bounds::assert_at_least;
use crate::statistics::shapes::series;

#[test]
fn the_noise_floor_of_twins_hides_the_difference_of_another_pair() {
    let trials = 1000;
    let mut rng = Rng::new(8);
    let mut difference = || {
        let [one, other] = [(); 2].map(|()| series(15, || 50.0 + rng.standard_normal()));
        Pairs::align(&one, &other).unwrap().difference(Alpha::FIVE_PERCENT)
    };
    let (mut held, mut hidden) = (0, 0);
    for _ in 0..trials {
        let floor = NoiseFloor::of_twins(&difference(), 50.0).unwrap();
        held += usize::from(floor.holds_zero);
        hidden += usize::from(floor.hides(difference().value));
    }
    assert_at_least(0.95, held, trials, "zero held");
    assert_at_least(0.95, hidden, trials, "another pair's difference hidden");
}

/// A constant effect of a label is covered by the noise floor at the nominal rate; a single disturbed round,
/// however bad, does not determine it.
#[test]
fn the_noise_floor_holds_what_a_label_does_and_no_single_round() {
    let trials = 1000;
    let mut rng = Rng::new(9);
    let bias = 0.5;
    let held = (0..trials).filter(|_| {
        let one = series(17, || 50.0 + rng.standard_normal());
        let mut other = series(17, || 50.0 + bias + rng.standard_normal());
        other[3] = Some(5000.0);
        let pairs = Pairs::align(&one, &other).unwrap();
        let difference = pairs.difference(Alpha::FIVE_PERCENT);
        let floor = NoiseFloor::of_twins(&difference, pairs.baseline.median()).unwrap();
        assert!(floor.units < 100.0, "{floor:?}");
        floor.hides(bias)
    });
    assert_at_least(0.95, held.count(), trials, "what the label does");
}

//! Factorials name the planted factors, and no others.

use dunnage::stats::{Alpha, Decision, Margin, Rng, effect};

use crate::statistics::bounds::{assert_at_least, assert_at_most};
use crate::statistics::power::share;

/// Eight combinations of three factors. Every value has its own noise of 3 %, and a round shares a load of 10
/// %; `planted` is the additional share of a combination.
fn factorial(rng: &mut Rng, rounds: usize, planted: fn(usize) -> f64) -> Vec<Vec<Option<f64>>> {
    let mut cells = vec![Vec::new(); 8];
    for _ in 0..rounds {
        let load = 10.0 * rng.standard_normal();
        for (place, cell) in cells.iter_mut().enumerate() {
            cell.push(Some(100.0 * (1.0 + planted(place)) + load + 3.0 * rng.standard_normal()));
        }
    }
    cells
}

/// The decisions about all seven effects, in a family of seven.
fn effects(cells: &[Vec<Option<f64>>], margin: Margin) -> Vec<(usize, Decision)> {
    let cells: Vec<&[Option<f64>]> = cells.iter().map(Vec::as_slice).collect();
    let alpha = Alpha::shared_by(7);
    (1..8)
        .map(|factors| (factors, effect(&cells, 0, factors, margin, 0.0, alpha).unwrap().decision))
        .collect()
}

#[test]
fn factorials_without_effects_raise_few_false_alarms() {
    let (families, mut rng) = (1000, Rng::new(30));
    for rounds in [12, 30] {
        let alarms = (0..families).filter(|_| {
            let found = effects(&factorial(&mut rng, rounds, |_| 0.0), Margin::fixed(0.0, 0.0));
            found.iter().any(|(_, one)| matches!(one, Decision::Less | Decision::More))
        });
        let alarms = alarms.count();
        assert_at_most(0.05, alarms, families, &format!("{rounds} rounds"));
        assert!(alarms > 0, "a rule that never speaks");
    }
}

/// The first factor costs 6 %, and 8 % more at the second level of the second; nothing else has an effect.
#[test]
fn planted_effects_and_interactions_are_found_and_do_not_leak_into_others() {
    let planted = |place: usize| 0.06 * f64::from(place & 1 == 1) + 0.08 * f64::from(place & 3 == 3);
    let (trials, mut rng) = (400, Rng::new(31));
    let mut found = [0; 8];
    for _ in 0..trials {
        for (factors, decision) in effects(&factorial(&mut rng, 40, planted), share(0.01)) {
            found[factors] += usize::from(decision == Decision::More);
        }
    }
    // The main effects are 10 % and 4 %, the interaction 8 %.
    for factors in [1, 2, 3] {
        assert_at_least(0.9, found[factors], trials, &format!("effect {factors:b}"));
    }
    for factors in [4, 5, 6, 7] {
        assert_at_most(0.05 / 7.0, found[factors], trials, &format!("effect {factors:b}"));
    }
}

/// Two multiplicative factors differ by more where times are longer; as ratios they do not interact.
#[test]
fn an_interaction_that_is_a_matter_of_scale_is_none_as_a_ratio() {
    let (trials, mut rng) = (400, Rng::new(32));
    let (mut seen, mut held, mut promised) = (0, 0, 0.0);
    for _ in 0..trials {
        let mut cells = vec![Vec::new(); 4];
        for _ in 0..30 {
            for (place, cell) in cells.iter_mut().enumerate() {
                let doubled = f64::from(1u32 << place.count_ones());
                cell.push(Some(100.0 * doubled * (0.05 * rng.standard_normal()).exp()));
            }
        }
        let cells: Vec<&[Option<f64>]> = cells.iter().map(Vec::as_slice).collect();
        let found = effect(&cells, 0, 3, share(0.03), 0.0, Alpha::FIVE_PERCENT).unwrap();
        seen += usize::from(found.decision == Decision::More);
        let interval = found.ratio.unwrap().interval.unwrap();
        promised = interval.coverage;
        held += usize::from(interval.contains(1.0));
    }
    assert_at_least(0.95, seen, trials, "in seconds");
    assert_at_least(promised, held, trials, "as a ratio");
    assert_at_most(promised, held, trials, "as a ratio");
}

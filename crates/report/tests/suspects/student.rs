//! The uncertainty of a mean of few values: Student's t, to check published intervals. Verdicts of dunnage rest on
//! medians and assume no distribution.
//!
//! With t = √ν·tan θ the density becomes cos^(ν−1) θ, so its distribution is a quotient of two integrals over an
//! angle, for any ν > 0 (Student 1908; Abramowitz and Stegun 26.7.3 and 26.7.4 are these integrals for whole ν).

use std::f64::consts::FRAC_PI_2;

/// Steps of Simpson's rule: the integrand is smooth, and more steps do not change the ninth digit.
const STEPS: usize = 2000;

/// The probability that Student's t with these degrees of freedom is between −t and t.
pub fn within(t: f64, freedom: f64) -> f64 {
    let angle = (t.max(0.0) / freedom.sqrt()).atan();
    // If the exponent is below zero, the end of the quarter turn is a pole; no caller has so few degrees.
    integral(angle, freedom - 1.0) / integral(FRAC_PI_2, freedom - 1.0)
}

/// The t that it exceeds, on either side, with a probability of 5 %.
pub fn at_five_percent(freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while within(high, freedom) < 0.95 {
        high *= 2.0;
    }
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if within(middle, freedom) < 0.95 { low = middle } else { high = middle }
    }
    high
}

fn integral(to: f64, exponent: f64) -> f64 {
    let step = to / STEPS as f64;
    let at = |index: usize| (index as f64 * step).cos().max(0.0).powf(exponent);
    let inner = (1..STEPS).map(|index| at(index) * if index % 2 == 1 { 4.0 } else { 2.0 });
    (at(0) + inner.sum::<f64>() + at(STEPS)) * step / 3.0
}

/// The difference of two means and its error at 5 %, for spreads that may differ (Welch 1947); none if a side has
/// fewer than two values, or no spread.
pub fn difference(one: &[f64], other: &[f64]) -> Option<(f64, f64)> {
    let ([mean, error], [other_mean, other_error]) = (moments(one)?, moments(other)?);
    let both = error + other_error;
    let shares = error.powi(2) / (one.len() - 1) as f64 + other_error.powi(2) / (other.len() - 1) as f64;
    (both > 0.0).then(|| (mean - other_mean, at_five_percent(both.powi(2) / shares) * both.sqrt()))
}

/// Half the width of the 95 % interval of a mean.
pub fn half_width(values: &[f64]) -> Option<f64> {
    let [_, error] = moments(values)?;
    Some(at_five_percent((values.len() - 1) as f64) * error.sqrt())
}

/// The mean, and the square of its standard error.
fn moments(values: &[f64]) -> Option<[f64; 2]> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| [mean, squares / (count - 1.0) / count])
}

/// Values from any table of the distribution.
#[test]
fn quantiles_are_those_of_the_tables() {
    for (freedom, t) in
        [(1.0, 12.706), (2.0, 4.303), (4.0, 2.776), (9.0, 2.262), (30.0, 2.042), (1000.0, 1.962)]
    {
        assert!((at_five_percent(freedom) - t).abs() < 6e-4, "{freedom}: {}", at_five_percent(freedom));
    }
    assert!((within(1.0, 1.0) - 0.5).abs() < 1e-9);
    assert_eq!(within(0.0, 3.0), 0.0);
}

#[test]
fn two_means_differ_by_so_much_and_no_more_is_known() {
    let (difference_of, error) = difference(&[5.0, 6.0, 7.0], &[1.0, 2.0, 3.0]).unwrap();
    // Equal spreads and sizes: four degrees of freedom, and an error of √(2/3) times 2.776.
    assert!((difference_of - 4.0).abs() < 1e-12 && (error - 2.2666).abs() < 1e-3, "{error}");
    assert_eq!(difference(&[1.0], &[1.0, 2.0]), None);
    assert_eq!(difference(&[1.0, 1.0], &[2.0, 2.0]), None);
    assert!((half_width(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap() - 1.9632).abs() < 1e-3);
}

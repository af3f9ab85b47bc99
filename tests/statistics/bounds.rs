//! What a count says about a nominal probability. It fails only if a binomial count with that probability
//! would reach it less than once in 10,000 times on that side.

/// How improbable a count must be for a test to fail.
const IMPROBABLE: f64 = 1e-4;

/// P(Bin(trials, p) ≤ count), summed from below.
fn at_most(count: usize, trials: usize, p: f64) -> f64 {
    // In logarithms, since the lowest terms of thousands of trials underflow.
    let mut log_term = trials as f64 * (-p).ln_1p();
    let mut sum = log_term.exp();
    for j in 0..count {
        log_term += ((trials - j) as f64 / (j + 1) as f64 * p / (1.0 - p)).ln();
        sum += log_term.exp();
    }
    sum
}

/// Fails when `count` of `trials` is improbably many for a probability of at most `p`.
#[track_caller]
pub fn assert_at_most(p: f64, count: usize, trials: usize, what: &str) {
    // P(X ≥ count) = P(trials − X ≤ trials − count), whose terms sum without cancellation.
    let probability = at_most(trials - count, trials, 1.0 - p);
    assert!(probability > IMPROBABLE, "{what}: {count} of {trials} is too many for {p}");
}

/// Fails when `count` of `trials` is improbably few for a probability of at least `p`.
#[track_caller]
pub fn assert_at_least(p: f64, count: usize, trials: usize, what: &str) {
    let probability = at_most(count, trials, p);
    assert!(probability > IMPROBABLE, "{what}: {count} of {trials} is too few for {p}");
}

//! Floating point: the logistic map in four independent chains, in each of which every multiplication and
//! subtraction waits for the previous one. IEEE 754 defines every bit of the result.

/// The steps of a pass, each in all chains.
pub const STEPS: u64 = 56_000;
/// The result of a pass.
pub const RIGHT: u64 = 0x0ce9_e663_fa76_006b;

/// Computes this many steps from a fixed start.
#[inline(never)]
pub fn run(steps: u64) -> u64 {
    let mut chains = core::hint::black_box([0.1f64, 0.2, 0.3, 0.4]);
    for _ in 0..steps {
        for x in &mut chains {
            *x = 3.99 * *x * (1.0 - *x);
        }
    }
    chains.iter().fold(0, |sum, x| sum.rotate_left(16) ^ x.to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_comes_to_what_is_written_down() {
        assert_eq!(run(STEPS), RIGHT);
        assert_ne!(run(STEPS - 1), RIGHT);
    }
}

//! Integers: one chain in which each multiplication, shift and exclusive or waits for the previous one.

/// The steps of a pass.
pub const STEPS: u64 = 75_000;
/// The result of a pass.
pub const RIGHT: u64 = 0x551f_4d8a_7004_f7a3;

/// Computes this many steps from a fixed start.
#[inline(never)]
pub fn run(steps: u64) -> u64 {
    let mut state = core::hint::black_box(0x9e37_79b9_7f4a_7c15u64);
    for _ in 0..steps {
        state = state.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
        state ^= state >> 32;
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_comes_to_what_is_written_down() {
        assert_eq!(run(STEPS), RIGHT);
        assert_eq!(run(1), {
            let state = 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
            state ^ state >> 32
        });
        assert_ne!(run(STEPS - 1), RIGHT);
    }
}

//! Memory bandwidth: reads the words of a buffer in sequence. Before each pass the buffer is flushed from all
//! caches, so that their sizes and their previous content do not matter.

/// Words that a pass reads: the whole buffer.
pub const STEPS: u64 = 3 << 16;
/// Each word is a multiple of its index, so that sums are known in advance.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Fills the buffer.
pub fn prepare(buffer: &mut [u64]) {
    for (index, word) in buffer.iter_mut().enumerate() {
        *word = (index as u64).wrapping_mul(FACTOR);
    }
}

/// The sum of all words of a buffer, in eight chains so that additions do not wait for loads.
#[inline(never)]
pub fn run(buffer: &[u64]) -> u64 {
    let mut sums = [0u64; 8];
    for eight in buffer.chunks_exact(8) {
        for (sum, word) in sums.iter_mut().zip(eight) {
            *sum = sum.wrapping_add(*word);
        }
    }
    sums.iter().fold(0, |sum, one| sum.wrapping_add(*one))
}

/// The sum of the first `words` words.
pub fn right(words: u64) -> u64 {
    let indices = u128::from(words) * u128::from(words).saturating_sub(1) / 2;
    (indices as u64).wrapping_mul(FACTOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_known_beforehand_and_every_word_counts() {
        let mut words = vec![0; 800];
        prepare(&mut words);
        assert_eq!(run(&words), right(800));
        assert_eq!((run(&words[..0]), right(0), right(1)), (0, 0, 0));
        words[799] ^= 1;
        assert_ne!(run(&words), right(800));
    }
}

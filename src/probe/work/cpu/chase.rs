//! Pointer chasing: each load gives the address of the next one, along a cycle through every line of a buffer
//! in an order that no prefetcher predicts. Before each pass its lines are flushed from all caches.

use crate::sys::cache::{self, Flush};

/// Loads in a pass.
pub const STEPS: u64 = 1_500;
/// Words of the buffer, a power of two: 32 MiB, about eight thousand small pages, more than any TLB holds.
pub const WORDS: usize = 4 << 20;
/// Words in a line.
const LINE: usize = cache::LINE / size_of::<u64>();

/// The line at a place of the cycle: a permutation of all numbers below `lines`, a power of two, by
/// multiplications with odd numbers and shifts, all of which are invertible.
fn line_at(place: usize, lines: usize) -> usize {
    let bits = lines.trailing_zeros();
    let mask = lines - 1;
    let mut line = place & mask;
    for factor in [0x9e37_79b9_7f4a_7c15u64, 0xd134_2543_de82_ef95, 0xbf58_476d_1ce4_e5b9] {
        line = line.wrapping_mul(factor as usize) & mask;
        line ^= line >> (bits / 2).max(1);
    }
    line
}

/// Writes the cycle into the buffer, whose length is a power of two.
pub fn prepare(buffer: &mut [u64]) {
    let lines = buffer.len() / LINE;
    let mut here = line_at(0, lines);
    for place in 1..=lines {
        let next = line_at(place, lines);
        buffer[here * LINE] = (next * LINE) as u64;
        here = next;
    }
}

/// The word at a place of the cycle.
pub fn word_at(buffer: &[u64], place: usize) -> u64 {
    (line_at(place, buffer.len() / LINE) * LINE) as u64
}

/// Follows the cycle for this many loads from a word, and returns the last word. A second call that starts
/// there waits for the first: a CPU would follow two independent chains at once.
#[inline(never)]
pub fn run(buffer: &[u64], from: u64, loads: u64) -> u64 {
    let mut at = from as usize;
    let mask = buffer.len() - 1;
    for _ in 0..loads {
        at = buffer[at & mask] as usize;
    }
    at as u64
}

/// Flushes the lines of such a pass from all caches.
pub fn take_out(flush: Flush, buffer: &[u64], from: usize, loads: u64) {
    for place in from..from + loads as usize {
        flush.line(&buffer[word_at(buffer, place) as usize]);
    }
    flush.finish();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn one_cycle_goes_through_every_line() {
        const LINES: usize = 1 << 10;
        let mut words = vec![0; LINES * LINE];
        prepare(&mut words);
        let seen: BTreeSet<u64> =
            (0..LINES as u64).map(|loads| run(&words, word_at(&words, 0), loads)).collect();
        assert_eq!(seen.len(), LINES);
        assert_eq!(run(&words, word_at(&words, 0), LINES as u64), word_at(&words, 0));
    }

    #[test]
    fn where_it_leads_is_known_beforehand_and_neighbours_lie_apart() {
        let mut words = vec![0; 1 << 16];
        prepare(&mut words);
        take_out(Flush::find(), &words, 5, 100);
        for (from, loads) in [(0, 0), (5, 100), (8190, 7)] {
            let led = run(&words, word_at(&words, from), loads);
            assert_eq!(led, word_at(&words, from + loads as usize), "{from} {loads}");
        }
        let lines = words.len() / LINE;
        let near = (1..lines).filter(|&at| line_at(at, lines).abs_diff(line_at(at - 1, lines)) < 16);
        assert!(near.count() < lines / 50, "a prefetcher would help");
    }
}

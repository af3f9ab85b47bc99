//! The bytes of files: random, so that they can neither be compressed nor shared, and made before any clock starts. Each
//! 4 KiB begin with a mark: a word that tells dunnage's files from others, and the number of the file with the
//! position in it. So no two blocks of a set of files are equal, and a block that is read at the wrong place, or not
//! written at all, is found at the price of one cache line for each 4 KiB.
//!
//! Deliberately absent: a comparison of every byte while reading. It would take as long as the read from the page
//! cache, and give the kernel time to read ahead.

use crate::stats::Rng;

/// Each so many bytes of a block have a mark.
const PAGE: usize = 4096;
/// Bytes of a mark.
pub const MARK: usize = 16;
/// Its first word.
pub const OWN: [u8; 8] = *b"dunnage\n";
/// Random bytes that are reused, each time from another offset. Caches of CPUs hold them no better than an application's.
const BODY: usize = 4 << 20;
/// Pages from one offset to the next; odd, so that all are used.
const STEP: usize = 389;
const SEED: u64 = 0x6669_6c65;

/// Memory that begins at a page, as direct transfers need.
pub struct Aligned {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Aligned {
    /// Random bytes. All pages are touched.
    pub fn random(length: usize, seed: u64) -> Aligned {
        let mut random = Rng::for_stream(SEED, seed);
        let mut memory = vec![0; length + PAGE];
        let (words, _) = memory.as_chunks_mut::<8>();
        words.iter_mut().for_each(|word| *word = random.next_u64().to_le_bytes());
        let start = memory.as_ptr().align_offset(PAGE);
        Aligned { memory, start, length }
    }

    /// The bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }
}

/// A source of blocks.
pub struct Content {
    body: Aligned,
    offsets: usize,
    turn: usize,
}

impl Content {
    /// For blocks of at most this size, of which at most `all` bytes are needed before some may come again.
    pub fn new(block: usize, all: u64) -> Content {
        let offsets = (all.min(BODY as u64) as usize).div_ceil(PAGE).next_power_of_two();
        Content { body: Aligned::random(offsets * PAGE + block, 0), offsets, turn: 0 }
    }

    /// The next block, which belongs at this position of this file.
    pub fn block(&mut self, file: u64, at: u64, length: usize) -> &[u8] {
        self.turn = (self.turn + STEP) % self.offsets;
        let start = self.turn * PAGE;
        let block = &mut self.body.bytes()[start..start + length];
        mark(block, file, at);
        block
    }
}

/// The mark at this position of this file.
fn mark_of(file: u64, at: u64) -> [u8; MARK] {
    let mut mark = [0; MARK];
    mark[..8].copy_from_slice(&OWN);
    mark[8..].copy_from_slice(&(file << 40 ^ at).to_le_bytes());
    mark
}

/// Marks a block that belongs at this position of this file.
pub fn mark(block: &mut [u8], file: u64, at: u64) {
    for (page, offset) in block.chunks_mut(PAGE).zip((at..).step_by(PAGE)) {
        if let Some(place) = page.first_chunk_mut() {
            *place = mark_of(file, offset);
        }
    }
}

/// Whether a block has the marks of this position of this file.
pub fn is_marked(block: &[u8], file: u64, at: u64) -> bool {
    let mut pages = block.chunks(PAGE).zip((at..).step_by(PAGE));
    pages.all(|(page, offset)| page.first_chunk().is_none_or(|found| *found == mark_of(file, offset)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_blocks_are_equal_and_each_is_known_by_its_place() {
        for block in [MARK, 512, PAGE, 3 * PAGE + 100, 1 << 20] {
            let mut content = Content::new(block, 64 << 20);
            let mut seen = HashSet::new();
            for (file, at) in (0..3).flat_map(|file| (0..20).map(move |index| (file, index * block as u64))) {
                let bytes = content.block(file, at, block).to_vec();
                assert!(is_marked(&bytes, file, at));
                assert!(!is_marked(&bytes, file + 1, at) && !is_marked(&bytes, file, at + PAGE as u64));
                assert!(seen.insert(bytes), "{block} {file} {at}");
            }
        }
    }

    #[test]
    fn a_changed_mark_is_found_in_every_page() {
        let block = 5 * PAGE;
        let bytes = Content::new(block, block as u64).block(7, 0, block).to_vec();
        for page in 0..5 {
            for place in [0, 8, 15] {
                let mut changed = bytes.clone();
                changed[page * PAGE + place] ^= 1;
                assert!(!is_marked(&changed, 7, 0), "{page} {place}");
            }
        }
    }

    #[test]
    fn memory_begins_at_a_page_and_every_bit_is_as_often_set_as_not() {
        let mut memory = Aligned::random(1 << 20, 3);
        assert!((memory.bytes().as_ptr() as usize).is_multiple_of(PAGE));
        let set: u64 = memory.bytes().iter().map(|byte| u64::from(byte.count_ones())).sum();
        assert!(set.abs_diff(4 << 20) < 20_000, "{set}");
    }
}

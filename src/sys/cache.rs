//! The CPU's caches: flushes memory from all of them, with an unprivileged instruction.
//!
//! Deliberately absent: their sizes. Flushed memory is in no cache, large or small.

#[cfg(target_arch = "x86_64")]
use core::arch::{asm, x86_64};

/// The line size of every cache on x86_64, in bytes.
pub const LINE: usize = 64;

/// The flush instruction of this CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// `clflush`, which every CPU has; each one waits for the previous one.
    InOrder,
    /// `clflushopt`, about forty times as fast for many lines.
    Unordered,
}

impl Flush {
    /// The faster one, if this CPU has it.
    #[cfg(target_arch = "x86_64")]
    pub fn find() -> Flush {
        /// Bit of EBX for `clflushopt`.
        const UNORDERED: u32 = 1 << 23;
        let known = x86_64::__cpuid_count(0, 0).eax >= 7;
        let has = known && x86_64::__cpuid_count(7, 0).ebx & UNORDERED != 0;
        if has { Flush::Unordered } else { Flush::InOrder }
    }

    /// Flushes the line of this word from all caches of all CPUs; a modified line is written to memory.
    /// Complete only after `finish`.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub fn line(self, word: &u64) {
        let address: *const u64 = word;
        // SAFETY: the address is valid, the CPU has the instruction, and neither instruction changes
        // contents.
        unsafe {
            match self {
                Flush::InOrder => asm!("clflush [{}]", in(reg) address, options(nostack, preserves_flags)),
                Flush::Unordered => {
                    asm!("clflushopt [{}]", in(reg) address, options(nostack, preserves_flags));
                }
            }
        }
    }

    /// Waits until all flushes are complete.
    #[cfg(target_arch = "x86_64")]
    pub fn finish(self) {
        // SAFETY: every x86_64 CPU has this instruction, which has no operands.
        unsafe { x86_64::_mm_mfence() };
    }

    /// Flushes all lines of these words.
    pub fn all(self, words: &[u64]) {
        for line in words.chunks(LINE / size_of::<u64>()) {
            self.line(&line[0]);
        }
        self.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_flushed_is_still_there() {
        let words: Vec<u64> = (0..10_000).collect();
        for flush in [Flush::InOrder, Flush::find()] {
            flush.all(&words);
            assert!(words.iter().zip(0..).all(|(word, index)| *word == index));
            flush.all(&[]);
        }
    }
}

//! The CPU's caches: takes memory out of all of them, by an instruction that any program may execute.
//!
//! Deliberately absent: their sizes. What is in none of them need not be larger than they are.

#[cfg(target_arch = "x86_64")]
use core::arch::{asm, x86_64};

/// Bytes of a line of every cache there is on x86_64.
pub const LINE: usize = 64;

/// The instruction that this CPU has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// `clflush`, which every CPU has; each one waits for the one before.
    InOrder,
    /// `clflushopt`, some forty times as fast where there are many lines.
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

    /// Takes the line that holds this word out of all caches of all CPUs; a changed one is written to
    /// memory. Not done before `finish`.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub fn line(self, word: &u64) {
        let address: *const u64 = word;
        // SAFETY: the address is valid, the CPU has the instruction, and neither changes contents.
        unsafe {
            match self {
                Flush::InOrder => asm!("clflush [{}]", in(reg) address, options(nostack, preserves_flags)),
                Flush::Unordered => {
                    asm!("clflushopt [{}]", in(reg) address, options(nostack, preserves_flags));
                }
            }
        }
    }

    /// Waits until all that was flushed is out, before anything is read again.
    #[cfg(target_arch = "x86_64")]
    pub fn finish(self) {
        // SAFETY: an instruction of every x86_64 CPU without operands.
        unsafe { x86_64::_mm_mfence() };
    }

    /// The same for all lines of these words.
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

//! The first instructions of the executable: a stamp at the ELF entry, before libc starts.
//!
//! The kernel jumps to `dunnage_entry` (the linker is told so by `build.rs`), which reads the
//! clock by a raw system call and goes on to libc's own entry with every register that it needs
//! as the kernel set it: `rsp` and `rdx` are untouched, and a system call spoils only `rax`,
//! `rcx` and `r11`. The stamp is taken always, since nothing at that point knows whether this
//! process will be the probe; it costs one system call.

use std::ffi::{CStr, c_char, c_int};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

/// A `struct timespec`, written once by the entry stub.
#[unsafe(no_mangle)]
static DUNNAGE_ENTRY_TIME: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".globl dunnage_entry",
    ".type dunnage_entry, @function",
    "dunnage_entry:",
    "mov eax, 228", // clock_gettime
    "mov edi, 1",   // CLOCK_MONOTONIC
    "lea rsi, [rip + DUNNAGE_ENTRY_TIME]",
    "syscall",
    "xor esi, esi",
    "xor edi, edi",
    "jmp _start",
);

/// Nanoseconds on `CLOCK_MONOTONIC` at the ELF entry; zero in executables that start elsewhere,
/// such as those of the tests.
pub fn stamp() -> u64 {
    let [seconds, nanos] = [0, 1].map(|index: usize| DUNNAGE_ENTRY_TIME[index].load(Ordering::Relaxed));
    seconds * 1_000_000_000 + nanos
}

/// The arguments of the process, as libc hands them to `main`.
#[derive(Debug, Clone, Copy)]
pub struct Arguments<'a> {
    count: c_int,
    first: *const *const c_char,
    words: PhantomData<&'a CStr>,
}

impl<'a> Arguments<'a> {
    /// Takes over what `main` was called with.
    ///
    /// # Safety
    /// `first` points to `count` pointers to C strings that live as long as the arguments are used, and a null
    /// pointer after them.
    pub unsafe fn new(count: c_int, first: *const *const c_char) -> Arguments<'a> {
        Arguments { count, first, words: PhantomData }
    }

    /// The argument at this index, the program's name being the first.
    pub fn get(self, index: c_int) -> Option<&'a CStr> {
        // SAFETY: only indices below the count are read; `new` vouches for the rest.
        (index < self.count).then(|| unsafe { CStr::from_ptr(*self.first.add(index as usize)) })
    }

    /// All of them.
    pub fn words(self) -> Vec<&'a CStr> {
        (0..self.count).filter_map(|index| self.get(index)).collect()
    }

    /// The same without so many of the first.
    pub fn without(self, number: c_int) -> Arguments<'a> {
        let number = number.clamp(0, self.count);
        // SAFETY: not beyond the null pointer after the last.
        let first = unsafe { self.first.add(number as usize) };
        Arguments { count: self.count - number, first, words: PhantomData }
    }

    /// Whether they ask for the probe.
    pub fn ask_for_the_probe(self) -> bool {
        self.get(1).is_some_and(|first| first.to_bytes() == super::PROBE.as_bytes())
    }
}

//! Runs the probe if asked to, before anything else; otherwise runs the command line.
//!
//! `main` is C's, because Rust's own would start its runtime before the probe's work.
#![no_main]

use std::ffi::{c_char, c_int};

use dunnage::probe::{self, PROBE, Words};

/// Called by libc's start code. The probe's arguments are read by hand, and no others.
#[unsafe(no_mangle)]
extern "C" fn main(count: c_int, arguments: *const *const c_char) -> c_int {
    // SAFETY: libc's start calls `main` with an argument vector that lives as long as the process.
    let words = unsafe { Words::new(count as usize, arguments) };
    if words.is(1, PROBE) {
        probe::run(words);
    }
    dunnage::cmd::main()
}

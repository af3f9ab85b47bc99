//! Asked to be the probe? Be it, before anything else. Else run the command.
//!
//! `main` is C's, since Rust's own would start its runtime before the probe's work.
#![no_main]

use std::ffi::{c_char, c_int};

use dunnage::probe::{self, entry::Arguments};

/// Called by libc's start. Arguments are read by hand only as far as the probe needs them.
#[unsafe(no_mangle)]
extern "C" fn main(count: c_int, arguments: *const *const c_char) -> c_int {
    // SAFETY: libc's start calls `main` with an argument vector that lives as long as the process.
    let arguments = unsafe { Arguments::new(count, arguments) };
    if arguments.ask_for_the_probe() {
        probe::run(arguments);
    }
    dunnage::cmd::main()
}

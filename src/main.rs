//! Asked to be the probe? Be it, before anything else. Else run the command.
//!
//! `main` is C's, since Rust's own would start its runtime before the probe's work.
#![no_main]

use std::ffi::{c_char, c_int};

/// Called by libc's start. Arguments are read by hand only as far as the probe needs them.
#[unsafe(no_mangle)]
extern "C" fn main(count: c_int, arguments: *const *const c_char) -> c_int {
    if let Some(task) = dunnage::probe::entry::asked(count, arguments) {
        dunnage::probe::run(task);
    }
    dunnage::cmd::main()
}

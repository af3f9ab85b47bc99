//! The first instructions of the executable: a stamp at the ELF entry. If the process was asked to be the
//! probe of a launch, it does that and ends here; otherwise it continues to libc's own entry with every
//! register that libc needs as the kernel set it.
//!
//! The kernel jumps to `dunnage_entry` (`build.rs` tells the linker). libc's entry needs `rsp` and `rdx`; a
//! system call only overwrites `rax`, `rcx` and `r11`. The stamp is always taken, since nothing at that point
//! knows what this process will be; it costs one system call.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::calls;
use crate::inside::{self, INSIDE};
use crate::message::{Detail, Message};
use crate::words::Words;

/// The first argument, which turns the executable into the probe.
pub const PROBE: &str = "probe";
/// The task of the probe that stamps, reads its treatment back and ends.
pub const START: &str = "start";
/// The same as a second process, which also reports whether the first is ready to be asked to end.
pub const ENTER: &str = "enter";
/// The task of the probe that waits for SIGTERM and then exits with 0.
pub const STAY: &str = "stay";

/// A `struct timespec`, written once by the entry stub.
static TIME: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Bytes for a message without results and for reading files.
pub const CAPACITY: usize = 20480;
static mut BUFFER: [u8; CAPACITY] = [0; CAPACITY];

#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".globl dunnage_entry",
    ".type dunnage_entry, @function",
    "dunnage_entry:",
    "mov eax, 228", // clock_gettime
    "mov edi, 1",   // CLOCK_MONOTONIC
    "lea rsi, [rip + {time}]",
    "syscall",
    "mov rbx, rdx",
    "mov rdi, rsp",
    "call {launched}",
    "mov rdx, rbx",
    "jmp _start",
    ".size dunnage_entry, . - dunnage_entry",
    time = sym TIME,
    launched = sym launched,
);

/// Nanoseconds on `CLOCK_MONOTONIC` at the ELF entry; zero in executables that start elsewhere,
/// such as those of the tests.
pub fn stamp() -> u64 {
    let [seconds, nanos] = &TIME;
    seconds.load(Ordering::Relaxed) * 1_000_000_000 + nanos.load(Ordering::Relaxed)
}

/// Acts as the probe of a launch if these words ask for it, and then does not return.
///
/// The exit code is 0 if the message was written, 3 if standard output refused it.
///
/// # Safety
/// Called once, by the entry, with what the kernel put on the stack: the number of words and then pointers to
/// them, each ended by a zero byte.
unsafe extern "C" fn launched(stack: *const usize) {
    // SAFETY: as the kernel puts it there.
    let words = unsafe { Words::new(*stack, stack.add(1).cast()) };
    if !words.is(1, PROBE) {
        return;
    }
    let is_inside = words.is(2, INSIDE);
    let task = if is_inside { inside::rest(words) } else { words };
    let (enters, stays) = (task.is(2, ENTER), task.is(2, STAY));
    let launches = task.count() == 2 || enters || stays || task.is(2, START);
    let Some(detail) = Detail::of(task.bytes(3)).filter(|_| launches && task.count() <= 4) else { return };
    if is_inside {
        inside::enter(words);
    }
    if stays {
        stay()
    }
    let buffer = &raw mut BUFFER;
    // SAFETY: this runs once, before there is anything else in the process.
    let mut message = Message::begin(unsafe { &mut *buffer }, stamp(), None);
    if enters {
        message.init();
    }
    message.treatment(detail);
    if detail.inherited {
        // SAFETY: the words are at the beginning of the stack, where the kernel put the environment behind them.
        message.environment(unsafe { words.environment() });
    }
    message.write_out()
}

/// Blocks SIGTERM, then waits for it: the first process of a PID namespace only receives signals that it
/// blocks or handles. Prints nothing.
pub fn stay() -> ! {
    match calls::wait_for_signal(libc::SIGTERM) {
        Ok(_) => calls::exit(0),
        Err(_) => calls::exit(3),
    }
}

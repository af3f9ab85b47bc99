//! The first instructions of the executable: a stamp at the ELF entry. Asked to be the probe of a launch, the process is that
//! and ends here; else it goes on to libc's own entry with every register that it needs as the kernel set it.
//!
//! The kernel jumps to `dunnage_entry` (the linker is told so by `build.rs`). libc's entry needs `rsp` and `rdx`; a system
//! call spoils only `rax`, `rcx` and `r11`. The stamp is taken always, since nothing at that point knows what this process
//! will be; it costs one system call.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::calls;
use crate::inside::{self, INSIDE};
use crate::message::Message;
use crate::words::Words;

/// The first argument that turns the executable into the probe.
pub const PROBE: &str = "probe";
/// The task of the probe that stamps, reads its treatment back and ends.
pub const START: &str = "start";
/// The same as a second process, which says whether the first is ready to be asked to end.
pub const ENTER: &str = "enter";
/// The task of the probe that waits for SIGTERM, then ends well.
pub const STAY: &str = "stay";

/// The argument after the task that asks for the limits of the probe's cgroup too.
pub const LIMITS: &str = "limits";

/// A `struct timespec`, written once by the entry stub.
static TIME: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Bytes that a message without results may have, and room to read files in.
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

/// Is the probe of a launch if these words ask for it, and then does not return.
///
/// The exit code is 0 when the message was written, 3 when standard output refused it.
///
/// # Safety
/// Called once, by the entry, with what the kernel put on the stack: the number of words and then pointers to them, each
/// ended by a zero byte.
unsafe extern "C" fn launched(stack: *const usize) {
    // SAFETY: as the kernel puts it there.
    let words = unsafe { Words::new(*stack, stack.add(1).cast()) };
    if !words.is(1, PROBE) {
        return;
    }
    let is_inside = words.is(2, INSIDE);
    let task = if is_inside { inside::rest(words) } else { words };
    let (limits, enters, stays) = (task.is(3, LIMITS), task.is(2, ENTER), task.is(2, STAY));
    let launches = task.count() == 2 || enters || stays || task.is(2, START);
    if !launches || task.count() > 3 + usize::from(limits) {
        return;
    }
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
    message.treatment();
    if limits {
        message.limits();
    }
    message.write_out()
}

/// Blocks SIGTERM, then waits for it: the first process of a PID namespace is sent only what it
/// blocks or handles. Says nothing.
pub fn stay() -> ! {
    match calls::wait_for_signal(libc::SIGTERM) {
        Ok(_) => calls::exit(0),
        Err(_) => calls::exit(3),
    }
}

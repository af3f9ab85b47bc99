//! Threads of a process that never started libc's: born by a raw clone on a stack of their own, waited for
//! by the word that the kernel clears when they end, and let go together through futexes.
//!
//! Deliberately absent: thread-local storage. Such a thread has none, so whatever would use libc's, as
//! allocating and panicking may, ends the process with a signal instead of corrupting another thread's.

use core::sync::atomic::{AtomicU32, Ordering};

use super::pages::{self, Size};
use super::raw::{self, Result};

const STACK: usize = 64 * 1024;

/// A thread that was started and has to be waited for.
#[derive(Debug)]
#[must_use]
pub struct Thread {
    /// Not zero until the kernel has ended the thread.
    alive: &'static AtomicU32,
}

/// What a new thread finds on its stack.
#[repr(C)]
struct Birth<T: 'static> {
    body: fn(&'static T, usize),
    shared: &'static T,
    index: usize,
}

/// Starts a thread that calls `body` with what it shares with others and a number of its own, and ends
/// when that returns.
///
/// # Errors
/// The kernel's error number, where there is no memory or no further thread.
pub fn start<T: Sync>(
    body: fn(&'static T, usize),
    shared: &'static T,
    index: usize,
) -> core::result::Result<Thread, i32> {
    const SHARED: i32 = libc::CLONE_VM
        | libc::CLONE_FS
        | libc::CLONE_FILES
        | libc::CLONE_SIGHAND
        | libc::CLONE_THREAD
        | libc::CLONE_SYSVSEM
        | libc::CLONE_SETTLS
        | libc::CLONE_CHILD_CLEARTID;
    // The lowest word says whether the thread lives; the stack begins at the other end.
    let stack = pages::map(STACK / size_of::<u64>(), Size::Small)?;
    let base = stack.as_mut_ptr() as usize;
    // SAFETY: the lowest word of fresh memory that is never unmapped, is aligned, and is used as nothing else.
    let alive: &'static AtomicU32 = unsafe { &*(base as *const AtomicU32) };
    alive.store(1, Ordering::Relaxed);
    let top = (base + STACK - size_of::<Birth<T>>()) & !15;
    let birth = top as *mut Birth<T>;
    // SAFETY: `top` is aligned to 16 and has room for a `Birth` above it; nobody else uses the stack.
    unsafe { birth.write(Birth { body, shared, index }) };
    // SAFETY: a new stack that is never given back, a word that outlives the thread, and no TLS at all. What
    // the thread shares with us is `Sync` and lives for ever.
    let born = unsafe { clone_onto(SHARED as usize, top, alive.as_ptr() as usize, live::<T> as *const ()) };
    match born {
        ..0 => Err(-born as i32),
        _ => Ok(Thread { alive }),
    }
}

impl Thread {
    /// Waits until the thread has ended. Its stack stays mapped.
    pub fn join(self) {
        loop {
            match self.alive.load(Ordering::Acquire) {
                0 => return,
                // The kernel wakes with the flag for sharing between processes, so it is waited for with it.
                alive => {
                    let _ = futex(self.alive, libc::FUTEX_WAIT, alive);
                }
            }
        }
    }
}

/// Makes the call. The thread goes on in `live` with the stack's top as its argument; the caller gets the
/// thread's id or a negative error number.
///
/// # Safety
/// The flags make a thread; the stack is free and begins at `top`, and `live` takes what lies there.
#[cfg(target_arch = "x86_64")]
unsafe fn clone_onto(flags: usize, top: usize, alive: usize, live: *const ()) -> isize {
    let returned: isize;
    // SAFETY: the system call convention of x86_64: flags, stack, parent's word, own word, TLS. In the
    // thread only r12 is used, and `live` never comes back.
    unsafe {
        core::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, rsp",
            "call r12",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone as isize => returned,
            in("rdi") flags, in("rsi") top, in("rdx") 0, in("r10") alive, in("r8") 0,
            in("r12") live,
            lateout("rcx") _, lateout("r11") _,
        );
    }
    returned
}

/// The thread's whole life.
///
/// # Safety
/// Called only by `clone_onto`, with a `Birth` that was written for this thread.
unsafe extern "C" fn live<T: Sync>(birth: *const Birth<T>) -> ! {
    // SAFETY: written by `start` before the clone; nobody else reads or writes it.
    let Birth { body, shared, index } = unsafe { birth.read() };
    body(shared, index);
    loop {
        // SAFETY: ends this thread only.
        let _ = unsafe { raw::syscall(libc::SYS_exit, [0; 6]) };
    }
}

/// Sleeps while the word has this value, or less long.
pub fn wait_while(word: &AtomicU32, value: u32) {
    let _ = futex(word, libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, value);
}

/// Wakes all that sleep on the word.
pub fn wake_all(word: &AtomicU32) {
    let _ = futex(word, libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, i32::MAX as u32);
}

fn futex(word: &AtomicU32, operation: i32, value: u32) -> Result {
    let arguments = [word.as_ptr() as usize, operation as usize, value as usize, 0, 0, 0];
    // SAFETY: the word is valid for the whole call, and there is no time limit to point to.
    unsafe { raw::syscall(libc::SYS_futex, arguments) }
}

/// Lets whoever waits for this CPU run first.
pub fn let_others_run() {
    // SAFETY: takes no arguments and has no memory effects.
    let _ = unsafe { raw::syscall(libc::SYS_sched_yield, [0; 6]) };
}

/// CPU time of the calling thread in nanoseconds, by the scheduler's own count.
pub fn cpu_time() -> u64 {
    let mut time = [0u64; 2];
    let pointer = time.as_mut_ptr() as usize;
    // SAFETY: the kernel writes one timespec, which is two 64-bit words here.
    let _ = unsafe {
        raw::syscall(libc::SYS_clock_gettime, [libc::CLOCK_THREAD_CPUTIME_ID as usize, pointer, 0, 0, 0, 0])
    };
    time[0] * 1_000_000_000 + time[1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    struct Shared {
        go: AtomicU32,
        sums: [AtomicU64; 3],
    }

    #[test]
    fn threads_share_memory_wait_for_each_other_and_end() {
        static SHARED: Shared = Shared { go: AtomicU32::new(0), sums: [const { AtomicU64::new(0) }; 3] };
        let body = |shared: &'static Shared, index: usize| {
            while shared.go.load(Ordering::Acquire) == 0 {
                wait_while(&shared.go, 0);
            }
            shared.sums[index].store(index as u64 + 1, Ordering::Relaxed);
        };
        let threads = [0, 1, 2].map(|index| start(body, &SHARED, index).unwrap());
        SHARED.go.store(1, Ordering::Release);
        wake_all(&SHARED.go);
        threads.into_iter().for_each(Thread::join);
        assert_eq!([0, 1, 2].map(|index: usize| SHARED.sums[index].load(Ordering::Relaxed)), [1, 2, 3]);
    }

    #[test]
    fn a_busy_thread_has_cpu_time_and_no_more_than_there_was() {
        let (began, before) = (raw::monotonic(), cpu_time());
        let sum = (0..1_000_000u64).fold(0, |sum, one| core::hint::black_box(sum ^ one));
        let (used, passed) = (cpu_time() - before, raw::monotonic() - began);
        assert!(sum < u64::MAX && used > 0 && used <= passed + 1_000_000, "{used} of {passed}");
    }
}

//! The CPUs on which a thread may run, and how to bind it to one of them. With raw system calls, since libc's
//! `cpu_set_t` holds only a thousand CPUs. Deliberately absent: which CPU to choose.

use std::io;

use super::raw;

/// The most CPUs that Linux for x86_64 can be built for.
const MOST: usize = 8192;
const WORD: usize = u64::BITS as usize;

/// The CPUs on which the calling thread may run, by the kernel's numbers, lowest first.
pub fn allowed() -> io::Result<Vec<usize>> {
    let mut set = [0u64; MOST / WORD];
    let pointer = set.as_mut_ptr() as usize;
    // SAFETY: the kernel writes at most the number of bytes that it is given.
    unsafe { raw::syscall(libc::SYS_sched_getaffinity, [0, size_of_val(&set), pointer, 0, 0, 0]) }
        .map_err(io::Error::from_raw_os_error)?;
    Ok((0..MOST).filter(|cpu| set[cpu / WORD] >> (cpu % WORD) & 1 == 1).collect())
}

/// Binds the calling thread, and everything that it starts from now on, to this CPU. The thread runs there
/// when this returns.
pub fn bind_to(cpu: usize) -> io::Result<()> {
    let mut set = [0u64; MOST / WORD];
    *set.get_mut(cpu / WORD).ok_or(io::ErrorKind::InvalidInput)? |= 1 << (cpu % WORD);
    let pointer = set.as_ptr() as usize;
    // SAFETY: the kernel reads the number of bytes that it is given.
    unsafe { raw::syscall(libc::SYS_sched_setaffinity, [0, size_of_val(&set), pointer, 0, 0, 0]) }
        .map(drop)
        .map_err(io::Error::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_bound_to_each_cpu_that_it_is_allowed() {
        // In a separate thread, so that the binding ends with it.
        let bound = std::thread::spawn(|| {
            let before = allowed().unwrap();
            assert!(before.contains(&rustix::thread::sched_getcpu()));
            for cpu in before {
                bind_to(cpu).unwrap();
                assert_eq!(allowed().unwrap(), [cpu]);
                assert_eq!(rustix::thread::sched_getcpu(), cpu);
            }
            assert!(bind_to(MOST).is_err() && bind_to(MOST - 1).is_err());
        });
        bound.join().unwrap();
    }
}

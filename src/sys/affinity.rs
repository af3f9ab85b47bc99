//! On which CPUs may this thread run, and how is it bound to one of them? By raw system calls, since
//! the probe asks too. Deliberately absent: which CPU is a good one.

use super::raw::{self, Result};

/// How many CPUs a set has room for: as many as a Linux for x86_64 can be built for.
const MOST: usize = 8192;
const WORD: usize = u64::BITS as usize;

/// A set of CPUs, by the numbers that the kernel gives them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CpuSet([u64; MOST / WORD]);

impl CpuSet {
    /// The set with nothing in it.
    pub const EMPTY: CpuSet = CpuSet([0; MOST / WORD]);

    /// The set of this one CPU; the empty set for a number that no kernel gives.
    pub fn only(cpu: usize) -> CpuSet {
        let mut set = CpuSet::EMPTY;
        if let Some(word) = set.0.get_mut(cpu / WORD) {
            *word |= 1 << (cpu % WORD);
        }
        set
    }

    /// Whether a CPU is in it.
    pub fn has(&self, cpu: usize) -> bool {
        self.0.get(cpu / WORD).is_some_and(|word| word >> (cpu % WORD) & 1 == 1)
    }

    /// Its CPUs, the lowest number first.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..MOST).filter(|&cpu| self.has(cpu))
    }

    /// How many CPUs are in it.
    pub fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }
}

impl core::fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// The CPUs on which the calling thread may run.
pub fn allowed() -> core::result::Result<CpuSet, i32> {
    let mut set = CpuSet::EMPTY;
    let pointer = set.0.as_mut_ptr() as usize;
    // SAFETY: the kernel writes at most as many bytes as it is told there are.
    unsafe { raw::syscall(libc::SYS_sched_getaffinity, [0, size_of_val(&set.0), pointer, 0, 0, 0]) }?;
    Ok(set)
}

/// Lets the calling thread, and whatever it starts from now on, run on these CPUs only. When this returns
/// it runs on one of them.
pub fn bind(set: &CpuSet) -> Result {
    let pointer = set.0.as_ptr() as usize;
    // SAFETY: the kernel reads as many bytes as it is told there are.
    unsafe { raw::syscall(libc::SYS_sched_setaffinity, [0, size_of_val(&set.0), pointer, 0, 0, 0]) }
}

/// The CPU on which the calling thread runs at this moment.
pub fn current() -> core::result::Result<usize, i32> {
    let mut cpu = 0u32;
    // SAFETY: the kernel writes one 32-bit number; the other two pointers may be null.
    unsafe { raw::syscall(libc::SYS_getcpu, [&raw mut cpu as usize, 0, 0, 0, 0, 0]) }?;
    Ok(cpu as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_hold_what_was_put_into_them() {
        let set = CpuSet::only(65);
        assert!(set.has(65) && !set.has(1) && !set.has(64));
        assert_eq!((set.count(), set.iter().collect::<Vec<_>>()), (1, vec![65]));
        assert_eq!(CpuSet::only(MOST), CpuSet::EMPTY);
        assert_eq!(format!("{set:?}"), "{65}");
    }

    #[test]
    fn a_thread_is_bound_to_each_cpu_that_it_is_allowed() {
        // In a thread of its own, which takes its binding with it.
        let bound = std::thread::spawn(|| {
            let before = allowed().unwrap();
            assert!(before.count() >= 1 && before.has(current().unwrap()));
            for cpu in before.iter() {
                bind(&CpuSet::only(cpu)).unwrap();
                assert_eq!(allowed().unwrap(), CpuSet::only(cpu));
                assert_eq!(current().unwrap(), cpu);
            }
            assert_eq!(bind(&CpuSet::EMPTY), Err(libc::EINVAL));
            bind(&before).unwrap();
            assert_eq!(allowed().unwrap(), before);
        });
        bound.join().unwrap();
    }
}

//! The numbers of the system calls in the three ABIs of x86: one row per name, sorted by name.
//!
//! The data are in `data/syscalls.txt`. Their source is the kernel's user space headers (`asm/unistd_64.h`,
//! `asm/unistd_32.h` and `asm/unistd_x32.h`) of Linux 6.12, with the four calls that 6.13 added (`setxattrat`
//! to `removexattrat`, 466). Newer calls are deliberately absent: a filter answers their numbers as "newer
//! than the profile".

use std::sync::LazyLock;

/// Name, then number in x86_64, i386 and x32 if the ABI has the call.
pub(super) type Row = (&'static str, [Option<u32>; 3]);

/// All calls of all three ABIs, sorted by name for binary search.
pub(super) static SYSCALLS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let lines = include_str!("../../../data/syscalls.txt").lines().filter(|line| !line.starts_with('#'));
    let row = |line: &'static str| {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        (name, std::array::from_fn(|_| words.next().and_then(|number| number.parse().ok())))
    };
    lines.map(row).collect()
});

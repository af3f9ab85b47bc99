//! The filter in a real kernel: a child loads it and makes system calls.

use dunnage::sys::container::is_privileged;
use dunnage::sys::{raw, seccomp};
use libc::{c_long, pid_t};

use crate::support::{Need, skip};

/// The child's calls: name, number, first argument, and the expected errno (0: success).
const CALLS: &[(&str, c_long, u64, i32)] = &[
    ("getpid", libc::SYS_getpid, 0, 0),
    ("getppid", libc::SYS_getppid, 0, 0),
    ("keyctl", libc::SYS_keyctl, 99, libc::EPERM),
    ("mount", libc::SYS_mount, 0, libc::EPERM),
    ("unshare of nothing", libc::SYS_unshare, 0, libc::EPERM),
    ("clone3", libc::SYS_clone3, 0, libc::ENOSYS),
    ("clone with a user namespace", libc::SYS_clone, libc::CLONE_NEWUSER as u64, libc::EPERM),
    ("personality, query", libc::SYS_personality, 0xffff_ffff, 0),
    ("personality, another", libc::SYS_personality, 1, libc::EPERM),
    ("personality, upper word", libc::SYS_personality, 1 << 32, libc::EPERM),
    ("bpf", libc::SYS_bpf, 0, libc::EPERM),
    ("a newer call than the profile's", 470, 0, libc::ENOSYS),
    ("no call at all", 5000, 0, libc::ENOSYS),
];

#[test]
#[cfg(target_arch = "x86_64")]
fn a_child_under_the_filter_gets_the_expected_answers() {
    let filter = seccomp::compile(&crate::seccomp::meaning::built_in());
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).expect("the kernel's limit is 4096"),
        filter: filter.as_ptr().cast_mut(),
    };
    let mut pipe = [0; 2];
    // SAFETY: `pipe` has room for two descriptors.
    assert_eq!(unsafe { libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
    // SAFETY: the child only makes system calls on existing memory, and exits.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        report_from_child(&program, pipe[1]);
    }
    // The first number is the errno of loading, the others are those of the calls.
    let mut errnos = [i32::MIN; CALLS.len() + 1];
    let bytes = size_of_val(&errnos);
    // SAFETY: the descriptors are open; at most `bytes` bytes go into `errnos`.
    let read = unsafe {
        libc::close(pipe[1]);
        let read = libc::read(pipe[0], errnos.as_mut_ptr().cast(), bytes);
        libc::close(pipe[0]);
        read
    };
    assert_eq!(reap(child), 0, "status of the child");
    assert_eq!(read, bytes as isize);
    assert_eq!(errnos[0], 0, "loading the filter");
    for ((name, _, _, expected), errno) in CALLS.iter().zip(&errnos[1..]) {
        assert_eq!(errno, expected, "{name}");
    }
}

/// Runs in the child: no allocation, no lock, no panic.
#[cfg(target_arch = "x86_64")]
fn report_from_child(program: *const libc::sock_fprog, pipe: i32) -> ! {
    let mut errnos = [i32::MIN; CALLS.len() + 1];
    // SAFETY: no pointer is passed, except `errnos` to write(2), with the right length. The calls in CALLS
    // get null pointers and are refused, or have no effect. `program` points to the filter that the parent
    // made, of which this process has a copy.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        let loaded = libc::syscall(libc::SYS_seccomp, mode, 0, program);
        errnos[0] = if loaded == 0 { 0 } else { *libc::__errno_location() };
        if errnos[0] == 0 {
            for (&(_, number, first, _), errno) in CALLS.iter().zip(&mut errnos[1..]) {
                let result = libc::syscall(number, first, 0u64, 0u64, 0u64, 0u64);
                *errno = if result == -1 { *libc::__errno_location() } else { 0 };
            }
        }
        libc::write(pipe, errnos.as_ptr().cast(), size_of_val(&errnos));
        libc::_exit(0)
    }
}

#[cfg(target_arch = "x86_64")]
fn reap(child: pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: `status` is valid for writing and the child belongs to this test.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    status
}

/// Whether the kernel lets this process read filters of others.
fn may_read() -> bool {
    is_privileged() && raw::prctl(libc::PR_GET_SECCOMP, 0) == Ok(0)
}

#[test]
fn a_process_without_a_filter_is_told_apart() {
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let result = crate::seccomp::dump::filters(child.id().cast_signed());
    child.kill().unwrap();
    child.wait().unwrap();
    match result {
        Err(crate::seccomp::dump::DumpError::NoFilter(_)) => {}
        Err(crate::seccomp::dump::DumpError::NotPermitted { .. }) if !may_read() => {
            let test = "a_process_without_a_filter_is_told_apart";
            skip(test, Need::Root, "reading filters needs CAP_SYS_ADMIN and no filter on this process");
        }
        Ok(_) => panic!("the child has a filter"),
        Err(other) => panic!("{other}"),
    }
    let gone = crate::seccomp::dump::filters(child.id().cast_signed());
    assert!(matches!(gone, Err(crate::seccomp::dump::DumpError::NoProcess(_))), "{gone:?}");
}

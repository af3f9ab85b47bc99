//! Docker's default profile as data: names, conditions and answers, and what they mean.
//!
//! The facts are those of `profiles/seccomp/default.json` in moby 20.10 (20.10.24), reduced the way
//! the daemon reduces them for a container started without any option, on x86_64 and a kernel of
//! 4.8 or younger:
//!
//! - Capabilities held: CHOWN, DAC_OVERRIDE, FSETID, FOWNER, MKNOD, NET_RAW, SETGID, SETUID,
//!   SETFCAP, SETPCAP, NET_BIND_SERVICE, SYS_CHROOT, KILL, AUDIT_WRITE. Of the blocks that hang on
//!   a capability only SYS_CHROOT's (`chroot`) applies. SYS_ADMIN is not held, hence the
//!   restricted `clone` and the `clone3` that answers ENOSYS, so that libc falls back to `clone`.
//! - Kernel 4.8 or younger: `ptrace` is allowed.
//! - x86: `arch_prctl` and `modify_ldt` are allowed.
//!
//! This version of the profile has no condition on `socket`; later ones do.
//!
//! What is deliberately absent: instructions; `tests/seccomp` checks them against what the profile means.

use super::action::Action;
use super::table::{ABSENT, SYSCALLS};
use serde_json::{Value, json};

/// One way in which a program on x86 can call the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abi {
    /// 64-bit calls.
    X86_64,
    /// 32-bit calls, of the compatibility mode.
    I386,
    /// 64-bit calls with 32-bit pointers: the architecture of x86_64, numbers of its own.
    X32,
}

/// `AUDIT_ARCH_X86_64`: what the kernel calls the architecture of x86_64 and x32.
pub const ARCH_X86_64: u32 = 0xc000_003e;
/// `AUDIT_ARCH_I386`: what the kernel calls the architecture of 32-bit calls.
pub const ARCH_I386: u32 = 0x4000_0003;
/// `__X32_SYSCALL_BIT`: set in the numbers of x32.
pub const X32_BIT: u32 = 0x4000_0000;

impl Abi {
    /// All three, in the order of the discriminants.
    pub const ALL: [Abi; 3] = [Abi::X86_64, Abi::I386, Abi::X32];

    /// The ABI of a call.
    pub const fn of(arch: u32, number: u32) -> Option<Abi> {
        match arch {
            ARCH_X86_64 if number & X32_BIT == 0 => Some(Abi::X86_64),
            ARCH_X86_64 => Some(Abi::X32),
            ARCH_I386 => Some(Abi::I386),
            _ => None,
        }
    }

    /// What `seccomp_data.arch` holds for calls of this ABI.
    pub const fn arch(self) -> u32 {
        match self {
            Abi::X86_64 | Abi::X32 => ARCH_X86_64,
            Abi::I386 => ARCH_I386,
        }
    }

    /// The number of this ABI's first call.
    pub const fn base(self) -> u32 {
        match self {
            Abi::X86_64 | Abi::I386 => 0,
            Abi::X32 => X32_BIT,
        }
    }

    /// Whether arguments count as 64 bits. libseccomp takes x32 for a 32-bit ABI and compares the
    /// lower word only, and so do we.
    pub const fn wide(self) -> bool {
        matches!(self, Abi::X86_64)
    }

    /// The number of a call, with the base of the ABI in it.
    pub fn number(self, name: &str) -> Option<u32> {
        let row = SYSCALLS.binary_search_by(|row| row.0.cmp(name)).ok()?;
        let number = self.column(row);
        (number != ABSENT).then(|| self.base() + u32::from(number.unsigned_abs()))
    }

    /// The name of the call that has this number, base included.
    pub fn name(self, number: u32) -> Option<&'static str> {
        let wanted = i16::try_from(number.checked_sub(self.base())?).ok()?;
        let row = (0..SYSCALLS.len()).find(|&row| self.column(row) == wanted)?;
        Some(SYSCALLS[row].0)
    }

    fn column(self, row: usize) -> i16 {
        let (_, x86_64, i386, x32) = SYSCALLS[row];
        match self {
            Abi::X86_64 => x86_64,
            Abi::I386 => i386,
            Abi::X32 => x32,
        }
    }

    const fn oci_name(self) -> &'static str {
        match self {
            Abi::X86_64 => "SCMP_ARCH_X86_64",
            Abi::I386 => "SCMP_ARCH_X86",
            Abi::X32 => "SCMP_ARCH_X32",
        }
    }
}

/// What an argument must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Equal to the value.
    Equal(u64),
    /// Equal to the value in the bits of the mask.
    MaskedEqual {
        /// The bits that count.
        mask: u64,
        /// What they must be.
        value: u64,
    },
}

/// A test on one argument, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Which argument, 0 to 5.
    pub argument: u8,
    /// What it must be.
    pub test: Test,
}

/// The answer to calls of these names whose arguments meet all the conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule<'a> {
    /// Names, separated by blanks. A name that an ABI does not have means nothing there.
    pub names: &'a str,
    /// The answer.
    pub action: Action,
    /// All of these must hold; none means always.
    pub conditions: &'a [Condition],
}

impl<'a> Rule<'a> {
    const fn allow(names: &'a str, conditions: &'a [Condition]) -> Self {
        let action = Action::Allow;
        Rule { names, action, conditions }
    }
}

/// A profile: what each system call of each ABI is answered.
#[derive(Clone, Copy, Debug)]
pub struct Profile<'a> {
    /// For calls without a rule that applies.
    pub default: Action,
    /// For numbers above the highest that the rules name in their ABI: calls that are newer than
    /// the profile.
    pub newer: Action,
    /// For ABIs that are not listed, and other architectures.
    pub foreign: Action,
    /// The ABIs that the profile is for.
    pub abis: &'a [Abi],
    /// The first rule that applies gives the answer.
    pub rules: &'a [Rule<'a>],
}

impl<'a> Profile<'a> {
    /// The rules of each call of an ABI, in the order of the profile; the index is the number
    /// without the base. The last entry is the newest call that the profile knows in this ABI.
    /// `None` if the profile is not for this ABI.
    pub fn numbered(&self, abi: Abi) -> Option<Vec<Vec<&'a Rule<'a>>>> {
        if !self.abis.contains(&abi) {
            return None;
        }
        let mut numbered = Vec::new();
        for rule in self.rules {
            for name in rule.names.split_whitespace() {
                if let Some(number) = abi.number(name) {
                    let index = (number - abi.base()) as usize;
                    numbered.resize_with(numbered.len().max(index + 1), Vec::new);
                    numbered[index].push(rule);
                }
            }
        }
        Some(numbered)
    }

    /// The profile as `linux.seccomp` of the OCI runtime specification. Not in it, because the
    /// specification has no words for them: [`newer`](Self::newer) and [`foreign`](Self::foreign),
    /// which the runtime and libseccomp choose.
    pub fn to_oci(&self) -> Value {
        let (default, errno) = oci_action(self.default);
        let abis: Vec<&str> = self.abis.iter().map(|abi| abi.oci_name()).collect();
        let syscalls: Vec<Value> = self.rules.iter().map(oci_rule).collect();
        let mut object = json!({"defaultAction": default, "architectures": abis, "syscalls": syscalls});
        if let Some(errno) = errno {
            object["defaultErrnoRet"] = errno.into();
        }
        object
    }
}

fn oci_rule(rule: &Rule) -> Value {
    let (action, errno) = oci_action(rule.action);
    let names: Vec<&str> = rule.names.split_whitespace().collect();
    let mut object = json!({"names": names, "action": action});
    if let Some(errno) = errno {
        object["errnoRet"] = errno.into();
    }
    if !rule.conditions.is_empty() {
        object["args"] = rule.conditions.iter().map(oci_condition).collect();
    }
    object
}

fn oci_condition(condition: &Condition) -> Value {
    let index = condition.argument;
    match condition.test {
        Test::Equal(value) => json!({"index": index, "value": value, "op": "SCMP_CMP_EQ"}),
        Test::MaskedEqual { mask, value: 0 } => {
            json!({"index": index, "value": mask, "op": "SCMP_CMP_MASKED_EQ"})
        }
        Test::MaskedEqual { mask, value } => {
            json!({"index": index, "value": mask, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ"})
        }
    }
}

/// The name of an action, and its errno where that is not the EPERM that runtimes take by default.
fn oci_action(action: Action) -> (&'static str, Option<u16>) {
    match action {
        Action::Allow => ("SCMP_ACT_ALLOW", None),
        Action::Log => ("SCMP_ACT_LOG", None),
        Action::Trace(datum) => ("SCMP_ACT_TRACE", Some(datum)),
        Action::Notify => ("SCMP_ACT_NOTIFY", None),
        Action::Errno(errno) if i32::from(errno) == libc::EPERM => ("SCMP_ACT_ERRNO", None),
        Action::Errno(errno) => ("SCMP_ACT_ERRNO", Some(errno)),
        Action::Trap(_) => ("SCMP_ACT_TRAP", None),
        Action::KillThread => ("SCMP_ACT_KILL_THREAD", None),
        Action::KillProcess | Action::Unknown(_) => ("SCMP_ACT_KILL_PROCESS", None),
    }
}

/// Docker's default profile as runc applies it, see the top of this file.
pub const DOCKER_DEFAULT: Profile<'static> = Profile {
    default: Action::Errno(libc::EPERM as u16),
    newer: Action::Errno(libc::ENOSYS as u16),
    foreign: Action::KillThread,
    abis: &[Abi::X86_64, Abi::I386, Abi::X32],
    rules: &[
        Rule::allow(ALWAYS, &[]),
        Rule::allow("ptrace", &[]),
        Rule::allow("personality", &first_is(0)),
        Rule::allow("personality", &first_is(PER_LINUX32)),
        Rule::allow("personality", &first_is(UNAME26)),
        Rule::allow("personality", &first_is(UNAME26 | PER_LINUX32)),
        Rule::allow("personality", &first_is(0xffff_ffff)),
        Rule::allow("arch_prctl", &[]),
        Rule::allow("modify_ldt", &[]),
        Rule::allow("clone", &first_without(NEW_NAMESPACES)),
        Rule { names: "clone3", action: Action::Errno(libc::ENOSYS as u16), conditions: &[] },
        Rule::allow("chroot", &[]),
    ],
};

const PER_LINUX32: u64 = 0x0008;
const UNAME26: u64 = 0x0002_0000;

/// The flags of `clone` that make a namespace. CLONE_NEWTIME is not among them: its bit belongs to
/// the exit signal in `clone`.
const NEW_NAMESPACES: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u64;

const fn first_is(value: u64) -> [Condition; 1] {
    [Condition { argument: 0, test: Test::Equal(value) }]
}

const fn first_without(mask: u64) -> [Condition; 1] {
    [Condition { argument: 0, test: Test::MaskedEqual { mask, value: 0 } }]
}

/// The calls that are allowed whatever their arguments, in the order of the original, which also
/// names calls of other architectures.
const ALWAYS: &str = "\
    accept accept4 access adjtimex alarm bind brk capget capset chdir chmod chown chown32 \
    clock_adjtime clock_adjtime64 clock_getres clock_getres_time64 clock_gettime clock_gettime64 \
    clock_nanosleep clock_nanosleep_time64 close close_range connect copy_file_range creat dup \
    dup2 dup3 epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 \
    epoll_wait epoll_wait_old eventfd eventfd2 execve execveat exit exit_group faccessat \
    faccessat2 fadvise64 fadvise64_64 fallocate fanotify_mark fchdir fchmod fchmodat fchown \
    fchown32 fchownat fcntl fcntl64 fdatasync fgetxattr flistxattr flock fork fremovexattr \
    fsetxattr fstat fstat64 fstatat64 fstatfs fstatfs64 fsync ftruncate ftruncate64 futex \
    futex_time64 futex_waitv futimesat getcpu getcwd getdents getdents64 getegid getegid32 \
    geteuid geteuid32 getgid getgid32 getgroups getgroups32 getitimer getpeername getpgid \
    getpgrp getpid getppid getpriority getrandom getresgid getresgid32 getresuid getresuid32 \
    getrlimit get_robust_list getrusage getsid getsockname getsockopt get_thread_area gettid \
    gettimeofday getuid getuid32 getxattr inotify_add_watch inotify_init inotify_init1 \
    inotify_rm_watch io_cancel ioctl io_destroy io_getevents io_pgetevents io_pgetevents_time64 \
    ioprio_get ioprio_set io_setup io_submit io_uring_enter io_uring_register io_uring_setup ipc \
    kill landlock_add_rule landlock_create_ruleset landlock_restrict_self lchown lchown32 \
    lgetxattr link linkat listen listxattr llistxattr _llseek lremovexattr lseek lsetxattr lstat \
    lstat64 madvise membarrier memfd_create memfd_secret mincore mkdir mkdirat mknod mknodat \
    mlock mlock2 mlockall mmap mmap2 mprotect mq_getsetattr mq_notify mq_open mq_timedreceive \
    mq_timedreceive_time64 mq_timedsend mq_timedsend_time64 mq_unlink mremap msgctl msgget \
    msgrcv msgsnd msync munlock munlockall munmap nanosleep newfstatat _newselect open openat \
    openat2 pause pidfd_open pidfd_send_signal pipe pipe2 poll ppoll ppoll_time64 prctl pread64 \
    preadv preadv2 prlimit64 process_mrelease pselect6 pselect6_time64 pwrite64 pwritev pwritev2 \
    read readahead readlink readlinkat readv recv recvfrom recvmmsg recvmmsg_time64 recvmsg \
    remap_file_pages removexattr rename renameat renameat2 restart_syscall rmdir rseq \
    rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend \
    rt_sigtimedwait rt_sigtimedwait_time64 rt_tgsigqueueinfo sched_getaffinity sched_getattr \
    sched_getparam sched_get_priority_max sched_get_priority_min sched_getscheduler \
    sched_rr_get_interval sched_rr_get_interval_time64 sched_setaffinity sched_setattr \
    sched_setparam sched_setscheduler sched_yield seccomp select semctl semget semop semtimedop \
    semtimedop_time64 send sendfile sendfile64 sendmmsg sendmsg sendto setfsgid setfsgid32 \
    setfsuid setfsuid32 setgid setgid32 setgroups setgroups32 setitimer setpgid setpriority \
    setregid setregid32 setresgid setresgid32 setresuid setresuid32 setreuid setreuid32 \
    setrlimit set_robust_list setsid setsockopt set_thread_area set_tid_address setuid setuid32 \
    setxattr shmat shmctl shmdt shmget shutdown sigaltstack signalfd signalfd4 sigprocmask \
    sigreturn socket socketcall socketpair splice stat stat64 statfs statfs64 statx symlink \
    symlinkat sync sync_file_range syncfs sysinfo tee tgkill time timer_create timer_delete \
    timer_getoverrun timer_gettime timer_gettime64 timer_settime timer_settime64 timerfd_create \
    timerfd_gettime timerfd_gettime64 timerfd_settime timerfd_settime64 times tkill truncate \
    truncate64 ugetrlimit umask uname unlink unlinkat utime utimensat utimensat_time64 utimes \
    vfork vmsplice wait4 waitid waitpid write writev";

//! Seccomp profiles as data: names, conditions and answers, as they stand in `linux.seccomp` of an OCI bundle.
//!
//! [`Profile::from_oci`] reads what an engine hands to its runtime. [`built_in`] is Docker's default profile in the same
//! form, for machines without an engine: the facts are those of moby/profiles `seccomp/v0.2.3` (May 2026), reduced the way
//! the daemon reduces them for a container started without any option, on x86_64 and a kernel of 4.8 or younger:
//!
//! - Capabilities held: CHOWN, DAC_OVERRIDE, FSETID, FOWNER, MKNOD, NET_RAW, SETGID, SETUID,
//!   SETFCAP, SETPCAP, NET_BIND_SERVICE, SYS_CHROOT, KILL, AUDIT_WRITE. Of the blocks that hang on
//!   a capability only SYS_CHROOT's (`chroot`) applies. SYS_ADMIN is not held, hence the
//!   restricted `clone` and the `clone3` that answers ENOSYS, so that libc falls back to `clone`.
//! - Kernel 4.8 or younger: `ptrace` and its like are allowed.
//! - x86: `arch_prctl` and `modify_ldt` are allowed.
//!
//! What is deliberately absent: instructions; `tests/seccomp` checks them against what a profile means.

use super::action::Action;
use super::table::SYSCALLS;
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
        Some(self.base() + SYSCALLS[row].1[self as usize]?)
    }

    /// The name of the call that has this number, base included.
    pub fn name(self, number: u32) -> Option<&'static str> {
        let wanted = Some(number.checked_sub(self.base())?);
        SYSCALLS.iter().find(|row| row.1[self as usize] == wanted).map(|row| row.0)
    }

    fn from_oci(name: &str) -> Option<Abi> {
        match name {
            "SCMP_ARCH_X86_64" => Some(Abi::X86_64),
            "SCMP_ARCH_X86" => Some(Abi::I386),
            "SCMP_ARCH_X32" => Some(Abi::X32),
            _ => None,
        }
    }
}

/// What an argument must be, as an unsigned number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Equal to the value.
    Equal(u64),
    /// Anything but the value.
    Other(u64),
    /// The value or more.
    AtLeast(u64),
    /// Less than the value.
    Below(u64),
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Names, separated by blanks. A name that an ABI does not have means nothing there.
    pub names: String,
    /// The answer.
    pub action: Action,
    /// All of these must hold; none means always.
    pub conditions: Vec<Condition>,
}

/// A profile: what each system call of each ABI is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// For calls without a rule that applies.
    pub default: Action,
    /// For numbers above the highest that the rules name in their ABI: calls that are newer than
    /// the profile. The specification has no word for it; runc answers them as an old kernel would.
    pub newer: Action,
    /// For ABIs that are not listed, and other architectures: libseccomp's choice.
    pub foreign: Action,
    /// The ABIs that the profile is for.
    pub abis: Vec<Abi>,
    /// The first rule that applies gives the answer.
    pub rules: Vec<Rule>,
}

/// There is something in a profile that is not known here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the seccomp profile holds {0}")]
pub struct Strange(String);

impl Profile {
    /// Reads `linux.seccomp` of an OCI bundle.
    pub fn from_oci(profile: &Value) -> Result<Profile, Strange> {
        let default = action(&profile["defaultAction"], &profile["defaultErrnoRet"])?;
        let newer = match default {
            Action::Allow | Action::Log => default,
            _ => Action::Errno(libc::ENOSYS as u16),
        };
        let architectures = profile["architectures"].as_array().into_iter().flatten();
        let abis: Vec<Abi> = architectures.filter_map(|name| Abi::from_oci(name.as_str()?)).collect();
        let mut rules = Vec::new();
        for rule in profile["syscalls"].as_array().into_iter().flatten() {
            read_rule(rule, &mut rules)?;
        }
        let abis = if abis.is_empty() { vec![Abi::X86_64] } else { abis };
        Ok(Profile { default, newer, foreign: Action::KillThread, abis, rules })
    }

    /// The rules of each call of an ABI, in the order of the profile; the index is the number
    /// without the base. The last entry is the newest call that the profile knows in this ABI.
    /// `None` if the profile is not for this ABI.
    pub fn numbered(&self, abi: Abi) -> Option<Vec<Vec<&Rule>>> {
        if !self.abis.contains(&abi) {
            return None;
        }
        let mut numbered = Vec::new();
        for rule in &self.rules {
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
}

/// Adds a rule. Runtimes take several conditions on one argument for alternatives, since libseccomp takes no
/// more than one on each.
fn read_rule(rule: &Value, rules: &mut Vec<Rule>) -> Result<(), Strange> {
    let names = rule["names"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let names = names.collect::<Vec<_>>().join(" ");
    let action = action(&rule["action"], &rule["errnoRet"])?;
    let arguments = rule["args"].as_array().into_iter().flatten();
    let conditions = arguments.map(condition).collect::<Result<Vec<_>, _>>()?;
    let again = |at: usize| conditions[..at].iter().any(|one| one.argument == conditions[at].argument);
    if (0..conditions.len()).any(again) {
        let alone = |one: &Condition| Rule { names: names.clone(), action, conditions: vec![*one] };
        rules.extend(conditions.iter().map(alone));
    } else {
        rules.push(Rule { names, action, conditions });
    }
    Ok(())
}

fn action(name: &Value, errno: &Value) -> Result<Action, Strange> {
    let datum = errno.as_u64().and_then(|errno| u16::try_from(errno).ok());
    Ok(match name.as_str().unwrap_or_default() {
        "SCMP_ACT_ALLOW" => Action::Allow,
        "SCMP_ACT_LOG" => Action::Log,
        "SCMP_ACT_ERRNO" => Action::Errno(datum.unwrap_or(libc::EPERM as u16)),
        "SCMP_ACT_TRACE" => Action::Trace(datum.unwrap_or(libc::EPERM as u16)),
        "SCMP_ACT_TRAP" => Action::Trap(0),
        "SCMP_ACT_KILL" | "SCMP_ACT_KILL_THREAD" => Action::KillThread,
        "SCMP_ACT_KILL_PROCESS" => Action::KillProcess,
        _ => return Err(Strange(format!("the action {name}"))),
    })
}

fn condition(argument: &Value) -> Result<Condition, Strange> {
    let strange = || Strange(format!("the condition {argument}"));
    let number = |key: &str| argument[key].as_u64();
    let value = number("value").ok_or_else(strange)?;
    let next = || value.checked_add(1).ok_or_else(strange);
    let test = match argument["op"].as_str().unwrap_or_default() {
        "SCMP_CMP_EQ" => Test::Equal(value),
        "SCMP_CMP_NE" => Test::Other(value),
        "SCMP_CMP_GE" => Test::AtLeast(value),
        "SCMP_CMP_GT" => Test::AtLeast(next()?),
        "SCMP_CMP_LT" => Test::Below(value),
        "SCMP_CMP_LE" => Test::Below(next()?),
        "SCMP_CMP_MASKED_EQ" => Test::MaskedEqual { mask: value, value: number("valueTwo").unwrap_or(0) },
        _ => return Err(strange()),
    };
    let argument = number("index").and_then(|index| u8::try_from(index).ok()).filter(|index| *index < 6);
    Ok(Condition { argument: argument.ok_or_else(strange)?, test })
}

/// Which profile [`built_in`] is.
pub const BUILT_IN: &str = "moby/profiles seccomp/v0.2.3";

/// Docker's default profile, see the top of this file, as its daemon would put it into a bundle.
pub fn built_in() -> Value {
    let allow = |names: &str| {
        let names: Vec<&str> = names.split_whitespace().collect();
        json!({"names": names, "action": "SCMP_ACT_ALLOW"})
    };
    let allow_if = |name: &str, op: &str, value: u64| {
        let args = json!([{"index": 0, "value": value, "op": op}]);
        json!({"names": [name], "action": "SCMP_ACT_ALLOW", "args": args})
    };
    let mut syscalls = vec![allow(ALWAYS), allow("process_vm_readv process_vm_writev ptrace")];
    // All address families but AF_ALG (38) and AF_VSOCK (40).
    syscalls.push(allow_if("socket", "SCMP_CMP_LT", 38));
    syscalls.push(allow_if("socket", "SCMP_CMP_EQ", 39));
    syscalls.push(allow_if("socket", "SCMP_CMP_GT", 40));
    let personalities = [0, PER_LINUX32, UNAME26, UNAME26 | PER_LINUX32, 0xffff_ffff];
    syscalls.extend(personalities.map(|one| allow_if("personality", "SCMP_CMP_EQ", one)));
    syscalls.extend([allow("arch_prctl"), allow("modify_ldt")]);
    syscalls.push(allow_if("clone", "SCMP_CMP_MASKED_EQ", NEW_NAMESPACES));
    syscalls.push(json!({"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": libc::ENOSYS}));
    syscalls.push(allow("chroot"));
    json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": libc::EPERM,
        "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"],
        "syscalls": syscalls,
    })
}

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

/// The calls that are allowed whatever their arguments, in the order of the original, which also
/// names calls of other architectures.
const ALWAYS: &str = "\
    accept accept4 access adjtimex alarm bind brk cachestat capget capset chdir chmod chown chown32 \
    clock_adjtime clock_adjtime64 clock_getres clock_getres_time64 clock_gettime clock_gettime64 \
    clock_nanosleep clock_nanosleep_time64 close close_range connect copy_file_range creat dup dup2 dup3 \
    epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old \
    eventfd eventfd2 execve execveat exit exit_group faccessat faccessat2 fadvise64 fadvise64_64 fallocate \
    fanotify_mark fchdir fchmod fchmodat fchmodat2 fchown fchown32 fchownat fcntl fcntl64 fdatasync \
    fgetxattr flistxattr flock fork fremovexattr fsetxattr fstat fstat64 fstatat64 fstatfs fstatfs64 fsync \
    ftruncate ftruncate64 futex futex_requeue futex_time64 futex_wait futex_waitv futex_wake futimesat \
    getcpu getcwd getdents getdents64 getegid getegid32 geteuid geteuid32 getgid getgid32 getgroups \
    getgroups32 getitimer getpeername getpgid getpgrp getpid getppid getpriority getrandom getresgid \
    getresgid32 getresuid getresuid32 getrlimit get_robust_list getrusage getsid getsockname getsockopt \
    get_thread_area gettid gettimeofday getuid getuid32 getxattr getxattrat inotify_add_watch inotify_init \
    inotify_init1 inotify_rm_watch io_cancel ioctl io_destroy io_getevents io_pgetevents \
    io_pgetevents_time64 ioprio_get ioprio_set io_setup io_submit ipc kill landlock_add_rule \
    landlock_create_ruleset landlock_restrict_self lchown lchown32 lgetxattr link linkat listen listmount \
    listxattr listxattrat llistxattr _llseek lremovexattr lseek lsetxattr lstat lstat64 madvise \
    map_shadow_stack membarrier memfd_create memfd_secret mincore mkdir mkdirat mknod mknodat mlock mlock2 \
    mlockall mmap mmap2 mprotect mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedreceive_time64 \
    mq_timedsend mq_timedsend_time64 mq_unlink mremap mseal msgctl msgget msgrcv msgsnd msync munlock \
    munlockall munmap name_to_handle_at nanosleep newfstatat _newselect open openat openat2 pause pidfd_open \
    pidfd_send_signal pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll ppoll_time64 prctl pread64 \
    preadv preadv2 prlimit64 process_mrelease pselect6 pselect6_time64 pwrite64 pwritev pwritev2 read \
    readahead readlink readlinkat readv recv recvfrom recvmmsg recvmmsg_time64 recvmsg remap_file_pages \
    removexattr removexattrat rename renameat renameat2 restart_syscall riscv_hwprobe rmdir rseq \
    rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait \
    rt_sigtimedwait_time64 rt_tgsigqueueinfo sched_getaffinity sched_getattr sched_getparam \
    sched_get_priority_max sched_get_priority_min sched_getscheduler sched_rr_get_interval \
    sched_rr_get_interval_time64 sched_setaffinity sched_setattr sched_setparam sched_setscheduler \
    sched_yield seccomp select semctl semget semop semtimedop semtimedop_time64 send sendfile sendfile64 \
    sendmmsg sendmsg sendto setfsgid setfsgid32 setfsuid setfsuid32 setgid setgid32 setgroups setgroups32 \
    setitimer setpgid setpriority setregid setregid32 setresgid setresgid32 setresuid setresuid32 setreuid \
    setreuid32 setrlimit set_robust_list setsid setsockopt set_thread_area set_tid_address setuid setuid32 \
    setxattr setxattrat shmat shmctl shmdt shmget shutdown sigaltstack signalfd signalfd4 sigprocmask \
    sigreturn socketcall socketpair splice stat stat64 statfs statfs64 statmount statx symlink symlinkat \
    sync sync_file_range syncfs sysinfo tee tgkill time timer_create timer_delete timer_getoverrun \
    timer_gettime timer_gettime64 timer_settime timer_settime64 timerfd_create timerfd_gettime \
    timerfd_gettime64 timerfd_settime timerfd_settime64 times tkill truncate truncate64 ugetrlimit umask \
    uname unlink unlinkat uretprobe utime utimensat utimensat_time64 utimes vfork vmsplice wait4 waitid \
    waitpid write writev";

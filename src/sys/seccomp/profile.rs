//! Seccomp profiles as data: names, conditions and answers, as in `linux.seccomp` of an OCI bundle.
//!
//! [`Profile::from_oci`] reads what an engine hands to its runtime. [`built_in`] is Docker's default profile
//! in the same form, for machines without an engine. Its content is from moby/profiles `seccomp/v0.2.3` (May
//! 2026), reduced as the daemon does for a container without options, on x86_64 and Linux 4.8 or newer:
//!
//! - Capabilities held: CHOWN, DAC_OVERRIDE, FSETID, FOWNER, MKNOD, NET_RAW, SETGID, SETUID, SETFCAP,
//!   SETPCAP, NET_BIND_SERVICE, SYS_CHROOT, KILL, AUDIT_WRITE. Of the blocks that depend on a capability only
//!   SYS_CHROOT's (`chroot`) applies. SYS_ADMIN is not held, hence the restricted `clone` and the `clone3`
//!   that gives ENOSYS, so that libc falls back to `clone`.
//! - Linux 4.8 or newer: `ptrace` and similar calls are allowed.
//! - x86: `arch_prctl` and `modify_ldt` are allowed.
//! - Sockets of all address families except AF_ALG (38) and AF_VSOCK (40), and five personalities. The mask
//!   of `clone` has all flags that make a namespace except CLONE_NEWTIME, whose bit belongs to the exit
//!   signal there.
//!
//! Deliberately absent: instructions; `tests/seccomp` checks them against the meaning of a profile.

use super::table::SYSCALLS;
use serde_json::Value;

/// An ABI for system calls on x86.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abi {
    /// 64-bit calls.
    X86_64,
    /// 32-bit calls, in compatibility mode.
    I386,
    /// 64-bit calls with 32-bit pointers: the same architecture as x86_64, with different numbers.
    X32,
}

/// `AUDIT_ARCH_X86_64`: the kernel's value for the architecture of x86_64 and x32.
pub const ARCH_X86_64: u32 = 0xc000_003e;
/// `AUDIT_ARCH_I386`: the kernel's value for the architecture of 32-bit calls.
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

    /// The value of `seccomp_data.arch` for calls of this ABI.
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

    /// Whether arguments count as 64 bits. libseccomp treats x32 as a 32-bit ABI and compares only the lower
    /// word, and so does dunnage.
    pub const fn wide(self) -> bool {
        matches!(self, Abi::X86_64)
    }

    /// The number of a call, including the base of the ABI.
    pub fn number(self, name: &str) -> Option<u32> {
        let row = SYSCALLS.binary_search_by(|row| row.0.cmp(name)).ok()?;
        Some(self.base() + SYSCALLS[row].1[self as usize]?)
    }

    /// The name of the call with this number, base included.
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

/// A test on an argument as an unsigned number.
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
        /// Their required values.
        value: u64,
    },
}

/// A test of one argument, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Which argument, 0 to 5.
    pub argument: u8,
    /// The test.
    pub test: Test,
}

/// The answer to calls with these names whose arguments meet all the conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Names, separated by blanks. A name that an ABI does not have is ignored there.
    pub names: String,
    /// The answer: the return value of a filter, `SECCOMP_RET_…` with its data.
    pub action: u32,
    /// All of these must hold; without conditions the rule always applies.
    pub conditions: Vec<Condition>,
}

/// A profile: the answer to each system call of each ABI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// For calls to which no rule applies.
    pub default: u32,
    /// For numbers above the highest that the rules name in their ABI, which are calls newer than the
    /// profile. The specification does not define it; runc answers them as an old kernel would.
    pub newer: u32,
    /// For ABIs that are not listed, and other architectures: libseccomp's default.
    pub foreign: u32,
    /// The ABIs that the profile is for.
    pub abis: Vec<Abi>,
    /// The rules; the first one that applies gives the answer.
    pub rules: Vec<Rule>,
}

/// Something in a profile that dunnage does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the seccomp profile has {0}, which is not supported")]
pub struct Strange(String);

impl Profile {
    /// Reads `linux.seccomp` of an OCI bundle.
    pub fn from_oci(profile: &Value) -> Result<Profile, Strange> {
        let default = action(&profile["defaultAction"], &profile["defaultErrnoRet"])?;
        let newer = match default {
            libc::SECCOMP_RET_ALLOW | libc::SECCOMP_RET_LOG => default,
            _ => libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32,
        };
        let architectures = profile["architectures"].as_array().into_iter().flatten();
        let abis: Vec<Abi> = architectures.filter_map(|name| Abi::from_oci(name.as_str()?)).collect();
        let mut rules = Vec::new();
        for rule in profile["syscalls"].as_array().into_iter().flatten() {
            read_rule(rule, &mut rules)?;
        }
        let abis = if abis.is_empty() { vec![Abi::X86_64] } else { abis };
        Ok(Profile { default, newer, foreign: libc::SECCOMP_RET_KILL_THREAD, abis, rules })
    }

    /// The rules of each call of an ABI, in the order of the profile; the index is the number without the
    /// base. The last entry is the newest call that the profile knows in this ABI. `None` if the profile is
    /// not for this ABI.
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

/// Adds a rule. Runtimes treat several conditions on one argument as alternatives, since libseccomp accepts
/// only one for each.
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

/// The return value of a filter for an action.
fn action(name: &Value, errno: &Value) -> Result<u32, Strange> {
    let datum = errno.as_u64().and_then(|errno| u16::try_from(errno).ok());
    let datum = datum.map_or(libc::EPERM as u32, u32::from);
    Ok(match name.as_str().unwrap_or_default() {
        "SCMP_ACT_ALLOW" => libc::SECCOMP_RET_ALLOW,
        "SCMP_ACT_LOG" => libc::SECCOMP_RET_LOG,
        "SCMP_ACT_ERRNO" => libc::SECCOMP_RET_ERRNO | datum,
        "SCMP_ACT_TRACE" => libc::SECCOMP_RET_TRACE | datum,
        "SCMP_ACT_TRAP" => libc::SECCOMP_RET_TRAP,
        "SCMP_ACT_KILL" | "SCMP_ACT_KILL_THREAD" => libc::SECCOMP_RET_KILL_THREAD,
        "SCMP_ACT_KILL_PROCESS" => libc::SECCOMP_RET_KILL_PROCESS,
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

/// The version of [`built_in`].
pub const BUILT_IN: &str = "moby/profiles seccomp/v0.2.3";

/// Docker's default profile in the form in which its daemon puts it into a bundle; see the top of this file.
pub fn built_in() -> Value {
    serde_json::from_str(include_str!("../../../data/seccomp.json")).expect("the tests read it too")
}

//! What is this machine? Read once per run and stored in its `env.json`.
//!
//! Plain data; writing it down is the business of `record`. Deliberately absent: engines and
//! runtimes with their versions, which the subjects find themselves.

use std::path::Path;

use super::cgroups::Cgroups;
use super::cpu::Cpu;
use super::isolation::{Containment, Virtualisation};
use super::mounts::{self, Storage};
use super::own::Own;
use super::tree::Tree;
use crate::units::Nanos;

/// Everything that is known about a machine before measuring on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// The kernel that runs.
    pub kernel: Kernel,
    /// The distribution's name for itself.
    pub distribution: Option<String>,
    /// The name of the machine.
    pub host_name: Option<String>,
    /// The architecture in the kernel's words, such as `x86_64`.
    pub architecture: Option<String>,
    /// The processors.
    pub cpu: Cpu,
    /// Main memory in bytes.
    pub memory_bytes: Option<u64>,
    /// The virtual machine that this is, if any.
    pub virtualisation: Virtualisation,
    /// The container that we are in, if any.
    pub containment: Containment,
    /// The kernel's clock source, such as `tsc`.
    pub clock_source: Option<String>,
    /// The control groups.
    pub cgroups: Cgroups,
    /// The security modules.
    pub security: Security,
    /// What lies under the paths that matter; the state directory first, others are added by whoever
    /// knows them.
    pub storage: Vec<Storage>,
    /// What this process may do.
    pub own: Own,
    /// Whether the kernel tells how long tasks wait for CPU, memory and I/O (PSI).
    pub pressure_available: bool,
    /// When the machine booted, in seconds after 1970.
    pub boot_time: Option<u64>,
    /// How long it had been running.
    pub uptime: Option<Nanos>,
}

/// The kernel that runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kernel {
    /// The release, such as `6.1.0-18-amd64`.
    pub release: Option<String>,
    /// Build number, options and date.
    pub version: Option<String>,
    /// What the boot loader passed.
    pub command_line: Option<String>,
    /// Each known weakness of the processor and what the kernel does about it.
    pub mitigations: Vec<(String, String)>,
}

impl Kernel {
    /// Whether a word stands on the command line, such as `mitigations=off`.
    pub fn was_told(&self, word: &str) -> bool {
        self.command_line.iter().flat_map(|line| line.split_whitespace()).any(|own| own == word)
    }

    /// Whether the release is older than this one, where it is known.
    pub fn is_before(&self, major: u32, minor: u32) -> Option<bool> {
        let mut numbers = self.release.as_deref()?.split(|c: char| !c.is_ascii_digit());
        let own: (u32, u32) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
        Some(own < (major, minor))
    }
}

/// The security modules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Security {
    /// Those that are active, in the order in which they are asked; `None` where securityfs is not
    /// mounted.
    pub modules: Option<Vec<String>>,
    /// Whether AppArmor is on.
    pub apparmor: Option<bool>,
    /// Whether SELinux enforces; `None` when it is not there.
    pub selinux_enforcing: Option<bool>,
}

impl Facts {
    /// Reads the machine, and what lies under `state_directory`, which need not exist yet.
    pub fn gather(state_directory: &Path) -> Facts {
        let mut facts = Facts::below(&Tree::machine());
        // Kernels before 6.1 do not say; we run on it, so it is what we were built for.
        facts.architecture = facts.architecture.or(Some(std::env::consts::ARCH.to_owned()));
        facts.cpu.usable = std::thread::available_parallelism().ok().map(|count| count.get() as u32);
        facts.storage.extend(Storage::under("state", state_directory));
        facts
    }

    /// What the tree tells; what only a live machine knows is left out.
    pub(super) fn below(tree: &Tree) -> Facts {
        let kernel = Kernel::gather(tree);
        let cpu = Cpu::gather(tree);
        let mounts = mounts::parse(&tree.text("/proc/self/mountinfo").unwrap_or_default());
        let release = kernel.release.as_deref();
        let meminfo = tree.text("/proc/meminfo").unwrap_or_default();
        let os_release = tree.text("/etc/os-release").or_else(|| tree.text("/usr/lib/os-release"));
        Facts {
            distribution: os_release.and_then(|text| pretty_name(&text)),
            host_name: tree.line("/proc/sys/kernel/hostname"),
            architecture: tree.line("/proc/sys/kernel/arch"),
            memory_bytes: meminfo_bytes(&meminfo, "MemTotal"),
            virtualisation: Virtualisation::gather(tree, cpu.hypervisor_flag, release),
            containment: Containment::gather(tree, release),
            clock_source: tree.line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            cgroups: Cgroups::gather(tree, &mounts),
            security: Security::gather(tree),
            storage: Vec::new(),
            own: Own::gather(tree),
            pressure_available: tree.text("/proc/pressure/cpu").is_some(),
            boot_time: tree.text("/proc/stat").and_then(|text| boot_time(&text)),
            uptime: tree.line("/proc/uptime").and_then(|text| uptime(&text)),
            kernel,
            cpu,
        }
    }

    /// What lies under the path of this purpose.
    pub fn storage_for(&self, purpose: &str) -> Option<&Storage> {
        self.storage.iter().find(|storage| storage.purpose == purpose)
    }
}

impl Kernel {
    fn gather(tree: &Tree) -> Kernel {
        const WEAKNESSES: &str = "/sys/devices/system/cpu/vulnerabilities";
        let names = tree.names(WEAKNESSES).into_iter();
        let mitigations =
            names.filter_map(|name| tree.line(format!("{WEAKNESSES}/{name}")).map(|state| (name, state)));
        Kernel {
            release: tree.line("/proc/sys/kernel/osrelease"),
            version: tree.line("/proc/sys/kernel/version"),
            command_line: tree.line("/proc/cmdline"),
            mitigations: mitigations.collect(),
        }
    }
}

impl Security {
    fn gather(tree: &Tree) -> Security {
        let modules = tree.line("/sys/kernel/security/lsm");
        Security {
            modules: modules.map(|list| list.split(',').map(str::to_owned).collect()),
            apparmor: tree.line("/sys/module/apparmor/parameters/enabled").map(|flag| flag == "Y"),
            selinux_enforcing: tree.switch("/sys/fs/selinux/enforce"),
        }
    }
}

/// `PRETTY_NAME` of os-release(5), without the quotes that the shell would take away.
fn pretty_name(os_release: &str) -> Option<String> {
    let value = os_release.lines().find_map(|line| line.trim().strip_prefix("PRETTY_NAME="))?.trim();
    let quote = value.chars().next().filter(|first| matches!(first, '"' | '\''));
    let inner = quote.and_then(|quote| value.strip_prefix(quote)?.strip_suffix(quote)).unwrap_or(value);
    let name = inner.replace("\\\"", "\"").replace("\\$", "$").replace("\\\\", "\\");
    (!name.is_empty()).then_some(name)
}

/// A row of `/proc/meminfo`, which is in KiB, as bytes.
pub(super) fn meminfo_bytes(meminfo: &str, row: &str) -> Option<u64> {
    let value = meminfo.lines().find_map(|line| line.strip_prefix(row)?.strip_prefix(':'))?;
    let kib: u64 = value.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

fn boot_time(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

fn uptime(text: &str) -> Option<Nanos> {
    text.split_whitespace().next()?.parse().ok().map(Nanos::from_seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_name_themselves() {
        let debian = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian GNU/Linux\"\n";
        let alpine = "NAME=\"Alpine Linux\"\nID=alpine\nPRETTY_NAME='Alpine Linux v3.19'\n";
        let bare = "NAME=Fedora\nPRETTY_NAME=Fedora\n";
        let odd = "PRETTY_NAME=\"The \\\"Best\\\" \\$ystem\"\n";
        let names = [debian, alpine, bare, odd].map(|text| pretty_name(text).unwrap());
        assert_eq!(
            names,
            ["Debian GNU/Linux 12 (bookworm)", "Alpine Linux v3.19", "Fedora", "The \"Best\" $ystem"]
        );
        assert_eq!(pretty_name("NAME=x\n"), None);
        assert_eq!(pretty_name("PRETTY_NAME=\"\"\n"), None);
    }

    #[test]
    fn rows_of_meminfo_are_found_by_their_whole_name() {
        let text = "MemTotal:       24684084 kB\nSwapCached:            1 kB\nSwap:  2 kB\n";
        assert_eq!(meminfo_bytes(text, "MemTotal"), Some(24_684_084 * 1024));
        assert_eq!(meminfo_bytes(text, "Swap"), Some(2048));
        assert_eq!(meminfo_bytes(text, "Mem"), None);
    }

    #[test]
    fn releases_are_compared_as_numbers() {
        let kernel = |release: &str| Kernel { release: Some(release.to_owned()), ..Kernel::default() };
        assert_eq!(kernel("5.9.16-generic").is_before(5, 16), Some(true));
        assert_eq!(kernel("5.16").is_before(5, 16), Some(false));
        assert_eq!(kernel("unknown").is_before(5, 16), None);
    }

    #[test]
    fn boot_time_and_uptime_are_read() {
        assert_eq!(boot_time("cpu  1 2\nbtime 1763702340\nprocesses 5\n"), Some(1_763_702_340));
        assert_eq!(uptime("2401.16 3506.49\n"), Some(Nanos(2_401_160_000_000)));
        assert_eq!((boot_time(""), uptime("")), (None, None));
    }

    #[test]
    fn a_machine_that_tells_nothing_yields_no_facts() {
        let empty = tempfile::tempdir().unwrap();
        let facts = Facts::below(&Tree::planted(empty.path()));
        assert_eq!(facts.kernel, Kernel::default());
        assert_eq!(facts.cpu, Cpu::default());
        assert_eq!(facts.own, Own::default());
        assert_eq!(facts.virtualisation, Virtualisation::default());
        assert_eq!(facts.containment, Containment::Unknown);
        assert_eq!((facts.distribution, facts.memory_bytes, facts.clock_source), (None, None, None));
        assert!(!facts.pressure_available && facts.storage.is_empty());
    }

    #[test]
    fn this_machine_tells_the_essential() {
        let facts = Facts::gather(Path::new("/var/lib/no-such-directory/state"));
        assert!(facts.kernel.release.is_some() && facts.memory_bytes.is_some());
        assert!(facts.cpu.threads.is_some_and(|threads| threads >= 1));
        assert!(facts.own.capabilities.is_some() && facts.uptime.is_some());
        assert_eq!(
            facts.storage_for("state").unwrap().path.parent().unwrap(),
            Path::new("/var/lib/no-such-directory")
        );
    }
}

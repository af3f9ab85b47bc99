//! Facts about this machine, read once per run and stored in its `env.json`.
//!
//! Deliberately absent: engines and runtimes with their versions, which the subjects find.

use std::collections::BTreeMap;
use std::path::Path;

use super::cgroups::{Cgroups, CpuShare};
use super::cpu::Cpu;
use super::isolation::{Containment, Virtualisation};
use super::mounts::{Disk, Storage};
use super::own::Own;
use super::tree::Tree;

/// The facts about a machine that need more than reading one file.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The running kernel.
    pub kernel: Kernel,
    /// The processors.
    pub cpu: Cpu,
    /// The virtual machine, if this is one.
    pub virtualisation: Virtualisation,
    /// The container around dunnage, if any.
    pub containment: Containment,
    /// The cgroups.
    pub cgroups: Cgroups,
    /// The storage below the state directory, if that was given.
    pub storage: Option<Storage>,
    /// The privileges of this process.
    pub own: Own,
}

/// The running kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kernel {
    /// The release, such as `6.1.0-18-amd64`.
    pub release: Option<String>,
    /// The command line from the boot loader.
    pub command_line: Option<String>,
    /// Each known CPU vulnerability with the kernel's mitigation.
    pub mitigations: Vec<(String, String)>,
}

impl Kernel {
    fn gather(tree: &Tree) -> Kernel {
        const WEAKNESSES: &str = "/sys/devices/system/cpu/vulnerabilities";
        let state = |name: String| Some((tree.line(format!("{WEAKNESSES}/{name}"))?, name));
        let mitigations = tree.names(WEAKNESSES).into_iter().filter_map(state);
        Kernel {
            release: tree.line("/proc/sys/kernel/osrelease"),
            command_line: tree.line("/proc/cmdline"),
            mitigations: mitigations.map(|(state, name)| (name, state)).collect(),
        }
    }

    /// Whether the command line has this word, such as `mitigations=off`.
    pub fn was_told(&self, word: &str) -> bool {
        self.command_line.iter().flat_map(|line| line.split_whitespace()).any(|own| own == word)
    }

    /// Whether the release is older than this one, if it is known.
    pub fn is_before(&self, major: u32, minor: u32) -> Option<bool> {
        let mut numbers = self.release.as_deref()?.split(|c: char| !c.is_ascii_digit());
        let own: (u32, u32) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
        Some(own < (major, minor))
    }
}

impl Facts {
    /// Reads the machine, and the storage below `state_directory`, which may not exist yet.
    pub fn gather(state_directory: &Path) -> Facts {
        let mut facts = Facts::below(&Tree::machine());
        facts.cpu.usable = std::thread::available_parallelism().ok().map(|count| count.get() as u32);
        facts.storage = Storage::under(state_directory);
        facts
    }

    /// The facts in the tree, without those that only a live machine has.
    pub(super) fn below(tree: &Tree) -> Facts {
        let kernel = Kernel::gather(tree);
        let cpu = Cpu::gather(tree);
        let release = kernel.release.as_deref();
        Facts {
            virtualisation: Virtualisation::gather(tree, cpu.hypervisor_flag, release),
            containment: Containment::gather(tree, release),
            cgroups: Cgroups::gather(tree),
            storage: None,
            own: Own::gather(tree),
            kernel,
            cpu,
        }
    }
}

/// The name of the machine.
pub fn host_name() -> Option<String> {
    Tree::machine().line("/proc/sys/kernel/hostname")
}

/// The facts by their names in `env.json`. Unknown ones are left out.
pub fn told(state_directory: &Path) -> BTreeMap<String, String> {
    let (tree, facts) = (Tree::machine(), Facts::gather(state_directory));
    let number = |value: Option<u32>| value.map(|value| value.to_string());
    let os_release = tree.text("/etc/os-release").or_else(|| tree.text("/usr/lib/os-release"));
    // A hierarchy with only a name has none.
    let v1 = facts.cgroups.v1.iter().flat_map(|one| one.controllers.clone());
    let disk = Disk::under(state_directory).unwrap_or_default();
    let stated = [
        ("kernel", facts.kernel.release),
        ("kernel_version", tree.line("/proc/sys/kernel/version")),
        ("kernel_command_line", facts.kernel.command_line),
        ("distribution", os_release.and_then(|text| pretty_name(&text))),
        // Kernels before 6.1 do not report it; then it is the architecture of this build.
        ("architecture", tree.line("/proc/sys/kernel/arch").or(Some(std::env::consts::ARCH.to_owned()))),
        ("cpu", facts.cpu.model),
        ("cpu_sockets", number(facts.cpu.sockets)),
        ("cpu_cores", number(facts.cpu.cores)),
        ("cpu_threads", number(facts.cpu.threads)),
        ("cpu_usable", number(facts.cpu.usable)),
        ("memory_bytes", tree.memory("MemTotal").map(|bytes| bytes.to_string())),
        ("hypervisor", facts.virtualisation.hypervisor),
        ("inside", facts.containment.kind().map(str::to_owned)),
        ("clock_source", tree.line("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        ("cgroup_mode", Some(facts.cgroups.mode.name().to_owned())),
        ("cgroup_v1_controllers", Some(v1.collect::<Vec<_>>().join(","))),
        ("cgroup_v2_controllers", facts.cgroups.v2.map(|v2| v2.controllers.join(","))),
        ("cpu_share", CpuShare::gather(&tree).map(|share| share.name().to_owned())),
        ("security_modules", tree.line("/sys/kernel/security/lsm")),
        ("user", number(facts.own.user)),
        ("capabilities", facts.own.capabilities.map(|set| format!("{set:#x}"))),
        ("boot_time", tree.text("/proc/stat").and_then(|text| boot_time(&text)).map(|at| at.to_string())),
        ("state_filesystem", facts.storage.as_ref().map(|one| one.mount.filesystem.clone())),
        ("disk_model", disk.model),
        ("disk_kind", Some(disk.kind)),
        ("storage_state", facts.storage.map(|one| one.to_string())),
    ];
    let stated = stated.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let mitigations = facts.kernel.mitigations.into_iter();
    let mitigations = mitigations.map(|(name, state)| (format!("mitigation_{name}"), state));
    stated.chain(mitigations).filter(|(_, value)| !value.is_empty()).collect()
}

/// `PRETTY_NAME` of os-release(5), without shell quotes.
fn pretty_name(os_release: &str) -> Option<String> {
    let value = os_release.lines().find_map(|line| line.trim().strip_prefix("PRETTY_NAME="))?.trim();
    let quote = value.chars().next().filter(|first| matches!(first, '"' | '\''));
    let inner = quote.and_then(|quote| value.strip_prefix(quote)?.strip_suffix(quote)).unwrap_or(value);
    let name = inner.replace("\\\"", "\"").replace("\\$", "$").replace("\\\\", "\\");
    (!name.is_empty()).then_some(name)
}

fn boot_time(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
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
        let tree = Tree::planted(&[("/proc/meminfo", text)]);
        assert_eq!(tree.memory("MemTotal"), Some(24_684_084 * 1024));
        assert_eq!(tree.memory("Swap"), Some(2048));
        assert_eq!(tree.memory("Mem"), None);
    }

    #[test]
    fn releases_are_compared_as_numbers() {
        let kernel = |release: &str| Kernel { release: Some(release.to_owned()), ..Kernel::default() };
        assert_eq!(kernel("5.9.16-generic").is_before(5, 16), Some(true));
        assert_eq!(kernel("5.16").is_before(5, 16), Some(false));
        assert_eq!(kernel("unknown").is_before(5, 16), None);
    }

    #[test]
    fn the_boot_time_is_read() {
        assert_eq!(boot_time("cpu  1 2\nbtime 1763702340\nprocesses 5\n"), Some(1_763_702_340));
        assert_eq!(boot_time(""), None);
    }

    #[test]
    fn a_machine_that_tells_nothing_yields_no_facts() {
        let facts = Facts::below(&Tree::planted(&[]));
        assert_eq!(facts.kernel, Kernel::default());
        assert_eq!(facts.cpu, Cpu::default());
        assert_eq!(facts.own, Own::default());
        assert_eq!(facts.virtualisation, Virtualisation::default());
        assert_eq!(facts.containment, Containment::Unknown);
        assert_eq!(facts.storage, None);
    }

    #[test]
    fn this_machine_tells_the_essential() {
        let state = Path::new("/var/lib/no-such-directory/state");
        let facts = Facts::gather(state);
        assert!(facts.cpu.threads.is_some_and(|threads| threads >= 1));
        assert!(facts.own.capabilities.is_some());
        assert_eq!(facts.storage.unwrap().path, state);
        let told = told(state);
        assert!(
            ["kernel", "memory_bytes", "boot_time"].iter().all(|name| told.contains_key(*name)),
            "{told:?}"
        );
        assert!(told["storage_state"].starts_with("/var/lib/no-such-directory/state: "), "{told:?}");
    }
}

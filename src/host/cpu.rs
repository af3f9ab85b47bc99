//! The machine's processors, from `/proc/cpuinfo`, whose fields depend on the architecture, and from the topology in `/sys`,
//! whose fields do not.

use std::collections::BTreeSet;

use super::tree::Tree;

/// The processors that are online.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cpu {
    /// The model, as the kernel names it.
    pub model: Option<String>,
    /// Packages.
    pub sockets: Option<u32>,
    /// Cores of all packages.
    pub cores: Option<u32>,
    /// Hardware threads, which the kernel calls CPUs.
    pub threads: Option<u32>,
    /// How many of them this process may use at once, given its affinity and its cgroup's quota.
    pub usable: Option<u32>,
    /// The x86 flag that shows a hypervisor; `None` on other architectures.
    pub hypervisor_flag: Option<bool>,
}

impl Cpu {
    pub(super) fn gather(tree: &Tree) -> Cpu {
        let info = tree.text("/proc/cpuinfo").unwrap_or_default();
        let first = |wanted: &str| {
            let mut pairs = info.lines().filter_map(|line| line.split_once(':'));
            pairs.find(|(name, _)| name.trim() == wanted).map(|(_, value)| value.trim())
        };
        let online = tree.line("/sys/devices/system/cpu/online").and_then(|list| expand(&list));
        let count = |file: &str| {
            let place = |id| tree.line(format!("/sys/devices/system/cpu/cpu{id}/topology/{file}"));
            let places: Option<BTreeSet<_>> = online.iter().flatten().map(place).collect();
            places.map(|places| places.len() as u32).filter(|count| *count > 0)
        };
        let named = first("model name").or(first("Hardware")).map(str::to_owned);
        Cpu {
            model: named.or_else(|| arm_model(first)).or_else(|| tree.line("/proc/device-tree/model")),
            sockets: count("physical_package_id"),
            // Siblings share a core, so each distinct list of siblings is one core, independent of ids.
            cores: count("thread_siblings_list"),
            threads: online.as_ref().map(|online| online.len() as u32),
            usable: None,
            hypervisor_flag: first("flags").map(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
        }
    }
}

/// The numbers of a list such as `0-3,8`.
pub fn expand(list: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        numbers.extend(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?);
    }
    Some(numbers)
}

/// ARM reports only numbers for implementer and part; the most common ones have names here.
fn arm_model<'a>(first: impl Fn(&str) -> Option<&'a str>) -> Option<String> {
    let (implementer, part) = (first("CPU implementer")?, first("CPU part")?);
    let name = match (implementer, part) {
        ("0x41", "0xd03") => "ARM Cortex-A53",
        ("0x41", "0xd08") => "ARM Cortex-A72",
        ("0x41", "0xd0b") => "ARM Cortex-A76",
        ("0x41", "0xd0c") => "ARM Neoverse N1",
        ("0x41", "0xd40") => "ARM Neoverse V1",
        ("0x41", "0xd49") => "ARM Neoverse N2",
        ("0x41", "0xd4f") => "ARM Neoverse V2",
        ("0xc0", "0xac3") => "Ampere-1",
        _ => return Some(format!("implementer {implementer} part {part}")),
    };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTEL: &str = "\
processor\t: 0
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz
physical id\t: 0
siblings\t: 2
core id\t\t: 0
flags\t\t: fpu vme de hypervisor lahf_lm

processor\t: 1
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz
physical id\t: 0
core id\t\t: 0
flags\t\t: fpu vme de hypervisor lahf_lm
";
    const AMD: &str = "\
processor\t: 0
model name\t: AMD EPYC 7763 64-Core Processor
physical id\t: 0
core id\t\t: 0
flags\t\t: fpu vme svm

processor\t: 1
model name\t: AMD EPYC 7763 64-Core Processor
physical id\t: 1
core id\t\t: 0
flags\t\t: fpu vme svm
";
    const ARM: &str = "\
processor\t: 0
BogoMIPS\t: 243.75
Features\t: fp asimd evtstrm aes
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: 0xd0c
CPU revision\t: 1
";
    const RASPBERRY: &str = "\
processor\t: 0
model name\t: ARMv7 Processor rev 3 (v7l)
CPU implementer\t: 0x41
CPU part\t: 0xd08

Hardware\t: BCM2711
Model\t\t: Raspberry Pi 4 Model B Rev 1.1
";

    fn parse(text: &str) -> Cpu {
        Cpu::gather(&Tree::planted(&[("/proc/cpuinfo", text)]))
    }

    #[test]
    fn processors_are_called_what_the_kernel_calls_them() {
        let cpu = parse(INTEL);
        assert_eq!(cpu.model.as_deref(), Some("Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz"));
        assert_eq!(cpu.hypervisor_flag, Some(true));
        assert_eq!(parse(AMD).hypervisor_flag, Some(false));
        let arm = parse(ARM);
        assert_eq!((arm.model.as_deref(), arm.hypervisor_flag), (Some("ARM Neoverse N1"), None));
        assert_eq!(parse(RASPBERRY).model.as_deref(), Some("ARMv7 Processor rev 3 (v7l)"));
        let unknown = parse(&ARM.replace("0xd0c", "0xfff"));
        assert_eq!(unknown.model.as_deref(), Some("implementer 0x41 part 0xfff"));
        assert_eq!(parse(""), Cpu::default());
    }

    #[test]
    fn the_topology_counts_sockets_and_cores() {
        let counts = |topology: [(&str, &str); 2]| {
            let tree = Tree::planted(&[("/sys/devices/system/cpu/online", "0-1\n")]);
            for (id, (package, siblings)) in topology.into_iter().enumerate() {
                let place = format!("/sys/devices/system/cpu/cpu{id}/topology");
                tree.plant(&format!("{place}/physical_package_id"), package);
                tree.plant(&format!("{place}/thread_siblings_list"), siblings);
            }
            let cpu = Cpu::gather(&tree);
            (cpu.sockets, cpu.cores, cpu.threads)
        };
        assert_eq!(counts([("0", "0-1"), ("0", "0-1")]), (Some(1), Some(1), Some(2)));
        assert_eq!(counts([("0", "0"), ("1", "1")]), (Some(2), Some(2), Some(2)));
    }

    #[test]
    fn lists_of_numbers_expand() {
        assert_eq!(expand("0-2,8\n"), Some(vec![0, 1, 2, 8]));
        assert_eq!(expand("0"), Some(vec![0]));
        assert_eq!(expand("all"), None);
    }
}

//! Which processors has this machine? From `/proc/cpuinfo`, whose fields differ between
//! architectures, and from the topology in `/sys`, whose fields do not.

use super::tree::Tree;

/// The processors that are online.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cpu {
    /// The model in the kernel's words.
    pub model: Option<String>,
    /// Packages.
    pub sockets: Option<u32>,
    /// Cores of all packages.
    pub cores: Option<u32>,
    /// Hardware threads, which the kernel calls CPUs.
    pub threads: Option<u32>,
    /// How many of them this process may use at once, by its affinity and its control group's quota.
    pub usable: Option<u32>,
    /// The x86 flag by which a hypervisor makes itself known; `None` on other architectures.
    pub hypervisor_flag: Option<bool>,
}

impl Cpu {
    pub(super) fn gather(tree: &Tree) -> Cpu {
        let mut cpu = tree.text("/proc/cpuinfo").map(|text| parse(&text)).unwrap_or_default();
        let online = tree.line("/sys/devices/system/cpu/online").and_then(|list| expand(&list));
        if let Some(online) = online {
            cpu.threads = Some(online.len() as u32);
            let place = |id: &u32, file: &str| -> Option<String> {
                tree.line(format!("/sys/devices/system/cpu/cpu{id}/topology/{file}"))
            };
            let sockets: Option<Vec<_>> = online.iter().map(|id| place(id, "physical_package_id")).collect();
            // Siblings share a core, so each list of siblings is one core, whatever the ids say.
            let cores: Option<Vec<_>> = online.iter().map(|id| place(id, "thread_siblings_list")).collect();
            cpu.sockets = sockets.map(distinct).or(cpu.sockets);
            cpu.cores = cores.map(distinct).or(cpu.cores);
        }
        if cpu.model.is_none() {
            cpu.model = tree.line("/proc/device-tree/model");
        }
        cpu
    }
}

fn distinct<T: Ord>(mut values: Vec<T>) -> u32 {
    values.sort();
    values.dedup();
    values.len() as u32
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

/// What `/proc/cpuinfo` tells on x86 and ARM.
fn parse(text: &str) -> Cpu {
    let pairs = || {
        text.lines().filter_map(|line| line.split_once(':')).map(|(name, value)| (name.trim(), value.trim()))
    };
    let first = |wanted: &str| pairs().find(|(name, _)| *name == wanted).map(|(_, value)| value);
    let all = |wanted: &'static str| pairs().filter(move |(name, _)| *name == wanted);

    let threads = all("processor").count() as u32;
    let sockets: Vec<_> = all("physical id").map(|(_, id)| id).collect();
    // A core is a pair of package and number within it; both fields stand once per thread.
    let cores: Vec<_> = sockets.iter().copied().zip(all("core id").map(|(_, id)| id)).collect();
    let known = |count: u32| (count > 0).then_some(count);
    Cpu {
        model: first("model name").or(first("Hardware")).map(str::to_owned).or_else(|| arm_model(first)),
        threads: known(threads),
        sockets: known(distinct(sockets)),
        cores: known(distinct(cores)),
        usable: None,
        hypervisor_flag: first("flags").map(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
    }
}

/// ARM gives numbers of implementer and part only; the commonest are written out.
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

    #[test]
    fn an_intel_guest_with_two_threads_on_one_core() {
        let cpu = parse(INTEL);
        assert_eq!(cpu.model.as_deref(), Some("Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz"));
        assert_eq!((cpu.sockets, cpu.cores, cpu.threads), (Some(1), Some(1), Some(2)));
        assert_eq!(cpu.hypervisor_flag, Some(true));
    }

    #[test]
    fn an_amd_machine_with_the_same_core_number_in_two_sockets() {
        let cpu = parse(AMD);
        assert_eq!((cpu.sockets, cpu.cores, cpu.threads), (Some(2), Some(2), Some(2)));
        assert_eq!(cpu.hypervisor_flag, Some(false));
    }

    #[test]
    fn arm_tells_neither_topology_nor_hypervisor() {
        let cpu = parse(ARM);
        assert_eq!(cpu.model.as_deref(), Some("ARM Neoverse N1"));
        assert_eq!((cpu.sockets, cpu.cores, cpu.threads), (None, None, Some(1)));
        assert_eq!(cpu.hypervisor_flag, None);
        assert_eq!(parse(RASPBERRY).model.as_deref(), Some("ARMv7 Processor rev 3 (v7l)"));
        let unknown = parse(&ARM.replace("0xd0c", "0xfff"));
        assert_eq!(unknown.model.as_deref(), Some("implementer 0x41 part 0xfff"));
    }

    #[test]
    fn nothing_is_made_out_of_nothing() {
        assert_eq!(parse(""), Cpu::default());
    }

    #[test]
    fn lists_of_numbers_expand() {
        assert_eq!(expand("0-2,8\n"), Some(vec![0, 1, 2, 8]));
        assert_eq!(expand("0"), Some(vec![0]));
        assert_eq!(expand("all"), None);
    }
}

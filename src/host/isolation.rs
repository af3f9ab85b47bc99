//! Are we inside something: a virtual machine, or a container?
//!
//! Marks that an image leaves in its files (`/.dockerenv`) prove nothing by themselves, since
//! images are also booted as machines; a container is one that also has namespaces of its own.

use super::tree::Tree;

/// What virtual machine this is, if any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Virtualisation {
    /// Whether this is a guest; `None` where nothing tells.
    pub guest: Option<bool>,
    /// The hypervisor, such as `kvm`.
    pub hypervisor: Option<String>,
    /// Maker and product by the firmware (DMI), such as `QEMU Standard PC`.
    pub product: Option<String>,
}

/// Whether this process runs inside a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Containment {
    /// No container was found around us.
    Host,
    /// Inside one, of this kind.
    Inside(String),
    /// The kernel tells nothing about namespaces.
    Unknown,
}

/// The numbers of the initial namespaces (linux/nsfs.h): they are the same on every machine.
const INITIAL: &[(&str, u64)] = &[
    ("ipc", 0xEFFF_FFFF),
    ("uts", 0xEFFF_FFFE),
    ("user", 0xEFFF_FFFD),
    ("pid", 0xEFFF_FFFC),
    ("cgroup", 0xEFFF_FFFB),
    ("time", 0xEFFF_FFFA),
];

/// Whether this process is in the initial namespace of a kind, where the kernel tells.
pub(super) fn is_initial(tree: &Tree, kind: &str) -> Option<bool> {
    let target = tree.link(format!("/proc/self/ns/{kind}"))?;
    let number: u64 = target.split_once('[')?.1.trim_end_matches(']').parse().ok()?;
    INITIAL.iter().find(|(name, _)| *name == kind).map(|(_, initial)| number == *initial)
}

impl Virtualisation {
    pub(super) fn gather(tree: &Tree, flag: Option<bool>, kernel_release: Option<&str>) -> Virtualisation {
        let firmware = |file: &str| tree.line(format!("/sys/class/dmi/id/{file}"));
        let clocks = tree
            .line("/sys/devices/system/clocksource/clocksource0/available_clocksource")
            .unwrap_or_default();
        told_by(&Signs {
            flag,
            sys_hypervisor: tree.line("/sys/hypervisor/type"),
            device_tree: tree.line("/proc/device-tree/hypervisor/compatible"),
            maker: firmware("sys_vendor"),
            product: firmware("product_name"),
            clock_sources: clocks,
            kernel_release: kernel_release.unwrap_or_default().to_owned(),
        })
    }
}

#[derive(Default)]
struct Signs {
    flag: Option<bool>,
    sys_hypervisor: Option<String>,
    device_tree: Option<String>,
    maker: Option<String>,
    product: Option<String>,
    clock_sources: String,
    kernel_release: String,
}

/// Clock sources that only guests of a hypervisor have, by how their names begin.
const BY_CLOCK: &[(&str, &str)] = &[("kvm-clock", "kvm"), ("hyperv", "hyperv"), ("xen", "xen")];

/// What stands in maker and product; the first that is found counts.
const BY_FIRMWARE: &[(&str, &str)] = &[
    ("KVM", "kvm"),
    ("Google Compute Engine", "kvm"),
    ("OpenStack", "kvm"),
    ("QEMU", "qemu"),
    ("VMware", "vmware"),
    ("VirtualBox", "virtualbox"),
    ("Microsoft Corporation Virtual Machine", "hyperv"),
    ("Apple Virtualization", "apple"),
];

fn told_by(signs: &Signs) -> Virtualisation {
    let product = match (&signs.maker, &signs.product) {
        (Some(maker), Some(product)) => Some(format!("{maker} {product}")),
        (one, other) => one.clone().or_else(|| other.clone()),
    };
    let firmware = product.as_deref().unwrap_or_default();
    let by_firmware = BY_FIRMWARE.iter().find(|(words, _)| firmware.contains(words));
    let clocks: Vec<_> = signs.clock_sources.split_whitespace().collect();
    let by_clock = BY_CLOCK.iter().find(|(start, _)| clocks.iter().any(|clock| clock.starts_with(start)));
    // With the x86 flag clear, firmware and clocks may only describe a machine that cloud makers
    // sell without a hypervisor.
    let (own, guess) = match signs.flag {
        Some(false) => (None, None),
        _ => (
            signs.sys_hypervisor.clone().or(signs.device_tree.clone()),
            by_clock.or(by_firmware).map(|(_, name)| *name),
        ),
    };
    let wsl = signs.kernel_release.to_lowercase().contains("microsoft").then(|| "wsl".to_owned());
    let hypervisor = wsl.or(own).or(guess.map(str::to_owned));
    let guest = if hypervisor.is_some() { Some(true) } else { signs.flag };
    Virtualisation { guest, hypervisor, product }
}

impl Containment {
    pub(super) fn gather(tree: &Tree, kernel_release: Option<&str>) -> Containment {
        if kernel_release.is_some_and(|release| release.to_lowercase().contains("microsoft")) {
            // Under WSL every distribution has namespaces of its own, and nothing else is reachable.
            return Containment::Host;
        }
        let own_namespace = |kinds: &[&str]| -> Option<bool> {
            let known: Vec<_> = kinds.iter().filter_map(|kind| is_initial(tree, kind)).collect();
            (!known.is_empty()).then(|| known.contains(&false))
        };
        let Some(own_processes) = own_namespace(&["pid"]) else { return Containment::Unknown };
        let some = own_namespace(&["pid", "uts", "ipc", "cgroup"]).unwrap_or(false);
        let told = tree.line("/run/systemd/container").or_else(|| kind_by_files(tree));
        match (own_processes, some, told) {
            (_, true, Some(kind)) => Containment::Inside(kind),
            (true, _, None) => Containment::Inside("unknown kind".to_owned()),
            _ => Containment::Host,
        }
    }

    /// The kind of the container that we are in.
    pub fn kind(&self) -> Option<&str> {
        match self {
            Containment::Inside(kind) => Some(kind),
            Containment::Host | Containment::Unknown => None,
        }
    }
}

fn kind_by_files(tree: &Tree) -> Option<String> {
    let environment = tree.text("/proc/1/environ").unwrap_or_default();
    let told = environment.split('\0').find_map(|entry| entry.strip_prefix("container="));
    if let Some(kind) = told.filter(|kind| !kind.is_empty()) {
        return Some(kind.to_owned());
    }
    let files = [
        ("/run/secrets/kubernetes.io", "kubernetes"),
        ("/run/.containerenv", "podman"),
        ("/.dockerenv", "docker"),
    ];
    files.into_iter().find(|(path, _)| tree.has(path)).map(|(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn signs(flag: Option<bool>, maker: &str, product: &str, clocks: &str) -> Virtualisation {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        told_by(&Signs {
            flag,
            maker: some(maker),
            product: some(product),
            clock_sources: clocks.to_owned(),
            ..Signs::default()
        })
    }

    #[test]
    fn guests_are_told_by_flag_firmware_and_clocks() {
        let named = |found: Virtualisation| (found.guest, found.hypervisor.unwrap_or_default());
        assert_eq!(named(signs(Some(true), "", "", "tsc kvm-clock")), (Some(true), "kvm".into()));
        assert_eq!(
            named(signs(Some(true), "VMware, Inc.", "VMware7,1", "tsc")),
            (Some(true), "vmware".into())
        );
        assert_eq!(named(signs(Some(true), "", "", "tsc")), (Some(true), String::new()));
        assert_eq!(named(signs(Some(false), "Dell Inc.", "R740", "tsc hpet")), (Some(false), String::new()));
        assert_eq!(named(signs(Some(false), "Amazon EC2", "m5.metal", "tsc")), (Some(false), String::new()));
        assert_eq!(named(signs(None, "", "", "arch_sys_counter")), (None, String::new()));
        let arm = signs(None, "QEMU", "KVM Virtual Machine", "arch_sys_counter");
        assert_eq!(arm.product.as_deref(), Some("QEMU KVM Virtual Machine"));
        assert_eq!(named(arm), (Some(true), "kvm".into()));
    }

    fn machine(namespaces: &[(&str, u64)], files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("proc/self/ns");
        fs::create_dir_all(&own).unwrap();
        for (kind, number) in namespaces {
            symlink(format!("{kind}:[{number}]"), own.join(kind)).unwrap();
        }
        for file in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        root
    }

    fn found(namespaces: &[(&str, u64)], files: &[&str]) -> Containment {
        Containment::gather(&Tree::planted(machine(namespaces, files).path()), None)
    }

    const HOST_PID: (&str, u64) = ("pid", 0xEFFF_FFFC);
    const HOST_UTS: (&str, u64) = ("uts", 0xEFFF_FFFE);

    #[test]
    fn a_container_has_namespaces_of_its_own() {
        let inside = |kind: &str| Containment::Inside(kind.to_owned());
        assert_eq!(found(&[("pid", 7), ("uts", 8)], &[".dockerenv"]), inside("docker"));
        assert_eq!(found(&[HOST_PID, ("uts", 8)], &["run/.containerenv"]), inside("podman"));
        assert_eq!(found(&[("pid", 7), HOST_UTS], &[]), inside("unknown kind"));
    }

    #[test]
    fn an_image_booted_as_a_machine_is_no_container() {
        assert_eq!(found(&[HOST_PID, HOST_UTS], &[".dockerenv"]), Containment::Host);
        assert_eq!(found(&[HOST_PID, ("uts", 8)], &[]), Containment::Host);
        assert_eq!(found(&[], &[".dockerenv"]), Containment::Unknown);
    }
}

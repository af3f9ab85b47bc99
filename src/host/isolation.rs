//! Whether dunnage runs inside a virtual machine or a container.
//!
//! Files that an image contains (`/.dockerenv`) are not enough, because images are also booted as machines: a container also
//! has its own namespaces.

use super::tree::Tree;

/// The virtual machine that this is, if any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Virtualisation {
    /// Whether this is a guest; `None` if nothing shows it.
    pub guest: Option<bool>,
    /// The hypervisor, such as `kvm`.
    pub hypervisor: Option<String>,
}

/// Whether this process runs inside a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Containment {
    /// Not inside a container.
    Host,
    /// Inside a container of this kind.
    Inside(String),
    /// The kernel does not show namespaces.
    Unknown,
}

/// The numbers of the initial namespaces (linux/nsfs.h), which are the same on every machine.
const INITIAL: &[(&str, u64)] = &[
    ("ipc", 0xEFFF_FFFF),
    ("uts", 0xEFFF_FFFE),
    ("user", 0xEFFF_FFFD),
    ("pid", 0xEFFF_FFFC),
    ("cgroup", 0xEFFF_FFFB),
    ("time", 0xEFFF_FFFA),
];

/// Whether this process is in the initial namespace of a kind, if the kernel shows it.
pub(super) fn is_initial(tree: &Tree, kind: &str) -> Option<bool> {
    let target = tree.link(format!("/proc/self/ns/{kind}"))?;
    let number: u64 = target.split_once('[')?.1.trim_end_matches(']').parse().ok()?;
    INITIAL.iter().find(|(name, _)| *name == kind).map(|(_, initial)| number == *initial)
}

/// Clock sources that only guests have, by prefix.
const BY_CLOCK: &[(&str, &str)] = &[("kvm-clock", "kvm"), ("hyperv", "hyperv"), ("xen", "xen")];

/// Hypervisors by words in vendor and product; the first match counts.
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

impl Virtualisation {
    pub(super) fn gather(tree: &Tree, flag: Option<bool>, kernel_release: Option<&str>) -> Virtualisation {
        if is_wsl(kernel_release) {
            return Virtualisation { guest: Some(true), hypervisor: Some("wsl".to_owned()) };
        }
        if flag == Some(false) {
            // Firmware and clocks may look the same on bare-metal machines of cloud providers.
            return Virtualisation { guest: flag, hypervisor: None };
        }
        let firmware = |file: &str| tree.line(format!("/sys/class/dmi/id/{file}")).unwrap_or_default();
        let product = format!("{} {}", firmware("sys_vendor"), firmware("product_name"));
        let clocks = tree.line("/sys/devices/system/clocksource/clocksource0/available_clocksource");
        let mut clocks = clocks.iter().flat_map(|list| list.split_whitespace());
        let by_clock = clocks.find_map(|clock| BY_CLOCK.iter().find(|(start, _)| clock.starts_with(start)));
        let by_firmware = || BY_FIRMWARE.iter().find(|(words, _)| product.contains(words));
        let hypervisor = tree
            .line("/sys/hypervisor/type")
            .or_else(|| tree.line("/proc/device-tree/hypervisor/compatible"))
            .or_else(|| by_clock.or_else(by_firmware).map(|(_, name)| (*name).to_owned()));
        Virtualisation { guest: if hypervisor.is_some() { Some(true) } else { flag }, hypervisor }
    }
}

/// Under WSL, every distribution has its own namespaces, and nothing outside of them is reachable.
fn is_wsl(kernel_release: Option<&str>) -> bool {
    kernel_release.is_some_and(|release| release.to_lowercase().contains("microsoft"))
}

impl Containment {
    pub(super) fn gather(tree: &Tree, kernel_release: Option<&str>) -> Containment {
        if is_wsl(kernel_release) {
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

    /// The kind of the container around dunnage.
    pub fn kind(&self) -> Option<&str> {
        if let Containment::Inside(kind) = self { Some(kind) } else { None }
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
    use std::os::unix::fs::symlink;

    fn signs(flag: Option<bool>, maker: &str, product: &str, clocks: &str) -> Virtualisation {
        let tree = Tree::planted(&[
            ("/sys/class/dmi/id/sys_vendor", maker),
            ("/sys/class/dmi/id/product_name", product),
            ("/sys/devices/system/clocksource/clocksource0/available_clocksource", clocks),
        ]);
        Virtualisation::gather(&tree, flag, None)
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
        assert_eq!(named(arm), (Some(true), "kvm".into()));
    }

    fn found(namespaces: &[(&str, u64)], files: &[&str]) -> Containment {
        let files: Vec<_> = files.iter().map(|path| (*path, "")).collect();
        let tree = Tree::planted(&files);
        std::fs::create_dir_all(tree.at("/proc/self/ns")).unwrap();
        for (kind, number) in namespaces {
            symlink(format!("{kind}:[{number}]"), tree.at(format!("/proc/self/ns/{kind}"))).unwrap();
        }
        Containment::gather(&tree, None)
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

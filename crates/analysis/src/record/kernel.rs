//! The facts of a run that are comparable between a pack and a run directory: the name of the host, and the
//! arguments of the kernel that affect measurements.

/// The name of every host in a pack.
pub const HOST: &str = "host";

/// Arguments of the kernel that affect measurements, by the beginning of their names.
const ARGUMENTS: &str = "acpi amd_iommu amd_pstate apparmor audit cgroup clocksource cpufreq cpuidle default_hugepagesz elevator hpet \
    hugepages idle init_on_ intel_idle intel_iommu intel_pstate iommu irqaffinity isolcpus kpti l1tf lsm maxcpus mds \
    mem= mitigations nmi_watchdog no_timer_check noapic nohz nopti nosmt nospec nr_cpus numa page_poison preempt \
    processor. psi pti rcu_nocb security selinux skew_tick spec swapaccount transparent_hugepage \
    systemd.unified_cgroup_hierarchy systemd.legacy_systemd_cgroup_controller";

/// The part of the kernel's command line that a pack has too, so that a pack's can be compared with a run's.
pub fn shared_arguments(line: &str) -> String {
    // Arguments after two hyphens are for the first program.
    let own = line.split(" -- ").next().unwrap_or_default();
    let is_shared = |word: &&str| ARGUMENTS.split_whitespace().any(|known| word.starts_with(known));
    own.split_whitespace().filter(is_shared).collect::<Vec<_>>().join(" ")
}

//! What of a run is the same in a pack and in its directory, so that one can be compared with the other: the name of the
//! host, and what of the kernel's command line changes what is measured.

/// What every host is called in a pack.
pub const HOST: &str = "host";

/// Arguments of the kernel that change what is measured, by the beginning of their names.
const ARGUMENTS: &str = "acpi amd_iommu amd_pstate apparmor audit cgroup clocksource cpufreq cpuidle default_hugepagesz elevator hpet \
    hugepages idle init_on_ intel_idle intel_iommu intel_pstate iommu irqaffinity isolcpus kpti l1tf lsm maxcpus mds \
    mem= mitigations nmi_watchdog no_timer_check noapic nohz nopti nosmt nospec nr_cpus numa page_poison preempt \
    processor. psi pti rcu_nocb security selinux skew_tick spec swapaccount transparent_hugepage \
    systemd.unified_cgroup_hierarchy systemd.legacy_systemd_cgroup_controller";

/// What of the kernel's command line is in a pack too, so that one in a pack can be compared with one that is not.
pub fn shared_arguments(line: &str) -> String {
    // What follows two hyphens is for the first program.
    let own = line.split(" -- ").next().unwrap_or_default();
    let is_shared = |word: &&str| ARGUMENTS.split_whitespace().any(|known| word.starts_with(known));
    own.split_whitespace().filter(is_shared).collect::<Vec<_>>().join(" ")
}

//! Whether the kernel has the usual settings. Others make results hard to compare with those of other machines.

use super::{Check, Finding, View, check};
use crate::report::text::listed;

pub(super) const CHECKS: &[Check] = &[
    check("rcu", "removing mounts, namespaces and cgroups waits for RCU", |view| {
        let switch = |name: &str| view.tree.switch(format!("/sys/kernel/{name}"));
        let (what, name) = if switch("rcu_normal") == Some(true) {
            ("rcu_normal is 1: no wait is expedited, so starts are slower", "rcu_normal")
        } else if switch("rcu_expedited")? {
            ("rcu_expedited is 1: every wait is expedited, so starts are faster", "rcu_expedited")
        } else {
            return Some(Finding::ok("the kernel's default"));
        };
        let finding = Finding::warning(format!("{what} than by default"));
        Some(finding.command(format!("echo 0 | sudo tee /sys/kernel/{name}")))
    }),
    check("ipv6", "every new network namespace sets up IPv6, if the kernel has it", |view| {
        if view.tree.has("/proc/sys/net") && !view.tree.has("/proc/sys/net/ipv6") {
            let what = "the kernel has no IPv6: starts with a network do less than by default";
            return Some(
                Finding::warning(what).advice("boot without `ipv6.disable=1` and with the module `ipv6`"),
            );
        }
        let is_off = view.tree.switch("/proc/sys/net/ipv6/conf/all/disable_ipv6")?;
        Finding::warning("disabled: setting up bridge interfaces does less than by default")
            .command("sudo sysctl -w net.ipv6.conf.all.disable_ipv6=0")
            .unless(!is_off, "on (default)")
    }),
    check("audit", "with audit on, system calls of most tasks take the slow path", |view| {
        Some(match view.measured.audit {
            Some(true) => Finding::warning("on: system calls take the slow path in and out of the kernel")
                .command("sudo auditctl -e 0"),
            Some(false) => Finding::ok("off"),
            None => Finding::not_applicable("not reported by the kernel (no audit, or no CAP_AUDIT_CONTROL)"),
        })
    }),
    check("tracing", "an active tracer slows down the functions that it traces", |view| {
        let tracer = |root: &str| view.tree.line(format!("{root}/tracing/current_tracer"));
        let tracer = tracer("/sys/kernel").or_else(|| tracer("/sys/kernel/debug"));
        Some(match tracer.as_deref() {
            Some("nop") => Finding::ok("no active tracer"),
            Some(tracer) => {
                Finding::warning(format!("the tracer `{tracer}` is active and slows down the kernel"))
                    .command("echo nop | sudo tee /sys/kernel/tracing/current_tracer")
            }
            None => Finding::not_applicable("tracefs is not mounted or not readable"),
        })
    }),
    check("mitigations", "mitigations make entering the kernel slower", |view| {
        let kernel = &view.facts.kernel;
        kernel.command_line.as_ref()?;
        if kernel.was_told("mitigations=off") {
            let what = "off: system calls are cheaper than by default";
            return Some(Finding::warning(what).advice("boot without `mitigations=off`"));
        }
        let open = kernel.mitigations.iter().filter(|(_, state)| state.starts_with("Vulnerable"));
        let open = listed(open.map(|(name, _)| name), ", ");
        let none = if open.is_empty() { String::new() } else { format!("; none for {open}") };
        Some(Finding::ok(format!("not disabled{none}")))
    }),
    // Kernels before 5.16, and later ones with an option, disable speculative features for every task with a filter. That adds
    // to the apparent cost of a filter.
    check(
        "store-bypass",
        "some kernels enable SSBD for tasks with a seccomp filter, which makes the filter look slower",
        |view| {
            let own = view.tree.row("/proc/self/status", "Speculation_Store_Bypass");
            if let Some(own) = own.filter(|own| pays(own) && !own.starts_with("globally")) {
                return Some(baseline_pays("SSBD", &own));
            }
            let state = weakness(view, "spec_store_bypass")?;
            Some(match state.contains("seccomp") {
                true => filter_pays("SSBD", "spec_store_bypass_disable=prctl"),
                false => Finding::ok(format!("not changed by a filter ({state})")),
            })
        },
    ),
    check("indirect-branches", "some kernels enable STIBP for every task with a seccomp filter", |view| {
        let own = view.tree.row("/proc/self/status", "SpeculationIndirectBranch");
        if let Some(own) = own.filter(|own| pays(own) && own.starts_with("conditional")) {
            return Some(baseline_pays("STIBP", &own));
        }
        let state = weakness(view, "spectre_v2")?;
        let kernel = &view.facts.kernel;
        let told = |way: &str| kernel.was_told(&format!("spectre_v2_user={way}"));
        let by_default =
            kernel.is_before(5, 16) == Some(true) && !["prctl", "on", "off"].into_iter().any(told);
        if state.contains("STIBP: conditional") && (told("seccomp") || by_default) {
            return Some(filter_pays("STIBP", "spectre_v2_user=prctl"));
        }
        let stibp = state.split([';', ',']).map(str::trim).find(|part| part.starts_with("STIBP"));
        Some(Finding::ok(format!("not changed by a filter ({})", stibp.unwrap_or("no STIBP"))))
    }),
    check("security-modules", "security modules are consulted at many steps of a start", |view| {
        let enforcing = match view.tree.switch("/sys/fs/selinux/enforce") {
            Some(true) => ", SELinux enforcing",
            Some(false) => ", SELinux permissive",
            None => "",
        };
        let apparmor = view.tree.line("/sys/module/apparmor/parameters/enabled");
        Some(match view.tree.line("/sys/kernel/security/lsm") {
            Some(modules) => Finding::ok(format!("{}{enforcing}", modules.replace(',', ", "))),
            None if apparmor.as_deref() == Some("Y") => Finding::ok("AppArmor"),
            None => Finding::not_applicable("securityfs is not mounted"),
        })
    }),
];

/// The kernel's report on a weakness of the processor.
fn weakness<'a>(view: &'a View, name: &str) -> Option<&'a str> {
    let mut all = view.facts.kernel.mitigations.iter();
    all.find(|(known, _)| known == name).map(|(_, state)| state.as_str())
}

/// Whether this process already pays, from `/proc/PID/status`.
fn pays(own: &str) -> bool {
    own.contains("mitigated") || own.contains("disabled")
}

fn baseline_pays(what: &str, own: &str) -> Finding {
    Finding::warning(format!(
        "dunnage itself runs with {what} (\"{own}\"), so `bare` and all other subjects pay for it"
    ))
    .advice("start dunnage from a session without a seccomp filter or `prctl` that enables it")
}

fn filter_pays(what: &str, option: &str) -> Finding {
    Finding::note(format!(
        "tasks with a seccomp filter run with {what}, which adds to the apparent cost of the filter"
    ))
    .advice(format!("to separate the two costs, boot with `{option}`, the default since Linux 5.16"))
}

#[cfg(test)]
mod tests {
    use super::super::State::{self, *};
    use super::super::View;
    use super::super::found;

    fn state(check: &str, change: impl Fn(&mut View)) -> State {
        found(check, change).state
    }

    #[test]
    fn hastened_and_never_hastened_waiting_is_told() {
        assert_eq!(state("rcu", |v| v.tree.plant("/sys/kernel/rcu_expedited", "1")), Warning);
        assert_eq!(state("rcu", |v| v.tree.plant("/sys/kernel/rcu_normal", "1")), Warning);
        assert_eq!(state("rcu", |v| v.tree.clear("/sys/kernel/rcu_normal")), Ok);
    }

    #[test]
    fn ipv6_is_there_and_on_by_default() {
        assert_eq!(state("ipv6", |v| v.tree.plant("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1")), Warning);
        assert_eq!(state("ipv6", |v| v.tree.clear("/proc/sys/net/ipv6")), Warning);
        assert_eq!(state("ipv6", |_| ()), Ok);
    }

    #[test]
    fn audit_and_tracers_slow_the_kernel_down() {
        assert_eq!(state("audit", |v| v.measured.audit = Some(true)), Warning);
        assert_eq!(state("audit", |_| ()), Ok);
        assert_eq!(state("audit", |v| v.measured.audit = None), NotApplicable);
        assert_eq!(
            state("tracing", |v| v.tree.plant("/sys/kernel/tracing/current_tracer", "function")),
            Warning
        );
        assert_eq!(state("tracing", |_| ()), Ok);
    }

    #[test]
    fn mitigations_are_on_unless_switched_off_by_the_very_word() {
        let told = |words: &str| {
            state("mitigations", |view| view.facts.kernel.command_line = Some(words.to_owned()))
        };
        assert_eq!(told("quiet mitigations=off"), Warning);
        assert_eq!(told("quiet mitigations=auto,nosmt"), Ok);
        assert_eq!(told("quiet xmitigations=off"), Ok);
    }

    #[test]
    fn security_modules_are_shown() {
        let shown = found("security-modules", |v| v.tree.plant("/sys/fs/selinux/enforce", "1"));
        assert_eq!(shown.what, "capability, apparmor, SELinux enforcing");
        assert_eq!(state("security-modules", |v| v.tree.clear("/sys/kernel/security/lsm")), NotApplicable);
    }

    fn with(check: &str, release: &str, weakness: &str, state: &str, words: &str) -> State {
        let change = |view: &mut View| {
            let kernel = &mut view.facts.kernel;
            kernel.release = Some(release.to_owned());
            kernel.mitigations = vec![(weakness.to_owned(), state.to_owned())];
            kernel.command_line = Some(words.to_owned());
        };
        found(check, change).state
    }

    #[test]
    fn ssbd_by_seccomp_is_noted() {
        let by = |way: &str| {
            let state = format!("Mitigation: Speculative Store Bypass disabled via {way}");
            with("store-bypass", "5.10.0-28-amd64", "spec_store_bypass", &state, "")
        };
        assert_eq!((by("prctl and seccomp"), by("prctl")), (Note, Ok));
        assert_eq!(state("store-bypass", |_| ()), Ok);
    }

    #[test]
    fn stibp_by_seccomp_is_noted_where_it_is_the_default_or_asked_for() {
        const CONDITIONAL: &str = "Mitigation: Retpolines; STIBP: conditional; RSB filling";
        let told = |release: &str, state: &str, words: &str| {
            with("indirect-branches", release, "spectre_v2", state, words)
        };
        assert_eq!(told("5.15.0-100-generic", CONDITIONAL, ""), Note);
        assert_eq!(told("5.15.0-100-generic", CONDITIONAL, "spectre_v2_user=prctl"), Ok);
        assert_eq!(told("5.16.0", CONDITIONAL, ""), Ok);
        assert_eq!(told("6.1.0", CONDITIONAL, "spectre_v2_user=seccomp"), Note);
        assert_eq!(told("5.15.0", "Mitigation: Retpolines; STIBP: disabled; RSB filling", ""), Ok);
    }

    #[test]
    fn a_baseline_that_pays_already_is_told() {
        let own = |check: &str, row: &str, words: &str| {
            state(check, |v| v.tree.plant("/proc/self/status", &format!("{row}:\t{words}\n")))
        };
        let bypass = |words: &str| own("store-bypass", "Speculation_Store_Bypass", words);
        assert_eq!((bypass("thread force mitigated"), bypass("thread mitigated")), (Warning, Warning));
        for fine in ["thread vulnerable", "globally mitigated", "not vulnerable"] {
            assert_eq!(bypass(fine), Ok);
        }
        let branches = |words: &str| own("indirect-branches", "SpeculationIndirectBranch", words);
        assert_eq!(
            (branches("conditional force disabled"), branches("conditional disabled")),
            (Warning, Warning)
        );
        assert_eq!((branches("conditional enabled"), branches("always enabled")), (Ok, Ok));
    }
}

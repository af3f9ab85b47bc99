//! Is the kernel set as kernels usually are? What is not makes figures incomparable with others.

use super::{Finding, View};

/// Mounts, namespaces and control groups wait for readers (RCU) when they are taken apart or moved.
pub(super) fn rcu(view: &View) -> Finding {
    match (view.settings.rcu_normal, view.settings.rcu_expedited) {
        (Some(true), _) => Finding::warning(
            "rcu_normal is 1: nothing is hastened, so starts are slower than on a default machine",
        )
        .command("echo 0 | sudo tee /sys/kernel/rcu_normal"),
        (_, Some(true)) => Finding::warning(
            "rcu_expedited is 1: waiting is hastened, so starts are quicker than on a default machine",
        )
        .command("echo 0 | sudo tee /sys/kernel/rcu_expedited"),
        (_, Some(false)) => Finding::ok("the kernel's default"),
        (_, None) => Finding::not_applicable("the kernel does not tell"),
    }
}

/// Every new network namespace and interface sets up IPv6 too, where it is there.
pub(super) fn ipv6(view: &View) -> Finding {
    match (view.settings.ipv6_present, view.settings.ipv6_disabled) {
        (Some(false), _) => Finding::warning(
            "the kernel has no IPv6: starts with a network do less than on a default machine",
        )
        .advice("boot without `ipv6.disable=1`, with the module `ipv6`"),
        (_, Some(true)) => {
            Finding::warning("switched off: interfaces of bridges do less than on a default machine")
                .command("sudo sysctl -w net.ipv6.conf.all.disable_ipv6=0")
        }
        (_, Some(false)) => Finding::ok("on, as by default"),
        (_, None) => Finding::not_applicable("the kernel does not tell"),
    }
}

/// With audit on, each system call of most tasks takes the slow way in and out of the kernel.
pub(super) fn audit(view: &View) -> Finding {
    match view.settings.audit {
        Some(true) => Finding::warning("on: system calls take the slow way in and out of the kernel")
            .command("sudo auditctl -e 0"),
        Some(false) => Finding::ok("off"),
        None => Finding::not_applicable("the kernel does not tell (no audit, or no CAP_AUDIT_CONTROL)"),
    }
}

/// A tracer in force slows down what it traces.
pub(super) fn tracing(view: &View) -> Finding {
    match view.settings.tracer.as_deref() {
        Some("nop") => Finding::ok("no tracer is in force"),
        Some(tracer) => {
            Finding::warning(format!("the tracer `{tracer}` is in force and slows the kernel down"))
                .command("echo nop | sudo tee /sys/kernel/tracing/current_tracer")
        }
        None => Finding::not_applicable("tracefs is not mounted, or not readable"),
    }
}

/// Mitigations make entering the kernel dearer; without them figures are not a default machine's.
pub(super) fn mitigations(view: &View) -> Finding {
    let kernel = &view.facts.kernel;
    if kernel.was_told("mitigations=off") {
        return Finding::warning("off: system calls are cheaper than on a default machine")
            .advice("boot without `mitigations=off`");
    }
    if kernel.command_line.is_none() {
        return Finding::not_applicable("the kernel's command line is unknown");
    }
    let open = kernel.mitigations.iter().filter(|(_, state)| state.starts_with("Vulnerable"));
    let open: Vec<_> = open.map(|(name, _)| name.as_str()).collect();
    Finding::ok(match open.is_empty() {
        true => "not switched off".to_owned(),
        false => format!("not switched off; none for {}", open.join(", ")),
    })
}

/// Nothing to mend; but modules are asked at many steps of a start.
pub(super) fn security_modules(view: &View) -> Finding {
    let security = &view.facts.security;
    let enforcing = match security.selinux_enforcing {
        Some(true) => ", SELinux enforcing",
        Some(false) => ", SELinux permissive",
        None => "",
    };
    match (&security.modules, security.apparmor) {
        (Some(modules), _) => Finding::ok(format!("{}{enforcing}", modules.join(", "))),
        (None, Some(true)) => Finding::ok("AppArmor"),
        (None, _) => Finding::not_applicable("securityfs is not mounted"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::State::{self, *};
    use super::super::view::planted;
    use super::*;

    fn state(check: fn(&View) -> Finding, change: impl Fn(&mut View)) -> State {
        let mut view = planted();
        change(&mut view);
        check(&view).state
    }

    #[test]
    fn hastened_and_never_hastened_waiting_is_told() {
        assert_eq!(state(rcu, |v| v.settings.rcu_expedited = Some(true)), Warning);
        assert_eq!(state(rcu, |v| v.settings.rcu_normal = Some(true)), Warning);
        assert_eq!(state(rcu, |v| v.settings.rcu_normal = None), Ok);
    }

    #[test]
    fn ipv6_is_there_and_on_by_default() {
        assert_eq!(state(ipv6, |v| v.settings.ipv6_disabled = Some(true)), Warning);
        assert_eq!(state(ipv6, |v| v.settings.ipv6_present = Some(false)), Warning);
        assert_eq!(state(ipv6, |_| ()), Ok);
    }

    #[test]
    fn audit_and_tracers_slow_the_kernel_down() {
        assert_eq!(state(audit, |v| v.settings.audit = Some(true)), Warning);
        assert_eq!(state(audit, |_| ()), Ok);
        assert_eq!(state(audit, |v| v.settings.audit = None), NotApplicable);
        assert_eq!(state(tracing, |v| v.settings.tracer = Some("function".into())), Warning);
        assert_eq!(state(tracing, |_| ()), Ok);
    }

    #[test]
    fn mitigations_are_on_unless_switched_off_by_the_very_word() {
        let told =
            |words: &str| state(mitigations, |view| view.facts.kernel.command_line = Some(words.to_owned()));
        assert_eq!(told("quiet mitigations=off"), Warning);
        assert_eq!(told("quiet mitigations=auto,nosmt"), Ok);
        assert_eq!(told("quiet xmitigations=off"), Ok);
    }

    #[test]
    fn security_modules_are_shown() {
        let mut view = planted();
        view.facts.security.selinux_enforcing = Some(true);
        assert_eq!(security_modules(&view).what, "capability, apparmor, SELinux enforcing");
        view.facts.security.modules = None;
        assert_eq!(security_modules(&view).state, NotApplicable);
    }
}

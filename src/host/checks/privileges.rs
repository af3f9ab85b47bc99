//! May we do what starting containers needs, and are we where the machine's clocks and system calls
//! are its own?

use super::{Finding, View};
use crate::host::isolation::Containment;
use crate::host::own::Capability;

/// Root can measure everything; an ordinary user only what needs no daemon and no runtime as root.
pub(super) fn user(view: &View) -> Finding {
    let own = &view.facts.own;
    match (own.is_root(), own.initial_user_namespace) {
        (Some(true), Some(false)) => Finding::warning("root of a user namespace only, not of the machine")
            .advice("run dunnage outside of the user namespace"),
        (Some(true), _) => Finding::ok("root"),
        (Some(false), _) => Finding::warning(format!(
            "user {}: runtimes and CPU accounting need root; bare, floor and rootless engines remain",
            own.user.unwrap_or_default()
        ))
        .advice("run it as `sudo dunnage …`"),
        (None, _) => Finding::not_applicable("the user is unknown"),
    }
}

/// Asks for a capability of root; who is not root is told so by [`user`] already.
fn of_root(view: &View, capability: Capability, name: &str, missing: impl Fn() -> Finding) -> Finding {
    match (view.facts.own.is_root(), view.facts.own.can(capability)) {
        (_, Some(true)) => Finding::ok(format!("{name} is there")),
        (Some(true), Some(false)) => missing(),
        (Some(false), Some(false)) => Finding::not_applicable("not root"),
        _ => Finding::not_applicable("our capabilities are unknown"),
    }
}

/// Mounts, namespaces and control groups all ask for it.
pub(super) fn sys_admin(view: &View) -> Finding {
    of_root(view, Capability::SysAdmin, "CAP_SYS_ADMIN", || {
        Finding::problem(
            "root without CAP_SYS_ADMIN: no mounts, namespaces or control groups, so no containers",
        )
        .advice("give it to this session; in a container: `--cap-add SYS_ADMIN` or `--privileged`")
    })
}

/// Who may not make interfaces has containers without a network, or with the host's.
pub(super) fn net_admin(view: &View) -> Finding {
    of_root(view, Capability::NetAdmin, "CAP_NET_ADMIN", || {
        Finding::warning("root without CAP_NET_ADMIN: no bridges, no veth pairs, no networks of engines")
            .advice("give it to this session, or measure with `net=none` and `net=host` only")
    })
}

/// The fourteen that Docker gives to every container, by their bits.
const OF_CONTAINERS: [(u32, &str); 14] = [
    (0, "CHOWN"),
    (1, "DAC_OVERRIDE"),
    (3, "FOWNER"),
    (4, "FSETID"),
    (5, "KILL"),
    (6, "SETGID"),
    (7, "SETUID"),
    (8, "SETPCAP"),
    (10, "NET_BIND_SERVICE"),
    (13, "NET_RAW"),
    (18, "SYS_CHROOT"),
    (27, "MKNOD"),
    (29, "AUDIT_WRITE"),
    (31, "SETFCAP"),
];

/// Runtimes refuse to start a container that is to have more than they have.
pub(super) fn container_capabilities(view: &View) -> Finding {
    let own = &view.facts.own;
    let (Some(set), Some(true)) = (own.capabilities, own.is_root()) else {
        return Finding::not_applicable(match own.is_root() {
            Some(false) => "not root",
            _ => "our capabilities are unknown",
        });
    };
    let missing: Vec<_> = OF_CONTAINERS.iter().filter(|(bit, _)| set >> bit & 1 == 0).collect();
    if !missing.is_empty() {
        let names: Vec<_> = missing.iter().map(|(_, name)| format!("CAP_{name}")).collect();
        return Finding::problem(format!(
            "root without {}: runtimes cannot give it to containers",
            names.join(", ")
        ))
        .advice("give it to this session; in a container: `--cap-add` or `--privileged`");
    }
    let last = view.settings.last_capability.filter(|last| *last < 63);
    let all = last.map(|last| (1u64 << (last + 1)) - 1);
    match all {
        Some(all) if set & all != all => Finding::note(
            "all that containers get by default, but not all there are: `--privileged` fails (\"unable to apply caps\")",
        ),
        _ => Finding::ok("all that containers get by default"),
    }
}

/// A machine with fewer can still measure; but not many containers at once.
const NAMESPACES_WANTED: u64 = 1000;

pub(super) fn namespace_limits(view: &View) -> Finding {
    let limits = &view.settings.namespace_limits;
    let Some((name, most)) = limits.iter().min_by_key(|(_, most)| *most) else {
        return Finding::not_applicable("the kernel does not tell");
    };
    let more = format!("sudo sysctl -w user.{name}=100000");
    match *most {
        0 => Finding::problem(format!("user.{name} is 0: no container can be made")).command(more),
        most if most < NAMESPACES_WANTED => {
            Finding::warning(format!("user.{name} is {most}: few containers at once")).command(more)
        }
        most => Finding::ok(format!("at least {most} of each kind")),
    }
}

/// Written by `useradd` and `usermod`; runtimes of dunnage itself do without.
pub(super) fn subordinate_ids(view: &View) -> Finding {
    match (view.settings.subordinate_ids, view.facts.own.is_root()) {
        (None, _) => Finding::not_applicable("`/etc/subuid` cannot be read"),
        (Some(0), Some(false)) => Finding::warning("nobody has any: rootless engines map no user but one")
            .command("sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 \"$USER\""),
        (Some(0), _) => Finding::note("nobody has any: no rootless engine for other users"),
        (Some(count), _) => {
            Finding::ok(format!("{count} {} some", if count == 1 { "user has" } else { "users have" }))
        }
    }
}

/// Without it limits can only be lowered, and engines like to raise them.
pub(super) fn sys_resource(view: &View) -> Finding {
    of_root(view, Capability::SysResource, "CAP_SYS_RESOURCE", || {
        let within = [("nofile", view.settings.open_files_limit), ("nproc", view.settings.processes_limit)];
        let limits = within.iter().filter_map(|(name, limit)| {
            let limit = limit.filter(|limit| *limit != u64::MAX)?;
            Some(format!(" --ulimit {name}={limit}:{limit}"))
        });
        Finding::warning(
            "root without CAP_SYS_RESOURCE: limits cannot be raised, so podman's default ulimits and \
             `--privileged` fail",
        )
        .advice(format!("stay within this host's limits: `podman run{}`", limits.collect::<String>()))
    })
}

/// CPU time of short-lived helpers is watched on all CPUs through perf events.
pub(super) fn cpu_accounting(view: &View) -> Finding {
    let own = &view.facts.own;
    let may = |capability| own.can(capability) == Some(true);
    let Some(paranoid) = view.settings.perf_event_paranoid else {
        return match own.capabilities {
            Some(_) => Finding::warning("the kernel has no perf events: CPU time cannot be accounted")
                .advice("use a kernel with CONFIG_PERF_EVENTS"),
            None => Finding::not_applicable("perf events are unknown"),
        };
    };
    if may(Capability::Perfmon) || may(Capability::SysAdmin) {
        return Finding::ok("perf events on all CPUs are allowed by capability");
    }
    if paranoid <= 0 {
        return Finding::ok(format!(
            "perf events on all CPUs are allowed to all (perf_event_paranoid {paranoid})"
        ));
    }
    Finding::warning(format!(
        "perf events on all CPUs are refused (no CAP_PERFMON, perf_event_paranoid {paranoid}): no CPU times"
    ))
    .command("sudo sysctl -w kernel.perf_event_paranoid=0")
}

/// Needed by whoever is not root, and by rootless subjects.
pub(super) fn user_namespaces(view: &View) -> Finding {
    let settings = &view.settings;
    let forbidden = |what: &str, fix: &str| {
        let finding = match view.facts.own.is_root() {
            Some(false) => Finding::problem(format!("{what}: no container without root")),
            _ => Finding::warning(format!("{what}: rootless subjects cannot run")),
        };
        finding.command(fix)
    };
    if settings.max_user_namespaces == Some(0) {
        return forbidden("user.max_user_namespaces is 0", "sudo sysctl -w user.max_user_namespaces=10000");
    }
    if settings.unprivileged_userns_clone == Some(false) {
        let fix = "sudo sysctl -w kernel.unprivileged_userns_clone=1";
        return forbidden("kernel.unprivileged_userns_clone is 0", fix);
    }
    if settings.apparmor_restricts_userns == Some(true) {
        let fix = "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0";
        return forbidden("AppArmor restricts user namespaces of ordinary users", fix);
    }
    match settings.max_user_namespaces {
        Some(most) => Finding::ok(format!("ordinary users may make them (at most {most})")),
        None => Finding::not_applicable("the kernel does not tell"),
    }
}

/// Rootless engines map users through set-user-id helpers, which then have no power.
pub(super) fn no_new_privileges(view: &View) -> Finding {
    match view.facts.own.no_new_privileges {
        Some(true) => Finding::warning("`no_new_privs` is set: `newuidmap` and `sudo` give nothing")
            .advice("start dunnage from a session without it"),
        Some(false) => Finding::ok("not set"),
        None => Finding::not_applicable("the kernel does not tell"),
    }
}

/// A filter on us lies on `bare` too, so the baseline would pay for isolation.
pub(super) fn seccomp(view: &View) -> Finding {
    match view.facts.own.seccomp_filtered {
        Some(true) => Finding::warning("a seccomp filter lies on dunnage itself: `bare` pays for it too")
            .advice(
                "run dunnage outside of the sandbox; in a container: `--security-opt seccomp=unconfined`",
            ),
        Some(false) => Finding::ok("no filter on dunnage itself"),
        None => Finding::not_applicable("the kernel has no seccomp, or does not tell"),
    }
}

/// Inside a container `bare` is not bare.
pub(super) fn container(view: &View) -> Finding {
    match &view.facts.containment {
        Containment::Inside(kind) => {
            Finding::warning(format!("dunnage runs inside a container ({kind}): `bare` is not bare"))
                .advice("run dunnage on the machine itself")
        }
        Containment::Host => Finding::ok("dunnage runs on the machine itself"),
        Containment::Unknown => Finding::not_applicable("the kernel does not tell"),
    }
}

/// Daemons start containers in their own time namespace; stamps compare only within one.
pub(super) fn time_namespace(view: &View) -> Finding {
    match view.facts.own.initial_time_namespace {
        Some(false) => {
            Finding::warning("not the machine's time namespace: stamps of daemons' containers differ")
                .advice("run it as `sudo nsenter --target 1 --time dunnage …`")
        }
        Some(true) => Finding::ok("the machine's own"),
        None => Finding::not_applicable("the kernel has no time namespaces"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::State::{self, *};
    use super::super::view::planted;
    use super::*;
    use crate::sys::raw;

    fn state(check: fn(&View) -> Finding, change: impl Fn(&mut View)) -> (State, String) {
        let mut view = planted();
        change(&mut view);
        let finding = check(&view);
        (finding.state, finding.fix.map(|fix| fix.to_string()).unwrap_or_default())
    }

    fn without(view: &mut View, capability: Capability) {
        view.facts.own.capabilities = Some(!(1 << capability as u32));
    }

    #[test]
    fn an_ordinary_user_and_the_root_of_a_namespace_are_not_root() {
        assert_eq!(state(user, |v| v.facts.own.user = Some(1000)).0, Warning);
        assert_eq!(state(user, |v| v.facts.own.initial_user_namespace = Some(false)).0, Warning);
        assert_eq!(state(user, |v| v.facts.own.initial_user_namespace = None).0, Ok);
    }

    #[test]
    fn root_needs_its_capabilities() {
        assert_eq!(state(sys_admin, |v| without(v, Capability::SysAdmin)).0, Problem);
        assert_eq!(state(sys_admin, |v| without(v, Capability::SysResource)).0, Ok);
        let (found, fix) = state(sys_resource, |v| without(v, Capability::SysResource));
        assert_eq!(found, Warning);
        assert_eq!(fix, "stay within this host's limits: `podman run --ulimit nofile=1024:1024`");
        assert_eq!(state(sys_resource, |v| without(v, Capability::SysAdmin)).0, Ok);
        let user = |view: &mut View| (view.facts.own.user, view.facts.own.capabilities) = (Some(1), Some(0));
        assert_eq!(state(sys_resource, user).0, NotApplicable);
    }

    #[test]
    fn networks_need_their_capability() {
        assert_eq!(state(net_admin, |v| without(v, Capability::NetAdmin)).0, Warning);
        assert_eq!(state(net_admin, |v| without(v, Capability::SysAdmin)).0, Ok);
    }

    #[test]
    fn what_containers_get_must_be_there() {
        assert_eq!(OF_CONTAINERS.iter().map(|(bit, _)| 1 << bit).sum::<u64>(), raw::DOCKER_CAPABILITIES);
        let missing = |bit: u32| {
            state(container_capabilities, |v| v.facts.own.capabilities = Some(((1 << 41) - 1) & !(1 << bit)))
                .0
        };
        assert_eq!(missing(27), Problem);
        assert_eq!(missing(24), Note, "not given by default, but `--privileged` wants it");
        assert_eq!(missing(41), Ok, "the kernel knows no such one");
        assert_eq!(state(container_capabilities, |v| v.facts.own.user = Some(1)).0, NotApplicable);
    }

    #[test]
    fn the_smallest_limit_of_namespaces_counts() {
        let limit = |most: u64| {
            state(namespace_limits, |v| v.settings.namespace_limits.push(("max_net_namespaces".into(), most)))
        };
        assert_eq!(limit(0), (Problem, "sudo sysctl -w user.max_net_namespaces=100000".to_owned()));
        assert_eq!((limit(999).0, limit(1000).0), (Warning, Ok));
    }

    #[test]
    fn who_is_not_root_wants_subordinate_ids() {
        assert_eq!(state(subordinate_ids, |v| v.settings.subordinate_ids = Some(0)).0, Note);
        let user = |count| {
            state(subordinate_ids, |v| {
                (v.settings.subordinate_ids, v.facts.own.user) = (Some(count), Some(1000));
            })
        };
        assert_eq!((user(0).0, user(1).0), (Warning, Ok));
    }

    #[test]
    fn accounting_needs_a_capability_or_a_trusting_kernel() {
        let plain = |paranoid: Option<i64>| {
            state(cpu_accounting, |view| {
                view.facts.own.capabilities = Some(0);
                view.settings.perf_event_paranoid = paranoid;
            })
        };
        assert_eq!(plain(Some(1)), (Warning, "sudo sysctl -w kernel.perf_event_paranoid=0".to_owned()));
        assert_eq!(plain(Some(0)).0, Ok);
        assert_eq!(plain(None).0, Warning);
        assert_eq!(state(cpu_accounting, |v| without(v, Capability::SysAdmin)).0, Ok);
    }

    #[test]
    fn each_switch_can_forbid_user_namespaces() {
        let none = |view: &mut View| view.settings.max_user_namespaces = Some(0);
        assert_eq!(state(user_namespaces, none).1, "sudo sysctl -w user.max_user_namespaces=10000");
        assert_eq!(state(user_namespaces, none).0, Warning);
        let needed = |view: &mut View| {
            none(view);
            view.facts.own.user = Some(1000);
        };
        assert_eq!(state(user_namespaces, needed).0, Problem);
        let (found, fix) = state(user_namespaces, |v| v.settings.unprivileged_userns_clone = Some(false));
        assert!(found == Warning && fix.contains("unprivileged_userns_clone=1"));
        let (found, fix) = state(user_namespaces, |v| v.settings.apparmor_restricts_userns = Some(true));
        assert!(found == Warning && fix.contains("restrict_unprivileged_userns=0"));
        assert_eq!(state(user_namespaces, |v| v.settings.max_user_namespaces = Some(1)).0, Ok);
        assert_eq!(state(user_namespaces, |v| v.settings.unprivileged_userns_clone = None).0, Ok);
    }

    #[test]
    fn what_lies_on_us_lies_on_the_baseline() {
        assert_eq!(state(seccomp, |v| v.facts.own.seccomp_filtered = Some(true)).0, Warning);
        assert_eq!(state(seccomp, |_| ()).0, Ok);
        assert_eq!(state(no_new_privileges, |v| v.facts.own.no_new_privileges = Some(true)).0, Warning);
        assert_eq!(state(no_new_privileges, |_| ()).0, Ok);
        assert_eq!(state(container, |v| v.facts.containment = Containment::Inside("lxc".into())).0, Warning);
        assert_eq!(state(container, |_| ()).0, Ok);
        assert_eq!(state(time_namespace, |v| v.facts.own.initial_time_namespace = Some(false)).0, Warning);
        assert_eq!(state(time_namespace, |_| ()).0, Ok);
    }
}

//! Whether dunnage has the privileges to start containers, and runs directly on the machine with its own clocks and system
//! calls.

use super::{Check, Finding, View, check};
use crate::host::isolation::Containment;
use crate::host::own::Capability;
use crate::image::spec::DEFAULT_CAPABILITIES;

/// With fewer, a machine can still measure, but not run many containers at once.
const NAMESPACES_WANTED: u64 = 1000;

pub(super) const CHECKS: &[Check] = &[
    check("user", "engines, most runtimes and CPU accounting need root", |view| {
        let own = &view.facts.own;
        Some(match (own.user?, own.initial_user_namespace) {
            (0, Some(false)) => Finding::warning("root only in a user namespace, not on the machine")
                .advice("run dunnage outside of the user namespace"),
            (0, _) => Finding::ok("root"),
            (user, _) => Finding::warning(format!(
                "user {user}: engines, limits and CPU accounting need root; bare, floor, crun and rootless engines may work"
            ))
            .advice("run it as `sudo dunnage …`"),
        })
    }),
    check("cap-sys-admin", "mounts, namespaces and cgroups need it", |view| {
        let missing = "root without CAP_SYS_ADMIN: no mounts, namespaces or cgroups, so no containers";
        let missing = Finding::problem(missing).advice(
            "give this session the capability; in a container, use `--cap-add SYS_ADMIN` or `--privileged`",
        );
        of_root(view, Capability::SysAdmin, missing)
    }),
    check("cap-net-admin", "bridges, veth pairs and addresses of containers need it", |view| {
        let missing = "root without CAP_NET_ADMIN: no bridges, veth pairs or networks of engines";
        let missing = Finding::warning(missing)
            .advice("give this session the capability, or measure only with `net=none` and `net=host`");
        of_root(view, Capability::NetAdmin, missing)
    }),
    check("cap-sys-resource", "without it, limits can only be lowered, but engines raise some", |view| {
        let within = [("nofile", view.measured.open_files), ("nproc", view.measured.processes)];
        let limits = within.iter().filter_map(|(name, limit)| {
            let limit = limit.filter(|limit| *limit != u64::MAX)?;
            Some(format!(" --ulimit {name}={limit}:{limit}"))
        });
        let missing = "root without CAP_SYS_RESOURCE: limits cannot be raised, so podman's default ulimits \
                           and `--privileged` fail";
        let missing = Finding::warning(missing)
            .advice(format!("stay within this host's limits: `podman run{}`", limits.collect::<String>()));
        of_root(view, Capability::SysResource, missing)
    }),
    check("container-caps", "a runtime can give containers only capabilities that dunnage has", |view| {
        let own = &view.facts.own;
        let set = own.capabilities?;
        if !own.is_root()? {
            return Some(Finding::not_applicable("not root"));
        }
        let missing = DEFAULT_CAPABILITIES.iter().filter(|(_, bit)| set >> bit & 1 == 0);
        let missing: Vec<_> = missing.map(|(name, _)| *name).collect();
        if !missing.is_empty() {
            let what = format!("root without {}: runtimes cannot give it to containers", missing.join(", "));
            return Some(Finding::problem(what).advice(
                "give this session the capabilities; in a container, use `--cap-add` or `--privileged`",
            ));
        }
        let last: Option<u32> = view.tree.number("/proc/sys/kernel/cap_last_cap");
        let all = last.filter(|last| *last < 63).map(|last| (1u64 << (last + 1)) - 1);
        Some(match all {
            Some(all) if set & all != all => Finding::note(
                "all that containers get by default, but not all that exist: `--privileged` fails (\"unable to \
                 apply caps\")",
            ),
            _ => Finding::ok("all that containers get by default"),
        })
    }),
    check("cpu-accounting", "the CPU time of short-lived helpers is measured with perf events", |view| {
        let own = &view.facts.own;
        own.capabilities?;
        let may = |capability| own.can(capability) == Some(true);
        let Some(paranoid) = view.tree.number::<i64>("/proc/sys/kernel/perf_event_paranoid") else {
            let what = "the kernel has no perf events: no CPU times";
            return Some(Finding::warning(what).advice("use a kernel with CONFIG_PERF_EVENTS"));
        };
        if may(Capability::Perfmon) || may(Capability::SysAdmin) {
            return Some(Finding::ok("perf events on all CPUs are allowed by a capability"));
        }
        let setting = format!("perf_event_paranoid {paranoid}");
        if paranoid <= 0 {
            return Some(Finding::ok(format!(
                "perf events on all CPUs are allowed to all users ({setting})"
            )));
        }
        let what =
            format!("perf events on all CPUs are not allowed (no CAP_PERFMON, {setting}): no CPU times");
        Some(Finding::warning(what).command("sudo sysctl -w kernel.perf_event_paranoid=0"))
    }),
    check("user-namespaces", "rootless subjects, and all containers of ordinary users, run in one", |view| {
        let most: Option<u64> = view.tree.number("/proc/sys/user/max_user_namespaces");
        let switch = |name: &str| view.tree.switch(format!("/proc/sys/kernel/{name}"));
        let (what, fix) = if most == Some(0) {
            ("user.max_user_namespaces is 0", "user.max_user_namespaces=10000")
        } else if switch("unprivileged_userns_clone") == Some(false) {
            // A setting of Debian kernels.
            ("kernel.unprivileged_userns_clone is 0", "kernel.unprivileged_userns_clone=1")
        } else if switch("apparmor_restrict_unprivileged_userns") == Some(true) {
            // A setting of Ubuntu kernels.
            let fix = "kernel.apparmor_restrict_unprivileged_userns=0";
            ("AppArmor restricts user namespaces of ordinary users", fix)
        } else {
            return Some(Finding::ok(format!("ordinary users may create them (at most {})", most?)));
        };
        let finding = match view.facts.own.is_root() {
            Some(false) => Finding::problem(format!("{what}: no containers without root")),
            _ => Finding::warning(format!("{what}: rootless subjects cannot run")),
        };
        Some(finding.command(format!("sudo sysctl -w {fix}")))
    }),
    check("namespace-limits", "each container uses up to seven namespaces", |view| {
        const LIMITS: &str = "/proc/sys/user";
        let names = view.tree.names(LIMITS).into_iter();
        // User namespaces have their own check.
        let names = names.filter(|name| name.ends_with("_namespaces") && name != "max_user_namespaces");
        let limit = |name: String| Some((view.tree.number::<u64>(format!("{LIMITS}/{name}"))?, name));
        let (most, name) = names.filter_map(limit).min()?;
        let more = format!("sudo sysctl -w user.{name}=100000");
        Some(match most {
            0 => Finding::problem(format!("user.{name} is 0: no container can be created")).command(more),
            most if most < NAMESPACES_WANTED => {
                Finding::warning(format!("user.{name} is {most}: only few containers can run at once"))
                    .command(more)
            }
            most => Finding::ok(format!("at least {most} of each kind")),
        })
    }),
    check("subordinate-ids", "rootless engines map a container's users to subordinate ids", |view| {
        // Written by `useradd` and `usermod`. Dunnage's rootless runtimes do not need them.
        let count = view.tree.text("/etc/subuid")?.lines().count();
        Some(match (count, view.facts.own.is_root()) {
            (0, Some(false)) => Finding::warning("no user has any: rootless engines can map only one user")
                .command("sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 \"$USER\""),
            (0, _) => Finding::note("no user has any: other users cannot use rootless engines"),
            (count, _) => {
                Finding::ok(format!("{count} {} some", if count == 1 { "user has" } else { "users have" }))
            }
        })
    }),
    check("no-new-privileges", "rootless engines need set-user-id helpers to map users", |view| {
        Finding::warning("`no_new_privs` is set: `newuidmap` and `sudo` have no effect")
            .advice("start dunnage from a session without it")
            .unless(!view.facts.own.no_new_privileges?, "not set")
    }),
    check("seccomp", "a filter on dunnage also applies to `bare`, the baseline", |view| {
        Finding::warning("dunnage itself has a seccomp filter, so `bare` pays for it too")
            .advice(
                "run dunnage outside of the sandbox; in a container, use `--security-opt seccomp=unconfined`",
            )
            .unless(!view.facts.own.seccomp_filtered?, "dunnage itself has no filter")
    }),
    check("container", "inside a container, `bare` is not a plain process of the host", |view| {
        match &view.facts.containment {
            Containment::Inside(kind) => {
                let what = format!("dunnage runs inside a container ({kind}), and so does `bare`");
                Some(Finding::warning(what).advice("run dunnage on the host"))
            }
            Containment::Host => Some(Finding::ok("dunnage runs on the host")),
            Containment::Unknown => None,
        }
    }),
    check(
        "time-namespace",
        "stamps are comparable only within one time namespace, and daemons use the machine's",
        |view| {
            Finding::warning("not the machine's time namespace, so stamps from daemons' containers differ")
                .advice("run it as `sudo nsenter --target 1 --time dunnage …`")
                .unless(view.facts.own.initial_time_namespace?, "the machine's own")
        },
    ),
    check("dev-net-tun", "slirp4netns and pasta need it for networks of rootless containers", |view| {
        device(view, "/dev/net/tun", "slirp4netns and pasta cannot create a network")
    }),
    check("dev-fuse", "fuse-overlayfs, the storage of some rootless engines, needs it", |view| {
        device(view, "/dev/fuse", "fuse-overlayfs cannot mount a root filesystem")
    }),
];

/// Checks a capability of root. For other users, `user` already has the answer.
fn of_root(view: &View, capability: Capability, missing: Finding) -> Option<Finding> {
    let own = &view.facts.own;
    Some(match (own.can(capability)?, own.is_root()?) {
        (true, _) => Finding::ok("available"),
        (false, true) => missing,
        (false, false) => Finding::not_applicable("not root"),
    })
}

/// Whether a device exists and all users may open it.
fn device(view: &View, path: &str, what: &str) -> Option<Finding> {
    use std::os::unix::fs::PermissionsExt;
    if !view.tree.has("/dev") {
        return None;
    }
    let Ok(found) = view.tree.at(path).metadata() else {
        let module = path.rsplit('/').next().unwrap_or_default();
        let finding = Finding::note(format!("`{path}` does not exist: {what}"));
        return Some(finding.command(format!("sudo modprobe {module}")));
    };
    if found.permissions().mode() & 0o006 == 0o006 {
        return Some(Finding::ok(format!("all users may open `{path}`")));
    }
    let finding = match view.facts.own.is_root() {
        Some(false) => Finding::warning(format!("only root may open `{path}`: {what}")),
        _ => Finding::note(format!("only root may open `{path}`: for other users, {what}")),
    };
    Some(finding.command(format!("sudo chmod 666 {path}")))
}

#[cfg(test)]
mod tests {
    use super::super::State::{self, *};
    use super::super::found;
    use super::*;
    use crate::sys::raw;

    fn state(check: &str, change: impl Fn(&mut View)) -> (State, String) {
        let finding = found(check, change);
        (finding.state, finding.fix.map(|fix| fix.to_string()).unwrap_or_default())
    }

    fn without(view: &mut View, capability: Capability) {
        view.facts.own.capabilities = Some(!(1 << capability as u32));
    }

    #[test]
    fn an_ordinary_user_and_the_root_of_a_namespace_are_not_root() {
        assert_eq!(state("user", |v| v.facts.own.user = Some(1000)).0, Warning);
        assert_eq!(state("user", |v| v.facts.own.initial_user_namespace = Some(false)).0, Warning);
        assert_eq!(state("user", |v| v.facts.own.initial_user_namespace = None).0, Ok);
    }

    #[test]
    fn root_needs_its_capabilities() {
        assert_eq!(state("cap-sys-admin", |v| without(v, Capability::SysAdmin)).0, Problem);
        assert_eq!(state("cap-sys-admin", |v| without(v, Capability::SysResource)).0, Ok);
        let (found, fix) = state("cap-sys-resource", |v| without(v, Capability::SysResource));
        assert_eq!(found, Warning);
        assert_eq!(fix, "stay within this host's limits: `podman run --ulimit nofile=1024:1024`");
        assert_eq!(state("cap-sys-resource", |v| without(v, Capability::SysAdmin)).0, Ok);
        let user = |view: &mut View| (view.facts.own.user, view.facts.own.capabilities) = (Some(1), Some(0));
        assert_eq!(state("cap-sys-resource", user).0, NotApplicable);
    }

    #[test]
    fn networks_need_their_capability() {
        assert_eq!(state("cap-net-admin", |v| without(v, Capability::NetAdmin)).0, Warning);
        assert_eq!(state("cap-net-admin", |v| without(v, Capability::SysAdmin)).0, Ok);
    }

    #[test]
    fn what_containers_get_must_be_there() {
        assert_eq!(
            DEFAULT_CAPABILITIES.iter().map(|(_, bit)| 1 << bit).sum::<u64>(),
            raw::DOCKER_CAPABILITIES
        );
        let missing = |bit: u32| {
            state("container-caps", |v| v.facts.own.capabilities = Some(((1 << 41) - 1) & !(1 << bit))).0
        };
        assert_eq!(missing(27), Problem);
        assert_eq!(missing(24), Note, "not given by default, but `--privileged` wants it");
        assert_eq!(missing(41), Ok, "the kernel does not have it");
        assert_eq!(state("container-caps", |v| v.facts.own.user = Some(1)).0, NotApplicable);
    }

    #[test]
    fn the_smallest_limit_of_namespaces_counts() {
        let limit = |most: u64| {
            state("namespace-limits", |v| {
                v.tree.plant("/proc/sys/user/max_net_namespaces", &most.to_string())
            })
        };
        assert_eq!(limit(0), (Problem, "sudo sysctl -w user.max_net_namespaces=100000".to_owned()));
        assert_eq!((limit(999).0, limit(1000).0), (Warning, Ok));
    }

    #[test]
    fn who_is_not_root_wants_subordinate_ids() {
        assert_eq!(state("subordinate-ids", |v| v.tree.plant("/etc/subuid", "")).0, Note);
        let user = |count| {
            state("subordinate-ids", |v| {
                v.tree.plant("/etc/subuid", &"a:1:2\n".repeat(count));
                v.facts.own.user = Some(1000);
            })
        };
        assert_eq!((user(0).0, user(1).0), (Warning, Ok));
    }

    #[test]
    fn accounting_needs_a_capability_or_a_trusting_kernel() {
        let plain = |paranoid: Option<i64>| {
            state("cpu-accounting", |view| {
                view.facts.own.capabilities = Some(0);
                const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";
                match paranoid {
                    Some(level) => view.tree.plant(PARANOID, &level.to_string()),
                    None => view.tree.clear(PARANOID),
                }
            })
        };
        assert_eq!(plain(Some(1)), (Warning, "sudo sysctl -w kernel.perf_event_paranoid=0".to_owned()));
        assert_eq!(plain(Some(0)).0, Ok);
        assert_eq!(plain(None).0, Warning);
        assert_eq!(state("cpu-accounting", |v| without(v, Capability::SysAdmin)).0, Ok);
    }

    #[test]
    fn each_switch_can_forbid_user_namespaces() {
        let none = |view: &mut View| view.tree.plant("/proc/sys/user/max_user_namespaces", "0");
        assert_eq!(state("user-namespaces", none).1, "sudo sysctl -w user.max_user_namespaces=10000");
        assert_eq!(state("user-namespaces", none).0, Warning);
        let needed = |view: &mut View| {
            none(view);
            view.facts.own.user = Some(1000);
        };
        assert_eq!(state("user-namespaces", needed).0, Problem);
        let (found, fix) =
            state("user-namespaces", |v| v.tree.plant("/proc/sys/kernel/unprivileged_userns_clone", "0"));
        assert!(found == Warning && fix.contains("unprivileged_userns_clone=1"));
        let (found, fix) = state("user-namespaces", |v| {
            v.tree.plant("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1");
        });
        assert!(found == Warning && fix.contains("restrict_unprivileged_userns=0"));
        assert_eq!(
            state("user-namespaces", |v| v.tree.plant("/proc/sys/user/max_user_namespaces", "1")).0,
            Ok
        );
        assert_eq!(
            state("user-namespaces", |v| v.tree.clear("/proc/sys/kernel/unprivileged_userns_clone")).0,
            Ok
        );
    }

    #[test]
    fn what_lies_on_us_lies_on_the_baseline() {
        assert_eq!(state("seccomp", |v| v.facts.own.seccomp_filtered = Some(true)).0, Warning);
        assert_eq!(state("seccomp", |_| ()).0, Ok);
        assert_eq!(state("no-new-privileges", |v| v.facts.own.no_new_privileges = Some(true)).0, Warning);
        assert_eq!(state("no-new-privileges", |_| ()).0, Ok);
        assert_eq!(
            state("container", |v| v.facts.containment = Containment::Inside("lxc".into())).0,
            Warning
        );
        assert_eq!(state("container", |_| ()).0, Ok);
        assert_eq!(state("time-namespace", |v| v.facts.own.initial_time_namespace = Some(false)).0, Warning);
        assert_eq!(state("time-namespace", |_| ()).0, Ok);
    }

    #[test]
    fn devices_of_root_matter_to_others() {
        use std::os::unix::fs::PermissionsExt;
        for (check, path) in [("dev-net-tun", "/dev/net/tun"), ("dev-fuse", "/dev/fuse")] {
            let with = |mode: u32, user: u32| {
                state(check, |v| {
                    std::fs::set_permissions(v.tree.at(path), std::fs::Permissions::from_mode(mode)).unwrap();
                    v.facts.own.user = Some(user);
                })
                .0
            };
            assert_eq!((with(0o600, 0), with(0o644, 1000), with(0o666, 1000)), (Note, Warning, Ok));
            assert_eq!(state(check, |v| v.tree.clear(path)).0, Note);
            assert_eq!(state(check, |v| v.tree.clear("/dev")).0, NotApplicable);
        }
    }
}

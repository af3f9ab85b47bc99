//! Podman: whether it answers, which of its defaults change figures, and whether the helpers of rootless
//! engines are installed.

use super::{Programs, of_engine};
use crate::host::checks::{Finding, View};
use crate::host::own::Capability;

pub(super) fn answers(_: &View, programs: &Programs) -> Finding {
    match &programs.podman {
        None => Finding::not_applicable("not installed"),
        Some(Ok(podman)) => Finding::ok(format!("{} answers", podman.version)),
        Some(Err(why)) => Finding::problem(why.reason.clone())
            .advice("make `podman info` work first; `podman system migrate` or `podman system renumber` may repair its state"),
    }
}

pub(super) fn limits(view: &View, programs: &Programs) -> Finding {
    let own = &view.facts.own;
    of_engine(&programs.podman, "podman-answers", |_| {
        match (own.is_root(), own.can(Capability::SysResource)) {
            (Some(true), Some(false)) => Finding::note(
                "podman's default limits fail here, so dunnage asks for those in force (`--ulimit`)",
            )
            .advice("when you start containers yourself, pass `--ulimit nofile=… --ulimit nproc=…`; see `cap-sys-resource`"),
            (Some(false), _) => Finding::ok("an ordinary user's podman does not change limits"),
            (_, Some(true)) => Finding::ok("podman can raise limits"),
            _ => Finding::not_applicable("dunnage's capabilities are not known"),
        }
    })
}

/// Linux 5.10 introduced the mount option.
pub(super) fn volatile(view: &View, programs: &Programs) -> Finding {
    let is_before = view.facts.kernel.is_before(5, 10);
    of_engine(&programs.podman, "podman-answers", |podman| match (podman.driver.as_str(), is_before) {
        ("overlay", Some(false) | None) => Finding::note(
            "podman mounts the root of `--rm` containers `volatile`: fsync in it does not reach the disk",
        )
        .advice("compare writes with `rm=false`, or in a volume"),
        ("overlay", Some(true)) => Finding::ok("this kernel has no volatile mounts"),
        (driver, _) => Finding::ok(format!("the storage driver {driver} does not use volatile mounts")),
    })
}

/// Either of the last two is enough for a network.
pub(super) fn helpers(view: &View, programs: &Programs) -> Finding {
    if programs.docker.is_none() && programs.podman.is_none() {
        return Finding::not_applicable("no engine is installed");
    }
    let has = |name: &str| programs.find(name).is_some();
    let mut missing: Vec<&str> = ["newuidmap", "newgidmap"].into_iter().filter(|name| !has(name)).collect();
    if !has("slirp4netns") && !has("pasta") {
        missing.push("slirp4netns or pasta");
    }
    if missing.is_empty() {
        return Finding::ok("the helpers for user mapping and networks of rootless engines are installed");
    }
    let what = format!("{} {} missing", missing.join(", "), if missing.len() == 1 { "is" } else { "are" });
    let finding = match view.facts.own.is_root() {
        Some(false) => Finding::warning(format!("{what}: rootless engines do not work, or have no network")),
        _ => Finding::note(format!("{what}: other users' engines do not work, or have no network")),
    };
    finding.advice("install the packages `uidmap` and `slirp4netns` (or `passt`)")
}

#[cfg(test)]
mod tests {
    use super::super::{Engine, planted};
    use super::*;
    use crate::host::checks::State::*;
    use crate::subject::Unavailable;

    #[test]
    fn a_podman_that_does_not_answer_is_the_one_problem() {
        let view = crate::host::checks::planted();
        let silent =
            Programs { podman: Some(Err(Unavailable::because("database is locked"))), ..planted::all() };
        assert_eq!(answers(&view, &silent).state, Problem);
        assert_eq!(answers(&view, &planted::all()).state, Ok);
        for question in [limits, volatile] {
            assert_eq!(question(&view, &silent).state, NotApplicable);
        }
    }

    #[test]
    fn root_without_the_capability_gets_other_limits() {
        let mut view = crate::host::checks::planted();
        assert_eq!(limits(&view, &planted::all()).state, Ok);
        view.facts.own.capabilities = Some(!(1 << Capability::SysResource as u32));
        assert_eq!(limits(&view, &planted::all()).state, Note);
        view.facts.own.user = Some(1000);
        assert_eq!(limits(&view, &planted::all()).state, Ok);
    }

    #[test]
    fn volatile_roots_need_overlay_and_a_kernel_that_has_them() {
        let mut view = crate::host::checks::planted();
        let mut programs = planted::all();
        assert_eq!(volatile(&view, &programs).state, Note);
        view.facts.kernel.release = Some("5.9.16".to_owned());
        assert_eq!(volatile(&view, &programs).state, Ok);
        view.facts.kernel.release = Some("5.10.0".to_owned());
        assert_eq!(volatile(&view, &programs).state, Note);
        programs.podman = Some(Result::Ok(Engine { driver: "vfs".into(), ..Engine::default() }));
        assert_eq!(volatile(&view, &programs).state, Ok);
    }

    #[test]
    fn helpers_matter_most_to_who_is_not_root() {
        let without = |name: &str, user: u32| {
            let mut view = crate::host::checks::planted();
            view.facts.own.user = Some(user);
            let mut programs = planted::all();
            programs.found.retain(|program| program.name != name);
            helpers(&view, &programs)
        };
        assert_eq!((without("newuidmap", 0).state, without("newuidmap", 1000).state), (Note, Warning));
        assert!(without("slirp4netns", 0).what.starts_with("slirp4netns or pasta is missing"));
        assert_eq!(without("crun", 1000).state, Ok);
    }
}

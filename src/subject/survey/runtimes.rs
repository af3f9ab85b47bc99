//! OCI runtimes: whether they are installed, answer, and support this machine's cgroups.

use super::{Program, Programs};
use crate::host::cgroups::CgroupMode;
use crate::host::checks::{Finding, View};

/// The checks that every runtime has; `further` answers for one that passes them, from its own report.
fn answer(
    view: &View,
    programs: &Programs,
    name: &str,
    further: impl FnOnce(String, &Program) -> Finding,
) -> Finding {
    let Some(program) = programs.find(name) else { return Finding::not_applicable("not installed") };
    let path = program.path.display();
    let version = match &program.version {
        Ok(version) => version,
        Err(why) => {
            return Finding::problem(why.clone()).advice(format!("reinstall `{name}`, or remove `{path}`"));
        }
    };
    let mode = view.facts.cgroups.mode;
    let lacks = match (mode, program.cgroups) {
        (CgroupMode::V1 | CgroupMode::Hybrid, Some((false, _))) => Some(1),
        (CgroupMode::V2, Some((_, false))) => Some(2),
        _ => None,
    };
    if let Some(lacks) = lacks {
        return Finding::problem(format!(
            "{version} (`{path}`) was built without cgroup version {lacks}, which this machine uses"
        ))
        .advice(format!("use a build with it, as in `-s {name}:bin=PATH`"));
    }
    further(format!("{version} (`{path}`)"), program)
}

pub(super) fn crun(view: &View, programs: &Programs) -> Finding {
    answer(view, programs, "crun", |found, _| match view.facts.cgroups.left_on_v2() {
        [] => Finding::ok(found),
        left => Finding::problem(format!(
            "{found} does not work on this hybrid host, since cgroup version 2 still has {}",
            left.join(", ")
        ))
        .advice("mount those as version 1; see `cgroup-mode`"),
    })
}

pub(super) fn runc(view: &View, programs: &Programs) -> Finding {
    answer(view, programs, "runc", |found, _| Finding::ok(found))
}

/// Its first releases with version 1 did not report it, so a missing report proves nothing.
pub(super) fn youki(view: &View, programs: &Programs) -> Finding {
    let old = matches!(view.facts.cgroups.mode, CgroupMode::V1 | CgroupMode::Hybrid);
    answer(view, programs, "youki", |found, program| match program.cgroups {
        None if old => Finding::note(format!("{found} does not report whether it supports cgroup version 1"))
            .advice("if it fails, build it with the feature `v1`"),
        _ => Finding::ok(found),
    })
}

pub(super) fn runsc(view: &View, programs: &Programs) -> Finding {
    answer(view, programs, "runsc", |found, Program { path, .. }| match path.starts_with("/tmp") {
        true => Finding::problem(format!(
            "{found} is under `/tmp`, over which gVisor mounts a tmpfs during its setup"
        ))
        .command(format!("sudo install {} /usr/local/bin/runsc", path.display())),
        false => Finding::note(format!(
            "{found}: its clocks start at zero in each sandbox, so stamps from inside count only if they fit between the host's"
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;
    use crate::host::cgroups::Hierarchy;
    use crate::host::checks::State::{self, *};

    fn hybrid(left: &[&str]) -> View {
        let mut view = crate::host::checks::planted();
        let cgroups = &mut view.facts.cgroups;
        cgroups.mode = CgroupMode::Hybrid;
        cgroups.v1 = vec![Hierarchy {
            mounted_on: "/sys/fs/cgroup/all".into(),
            controllers: vec!["cpu".into()],
            favours_moves: false,
        }];
        let v2 = cgroups.v2.as_mut().unwrap();
        v2.controllers = left.iter().map(|name| (*name).to_owned()).collect();
        view
    }

    fn with(name: &str, cgroups: Option<(bool, bool)>) -> Programs {
        let mut programs = planted::all();
        programs.found.iter_mut().find(|program| program.name == name).unwrap().cgroups = cgroups;
        programs
    }

    #[test]
    fn crun_refuses_only_a_hybrid_host_with_something_left() {
        assert_eq!(crun(&hybrid(&["hugetlb"]), &planted::all()).state, Problem);
        assert_eq!(crun(&hybrid(&[]), &planted::all()).state, Ok);
        assert_eq!(crun(&crate::host::checks::planted(), &planted::all()).state, Ok);
        assert_eq!(runc(&hybrid(&["hugetlb"]), &planted::all()).state, Ok);
    }

    #[test]
    fn a_runtime_must_know_the_machines_version_of_control_groups() {
        let found = |view: &View, cgroups| -> State { youki(view, &with("youki", cgroups)).state };
        let v2 = crate::host::checks::planted();
        assert_eq!(found(&hybrid(&[]), Some((false, true))), Problem);
        assert_eq!(found(&hybrid(&[]), Some((true, false))), Ok);
        assert_eq!(found(&v2, Some((false, true))), Ok);
        assert_eq!(found(&v2, Some((true, false))), Problem);
        assert_eq!((found(&hybrid(&[]), None), found(&v2, None)), (Note, Ok));
    }

    #[test]
    fn runsc_may_lie_anywhere_but_under_tmp() {
        let found = |path: &str| {
            let mut program = planted::program("runsc", "runsc version release-1");
            program.path = path.into();
            let programs = Programs { found: vec![program], ..Programs::default() };
            runsc(&crate::host::checks::planted(), &programs)
        };
        assert_eq!(found("/tmp/runsc").state, Problem);
        assert_eq!(&*found("/tmp/runsc").fix.unwrap(), "sudo install /tmp/runsc /usr/local/bin/runsc");
        assert_eq!((found("/tmpfs/runsc").state, found("/usr/bin/runsc").state), (Note, Note));
    }

    #[test]
    fn a_runtime_that_does_not_answer_is_a_problem() {
        let mut programs = planted::all();
        programs.found[3].version = Err("`runc --version` gave no answer".into());
        assert_eq!(runc(&crate::host::checks::planted(), &programs).state, Problem);
    }
}

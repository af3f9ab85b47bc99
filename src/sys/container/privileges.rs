//! The program's privileges: capabilities, `no_new_privs`, the seccomp filter, and default signals and mask.

use dunnage_analysis::launch::names as stamps;

use super::super::raw::DOCKER_CAPABILITIES;
use super::super::steps::{Argument, Step, clean_signals, number};
use super::pieces::Piece;
use super::{Facts, NOTHING, Part, Spec};

/// A `prctl` with up to two arguments besides its option.
pub fn prctl(name: &'static str, option: i32, arguments: [usize; 2]) -> Step {
    let [first, second] = arguments.map(Argument::Number);
    Step::call(name, NOTHING, libc::SYS_prctl, [number(option), first, second])
}

/// Privileges are dropped last, in an order in which each step still has the right to the next; the filter
/// comes after every call that it might forbid.
pub fn privileges(spec: &Spec, facts: &Facts) -> Vec<Part> {
    let pieces = spec.pieces;
    let filter = spec.seccomp.as_deref().filter(|_| pieces.has(Piece::Seccomp)).map(Step::seccomp);
    let filter = (stamps::SECCOMP_LOAD, filter.into_iter().collect());
    let umask = Step::call("set umask", NOTHING, libc::SYS_umask, [number(0o22)]);
    // Behind its cgroups, which would reset its CPUs.
    let own = std::iter::once(umask).chain(spec.bounds.steps()).collect();
    let mut parts = vec![(stamps::SESSION_UMASK, own)];
    if pieces.has(Piece::Capabilities) {
        parts.push((stamps::CAPABILITIES_DROP, capabilities(pieces.has(Piece::User), facts)));
    }
    if pieces.has(Piece::NoNewPrivileges) {
        let set = prctl("set no_new_privs", libc::PR_SET_NO_NEW_PRIVS, [1, 0]);
        parts.extend([(stamps::NO_NEW_PRIVS_SET, vec![set]), filter]);
    } else {
        // Without it, only CAP_SYS_ADMIN may install a filter.
        parts.insert(1, filter);
    }
    let mut last = Vec::from(clean_signals());
    last.push(Step::execute(&spec.program, &facts.arguments, &facts.environment));
    parts.push((stamps::EXEC, last));
    parts
}

fn capabilities(in_user_namespace: bool, facts: &Facts) -> Vec<Step> {
    const VERSION_3: u64 = 0x2008_0522;
    let drop = |capability: usize| prctl("drop capability", libc::PR_CAPBSET_DROP, [capability, 0]);
    let kept = |capability: &usize| DOCKER_CAPABILITIES >> capability & 1 == 1;
    let mut steps: Vec<_> =
        (0..=facts.last_capability).filter(|capability| !kept(capability)).map(drop).collect();
    if !in_user_namespace {
        let groups = [number(1), Argument::Words(Box::new([0]))];
        steps.push(Step::call("set groups", NOTHING, libc::SYS_setgroups, groups));
    }
    let root = || [number(0), number(0), number(0)];
    let (low, high) = (DOCKER_CAPABILITIES & 0xffff_ffff, DOCKER_CAPABILITIES >> 32);
    // Effective, permitted, inheritable (none), 32 bits each; then the upper halves.
    let data: Box<[u64]> = Box::new([low | low << 32, high << 32, high]);
    let set = [Argument::Words(Box::new([VERSION_3])), Argument::Words(data)];
    steps.extend([
        Step::call("set group", NOTHING, libc::SYS_setresgid, root()),
        Step::call("set user", NOTHING, libc::SYS_setresuid, root()),
        Step::call("set capabilities", NOTHING, libc::SYS_capset, set),
        prctl(
            "clear ambient capabilities",
            libc::PR_CAP_AMBIENT,
            [libc::PR_CAP_AMBIENT_CLEAR_ALL as usize, 0],
        ),
    ]);
    steps
}

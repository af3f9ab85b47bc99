//! containerd: whether it answers, and what `ctr` has left behind.

use super::Programs;
use crate::host::checks::{Finding, View};

pub(super) fn sockets(view: &View, programs: &Programs) -> Finding {
    if programs.sockets.is_empty() {
        return Finding::not_applicable(match programs.find("ctr").or(programs.find("containerd")) {
            Some(_) if view.facts.own.is_root() == Some(false) => {
                "installed; only root may look for its socket"
            }
            Some(_) => "installed, but it has no socket: it is not running",
            None => "not installed",
        });
    }
    let shown = |answers: bool| {
        let chosen = programs.sockets.iter().filter(|socket| socket.answers.is_ok() == answers);
        chosen.map(|socket| format!("`{}`", socket.path.display())).collect::<Vec<_>>().join(", ")
    };
    let (open, closed) = (shown(true), shown(false));
    if closed.is_empty() {
        return Finding::ok(format!("answers on {open}"));
    }
    let why =
        programs.sockets.iter().find_map(|socket| socket.answers.as_ref().err()).cloned().unwrap_or_default();
    let what = match open.is_empty() {
        true => format!("does not answer on {closed}: {why}"),
        false => format!("answers on {open}, not on {closed}: {why}"),
    };
    Finding::note(what).advice(match why.to_lowercase().contains("permission denied") {
        true => "run as root",
        false => {
            "no process listens: start it (`sudo systemctl start containerd`), or remove what is left of it"
        }
    })
}

pub(super) fn leftovers(_: &View, programs: &Programs) -> Finding {
    if programs.left.is_empty() {
        return Finding::ok("no empty cgroups of containerd namespaces");
    }
    let paths: Vec<_> = programs.left.iter().map(|path| path.display().to_string()).collect();
    Finding::note(format!("`ctr` left {} empty cgroups of its namespaces", paths.len()))
        .command(format!("sudo find {} -depth -type d -exec rmdir {{}} \\;", paths.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::super::{Socket, planted};
    use super::*;
    use crate::host::checks::State::*;

    #[test]
    fn a_socket_without_a_listener_is_noted() {
        let view = crate::host::checks::planted();
        let mut programs = planted::all();
        assert_eq!(sockets(&view, &programs).state, Ok);
        let stale = Socket { path: "/run/x.sock".into(), answers: Err("Connection refused".into()) };
        programs.sockets.push(stale);
        let finding = sockets(&view, &programs);
        assert!(finding.state == Note && finding.what.contains("not on `/run/x.sock`"), "{finding:?}");
        programs.sockets.clear();
        assert_eq!(sockets(&view, &programs).state, NotApplicable);
        assert!(sockets(&view, &programs).what.contains("is not running"));
    }

    #[test]
    fn empty_groups_are_removed_deepest_first() {
        let view = crate::host::checks::planted();
        let mut programs = planted::all();
        assert_eq!(leftovers(&view, &programs).state, Ok);
        programs.left = vec!["/sys/fs/cgroup/default".into()];
        let fix = leftovers(&view, &programs).fix.unwrap();
        assert_eq!(&*fix, "sudo find /sys/fs/cgroup/default -depth -type d -exec rmdir {} \\;");
    }
}

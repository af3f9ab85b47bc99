//! Are the kernel's devices and event queues there that engines' helpers use?

use super::{Finding, Node, View};

fn device(view: &View, node: Option<Node>, path: &str, what: &str) -> Finding {
    match node {
        None => Finding::not_applicable("`/dev` cannot be read"),
        Some(Node::OfAll) => Finding::ok(format!("everybody may open `{path}`")),
        Some(Node::OfRoot) if view.facts.own.is_root() == Some(false) => {
            Finding::warning(format!("only root may open `{path}`: {what}"))
                .command(format!("sudo chmod 666 {path}"))
        }
        Some(Node::OfRoot) => Finding::note(format!("only root may open `{path}`: for others, {what}"))
            .command(format!("sudo chmod 666 {path}")),
        Some(Node::Absent) => Finding::note(format!("there is no `{path}`: {what}"))
            .command(format!("sudo modprobe {}", path.rsplit('/').next().unwrap_or_default())),
    }
}

pub(super) fn tun(view: &View) -> Finding {
    device(view, view.settings.tun, "/dev/net/tun", "slirp4netns and pasta cannot make a network")
}

pub(super) fn fuse(view: &View) -> Finding {
    device(view, view.settings.fuse, "/dev/fuse", "fuse-overlayfs cannot mount a root")
}

/// Half of the kernel's default: each daemon and shim takes one or two.
const INSTANCES_WANTED: u64 = 64;

pub(super) fn inotify(view: &View) -> Finding {
    match view.settings.inotify_instances {
        Some(most) if most < INSTANCES_WANTED => Finding::warning(format!(
            "only {most} instances for each user: daemons and dunnage may find none left"
        ))
        .command("sudo sysctl -w fs.inotify.max_user_instances=128"),
        Some(most) => Finding::ok(format!("{most} instances for each user")),
        None => Finding::not_applicable("the kernel does not tell"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::State::*;
    use super::super::view::planted;
    use super::*;

    #[test]
    fn devices_of_root_matter_to_others() {
        let found = |node, user| {
            let mut view = planted();
            (view.settings.tun, view.settings.fuse) = (node, node);
            view.facts.own.user = Some(user);
            assert_eq!(tun(&view).state, fuse(&view).state);
            tun(&view).state
        };
        assert_eq!((found(Some(Node::OfRoot), 0), found(Some(Node::OfRoot), 1000)), (Note, Warning));
        assert_eq!((found(Some(Node::OfAll), 1000), found(Some(Node::Absent), 0)), (Ok, Note));
        assert_eq!(found(None, 0), NotApplicable);
    }

    #[test]
    fn few_event_queues_are_told() {
        let found = |most| {
            let mut view = planted();
            view.settings.inotify_instances = most;
            inotify(&view).state
        };
        assert_eq!((found(Some(63)), found(Some(64)), found(None)), (Warning, Ok, NotApplicable));
    }
}

//! The keys that leave parts of the floor out, and the pieces that remain.

use super::super::confined::Confined;
use super::super::limits::Limits;
use super::super::spec::Spec;
use super::super::treatment::{Cgroup, Expected};
use super::apart::expected_of;
use crate::subject::Need;
use crate::sys::cgroup::Way;
use crate::sys::container::{self, Mounts, Piece, Pieces};
use crate::sys::raw;

/// The pieces that each value leaves out.
const LEFT_OUT: [(&str, &str, &[Piece]); 10] = [
    ("net", "host", &[Piece::Network]),
    ("pid", "host", &[Piece::Pid]),
    (
        "mounts",
        "host",
        &[Piece::Mounts, Piece::Overlay, Piece::Filesystems, Piece::MaskedPaths, Piece::ReadOnlyPaths],
    ),
    ("uts", "host", &[Piece::Uts]),
    ("ipc", "host", &[Piece::Ipc]),
    ("cgroup", "host", &[Piece::Cgroup]),
    ("cgroupns", "host", &[Piece::CgroupNamespace]),
    ("overlay", "off", &[Piece::Overlay]),
    ("capabilities", "all", &[Piece::Capabilities]),
    ("no_new_privs", "off", &[Piece::NoNewPrivileges]),
];

/// The pieces of this floor.
pub(super) fn pieces(spec: &Spec) -> Pieces {
    let is_asked = |key: &str, value: &str| spec.get(key) == Some(value);
    let mut pieces = Pieces::engine();
    for (key, value, left_out) in LEFT_OUT {
        if is_asked(key, value) {
            pieces = left_out.iter().fold(pieces, |pieces, piece| pieces.without(*piece));
        }
    }
    if is_asked("userns", "private") { pieces.with(Piece::User) } else { pieces }
}

/// How the container enters its cgroups.
pub(super) fn way(spec: &Spec) -> Way {
    match spec.get("cgroup") {
        Some("procs") => Way::Procs,
        Some("tasks") => Way::Tasks,
        Some("born") => Way::Born,
        _ => Way::Cheapest,
    }
}

/// Whether a change of metadata copies nothing else in its overlay.
pub(super) fn copies_metadata_alone(spec: &Spec) -> bool {
    spec.get("overlay") == Some("metacopy")
}

/// The system calls that make its mounts.
pub(super) fn mounts(spec: &Spec) -> Mounts {
    match spec.get("mounts") {
        Some("fsmount") => Mounts::Fsmount,
        Some("open_tree") => Mounts::OpenTree,
        _ => Mounts::Mount,
    }
}

/// What the probe must find inside.
pub(super) fn expected(spec: &Spec, cgroup: Cgroup) -> Expected {
    let pieces = pieces(spec);
    let made = if container::is_privileged() { pieces } else { pieces.with(Piece::User) };
    Expected {
        // On the host's root the probe sees the host's cgroups, whichever one it is in.
        cgroup: if pieces.has(Piece::Cgroup) && pieces.has(Piece::Mounts) { cgroup } else { Cgroup::Any },
        no_new_privs: Some(u64::from(pieces.has(Piece::NoNewPrivileges))),
        seccomp: Some(if spec.get("seccomp") == Some("off") { 0 } else { 2 }),
        capabilities: pieces.has(Piece::Capabilities).then_some(raw::DOCKER_CAPABILITIES),
        limits: Limits::of(spec),
        confined: Confined::of(spec),
        ..expected_of(made)
    }
}

/// What it can do. Single pieces are priced only for a floor without keys, which has all of them; and an entry
/// joins only the namespaces that an engine makes private, so other keys exclude it. Only root may join
/// containers to a bridge.
pub(super) fn offers(spec: &Spec) -> Vec<Need> {
    const ENTERED: [&str; 8] = ["image", "cpus", "cpuset", "burst", "net", "seccomp", "pid", "ulimit"];
    let is_entered = |key: &str| ENTERED.contains(&key) || (key == "overlay" && copies_metadata_alone(spec));
    if spec.keys.iter().any(|(key, _)| !is_entered(key)) {
        return vec![Need::Launch, Need::Work];
    }
    let own = spec.keys.is_empty().then_some(Need::Pieces);
    let is_joined = container::is_privileged() && pieces(spec).has(Piece::Network);
    let joined = if is_joined { &[Need::Address, Need::Joined, Need::Resolver][..] } else { &[] };
    let always = Need::CONTAINER.iter().copied().chain([Need::Images]);
    always.chain(own).chain(joined.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::treatment::{Network, Own};
    use crate::subject::{Key, Values, kinds};

    fn floor(text: &str) -> Spec {
        Spec::parse(text).unwrap()
    }

    #[test]
    fn every_key_but_the_image_and_the_filter_changes_the_pieces() {
        let is_piece =
            |key: &&Key| !["image", "cpus", "cpuset", "burst", "seccomp", "ulimit"].contains(&key.name);
        for key in kinds::FLOOR.keys.iter().filter(is_piece) {
            let Values::OneOf(values) = key.values else { panic!("{}", key.name) };
            let other = values.iter().rfind(|value| Some(**value) != key.default).unwrap();
            let of = |value: &str| pieces(&floor(&format!("floor:{}={value}", key.name)));
            assert_eq!(of(key.default.unwrap()), Pieces::engine(), "{}", key.name);
            assert_ne!(of(other), Pieces::engine(), "{}", key.name);
        }
    }

    #[test]
    fn what_is_left_out_must_not_be_found() {
        let expected = |text: &str| expected(&floor(text), Cgroup::Own);
        let whole = expected("floor");
        assert_eq!((whole.seccomp, whole.no_new_privs, whole.root), (Some(2), Some(1), &["overlay"][..]));
        assert_eq!(expected("floor:seccomp=off").seccomp, Some(0));
        assert_eq!(expected("floor:no_new_privs=off").no_new_privs, Some(0));
        assert_eq!(expected("floor:capabilities=all").capabilities, None);
        assert_eq!(expected("floor:cgroup=host").cgroup, Cgroup::Any);
        let on_the_host = expected("floor:mounts=host,net=host,uts=host");
        assert_eq!(
            (on_the_host.mount, on_the_host.uts, on_the_host.ipc),
            (Own::Host, Own::Host, Own::Private)
        );
        assert_eq!((on_the_host.network, on_the_host.root), (Network::Host, &[][..]));
        assert_eq!(expected("floor:userns=private").user, Own::Private);
    }

    #[test]
    fn only_the_whole_can_be_taken_apart_and_only_what_engines_make_can_be_entered() {
        assert!(offers(&floor("floor")).contains(&Need::Pieces));
        let filtered = offers(&floor("floor:seccomp=off"));
        assert!(filtered.contains(&Need::Exec) && !filtered.contains(&Need::Pieces));
        assert_eq!(offers(&floor("floor:uts=host")), [Need::Launch, Need::Work]);
    }
}

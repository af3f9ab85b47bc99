//! What engines say when nesting fails, and what helps: from their sources, their issues, and what was seen.

use crate::outcome::{Failure, FailureClass};

/// What engines say when nesting fails: parts of the message, the kind of failure, and what helps.
const KNOWN: [(&str, FailureClass, &str); 23] = [
    (
        "lookup docker",
        FailureClass::Environment,
        "the client looks for a daemon elsewhere: unset DOCKER_HOST",
    ),
    (
        "tcp://docker:2375",
        FailureClass::Environment,
        "the client looks for a daemon elsewhere: unset DOCKER_HOST",
    ),
    (
        "cannot enter cgroupv2",
        FailureClass::Environment,
        "a process is in the root of its cgroups: move all to a group of their own first, as `dind` does",
    ),
    (
        "you must be root",
        FailureClass::Permission,
        "the inner engine may not change the network: --cap-add NET_ADMIN",
    ),
    (
        "/sys/fs/cgroup … read-only file system",
        FailureClass::Permission,
        "cgroups are read-only: remount them with SYS_ADMIN, or docker 28's --security-opt writable-cgroups=true",
    ),
    (
        "/sys/fs/cgroup … permission denied",
        FailureClass::Permission,
        "a user may make no cgroups there: dockerd --rootless inside, or an engine without a daemon",
    ),
    (
        "unable to create session key",
        FailureClass::Permission,
        "seccomp blocks keyctl: --security-opt seccomp=unconfined",
    ),
    (
        "unable to apply caps",
        FailureClass::Permission,
        "the host itself lacks capabilities that are asked for: --cap-add what is needed, not --privileged",
    ),
    (
        "mount `proc` to `proc`",
        FailureClass::Permission,
        "the outer engine masks parts of /proc, so that no new one can be mounted: inner --volume /proc:/proc",
    ),
    (
        "mount proc",
        FailureClass::Permission,
        "the outer engine masks parts of /proc, so that no new one can be mounted: inner --volume /proc:/proc",
    ),
    (
        "mount `mqueue`",
        FailureClass::Permission,
        "the inner container shares the outer one's IPC namespace: inner --ipc private",
    ),
    (
        "fuse: device not found",
        FailureClass::Environment,
        "--device /dev/fuse, or a volume for the inner engine's storage",
    ),
    (
        "failed to open /dev/fuse",
        FailureClass::Permission,
        "only root may open /dev/fuse here: a volume for the inner engine's storage",
    ),
    ("/dev/net/tun", FailureClass::Environment, "--device /dev/net/tun, or inner --network none"),
    (
        "newuidmap",
        FailureClass::Environment,
        "subordinate ids inside, within those that the outer container has",
    ),
    (
        "cannot clone",
        FailureClass::Permission,
        "no user namespace can be made: seccomp or AppArmor blocks it, or user.max_user_namespaces is 0",
    ),
    (
        "cannot re-exec process",
        FailureClass::Permission,
        "no user namespace can be made: seccomp or AppArmor blocks it, or user.max_user_namespaces is 0",
    ),
    (
        "failed to disable ipv6",
        FailureClass::Permission,
        "the daemon inside may not write to /proc/sys: DOCKER_ALLOW_IPV6_ON_IPV4_INTERFACE=1 for it",
    ),
    (
        "no space left on device",
        FailureClass::Environment,
        "the storage of the inner engine is full: a larger volume for it",
    ),
    (
        "flags: 0x … permission denied",
        FailureClass::Permission,
        "the outer container's AppArmor profile denies mounts: --security-opt apparmor=unconfined",
    ),
    (
        "failed to mount overlay",
        FailureClass::Permission,
        "no overlay on an overlay: a volume for the inner engine's storage",
    ),
    (
        "the buildx component is missing",
        FailureClass::Environment,
        "install the engine's buildx plugin, or take its own builder",
    ),
    (
        "minimum supported api version",
        FailureClass::Unsupported,
        "the client inside is too old for the daemon",
    ),
];

/// A failure inside with its class, and what helps, if that is known.
pub fn explained(step: &str, words: &str) -> (Failure, Option<&'static str>) {
    let plain = words.to_ascii_lowercase();
    let known = KNOWN.iter().find(|(parts, ..)| parts.split(" … ").all(|part| plain.contains(part)));
    let Some((parts, class, remedy)) = known else {
        return (Failure::new(FailureClass::Crash, step).with_words(words.as_bytes()), None);
    };
    let at = parts.split(" … ").filter_map(|part| plain.find(part)).min().unwrap_or(0);
    (Failure::new(*class, step).with_words(around(words, at).as_bytes()), Some(*remedy))
}

/// What an engine says around this place: from the part of its sentence before. Paths and options may come first, longer than anybody reads.
fn around(words: &str, at: usize) -> String {
    const LONG: usize = 160;
    let parts = |end: usize| words[..end].rmatch_indices([':', '\n']).map(|(at, _)| at + 1).chain([0]);
    let begin = if words.len() <= LONG { 0 } else { parts(at).nth(1).unwrap_or(0) };
    let begin = if at - begin > LONG { parts(at).next().unwrap_or(0) } else { begin };
    let begin = if at - begin > LONG { at } else { begin };
    let mark = if begin == 0 { "" } else { "… " };
    let end = words[at..].find('\n').map_or(words.len(), |length| at + length);
    format!("{mark}{}", words[begin..end].trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_engines_say_is_explained() {
        let remedy = |words: &str| explained("the inner start failed", words).1.unwrap_or_default();
        assert!(remedy("dial tcp: lookup docker on 10.0.0.1:53: no such host").contains("unset DOCKER_HOST"));
        assert!(remedy("Error: crun: mount `proc` to `proc`: Operation not permitted").contains("masks"));
        assert!(
            remedy("mount /var/lib/containers/storage/overlay:/x, flags: 0x1000: permission denied")
                .contains("AppArmor")
        );
        assert!(remedy("mkdir /sys/fs/cgroup/cpuset/docker: read-only file system").contains("cgroups"));
        let long = format!(
            "Error: mounting {}: using mount program: fuse: failed to open /dev/fuse: no\n: exit status 1",
            "x".repeat(900)
        );
        let (failure, _) = explained("the inner start failed", &long);
        assert_eq!(failure.words.as_deref(), Some("… fuse: failed to open /dev/fuse: no"));
        let (failure, remedy) = explained("the inner start failed", "no idea");
        assert_eq!((failure.class, remedy), (FailureClass::Crash, None));
    }
}

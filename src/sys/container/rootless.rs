//! Whether this process can make a container directly, needs a user namespace for it, or cannot make one at
//! all; and why.

use std::fs;
use std::path::Path;

use thiserror::Error;

use super::super::raw;

/// Why this process cannot make user namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct NoUserNamespaces(&'static str);

/// Settings that prevent ordinary users from making them: the kernel's limit, Debian's switch and Ubuntu's.
const SWITCHES: [(&str, &str, &str); 3] = [
    ("user/max_user_namespaces", "0", "user namespaces are limited to 0 (sysctl `user.max_user_namespaces`)"),
    (
        "kernel/unprivileged_userns_clone",
        "0",
        "only root may make user namespaces (sysctl `kernel.unprivileged_userns_clone` is 0)",
    ),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "AppArmor removes all capabilities in user namespaces (sysctl `kernel.apparmor_restrict_unprivileged_userns` is 1)",
    ),
];

const CAP_SYS_ADMIN: u32 = 21;

/// Whether this process may make namespaces, mounts and device nodes without a user namespace. Root of a user
/// namespace may not, with any capabilities: it makes another one inside.
pub fn is_privileged() -> bool {
    let capable = raw::effective_capabilities().is_some_and(|set| set & 1 << CAP_SYS_ADMIN != 0);
    capable && is_initial(&fs::read_to_string("/proc/self/uid_map").unwrap_or_default())
}

/// Whether a user mapping is that of the initial user namespace, which maps every user to itself. A kernel
/// without user namespaces has no mapping.
fn is_initial(uid_map: &str) -> bool {
    uid_map.is_empty() || uid_map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// Why an ordinary user cannot make user namespaces here, as far as the kernel reports it.
pub fn user_namespaces() -> Result<(), NoUserNamespaces> {
    if fs::symlink_metadata("/proc/self/ns/user").is_err() {
        return Err(NoUserNamespaces("this kernel has no user namespaces (CONFIG_USER_NS)"));
    }
    for (switch, off, why) in SWITCHES {
        let value = fs::read_to_string(Path::new("/proc/sys").join(switch));
        if value.is_ok_and(|value| value.trim() == off) {
            return Err(NoUserNamespaces(why));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::is_initial;

    #[test]
    fn only_the_first_user_namespace_maps_everybody() {
        assert!(is_initial("         0          0 4294967295\n") && is_initial(""));
        assert!(!is_initial("0 1000 1\n1 100000 65536\n"));
    }
}

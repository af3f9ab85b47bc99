//! Whether this process may make a container as it is, needs a user namespace for it, or may not
//! make one at all; and why.

use std::fs;

use thiserror::Error;

use super::super::raw;

/// Why this process cannot make user namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NoUserNamespaces {
    /// The kernel was built without them.
    #[error("this kernel has no user namespaces (CONFIG_USER_NS)")]
    NotBuilt,
    /// Their number is limited to none.
    #[error("user namespaces are limited to 0 (sysctl `user.max_user_namespaces`)")]
    LimitedToNone,
    /// Debian's switch.
    #[error("user namespaces are for root only (sysctl `kernel.unprivileged_userns_clone` is 0)")]
    RootOnly,
    /// Ubuntu's switch.
    #[error(
        "AppArmor takes all capabilities away in user namespaces (sysctl `kernel.apparmor_restrict_unprivileged_userns` is 1)"
    )]
    AppArmor,
}

const CAP_SYS_ADMIN: u32 = 21;

/// Whether this process may make namespaces and mounts without a user namespace.
pub fn is_privileged() -> bool {
    raw::effective_capabilities().is_some_and(|set| set & 1 << CAP_SYS_ADMIN != 0)
}

/// What keeps an ordinary user from making user namespaces here, as far as the kernel says so.
pub fn user_namespaces() -> Result<(), NoUserNamespaces> {
    let switch = |path: &str| fs::read_to_string(path).ok().map(|value| value.trim().to_owned());
    let is = |path: &str, value: &str| switch(path).as_deref() == Some(value);
    if fs::symlink_metadata("/proc/self/ns/user").is_err() {
        return Err(NoUserNamespaces::NotBuilt);
    }
    if is("/proc/sys/user/max_user_namespaces", "0") {
        return Err(NoUserNamespaces::LimitedToNone);
    }
    if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        return Err(NoUserNamespaces::RootOnly);
    }
    if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        return Err(NoUserNamespaces::AppArmor);
    }
    Ok(())
}

//! The privileges of this process: user, capabilities and filters, from `/proc/self/status`.

use super::tree::Tree;

/// Capabilities that measuring needs, as bits (linux/capability.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// Interfaces, addresses, routes.
    NetAdmin = 12,
    /// Mounts, namespaces, cgroups.
    SysAdmin = 21,
    /// Raising resource limits.
    SysResource = 24,
    /// Perf events on all CPUs.
    Perfmon = 38,
}

/// The privileges of the calling process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Own {
    /// Effective user id.
    pub user: Option<u32>,
    /// Effective capabilities as a bit set.
    pub capabilities: Option<u64>,
    /// Whether `no_new_privs` is set, so that set-user-id programs gain nothing.
    pub no_new_privileges: Option<bool>,
    /// Whether this process, and hence everything that it starts, has a seccomp filter.
    pub seccomp_filtered: Option<bool>,
    /// Whether this is the initial user namespace, where user 0 is the machine's root.
    pub initial_user_namespace: Option<bool>,
    /// Whether this is the initial time namespace.
    pub initial_time_namespace: Option<bool>,
}

impl Own {
    pub(super) fn gather(tree: &Tree) -> Own {
        let field = |wanted: &str| tree.row("/proc/self/status", wanted);
        Own {
            user: field("Uid").and_then(|ids| ids.split_whitespace().nth(1)?.parse().ok()),
            capabilities: field("CapEff").and_then(|set| u64::from_str_radix(&set, 16).ok()),
            no_new_privileges: field("NoNewPrivs").map(|flag| flag == "1"),
            seccomp_filtered: field("Seccomp").map(|mode| mode != "0"),
            initial_user_namespace: super::isolation::is_initial(tree, "user"),
            initial_time_namespace: super::isolation::is_initial(tree, "time"),
        }
    }

    /// Whether the process has a capability, if known.
    pub fn can(&self, capability: Capability) -> Option<bool> {
        self.capabilities.map(|own| own >> capability as u32 & 1 == 1)
    }

    /// Whether the user id is 0, if known.
    pub fn is_root(&self) -> Option<bool> {
        self.user.map(|user| user == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str =
        "Name:\tcat\nUid:\t1000\t0\t0\t0\nCapEff:\t000001fffeffffff\nNoNewPrivs:\t0\nSeccomp:\t2\n";

    fn of(status: &str) -> Own {
        Own::gather(&Tree::planted(&[("/proc/self/status", status)]))
    }

    #[test]
    fn the_effective_user_and_capabilities_are_read() {
        let own = of(STATUS);
        assert_eq!((own.user, own.is_root()), (Some(0), Some(true)));
        assert_eq!(own.can(Capability::SysAdmin), Some(true));
        assert_eq!(own.can(Capability::SysResource), Some(false));
        assert_eq!(own.can(Capability::Perfmon), Some(true));
        assert_eq!((own.no_new_privileges, own.seccomp_filtered), (Some(false), Some(true)));
    }

    #[test]
    fn an_old_kernel_that_tells_less_leaves_it_unknown() {
        let own = of("Uid:\t1000\t1000\t1000\t1000\n");
        assert_eq!(own.is_root(), Some(false));
        assert_eq!((own.capabilities, own.seccomp_filtered), (None, None));
        assert_eq!(own.can(Capability::SysAdmin), None);
    }
}

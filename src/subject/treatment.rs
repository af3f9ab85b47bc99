//! Checks that the subject got the treatment it was asked to give: compares what the probe read back from
//! inside with what was asked for, and reduces it to a few facts that are recorded.

use dunnage_analysis::launch::names;

use super::confined::Confined;
use super::drivers::Storage;
use super::limits::Limits;
use super::owners::UserMap;
use super::storage;
use crate::outcome::{Failure, FailureClass};
use crate::probe::Detail;
use crate::probe::message::{CgroupInUse, Inside};

/// Whether a namespace must be the subject's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Own {
    /// A new one.
    Private,
    /// The host's.
    Host,
    /// Either: the choice was left to the engine.
    Any,
}

/// The expected network inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// The host's own namespace.
    Host,
    /// A namespace with a loopback interface and nothing else.
    Loopback,
    /// A namespace with a way out.
    Connected,
    /// Any of these.
    Any,
}

/// Whose kernel serves the probe's system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// The host's kernel.
    Hosts,
    /// A kernel that comes with the container. Its namespaces and `/proc` are its own, so nothing inside has
    /// an identity that can be compared with the host's.
    Own,
}

/// Whether a cgroup must be the subject's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cgroup {
    /// One in which nothing ran before. Not checked where the container cannot see its cgroup.
    Own,
    /// Any cgroup.
    Any,
}

/// What the probe must find inside.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// The network.
    pub network: Network,
    /// The process id namespace.
    pub pid: Own,
    /// The user namespace.
    pub user: Own,
    /// The mount namespace.
    pub mount: Own,
    /// The IPC namespace.
    pub ipc: Own,
    /// The UTS namespace.
    pub uts: Own,
    /// The time namespace; stamps from different ones cannot be compared.
    pub time: Own,
    /// The cgroup.
    pub cgroup: Cgroup,
    /// `PR_GET_NO_NEW_PRIVS`, if asked for.
    pub no_new_privs: Option<u64>,
    /// `PR_GET_SECCOMP`, if asked for.
    pub seccomp: Option<u64>,
    /// Effective capabilities, if asked for.
    pub capabilities: Option<u64>,
    /// Whose kernel it is.
    pub kernel: Kernel,
    /// The allowed filesystem types of the root; empty for any.
    pub root: &'static [&'static str],
    /// The storage driver that makes its root, if one is asked for.
    pub storage: Option<&'static Storage>,
    /// Its user mapping, if one is asked for.
    pub user_map: Option<UserMap>,
    /// The snapshotter that makes its root, if one is asked for.
    pub snapshotter: Option<String>,
    /// Limits of its cgroup, if any are asked for.
    pub limits: Option<Limits>,
    /// Limits of its processes, and its CPUs, if any are asked for.
    pub confined: Confined,
}

impl Expected {
    /// No expectations.
    pub fn anything() -> Expected {
        Expected {
            network: Network::Any,
            pid: Own::Any,
            user: Own::Any,
            mount: Own::Any,
            ipc: Own::Any,
            uts: Own::Any,
            time: Own::Any,
            cgroup: Cgroup::Any,
            no_new_privs: None,
            seccomp: None,
            capabilities: None,
            kernel: Kernel::Hosts,
            root: &[],
            storage: None,
            user_map: None,
            snapshotter: None,
            limits: None,
            confined: Confined::default(),
        }
    }

    /// A process that is not isolated in any way.
    pub fn bare() -> Expected {
        Expected {
            network: Network::Host,
            pid: Own::Host,
            user: Own::Host,
            mount: Own::Host,
            ipc: Own::Host,
            uts: Own::Host,
            time: Own::Host,
            ..Expected::anything()
        }
    }

    /// A container with its own namespaces, and no further expectations.
    pub fn container() -> Expected {
        Expected {
            network: Network::Loopback,
            pid: Own::Private,
            mount: Own::Private,
            ipc: Own::Private,
            uts: Own::Private,
            cgroup: Cgroup::Own,
            ..Expected::bare()
        }
    }

    /// What the probe must read back in addition to the usual. In the host's network, engines give a container
    /// the host's name, and only its mounts identify it.
    pub fn detail(&self) -> Option<&'static str> {
        let has_hosts_name = self.network == Network::Host && self.cgroup == Cgroup::Own;
        let inherited = !self.confined.is_empty();
        Detail { limits: self.limits.is_some(), mounts: has_hosts_name, inherited }.word()
    }

    /// What was asked for by name as it is in force, as facts of the treatment: the mapping of users, the filesystem type of
    /// the root, the limits of processes and their CPUs.
    pub(super) fn found(&self, inside: &Inside) -> Vec<(&'static str, String)> {
        let mapping = self.user_map.as_ref().map(|_| (names::USER_MAPPING.text(), inside.uid_map.join(",")));
        let storage = self.storage.and_then(|_| inside.root()).map(|(kind, _)| (names::STORAGE.text(), kind));
        let confined = self.confined.found(inside.inherited.as_ref());
        mapping.into_iter().chain(storage).chain(confined).collect()
    }

    /// Lists the differences, with both values; `host` is what a bare process sees.
    pub fn check(&self, inside: &Inside, host: &Inside) -> Result<(), Failure> {
        let mut wrong = match self.kernel {
            Kernel::Hosts => self.namespace_faults(inside, host),
            Kernel::Own if inside.has_own_kernel() => Vec::new(),
            Kernel::Own => vec!["its kernel is the host's, and so are its namespaces".to_owned()],
        };
        if self.cgroup == Cgroup::Own
            && self.kernel == Kernel::Hosts
            && is_own_cgroup(inside, host) == Some(false)
        {
            wrong.push("its cgroup is not its own: other processes are in it".into());
        }
        wrong.extend(self.network_fault(inside, host));
        if let Some(asked) = self.seccomp.filter(|asked| *asked != inside.seccomp) {
            wrong.push(format!("seccomp mode {asked} was asked for and {} is in force", inside.seccomp));
        }
        if let Some(asked) = self.no_new_privs.filter(|asked| *asked != inside.no_new_privs) {
            wrong.push(format!("no_new_privs {asked} was asked for and {} is in force", inside.no_new_privs));
        }
        if let Some(asked) = self.capabilities.filter(|asked| *asked != inside.capabilities) {
            wrong.push(format!(
                "capabilities {asked:#x} were asked for and {:#x} are in force",
                inside.capabilities
            ));
        }
        match inside.root() {
            Some((kind, _)) if !self.root.is_empty() && !self.root.contains(&kind.as_str()) => {
                wrong.push(format!("its root is on `{kind}`, not on {}", self.root.join(" or ")));
            }
            None if !self.root.is_empty() => wrong.push("its root is not among its mounts".into()),
            _ => {}
        }
        wrong.extend(self.storage.and_then(|asked| asked.fault(inside)));
        wrong.extend(self.user_map.as_ref().and_then(|asked| asked.fault(&inside.uid_map)));
        wrong.extend(self.snapshotter.as_ref().and_then(|asked| snapshotter_fault(asked, inside)));
        wrong.extend(self.limits.and_then(|asked| asked.fault(&inside.limits())));
        wrong.extend(self.confined.faults(inside.inherited.as_ref()));
        if wrong.is_empty() {
            return Ok(());
        }
        Err(Failure::new(FailureClass::Treatment, format!("not as asked: {}", wrong.join("; "))))
    }

    fn namespace_faults(&self, inside: &Inside, host: &Inside) -> Vec<String> {
        let mut wrong = Vec::new();
        let namespaces = [
            ("pid", self.pid),
            ("user", self.user),
            ("mnt", self.mount),
            ("ipc", self.ipc),
            ("uts", self.uts),
            ("time", self.time),
        ];
        for (name, asked) in namespaces {
            let same = inside.namespaces.get(name) == host.namespaces.get(name);
            match (asked, same) {
                (Own::Private, true) => wrong.push(format!("its {name} namespace is the host's")),
                (Own::Host, false) if name == "time" => {
                    wrong.push(
                        "its time namespace is not the host's, so its stamps cannot be compared".into(),
                    );
                }
                (Own::Host, false) => wrong.push(format!("its {name} namespace is not the host's")),
                _ => {}
            }
        }
        wrong
    }

    fn network_fault(&self, inside: &Inside, host: &Inside) -> Option<String> {
        let same = inside.namespaces.get("net") == host.namespaces.get("net");
        let others: Vec<_> = inside.interfaces.iter().filter(|name| is_a_way_out(name)).collect();
        match self.network {
            Network::Host if !same => Some("its network namespace is not the host's".into()),
            Network::Loopback | Network::Connected if same => {
                Some("its network namespace is the host's".into())
            }
            Network::Loopback if !others.is_empty() => Some(format!("it has network interfaces {others:?}")),
            Network::Connected if others.is_empty() => {
                Some("it has no network interface but loopback".into())
            }
            _ => None,
        }
    }
}

/// The snapshotter's name is part of the path from which the root is mounted.
fn snapshotter_fault(asked: &str, inside: &Inside) -> Option<String> {
    let root = inside.mounts.iter().rfind(|line| line.split(' ').nth(4) == Some("/"));
    let found = root.map_or("not known", String::as_str);
    (!found.contains(&format!("snapshotter.v1.{asked}/")))
        .then(|| format!("the snapshotter {asked} was asked for and the root is `{found}`"))
}

/// Whether nothing ran in its cgroup before it; `None` where it cannot see its cgroup or the host's are not
/// known. In the host's cgroup namespace the path identifies the cgroup, in another one the inode of the root
/// directory does.
fn is_own_cgroup(inside: &Inside, host: &Inside) -> Option<bool> {
    let shares_namespace = inside.namespaces.get("cgroup")? == host.namespaces.get("cgroup")?;
    if shares_namespace {
        // It must not be in a used cgroup of any hierarchy; which hierarchies are mounted inside does not
        // matter.
        let used = |one: &CgroupInUse| inside.path_in(&one.controller) == Some(one.path.as_str());
        let is_known = !host.cgroups_in_use.is_empty() && !inside.cgroup_path.is_empty();
        return is_known.then(|| !host.cgroups_in_use.iter().any(used));
    }
    let (controller, inode) = inside.cgroup_seen.as_ref()?;
    let mut known = host.cgroups_in_use.iter().filter(|one| one.controller == *controller).peekable();
    known.peek()?;
    Some(!known.any(|one| one.inode == *inode))
}

/// Loopback, and the devices that the kernel adds to every new namespace when their modules are loaded, lead
/// nowhere.
fn is_a_way_out(interface: &str) -> bool {
    const FALLBACK_DEVICES: [&str; 9] =
        ["lo", "tunl0", "gre0", "gretap0", "erspan0", "sit0", "ip6tnl0", "ip6gre0", "ip_vti0"];
    !FALLBACK_DEVICES.contains(&interface) && interface != "ip6_vti0"
}

/// The facts of a treatment that are recorded with its samples, without the numbers that differ from launch
/// to launch.
pub fn facts(inside: &Inside, host: &Inside) -> Vec<(&'static str, String)> {
    let owned = |name: &str| match inside.namespaces.get(name) {
        None => "unknown",
        own if own == host.namespaces.get(name) => "host",
        Some(_) => "private",
    };
    let (root, options) = inside.root().unwrap_or_default();
    // The host's own interfaces come and go with other containers; only a private network's are part of the
    // treatment.
    let network = match owned("net") {
        "private" => format!("private:{}", inside.interfaces.join(",")),
        shared => shared.to_owned(),
    };
    let volatile = storage::is_volatile(options.split(','));
    let mut facts = vec![
        (names::ROOT.text(), root),
        (names::ROOT_DURABILITY.text(), if volatile { "volatile" } else { "ordinary" }.to_owned()),
        (names::NETWORK.text(), network),
        (names::SECCOMP.text(), inside.seccomp.to_string()),
        ("no_new_privs", inside.no_new_privs.to_string()),
        ("capabilities", format!("{:#x}", inside.capabilities)),
        ("uid", inside.uid.to_string()),
    ];
    facts.extend(["pid", "user", "mnt", "ipc", "uts"].map(|name| (name, owned(name).to_owned())));
    facts.push(("cgroup_ns", owned("cgroup").to_owned()));
    let cgroup = match is_own_cgroup(inside, host) {
        _ if inside.has_own_kernel() => "unknown",
        None => "unknown",
        Some(true) => "own",
        Some(false) => "host",
    };
    facts.push(("cgroup", cgroup.to_owned()));
    if !inside.limit_files.is_empty() {
        let limits = inside.limits();
        facts.push(("cpus", limits.cpus.map_or("none".to_owned(), |cpus| cpus.to_string())));
        let burst =
            limits.burst.filter(|burst| burst.0 > 0).map(|burst| ("burst", format!("{}us", burst.0 / 1000)));
        facts.extend(burst);
    }
    if inside.has_own_kernel() {
        facts.push(("kernel", "private".to_owned()));
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_use((path, inode): (&str, u64)) -> CgroupInUse {
        CgroupInUse { controller: "pids".into(), path: path.into(), inode }
    }

    fn inside(shift: u64) -> Inside {
        let namespaces = ["pid", "user", "mnt", "net", "ipc", "uts", "cgroup"];
        let mut all: std::collections::BTreeMap<_, _> =
            namespaces.iter().zip(100..).map(|(name, inode)| ((*name).to_owned(), inode + shift)).collect();
        all.insert("time".into(), 7);
        Inside {
            namespaces: all,
            interfaces: vec!["lo".into()],
            seccomp: 2,
            no_new_privs: 1,
            cgroup_seen: Some(("pids".into(), 10 + shift)),
            cgroups_in_use: [("/", 1), ("/ours", 10)].map(in_use).into(),
            mounts: vec!["1 0 0:5 / / rw - overlay overlay rw,volatile".into()],
            ..Inside::default()
        }
    }

    fn contained() -> Expected {
        Expected {
            network: Network::Loopback,
            pid: Own::Private,
            user: Own::Any,
            mount: Own::Private,
            ipc: Own::Private,
            uts: Own::Private,
            cgroup: Cgroup::Own,
            no_new_privs: Some(1),
            seccomp: Some(2),
            capabilities: None,
            root: &["overlay"],
            ..Expected::bare()
        }
    }

    #[test]
    fn what_names_a_container_is_asked_for_where_its_host_name_does_not() {
        let word = |expected: Expected| expected.detail();
        assert_eq!((word(contained()), word(Expected::bare())), (None, None));
        let joined = Expected { network: Network::Host, ..contained() };
        assert_eq!(word(joined.clone()), Some("mounts"));
        assert_eq!(word(Expected { limits: Some(Limits::default()), ..joined }), Some("limits,mounts"));
    }

    #[test]
    fn a_container_as_asked_passes() {
        assert_eq!(contained().check(&inside(50), &inside(0)), Ok(()));
        assert_eq!(Expected::bare().check(&inside(0), &inside(0)), Ok(()));
    }

    #[test]
    fn each_deviation_is_a_failure_of_the_treatment_that_names_it() {
        type Planted = fn(&mut Inside);
        let planted: [(Planted, &str); 8] = [
            (|view| view.no_new_privs = 0, "no_new_privs 1 was asked for and 0"),
            (
                |view| view.namespaces.insert("uts".into(), 105).map_or((), drop),
                "uts namespace is the host's",
            ),
            (
                |view| view.namespaces.insert("pid".into(), 100).map_or((), drop),
                "pid namespace is the host's",
            ),
            (
                |view| view.namespaces.insert("net".into(), 103).map_or((), drop),
                "network namespace is the host's",
            ),
            (|view| view.namespaces.insert("time".into(), 8).map_or((), drop), "time namespace"),
            (|view| view.seccomp = 0, "seccomp mode 2 was asked for and 0"),
            (|view| view.interfaces.push("eth0".into()), "eth0"),
            (|view| view.mounts.clear(), "root"),
        ];
        for (plant, expected) in planted {
            let mut view = inside(50);
            plant(&mut view);
            let failure = contained().check(&view, &inside(0)).unwrap_err();
            assert_eq!(failure.class, FailureClass::Treatment);
            assert!(failure.reason.contains(expected), "{failure}");
        }
    }

    #[test]
    fn a_cgroup_is_its_own_where_nothing_ran_in_it() {
        // Inode numbers as Linux assigns them.
        let linux = |mut view: Inside| {
            view.namespaces.values_mut().for_each(|inode| *inode += 0xEFFF_FF00);
            view
        };
        let host = linux(inside(0));
        let fact =
            |view: &Inside| facts(view, &host).into_iter().find(|(name, _)| *name == "cgroup").unwrap().1;
        let seen = |seen: Option<(&str, u64)>| Inside {
            cgroup_seen: seen.map(|(controller, inode)| (controller.to_owned(), inode)),
            ..linux(inside(50))
        };
        let shared = |path: &str| {
            let mut view = Inside { cgroup_path: vec![format!("8:pids:{path}")], ..linux(inside(50)) };
            view.namespaces.insert("cgroup".into(), host.namespaces["cgroup"]);
            view
        };
        let own = [seen(Some(("pids", 11))), shared("/ours/inner"), shared("/our")];
        // Not seen at all, or in a hierarchy that the host does not know.
        let unknown = [seen(None), seen(Some(("memory", 10))), seen(Some(("", 10)))];
        for (views, expected) in [(&own, "own"), (&unknown, "unknown")] {
            for view in views {
                assert_eq!(contained().check(view, &host), Ok(()));
                assert_eq!(fact(view), expected);
            }
        }
        for view in [seen(Some(("pids", 10))), seen(Some(("pids", 1))), shared("/ours"), shared("/")] {
            let failure = contained().check(&view, &host).unwrap_err();
            assert_eq!(failure.class, FailureClass::Treatment);
            assert!(failure.reason.contains("its cgroup is not its own"), "{failure}");
            assert_eq!(fact(&view), "host");
            assert_eq!(Expected { cgroup: Cgroup::Any, ..contained() }.check(&view, &host), Ok(()));
        }
        assert_eq!(
            is_own_cgroup(&linux(inside(50)), &Inside { cgroups_in_use: [].into(), ..host.clone() }),
            None
        );
    }

    #[test]
    fn a_kernel_of_its_own_is_known_by_its_namespaces() {
        let asked = Expected { kernel: Kernel::Own, user: Own::Any, root: &[], ..contained() };
        let mut host = inside(0);
        host.namespaces.values_mut().for_each(|inode| *inode += 0xEFFF_FF00);
        let planted = inside(50);
        assert_eq!(asked.check(&planted, &host), Ok(()));
        assert!(facts(&planted, &host).contains(&("kernel", "private".into())));
        let mut shared = planted.clone();
        shared.namespaces.values_mut().for_each(|inode| *inode += 0xEFFF_FF00);
        let failure = asked.check(&shared, &host).unwrap_err();
        assert!(failure.reason.contains("its kernel is the host's"), "{failure}");
        let loose = Inside { seccomp: 0, ..planted };
        assert!(asked.check(&loose, &host).unwrap_err().reason.contains("seccomp mode 2"));
    }

    #[test]
    fn a_volatile_root_is_recorded() {
        assert!(facts(&inside(50), &inside(0)).contains(&("root_durability", "volatile".into())));
    }
}

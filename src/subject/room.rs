//! What containers use of what a machine has a fixed number of: counted before the first and with the last, with the limit, and in
//! a form that is recorded. Everything is read from the kernel, except what only an engine knows.
//!
//! Deliberately absent: how many fit, which the analysis computes; and rates, such as of packets.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use dunnage_analysis::subject::room::Resource;

use super::Subject;
use crate::sys::{cgroup, filesystem, memory, process, raw};

/// What is counted at a moment.
#[derive(Debug, Clone, Default)]
pub struct Room {
    counts: Vec<Count>,
    /// Ports of each bridge.
    bridges: BTreeMap<String, i64>,
    threads: BTreeMap<(i32, u64), i64>,
    daemons: Vec<i32>,
    descriptors: BTreeMap<i32, (i64, i64)>,
    /// Tasks in each cgroup that limits them, and the limit.
    groups: BTreeMap<PathBuf, (i64, i64)>,
}

/// Where the containers of a subject are kept.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    /// The directory of what they write, if that is known.
    pub store: Option<PathBuf>,
    /// The cgroups around their own ones.
    pub groups: BTreeSet<PathBuf>,
}

impl Kept {
    /// Where those of a subject are of which one has this first process.
    pub fn of(subject: &dyn Subject, first: Option<i32>) -> Kept {
        let daemons = subject.daemons().unwrap_or_default();
        let of_daemons = daemons.iter().flat_map(|pid| task_groups(*pid));
        let of_container = first.into_iter().flat_map(|pid| task_groups(pid).into_iter().skip(1));
        Kept { store: None, groups: of_daemons.chain(of_container).collect() }
    }

    /// The same once that container has gone, and its own layer with it.
    pub fn below(self, upper: Option<&Path>) -> Kept {
        let store = upper.and_then(|upper| upper.ancestors().find(|one| one.is_dir()));
        Kept { store: store.map(Path::to_owned), ..self }
    }
}

/// So much of a resource is in use, of at most so much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Count {
    of: Resource,
    used: i64,
    limit: i64,
}

/// The kernel's `BR_MAX_PORTS` is 1024, of which it gives away one less.
const PORTS: i64 = 1023;
/// The ids of memory cgroups have 16 bits, and none is 0.
const CGROUPS: i64 = 65_535;

impl Room {
    /// So many are in use, of which nothing else uses any: what a script says.
    pub fn scripted(of: Resource, used: i64, limit: i64) -> Room {
        Room { counts: vec![Count { of, used, limit }], ..Room::default() }
    }

    /// Counts everything for a subject whose containers are kept here.
    pub fn now(subject: &dyn Subject, kept: &Kept) -> Room {
        let memory = memory::machine().ok();
        let memory = memory.map(|now| (Resource::Memory, now.total - now.available, now.total));
        let left = kept.store.as_ref().and_then(|store| filesystem::left(store).ok());
        // What is left shrinks from a moment to the next, so nothing is in use at first.
        let disk = left.map(|left| (Resource::Disk, -(left.bytes as i64), 0));
        let files = left.and_then(|left| Some((Resource::Inodes, -(left.files? as i64), 0)));
        let locks = subject.free_locks().map(|free| (Resource::Locks, -free, 0));
        // Those of another user are not this one's.
        let is_own =
            subject.about().spec.get("rootless").is_none() && subject.about().spec.get("userns").is_none();
        let of_user = if is_own { [inotify(), keys()] } else { [None, None] };
        let all = [memory, mounts(), cgroups()].into_iter().chain(of_user);
        let counts = all.chain([disk, files, locks]).flatten();
        let counts = counts.map(|(of, used, limit)| Count { of, used, limit }).collect();
        let daemons = subject.daemons().unwrap_or_default().to_vec();
        let descriptors = descriptors(&daemons);
        let groups = kept.groups.iter().filter_map(|one| Some((one.clone(), tasks_in(one)?))).collect();
        Room { counts, bridges: bridges(), threads: threads(), daemons, descriptors, groups }
    }

    /// Each resource as it is recorded: in use before, in use now, and the limit.
    pub fn since(self, before: &Room, containers: usize) -> Vec<(Resource, [i64; 3])> {
        let earlier = |of: Resource| before.counts.iter().find(|one| one.of == of);
        let one = |now: Count| Some((now.of, [earlier(now.of)?.used, now.used, now.limit]));
        let mut all: Vec<_> = self.counts.iter().copied().filter_map(one).collect();
        let of_groups = ending_first(&before.groups, &self.groups);
        let tasks = [self.tasks(before), of_groups].into_iter().flatten();
        all.extend(tasks.min_by_key(lasts).map(|numbers| (Resource::Tasks, numbers)));
        let files = ending_first(&before.descriptors, &self.descriptors);
        all.extend(files.map(|numbers| (Resource::Files, numbers)));
        // The bridge that grew with the containers is theirs, and not one that grew more.
        let grown =
            |(name, ports): &(&String, &i64)| **ports - before.bridges.get(*name).copied().unwrap_or(0);
        let own =
            self.bridges.iter().filter(|own| grown(own) >= (containers as i64).max(1)).min_by_key(grown);
        if let Some((bridge, ports)) = own {
            let earlier = ports - grown(&(bridge, ports));
            all.push((Resource::Ports, [earlier, *ports, PORTS]));
            all.extend(addresses(bridge).map(|most| (Resource::Addresses, [earlier, *ports, most])));
        }
        all
    }
}

impl Room {
    /// Threads of the whole machine. Of processes that were there before only those of daemons may be for containers: threads of
    /// the kernel and of others come and go.
    fn tasks(&self, before: &Room) -> Option<[i64; 3]> {
        let limit = tasks_of_all()?;
        let more = |(key, threads): (&(i32, u64), &i64)| match before.threads.get(key) {
            Some(earlier) if self.daemons.contains(&key.0) => threads - earlier,
            Some(_) => 0,
            None => *threads,
        };
        let more: i64 = self.threads.iter().map(more).sum();
        let others: i64 = before.threads.values().sum();
        (!self.threads.is_empty()).then_some([others, others + more, limit])
    }
}

/// How many tasks the machine can have.
pub fn tasks_of_all() -> Option<i64> {
    Some(number("/proc/sys/kernel/pid_max")?.min(number("/proc/sys/kernel/threads-max")?))
}

/// For how many times as much more as was used a resource lasts.
fn lasts([earlier, used, limit]: &[i64; 3]) -> i64 {
    (limit - earlier).checked_div(used - earlier).filter(|times| *times >= 0).unwrap_or(i64::MAX)
}

/// Of several with limits of their own, in use before and now, the one that ends first.
fn ending_first<K: Ord>(before: &BTreeMap<K, (i64, i64)>, now: &BTreeMap<K, (i64, i64)>) -> Option<[i64; 3]> {
    let one = |(key, (used, limit)): (&K, &(i64, i64))| {
        let (earlier, _) = *before.get(key)?;
        (*used > earlier).then_some([earlier, *used, *limit])
    };
    now.iter().filter_map(one).min_by_key(lasts)
}

/// The cgroups of a process that can limit tasks, its own first.
fn task_groups(pid: i32) -> Vec<PathBuf> {
    let hierarchies = cgroup::mounted_of(pid).unwrap_or_default();
    let Some(hierarchy) = cgroup::with_controller(&hierarchies, "pids") else { return Vec::new() };
    let own = hierarchy.own.iter().flat_map(|own| own.ancestors());
    own.take_while(|one| **one != *hierarchy.mount).map(Path::to_owned).collect()
}

/// Tasks in a cgroup and how many there may be, if they are limited.
fn tasks_in(group: &Path) -> Option<(i64, i64)> {
    let number = |name: &str| number(group.join(name).to_str()?);
    Some((number("pids.current")?, number("pids.max")?))
}

type Counted = Option<(Resource, i64, i64)>;

fn number(path: &str) -> Option<i64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Threads of each process, by its id and its start.
fn threads() -> BTreeMap<(i32, u64), i64> {
    let of_it =
        |one: &process::Process| Some(fs::read_dir(format!("/proc/{}/task", one.pid)).ok()?.count() as i64);
    // One that has ended and waits for its parent has no words any more, like a thread of the kernel.
    let runs = |one: &process::Process| {
        fs::read(format!("/proc/{}/cmdline", one.pid)).is_ok_and(|words| !words.is_empty())
    };
    process::all().filter(runs).filter_map(|one| Some(((one.pid, one.started()), of_it(&one)?))).collect()
}

/// Open files of each daemon, and its limit.
fn descriptors(daemons: &[i32]) -> BTreeMap<i32, (i64, i64)> {
    let of_daemon = |pid: &i32| {
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
        let limit = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
        let limit: i64 = limit.split_whitespace().next()?.parse().ok()?;
        let used = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count() as i64;
        Some((*pid, (used, limit)))
    };
    daemons.iter().filter_map(of_daemon).collect()
}

/// Instances of inotify that this user's processes hold.
fn inotify() -> Counted {
    let limit = number("/proc/sys/fs/inotify/max_user_instances")?;
    let own = raw::user_and_group().0 as u32;
    let processes = process::all().filter(|one| process::user_of(one.pid) == Some(own));
    let links = processes.flat_map(|one| fs::read_dir(format!("/proc/{}/fd", one.pid)).into_iter().flatten());
    let is_one = |path: PathBuf| fs::read_link(path).is_ok_and(|to| to.as_os_str() == "anon_inode:inotify");
    let used = links.flatten().filter(|link| is_one(link.path())).count() as i64;
    Some((Resource::Inotify, used, limit))
}

/// Keys of this user: the quota's fourth column is `used/limit`.
fn keys() -> Counted {
    let users = fs::read_to_string("/proc/key-users").ok()?;
    let own = format!("{}:", raw::user_and_group().0);
    let row = users.lines().map(str::trim).find_map(|line| line.strip_prefix(&own))?;
    let (used, limit) = row.split_whitespace().nth(2)?.split_once('/')?;
    Some((Resource::Keys, used.parse().ok()?, limit.parse().ok()?))
}

/// Mounts that dunnage sees, which are those of engines that share its mount namespace.
fn mounts() -> Counted {
    let used = fs::read_to_string("/proc/self/mountinfo").ok()?.lines().count() as i64;
    Some((Resource::Mounts, used, number("/proc/sys/fs/mount-max")?))
}

/// Memory cgroups, removed ones that are still charged included.
fn cgroups() -> Counted {
    let all = fs::read_to_string("/proc/cgroups").ok()?;
    let row = all.lines().find(|line| line.starts_with("memory\t"))?;
    Some((Resource::Cgroups, row.split_whitespace().nth(2)?.parse().ok()?, CGROUPS))
}

/// The ports of each bridge of the host.
fn bridges() -> BTreeMap<String, i64> {
    let all = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let one = |entry: fs::DirEntry| {
        let ports = fs::read_dir(entry.path().join("brif")).ok()?.count() as i64;
        Some((entry.file_name().into_string().ok()?, ports))
    };
    all.filter_map(one).collect()
}

/// How many addresses containers on a bridge can have: those of its network without the network's own, the one for all, and the
/// bridge's.
fn addresses(bridge: &str) -> Option<i64> {
    addresses_in(&fs::read_to_string("/proc/net/route").ok()?, bridge)
}

fn addresses_in(routes: &str, bridge: &str) -> Option<i64> {
    let mut of_it = routes.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let direct = of_it.find(|row| row.first() == Some(&bridge) && row.get(2) == Some(&"00000000"))?;
    // Columns are as on the wire, read as the machine's own numbers.
    let mask = u32::from_str_radix(direct.get(7)?, 16).ok()?;
    let hosts = Ipv4Addr::from(mask.to_ne_bytes()).to_bits().count_zeros();
    Some((1_i64 << hosts) - 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_three_addresses_less_than_its_size() {
        let head = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n";
        let row = |mask: &str| {
            format!(
                "{head}eth0 00000000 0101A8C0 0003 0 0 0 00000000 0 0 0\nbr0 0000110A 00000000 0001 0 0 0 {mask} 0 0 0\n"
            )
        };
        assert_eq!(addresses_in(&row("0000FFFF"), "br0"), Some(65_533));
        assert_eq!(addresses_in(&row("F0FFFFFF"), "br0"), Some(13));
        assert_eq!((addresses_in(&row("F0FFFFFF"), "eth0"), addresses_in(head, "br0")), (None, None));
    }

    #[test]
    fn the_bridge_of_the_containers_is_the_one_that_grew_with_them() {
        let room = |own: i64, other: i64| Room {
            counts: vec![Count { of: Resource::Keys, used: 100 + own, limit: 1000 }],
            bridges: [("own".to_owned(), own), ("other".to_owned(), other), ("more".to_owned(), 3 * own)]
                .into(),
            threads: [((1, 5), 7), ((9, 6), 10 + own), ((100 + own as i32, 9), own)].into(),
            daemons: vec![9],
            descriptors: [(9, (20 + 2 * own, 1000)), (10, (own, 20_000))].into(),
            groups: [("/service".into(), (6 + own, 100)), ("/own".into(), (5, 5))].into(),
        };
        let all = room(12, 31).since(&room(2, 30), 10);
        assert_eq!(all[0], (Resource::Keys, [102, 112, 1000]));
        assert_eq!(all[1], (Resource::Tasks, [8, 18, 100]), "of the cgroup that grew");
        assert_eq!(all[2], (Resource::Files, [24, 44, 1000]));
        assert_eq!(all[3], (Resource::Ports, [2, 12, PORTS]));
        assert_eq!(room(2, 31).since(&room(2, 30), 10).len(), 2, "no bridge has grown with ten");
        // Ten more of the daemon, and twelve of a new process.
        let [before, after, _] = room(12, 30).tasks(&room(2, 30)).unwrap();
        assert_eq!(after - before, 22);
    }

    #[test]
    fn this_machine_counts_its_threads_and_cgroups() {
        let (threads, cgroups) = (threads(), cgroups().unwrap());
        assert!(threads.keys().any(|(pid, _)| *pid == std::process::id() as i32), "{threads:?}");
        assert!(cgroups.1 > 0 && cgroups.1 < cgroups.2, "{cgroups:?}");
    }
}

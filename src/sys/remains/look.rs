//! One look for remains: processes, mounts and cgroups that contain a token.
//!
//! Only reads. Deliberately absent: waiting (`wait`), and removing.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::{Item, Kind, Tokens};
use crate::sys::{cgroup, clock, process};

/// Deeper than any engine nests its cgroups: a user's systemd with podman in it needs six levels.
const CGROUP_DEPTH: usize = 8;

/// How long, in nanoseconds, a process may be in the middle of exec before it counts as having no command
/// line.
const LONGEST_EXEC: u64 = 20_000_000;

/// Everything found now. Processes come last, since their end removes the rest.
pub fn look(tokens: &Tokens, ourselves: &HashSet<i32>) -> io::Result<Vec<Found>> {
    let mut found = mounts(tokens, &mount_table()?);
    let cgroups = cgroups(tokens)?;
    let mut seen = HashSet::new();
    for group in &cgroups {
        let Place::Cgroup(path) = &group.place else {
            continue;
        };
        // A directory that is being removed no longer has this file.
        let list = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
        for pid in list.lines().filter_map(|line| line.parse().ok()) {
            if pid > 0 && !ourselves.contains(&pid) && seen.insert(pid) {
                let mut buffer = Vec::new();
                command_line(pid, &mut buffer);
                found.push(Found::process(pid, &buffer));
            }
        }
    }
    found.extend(cgroups);
    for process in processes(tokens, ourselves, |_| true)? {
        if !matches!(process.place, Place::Process(pid) if !seen.insert(pid)) {
            found.push(process);
        }
    }
    Ok(found)
}

/// Something that was found, and how to check whether it still exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its description for people.
    pub item: Item,
    /// Its place.
    pub place: Place,
}

/// Where to check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A process.
    Process(i32),
    /// A line of the mount table.
    Mount,
    /// A cgroup directory.
    Cgroup(PathBuf),
}

/// How many characters of a command line are shown.
const LONGEST_SHOWN: usize = 300;

impl Found {
    fn process(pid: i32, command: &[u8]) -> Found {
        let words: Vec<_> = command.split(|&byte| byte == 0).map(String::from_utf8_lossy).collect();
        // Any user's process can have any arguments.
        let words: String = words.join(" ").trim_end().chars().take(LONGEST_SHOWN).collect();
        let name = format!("{pid}: {}", words.replace(char::is_control, "\u{fffd}"));
        Found { item: Item { kind: Kind::Process, name }, place: Place::Process(pid) }
    }

    fn cgroup(path: PathBuf) -> Found {
        Found {
            item: Item { kind: Kind::Cgroup, name: path.display().to_string() },
            place: Place::Cgroup(path),
        }
    }
}

/// Processes that have permanently erased their command line, by id and start time, since ids are reused.
/// They are waited for once, not in each launch.
static NAMELESS: Mutex<BTreeSet<(i32, u64)>> = Mutex::new(BTreeSet::new());

/// Whether this process has been waited for before.
fn is_nameless(pid: i32) -> bool {
    let known = NAMELESS.lock().unwrap_or_else(PoisonError::into_inner);
    known.range((pid, 0)..=(pid, u64::MAX)).next().is_some() && known.contains(&(pid, started(pid)))
}

/// When a process was started, in ticks; zero if it is gone.
fn started(pid: i32) -> u64 {
    process::read(pid).map_or(0, |process| process.started())
}

/// Processes that a look skips, which are dunnage and its ancestors: their command lines may contain a token,
/// and they are older than any of dunnage's containers.
pub fn ourselves() -> HashSet<i32> {
    let mut ourselves = HashSet::new();
    let mut pid = std::process::id() as i32;
    while pid > 0 && ourselves.insert(pid) {
        pid = process::read(pid).map_or(0, |process| process.parent);
    }
    ourselves
}

/// Reads the command line into `buffer`; empty for a kernel thread, a zombie or a missing process.
pub fn command_line(pid: i32, buffer: &mut Vec<u8>) {
    buffer.clear();
    if let Ok(mut file) = File::open(format!("/proc/{pid}/cmdline")) {
        // A process that ends meanwhile reads as empty, which is correct.
        let _ = file.read_to_end(buffer);
    }
}

/// The id that the kernel gave last; zero if it does not say.
pub fn last_pid() -> i32 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next_back().and_then(|pid| pid.parse().ok()).unwrap_or(0)
}

/// The processes with an id that was given after this one. Most processes of a host are older, so it takes a fraction of a
/// whole look.
pub fn processes_since(last: i32, tokens: &Tokens, ourselves: &HashSet<i32>) -> io::Result<Vec<Found>> {
    let now = last_pid();
    // Ids begin again after the largest.
    let is_meant = |pid| if now < last { pid > last || pid <= now } else { pid > last };
    processes(tokens, ourselves, is_meant)
}

fn processes(
    tokens: &Tokens,
    ourselves: &HashSet<i32>,
    is_meant: impl Fn(i32) -> bool,
) -> io::Result<Vec<Found>> {
    let mut found = Vec::new();
    let mut buffer = Vec::with_capacity(4096);
    let mut nameless = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        if ourselves.contains(&pid) || !is_meant(pid) {
            continue;
        }
        command_line(pid, &mut buffer);
        let is_named = tokens.match_bytes(&buffer);
        let is_meant = is_named || buffer.is_empty() && has_program(pid) && !is_nameless(pid);
        // Any user can start a program with a token in its arguments, and no launch waits for it.
        if !is_meant || !process::is_ours_or_roots(pid) {
            continue;
        }
        match is_named {
            true => found.push(Found::process(pid, &buffer)),
            false => nameless.push(pid),
        }
    }
    let until = clock::now().0 + LONGEST_EXEC;
    for pid in nameless {
        if let Some(process) = after_exec(pid, until, tokens, &mut buffer) {
            found.push(process);
        }
    }
    Ok(found)
}

/// In the middle of exec a process already has its new program, but no command line for about 100 µs, and
/// must not be missed. There is no event for the end of exec, so this yields the CPU until the process has a
/// command line.
fn after_exec(pid: i32, until: u64, tokens: &Tokens, buffer: &mut Vec<u8>) -> Option<Found> {
    while has_program(pid) {
        command_line(pid, buffer);
        if !buffer.is_empty() {
            return tokens.match_bytes(buffer).then(|| Found::process(pid, buffer));
        }
        if clock::now().0 >= until {
            NAMELESS.lock().unwrap_or_else(PoisonError::into_inner).insert((pid, started(pid)));
            return None;
        }
        std::thread::yield_now();
    }
    None
}

/// Kernel threads and zombies have none. Processes that dunnage may not inspect are reported as `false`.
fn has_program(pid: i32) -> bool {
    fs::read_link(format!("/proc/{pid}/exe")).is_ok()
}

/// The mount table of dunnage's mount namespace.
pub fn mount_table() -> io::Result<Vec<u8>> {
    fs::read("/proc/self/mountinfo")
}

/// The lines of a mount table that contain a token, or hold the network namespace; not those of a filesystem that another user
/// serves and mounted where they like.
pub fn mounts(tokens: &Tokens, table: &[u8]) -> Vec<Found> {
    let held = tokens.network_namespace.map(|inode| format!("net:[{inode}]"));
    let lines = table.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let ours = lines.filter_map(|line| {
        let mut fields = line.split(|&byte| byte == b' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let holds = held.as_deref().is_some_and(|held| held.as_bytes() == root);
        let is_meant = holds || tokens.match_bytes(line) && !is_of_another_user(line);
        is_meant.then(|| String::from_utf8_lossy(point).into_owned())
    });
    ours.map(|name| Found { item: Item { kind: Kind::Mount, name }, place: Place::Mount }).collect()
}

/// Whether a line of the mount table is that of a FUSE filesystem of a user who is neither root nor this process's.
fn is_of_another_user(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line);
    let options = line.split_once(" - fuse").and_then(|(_, rest)| rest.rsplit(' ').next());
    let user = options.and_then(|options| options.split(',').find_map(|one| one.strip_prefix("user_id=")));
    user.is_some_and(|user| {
        ![0, rustix::process::geteuid().as_raw()].map(|id| id.to_string()).contains(&user.to_owned())
    })
}

fn cgroups(tokens: &Tokens) -> io::Result<Vec<Found>> {
    let mut found = Vec::new();
    for hierarchy in cgroup::mounted()? {
        descend(&hierarchy.mount, CGROUP_DEPTH, tokens, &mut found);
    }
    Ok(found)
}

/// A cgroup without children has two links, so most directories need not be read.
fn descend(directory: &Path, depth: usize, tokens: &Tokens, found: &mut Vec<Found>) {
    let childless = directory.symlink_metadata().map_or(true, |metadata| metadata.nlink() <= 2);
    if childless || depth == 0 {
        return;
    }
    // cgroups come and go meanwhile; a missing one does not matter.
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if tokens.match_bytes(entry.file_name().as_bytes()) {
            // Anything below it disappears first.
            found.push(Found::cgroup(entry.path()));
        } else {
            descend(&entry.path(), depth - 1, tokens, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
31 22 0:27 / /sys/fs/cgroup/cpu rw,relatime shared:4 - cgroup cgroup rw,cpu
32 22 0:28 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
33 22 0:28 / /mnt/again rw,relatime - cgroup2 cgroup2 rw
40 22 0:50 / /var/lib/docker/overlay2/0123456789abcdef0/merged rw - overlay overlay rw,lowerdir=/l
41 22 0:4 net:[4026532999] /run/docker/netns/deadbeef rw - nsfs nsfs rw
42 22 0:4 net:[40265329991] /run/docker/netns/other rw - nsfs nsfs rw
44 22 0:52 / /home/other/0123456789abcdef0 rw - fuse.x 0123456789abcdef0 rw,user_id=54321,group_id=0
45 22 0:53 / /store/0123456789abcdef0 rw - fuse.fuse-overlayfs fuse-overlayfs rw,user_id=0,group_id=0
43 22 0:51 / /var/lib/docker/overlay2/fedcba9876543210f/merged rw - overlay overlay rw,lowerdir=/l
";

    fn names(found: &[Found]) -> Vec<&str> {
        found.iter().map(|found| found.item.name.as_str()).collect()
    }

    #[test]
    fn mounts_with_the_token_or_the_namespace_are_found_and_no_others() {
        let tokens = Tokens::new(["0123456789abcdef0"]).unwrap().network_namespace(4026532999);
        let found = mounts(&tokens, TABLE);
        assert_eq!(
            names(&found),
            [
                "/var/lib/docker/overlay2/0123456789abcdef0/merged",
                "/run/docker/netns/deadbeef",
                "/store/0123456789abcdef0"
            ]
        );
    }

    #[test]
    fn a_strangers_process_is_not_waited_for() {
        use std::os::unix::process::CommandExt;
        let mark = format!("dunnage-planted-{}-test", std::process::id());
        let last = last_pid();
        let sleeping = |user| {
            let mut command = std::process::Command::new("sleep");
            command.arg0(&mark).arg("20").uid(user).spawn()
        };
        let own = rustix::process::geteuid().as_raw();
        let mut ours = sleeping(own).unwrap();
        // Only root can start another user's process.
        let mut strangers: Option<_> = sleeping(54_321).ok();
        let found = processes_since(last, &Tokens::new([mark.as_str()]).unwrap(), &ourselves()).unwrap();
        let found: Vec<Place> = found.into_iter().map(|found| found.place).collect();
        assert_eq!(found, [Place::Process(ours.id() as i32)]);
        for one in std::iter::once(&mut ours).chain(&mut strangers) {
            one.kill().unwrap();
            one.wait().unwrap();
        }
    }

    #[test]
    fn we_and_our_parent_are_ourselves() {
        let us = ourselves();
        assert!(us.contains(&(std::process::id() as i32)));
        assert!(us.contains(&(std::os::unix::process::parent_id() as i32)));
    }

    /// A process id identifies the process that had it when it was waited for, not a later one.
    #[test]
    fn whoever_has_no_command_line_is_waited_for_once_and_who_follows_anew() {
        let us = std::process::id() as i32;
        assert!(!is_nameless(us));
        NAMELESS.lock().unwrap().insert((us, started(us) + 1));
        assert!(!is_nameless(us));
        NAMELESS.lock().unwrap().insert((us, started(us)));
        assert!(is_nameless(us));
        NAMELESS.lock().unwrap().clear();
    }

    #[test]
    fn processes_since_an_id_are_those_that_began_after_it_also_when_ids_begin_again() {
        use std::os::unix::process::CommandExt;
        let mark = format!("dunnage-since-{}-test", std::process::id());
        let sleeping = || std::process::Command::new("sleep").arg0(&mark).arg("20").spawn().unwrap();
        let tokens = Tokens::new([mark.as_str()]).unwrap();
        let since = |last: i32| -> Vec<Place> {
            let found = processes_since(last, &tokens, &ourselves()).unwrap();
            found.into_iter().map(|found| found.place).collect()
        };
        let mut all = [sleeping(), sleeping()];
        let [first, second] = all.each_ref().map(|one| one.id() as i32);
        assert_eq!(since(second), []);
        if first < second {
            assert_eq!(since(first), [Place::Process(second)]);
            assert_eq!(since(i32::MAX), [Place::Process(first), Place::Process(second)]);
        }
        for one in &mut all {
            one.kill().unwrap();
            one.wait().unwrap();
        }
    }

    #[test]
    fn a_token_that_nobody_bears_finds_nothing() {
        let tokens = Tokens::new([format!("dunnage-nobody-{}", std::process::id())]).unwrap();
        assert_eq!(look(&tokens, &ourselves()).unwrap(), []);
    }
}

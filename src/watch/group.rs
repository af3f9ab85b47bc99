//! The control group of a container: what it has used, what its limit is, and what the limit did to it.
//!
//! In version 1 the time used stands under the controller `cpuacct`, in nanoseconds, and the limit under `cpu`, which may
//! be mounted elsewhere. In version 2 all of it stands in one directory, in microseconds.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::advise::{Cpus, Quota, Throttling};
use crate::report::text::in_shell;
use crate::sys::cgroup::{self, Hierarchy, Version, own, with_controller};
use crate::units::Nanos;

/// A group whose usage can be read.
#[derive(Debug)]
pub struct Group {
    /// Which version counts its CPU time.
    pub version: Version,
    /// The directory of the counter, for people.
    pub directory: PathBuf,
    /// Where the limit stands, if the controller is there.
    limits: Option<Place>,
    /// The counter, kept open: a group that is made anew under the same name is another one.
    counter: File,
}

/// A directory of a hierarchy, and where that is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    directory: PathBuf,
    mount: PathBuf,
}

/// Why there is no group to read.
#[derive(Debug, thiserror::Error)]
pub enum Lacking {
    /// No hierarchy counts CPU time.
    #[error(
        "no cgroup controller that counts CPU time is mounted here (`cpuacct` of version 1, or version 2)"
    )]
    Controller,
    /// The group lies where the mounts do not show it.
    #[error("the cgroup of process {0} cannot be seen from here")]
    Hidden(i32),
    /// The process is no part of what was looked for.
    #[error("process {pid} is in no cgroup named after the container `{id}`")]
    Stranger {
        /// Which process.
        pid: i32,
        /// Whose group was looked for.
        id: String,
    },
    /// No such directory in any hierarchy that counts.
    #[error("there is no cgroup `{0}`")]
    NoSuchGroup(String),
    /// The files cannot be read.
    #[error("{path}: {source}")]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl Group {
    /// The group of the container `id` whose first process is `pid`. Processes inside may have moved to groups below it.
    pub fn of_container(pid: i32, id: &str) -> Result<Group, Lacking> {
        let hierarchies = cgroup::mounted_of(pid)
            .map_err(|source| Lacking::Unreadable { path: format!("/proc/{pid}/cgroup").into(), source })?;
        let counting = with_controller(&hierarchies, "cpuacct").ok_or(Lacking::Controller)?;
        let own = counting.own.as_deref().ok_or(Lacking::Hidden(pid))?;
        let directory = named_after(own, id).ok_or_else(|| Lacking::Stranger { pid, id: id.to_owned() })?;
        let limits = with_controller(&hierarchies, "cpu").and_then(|hierarchy| {
            let directory = named_after(hierarchy.own.as_deref()?, id)?;
            Some(Place { directory, mount: hierarchy.mount.clone() })
        });
        Group::open(counting.version.clone(), directory, limits)
    }

    /// The group of this path: of its directory, or as `/proc/PID/cgroup` shows it.
    pub fn at(path: &str) -> Result<Group, Lacking> {
        let unreadable = |source| Lacking::Unreadable { path: "/proc/self/mountinfo".into(), source };
        let hierarchies = cgroup::mounted().map_err(unreadable)?;
        let counting = with_controller(&hierarchies, "cpuacct").ok_or(Lacking::Controller)?;
        // The longest mount point first: that of version 2 may lie above all others.
        let mut by_length: Vec<&Hierarchy> = hierarchies.iter().collect();
        by_length.sort_by_key(|hierarchy| std::cmp::Reverse(hierarchy.mount.as_os_str().len()));
        let inside =
            by_length.iter().find_map(|hierarchy| Path::new(path).strip_prefix(&hierarchy.mount).ok());
        let relative = inside.unwrap_or_else(|| Path::new(path.trim_start_matches('/')));
        let directory = counting.mount.join(relative);
        if !directory.is_dir() {
            return Err(Lacking::NoSuchGroup(path.to_owned()));
        }
        let limits = with_controller(&hierarchies, "cpu").map(|hierarchy| Place {
            directory: hierarchy.mount.join(relative),
            mount: hierarchy.mount.clone(),
        });
        Group::open(counting.version.clone(), directory, limits.filter(|place| place.directory.is_dir()))
    }

    fn open(version: Version, directory: PathBuf, limits: Option<Place>) -> Result<Group, Lacking> {
        let path = directory.join(if version == Version::V2 { "cpu.stat" } else { "cpuacct.usage" });
        let counter = File::open(&path).map_err(|source| match source.kind() {
            // The root of version 2 counts, too; elsewhere the file is missing with its group.
            io::ErrorKind::NotFound => Lacking::NoSuchGroup(directory.display().to_string()),
            _ => Lacking::Unreadable { path, source },
        })?;
        let group = Group { version, directory, limits, counter };
        group.used().map_err(|source| Lacking::Unreadable { path: group.directory.clone(), source })?;
        Ok(group)
    }

    /// The CPU time used since the group was made.
    ///
    /// # Errors
    /// `ENODEV` once the group is gone.
    pub fn used(&self) -> io::Result<Nanos> {
        let mut buffer = [0u8; 4096];
        let length = self.counter.read_at(&mut buffer, 0)?;
        let text = &buffer[..length];
        let nanos = match self.version {
            Version::V1(_) => own::number(text),
            Version::V2 => own::micros(text, b"usage_usec"),
        };
        let nanos = nanos.map(|nanos| Nanos(nanos as i64));
        nanos.ok_or_else(|| io::Error::other(format!("`{}` is no counter", text.trim_ascii().escape_ascii())))
    }

    /// What the kernel has counted of each limit so far: of the group's own, and of those around it, which hold it back just
    /// as well. Nothing where no controller can limit.
    pub fn throttling(&self) -> Counted {
        let count = |directory: PathBuf| {
            let text = fs::read(directory.join("cpu.stat")).unwrap_or_default();
            (directory, own::throttling(&text).unwrap_or_default())
        };
        Counted { levels: self.levels().map(|directory| count(directory.to_owned())).collect() }
    }

    /// The tightest limit, of the group itself or of those around it.
    pub fn limit(&self) -> Option<Quota> {
        self.tightest().map(|(limit, _)| limit)
    }

    /// The same with the directory that sets it.
    fn tightest(&self) -> Option<(Quota, &Path)> {
        let limits = self.levels().filter_map(|directory| Some((limit_in(directory)?, directory)));
        limits.min_by(|(a, _), (b, _)| a.cpus().0.total_cmp(&b.cpus().0))
    }

    /// The command line that sets the tightest limit to so many CPUs, where that is not the group's own: its engine knows
    /// nothing of those around it.
    pub fn command_around(&self, cpus: Cpus) -> Option<String> {
        let (_, directory) = self.tightest()?;
        (Some(directory) != self.levels().next()).then(|| command_for(directory, cpus))
    }

    /// The command line that sets the group's own.
    pub fn command(&self, cpus: Cpus) -> String {
        command_for(self.levels().next().unwrap_or(&self.directory), cpus)
    }

    /// The directories that can limit it, its own first.
    fn levels(&self) -> impl Iterator<Item = &Path> {
        let levels = self.limits.as_ref().map(|place| {
            place.directory.ancestors().take_while(|directory| directory.starts_with(&place.mount))
        });
        levels.into_iter().flatten()
    }

    /// Whether its limit could be read, if it had one.
    pub fn can_be_limited(&self) -> bool {
        let is_there =
            |file: &str| self.limits.as_ref().is_some_and(|place| place.directory.join(file).exists());
        is_there("cpu.max") || is_there("cpu.cfs_quota_us")
    }
}

/// Counters of limits, from a group upwards.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    levels: Vec<(PathBuf, Throttling)>,
}

impl Counted {
    /// What was counted since an earlier reading, of the limit that throttled the largest share.
    pub fn since(&self, earlier: &Counted) -> Throttling {
        let before =
            |directory| earlier.levels.iter().find(|(own, _)| own == directory).map(|(_, counted)| *counted);
        let all = self.levels.iter().filter_map(|(directory, now)| Some(now.since(before(directory)?)));
        // Of equals the first, which is the nearest to the group.
        all.reduce(
            |worst, one| {
                if one.share().unwrap_or(-1.0) > worst.share().unwrap_or(-1.0) { one } else { worst }
            },
        )
        .unwrap_or_default()
    }
}

/// The first directory on the way down whose name holds the id.
fn named_after(own: &Path, id: &str) -> Option<PathBuf> {
    let all: Vec<&Path> = own.ancestors().collect();
    let holds = |path: &&&Path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(id));
    all.iter().rev().find(holds).map(|path| path.to_path_buf())
}

/// Writes the limit into the file that the kernel has for it.
fn command_for(directory: &Path, cpus: Cpus) -> String {
    let period = limit_in(directory).map_or(Quota::USUAL_PERIOD, |limit| limit.period).0 / 1000;
    let quota = (cpus.0 * period as f64).round();
    let (file, text) = match directory.join("cpu.max") {
        file if file.exists() => (file, format!("{quota} {period}")),
        _ => (directory.join("cpu.cfs_quota_us"), quota.to_string()),
    };
    format!("{} > {}", in_shell(["echo", &text]), in_shell([file.to_string_lossy()]))
}

fn limit_in(directory: &Path) -> Option<Quota> {
    let own::Quota { each, period, .. } = own::quota_in(directory)?;
    Some(Quota { quota: Nanos(each? as i64), period: Nanos(period as i64) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_around_the_group_counts_where_it_throttles_more() {
        let counted = |own: [u64; 2], around: [u64; 2]| {
            let of = |[periods, throttled]: [u64; 2]| Throttling { periods, throttled, waited: Nanos(0) };
            Counted { levels: vec![("/g/own".into(), of(own)), ("/g".into(), of(around))] }
        };
        let since = |own, around| counted(own, around).since(&counted([10, 5], [100, 0])).throttled;
        assert_eq!(since([10, 5], [200, 60]), 60);
        assert_eq!(since([20, 10], [200, 60]), 60);
        assert_eq!(since([20, 14], [200, 60]), 9);
        assert_eq!(Counted::default().since(&Counted::default()), Throttling::default());
    }

    #[test]
    fn a_limit_is_set_where_it_stands() {
        let top = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| fs::write(top.path().join(file), text).unwrap();
        let shown = top.path().display();
        write("cpu.cfs_quota_us", "5000\n");
        write("cpu.cfs_period_us", "50000\n");
        assert_eq!(command_for(top.path(), Cpus(0.2)), format!("echo 10000 > {shown}/cpu.cfs_quota_us"));
        write("cpu.max", "5000 100000\n");
        assert_eq!(command_for(top.path(), Cpus(0.2)), format!("echo '20000 100000' > {shown}/cpu.max"));
    }

    #[test]
    fn a_container_that_moved_its_processes_down_is_found_by_its_own_group() {
        let own = Path::new("/sys/fs/cgroup/machine.slice/libpod-ab12.scope/container/init.scope");
        assert_eq!(named_after(own, "ab12"), Some("/sys/fs/cgroup/machine.slice/libpod-ab12.scope".into()));
        assert_eq!(named_after(Path::new("/sys/fs/cgroup/user.slice"), "ab12"), None);
    }
}

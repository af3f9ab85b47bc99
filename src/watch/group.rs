//! The cgroup of a container: its CPU time, its limit, and how much the limit throttled it.
//!
//! In version 1, the CPU time is under the controller `cpuacct`, in nanoseconds, and the limit is under `cpu`, which may be
//! mounted elsewhere. In version 2, everything is in one directory, in microseconds.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::advise::{Cpus, Quota, Throttling};
use crate::report::text::in_shell;
use crate::sys::cgroup::{self, Hierarchy, Version, own, with_controller};
use crate::units::Nanos;

/// A cgroup whose usage can be read.
#[derive(Debug)]
pub struct Group {
    /// The cgroup version that counts its CPU time.
    pub version: Version,
    /// The directory of the counter, to show.
    pub directory: PathBuf,
    /// The directory of the limit, if the controller is mounted.
    limits: Option<Place>,
    /// The counter, kept open, because a cgroup created again under the same name is a different one.
    counter: File,
}

/// A directory in a hierarchy, and where that is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    directory: PathBuf,
    mount: PathBuf,
}

/// Why there is no cgroup to read.
#[derive(Debug, thiserror::Error)]
pub enum Lacking {
    /// No hierarchy counts CPU time.
    #[error(
        "no cgroup controller that counts CPU time is mounted here (`cpuacct` of version 1, or version 2)"
    )]
    Controller,
    /// The cgroup is outside of what the mounts show.
    #[error("the cgroup of process {0} cannot be seen from here")]
    Hidden(i32),
    /// The process does not belong to the container.
    #[error("process {pid} is in no cgroup named after the container `{id}`")]
    Stranger {
        /// The process.
        pid: i32,
        /// The container's id.
        id: String,
    },
    /// No hierarchy that counts CPU time has this directory.
    #[error("there is no cgroup `{0}`")]
    NoSuchGroup(String),
    /// The files cannot be read.
    #[error("{path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

impl Group {
    /// The cgroup of the container `id` with first process `pid`. Processes inside may have moved to cgroups below it.
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

    /// The cgroup at this path: its directory, or the path from `/proc/PID/cgroup`.
    pub fn at(path: &str) -> Result<Group, Lacking> {
        let unreadable = |source| Lacking::Unreadable { path: "/proc/self/mountinfo".into(), source };
        let hierarchies = cgroup::mounted().map_err(unreadable)?;
        let counting = with_controller(&hierarchies, "cpuacct").ok_or(Lacking::Controller)?;
        // Longest mount point first, because that of version 2 may be above all others.
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
            // Even the root of version 2 has the file, so a missing file means a missing cgroup.
            io::ErrorKind::NotFound => Lacking::NoSuchGroup(directory.display().to_string()),
            _ => Lacking::Unreadable { path, source },
        })?;
        let group = Group { version, directory, limits, counter };
        group.used().map_err(|source| Lacking::Unreadable { path: group.directory.clone(), source })?;
        Ok(group)
    }

    /// The CPU time used since the cgroup was created.
    ///
    /// # Errors
    /// `ENODEV` once the cgroup is gone.
    pub fn used(&self) -> io::Result<Nanos> {
        let mut buffer = [0u8; 4096];
        let length = self.counter.read_at(&mut buffer, 0)?;
        let text = &buffer[..length];
        let nanos = match self.version {
            Version::V1(_) => own::number(text),
            Version::V2 => own::micros(text, b"usage_usec"),
        };
        let nanos = nanos.map(|nanos| Nanos(nanos as i64));
        nanos.ok_or_else(|| {
            io::Error::other(format!("`{}` is not a counter", text.trim_ascii().escape_ascii()))
        })
    }

    /// The kernel's counts so far of each place where a limit can be set: the cgroup and its ancestors, whose limits throttle it
    /// too. Empty if no controller can limit it.
    ///
    /// # Errors
    /// The file that does not show them, or the limit.
    pub fn throttling(&self) -> Result<Counted, PathBuf> {
        let count = |(directory, limit): (&Path, PathBuf)| {
            let file = directory.join("cpu.stat");
            let counted = fs::read(&file).ok().and_then(|text| own::throttling(&text));
            own::quota_in(directory).ok_or(limit)?;
            Ok::<_, PathBuf>((directory.to_owned(), counted.ok_or(file)?))
        };
        let levels = self.levels().filter_map(|directory| Some((directory, file_of_limit(directory)?)));
        Ok(Counted { levels: levels.map(count).collect::<Result<_, _>>()? })
    }

    /// The tightest limit, of the cgroup itself or of an ancestor.
    pub fn limit(&self) -> Option<Quota> {
        self.tightest().map(|(limit, _)| limit)
    }

    /// The tightest limit with its directory.
    fn tightest(&self) -> Option<(Quota, &Path)> {
        let limits = self.levels().filter_map(|directory| Some((limit_in(directory)?, directory)));
        limits.min_by(|(a, _), (b, _)| a.cpus().0.total_cmp(&b.cpus().0))
    }

    /// The command that sets the tightest limit to this many CPUs, if that limit is an ancestor's: the engine does not know about
    /// those.
    pub fn command_around(&self, cpus: Cpus) -> Option<String> {
        let (_, directory) = self.tightest()?;
        (Some(directory) != self.levels().next()).then(|| command_for(directory, cpus))
    }

    /// The command that sets the cgroup's own limit.
    pub fn command(&self, cpus: Cpus) -> String {
        command_for(self.levels().next().unwrap_or(&self.directory), cpus)
    }

    /// The directories that can limit the cgroup, its own first.
    fn levels(&self) -> impl Iterator<Item = &Path> {
        let levels = self.limits.as_ref().map(|place| {
            place.directory.ancestors().take_while(|directory| directory.starts_with(&place.mount))
        });
        levels.into_iter().flatten()
    }

    /// Whether the limit is readable, if there is one.
    pub fn can_be_limited(&self) -> bool {
        self.limits.as_ref().is_some_and(|place| file_of_limit(&place.directory).is_some())
    }
}

/// Throttling counters, from a cgroup upwards.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    levels: Vec<(PathBuf, Throttling)>,
}

impl Counted {
    /// The counts since an earlier reading, for the limit that throttled the largest share. `None` if a cgroup of the earlier
    /// reading is gone.
    pub fn since(&self, earlier: &Counted) -> Option<Throttling> {
        fn of<'a>(all: &'a Counted, directory: &Path) -> Option<&'a Throttling> {
            all.levels.iter().find(|(own, _)| own == directory).map(|(_, counted)| counted)
        }
        let is_there = |(directory, _): &(PathBuf, Throttling)| of(self, directory).is_some();
        if !earlier.levels.iter().all(is_there) {
            return None;
        }
        // A controller that was enabled in between began at zero.
        let before = |directory| of(earlier, directory).copied().unwrap_or_default();
        let all = self.levels.iter().map(|(directory, now)| now.since(before(directory)));
        // Among equals the first, which is nearest to the cgroup.
        let worst =
            all.reduce(
                |worst, one| {
                    if one.share().unwrap_or(-1.0) > worst.share().unwrap_or(-1.0) { one } else { worst }
                },
            );
        Some(worst.unwrap_or_default())
    }
}

/// The directory's file for a limit, if it has one.
fn file_of_limit(directory: &Path) -> Option<PathBuf> {
    ["cpu.max", "cpu.cfs_quota_us"].map(|file| directory.join(file)).into_iter().find(|file| file.exists())
}

/// The topmost directory on the path whose name contains the id.
fn named_after(own: &Path, id: &str) -> Option<PathBuf> {
    let all: Vec<&Path> = own.ancestors().collect();
    let holds = |path: &&&Path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(id));
    all.iter().rev().find(holds).map(|path| path.to_path_buf())
}

/// The command that writes the limit into the kernel's file.
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
        let since = |own, around| counted(own, around).since(&counted([10, 5], [100, 0])).unwrap().throttled;
        assert_eq!(since([10, 5], [200, 60]), 60);
        assert_eq!(since([20, 10], [200, 60]), 60);
        assert_eq!(since([20, 14], [200, 60]), 9);
        assert_eq!(Counted::default().since(&Counted::default()), Some(Throttling::default()));
        // A cgroup that is gone was perhaps throttled, and a controller that was enabled later counts from zero.
        let whole = counted([10, 5], [100, 0]);
        assert_eq!(Counted::default().since(&whole), None);
        assert_eq!(whole.since(&Counted::default()).map(|counted| counted.throttled), Some(5));
    }

    #[test]
    fn counts_that_cannot_be_read_are_not_zero() {
        let top = tempfile::tempdir().unwrap();
        let own = top.path().join("own");
        fs::create_dir(&own).unwrap();
        let write = |file: &str, text: &str| fs::write(top.path().join(file), text).unwrap();
        let counts = "nr_periods 9\nnr_throttled 4\nthrottled_usec 12\n";
        // The root of version 2, which has neither a limit nor counts of one.
        write("cpu.stat", "usage_usec 7\n");
        write("own/cpu.stat", &format!("usage_usec 7\n{counts}"));
        write("own/cpu.max", "50000 100000\n");
        let group = Group {
            version: Version::V2,
            counter: File::open(own.join("cpu.stat")).unwrap(),
            limits: Some(Place { directory: own.clone(), mount: top.path().to_owned() }),
            directory: own.clone(),
        };
        let counted = group.throttling().unwrap();
        assert_eq!(counted.levels.iter().map(|(_, counted)| counted.throttled).collect::<Vec<_>>(), [4]);
        for text in ["", "usage_usec 7\n", "nr_periods 9\nnr_throttled many\nthrottled_usec 12\n"] {
            write("own/cpu.stat", text);
            assert_eq!(group.throttling(), Err(own.join("cpu.stat")), "{text}");
        }
        fs::remove_file(own.join("cpu.stat")).unwrap();
        assert_eq!(group.throttling(), Err(own.join("cpu.stat")));
        write("own/cpu.max", "");
        assert_eq!(group.throttling(), Err(own.join("cpu.max")));
        // The whole cgroup is gone.
        fs::remove_file(own.join("cpu.max")).unwrap();
        assert_eq!(group.throttling().unwrap().since(&counted), None);
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

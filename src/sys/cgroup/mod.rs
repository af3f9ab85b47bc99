//! The cgroup hierarchies mounted on this machine, and the cgroups of this process in them. `plan` chooses
//! where containers' own cgroups go, `limit` sets what they may use, and `own` reads a process's own cgroup.

mod limit;
pub mod own;
mod plan;

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

pub use limit::{CpuLimit, Limits, NoLimit};
pub(in crate::sys) use plan::remove;
pub use plan::{Birth, CgroupPlan, Established, LABEL, Place, Way, retire};

/// The interface of a hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Version {
    /// cgroup v1, with the mount options that select it: `cpu,cpuacct`, `name=systemd`.
    V1(String),
    /// cgroup v2, a single hierarchy.
    V2,
}

/// One mounted hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// Its version.
    pub version: Version,
    /// Its mount point.
    pub mount: PathBuf,
    /// The directory of this process's cgroup, if the mount shows it.
    pub own: Option<PathBuf>,
}

impl Hierarchy {
    /// The last part of the mount point, which containers see under `/sys/fs/cgroup`.
    pub fn directory_name(&self) -> &Path {
        self.mount.file_name().map_or(Path::new("cgroup"), Path::new)
    }

    /// Whether this v1 hierarchy has this controller.
    pub fn has(&self, controller: &str) -> bool {
        matches!(&self.version, Version::V1(options) if options.split(',').any(|one| one == controller))
    }
}

/// The hierarchy with this controller. A controller that is mounted as version 1 is not in version 2.
pub(crate) fn with_controller<'a>(hierarchies: &'a [Hierarchy], controller: &str) -> Option<&'a Hierarchy> {
    let first = hierarchies.iter().find(|hierarchy| hierarchy.has(controller));
    first.or_else(|| hierarchies.iter().find(|hierarchy| hierarchy.version == Version::V2))
}

/// Whether this process may make directories in `directory`; false on a read-only mount.
pub fn is_writable(directory: &Path) -> bool {
    accessat(CWD, directory, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}

/// The hierarchies that are mounted here, in the order of `/proc/self/cgroup`.
pub fn mounted() -> io::Result<Vec<Hierarchy>> {
    let read = |path| {
        std::fs::read_to_string(path)
            .map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))
    };
    match read("/proc/self/cgroup") {
        Ok(own) => Ok(parse(&read("/proc/self/mountinfo")?, &own)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The same with the cgroups of another process.
pub fn mounted_of(pid: i32) -> io::Result<Vec<Hierarchy>> {
    let own = std::fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
    Ok(parse(&std::fs::read_to_string("/proc/self/mountinfo")?, &own))
}

/// The parts of a line of `mountinfo` that cgroups need.
struct Mounted<'a> {
    root: &'a str,
    point: &'a str,
    kind: &'a str,
    options: &'a str,
}

fn mounted_line(line: &str) -> Option<Mounted<'_>> {
    let (before, after) = line.split_once(" - ")?;
    let mut front = before.split(' ').skip(3);
    let mut back = after.split(' ');
    Some(Mounted { root: front.next()?, point: front.next()?, kind: back.next()?, options: back.nth(1)? })
}

/// A path in which the kernel escaped bytes that part words or options as octal numbers.
pub(crate) fn unescaped(text: &str) -> PathBuf {
    let mut plain = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let code = after.get(..3).filter(|_| *byte == b'\\').and_then(|code| std::str::from_utf8(code).ok());
        let own = code.and_then(|code| u8::from_str_radix(code, 8).ok());
        rest = if own.is_some() { &after[3..] } else { after };
        plain.push(own.unwrap_or(*byte));
    }
    PathBuf::from(OsString::from_vec(plain))
}

/// The hierarchies of a process, from its `mountinfo` and `cgroup` files.
pub(crate) fn parse(mountinfo: &str, own: &str) -> Vec<Hierarchy> {
    let mounts: Vec<_> = mountinfo.lines().filter_map(mounted_line).collect();
    let hierarchy = |line: &str| {
        let mut fields = line.splitn(3, ':');
        let (_id, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let is_it = |mount: &&Mounted| match controllers {
            "" => mount.kind == "cgroup2",
            _ => {
                mount.kind == "cgroup"
                    && controllers.split(',').all(|one| mount.options.split(',').any(|option| option == one))
            }
        };
        let mount = mounts.iter().find(is_it)?;
        let point = unescaped(mount.point);
        let relative = Path::new(path).strip_prefix(unescaped(mount.root)).ok();
        Some(Hierarchy {
            version: if controllers.is_empty() { Version::V2 } else { Version::V1(controllers.to_owned()) },
            own: relative.map(|rest| point.join(rest)),
            mount: point,
        })
    };
    own.lines().filter_map(hierarchy).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
        22 27 0:21 / /proc rw,relatime - proc proc rw\n\
        32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
        35 31 0:32 /docker/x /sys/fs/cgroup/my\\040memory ro,relatime - cgroup cgroup rw,memory\n\
        40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

    #[test]
    fn a_hybrid_host_is_read() {
        let own =
            "9:net_cls:/\n4:memory:/docker/x/inner\n3:cpu,cpuacct:/\n1:name=systemd:/user.slice\n0::/a:b\n";
        let found = parse(HYBRID, own);
        let seen: Vec<_> = found.iter().map(|one| (one.version.clone(), one.own.clone().unwrap())).collect();
        let v1 = |options: &str| Version::V1(options.into());
        assert_eq!(
            seen,
            [
                (v1("memory"), "/sys/fs/cgroup/my memory/inner".into()),
                (v1("cpu,cpuacct"), "/sys/fs/cgroup/cpu,cpuacct".into()),
                (v1("name=systemd"), "/sys/fs/cgroup/systemd/user.slice".into()),
                (Version::V2, "/sys/fs/cgroup/unified/a:b".into()),
            ]
        );
        assert!(found[1].has("cpuacct") && !found[1].has("cpuset"));
        let with = |controller| with_controller(&found, controller).unwrap().version.clone();
        assert_eq!((with("cpuacct"), with("hugetlb")), (v1("cpu,cpuacct"), Version::V2));
        assert_eq!(with_controller(&found[..3], "hugetlb"), None);
    }

    #[test]
    fn a_position_outside_the_mount_is_unknown_and_no_mount_is_no_hierarchy() {
        assert_eq!(parse(HYBRID, "4:memory:/elsewhere\n")[0].own, None);
        assert!(parse("", "0::/\n").is_empty());
    }
}

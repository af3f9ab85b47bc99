//! The filesystem and mount options of a path, from `/proc/self/mountinfo` (see proc(5)).

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use dunnage_analysis::distinct;

use crate::sys::cgroup::unescaped;

/// One line of `/proc/self/mountinfo`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mount {
    /// Its number, by which the kernel knows it.
    pub id: u64,
    /// Major and minor number of the filesystem; those of a block device unless the major is 0.
    pub device: (u32, u32),
    /// The mount point.
    pub point: PathBuf,
    /// The type, such as `ext4`.
    pub filesystem: String,
    /// The mounted device, or a name that the filesystem chose.
    pub source: String,
    /// Options of this mount, then those of the filesystem, without duplicates.
    pub options: Vec<String>,
}

impl Mount {
    /// Whether the mount has this option, such as `noexec`.
    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|own| own == option)
    }
}

/// The storage below a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storage {
    /// The requested path.
    pub path: PathBuf,
    /// The mount that contains it.
    pub mount: Mount,
}

impl Storage {
    /// The storage below `path`, or below its nearest existing ancestor.
    pub fn under(path: &Path) -> Option<Storage> {
        let mountinfo = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        let mounts = parse(&mountinfo);
        let mount = holding(&mounts, &real(path)?)?.clone();
        Some(Storage { path: path.to_owned(), mount })
    }
}

/// The disk below a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disk {
    /// The vendor's name; virtual disks have none.
    pub model: Option<String>,
    /// The bus, such as `nvme`, `virtio` or `loop`, followed by `rotating` if the kernel reports that.
    pub kind: String,
}

impl Disk {
    /// The disk below a path, from sysfs; none if it is not a single block device (memory, network, several disks).
    pub fn under(path: &Path) -> Option<Disk> {
        let device = real(path)?.metadata().ok()?.dev();
        let number = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
        Disk::of(&Path::new("/sys/dev/block").join(number))
    }

    fn of(device: &Path) -> Option<Disk> {
        let mut device = device.canonicalize().ok()?;
        if device.join("partition").exists() {
            device.pop();
        }
        // The device below a mapping or an array.
        let mut below = std::fs::read_dir(device.join("slaves")).into_iter().flatten().flatten();
        if let Some(one) = below.next() {
            return if below.next().is_some() { None } else { Disk::of(&one.path()) };
        }
        let line = |name: &str| Some(std::fs::read_to_string(device.join(name)).ok()?.trim().to_owned());
        let path = device.to_string_lossy();
        let bus = ["nvme", "virtio", "loop", "mmc", "usb", "ata", "xen"].into_iter();
        let bus = bus.into_iter().find(|bus| path.contains(&format!("/{bus}")));
        let mut kind = bus.unwrap_or("block device").to_owned();
        // Virtual disks report that they rotate, which they cannot know.
        if line("queue/rotational").as_deref() == Some("1") && !matches!(bus, Some("virtio" | "loop" | "xen"))
        {
            kind.push_str(", rotating");
        }
        Some(Disk { model: line("device/model").filter(|model| !model.is_empty()), kind })
    }
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mount { filesystem, source, options, .. } = &self.mount;
        write!(f, "{}: {filesystem} on {source} ({})", self.path.display(), options.join(","))
    }
}

/// The path without symbolic links, or that of its nearest existing ancestor.
pub fn real(path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    absolute.ancestors().find_map(|ancestor| ancestor.canonicalize().ok())
}

/// The mount that contains a real path: the deepest mount point above it. Of several on the same point it is the last one,
/// which hides the others.
fn holding<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let above = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    above.max_by_key(|mount| mount.point.components().count())
}

/// All mounts of the table, in order, without malformed lines.
pub fn parse(mountinfo: &str) -> Vec<Mount> {
    mountinfo.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Mount> {
    // Any number of optional fields comes before the hyphen.
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ');
    let (id, device) = (before.next()?.parse().ok()?, before.nth(1)?.split_once(':')?);
    let device = (device.0.parse().ok()?, device.1.parse().ok()?);
    let mut before = before.skip(1);
    let (point, own) = (before.next()?, before.next()?);
    let mut after = after.split(' ');
    let (filesystem, source, shared) = (after.next()?, after.next()?, after.next().unwrap_or(""));
    let options = own.split(',').chain(shared.split(',')).filter(|option| !option.is_empty());
    Some(Mount {
        id,
        device,
        point: unescaped(point),
        filesystem: filesystem.to_owned(),
        source: unescaped(source).display().to_string(),
        options: distinct(options.map(str::to_owned)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
40 27 254:0 /var/lib/docker /var/lib/docker rw,noexec,relatime shared:1 master:2 - ext4 /dev/vda rw,discard
41 27 0:50 / /mnt/with\\040blank rw - tmpfs tmp\\134fs rw,size=4k
42 27 0:51 / /mnt/twice rw - tmpfs first rw
43 42 0:52 / /mnt/twice ro,nosuid - xfs /dev/sdb1 rw,noquota
a line of another form
";

    #[test]
    fn a_disk_is_found_below_partitions_and_mappings() {
        let sys = tempfile::tempdir().unwrap();
        let file = |path: &str, text: &str| {
            let path = sys.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        file("nvme0/nvme0n1/device/model", "Fast 980  \n");
        file("nvme0/nvme0n1/queue/rotational", "0\n");
        file("nvme0/nvme0n1/nvme0n1p2/partition", "2\n");
        file("dm-0/queue/rotational", "0\n");
        file("ata1/sda/queue/rotational", "1\n");
        file("virtio1/vda/queue/rotational", "1\n");
        std::fs::create_dir_all(sys.path().join("dm-0/slaves")).unwrap();
        std::os::unix::fs::symlink("../../nvme0/nvme0n1/nvme0n1p2", sys.path().join("dm-0/slaves/nvme0n1p2"))
            .unwrap();
        let disk = |path: &str| Disk::of(&sys.path().join(path));
        let fast = Disk { model: Some("Fast 980".into()), kind: "nvme".into() };
        assert_eq!([disk("nvme0/nvme0n1/nvme0n1p2"), disk("dm-0")], [Some(fast.clone()), Some(fast)]);
        assert_eq!(disk("ata1/sda").unwrap().kind, "ata, rotating");
        assert_eq!(disk("virtio1/vda").unwrap().kind, "virtio");
        std::os::unix::fs::symlink("../../ata1/sda", sys.path().join("dm-0/slaves/sda")).unwrap();
        assert_eq!(disk("dm-0"), None, "two disks");
        assert_eq!(disk("nowhere"), None);
    }

    #[test]
    fn lines_with_and_without_optional_fields_are_read() {
        let mounts = parse(TABLE);
        assert_eq!(mounts.len(), 6);
        assert_eq!((mounts[2].id, mounts[2].device), (40, (254, 0)));
        assert_eq!(mounts[2].options, ["rw", "noexec", "relatime", "discard"]);
        assert!(mounts[2].has("noexec") && !mounts[1].has("noexec"));
        assert_eq!(mounts[3].point, Path::new("/mnt/with blank"));
        assert_eq!(mounts[3].source, "tmp\\fs");
    }

    #[test]
    fn the_deepest_and_last_mount_holds_a_path() {
        let mounts = parse(TABLE);
        let source = |path: &str| holding(&mounts, Path::new(path)).unwrap().source.clone();
        assert_eq!(source("/mnt/twice/file"), "/dev/sdb1");
        assert_eq!(source("/mnt/twice-not"), "/dev/vda");
        assert_eq!(source("/proc/self"), "proc");
        assert!(holding(&[], Path::new("/")).is_none());
    }

    #[test]
    fn a_path_that_does_not_exist_yet_lies_where_its_nearest_ancestor_does() {
        let missing = Path::new("/proc/no-such-directory/of/ours");
        assert_eq!(real(missing).unwrap(), Path::new("/proc"));
        assert_eq!(Storage::under(missing).unwrap().mount.filesystem, "proc");
    }
}

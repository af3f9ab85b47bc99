//! Where the bytes are stored that a container writes at a path: behind an overlay in its upper directory,
//! behind fuse-overlayfs in the directory that its process was given, otherwise on the mount itself; and on
//! which filesystem and block device of the host that is.
//!
//! Everything is read on the host, from the mount tables of processes, and nothing is written. Deliberately
//! absent: devices below a mapping or an array, servers of network filesystems, and the files of a container
//! with a kernel of its own, whose first process is that kernel.

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, fstat, major, minor};

use crate::host::mounts::{self, Mount};
use crate::image::export;
use crate::outcome::{Failure, OrEnvironment};
use crate::sys::block_device::{self, Number};
use crate::sys::cgroup::unescaped;
use crate::sys::process;

/// How many overlays may be stacked; the kernel allows two.
const DEPTH: usize = 4;

/// What takes the bytes that are written at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behind {
    /// The type of the mount that holds the path in the container.
    pub mount: String,
    /// The options of that mount.
    pub options: Vec<String>,
    /// What a sync there can promise.
    pub class: Class,
    /// The directory that an overlay writes to, as the process that mounted it sees it.
    pub upper: Option<PathBuf>,
    /// The type of the filesystem that takes the bytes.
    pub filesystem: String,
    /// The block device that this filesystem is on, if it is on one.
    pub device: Option<Number>,
    /// Its name below `/dev`.
    pub device_name: Option<String>,
    /// The file behind it, if it is a loop device.
    pub backing: Option<Backing>,
}

/// The file behind a loop device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backing {
    /// Its path.
    pub file: PathBuf,
    /// The type of the filesystem that it is on.
    pub filesystem: Option<String>,
    /// The block device of that filesystem.
    pub device: Option<Number>,
}

/// What a sync can promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// It reaches the filesystem below, and with that its device.
    Synced,
    /// It does nothing: the overlay is mounted that way.
    Volatile,
    /// The bytes are in memory alone.
    Memory,
}

/// Whether an overlay with these options ignores syncs.
pub fn is_volatile<'a>(options: impl IntoIterator<Item = &'a str>) -> bool {
    options.into_iter().any(|option| ["volatile", "fsync=volatile"].contains(&option))
}

/// What is behind a path in the container with this first process.
pub fn behind(first_process: i32, path: &Path) -> Result<Behind, Failure> {
    let first = View::of(first_process)?.holder(path)?;
    let (mut last, mut upper, mut is_volatile) = (first.clone(), None, false);
    for _ in 0..DEPTH {
        is_volatile |= last.is_volatile();
        let Some(written) = last.written()? else { break };
        is_volatile |= written.is_volatile;
        last = written.view.holder(&written.directory)?;
        upper.get_or_insert(written.directory);
    }
    let device = last.device();
    let backing = device.and_then(block_device::backing_file).map(Backing::of);
    let below = backing.as_ref().and_then(|backing| backing.filesystem.as_deref());
    let class = match () {
        () if [Some(last.mount.filesystem.as_str()), below].into_iter().flatten().any(is_memory) => {
            Class::Memory
        }
        () if is_volatile => Class::Volatile,
        () => Class::Synced,
    };
    Ok(Behind {
        mount: first.mount.filesystem,
        options: first.mount.options,
        class,
        upper,
        filesystem: last.mount.filesystem,
        device,
        device_name: device.and_then(block_device::name),
        backing,
    })
}

/// The directories of the read-only layers of the overlay that holds a path in the container with this first process,
/// the topmost first; empty without an overlay. A layer that was mounted only to make the overlay is not on the host
/// any more; then they are those that the engine names in the file `lower` next to the upper directory.
pub(super) fn layers(first_process: i32, path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let holder = View::of(first_process)?.holder(path)?;
    let Some(Written { view, directory, lower, .. }) = holder.written()? else { return Ok(Vec::new()) };
    let on_host = |path: PathBuf| view.root.join(path.strip_prefix("/").unwrap_or(&path));
    let named: Vec<_> = lower.iter().map(|layer| on_host(layer.clone())).collect();
    if named.iter().all(|layer| layer.is_dir()) {
        return Ok(named);
    }
    let above = directory.parent().unwrap_or(&directory);
    let list = on_host(above.join("lower"));
    let text =
        std::fs::read_to_string(&list).or_environment(format_args!("cannot read `{}`", list.display()))?;
    let driver = above.parent().unwrap_or(above);
    Ok(text.trim().split(':').map(|layer| on_host(driver.join(layer))).collect())
}

fn is_memory(filesystem: &str) -> bool {
    ["tmpfs", "ramfs"].contains(&filesystem)
}

impl Backing {
    fn of(file: PathBuf) -> Backing {
        let holder = View::of_host().and_then(|host| host.holder(&file)).ok();
        let device = holder.as_ref().and_then(Holder::device);
        Backing { file, filesystem: holder.map(|holder| holder.mount.filesystem), device }
    }
}

/// The files that a process sees.
struct View {
    root: PathBuf,
    mounts: Vec<Mount>,
}

/// The mount that holds a path.
#[derive(Clone)]
struct Holder {
    mount: Mount,
    /// The number that the filesystem gives its files, which is a device's unless the major is 0.
    number: Number,
}

/// A directory that an overlay writes to.
struct Written {
    view: View,
    directory: PathBuf,
    /// Its read-only layers, the topmost first.
    lower: Vec<PathBuf>,
    is_volatile: bool,
}

impl View {
    fn of(pid: i32) -> Result<View, Failure> {
        View::below(&Path::new("/proc").join(pid.to_string()))
    }

    fn of_host() -> Result<View, Failure> {
        View::below(Path::new("/proc/self"))
    }

    fn below(process: &Path) -> Result<View, Failure> {
        let table = process.join("mountinfo");
        let text = std::fs::read_to_string(&table)
            .or_environment(format_args!("cannot read `{}`", table.display()))?;
        Ok(View { root: process.join("root"), mounts: mounts::parse(&text) })
    }

    /// The mount that holds a path of this view. The kernel says which one: by the text of the table, a mount
    /// may be hidden by a later one further up.
    fn holder(&self, path: &Path) -> Result<Holder, Failure> {
        let cannot =
            || format!("cannot find the mount of `{}` below `{}`", path.display(), self.root.display());
        let place = self.root.join(export::resolve(&self.root, path).or_environment(cannot())?);
        let opened = rustix::fs::open(&place, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        let opened = opened.or_environment(cannot())?;
        let number = fstat(&opened).or_environment(cannot())?.st_dev;
        let facts = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", opened.as_raw_fd()));
        let facts = facts.or_environment(cannot())?;
        let id = facts.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok());
        let mount = self.mounts.iter().find(|mount| Some(mount.id) == id);
        let mount = mount.ok_or_else(|| Failure::environment(cannot()))?.clone();
        Ok(Holder { mount, number: (major(number), minor(number)) })
    }
}

impl Holder {
    fn option(&self, name: &str) -> Option<&str> {
        option(self.mount.options.iter().map(String::as_str), name)
    }

    fn is_volatile(&self) -> bool {
        is_volatile(self.mount.options.iter().map(String::as_str))
    }

    /// The block device below. btrfs and others give their files numbers that belong to no device, but name
    /// the device as their source.
    fn device(&self) -> Option<Number> {
        if self.number.0 > 0 {
            return Some(self.number);
        }
        let source = self.mount.source.starts_with("/dev/").then(|| rustix::fs::stat(&*self.mount.source))?;
        let number = source.ok()?.st_rdev;
        (number > 0).then(|| (major(number), minor(number)))
    }

    /// The directory that takes its bytes, if it is an overlay that can be written to.
    fn written(&self) -> Result<Option<Written>, Failure> {
        match self.mount.filesystem.as_str() {
            "overlay" => {
                let Some(upper) = self.option("upperdir") else { return Ok(None) };
                let view = View::of_host()?;
                let directory = directory_of(upper, &view, &self.mount)?;
                let lower =
                    lower_of(self.mount.options.iter().map(String::as_str), &base_of(&directory, upper));
                Ok(Some(Written { view, directory, lower, is_volatile: false }))
            }
            "fuse.fuse-overlayfs" | "fuse" => served(&self.mount),
            _ => Ok(None),
        }
    }
}

fn option<'a>(mut options: impl Iterator<Item = &'a str>, name: &str) -> Option<&'a str> {
    options.find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
}

/// The directory that the relative paths of an overlay's options start from, by its upper directory.
fn base_of(directory: &Path, upper: &str) -> PathBuf {
    let depth = Path::new(upper).components().count();
    directory.ancestors().nth(depth).unwrap_or(Path::new("/")).to_owned()
}

/// The read-only layers in these options, the topmost first. Newer kernels name each in an option of its own.
fn lower_of<'a>(options: impl Iterator<Item = &'a str>, base: &Path) -> Vec<PathBuf> {
    let named = options
        .filter_map(|option| ["lowerdir=", "lowerdir+="].iter().find_map(|name| option.strip_prefix(name)));
    let paths = named.flat_map(|paths| paths.split(':')).filter(|path| !path.is_empty());
    paths.map(|path| base.join(unescaped(path))).collect()
}

/// The path of an overlay's directory on the host. An engine with many layers mounts with paths that are
/// relative to a directory above the mount point, since the options must fit into a page.
fn directory_of(upper: &str, host: &View, mount: &Mount) -> Result<PathBuf, Failure> {
    let spellings = [unescaped(upper), unescaped(&unescaped(upper).to_string_lossy().replace('\\', ""))];
    let points = host.mounts.iter().filter(|other| other.device == mount.device).map(|other| &other.point);
    let above: Vec<&Path> = points.flat_map(|point| point.ancestors()).collect();
    let absolute = spellings.iter().filter(|path| path.is_absolute()).cloned();
    let relative = spellings.iter().filter(|path| !path.is_absolute());
    let mut all = absolute.chain(relative.flat_map(|path| above.iter().map(move |above| above.join(path))));
    all.find(|path| path.is_dir()).ok_or_else(|| {
        Failure::environment(format!("the upper directory `{upper}` of an overlay is not on the host"))
    })
}

/// The directory that the fuse-overlayfs process of a mount was given. The process sees its own mount, which
/// the host need not.
fn served(mount: &Mount) -> Result<Option<Written>, Failure> {
    for server in process::named(&["fuse-overlayfs"]) {
        let Ok(view) = View::of(server.pid) else { continue };
        let line = std::fs::read(format!("/proc/{}/cmdline", server.pid)).unwrap_or_default();
        let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        let words: Vec<&str> = words.iter().map(|word| &**word).collect();
        let Some((options, target)) = parse_arguments(&words) else { continue };
        let target = Path::new("/").join(export::resolve(&view.root, target).unwrap_or_default());
        let is_it = |own: &Mount| own.device == mount.device && own.point == target;
        if !view.mounts.iter().any(is_it) {
            continue;
        }
        let Some(upper) = option(options.iter().copied(), "upperdir") else {
            let reason = format!("`{}` serves a mount and names no upper directory", words.join(" ").trim());
            return Err(Failure::environment(reason));
        };
        let is_volatile = is_volatile(options.iter().copied()) || options.contains(&"fsync=0");
        let lower = lower_of(options.iter().copied(), Path::new("/"));
        return Ok(Some(Written { directory: PathBuf::from(upper), view, lower, is_volatile }));
    }
    Err(Failure::environment(format!(
        "no process of fuse-overlayfs serves the mount on `{}`",
        mount.point.display()
    )))
}

/// The mount options among the arguments of fuse-overlayfs, and its mount point.
fn parse_arguments<'a>(words: &[&'a str]) -> Option<(Vec<&'a str>, &'a Path)> {
    let mut options = Vec::new();
    let mut target = None;
    let mut words = words.iter().skip(1).filter(|word| !word.is_empty());
    while let Some(word) = words.next() {
        match word.strip_prefix("-o") {
            Some("") => options.extend(words.next()?.split(',')),
            Some(own) => options.extend(own.split(',')),
            None if word.starts_with('-') => {}
            None => target = Some(Path::new(*word)),
        }
    }
    Some((options, target?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_of_fuse_overlayfs_are_read_in_both_forms() {
        let joined = ["fuse-overlayfs", "-olowerdir=/l,upperdir=/u", "-f", "/merged", ""];
        let apart = ["/usr/bin/fuse-overlayfs", "-o", "lowerdir=/l,upperdir=/u", "/merged"];
        for words in [&joined[..], &apart[..]] {
            let (options, target) = parse_arguments(words).unwrap();
            assert_eq!((options, target), (vec!["lowerdir=/l", "upperdir=/u"], Path::new("/merged")));
        }
        assert_eq!(parse_arguments(&["fuse-overlayfs", "-o"]), None);
        assert_eq!(parse_arguments(&["fuse-overlayfs", "--version"]), None);
    }

    #[test]
    fn an_option_is_found_by_its_whole_name() {
        let options = || ["rw", "lowerdir=/a:/b", "upperdir2=/no", "upperdir=/u=1"].into_iter();
        assert_eq!(option(options(), "upperdir"), Some("/u=1"));
        assert_eq!(option(options(), "workdir"), None);
        assert!(
            !is_volatile(options()) && is_volatile(["rw", "fsync=volatile"]) && is_volatile(["volatile"])
        );
    }

    #[test]
    fn the_layers_of_an_overlay_are_named_in_one_option_or_in_one_each() {
        let layers =
            |options: &[&'static str], base: &str| lower_of(options.iter().copied(), Path::new(base));
        assert_eq!(layers(&["rw", "lowerdir=/a:/b", "upperdir=/u"], "/"), [Path::new("/a"), Path::new("/b")]);
        assert_eq!(layers(&["lowerdir+=/a", "lowerdir+=/b"], "/"), [Path::new("/a"), Path::new("/b")]);
        let base = base_of(Path::new("/var/lib/overlay2/x/diff"), "x/diff");
        assert_eq!(base, Path::new("/var/lib/overlay2"));
        let relative = layers(&["lowerdir=l/A:l/B"], "/var/lib/overlay2");
        assert_eq!(relative, ["/var/lib/overlay2/l/A", "/var/lib/overlay2/l/B"].map(Path::new));
    }

    #[test]
    fn a_process_without_a_container_writes_where_the_host_does() {
        let own = std::process::id() as i32;
        let proc = behind(own, Path::new("/proc/self")).unwrap();
        assert_eq!((proc.mount.as_str(), proc.device, proc.upper), ("proc", None, None));
        let missing = behind(own, Path::new("/no/such/path")).unwrap_err();
        assert!(missing.reason.contains("/no/such/path"), "{missing}");
        assert!(behind(0, Path::new("/")).is_err());
    }
}

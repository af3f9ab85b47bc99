//! Where the cgroup of the calling process is. Which one it is stands in `/proc/self/cgroup`; where the
//! directory is depends on who mounted it. On the host the path goes down from the hierarchy's root; a
//! container sees its own cgroup as the root, and one in the host's cgroup namespace reads a path whose
//! beginning it does not see. So the longest end of the path that is there is the one. Without allocation
//! and without libc, for the probe.

use core::ffi::CStr;

use super::super::super::raw;
use super::{Missing, missing};

/// The longest `/proc/self/cgroup` and the longest path that are read.
const ROOM: usize = 8192;

/// The interface of the hierarchy that a controller is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interface {
    /// cgroup v1.
    First,
    /// cgroup v2.
    Second,
}

/// A controller that is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Controller {
    /// Quotas and throttling.
    Cpu,
    /// Usage, a hierarchy of its own in version 1.
    CpuAccounting,
    /// Memory.
    Memory,
}

impl Controller {
    const fn name(self) -> &'static [u8] {
        match self {
            Controller::Cpu => b"cpu",
            Controller::CpuAccounting => b"cpuacct",
            Controller::Memory => b"memory",
        }
    }

    /// Where its hierarchy is mounted, by custom; combined ones bear both names.
    const fn mounts(self, interface: Interface) -> &'static [&'static [u8]] {
        match (interface, self) {
            (Interface::Second, _) => &[b"/sys/fs/cgroup", b"/sys/fs/cgroup/unified"],
            (_, Controller::Memory) => &[b"/sys/fs/cgroup/memory"],
            (_, Controller::Cpu) => {
                &[b"/sys/fs/cgroup/cpu", b"/sys/fs/cgroup/cpu,cpuacct", b"/sys/fs/cgroup/cpuacct,cpu"]
            }
            (_, Controller::CpuAccounting) => {
                &[b"/sys/fs/cgroup/cpuacct", b"/sys/fs/cgroup/cpu,cpuacct", b"/sys/fs/cgroup/cpuacct,cpu"]
            }
        }
    }
}

/// A descriptor that is closed at its end.
#[derive(Debug)]
pub(super) struct File(i32);

impl Drop for File {
    fn drop(&mut self) {
        raw::close(self.0);
    }
}

impl File {
    pub(super) fn open_at(directory: i32, path: &CStr, flags: i32) -> Result<File, i32> {
        let arguments =
            [directory as usize, path.as_ptr() as usize, (flags | libc::O_CLOEXEC) as usize, 0, 0, 0];
        // SAFETY: the path is a valid C string; the other arguments are plain numbers.
        unsafe { raw::syscall(libc::SYS_openat, arguments) }.map(|fd| File(fd as i32))
    }

    /// The first bytes of the file as they are now.
    pub(super) fn read<'a>(&self, buffer: &'a mut [u8]) -> Result<&'a [u8], i32> {
        let arguments = [self.0 as usize, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0];
        loop {
            // SAFETY: the buffer is writable for its whole length.
            match unsafe { raw::syscall(libc::SYS_pread64, arguments) } {
                Ok(length) => return Ok(&buffer[..length]),
                Err(libc::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    fn inode(&self) -> Option<u64> {
        let mut status = [0u64; 18];
        // SAFETY: room for a `struct stat`, which is 144 bytes here; its second word is the inode number.
        unsafe { raw::syscall(libc::SYS_fstat, [self.0 as usize, status.as_mut_ptr() as usize, 0, 0, 0, 0]) }
            .ok()?;
        Some(status[1])
    }
}

/// Which cgroups this process is in.
#[derive(Debug)]
pub struct Membership {
    text: [u8; ROOM],
    length: usize,
}

impl Membership {
    /// Reads `/proc/self/cgroup`.
    pub fn read() -> Result<Membership, Missing> {
        let why = missing("there is no readable `/proc/self/cgroup`");
        let file = File::open_at(libc::AT_FDCWD, c"/proc/self/cgroup", libc::O_RDONLY).map_err(&why)?;
        let mut membership = Membership { text: [0; ROOM], length: 0 };
        while let Ok(count @ 1..) = raw::read(file.0, &mut membership.text[membership.length..]) {
            membership.length += count;
        }
        if membership.length == 0 || membership.length == ROOM {
            return Err(why(0));
        }
        Ok(membership)
    }

    /// The interface that this controller has here, and its path.
    fn path(&self, controller: Controller) -> Option<(Interface, &[u8])> {
        path_in(&self.text[..self.length], controller)
    }

    /// The interface of the hierarchy with this controller; version 2 has all that version 1 has not.
    pub fn interface(&self, controller: Controller) -> Option<Interface> {
        self.path(controller).map(|(interface, _)| interface)
    }

    pub(super) fn directory(&self, controller: Controller) -> Result<Directory, i32> {
        let (interface, path) = self.path(controller).ok_or(libc::ENOENT)?;
        for mount in controller.mounts(interface) {
            if let Some(directory) = Directory::under(mount, path) {
                return Ok(directory);
            }
        }
        Err(libc::ENOENT)
    }

    /// The beginning of a file of its cgroup with this controller.
    pub fn file<'a>(
        &self,
        controller: Controller,
        name: &CStr,
        buffer: &'a mut [u8],
    ) -> Result<&'a [u8], i32> {
        self.directory(controller)?.open(name)?.read(buffer)
    }
}

/// The line of this controller in `/proc/self/cgroup`, else that of version 2.
fn path_in(text: &[u8], controller: Controller) -> Option<(Interface, &[u8])> {
    let mut second = None;
    for line in text.split(|byte| *byte == b'\n') {
        let mut fields = line.splitn(3, |byte| *byte == b':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        if controllers.is_empty() {
            second = Some((Interface::Second, path));
        } else if controllers.split(|byte| *byte == b',').any(|one| one == controller.name()) {
            return Some((Interface::First, path));
        }
    }
    second
}

/// The directory of a cgroup.
#[derive(Debug)]
pub(super) struct Directory(File);

impl Directory {
    /// The directory under a mount to which the longest end of this path leads, and that is a cgroup.
    fn under(mount: &[u8], path: &[u8]) -> Option<Directory> {
        let mut rest = path;
        loop {
            // Above the root of its namespace a path begins with `/..`, which leads out of the mount.
            let leads_out = rest.split(|byte| *byte == b'/').any(|part| part == b"..");
            if let Some(directory) = (!leads_out).then(|| Directory::at(mount, rest)).flatten() {
                return Some(directory);
            }
            if rest.iter().all(|byte| *byte == b'/') {
                return None;
            }
            let next = rest[1..].iter().position(|byte| *byte == b'/');
            rest = next.map_or(b"", |at| &rest[at + 1..]);
        }
    }

    fn at(mount: &[u8], path: &[u8]) -> Option<Directory> {
        let mut buffer = [0u8; ROOM];
        let end = mount.len() + path.len();
        buffer.get_mut(..mount.len())?.copy_from_slice(mount);
        buffer.get_mut(mount.len()..end)?.copy_from_slice(path);
        let path = CStr::from_bytes_until_nul(&buffer).ok()?;
        let directory = File::open_at(libc::AT_FDCWD, path, libc::O_PATH | libc::O_DIRECTORY).ok()?;
        // What is mounted there may be no cgroup at all; every cgroup has this file.
        File::open_at(directory.0, c"cgroup.procs", libc::O_PATH).ok()?;
        Some(Directory(directory))
    }

    pub(super) fn open(&self, name: &CStr) -> Result<File, i32> {
        File::open_at(self.0.0, name, libc::O_RDONLY)
    }

    /// Its number in its filesystem.
    pub(super) fn inode(&self) -> Option<u64> {
        self.0.inode()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_with_the_controller_is_found_in_either_version() {
        let combined = b"4:memory:/docker/x\n3:cpu,cpuacct:/docker/a:b\n1:name=cpu:/no\n0::/unified\n";
        let first = |path: &'static [u8]| Some((Interface::First, path));
        assert_eq!(path_in(combined, Controller::Cpu), first(b"/docker/a:b"));
        assert_eq!(path_in(combined, Controller::CpuAccounting), first(b"/docker/a:b"));
        assert_eq!(path_in(combined, Controller::Memory), first(b"/docker/x"));
        let apart = b"2:cpuacct:/b\n1:cpu:/a\n0::/c\n";
        assert_eq!(path_in(apart, Controller::Cpu), first(b"/a"));
        assert_eq!(path_in(apart, Controller::CpuAccounting), first(b"/b"));
        assert_eq!(path_in(apart, Controller::Memory), Some((Interface::Second, b"/c".as_slice())));
        assert_eq!(path_in(b"1:cpuset:/\n", Controller::Cpu), None);
        assert_eq!(path_in(b"", Controller::Cpu), None);
    }

    #[test]
    fn the_longest_end_of_the_path_that_is_a_cgroup_is_taken() {
        let root = std::env::temp_dir().join(format!("dunnage-own-{}", std::process::id()));
        let inner = root.join("b/c");
        std::fs::create_dir_all(&inner).unwrap();
        let mount = root.to_string_lossy().into_owned();
        let found = |path: &str| {
            let directory = Directory::under(mount.as_bytes(), path.as_bytes())?;
            let mut text = [0u8; 16];
            let length = directory.open(c"mark").unwrap().read(&mut text).unwrap().len();
            Some(String::from_utf8_lossy(&text[..length]).into_owned())
        };
        assert_eq!(found("/"), None, "no cgroup is there");
        for (directory, mark) in [(&root, "root"), (&inner, "inner")] {
            std::fs::write(directory.join("cgroup.procs"), "").unwrap();
            std::fs::write(directory.join("mark"), mark).unwrap();
        }
        // The host's whole path; one whose beginning is not seen; the container's own; those of others.
        let expected = [("/b/c", "inner"), ("/docker/b/c", "inner"), ("/", "root"), ("/b", "root")];
        for (path, mark) in expected.into_iter().chain([("/docker/id", "root"), ("/../b/c", "inner")]) {
            assert_eq!(found(path).as_deref(), Some(mark), "{path}");
        }
        std::fs::remove_dir_all(&root).unwrap();
    }
}

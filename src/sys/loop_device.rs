//! Loop devices: a file as a block device. A device detaches automatically when no process has it open and
//! nothing on it is mounted, so a killed process leaves none.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// From linux/loop.h.
const LOOP_CLR_FD: libc::c_ulong = 0x4C01;
const LOOP_SET_FD: libc::c_ulong = 0x4C00;
const LOOP_SET_STATUS64: libc::c_ulong = 0x4C04;
const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4C82;
const LO_FLAGS_AUTOCLEAR: u8 = 4;

/// The size of a `struct loop_info64`, and the offset of its flags.
const INFO: usize = 232;
const FLAGS: usize = 52;

/// An open loop device.
pub(crate) struct LoopDevice {
    pub(crate) path: PathBuf,
    _open: File,
}

fn done(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

impl LoopDevice {
    /// Attaches a file to a free device.
    pub(crate) fn attach(file: &Path) -> io::Result<LoopDevice> {
        let file = open(file)?;
        let control = open(Path::new("/dev/loop-control"))?;
        loop {
            // SAFETY: takes no argument.
            let number = done(unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) })?;
            let path = PathBuf::from(format!("/dev/loop{number}"));
            let device = open(&path)?;
            // SAFETY: both descriptors are open.
            match done(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_SET_FD, file.as_raw_fd()) }) {
                // Another process took it meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => continue,
                attached => attached?,
            };
            let mut info = [0u8; INFO];
            info[FLAGS] = LO_FLAGS_AUTOCLEAR;
            // SAFETY: the record has the size that this ioctl reads.
            let set = done(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_SET_STATUS64, info.as_ptr()) });
            if let Err(error) = set {
                // SAFETY: takes no argument.
                unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CLR_FD, 0) };
                return Err(error);
            }
            return Ok(LoopDevice { path, _open: device });
        }
    }
}

/// The devices to which this file is attached.
pub(crate) fn of_file(file: &Path) -> Vec<PathBuf> {
    let devices = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let of = |entry: std::fs::DirEntry| {
        let name = entry.file_name();
        let backing = std::fs::read_to_string(entry.path().join("loop/backing_file")).ok()?;
        (Path::new(backing.trim_end()) == file).then(|| Path::new("/dev").join(name))
    };
    devices.filter_map(of).collect()
}

/// Detaches a device, at once or when nothing on it is mounted any more.
pub(crate) fn detach(device: &Path) -> io::Result<()> {
    let device = open(device)?;
    // SAFETY: takes no argument.
    match done(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CLR_FD, 0) }) {
        Err(error) if error.raw_os_error() != Some(libc::ENXIO) => Err(error),
        _ => Ok(()),
    }
}

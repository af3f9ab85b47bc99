//! Images, scratch directories and launches for the tests of the floor.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use dunnage::probe::message::{self, Message};
use dunnage::sys::cgroup::{CgroupPlan, Established, Limits};
use dunnage::sys::container::{Gone, Pieces, Prepared, Spec, is_privileged};
use dunnage::sys::signals::Interrupts;
use dunnage::sys::spawn::Status;
use dunnage::units::Nanos;

use crate::support::{Need, itself, skip};

pub const PATIENCE: Nanos = Nanos::from_millis(10_000);

/// An image and a scratch directory, in a temporary directory that all users can enter.
pub struct Place {
    pub top: tempfile::TempDir,
    pub cgroups: CgroupPlan,
    pub established: Option<Established>,
}

impl Place {
    pub fn new() -> Place {
        let top = tempfile::Builder::new().prefix("dunnage-floor-").tempdir().unwrap();
        fs::set_permissions(top.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for directory in ["rootfs", "scratch"] {
            fs::create_dir(top.path().join(directory)).unwrap();
        }
        let executable = top.path().join("rootfs/dunnage");
        fs::copy(env!("CARGO_BIN_EXE_dunnage"), &executable).unwrap();
        fs::set_permissions(&executable, fs::Permissions::from_mode(0o755)).unwrap();
        let cgroups = CgroupPlan::here().unwrap();
        let established = Some(cgroups.establish().unwrap());
        Place { top, cgroups, established }
    }

    pub fn spec(&self) -> Spec {
        spec_in(self.top.path(), self.cgroups.clone())
    }

    /// The content of the scratch directory and of dunnage's cgroup directories.
    pub fn remains(&self) -> Vec<PathBuf> {
        let scratch = [self.top.path().join("scratch")];
        let parents = self.cgroups.places.iter().map(|place| place.parent.clone());
        let entries =
            scratch.into_iter().chain(parents).flat_map(|path| fs::read_dir(path).into_iter().flatten());
        let ours = |path: &PathBuf| path.to_string_lossy().contains("floor-test");
        entries.map(|entry| entry.unwrap().path()).filter(ours).collect()
    }
}

/// The probe in the image under `top`, made as an engine makes it.
pub fn spec_in(top: &Path, cgroups: CgroupPlan) -> Spec {
    Spec {
        rootfs: top.join("rootfs"),
        below: Vec::new(),
        scratch: top.join("scratch"),
        program: "/dunnage".into(),
        arguments: vec!["probe".into(), "start".into()],
        environment: vec!["PATH=/bin".into()],
        pieces: Pieces::engine(),
        mounts: dunnage::sys::container::Mounts::default(),
        stamped: false,
        seccomp: Some(allow_all()),
        cgroups,
        limits: Limits::default(),
        bounds: Default::default(),
        metacopy: false,
        additions: dunnage::sys::container::Additions::default(),
        tied: dunnage::sys::container::Tied::ToThread,
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        drop(self.established.take());
        self.cgroups.retire().unwrap();
    }
}

pub fn allow_all() -> Vec<libc::sock_filter> {
    vec![libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: 0x7fff_0000 }]
}

pub fn run(prepared: &mut Prepared, name: &str) -> Gone {
    let interrupts = Interrupts::install().unwrap();
    prepared.launch(name).unwrap().wait(PATIENCE, Some(&interrupts))
}

pub fn message_of(gone: &Gone) -> Message {
    let ended = gone.end.as_ref().unwrap();
    assert_eq!(ended.status, Status::Exited(0), "{}", String::from_utf8_lossy(&ended.stderr));
    gone.removed.clone().unwrap();
    message::parse(&ended.stdout).unwrap()
}

pub fn own_namespaces() -> BTreeSet<u64> {
    inodes(["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"])
}

/// The namespaces in which the next child of this thread is born.
pub fn own_namespaces_of_children() -> BTreeSet<u64> {
    inodes(["cgroup", "ipc", "mnt", "net", "pid_for_children", "user", "uts"])
}

fn inodes(names: [&str; 7]) -> BTreeSet<u64> {
    let inode = |name| {
        let link = fs::read_link(format!("/proc/thread-self/ns/{name}")).unwrap();
        link.to_string_lossy().chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap()
    };
    names.into_iter().map(inode).collect()
}

/// The mounts on the host that came from a test; other programs mount theirs meanwhile.
pub fn mounts() -> Vec<String> {
    let all = fs::read_to_string("/proc/self/mountinfo").unwrap();
    all.lines()
        .filter(|line| line.contains("dunnage-floor-") || line.contains("floor-test"))
        .map(str::to_owned)
        .collect()
}

/// Whether this machine lets the tests make what root makes; otherwise the skip is reported.
pub fn as_root(test: &str) -> bool {
    if !is_privileged() {
        skip(test, Need::Root, "CAP_SYS_ADMIN is missing");
    }
    is_privileged()
}

/// Copies a program of the host with its libraries into an image.
pub fn copy_with_libraries(program: &str, rootfs: &Path) {
    let output = Command::new("ldd").arg(program).output().expect("ldd is there");
    assert!(output.status.success(), "ldd {program}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let libraries = text.split_whitespace().filter(|word| word.starts_with('/'));
    for file in libraries.chain([program]) {
        let target = rootfs.join(&file[1..]);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(file, target).unwrap();
    }
}

/// Runs the running test again as a user without rights, from a copy in `top`, which that user can read.
pub fn again_without_rights(top: &Path, variable: &str) {
    const NOBODY: &str = "65534";
    let [own, words @ ..] = itself::words(&itself::path());
    let copy = top.join("test");
    fs::copy(own, &copy).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]).arg(&copy).args(words);
    // That user cannot write to a list of skips that is root's; and here nothing may be skipped.
    let output = command.env(variable, top).env_remove("DUNNAGE_TEST_SKIPS").output();
    let output = output.expect("setpriv is there");
    itself::passed(&output);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(!complaint.contains("skipped: "), "{complaint}");
}

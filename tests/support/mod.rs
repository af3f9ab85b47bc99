//! A test whose need is missing prints that and is counted as skipped.
//!
//! ```ignore
//! if support::lacks("docker_starts_a_container", Need::Docker) { return; }
//! ```
//! Every skip prints `skipped: <test>: <need>: <reason>` and appends that line to the file named by
//! `DUNNAGE_TEST_SKIPS`. A need listed in `DUNNAGE_TEST_REQUIRE` (comma-separated) panics instead.
#![allow(dead_code, reason = "no test executable has all needs")]

pub mod guest;
pub mod itself;
mod kernel;
pub mod orders;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a test may need from the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    Docker,
    DockerCrun,
    Podman,
    Runc,
    Crun,
    Youki,
    Runsc,
    Containerd,
    Root,
    Cgroup,
    Userns,
    Hyperfine,
    Cc,
    Groff,
    Bash,
    Zsh,
    Fish,
    Benchstat,
    Useradd,
    DropCaches,
    Guest,
    Chromium,
    Axe,
    Dockerd,
    Ext4,
    Xfs,
    Btrfs,
    FuseOverlayfs,
    Stack,
    Script,
    Strace,
    PerfEvents,
    IoUring,
    Pasta,
    /// Another part of the kernel; the test says which.
    Kernel,
}

impl Need {
    /// Its name in `DUNNAGE_TEST_REQUIRE` and in the printed line.
    pub fn name(self) -> &'static str {
        match self {
            Need::Docker => "docker",
            Need::DockerCrun => "docker+crun",
            Need::Podman => "podman",
            Need::Runc => "runc",
            Need::Crun => "crun",
            Need::Youki => "youki",
            Need::Runsc => "runsc",
            Need::Containerd => "containerd",
            Need::Root => "root",
            Need::Cgroup => "cgroup",
            Need::Userns => "userns",
            Need::Hyperfine => "hyperfine",
            Need::Cc => "cc",
            Need::Groff => "groff",
            Need::Bash => "bash",
            Need::Zsh => "zsh",
            Need::Fish => "fish",
            Need::Benchstat => "benchstat",
            Need::Useradd => "useradd",
            Need::DropCaches => "drop_caches",
            Need::Guest => "guest",
            Need::Chromium => "chromium",
            Need::Axe => "axe",
            Need::Dockerd => "dockerd",
            Need::Ext4 => "ext4",
            Need::Xfs => "xfs",
            Need::Btrfs => "btrfs",
            Need::FuseOverlayfs => "fuse-overlayfs",
            Need::Stack => "stack",
            Need::Script => "script",
            Need::Strace => "strace",
            Need::PerfEvents => "perf_events",
            Need::IoUring => "io_uring",
            Need::Pasta => "pasta",
            Need::Kernel => "kernel",
        }
    }

    /// The reason if it is missing.
    pub fn ready(self) -> Result<(), String> {
        match self {
            Need::Docker => docker_ready(),
            Need::DockerCrun => docker_knows("crun"),
            Need::Podman => podman_ready(),
            Need::Runc | Need::Crun => runtime_ready(self.name()),
            Need::Youki | Need::Runsc => runtime_ready(self.name()).and_then(|()| root_ready()),
            Need::Containerd => containerd_ready(),
            Need::Root => root_ready(),
            Need::Cgroup => cgroup_ready(),
            Need::Userns => words("unshare", &["--user", "--map-root-user", "true"]).map(drop),
            // Where tracing is forbidden, only a run fails.
            Need::Strace => words(self.name(), &["-o", "/dev/null", "true"]).map(drop),
            // Fails when it is asked for its version.
            Need::DropCaches => {
                let opened = OpenOptions::new().write(true).open("/proc/sys/vm/drop_caches");
                opened.map(drop).map_err(|error| format!("/proc/sys/vm/drop_caches: {error}"))
            }
            Need::Useradd => words(self.name(), &["--help"]).map(drop),
            Need::FuseOverlayfs => words(self.name(), &["--version"]).and_then(|_| root_ready()),
            Need::Hyperfine | Need::Cc | Need::Groff | Need::Bash | Need::Zsh | Need::Fish | Need::Script => {
                words(self.name(), &["--version"]).map(drop)
            }
            Need::Benchstat => benchstat().map(drop),
            Need::Guest => guest::ready(),
            Need::Chromium => words("chromium", &["--version"]).map(drop),
            Need::Axe => axe_ready(),
            Need::PerfEvents => kernel::perf_events_ready(),
            Need::IoUring => kernel::io_uring_ready(),
            Need::Pasta => pasta_ready(),
            Need::Kernel => Ok(()),
            Need::Dockerd => words(self.name(), &["--version"]).and_then(|_| root_ready()),
            Need::Stack => stack_ready(),
            Need::Ext4 | Need::Xfs | Need::Btrfs => {
                let tool = format!("mkfs.{}", self.name());
                words(&tool, &["-V"]).and_then(|_| root_ready())
            }
        }
    }
}

/// Waits until another Debian release is there, which `cargo xtask test` started to create.
fn stack_ready() -> Result<(), String> {
    let done = Command::new("bash").args([STACK, RELEASE]).stdin(Stdio::null()).output();
    let done = done.map_err(|error| format!("bash: {error}"))?;
    let complaint = String::from_utf8_lossy(&done.stderr);
    match done.status.code() {
        Some(0) => Ok(()),
        Some(75) => Err(complaint.trim().to_owned()),
        _ => panic!("{STACK}: {}: {complaint}", done.status),
    }
}

/// Runs a command in another release.
pub const STACK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/xtask/stack.sh");
/// The release that tests use.
pub const RELEASE: &str = "trixie";

/// Whether the test must return now; then the skip has already been printed.
pub fn lacks(test: &str, need: Need) -> bool {
    need.ready().inspect_err(|reason| skip(test, need, reason)).is_err()
}

/// Those of these subjects that work here; the others are reported as skips.
pub fn at_hand(test: &str, subjects: &[(Need, &'static str)]) -> Vec<&'static str> {
    let is_ready = |(need, subject): &&(Need, &str)| !lacks(&format!("{test} ({subject})"), *need);
    subjects.iter().filter(is_ready).map(|(_, subject)| *subject).collect()
}

/// Each kind of subject whose containers can have limits.
pub const LIMITED: [(Need, &str); 9] = [
    (Need::Root, "bare"),
    (Need::Root, "floor"),
    (Need::Runc, "runc"),
    (Need::Crun, "crun"),
    (Need::Docker, "docker:net=none"),
    (Need::Docker, "docker:net=none,client=api"),
    (Need::Podman, "podman:net=none"),
    (Need::Podman, "podman:net=none,client=api"),
    (Need::Containerd, "containerd"),
];

/// Options for the subjects with these keys added.
pub fn with(subjects: &[&str], keys: &str) -> String {
    let one = |subject: &&str| format!("-s {subject}{}{keys}", if subject.contains(':') { ',' } else { ':' });
    subjects.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// Prints a skip; the test returns right after. Panics if the need is required.
pub fn skip(test: &str, need: Need, reason: &str) {
    let reason = reason.replace('\n', " ");
    let required = std::env::var("DUNNAGE_TEST_REQUIRE").unwrap_or_default();
    let (need, line) = (need.name(), format!("skipped: {test}: {}: {reason}\n", need.name()));
    assert!(!required.split(',').any(|name| name == need), "`{need}` is required here: {reason}");
    tell(&line);
}

/// Says something that belongs into the output of the whole suite, though the test passes.
pub fn note(what: &str) {
    tell(&format!("note: {what}\n"));
}

fn tell(line: &str) {
    eprint!("{line}");
    if let Some(path) = std::env::var_os("DUNNAGE_TEST_SKIPS") {
        let file = OpenOptions::new().append(true).create(true).open(path);
        // One write: threads share the file.
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the list of skips");
    }
}

/// Waits until no other test, in this process or another, has this one's turn, and keeps it until the value is dropped.
pub fn turn(of: &str) -> fs::File {
    let user = fs::metadata("/proc/self").map_or(0, |facts| facts.uid());
    let path = std::env::temp_dir().join(format!("dunnage-tests-{of}-{user}.lock"));
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
    let file = file.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    file.lock().expect("a lock");
    file
}

/// A port of the host that nothing uses, and that is never chosen automatically: each process begins to look elsewhere.
pub fn free_port() -> u16 {
    let first = 10_000 + (std::process::id() % 9_000) as u16;
    let is_free = |port: &u16| std::net::TcpListener::bind(("0.0.0.0", *port)).is_ok();
    (first..first + 1_000).find(is_free).expect("a free port")
}

thread_local! {
    static SWEEPS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// The turn to sweep, which this thread may have already. A sweep also removes what a killed run of another test left, so that
/// one takes it before its kill.
pub struct Sweeps(Option<fs::File>);

impl Sweeps {
    pub fn begin() -> Sweeps {
        Sweeps((!SWEEPS.replace(true)).then(|| turn("sweep")))
    }
}

impl Drop for Sweeps {
    fn drop(&mut self) {
        if self.0.is_some() {
            SWEEPS.set(false);
        }
    }
}

/// `benchstat` in the directories of Go's tools, or on the path. It prints no version.
pub fn benchstat() -> Result<PathBuf, String> {
    let variable =
        |name: &str, below: &str| std::env::var_os(name).map(|value| PathBuf::from(value).join(below));
    let own = [variable("GOBIN", ""), variable("GOPATH", "bin"), variable("HOME", "go/bin")];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = own.into_iter().flatten().chain(std::env::split_paths(&path));
    let found = places.find(|place| place.join("benchstat").is_file());
    found.map(|place| place.join("benchstat")).ok_or(
        "neither in Go's directories nor on the path; `go install golang.org/x/perf/cmd/benchstat@latest`"
            .to_owned(),
    )
}

/// Where `cargo xtask test` puts axe-core, from the root of the repository.
pub const AXE: &str = "target/axe/node_modules/axe-core/axe.min.js";

fn axe_ready() -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(AXE);
    fs::metadata(path)
        .map(drop)
        .map_err(|error| format!("{AXE}: {error}; `cargo xtask test` puts it there with npm"))
}

pub fn docker_ready() -> Result<(), String> {
    words("docker", &["version", "--format", "{{.Server.Version}}"]).map(drop)
}

pub fn docker_knows(runtime: &str) -> Result<(), String> {
    docker_ready()?;
    let known = words("docker", &["info", "--format", "{{json .Runtimes}}"])?;
    let found = known.contains(&format!("\"{runtime}\""));
    found.then_some(()).ok_or(format!("the docker daemon does not know {runtime}"))
}

pub fn podman_ready() -> Result<(), String> {
    words("podman", &["info"]).map(drop)
}

/// Podman has known it since 4.4, and its package does not bring it everywhere.
pub fn pasta_ready() -> Result<(), String> {
    words("pasta", &["--version"])?;
    let version = words("podman", &["version", "--format", "{{.Client.Version}}"])?;
    let mut parts = version.trim().split('.').map_while(|part| part.parse::<u32>().ok());
    let version_is = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    (version_is >= (4, 4)).then_some(()).ok_or(format!("podman {} does not know it", version.trim()))
}

/// Where containerd may listen: the system's own socket, or that of one that dockerd started.
pub const CONTAINERD_SOCKETS: [&str; 2] =
    ["/run/containerd/containerd.sock", "/run/docker/containerd/containerd.sock"];

/// `ctr` waits ten seconds on a socket without a listener, so that is checked first.
pub fn containerd_ready() -> Result<(), String> {
    words("ctr", &["--version"])?;
    let answers = |socket: &&str| UnixStream::connect(socket).is_ok();
    let socket = CONTAINERD_SOCKETS.into_iter().find(answers).ok_or("no socket of containerd answers")?;
    words("ctr", &["--address", socket, "version"]).map(drop)
}

pub fn runtime_ready(runtime: &str) -> Result<(), String> {
    words(runtime, &["--version"])?;
    let left = fs::read_to_string("/sys/fs/cgroup/unified/cgroup.controllers").unwrap_or_default();
    if runtime == "crun" && !left.trim().is_empty() {
        return Err(format!("crun refuses a hybrid cgroup host with `{}` on v2", left.trim()));
    }
    Ok(())
}

pub fn root_ready() -> Result<(), String> {
    let owner = fs::metadata("/proc/self").map_err(|error| error.to_string())?.uid();
    (owner == 0).then_some(()).ok_or("not root".to_owned())
}

/// Makes and removes a cgroup, in the version 2 hierarchy or in one of version 1.
pub fn cgroup_ready() -> Result<(), String> {
    let root = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/memory"]
        .map(Path::new)
        .into_iter()
        .find(|root| root.join("cgroup.procs").exists())
        .ok_or("no cgroup hierarchy is mounted")?;
    // One name per process and thread: tests run in parallel.
    let thread = std::thread::current().id();
    let ours = root.join(format!("dunnage-test-{}-{thread:?}", std::process::id()));
    fs::create_dir(&ours)
        .and_then(|()| fs::remove_dir(&ours))
        .map_err(|error| format!("{}: {error}", ours.display()))
}

/// Standard output of a command, or the last line of its error.
fn words(program: &str, args: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program}: {}", complaint.trim().lines().last().unwrap_or("failed without words")))
}

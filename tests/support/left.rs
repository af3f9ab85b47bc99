//! Remains of a run on the machine, found independently of the program.
#![allow(dead_code, reason = "no test executable uses all of it")]

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Need, skip};

/// Everything that contains this run's id: containers, mounts, addresses, cgroups, processes, runtimes' states.
pub fn of_run(run: &str) -> Vec<String> {
    let name = format!("dunnage-{run}-");
    let mut left: Vec<String> = ENGINES.into_iter().flat_map(|engine| in_engine(engine, run)).collect();
    for socket in containerd::sockets() {
        left.extend(containerd::holds(socket).into_iter().filter(|line| line.contains(&name)));
    }
    and_outside(left, run)
}

/// The same of a run that has containers in no engines but these: for looks that are many, since each asks every engine.
pub fn of_run_in(engines: &[&str], run: &str) -> Vec<String> {
    let asked = ENGINES.into_iter().filter(|(name, _)| engines.contains(name));
    and_outside(asked.flat_map(|engine| in_engine(engine, run)).collect(), run)
}

/// The containers of a run that this engine has.
pub fn in_engine((engine, need): (&str, Need), run: &str) -> Vec<String> {
    let label = format!("label=dunnage.run={run}");
    let listed = listed((engine, need), &["ps", "--all", "--filter", &label, "--format", "{{.Names}}"]);
    listed.lines().map(|line| format!("{engine} container {line}")).collect()
}

/// What engines have of a run, and what there is of it outside of engines. If podman has none of its containers, their monitors get the
/// time that they need to end.
pub fn and_outside(inside: Vec<String>, run: &str) -> Vec<String> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let outside = outside_engines(run);
        let is_monitor =
            |line: &String| line.starts_with("process ") && line.contains("conmon --api-version");
        let ends = inside.is_empty() && !outside.is_empty() && outside.iter().all(is_monitor);
        if !ends || Instant::now() > deadline {
            return [inside, outside].concat();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn outside_engines(run: &str) -> Vec<String> {
    let name = format!("dunnage-{run}-");
    let mut left = Vec::new();
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("our mounts");
    let ours = mounts.lines().filter(|line| line.contains(&name) || line.contains(&format!("runs/{run}")));
    left.extend(ours.map(|line| format!("mount {line}")));
    let addresses = said("ip", &["-oneline", "address", "show", "dev", "lo"]);
    let ours = addresses.lines().filter(|line| line.contains(&format!("lo:{run}")));
    left.extend(ours.map(|line| format!("address {line}")));
    left.extend(processes(&name));
    cgroups(Path::new("/sys/fs/cgroup"), &name, &mut left);
    for states in ["/run/crun", "/run/runc", "/run/youki", "/run/runsc", "/run/netns", containerd::STATES] {
        let entries = fs::read_dir(states).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.path().display().to_string());
        left.extend(names.filter(|path| path.contains(&name)));
    }
    left.extend(containerd::pipes(&name));
    left
}

/// The content of dunnage's namespace in containerd.
pub mod containerd {
    use std::fs;
    use std::os::unix::net::UnixStream;

    use super::said;

    /// Where its runtime keeps the states of dunnage's containers.
    pub const STATES: &str = "/run/containerd/runc/dunnage";

    /// The sockets that accept connections; none without `ctr`.
    pub fn sockets() -> Vec<&'static str> {
        let all = ["/run/containerd/containerd.sock", "/run/docker/containerd/containerd.sock"];
        all.into_iter().filter(|socket| UnixStream::connect(socket).is_ok()).collect()
    }

    /// What `ctr` reports about dunnage's namespace.
    pub fn asked(socket: &str, words: &[&str]) -> String {
        said("ctr", &[&["--address", socket, "--namespace", "dunnage"], words].concat())
    }

    /// Whether the namespace exists.
    pub fn has_namespace(socket: &str) -> bool {
        asked(socket, &["namespaces", "ls", "--quiet"]).lines().any(|name| name == "dunnage")
    }

    /// Containers, tasks, snapshots and leases, one per line; asks nothing if that would make the namespace.
    pub fn holds(socket: &str) -> Vec<String> {
        if !has_namespace(socket) {
            return Vec::new();
        }
        let lists: [&[&str]; 3] =
            [&["containers", "ls", "--quiet"], &["tasks", "ls", "--quiet"], &["leases", "ls", "--quiet"]];
        let mut lists = lists.map(<[&str]>::to_vec).to_vec();
        let snapshotters = snapshotters(socket);
        lists.extend(snapshotters.iter().map(|name| vec!["snapshots", "--snapshotter", name, "ls"]));
        let told = lists.iter().map(|words| {
            let lines = asked(socket, words);
            lines.lines().map(|line| format!("containerd {}: {line}", words[0])).collect::<Vec<_>>()
        });
        told.flatten().collect()
    }

    /// The snapshotters that serve.
    fn snapshotters(socket: &str) -> Vec<String> {
        let plugins = asked(socket, &["plugins", "ls"]);
        let fields = plugins.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let serves = |one: &Vec<&str>| {
            one.first() == Some(&"io.containerd.snapshotter.v1") && one.last() == Some(&"ok")
        };
        let names: Vec<String> = fields.filter(serves).map(|one| one[1].to_owned()).collect();
        assert!(!names.is_empty(), "{plugins}");
        names
    }

    /// Pipes of containers with this in their names.
    pub fn pipes(name: &str) -> Vec<String> {
        let directories = fs::read_dir("/run/containerd/fifo").into_iter().flatten().flatten();
        let files = directories.filter_map(|entry| fs::read_dir(entry.path()).ok()).flatten().flatten();
        let paths = files.map(|file| file.path().display().to_string());
        paths.filter(|path| path.contains(name)).map(|path| format!("pipe {path}")).collect()
    }
}

/// Those with this in their arguments that were not killed: a busy machine takes its time to end one that was.
fn processes(name: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let lines = entries.filter_map(|entry| {
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        (line.contains(name) && !is_dying(&entry.path())).then(|| format!("process {line}"))
    });
    lines.collect()
}

/// Whether this process has SIGKILL pending, or exits (`PF_EXITING` of linux/sched.h), or is gone.
fn is_dying(process: &Path) -> bool {
    let Ok(status) = fs::read_to_string(process.join("status")) else { return true };
    let pending =
        status.lines().filter_map(|line| line.strip_prefix("SigPnd:").or(line.strip_prefix("ShdPnd:")));
    let mut pending =
        pending.map(|signals| u64::from_str_radix(signals.trim(), 16).expect("a set of signals"));
    if pending.any(|signals| signals & 1 << (9 - 1) != 0) {
        return true;
    }
    let Ok(stat) = fs::read_to_string(process.join("stat")) else { return true };
    let (_, fields) = stat.rsplit_once(") ").expect("a name in parentheses");
    let flags: u64 = fields.split(' ').nth(6).expect("flags").parse().expect("a number");
    flags & 4 != 0
}

fn cgroups(directory: &Path, name: &str, left: &mut Vec<String>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if entry.file_name().to_string_lossy().contains(name) {
                left.push(format!("cgroup {}", entry.path().display()));
            }
            cgroups(&entry.path(), name, left);
        }
    }
}

/// The engines that may hold something of a run.
pub const ENGINES: [(&str, Need); 2] = [("docker", Need::Docker), ("podman", Need::Podman)];

/// Standard output of a command; empty where it is not installed.
pub fn said(program: &str, arguments: &[&str]) -> String {
    answer(program, arguments).unwrap_or_else(|words| panic!("{program} {arguments:?}: {words}"))
}

/// What an engine lists; empty where it is not installed. If it answers nothing at all, that is a skip.
pub fn listed((engine, need): (&str, Need), arguments: &[&str]) -> String {
    let mut words = String::new();
    // Podman fails if something of another test goes while it is listed.
    for _ in 0..5 {
        words = match answer(engine, arguments) {
            Ok(listed) => return listed,
            Err(words) => words,
        };
        if let Err(reason) = need.ready() {
            skip(std::thread::current().name().unwrap_or("what is left"), need, &reason);
            return String::new();
        }
    }
    panic!("{engine} {arguments:?}: {words}")
}

/// Standard output of a command, or what it said when it failed.
fn answer(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = match Command::new(program).args(arguments).stdin(Stdio::null()).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(String::new()),
        output => output.map_err(|error| error.to_string())?,
    };
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// Runs a command that removes something after a test, and may find nothing.
pub fn tried(program: &str, arguments: &[&str]) {
    let _ = Command::new(program).args(arguments).stdin(Stdio::null()).output();
}

/// Things that look like dunnage's and are not, removed at the end.
pub struct Foreign {
    image: String,
    container: String,
    engines: Vec<&'static str>,
    cgroups: Vec<PathBuf>,
}

impl Foreign {
    pub fn plant(engines: Vec<&'static str>) -> Foreign {
        let image = format!("localhost/dunnage-foreign:{}", std::process::id());
        let container = format!("dunnage-deadbeef-{}x", std::process::id());
        for engine in &engines {
            let script = format!(
                "tar -cf - --files-from /dev/null | {engine} import - {image} && {engine} create --name {container} {image} /nothing"
            );
            let done = Command::new("sh").args(["-c", &script]).output().expect("sh is there");
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        }
        let places = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"].map(Path::new).into_iter();
        let places = places.filter(|root| root.join("cgroup.procs").exists());
        let cgroups = places.map(|root| root.join(format!("dunnage-foreign-{}", std::process::id())));
        let cgroups = cgroups.filter(|path| fs::create_dir(path).is_ok());
        Foreign { image, container, engines, cgroups: cgroups.collect() }
    }

    /// Which of them are missing.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for engine in &self.engines {
            let names = said(engine, &["ps", "--all", "--format", "{{.Names}}"]);
            if !names.lines().any(|name| name == self.container) {
                missing.push(format!("{} of {engine}", self.container));
            }
        }
        missing
            .extend(self.cgroups.iter().filter(|path| !path.exists()).map(|path| path.display().to_string()));
        missing
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        for engine in &self.engines {
            tried(engine, &["rm", "--force", &self.container]);
            tried(engine, &["rmi", &self.image]);
        }
        for path in &self.cgroups {
            let _ = fs::remove_dir(path);
        }
    }
}

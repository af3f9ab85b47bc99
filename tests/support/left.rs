//! Remains of a run on the machine, found independently of the program.
#![allow(dead_code, reason = "no test executable uses all of it")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Everything that contains this run's id: containers, mounts, addresses, cgroups, processes, runtimes' states.
pub fn of_run(run: &str) -> Vec<String> {
    let name = format!("dunnage-{run}-");
    let mut left = Vec::new();
    let label = format!("label=dunnage.run={run}");
    for engine in ["docker", "podman"] {
        let listed = said(engine, &["ps", "--all", "--filter", &label, "--format", "{{.Names}}"]);
        left.extend(listed.lines().map(|line| format!("{engine} container {line}")));
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("our mounts");
    let ours = mounts.lines().filter(|line| line.contains(&name) || line.contains(&format!("runs/{run}")));
    left.extend(ours.map(|line| format!("mount {line}")));
    let addresses = said("ip", &["-oneline", "address", "show", "dev", "lo"]);
    let ours = addresses.lines().filter(|line| line.contains(&format!("lo:{run}")));
    left.extend(ours.map(|line| format!("address {line}")));
    left.extend(processes(&name));
    cgroups(Path::new("/sys/fs/cgroup"), &name, &mut left);
    for socket in containerd::sockets() {
        left.extend(containerd::holds(socket).into_iter().filter(|line| line.contains(&name)));
    }
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
        let lists: [&[&str]; 6] = [
            &["containers", "ls", "--quiet"],
            &["tasks", "ls", "--quiet"],
            &["snapshots", "--snapshotter", "overlayfs", "ls"],
            &["snapshots", "--snapshotter", "native", "ls"],
            &["snapshots", "--snapshotter", "erofs", "ls"],
            &["leases", "ls", "--quiet"],
        ];
        let told = lists.map(|words| {
            let lines = asked(socket, words);
            lines.lines().map(|line| format!("containerd {}: {line}", words[0])).collect::<Vec<_>>()
        });
        told.into_iter().flatten().collect()
    }

    /// Pipes of containers with this in their names.
    pub fn pipes(name: &str) -> Vec<String> {
        let directories = fs::read_dir("/run/containerd/fifo").into_iter().flatten().flatten();
        let files = directories.filter_map(|entry| fs::read_dir(entry.path()).ok()).flatten().flatten();
        let paths = files.map(|file| file.path().display().to_string());
        paths.filter(|path| path.contains(name)).map(|path| format!("pipe {path}")).collect()
    }
}

fn processes(name: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(name)).map(|line| format!("process {line}")).collect()
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

/// Standard output of a command; empty where it fails or is not installed.
pub fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    output.map_or_else(|_| String::new(), |output| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Things that look like dunnage's and are not, removed at the end.
pub struct Foreign {
    image: String,
    container: String,
    engines: Vec<&'static str>,
    cgroups: Vec<&'static Path>,
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
        let places = ["/sys/fs/cgroup/pids/dunnage-foreign", "/sys/fs/cgroup/dunnage-foreign"];
        let cgroups = places.map(Path::new).into_iter().filter(|path| {
            path.parent().is_some_and(|root| root.join("cgroup.procs").exists())
                && fs::create_dir(path).is_ok()
        });
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
            said(engine, &["rm", "--force", &self.container]);
            said(engine, &["rmi", &self.image]);
        }
        for path in &self.cgroups {
            let _ = fs::remove_dir(path);
        }
    }
}

//! A container with docker's default profile, for the duration of a test.

use crate::support::{Need, lacks, skip};
use libc::{pid_t, sock_filter};
use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A running container of one static program that sleeps. Dropping it removes it and its image.
pub struct Container {
    name: String,
    image: String,
    id: String,
    pid: pid_t,
}

impl Container {
    /// Starts a container under this runtime; `None` if the test must return, which is reported.
    pub fn start(test: &str, need: Need, runtime: &str) -> Option<Self> {
        if lacks(test, Need::Root) || lacks(test, need) {
            return None;
        }
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let options = docker(&["info", "--format", "{{.SecurityOptions}}"]).unwrap();
        if !options.contains("name=seccomp,profile=default") && !options.contains("profile=builtin") {
            skip(test, need, "docker runs without its default seccomp profile");
            return None;
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("dunnage-seccomp-test-{}-{number}", std::process::id());
        // The guard comes first: it removes what was made, also after an early error.
        let mut container = Container { image: format!("{name}:latest"), name, id: String::new(), pid: 0 };
        import(&container.image).unwrap();
        container.id = docker(&[
            "run",
            "--detach",
            "--network=none",
            "--runtime",
            runtime,
            "--name",
            &container.name,
            &container.image,
            "/sleep",
        ])
        .unwrap();
        let pid = docker(&["inspect", "--format", "{{.State.Pid}}", &container.id]).unwrap();
        container.pid = pid.parse().unwrap_or_else(|_| panic!("docker says the pid is `{pid}`"));
        Some(container)
    }

    /// The filters that the kernel holds for its process.
    pub fn filters(&self) -> Vec<Vec<sock_filter>> {
        crate::seccomp::dump::filters(self.pid).unwrap()
    }

    /// Docker's `config.json` in the OCI bundle.
    pub fn config(&self) -> Value {
        let roots = ["/run/docker/containerd/daemon", "/run/containerd"];
        let tasks = "io.containerd.runtime.v2.task/moby";
        let path = |root| PathBuf::from(format!("{root}/{tasks}/{}/config.json", self.id));
        let path = roots.into_iter().map(path).find(|path| path.exists()).expect("docker's bundle");
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        for arguments in [["rm", "--force", &self.name], ["rmi", "--force", &self.image]] {
            if let Err(error) = docker(&arguments) {
                eprintln!("left behind: {}: {error}", arguments[2]);
            }
        }
    }
}

fn docker(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("docker").args(arguments).output();
    let output = output.map_err(|error| format!("cannot run `docker`: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        let error = String::from_utf8_lossy(&output.stderr);
        Err(format!("`docker {}`: {}", arguments.join(" "), error.trim()))
    }
}

fn import(image: &str) -> Result<(), String> {
    let mut tar = tar::Builder::new(Vec::new());
    let program = sleeper();
    let mut header = tar::Header::new_gnu();
    header.set_size(program.len() as u64);
    header.set_mode(0o755);
    tar.append_data(&mut header, "sleep", &program[..]).map_err(|error| error.to_string())?;
    let tar = tar.into_inner().map_err(|error| error.to_string())?;
    let mut command = Command::new("docker");
    command.args(["import", "-", image]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut import = command.spawn().map_err(|error| error.to_string())?;
    let stdin = import.stdin.take().expect("piped");
    let written = { stdin }.write_all(&tar);
    let status = import.wait().map_err(|error| error.to_string())?;
    written.map_err(|error| format!("`docker import`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`docker import`: {status}")) }
}

/// A static x86_64 program that only calls `pause`: an ELF header, one program header, code.
fn sleeper() -> Vec<u8> {
    const ADDRESS: u64 = 0x40_0000;
    const HEADERS: u64 = 64 + 56;
    let code = [
        0xb8, 34, 0, 0, 0, // mov eax, SYS_pause
        0x0f, 0x05, // syscall
        0xeb, 0xf7, // jmp back to the start
    ];
    let size = HEADERS + code.len() as u64;
    let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
    elf.resize(16, 0);
    elf.extend([2u16, 62].map(u16::to_le_bytes).concat()); // executable, x86_64
    elf.extend(1u32.to_le_bytes()); // version
    elf.extend([ADDRESS + HEADERS, 64, 0].map(u64::to_le_bytes).concat()); // entry, program headers
    elf.extend(0u32.to_le_bytes()); // flags
    elf.extend([64u16, 56, 1, 64, 0, 0].map(u16::to_le_bytes).concat()); // sizes and counts
    elf.extend([1u32, 5].map(u32::to_le_bytes).concat()); // load, readable and executable
    elf.extend([0, ADDRESS, ADDRESS, size, size, 4096].map(u64::to_le_bytes).concat());
    elf.extend(code);
    elf
}

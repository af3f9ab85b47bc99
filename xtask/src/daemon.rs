//! Finds a docker daemon that knows crun, or starts and ends one.
//!
//! A daemon that is already running is only queried, never changed, stopped or restarted.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::machine::find_executable;

const SOCKET: &str = "/var/run/docker.sock";
const STARTS_WITHIN: Duration = Duration::from_secs(60);
const ENDS_WITHIN: Duration = Duration::from_secs(60);
const LOOKS_AGAIN: Duration = Duration::from_millis(100);

/// Starts the daemon in the background, prints its pid, and ends it when standard input closes: on request, and also when xtask
/// is interrupted or killed.
const GUARD: &str = r#""$@" >&2 & daemon=$!; echo $daemon; exec >&2
read -r nothing; kill -TERM $daemon 2>/dev/null; wait $daemon"#;

/// The docker daemon for the tests.
pub struct Docker {
    /// Whether `docker run --runtime crun` is possible.
    pub knows_crun: bool,
    answers: bool,
    started: Option<Started>,
}

struct Started {
    guard: Child,
    pid: u32,
}

/// Uses a running daemon, or starts one. A failure is only reported; the tests that need the daemon then skip with that
/// reason.
pub fn ensure(scratch: &Path) -> Docker {
    let found = Docker::look();
    if found.answers {
        return found;
    }
    if let Some(host) = std::env::var_os("DOCKER_HOST") {
        eprintln!("xtask: warning: no daemon answers at DOCKER_HOST={}", host.display());
        return found;
    }
    let log = scratch.join("dockerd.log");
    match start(&log) {
        Ok(started) => {
            eprintln!("xtask: started dockerd, pid {}, log {}", started.pid, log.display());
            Docker { started: Some(started), ..Docker::look() }
        }
        Err(error) => {
            eprintln!("xtask: warning: no docker daemon: {error:#}");
            found
        }
    }
}

impl Docker {
    /// Queries a running daemon, and explains how to register crun with it.
    pub fn look() -> Docker {
        let runtimes = runtimes();
        let answers = runtimes.is_ok();
        let knows_crun = runtimes.is_ok_and(|json| json.contains("\"crun\""));
        if answers && !knows_crun {
            eprintln!("xtask: the docker daemon does not know crun, so docker+crun tests will be skipped");
            eprintln!(
                "hint: add `{{\"runtimes\": {{\"crun\": {{\"path\": \"/usr/bin/crun\"}}}}}}` into \
                 `/etc/docker/daemon.json` and reload the daemon (SIGHUP)"
            );
        }
        Docker { knows_crun, answers, started: None }
    }

    /// Ends the daemon and its containerd, if xtask started them.
    pub fn end(self) {
        let Some(Started { mut guard, pid }) = self.started else {
            return;
        };
        drop(guard.stdin.take());
        let ended = within(ENDS_WITHIN, || Ok(guard.try_wait()?.is_some()));
        match ended {
            Ok(true) => eprintln!("xtask: ended dockerd, pid {pid}"),
            Ok(false) | Err(_) => eprintln!("xtask: warning: dockerd, pid {pid}, did not end"),
        }
    }
}

/// The daemon's runtimes, as JSON.
fn runtimes() -> Result<String> {
    let output = Command::new("timeout")
        .args(["20", "docker", "info", "--format", "{{json .Runtimes}}"])
        .output()
        .context("cannot run `docker info`")?;
    if !output.status.success() {
        bail!("`docker info`: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let json = String::from_utf8_lossy(&output.stdout).into_owned();
    // Some clients exit with 0 and print null without a daemon.
    if !json.contains('{') {
        bail!("`docker info` reported no runtimes");
    }
    Ok(json)
}

fn start(log: &Path) -> Result<Started> {
    let dockerd = find_executable("dockerd").context("`dockerd` is not installed")?;
    if let Some(pid) = other_dockerd() {
        bail!("a dockerd, pid {pid}, is running in this network namespace but does not answer `docker info`");
    }
    let output = File::create(log).with_context(|| format!("cannot create {}", log.display()))?;
    // Its own session: Ctrl-C at the terminal reaches only xtask and the tests, and the guard ends the daemon when xtask is
    // gone.
    let mut guard = Command::new("setsid")
        .args(["sh", "-c", GUARD, "guard"])
        .arg(dockerd)
        .args(crun_flags())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(output)
        .spawn()
        .context("cannot run `setsid sh`")?;
    let pid = read_pid(&mut guard).context("the guard of dockerd printed no pid")?;
    // From here on, closing the guard's standard input ends the daemon.
    let answers = within(STARTS_WITHIN, || {
        if has_ended(pid) {
            bail!("dockerd exited immediately");
        }
        Ok(answers(SOCKET))
    });
    match answers {
        Ok(true) => Ok(Started { guard, pid }),
        Ok(false) => bail!("dockerd does not answer after {STARTS_WITHIN:?}\n{}", tail(log)),
        Err(error) => bail!("{error:#}\n{}", tail(log)),
    }
}

/// A dockerd in this network namespace, with any socket: two of them would use the same bridge and packet filter.
fn other_dockerd() -> Option<String> {
    let network = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/net")).ok();
    let ours = network("self")?;
    fs::read_dir("/proc")
        .ok()?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|pid| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "dockerd\n"))
        .find(|pid| network(pid).as_ref() == Some(&ours))
}

fn read_pid(guard: &mut Child) -> Result<u32> {
    let mut line = String::new();
    let stdout = guard.stdout.take().context("no standard output")?;
    BufReader::new(stdout).read_line(&mut line)?;
    Ok(line.trim().parse()?)
}

fn crun_flags() -> Vec<String> {
    // dockerd refuses a setting that is both in its file and in its arguments.
    let file = fs::read_to_string("/etc/docker/daemon.json").unwrap_or_default();
    match find_executable("crun") {
        Some(crun) if !file.contains("\"runtimes\"") => {
            vec!["--add-runtime".to_owned(), format!("crun={}", crun.display())]
        }
        _ => Vec::new(),
    }
}

/// Whether a process has ended: its state follows the name in parentheses, and without the process the file is missing.
fn has_ended(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .map_or(true, |stat| stat.rsplit(')').next().is_none_or(|rest| rest.starts_with(" Z")))
}

/// Sends a request, because the socket exists before the daemon serves it.
fn answers(socket: &str) -> bool {
    let ping = || -> std::io::Result<bool> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"GET /_ping HTTP/1.0\r\n\r\n")?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer)?;
        Ok(answer.ends_with(b" 200"))
    };
    ping().unwrap_or(false)
}

/// Repeats a check until it succeeds or the time is up.
fn within(limit: Duration, mut done: impl FnMut() -> Result<bool>) -> Result<bool> {
    let start = Instant::now();
    loop {
        if done()? {
            return Ok(true);
        }
        if start.elapsed() > limit {
            return Ok(false);
        }
        sleep(LOOKS_AGAIN);
    }
}

fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(5)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guard_ends_its_process_when_standard_input_closes() {
        let mut guard = Command::new("setsid")
            .args(["sh", "-c", GUARD, "guard", "sleep", "1000"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh exists");
        let pid = read_pid(&mut guard).expect("the guard prints a pid");
        assert!(!has_ended(pid));
        Docker { knows_crun: false, answers: true, started: Some(Started { guard, pid }) }.end();
        assert!(has_ended(pid));
    }

    #[test]
    fn a_file_that_nobody_listens_at_does_not_answer() {
        assert!(!answers("/proc/self/exe"));
    }
}

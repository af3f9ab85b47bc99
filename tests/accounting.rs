//! CPU accounting compared with the kernel's own figures: real processes, threads, daemons, engines.
//!
//! Needs perf events on all CPUs. One test at a time may run on the machine: each looks at all of it, and two
//! cores are few.

use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

use dunnage::sys::accounting::{Client, LaunchCpu, Listener, ProcessAccount, Tree};
use dunnage::sys::clock;
use dunnage::units::Nanos;

use crate::support::{Need, itself, lacks, skip};

/// `None` if the test must return, which is reported.
fn listener(test: &str) -> Option<Listener> {
    (!lacks(test, Need::PerfEvents)).then(|| Listener::open().expect("perf events"))
}

/// The resource usage of a child and of everything that it waited for, from `wait4`.
#[derive(Debug)]
struct Rusage {
    cpu: Nanos,
    /// The number of its voluntary and involuntary context switches.
    switches: i64,
}

/// Runs `command` in a window: the CPU time of its tree, and the result of `wait4`.
#[expect(clippy::zombie_processes, reason = "`wait4` reaps it, which std cannot know")]
fn launch(listener: &Listener, daemons: &[i32], command: &mut Command) -> (LaunchCpu, Rusage) {
    let window = listener.begin(daemons);
    let child = command.stdin(Stdio::null()).spawn().unwrap();
    let pid = child.id() as i32;
    let mut status = 0;
    // SAFETY: rusage is plain data, for which zero is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both out-parameters are valid; the pid is a child that only this test waits for.
    assert_eq!(unsafe { libc::wait4(pid, &mut status, 0, &mut usage) }, pid);
    assert_eq!(status, 0, "{command:?}");
    let micros = |time: libc::timeval| time.tv_sec * 1_000_000 + time.tv_usec;
    let cpu = Nanos((micros(usage.ru_utime) + micros(usage.ru_stime)) * 1000);
    let rusage = Rusage { cpu, switches: usage.ru_nvcsw + usage.ru_nivcsw };
    (window.so_far(Client::Child(pid), &[]).unwrap(), rusage)
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

/// Within 2 % or 0.1 ms; but the kernel charges a task from its wake-up (the rest of the interrupt, the exit
/// from idle), and dunnage from its switch; until then dunnage charges the interrupted task.
fn agree(ours: Nanos, kernel: &Rusage) -> bool {
    let tolerance = (kernel.cpu.0 / 50).max(100_000) + kernel.switches * 30_000;
    (ours.0 - kernel.cpu.0).abs() <= tolerance
}

/// Runs `command` until the sum of its tree agrees with `wait4`, at most five times: a hypervisor may take
/// the CPU away meanwhile, which the kernel does not charge and dunnage does; a wrong sum is wrong each time.
fn agreeing(listener: &Listener, command: &mut Command) -> LaunchCpu {
    let agreed = (0..5).find_map(|_| {
        let (cpu, rusage) = launch(listener, &[], command);
        eprintln!("{command:?}: tree {:?}, {rusage:?}", cpu.client.cpu());
        agree(cpu.client.cpu(), &rusage).then_some(cpu)
    });
    agreed.expect("the sum of the tree is what `wait4` says")
}

const BUSY: &str = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";

#[test]
fn a_busy_child_costs_what_wait4_says() {
    let Some(listener) = listener("a_busy_child_costs_what_wait4_says") else {
        return;
    };
    for script in [BUSY, "exit 0", "for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; done"] {
        agreeing(&listener, &mut shell(script));
    }
}

#[test]
fn what_was_executed_is_known_by_its_file() {
    let Some(listener) = listener("what_was_executed_is_known_by_its_file") else {
        return;
    };
    let (cpu, _) = launch(&listener, &[], &mut shell("/bin/true; exit 0"));
    for program in ["/bin/sh", "/bin/true"] {
        let file = fs::metadata(program).unwrap();
        assert!(cpu.client.ran(file.dev(), file.ino()), "{program}: {:?}", cpu.client);
    }
    let file = fs::metadata("/bin/false").unwrap();
    assert!(!cpu.client.ran(file.dev(), file.ino()));
    assert_eq!(cpu.client.processes.len(), 2);
}

#[test]
fn a_daemonised_grandchild_counts() {
    let Some(listener) = listener("a_daemonised_grandchild_counts") else {
        return;
    };
    // The client returns only after the grandchild, which has another parent by then, has closed the pipe.
    let directory = tempfile::tempdir().unwrap();
    let script = format!(
        "mkfifo {pipe}; (setsid sh -c '{BUSY}; exec sleep 0.3' >{pipe} &) ; cat {pipe}",
        pipe = directory.path().join("pipe").display()
    );
    let (cpu, rusage) = launch(&listener, &[], &mut shell(&script));
    let daemon = cpu.client.processes.iter().find(|process| executed(process, "sleep"));
    let daemon = daemon.expect("the grandchild is in the tree");
    assert!(daemon.cpu > Nanos(10_000_000), "{daemon:?}");
    assert!(cpu.client.cpu().0 - rusage.cpu.0 > daemon.cpu.0 * 9 / 10, "wait4 does not see it, we do");
}

#[test]
fn what_is_still_alive_is_counted_with_what_it_executed() {
    let Some(listener) = listener("what_is_still_alive_is_counted_with_what_it_executed") else {
        return;
    };
    let (cpu, _) = launch(&listener, &[], &mut shell("sleep 0.7 >/dev/null 2>&1 & sleep 0.1"));
    let asleep = cpu.client.processes.iter().filter(|process| executed(process, "sleep"));
    let asleep: Vec<_> = asleep.collect();
    assert_eq!(asleep.len(), 2, "{:?}", cpu.client);
    assert!(asleep.iter().all(|process| process.cpu > Nanos(0)));
}

const THREADS: &str = "DUNNAGE_ACCOUNTING_THREADS";

#[test]
fn short_threads_count() {
    if std::env::var_os(THREADS).is_some() {
        return short_threads();
    }
    let Some(listener) = listener("short_threads_count") else {
        return;
    };
    let said = itself::again().env(THREADS, "").output().unwrap();
    itself::passed(&said);
    let mut command = itself::again();
    command.env(THREADS, "").stdout(Stdio::null());
    let cpu = agreeing(&listener, &mut command).client;
    assert_eq!(cpu.processes.len(), 1);
    assert!(cpu.cpu() > Nanos(SHORT * 200), "{cpu:?}");
}

/// CPU time of each thread in nanoseconds.
const SHORT: i64 = 50_000;

fn short_threads() {
    for _ in 0..200 {
        let thread = std::thread::spawn(|| {
            let begin = clock::thread_cpu();
            while clock::thread_cpu().0 - begin.0 < SHORT {}
        });
        thread.join().unwrap();
    }
}

/// A docker image that holds only the program, which does nothing; removed when dropped.
struct Image(&'static str);

impl Image {
    fn import(test: &str, name: &'static str) -> Option<Image> {
        if lacks(test, Need::Docker) {
            return None;
        }
        let mut archive = tar::Builder::new(Vec::new());
        archive.append_path_with_name(env!("CARGO_BIN_EXE_dunnage"), "helper").unwrap();
        let bytes = archive.into_inner().unwrap();
        let mut import = Command::new("docker")
            .args(["import", "--change", "ENTRYPOINT [\"/helper\",\"probe\",\"none\"]", "-", name])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        import.stdin.take().unwrap().write_all(&bytes).unwrap();
        assert!(import.wait().unwrap().success());
        Some(Image(name))
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = Command::new("docker").args(["rmi", "-f", self.0]).stdout(Stdio::null()).status();
    }
}

/// The processes with exactly this name.
fn named(name: &str) -> Vec<i32> {
    let all =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    all.filter(|pid: &i32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim_end() == name)
    })
    .collect()
}

fn executed(process: &ProcessAccount, name: &str) -> bool {
    let path = process.images.last().and_then(|image| image.path.as_deref());
    path.is_some_and(|path| path.ends_with(&format!("/{name}")))
}

fn print_tree(title: &str, tree: &Tree) {
    eprintln!("{title}: {:.3} ms", tree.cpu().0 as f64 / 1e6);
    for process in &tree.processes {
        let names: Vec<_> = process.images.iter().map(|image| image.path.as_deref().unwrap_or("?")).collect();
        eprintln!("  {}: {:.3} ms, {names:?}", process.pid, process.cpu.0 as f64 / 1e6);
    }
}

#[test]
fn docker_run_shows_the_runtime_and_charges_the_daemons() {
    const TEST: &str = "docker_run_shows_the_runtime_and_charges_the_daemons";
    let Some(listener) = listener(TEST) else {
        return;
    };
    let Some(image) = Image::import(TEST, "dunnage-accounting-test-image") else {
        return;
    };
    let daemons = [named("dockerd"), named("containerd")].concat();
    if daemons.is_empty() {
        return skip(TEST, Need::Docker, "its daemon is not a process of this machine");
    }
    let read_clocks = || -> i64 { daemons.iter().map(|&pid| clock::process_cpu(pid).unwrap().0).sum() };
    let mut docker = Command::new("docker");
    docker.args([
        "run",
        "--rm",
        "--net=none",
        "--log-driver=none",
        "--name=dunnage-accounting-test-run",
        image.0,
    ]);
    // Several times, as in `agreeing`.
    let agreed = (0..5).find_map(|_| {
        let before = read_clocks();
        let (cpu, rusage) = launch(&listener, &daemons, docker.stdout(Stdio::null()));
        let clocks = read_clocks() - before;
        let own = cpu.daemons.processes.iter().filter(|process| daemons.contains(&process.pid));
        let own: i64 = own.map(|process| process.cpu.0).sum();
        print_tree("client", &cpu.client);
        print_tree("daemons", &cpu.daemons);
        eprintln!("wait4 {rusage:?}; the daemons {own}, their own clocks {clocks}");
        // The clocks are read slightly outside the window, and charge wake-ups as `wait4` does.
        let daemons_agree = own > clocks * 4 / 5 && own <= clocks + clocks / 50;
        (agree(cpu.client.cpu(), &rusage) && daemons_agree).then_some((cpu, own))
    });
    let (cpu, own) = agreed.expect("sums are what the kernel says");
    assert!(cpu.daemons.cpu().0 > own, "what they forked counts too");
    let runtimes = ["/usr/bin/runc", "/usr/sbin/runc", "/usr/bin/crun"];
    let files = runtimes.iter().filter_map(|path| fs::metadata(path).ok());
    let files: HashSet<_> = files.map(|file| (file.dev(), file.ino())).collect();
    let ran = files.iter().filter(|file| cpu.daemons.ran(file.0, file.1));
    // Another program may be using the same daemon with the other runtime.
    assert!(ran.count() >= 1, "one of the runtimes was executed");
    assert!(
        cpu.daemons.images().any(|image| image.path.as_deref() == Some("/helper")),
        "and so was the probe"
    );
}

//! Services, on real subjects: one is not ready before it gets ready, one that never does is a failure with
//! its words, and nothing of either is left. The service is the host's Perl, which every container has
//! mounted.

use std::net::TcpListener;
use std::path::PathBuf;

use crate::command::values;
use crate::dunnage::{Dunnage, Ran, finished};
use crate::left;
use crate::support::{Need, lacks};

/// What a container needs to run the host's programs.
const HOST: &str = "--mount /usr:/usr:ro --mount /lib:/lib:ro --mount /lib64:/lib64:ro";
/// How long the service sleeps before it gets ready, in seconds.
const SLEEP: f64 = 0.4;

/// A free port of the host.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A service that sleeps, then listens on this port, sleeps as long again, and then says so; it leaves a
/// child behind.
fn service(port: u16) -> String {
    let lines = format!(
        "$| = 1; fork or sleep 99; select undef, undef, undef, {SLEEP}; \
         $own = IO::Socket::INET->new(Listen => 5, LocalPort => {port}, ReuseAddr => 1) or die $@; \
         select undef, undef, undef, {SLEEP}; print qq(is not\\nis ready, at last\\n); sleep 99"
    );
    format!("/usr/bin/perl -MIO::Socket::INET -e '{lines}'")
}

/// Subjects that run it, of those that are available here.
fn subjects() -> Vec<&'static str> {
    let all = [
        ("crun", Need::Crun),
        ("runc", Need::Runc),
        ("youki", Need::Youki),
        ("docker", Need::Docker),
        ("docker:client=api,tty=true", Need::Docker),
        ("docker:client=api", Need::Docker),
        ("docker:net=none,tty=true", Need::Docker),
        ("podman", Need::Podman),
        ("containerd", Need::Containerd),
    ];
    let ready = all.into_iter().filter(|(_, need)| need.ready().is_ok()).map(|(name, _)| name);
    ["bare", "floor"].into_iter().chain(ready).collect()
}

fn asked(dunnage: &Dunnage, words: &str, cmd: &str, ready: &str) -> Ran {
    finished(dunnage.command(words).args(["--cmd", cmd, "--ready", ready]).output().unwrap())
}

/// Nothing is left of a run with this state directory and this port.
fn nothing_is_left(dunnage: &Dunnage, port: u16) {
    assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new());
    let label = format!("label=dunnage.state={}", dunnage.state().display());
    for engine in ["docker", "podman"] {
        assert_eq!(left::said(engine, &["ps", "--all", "--filter", &label, "-q"]).trim(), "");
    }
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|one| std::fs::read(one.path().join("cmdline")).ok());
    let named = format!("LocalPort => {port}");
    assert!(lines.into_iter().all(|line| !String::from_utf8_lossy(&line).contains(&named)));
}

#[test]
fn a_service_is_ready_no_sooner_than_it_gets_ready() {
    if lacks("a_service_is_ready_no_sooner_than_it_gets_ready", Need::Root) {
        return;
    }
    let port = free_port();
    let dunnage = Dunnage::new();
    let (at_port, in_log) = (format!("port {port}"), "log ^is ready,.*last$".to_owned());
    for (ready, slept, mode, place) in [
        (&at_port, SLEEP, "run", "DIR"),
        (&in_log, 2.0 * SLEEP, "run", "DIR-2"),
        (&in_log, 2.0 * SLEEP, "exec", "DIR-3"),
    ] {
        // An entry reads the same output; a runtime and an engine represent the others.
        let own =
            subjects().into_iter().filter(|name| mode == "run" || ["bare", "crun", "docker"].contains(name));
        let subjects: String = own.map(|name| format!(" -s {name}")).collect();
        let words = format!("run command{subjects} {HOST} --mode {mode} --rounds 1 -o {place}");
        let ran = asked(&dunnage, &words, &service(port), ready);
        assert_eq!(ran.code, 0, "{ran}");
        let found = values(&dunnage, place, "ready");
        assert!(found.len() >= subjects.matches(" -s ").count(), "{found:?}");
        // A shared machine may delay a start; the bound is far away.
        assert!(found.iter().all(|(_, ready)| (slept..slept + 20.0).contains(ready)), "{found:?}");
        let (starts, rests) = (values(&dunnage, place, "start"), values(&dunnage, place, "beyond_start"));
        assert!(rests.iter().all(|(_, rest)| *rest >= slept), "{rests:?}");
        for ((ready, start), rest) in found.iter().zip(&starts).zip(&rests) {
            assert!((ready.1 - start.1 - rest.1).abs() < 1e-6, "{ready:?} {start:?} {rest:?}");
        }
        nothing_is_left(&dunnage, port);
    }
}

#[test]
fn a_service_that_does_not_get_ready_is_a_failure_in_its_words() {
    let test = "a_service_that_does_not_get_ready_is_a_failure_in_its_words";
    if lacks(test, Need::Root) {
        return;
    }
    let port = free_port();
    let dunnage = Dunnage::new();
    let subjects: Vec<_> = subjects().into_iter().filter(|name| !name.contains(',')).collect();
    let named: String = subjects.iter().map(|name| format!(" -s {name}")).collect();
    let words = format!("check command{named} {HOST} --timeout 3");
    let perl = |lines: &str| format!("/usr/bin/perl -e '{lines}; # LocalPort => {port}'");
    let hangs = perl("warn qq(waiting for a disk); fork; sleep 99");
    let ends = perl("warn qq(no data); exit 3");
    let over = perl("print qq(no data\\n)");
    for (cmd, ready, class, told) in [
        (&hangs, format!("port {port}"), "timeout", format!("was not ready (`port {port}`) within 3")),
        (&hangs, "log ^ready".to_owned(), "timeout", "was not ready (`log ^ready`) within 3".to_owned()),
        (&ends, format!("port {port}"), "crash", "ended with exit code 3 before it was ready".to_owned()),
        (&ends, "log ^ready".to_owned(), "crash", "ended with exit code 3 before it was ready".to_owned()),
        (&over, "log ^ready".to_owned(), "crash", "ended with exit code 0 before it was ready".to_owned()),
    ] {
        let ran = asked(&dunnage, &words, cmd, &ready);
        let is_told =
            |line: &&str| line.starts_with("failed") && line.contains(class) && line.contains(&told);
        assert_eq!(ran.stdout.lines().filter(is_told).count(), subjects.len(), "{ran}");
        let said = if class == "timeout" { "waiting for a disk" } else { "no data" };
        assert!(ran.stdout.matches(said).count() >= subjects.len(), "{ran}");
        nothing_is_left(&dunnage, port);
    }
    // On the host another process may have the port.
    let _taken = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let ran = asked(&dunnage, "check command -s bare", &hangs, &format!("port {port}"));
    assert!(ran.stdout.contains(&format!("port {port} is already open")), "{ran}");
}

#[test]
fn what_a_service_is_ready_by_is_checked_before_anything_is_touched() {
    let dunnage = Dunnage::new();
    for (words, ready, expected) in [
        ("run command -s fake --cmd a", "log (", "`log` and a regular expression"),
        ("run command -s fake --cmd a", "port 0", "a number from 1 to 65535"),
        ("run command -s fake --cmd a", "port 70000", "a number from 1 to 65535"),
        ("run command -s fake --cmd a", "soon", "`log REGEX`, `port N`"),
        ("run command -s fake", "port 80", "`service` needs a command"),
        ("run start -s fake", "port 80", "for the experiment `command`, which is not part of this run"),
        ("run start -s fake", "exit", "for the experiment `command`, which is not part of this run"),
        ("run service -s fake --cmd a", "exit", "for the experiment `command`"),
    ] {
        let ran = finished(dunnage.command(words).args(["--ready", ready]).output().unwrap());
        assert!(ran.code == 2 && ran.stderr.contains(expected), "{words} --ready {ready}: {ran}");
    }
    let ran = dunnage.run("run service -s fake --cmd a");
    assert!(ran.code == 2 && ran.stderr.contains("needs to know when the service is ready"), "{ran}");
    let plan = |ready: &str| {
        finished(dunnage.command("plan command -s fake --cmd a").args(["--ready", ready]).output().unwrap())
    };
    assert!(plan("exit").stdout.contains("command") && !plan("exit").stdout.contains("service"));
    assert!(plan("port 80").stdout.contains("ready=port 80"), "{}", plan("port 80"));
}

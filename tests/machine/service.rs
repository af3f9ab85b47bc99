//! Services, on real subjects: one is not ready before it gets ready, one that never does is a failure with
//! its words, and nothing of either is left. The service is the host's Perl, which every container has
//! mounted.

use std::net::TcpListener;
use std::path::PathBuf;

use crate::dunnage::{Dunnage, Ran, finished};
use crate::left;
use crate::machine::command::values;
use crate::support::{Need, at_hand, free_port, lacks};

/// What a container needs to run the host's programs.
const HOST: &str = "--mount /usr:/usr:ro --mount /lib:/lib:ro --mount /lib64:/lib64:ro";
/// How long the service sleeps before it gets ready, in seconds.
const SLEEP: f64 = 0.4;
/// The longest time between two tries of a port, in seconds and as a part of the time so far.
const STEP: f64 = 0.001;
const PART: f64 = 0.005;

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

/// A service that writes the time right before and right after it listens into a file in this directory, which is at the same
/// place inside. It is asked to end as soon as it listens, and ends when it has written.
fn noting_service(port: u16, directory: &str) -> String {
    let (call, clock) = (libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC);
    // Time::HiRes is not in every Perl.
    let lines = format!(
        "sub now {{ my $time = pack(q(q2), 0, 0); syscall({call}, {clock}, $time); \
         sprintf q(%d.%09d), unpack(q(q2), $time) }} $SIG{{TERM}} = sub {{ $asked = 1 }}; \
         select undef, undef, undef, {SLEEP}; my $before = now; \
         $own = IO::Socket::INET->new(Listen => 5, LocalPort => {port}, ReuseAddr => 1) or die $@; \
         my $after = now; open my $file, q(>>), q({directory}/times) or die $!; \
         print $file qq($before $after\\n); close $file; \
         $SIG{{TERM}} = q(DEFAULT); kill TERM => $$ if $asked; sleep 99"
    );
    format!("/usr/bin/perl -MIO::Socket::INET -e '{lines}'")
}

/// Subjects that run it, of those that are available here; the others are reported as skips.
fn subjects(test: &str) -> Vec<&'static str> {
    let all = [
        (Need::Crun, "crun"),
        (Need::Runc, "runc"),
        (Need::Youki, "youki"),
        (Need::Docker, "docker"),
        (Need::Docker, "docker:client=api,tty=true"),
        (Need::Docker, "docker:client=api"),
        (Need::Docker, "docker:net=none,tty=true"),
        (Need::Podman, "podman"),
        (Need::Containerd, "containerd"),
    ];
    ["bare", "floor"].into_iter().chain(at_hand(test, &all)).collect()
}

fn asked(dunnage: &Dunnage, words: &str, cmd: &str, ready: &str) -> Ran {
    finished(dunnage.command(words).args(["--cmd", cmd, "--ready", ready]).output().unwrap())
}

/// Nothing is left of a run with this state directory and this port.
fn nothing_is_left(dunnage: &Dunnage, port: u16) {
    assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new());
    let label = format!("label=dunnage.state={}", dunnage.state().display());
    for engine in left::ENGINES {
        assert_eq!(left::listed(engine, &["ps", "--all", "--filter", &label, "-q"]).trim(), "");
    }
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|one| std::fs::read(one.path().join("cmdline")).ok());
    let named = format!("LocalPort => {port}");
    assert!(lines.into_iter().all(|line| !String::from_utf8_lossy(&line).contains(&named)));
}

#[test]
fn a_service_is_ready_no_sooner_than_it_gets_ready() {
    let test = "a_service_is_ready_no_sooner_than_it_gets_ready";
    if lacks(test, Need::Root) {
        return;
    }
    let all = subjects(test);
    let port = free_port();
    let dunnage = Dunnage::new();
    let (at_port, in_log) = (format!("port {port}"), "log ^is ready,.*last$".to_owned());
    for (ready, slept, mode, place) in [
        (&at_port, SLEEP, "run", "DIR"),
        (&in_log, 2.0 * SLEEP, "run", "DIR-2"),
        (&in_log, 2.0 * SLEEP, "exec", "DIR-3"),
    ] {
        // An entry reads the same output; a runtime and an engine represent the others.
        let own = all.iter().filter(|name| mode == "run" || ["bare", "crun", "docker"].contains(*name));
        let subjects: String = own.map(|name| format!(" -s {name}")).collect();
        let words = format!("run command{subjects} {HOST} --mode {mode} --rounds 1 -o {place}");
        let ran = asked(&dunnage, &words, &service(port), ready);
        assert_eq!(ran.code, 0, "{ran}");
        let found = values(&dunnage, place, "ready");
        assert!(found.len() >= subjects.matches(" -s ").count(), "{found:?}");
        // A shared machine may delay a start; the bound is far away.
        assert!(found.iter().all(|(_, ready)| (slept..slept + 20.0).contains(ready)), "{found:?}");
        let (starts, rests) = (values(&dunnage, place, "start"), values(&dunnage, place, "beyond_start"));
        assert_eq!((starts.len(), rests.len()), (found.len(), found.len()), "{starts:?} {rests:?}");
        assert!(rests.iter().all(|(_, rest)| *rest >= slept), "{rests:?}");
        // It sleeps after it was started, so its sleep is in no start.
        for (ready, start) in found.iter().zip(&starts) {
            assert!(ready.0 == start.0 && start.1 > 0.0, "{ready:?} {start:?}");
            assert!(start.1 + slept <= ready.1, "{ready:?} {start:?}");
        }
        nothing_is_left(&dunnage, port);
    }
}

/// By the service's own clock, which is the host's.
#[test]
fn a_port_is_seen_no_sooner_than_it_is_open_and_at_the_next_try() {
    let test = "a_port_is_seen_no_sooner_than_it_is_open_and_at_the_next_try";
    if lacks(test, Need::Root) || lacks(test, Need::Crun) {
        return;
    }
    let (port, dunnage) = (free_port(), Dunnage::new());
    let place = tempfile::Builder::new().prefix("dunnage-").tempdir_in("/var/tmp").unwrap();
    let place = place.path().to_str().unwrap();
    let words = format!(
        "run command -s bare -s crun {HOST} --mount {place}:{place} --mode run --rounds 10 --no-html -o DIR"
    );
    let ran = asked(&dunnage, &words, &noting_service(port, place), &format!("port {port}"));
    assert!([0, 6].contains(&ran.code), "{ran}");
    let times = std::fs::read_to_string(format!("{place}/times")).unwrap();
    let times: Vec<[f64; 2]> = times
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(before, after)| [before, after].map(|time| time.parse().unwrap()))
        .collect();
    let samples = std::fs::read_to_string(dunnage.directory().join("samples.jsonl")).unwrap();
    let stamps = samples.lines().filter_map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let stamp = |name: &str| Some(line["stamps"][name].as_u64()? as f64 / 1e9);
        Some((stamp("spawn")?, stamp("forked")?, stamp("serving")?))
    });
    let (mut seen, mut at_once) = (0, 0);
    for (spawn, forked, serving) in stamps {
        // Each launch writes one line, and the next one sleeps first.
        let until = serving + SLEEP / 2.0;
        let own: Vec<_> = times.iter().filter(|[before, _]| (spawn..until).contains(before)).collect();
        let [[before, after]] = own[..] else { panic!("{own:?} from {spawn} to {serving}: {times:?}") };
        assert!(serving >= *before, "seen {serving}, open after {before}");
        seen += 1;
        at_once += usize::from(serving <= after + STEP.max(PART * (serving - forked)));
    }
    // A shared machine may delay a try; tries that are further apart would see few ports in time.
    assert!(seen >= 2 * 10 && 2 * at_once > seen, "{at_once} of {seen} in time");
    nothing_is_left(&dunnage, port);
}

#[test]
fn a_service_that_does_not_get_ready_is_a_failure_in_its_words() {
    let test = "a_service_that_does_not_get_ready_is_a_failure_in_its_words";
    if lacks(test, Need::Root) {
        return;
    }
    let port = free_port();
    let dunnage = Dunnage::new();
    let subjects: Vec<_> = subjects(test).into_iter().filter(|name| !name.contains(',')).collect();
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

//! The orders about HTTP, through the channel of a container.

use std::process::Command;

use ::dunnage::outcome::{Abort, FailureClass};

use crate::dunnage::{Dunnage, Ran, finished};
use crate::handles::{ends, named, result, run_in, service, subject, work};
use crate::support::{Need, free_port, lacks};

#[test]
fn a_web_server_is_a_process_of_its_own_and_takes_loads() {
    let dunnage = Dunnage::new();
    let run = run_in(&dunnage.state());
    let bare = subject("bare", &run);
    let mut server = service(bare.as_ref(), None, &run);
    let place = tempfile::tempdir().unwrap();
    let directory = format!("directory={}", place.path().display());
    let words = ["serve", "http", "[::1]:0", "workers=2", "hashes=1000", "bytes=5000", "sync=1", &directory];
    let port = named(&result(&mut server, &work("network", &words)), "port");
    let mut client = service(bare.as_ref(), None, &run);
    let target = &format!("[::1]:{port}");
    let answered = result(&mut client, &work("network", &["answers", target, "/network"]));
    assert_eq!(named(&answered, "status"), 200);
    assert!(named(&answered, "waited") > 0);
    for (path, bytes) in [("/network", "body=8"), ("/cpu", "body=64"), ("/disk-io", "body=8")] {
        for rate in [&[][..], &["rate=5000", "cpu=0"]] {
            let order = [&["load", target, path, "6", "2", "300", "0", bytes], rate].concat();
            let done = client.ask(&work("network", &order)).unwrap().done;
            let numbers = ["requests", "opened", "closed", "timeout", "status", "body"];
            assert_eq!(
                numbers.map(|name| named(&done.results, name)),
                [300, 6, 0, 0, 0, 0],
                "{path} {rate:?}"
            );
            assert!(named(&done.results, "in_flight") > 0 && named(&done.results, "took") > 0);
            assert_eq!(done.distributions[0].1.count(), 300);
        }
    }
    // What the client itself does between an answer and the next request is its CPU time, and a slow server's is not.
    for (path, computes, is_more) in [("/network", "computes=200000", true), ("/cpu", "computes=0", false)] {
        let order = ["load", target, path, "2", "1", "200", "0", computes];
        let answer = client.ask(&work("network", &order)).unwrap();
        assert_eq!(answer.cpu.0 > 200 * 200_000, is_more, "{path} {}", answer.cpu);
    }
    // A path with an equals sign is no option.
    let order = ["load", target, "/none?a=b", "1", "1", "5", "0", "status=404"];
    assert_eq!(named(&result(&mut client, &work("network", &order)), "requests"), 5);
    let used = result(&mut server, &work("network", &["usage"]));
    assert!(named(&used, "server_cpu") > 0);
    for (order, class) in [
        (&["load", target, "/none", "1", "1", "5", "0"][..], FailureClass::WrongOutput),
        (&["load", target, "/", "1", "1", "0", "0"], FailureClass::Unsupported),
        (&["serve", "http", target], FailureClass::Environment),
        (&["serve", "http", "[::1]:0", "directory=/dev/null/x"], FailureClass::Environment),
    ] {
        let Err(Abort::Failed(failure)) = client.ask(&work("network", order)) else { panic!("{order:?}") };
        assert_eq!(failure.class, class, "{failure}");
    }
    drop((server, client));
    ends(&dunnage, bare, run);
}

/// A web server that forks for each connection and answers until the other side closes it; slow enough that an unoptimised client
/// does not limit the load.
const PROGRAM: &str = r#"
use IO::Socket::INET;
$SIG{CHLD} = 'IGNORE';
die "no answer today\n" if $ENV{BROKEN};
my $server = IO::Socket::INET->new(LocalPort => $ARGV[0], Listen => 50, ReuseAddr => 1) or die $!;
while (my $client = $server->accept) {
    next if fork;
    $client->autoflush(1);
    while (<$client>) {
        next unless /^\r/;
        select undef, undef, undef, 0.002;
        print $client "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    }
    exit;
}
"#;

/// The program as a service at this port, for one round. Returns how the run ended, and the requests a second of each
/// sample with its setting.
fn serves(subject: &str, port: u16, more: &str) -> (Ran, Vec<(String, f64)>) {
    let (dunnage, place) = (Dunnage::new(), tempfile::tempdir().unwrap());
    let script = place.path().join("serve.pl");
    std::fs::write(&script, PROGRAM).unwrap();
    let mounts = ["/usr", "/lib", "/lib64", &place.path().to_string_lossy()];
    let mounts = mounts.iter().filter(|path| std::path::Path::new(path).exists());
    let mounts: String = mounts.map(|path| format!("--mount {path}:{path}:ro ")).collect();
    let words = format!(
        "run http -s {subject} --no-vary --rounds 1 --port {port} {mounts} {more} --set clients=2/4 --set rate=100 --set warm=100ms \
         --set time=50ms -o DIR"
    );
    let command = format!("/usr/bin/perl {} {port}", script.display());
    let ran = finished(dunnage.command(&words).args(["--cmd", &command]).output().unwrap());
    let csv = dunnage.run("report DIR --format csv").stdout;
    let rates = csv.lines().filter(|line| line.contains(",rate,")).filter_map(|line| {
        let value = line.split_once(",measured,")?.0.rsplit(',').next()?;
        Some((line.to_owned(), value.parse().ok()?))
    });
    let rates = rates.collect();
    let left = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let words = std::fs::read(entry.ok()?.path().join("cmdline")).ok()?;
        let words = String::from_utf8_lossy(&words).into_owned();
        words.contains(&*script.to_string_lossy()).then_some(words)
    });
    assert_eq!(left.collect::<Vec<_>>(), [""; 0], "{ran}");
    (ran, rates)
}

/// Subjects with their paths, of those that are available here; the others are reported as skips.
fn with_paths(test: &str) -> Vec<(&'static str, &'static [&'static str])> {
    const PATHS: &[&str] = &["inside", "bridge", "published"];
    let engines = [
        ("floor", &PATHS[..2], Need::Root),
        ("docker", PATHS, Need::Docker),
        ("podman", PATHS, Need::Podman),
    ];
    let has = |(_, _, need): &(&str, &[&str], Need)| !lacks(test, *need);
    let engines = engines.into_iter().filter(has).map(|(one, paths, _)| (one, paths));
    [("bare", &PATHS[..1])].into_iter().chain(engines).collect()
}

#[test]
fn a_program_of_the_users_serves_on_every_path() {
    let port = free_port();
    for (subject, paths) in with_paths("a_program_of_the_users_serves_on_every_path") {
        let (ran, rates) = serves(subject, port, "");
        assert_eq!(ran.code, 0, "{subject}: {ran}");
        assert!(rates.iter().all(|(_, rate)| *rate > 0.0), "{subject}: {rates:?}: {ran}");
        for path in paths {
            let is_it = |(line, _): &(String, f64)| line.contains(&format!("path={path};"));
            assert!(rates.iter().any(is_it), "{subject} {path}: {rates:?}: {ran}");
        }
    }
}

#[test]
fn the_words_of_a_program_that_serves_nothing_are_told() {
    let port = free_port();
    for (subject, _) in with_paths("the_words_of_a_program_that_serves_nothing_are_told") {
        let (ran, rates) = serves(subject, port, "--env BROKEN=1");
        assert!(rates.is_empty() && ran.to_string().contains("no answer today"), "{subject}: {ran}");
    }
}

/// A rule of the host's firewall that drops what goes to this port.
struct Dropped(u16);

impl Dropped {
    fn rule(&self, change: &str) -> bool {
        let port = self.0.to_string();
        let words = [change, "OUTPUT", "-p", "tcp", "--dport", &port, "-j", "DROP"];
        Command::new("iptables").args(words).output().is_ok_and(|said| said.status.success())
    }
}

impl Drop for Dropped {
    fn drop(&mut self) {
        self.rule("-D");
    }
}

#[test]
fn a_firewall_rule_in_the_way_of_one_path_leaves_the_others_their_values() {
    const TEST: &str = "a_firewall_rule_in_the_way_of_one_path_leaves_the_others_their_values";
    if lacks(TEST, Need::Docker) {
        return;
    }
    let dropped = Dropped(free_port());
    assert!(dropped.rule("-I"));
    let (ran, rates) = serves("docker", dropped.0, "--set path=inside --set path=bridge --timeout 4");
    assert_eq!(ran.code, 6, "{ran}");
    assert!(
        !rates.is_empty() && rates.iter().all(|(line, _)| line.contains("path=inside")),
        "{rates:?}: {ran}"
    );
    assert!(ran.to_string().contains("timeout"), "{ran}");
}

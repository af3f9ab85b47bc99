//! The orders about HTTP, through the channel of a container.

use std::path::PathBuf;
use std::process::Command;

use ::dunnage::orders::Order;
use ::dunnage::orders::network::{
    self as orders, AwaitAnswer, Client, Limit, Load, Request, Serve, Settings, Usage,
};
use ::dunnage::outcome::FailureClass;
use ::dunnage::units::Nanos;

use crate::dunnage::{Dunnage, Ran, finished};
use crate::handles::{ends, run_in, service, serving, subject};
use crate::support::orders::{failure, port};
use crate::support::{Need, free_port, lacks};

#[test]
fn a_web_server_is_a_process_of_its_own_and_takes_loads() {
    let dunnage = Dunnage::new();
    let run = run_in(&dunnage.state());
    let bare = subject("bare", &run);
    let mut server = service(bare.as_ref(), None, &run);
    let place = tempfile::tempdir().unwrap();
    let settings = |directory: Option<PathBuf>| {
        orders::Service::Http(Settings {
            workers: Some(2),
            hashes: 1000,
            bytes: 5000,
            sync: true,
            directory,
            ..Settings::default()
        })
    };
    let target = port(&mut server, serving(settings(Some(place.path().into())), "[::1]:0"));
    let mut client = service(bare.as_ref(), None, &run);
    let first = AwaitAnswer { client: Client::of(target), path: "/network".into() };
    let answered = client.ask(first, Nanos(0)).unwrap().done;
    assert!(answered.status == 200 && answered.waited > Nanos(0), "{answered:?}");
    let requests = |path: &str, [connections, threads, count]: [usize; 3]| Request {
        client: Client::of(target),
        load: Load {
            path: path.into(),
            connections,
            threads,
            limit: Limit { count: count as u64, time: Nanos(0) },
            rate: None,
            status: 200,
            body: None,
            computes: Nanos(0),
        },
    };
    for (path, bytes) in [("/network", 8), ("/cpu", 64), ("/disk-io", 8)] {
        for (rate, cpu) in [(None, None), (Some(5000), Some(0))] {
            let mut order = requests(path, [6, 2, 300]);
            (order.load.rate, order.load.body, order.client.cpu) = (rate, Some(bytes), cpu);
            let done = client.ask(order, Nanos(0)).unwrap().done;
            assert_eq!((done.requests, done.opened, done.wrong), (300, 6, [0; 6]), "{path} {rate:?}");
            assert!(done.in_flight > Nanos(0) && done.took > Nanos(0));
            assert_eq!(done.latency.count(), 300);
        }
    }
    // What the client itself does between an answer and the next request is its CPU time, and a slow server's is not.
    for (path, computes, is_more) in [("/network", 200_000, true), ("/cpu", 0, false)] {
        let mut order = requests(path, [2, 1, 200]);
        order.load.computes = Nanos(computes);
        let answer = client.ask(order, Nanos(0)).unwrap();
        assert_eq!(answer.cpu.0 > 200 * 200_000, is_more, "{path} {}", answer.cpu);
    }
    let mut order = requests("/none?a=b", [1, 1, 5]);
    order.load.status = 404;
    assert_eq!(client.ask(order, Nanos(0)).unwrap().done.requests, 5);
    assert!(server.ask(Usage {}, Nanos(0)).unwrap().done.server > Nanos(0));
    let taken = Serve { address: target, ..serving(settings(None), "[::1]:0") };
    let nowhere = serving(settings(Some("/dev/null/x".into())), "[::1]:0");
    for (order, class) in [
        (Order::from(requests("/none", [1, 1, 5])), FailureClass::WrongOutput),
        (requests("/", [1, 1, 0]).into(), FailureClass::Unsupported),
        (taken.into(), FailureClass::Environment),
        (nowhere.into(), FailureClass::Environment),
    ] {
        let failure = failure(&mut client, order.clone());
        assert_eq!(failure.class, class, "{order:?}: {failure}");
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

/// A web server of one thread that pauses for so many seconds before each answer, and for 2 ms more before its first answers.
const PAUSES: &str = r#"
use IO::Socket::INET;
use IO::Select;
my ($port, $cold, $pause) = @ARGV;
my $server = IO::Socket::INET->new(LocalPort => $port, Listen => 50, ReuseAddr => 1) or die $!;
my ($all, $answered, %rest) = (IO::Select->new($server), 0);
while (1) {
    for my $one ($all->can_read) {
        if ($one == $server) { $all->add($server->accept); next }
        unless (sysread $one, $rest{$one}, 65536, length($rest{$one} // '')) {
            $all->remove($one);
            delete $rest{$one};
            next;
        }
        while ($rest{$one} =~ s/^.*?\r\n\r\n//s) {
            select undef, undef, undef, $pause + ($answered++ < $cold ? 0.002 : 0);
            syswrite $one, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        }
    }
}
"#;

/// Clients and loads for a program that is warm from its first request on.
const QUICKLY: &str = "--set clients=2/4 --set rate=100 --set warm=100ms --set time=50ms";

/// The program as a service at this port, for one round. Returns how the run ended, and the requests a second of each
/// sample with its setting.
fn serves(subject: &str, port: u16, more: &str) -> (Ran, Vec<(String, f64)>) {
    let (ran, rates) = serves_by(PROGRAM, "", subject, port, &format!("{more} {QUICKLY}"));
    (ran, rates.into_iter().filter(|(line, _)| line.contains(",rate,")).collect())
}

/// A program with these arguments after its port. Returns how the run ended, and each value with its line.
fn serves_by(
    program: &str,
    arguments: &str,
    subject: &str,
    port: u16,
    more: &str,
) -> (Ran, Vec<(String, f64)>) {
    let (dunnage, place) = (Dunnage::new(), tempfile::tempdir().unwrap());
    let script = place.path().join("serve.pl");
    std::fs::write(&script, program).unwrap();
    let mounts = ["/usr", "/lib", "/lib64", &place.path().to_string_lossy()];
    let mounts = mounts.iter().filter(|path| std::path::Path::new(path).exists());
    let mounts: String = mounts.map(|path| format!("--mount {path}:{path}:ro ")).collect();
    let words = format!("run http -s {subject} --no-vary --rounds 1 --port {port} {mounts} {more} -o DIR");
    let command = format!("/usr/bin/perl {} {port} {arguments}", script.display());
    let ran = finished(dunnage.command(&words).args(["--cmd", &command]).output().unwrap());
    let csv = dunnage.run("report DIR --format csv").stdout;
    let rates = csv.lines().filter_map(|line| {
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

/// Its first answers take 2 ms longer, all others far less: what a program does until it is warm is no property of a path.
#[test]
fn a_program_that_is_slow_at_first_is_measured_when_it_is_warm() {
    let port = free_port();
    let requests = |subject: &str, cold: &str, warm: &str| {
        let more = format!("--set clients=2/4 --set rate=100 --set warm={warm} --set time=100ms");
        let (ran, values) = serves_by(PAUSES, cold, subject, port, &more);
        let own: Vec<_> = values.into_iter().filter(|(line, _)| line.contains(",request,")).collect();
        assert!(ran.code == 0 && !own.is_empty(), "{ran}");
        own
    };
    // What an engine adds has no part in it.
    let all = with_paths("a_program_that_is_slow_at_first_is_measured_when_it_is_warm");
    for (subject, paths) in all.into_iter().filter(|(one, _)| *one == "floor") {
        let found = requests(subject, "500 0.0002", "1s");
        assert!(
            found.len() >= paths.len() && found.iter().all(|(_, one)| *one < 0.001),
            "{subject}: {found:?}"
        );
    }
    // What it would be otherwise: a load of a second is over before it is warm.
    let found = requests("bare", "1500 0.0002", "20ms");
    assert!(found.iter().all(|(_, one)| *one > 0.002), "{found:?}");
}

/// Thirty connections would wait for each other for a second in every load.
#[test]
fn a_slow_program_is_asked_by_few_and_seldom() {
    let (ran, values) = serves_by(PAUSES, "0 0.03", "bare", free_port(), "--set warm=500ms");
    assert_eq!(ran.code, 0, "{ran}");
    let of = |metric: &str| values.iter().find(|(line, _)| line.contains(&format!(",{metric},")));
    let (line, request) = of("request").expect("a value");
    assert!(*request >= 0.03, "{request}");
    let clients =
        line.split("clients=2/").nth(1).and_then(|rest| rest.split(';').next()?.parse::<u32>().ok());
    assert!(clients.is_some_and(|count| (2..=6).contains(&count)), "{line}");
    assert!(of("p50").is_some_and(|(_, p50)| *p50 >= 0.03), "{values:?}");
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

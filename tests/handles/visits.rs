//! Ramps of containers that are weighed: half a ramp is a result up to where it came, what is planted is found with who pays for it,
//! and nothing is left.

use std::os::unix::fs::PermissionsExt;

use ::dunnage::experiment::memory::limit::names as limit;
use ::dunnage::experiment::memory::{names, slope};
use ::dunnage::names::Series;
use ::dunnage::record;

use super::*;
use crate::dunnage::finished;

/// A runtime that does this before it does what it was asked for; `$@` are its words.
pub(super) fn runtime(dunnage: &Dunnage, name: &str, before: &str) -> PathBuf {
    let path = dunnage.state().with_file_name(name);
    std::fs::write(&path, format!("#!/bin/sh\n{before}\nexec crun \"$@\"\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// The cell of a subject.
fn cell(recorded: &record::Recorded, label: &str) -> usize {
    let subjects = &recorded.plan.subjects;
    let is_its = |cell: &::dunnage::plan::Cell| subjects[cell.subject].label == label;
    recorded.plan.cells.iter().position(is_its).unwrap_or_else(|| panic!("there is no {label}"))
}

/// The sample of a subject in the only round.
fn sample<'a>(recorded: &'a record::Recorded, label: &str) -> &'a ::dunnage::outcome::Sample {
    let own = &recorded.series[cell(recorded, label)].samples[0];
    own.as_ref().unwrap_or_else(|| panic!("{label} has no sample: {:?}", recorded.failures))
}

/// What one more container adds to these, in mebibytes.
fn mebibytes(recorded: &record::Recorded, label: &str, series: &[Series]) -> f64 {
    slope(sample(recorded, label), series).unwrap() / f64::from(1 << 20)
}

fn is_about(found: f64, planted: f64, share: f64) -> bool {
    (found - planted).abs() <= planted * share
}

#[test]
fn half_a_ramp_is_a_result_up_to_where_it_came_and_says_why_it_ended() {
    const TEST: &str = "half_a_ramp_is_a_result_up_to_where_it_came_and_says_why_it_ended";
    if lacks(TEST, Need::Crun) || lacks(TEST, Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let root = dunnage.state().with_file_name("containers");
    std::fs::create_dir(&root).unwrap();
    let full = format!(
        "set -- --root {0} \"$@\"; for word; do case $word in --detach) \
         [ $(ls {0} | wc -l) -lt 12 ] || {{ echo there is no room for another >&2; exit 1; }};; esac; done",
        root.display()
    );
    let cramped = runtime(&dunnage, "cramped", &full);
    let ran = dunnage.run(&format!(
        "run memory -s whole=crun -s cut=crun:bin={} --rounds 1 --no-html -o DIR",
        cramped.display()
    ));
    let recorded = record::load(&dunnage.directory()).expect("a run directory");
    let steps = |label| sample(&recorded, label).series(names::CONTAINERS).unwrap().to_vec();
    assert_eq!((steps("whole"), steps("cut")), (vec![0, 1, 10, 20, 0], vec![0, 1, 10, 12, 0]), "{ran}");
    let ended = |label| recorded.facts(cell(&recorded, label), names::ENDED).next().unwrap();
    let why = ended("cut").unwrap();
    assert!(why.starts_with("12 of 20 containers run: ") && why.contains("no room for another"), "{why}");
    assert_eq!(ended("whole"), None);
    let told = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("cut: 12 of 20 containers run: "), "{ran}");
    assert!(mebibytes(&recorded, "cut", &[names::OWN_KERNEL]) > 0.0);
    // Nothing is left of either.
    assert_eq!(left::of_run(&recorded.environment.run), Vec::<String>::new());
    let names = std::fs::read_dir(&root).unwrap().flatten().map(|one| one.file_name());
    let containers = names.filter(|name| !name.to_string_lossy().starts_with('.'));
    assert_eq!(containers.collect::<Vec<_>>(), Vec::<std::ffi::OsString>::new());
}

/// What is planted. `weigh SIZE THREADS`: so many mebibytes without a file, as many shared, half as many in a file of its own, and
/// threads. `serve TIME`: answers after so many milliseconds. `worker SIZE`: mebibytes in a child. `read`: a file that only this container has claimed. `hold OWN SHARED PIPES`: mebibytes of its own, some that it shares
/// with a child that has as many of its own, and pipes. All stay.
const PLANT: &str = r#"
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char *filled(long mebibytes, int kind) {
    char *at = mmap(0, (mebibytes << 20) + 4096, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) exit(1);
    madvise(at, (mebibytes << 20) + 4096, MADV_NOHUGEPAGE);
    return memset(at, 1, mebibytes << 20);
}

static void *waits(void *unused) { for (;;) pause(); return unused; }

int main(int count, char **words) {
    static char block[1 << 20];
    long of[3] = {0};
    for (int at = 2; at < count && at < 5; at++) of[at - 2] = atol(words[at]);
    if (!strcmp(words[1], "weigh")) {
        filled(of[0], MAP_PRIVATE);
        filled(of[0], MAP_SHARED);
        int file = open("/planted", O_CREAT | O_WRONLY, 0600);
        for (long at = 0; at < of[0] / 2; at++) if (write(file, block, sizeof block) != sizeof block) return 2;
        if (fsync(file)) return 3;
        pthread_attr_t small;
        pthread_attr_init(&small);
        pthread_attr_setstacksize(&small, 65536);
        for (long at = 0; at < of[1]; at++) { pthread_t one; if (pthread_create(&one, &small, waits, 0)) return 4; }
    } else if (!strcmp(words[1], "read")) {
        char path[64];
        int number = 0;
        for (;; number++) { sprintf(path, "/data/claimed%d", number); if (!mkdir(path, 0700)) break; }
        sprintf(path, "/data/%d", number);
        int file = open(path, O_RDONLY);
        if (file < 0) return 5;
        while (read(file, block, sizeof block) > 0);
    } else if (!strcmp(words[1], "serve")) {
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(3000)};
        int own = socket(AF_INET, SOCK_STREAM, 0);
        if (bind(own, (void *) &at, sizeof at) || listen(own, 9)) return 8;
        for (;;) {
            int one = accept(own, 0, 0);
            if (read(one, block, sizeof block) > 0) usleep(of[0] * 1000);
            send(one, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 38, MSG_NOSIGNAL);
            close(one);
        }
    } else if (!strcmp(words[1], "worker")) {
        if (!fork()) filled(of[0], MAP_PRIVATE);
    } else {
        struct rlimit files = {2 * of[2] + 64, 2 * of[2] + 64};
        if (of[2] && setrlimit(RLIMIT_NOFILE, &files)) return 6;
        if (of[1]) {
            char *both = filled(of[1], MAP_SHARED);
            fork();
            for (long at = 0; at < of[1] << 20; at += 4096) ((volatile char *) both)[at];
        }
        for (long at = 0; at < of[2]; at++) { int both[2]; if (pipe(both)) return 7; }
        filled(of[0], MAP_PRIVATE);
    }
    waits(0);
}
"#;

/// The planted program under this name, which needs no files.
fn plant(dunnage: &Dunnage, name: &str) -> PathBuf {
    let [source, made] = ["plant.c", name].map(|name| dunnage.state().with_file_name(name));
    std::fs::write(&source, PLANT).unwrap();
    let words = ["-static", "-pthread", "-O1", "-o"];
    let compiled = std::process::Command::new("cc").args(words).arg(&made).arg(&source).output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    made
}

#[test]
fn planted_memory_is_found_in_the_container() {
    const TEST: &str = "planted_memory_is_found_in_the_container";
    if lacks(TEST, Need::Crun) || lacks(TEST, Need::Root) || lacks(TEST, Need::Cc) {
        return;
    }
    let weighed = |size: usize, threads: usize| {
        let dunnage = Dunnage::new();
        let mut command = dunnage.command(&format!(
            "run memory -s crun --set containers=4 --rounds 1 --no-html -o DIR --mount {}:/plant:ro",
            plant(&dunnage, "plant").display()
        ));
        command.arg("--cmd").arg(format!("/plant weigh {size} {threads}"));
        let ran = finished(command.output().unwrap());
        let recorded = record::load(&dunnage.directory()).unwrap_or_else(|why| panic!("{why}: {ran}"));
        [names::OWN_ANON, names::OWN_SHMEM, names::OWN_FILE, names::OWN_KERNEL]
            .map(|series| mebibytes(&recorded, "crun", &[series]))
    };
    // They wait most of the time, and other containers are in no container's figures.
    let weighed = &weighed;
    let [with, threads, without] = std::thread::scope(|scope| {
        [(64, 0), (0, 512), (0, 0)]
            .map(|(size, threads)| scope.spawn(move || weighed(size, threads)))
            .map(|one| one.join().unwrap())
    });
    let more = |of: [f64; 4]| -> [f64; 4] { std::array::from_fn(|at| of[at] - without[at]) };
    let [anon, shmem, file, _] = more(with);
    assert!(is_about(anon, 64.0, 0.01) && is_about(shmem, 64.0, 0.01), "{with:?} {without:?}");
    assert!(is_about(file, 32.0, 0.01), "{with:?} {without:?}");
    // A stack of 16 KiB for each thread, and its task, which version 1 does not tell apart.
    let [_, shmem, file, kernel] = more(threads);
    assert!((8.0..16.0).contains(&kernel) && shmem == 0.0 && file.abs() < 0.1, "{threads:?} {without:?}");
}

/// Eight mebibytes that a program has more are eight that its limit must have more, and the kernel killed what had less; also where
/// they are in a child without which the program lives on.
#[test]
fn the_smallest_limit_follows_what_a_program_needs() {
    const TEST: &str = "the_smallest_limit_follows_what_a_program_needs";
    if lacks(TEST, Need::Crun) || lacks(TEST, Need::Root) || lacks(TEST, Need::Cc) {
        return;
    }
    let limits = |holds: &str| {
        let dunnage = Dunnage::new();
        let mut command = dunnage.command(&format!(
            "run memory-limit -s crun --rounds 1 --no-html -o DIR --mount {}:/plant:ro",
            plant(&dunnage, "plant").display()
        ));
        command.arg("--cmd").arg(format!("/plant {holds}"));
        let ran = finished(command.output().unwrap());
        let recorded = record::load(&dunnage.directory()).unwrap_or_else(|why| panic!("{why}: {ran}"));
        let below = recorded.facts(cell(&recorded, "crun"), limit::BELOW).next().unwrap().unwrap();
        assert!(below.starts_with("killed: "), "{below}");
        let [smallest, comfortable, peak] = [limit::SMALLEST, limit::COMFORTABLE, limit::PEAK]
            .map(|name| sample(&recorded, "crun").counter(name).unwrap() / 1024);
        assert!(smallest <= comfortable && comfortable <= peak + 512, "{ran}");
        smallest
    };
    let [more, less, worker, idle] = std::thread::scope(|scope| {
        let all = ["hold 9 0 0", "hold 1 0 0", "worker 9", "worker 1"]
            .map(|holds| scope.spawn(move || limits(holds)));
        all.map(|one| one.join().unwrap())
    });
    for (more, less) in [(more, less), (worker, idle)] {
        assert!((8064..=8320).contains(&(more - less)), "{more} {less}");
    }
}

/// What refuses every container, with a limit and without, says nothing about limits.
#[test]
fn a_runtime_that_ends_in_the_middle_gives_no_smallest_limit() {
    const TEST: &str = "a_runtime_that_ends_in_the_middle_gives_no_smallest_limit";
    if lacks(TEST, Need::Crun) || lacks(TEST, Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let count = dunnage.state().with_file_name("count");
    let ends = format!(
        "for word; do case $word in --detach) echo >> {0}; [ $(wc -l < {0}) -lt 7 ] || {{ echo gone >&2; exit 1; }};; esac; done",
        count.display()
    );
    let ended = runtime(&dunnage, "ended", &ends);
    let ran = dunnage
        .run(&format!("run memory-limit -s ended=crun:bin={} --rounds 1 --no-html -o DIR", ended.display()));
    let recorded = record::load(&dunnage.directory()).unwrap_or_else(|why| panic!("{why}: {ran}"));
    assert!(recorded.series[cell(&recorded, "ended")].samples[0].is_none(), "{ran}");
    assert!(ran.to_string().contains("gone"), "{ran}");
}

/// Each time that it is asked anew it would begin anew.
#[test]
fn a_program_that_takes_more_than_a_second_to_answer_is_weighed() {
    const TEST: &str = "a_program_that_takes_more_than_a_second_to_answer_is_weighed";
    if lacks(TEST, Need::Crun) || lacks(TEST, Need::Root) || lacks(TEST, Need::Cc) {
        return;
    }
    let dunnage = Dunnage::new();
    let mut command = dunnage.command(&format!(
        "run memory -s crun --set containers=2 --rounds 1 --no-html -o DIR --port 3000 --mount {}:/plant:ro",
        plant(&dunnage, "plant").display()
    ));
    let ran = finished(command.args(["--cmd", "/plant serve 1200"]).output().unwrap());
    let recorded = record::load(&dunnage.directory()).unwrap_or_else(|why| panic!("{why}: {ran}"));
    assert_eq!(sample(&recorded, "crun").series(names::CONTAINERS).unwrap(), [0, 1, 2, 0], "{ran}");
}

/// The words of a shell that starts a process that holds this, with this name, for the container `$name`, or ends it.
fn held(dunnage: &Dunnage, name: &str, holds: &str) -> [String; 2] {
    let (holder, pids) = (plant(dunnage, name), dunnage.state().with_file_name("pids"));
    std::fs::create_dir(&pids).unwrap();
    let (holder, pids) = (holder.display(), pids.display());
    [
        format!("setsid {holder} hold {holds} </dev/null >/dev/null 2>&1 & echo $! >{pids}/$name; sleep 0.5"),
        format!("[ ! -e {pids}/$name ] || kill -- -$(cat {pids}/$name); rm -f {pids}/$name"),
    ]
}

#[test]
fn what_is_left_is_the_callers_the_others_or_stays_behind() {
    const TEST: &str = "what_is_left_is_the_callers_the_others_or_stays_behind";
    if lacks(TEST, Need::Crun) || lacks(TEST, Need::Root) || lacks(TEST, Need::Cc) {
        return;
    }
    const PIPES: usize = 4000;
    let dunnage = Dunnage::new();
    let [begin, end] = held(&dunnage, "stranger", &format!("16 0 {PIPES}"));
    let untidy = runtime(
        &dunnage,
        "untidy",
        &format!(
            "for name; do :; done; for word; do case $word in --detach) {begin};; delete) {end};; esac; done"
        ),
    );
    let data = dunnage.state().with_file_name("data");
    std::fs::create_dir(&data).unwrap();
    for number in 0..8 {
        std::fs::write(data.join(number.to_string()), vec![1; 32 << 20]).unwrap();
    }
    // What they have in the cache now is charged to this test.
    assert!(std::process::Command::new("sync").status().unwrap().success());
    ::dunnage::sys::page_cache::empty().unwrap();
    let mut command = dunnage.command(&format!(
        "run memory -s plain=crun -s untidy=crun:bin={} --set containers=2 --rounds 1 --no-html -o DIR --mount {}:/data --mount {}:/plant:ro",
        untidy.display(),
        data.display(),
        plant(&dunnage, "reader").display()
    ));
    command.arg("--cmd").arg("/plant read");
    let ran = finished(command.output().unwrap());
    let recorded = record::load(&dunnage.directory()).unwrap_or_else(|why| panic!("{why}: {ran}"));
    let of = |series: &[Series]| ["plain", "untidy"].map(|label| mebibytes(&recorded, label, series));

    // Page cache of removed containers.
    for label in ["plain", "untidy"] {
        let file = mebibytes(&recorded, label, &[names::OWN_FILE]);
        let left = sample(&recorded, label).series(names::LEFT).unwrap();
        let left = (left.last().unwrap() - left[0]) as f64 / f64::from(2 << 20);
        assert!(is_about(file, 32.0, 0.02) && is_about(left, 32.0, 0.05), "{label} {file} {left}: {ran}");
    }
    // Two files, an inode and a ring of buffers for each pipe.
    let [plain, untidy] = of(&[names::CALLER]);
    let pipes = untidy - plain;
    assert!((PIPES as f64 / 1024.0..PIPES as f64 / 256.0).contains(&pipes), "{plain} {untidy}: {ran}");
    let grown = recorded.facts(cell(&recorded, "untidy"), names::GROWN).next().unwrap().unwrap_or_default();
    let stranger = grown.split(", ").find_map(|one| one.strip_prefix("stranger ")?.strip_suffix(" KiB"));
    let stranger = stranger.and_then(|kibibytes| kibibytes.parse::<f64>().ok()).unwrap_or_default() / 2048.0;
    assert!((15.5..18.0).contains(&stranger), "{grown}");
    assert_eq!(of(&[names::HELPER_COUNT]), [0.0, 0.0]);
    // Nothing is missing.
    let metrics = ::dunnage::experiment::find("memory").unwrap().metrics;
    let at = metrics.iter().position(|one| one.name == "unexplained").unwrap();
    let rest = recorded.series[cell(&recorded, "untidy")].values[at][0] / f64::from(1 << 20);
    // As far as no other process had memory or gave it back while it was read.
    let others = (mebibytes(&recorded, "untidy", &[names::OTHERS]) - stranger).abs();
    assert!(rest.abs() < (pipes + 16.0) * 0.05 + others, "{rest} {others}: {ran}");
}

#[test]
fn helpers_that_share_memory_are_counted_once() {
    const TEST: &str = "helpers_that_share_memory_are_counted_once";
    if lacks(TEST, Need::Podman) || lacks(TEST, Need::Root) || lacks(TEST, Need::Cc) {
        return;
    }
    let dunnage = Dunnage::new();
    let [begin, end] = held(&dunnage, "catatonit", "16 64 0");
    let place = |name: &str| dunnage.state().with_file_name(name);
    std::fs::create_dir(place("hooks")).unwrap();
    for (stage, what) in [("poststart", begin), ("poststop", end)] {
        let script = place(stage);
        let name = r#"name=$(grep -o '"id": *"[0-9a-f]*"' | head -n 1 | tr -dc 0-9a-f)"#;
        std::fs::write(&script, format!("#!/bin/sh\n{name}\n{what}\n")).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let hook = format!(
            r#"{{"version":"1.0.0","hook":{{"path":"{}"}},"when":{{"always":true}},"stages":["{stage}"]}}"#,
            script.display()
        );
        std::fs::write(place("hooks").join(format!("{stage}.json")), hook).unwrap();
    }
    let known = place("containers.conf");
    std::fs::write(&known, format!("[engine]\nhooks_dir = [\"{}\"]\n", place("hooks").display())).unwrap();
    let dunnage = dunnage.with("CONTAINERS_CONF", &known.display().to_string());
    let ran = dunnage.run("run memory -s podman:net=none --set containers=2 --rounds 1 --no-html -o DIR");
    let recorded = record::load(&dunnage.directory()).unwrap_or_else(|why| panic!("{why}: {ran}"));
    let of = |series: &[Series]| mebibytes(&recorded, "podman:net=none", series);
    // Its name is that of a helper of podman's: 64 of both together and 16 of each, and a monitor. By RSS it would be 160. Helpers
    // that other tests start meanwhile share no memory.
    let (shared, own) = (of(&[names::HELPERS_SHMEM]), of(&[names::HELPERS_ANON]));
    assert!(is_about(shared, 64.0, 0.01) && (32.0..64.0).contains(&own), "{shared} {own}: {ran}");
    assert!(of(&[names::HELPERS_RSS]) > 160.0, "{ran}");
}

#[test]
fn a_tool_whose_figure_is_not_its_formulas_is_found() {
    const TEST: &str = "a_tool_whose_figure_is_not_its_formulas_is_found";
    if lacks(TEST, Need::Podman) || lacks(TEST, Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let strange = dunnage.state().with_file_name("podman");
    let words = r#"for word; do case $word in stats) echo '{"MemUsage":"9.9MB / 24GB"}'; exit;; esac; done"#;
    std::fs::write(&strange, format!("#!/bin/sh\n{words}\nexec podman \"$@\"\n")).unwrap();
    std::fs::set_permissions(&strange, std::fs::Permissions::from_mode(0o755)).unwrap();
    let ran = dunnage.run(&format!(
        "run memory -s plain=podman:net=none -s strange=podman:net=none,bin={} --set containers=2 --rounds 1 --no-html -o DIR",
        strange.display()
    ));
    let recorded = record::load(&dunnage.directory()).unwrap_or_else(|why| panic!("{why}: {ran}"));
    let analysis = ::dunnage::verdict::analyse(&recorded);
    let table = analysis.experiment_tables.iter().find(|table| table.name == "tools").expect("the tools");
    let formulas: Vec<String> =
        table.rows.iter().map(|row| serde_json::to_string(row.last().unwrap()).unwrap()).collect();
    let [plain, strange] = &formulas[..] else { panic!("{formulas:?}: {ran}") };
    assert!(!plain.contains("not that") && plain.len() > 2, "{plain}: {ran}");
    assert!(strange.contains("not that of its version"), "{strange}: {ran}");
}

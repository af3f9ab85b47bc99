//! The experiment `throttle` for real, on everything that can be limited here. Speed depends on the load of
//! the machine, so only bounds are asserted that no load can violate: at most the quota is used, no burst is
//! done before its CPU time has passed, a quota above one thread's demand throttles nothing.

use crate::left;

use crate::dunnage::{Dunnage, Ran};
use crate::support::{Need, lacks};
use dunnage::experiment::throttle::Measured;
use dunnage::record::{self, Recorded};
use dunnage::stats::quota::Load;

const MS: u64 = 1_000_000;
const PERIOD: u64 = 100 * MS;
/// The kernel grants quota to a CPU in slices of this size, so a period can lend to the next.
const SLICE: u64 = 5 * MS;
const SECONDS: u64 = 2;

/// Every sample of a run, with the label of its subject; without those of twins.
fn samples(recorded: &Recorded) -> Vec<(String, Measured)> {
    let is_twin = |subject: usize| recorded.plan.subjects[subject].twin_of.is_some();
    let cells = recorded.plan.cells.iter().zip(&recorded.series);
    cells
        .filter(|(cell, _)| !is_twin(cell.subject))
        .flat_map(|(cell, series)| {
            let label = &recorded.plan.subjects[cell.subject].label;
            let all = series.samples.iter().flatten().filter_map(Measured::of);
            all.map(|measured| (label.clone(), measured)).collect::<Vec<_>>()
        })
        .collect()
}

fn run(dunnage: &Dunnage, arguments: &str) -> (Ran, Recorded) {
    let ran =
        dunnage.run(&format!("run throttle {arguments} --set seconds={SECONDS} --rounds 1 -o DIR --full"));
    assert_eq!(ran.code, 0, "{ran}");
    let recorded = record::load(&dunnage.directory()).expect("a run directory");
    assert!(recorded.failures.is_empty(), "{ran}");
    (ran, recorded)
}

/// A tenth of a CPU, and more than one thread can use, under both loads.
fn keeps_its_quota(test: &str, needs: &[Need], subject: &str) {
    if needs.iter().any(|need| lacks(test, *need)) {
        return;
    }
    let dunnage = Dunnage::new();
    let separator = if subject.contains(':') { ',' } else { ':' };
    let both = format!("-s {subject}{separator}cpus=0.1 -s {subject}{separator}cpus=1.5");
    let (ran, recorded) = run(&dunnage, &format!("{both} --set load=bursts --set load=continuous"));
    let samples = samples(&recorded);
    assert_eq!(samples.len(), 4, "{ran}");
    for (label, measured) in &samples {
        let told = format!("{label}: {measured:?}\n{ran}");
        let quota = measured.quota.expect(&told);
        let [periods, throttled, time] = measured.throttling.expect(&told);
        assert_eq!((quota.period, measured.length), (PERIOD, SECONDS * 1000 * MS), "{told}");
        assert!(measured.window >= measured.length, "{told}");
        assert!(throttled <= periods && periods <= measured.window / PERIOD + 2, "{told}");
        let most = (measured.window / PERIOD + 1) * quota.each + SLICE;
        let own = measured.own[0] + measured.own[1];
        assert!(own <= most && measured.usage.is_some_and(|usage| usage <= most), "{told}");
        match quota.each {
            // A tenth: both loads need more in every period.
            each if each == 10 * MS => assert!(throttled > 0 && time > 0, "{told}"),
            each => {
                assert_eq!(each, 150 * MS, "{told}");
                assert_eq!((throttled, time), (0, 0), "{told}");
                assert!(measured.is_control(), "{told}");
            }
        }
        if let Load::Bursts { work, .. } = measured.demand.load {
            // If a burst uses too much, the next one uses less: by at most a clock tick and a clock reading.
            let least = work - 2 * MS;
            assert!(measured.latencies.iter().flatten().all(|latency| *latency >= least), "{told}");
            let done = measured.latencies.iter().flatten().count() as u64;
            assert!(done * work <= own + 2 * MS && done + measured.waiting == SECONDS * 10, "{told}");
        }
    }
    for words in ["what a CPU quota does to a load", "0.1 CPUs", "1.5 CPUs"] {
        assert!(ran.stdout.contains(words), "`{words}`: {ran}");
    }
    assert!(!ran.stdout.contains("a control was throttled"), "{ran}");
    assert_eq!(left::of_run(&recorded.run), Vec::<String>::new());
    assert_eq!(dunnage.left_in_state(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_bare_process_keeps_its_quota() {
    keeps_its_quota("a_bare_process_keeps_its_quota", &[Need::Root, Need::Cgroup], "bare");
}

#[test]
fn the_floor_keeps_its_quota() {
    keeps_its_quota("the_floor_keeps_its_quota", &[Need::Root, Need::Cgroup], "floor");
}

#[test]
fn runc_keeps_its_quota() {
    keeps_its_quota("runc_keeps_its_quota", &[Need::Root, Need::Runc], "runc");
}

#[test]
fn crun_keeps_its_quota() {
    keeps_its_quota("crun_keeps_its_quota", &[Need::Root, Need::Crun], "crun");
}

#[test]
fn docker_keeps_its_quota() {
    keeps_its_quota("docker_keeps_its_quota", &[Need::Docker], "docker:net=none");
}

#[test]
fn podman_keeps_its_quota() {
    keeps_its_quota("podman_keeps_its_quota", &[Need::Root, Need::Podman], "podman:net=none");
}

/// The published load, and one of several threads; both with more than a tenth of a CPU.
#[test]
fn other_loads_keep_the_quota_too() {
    const TEST: &str = "other_loads_keep_the_quota_too";
    if lacks(TEST, Need::Root) || lacks(TEST, Need::Cgroup) {
        return;
    }
    let dunnage = Dunnage::new();
    let (ran, recorded) = run(
        &dunnage,
        "-s floor:cpus=0.1 --set load=alternating --set load=continuous --set busy=50ms --set threads=3",
    );
    let samples = samples(&recorded);
    assert_eq!(samples.len(), 2, "{ran}");
    for (label, measured) in &samples {
        let told = format!("{label}: {measured:?}\n{ran}");
        assert_eq!(measured.demand.threads, 3, "{told}");
        let [periods, throttled, _] = measured.throttling.expect(&told);
        assert!(0 < throttled && throttled <= periods, "{told}");
        let most = (measured.window / PERIOD + 1) * 10 * MS + measured.demand.queues() * SLICE;
        assert!(measured.usage.is_some_and(|usage| usage <= most), "{told}");
        // It stops by the clock, so never early.
        assert!(measured.latencies.iter().flatten().all(|latency| *latency >= 50 * MS), "{told}");
    }
    assert!(samples.iter().any(|(_, one)| matches!(one.demand.load, Load::Alternating { .. })), "{ran}");
}

#[test]
fn without_a_quota_throttling_does_not_apply() {
    let dunnage = Dunnage::new();
    let (ran, recorded) = run(&dunnage, "-s bare --no-vary --set load=bursts");
    let samples = samples(&recorded);
    assert_eq!(samples.len(), 1, "{ran}");
    for (_, measured) in samples {
        assert_eq!((measured.quota, measured.throttling), (None, None), "{ran}");
    }
    assert!(ran.stdout.contains("not applicable") && ran.stdout.contains("no quota"), "{ran}");
    let table = dunnage.run("report DIR --format csv");
    let mut rows = table.stdout.lines().map(|row| row.split(',').collect::<Vec<_>>());
    let head = rows.next().expect("a header");
    let [metric, value] =
        ["metric", "value"].map(|name| head.iter().position(|own| *own == name).expect("the column"));
    let rows: Vec<_> = rows.collect();
    let values = |name: &str| {
        let own = rows.iter().filter(|row| row[metric] == name);
        own.map(|row| row[value]).collect::<Vec<_>>()
    };
    assert!(values("throttled_share").iter().all(|share| share.is_empty()), "{table}");
    // The table has the round.
    assert!(values("burst_p50").iter().any(|time| !time.is_empty()), "{table}");
    // Nothing is shown of an interrupted round.
    let path = dunnage.directory().join("samples.jsonl");
    let lines = std::fs::read_to_string(&path).expect("samples");
    let kept: Vec<_> = lines.lines().filter(|line| !line.starts_with("{\"end\"")).collect();
    assert!(kept.len() < lines.lines().count(), "{lines}");
    std::fs::write(&path, kept.join("\n") + "\n").expect("samples");
    let report = dunnage.run("report DIR --full");
    assert!(!report.stdout.contains("what a CPU quota does to a load"), "{report}");
}

#[test]
fn a_load_that_there_is_no_room_for_is_refused_with_a_reason() {
    for verb in ["plan", "run", "check"] {
        let ran = Dunnage::new()
            .run(&format!("{verb} throttle -s bare --no-vary --set load=bursts --set period=100us"));
        assert_eq!(ran.code, 2, "{ran}");
        for words in ["15000 bursts", "room for 8192", "period=184us"] {
            assert!(ran.stderr.contains(words), "`{words}`: {ran}");
        }
    }
    let ran = Dunnage::new().run("run throttle -s bare --set busy=50");
    assert_eq!(ran.code, 2, "{ran}");
    assert!(ran.stderr.contains("`busy` takes a duration from 100us to 60s"), "{ran}");
}

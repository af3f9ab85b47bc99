//! Runs on containerd: measured, with the treatment asked for, and gone afterwards, also when interrupted.

use std::path::PathBuf;

use ::dunnage::outcome::FailureClass;
use ::dunnage::plan::Cell;
use ::dunnage::record::{Cause, Recorded};
use tempfile::TempDir;

use crate::containerd::{complete, recorded, script, turn};
use crate::dunnage::{Dunnage, Ran};
use crate::left::{self, containerd};
use crate::running::Running;
use crate::support::{Need, Sweeps, lacks, skip};

/// The values of a metric, over all cells of the experiment and the subject.
fn values(run: &Recorded, experiment: &str, subject: &str, metric: &str) -> Vec<f64> {
    let found = run.plan.cells.iter().enumerate().filter(|(_, cell)| {
        cell.experiment == experiment && run.plan.subjects[cell.subject].label == subject
    });
    let of_cell = |(index, cell): (usize, &Cell)| {
        let metrics = run.plan.metrics(cell);
        let metric = metrics.iter().position(|one| one.name == metric).expect("a metric");
        run.series[index].values[metric].clone()
    };
    found.flat_map(of_cell).collect()
}

/// The recorded fact of every treatment of this subject.
fn fact<'a>(run: &'a Recorded, subject: &str, name: &str) -> Vec<&'a str> {
    let cells = run.plan.cells.iter().zip(&run.series);
    let own = cells.filter(|(cell, _)| run.plan.subjects[cell.subject].label == subject);
    let numbers = own.flat_map(|(_, series)| series.treatments.iter().flatten());
    let facts = numbers.flat_map(|number| &run.treatments[*number]);
    facts.filter(|(own, _)| own == name).map(|(_, fact)| fact.as_str()).collect()
}

#[test]
fn containerd_is_measured_and_leaves_nothing() {
    if lacks("containerd_is_measured_and_leaves_nothing", Need::Containerd) {
        return;
    }
    let _turn = turn();
    let dunnage = Dunnage::new();
    let (ran, run) = complete(&dunnage, "run start lifecycle exec -s bare -s containerd --rounds 2 -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    assert!(run.failures.is_empty(), "{:?}", run.failures);
    let least = |values: Vec<f64>| {
        assert!(values.len() >= 2, "{values:?}");
        values.into_iter().fold(f64::INFINITY, f64::min)
    };
    let first = least(values(&run, "start", "containerd", "first_instruction"));
    assert!(first > least(values(&run, "start", "bare", "first_instruction")));
    assert!(least(values(&run, "start", "containerd", "returned")) > first);
    for verb in ["create", "start", "exec", "stop", "remove"] {
        let values = values(&run, "lifecycle", "containerd", verb);
        assert_eq!(values.len(), 2);
        assert!(values.iter().all(|value| *value > 0.0 && *value < 8.0), "{verb}: {values:?}");
    }
    assert!(least(values(&run, "exec", "containerd", "returned")) > 0.0);
    for (name, expected) in [("pid", "private"), ("mnt", "private"), ("seccomp", "0"), ("root", "overlay")] {
        let found = fact(&run, "containerd", name);
        assert!(!found.is_empty() && found.iter().all(|fact| *fact == expected), "{name}: {found:?}");
    }
    assert_eq!(dunnage.run("sweep").code, 0);
}

#[test]
fn what_containerd_is_asked_for_is_found_inside() {
    const TEST: &str = "what_containerd_is_asked_for_is_found_inside";
    if lacks(TEST, Need::Containerd) {
        return;
    }
    let _turn = turn();
    let mut subjects = vec![
        "equal=containerd:log=none,net=none,seccomp=default",
        "shared=containerd:net=host",
        "limited=containerd:cpus=0.5,memory=64MiB",
        "native=containerd:snapshotter=native",
    ];
    if !lacks(TEST, Need::Crun) {
        subjects.push("crun=containerd+crun");
    }
    let dunnage = Dunnage::new();
    let named = subjects.join(" -s ");
    let arguments = format!("run start exec -s {named} --rounds 1 --set prestate=primed -o DIR");
    let (ran, run) = complete(&dunnage, &arguments);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(run.failures.is_empty() && !ran.stderr.contains("not available"), "{ran}");
    for subject in subjects.iter().filter_map(|subject| subject.split_once('=')) {
        assert_eq!(values(&run, "start", subject.0, "returned").len(), 1, "{ran}");
        assert_eq!(values(&run, "exec", subject.0, "returned").len(), 1, "{ran}");
    }
    let all_are = |subject: &str, name: &str, expected: &str| {
        let found = fact(&run, subject, name);
        assert!(
            !found.is_empty() && found.iter().all(|fact| *fact == expected),
            "{subject} {name}: {found:?}"
        );
    };
    all_are("equal", "seccomp", "2");
    all_are("equal", "network", "private:lo");
    all_are("shared", "network", "host");
    assert_eq!(dunnage.run("sweep").code, 0);
}

/// A `ctr` that drops an option with its value, and does the rest.
fn forgets(option: &str, subject: &str, words: &str) {
    let place = TempDir::new().expect("a directory");
    let real = dunnage::subject::on_path("ctr").expect("it is ready");
    let text = format!(
        "first=yes\nskip=\nfor word in \"$@\"; do\n  [ -n \"$first\" ] && set -- && first=\n  \
         if [ -n \"$skip\" ]; then skip=; continue; fi\n  if [ \"$word\" = {option} ]; then skip=yes; continue; fi\n  \
         set -- \"$@\" \"$word\"\ndone\nexec {} \"$@\"",
        real.display()
    );
    let ctr = script(place.path(), "forgetful", &text);
    let dunnage = Dunnage::new();
    let subject = format!("{subject},bin={}", ctr.display());
    let ran = dunnage.run(&format!("run start -s bare -s asked={subject} --rounds 1 -o DIR"));
    assert!(ran.stderr.contains("treatment") && ran.stderr.contains(words), "{ran}");
    let swept = dunnage.run("sweep");
    assert_eq!(swept.code, 0, "{swept}");
    assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new(), "{swept}");
}

#[test]
fn what_a_client_of_containerd_forgets_is_noticed() {
    if lacks("what_a_client_of_containerd_forgets_is_noticed", Need::Containerd) {
        return;
    }
    let _turn = turn();
    forgets("--cpu-quota", "containerd:cpus=0.5", "a CPU limit of 0.5 was asked for");
    forgets("--memory-limit", "containerd:memory=64MiB", "a memory limit of 67108864 was asked for");
    if !lacks("what_a_client_of_containerd_forgets_is_noticed", Need::Crun) {
        forgets("--runc-binary", "containerd+crun:net=none", "did not run");
    }
}

/// In the first cell of this experiment that begins.
fn living<'a>(dunnage: &'a Dunnage, experiment: &str) -> Running<'a> {
    let arguments = "run start lifecycle exec -s containerd --rounds 50 --set prestate=primed -o DIR";
    let mut run = Running::start(dunnage, arguments);
    run.await_event(&["\"cell begins\"", experiment]);
    run
}

/// Each is sent while something of the run is in containerd or on the machine.
#[test]
fn a_stopped_or_killed_run_of_containerd_leaves_nothing() {
    const TEST: &str = "a_stopped_or_killed_run_of_containerd_leaves_nothing";
    if lacks(TEST, Need::Containerd) {
        return;
    }
    let _turn = turn();
    let _sweeps = Sweeps::begin();
    let moments = [
        ("\"start\"", libc::SIGINT),
        ("\"lifecycle\"", libc::SIGINT),
        ("\"lifecycle\"", libc::SIGKILL),
        ("\"exec\"", libc::SIGKILL),
    ];
    for (experiment, signal) in moments {
        let dunnage = Dunnage::new();
        let (run, status) = living(&dunnage, experiment).signal_with(signal, left::of_run);
        if signal == libc::SIGINT {
            assert_eq!(status.code(), Some(5), "{status}");
            assert_eq!(left::of_run(&run), Vec::<String>::new(), "{experiment}, stopped and not swept");
        }
        let Some(swept) = swept_alone(TEST, &dunnage) else { return };
        assert_eq!(swept.code, 0, "{swept}");
        assert_eq!(left::of_run(&run), Vec::<String>::new(), "{experiment}, signal {signal}: {swept}");
        let rest = dunnage.left_in_state();
        assert_eq!(rest, Vec::<PathBuf>::new(), "{experiment}, signal {signal}: {swept}");
        assert_namespace_gone(&swept.to_string());
    }
}

/// Sweeps when no other dunnage runs, whose image would have to stay; waits a while for that.
fn swept_alone(test: &str, dunnage: &Dunnage) -> Option<Ran> {
    for _ in 0..40 {
        let swept = dunnage.run("sweep");
        if !swept.stdout.contains("another dunnage is running") {
            return Some(swept);
        }
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    skip(test, Need::Containerd, "another dunnage is running");
    None
}

fn assert_namespace_gone(told: &str) {
    for socket in containerd::sockets() {
        assert!(!containerd::has_namespace(socket), "{:?}\n{told}", containerd::holds(socket));
    }
    let empty_or_gone = std::fs::read_dir(containerd::STATES).map_or(0, Iterator::count);
    assert_eq!(empty_or_gone, 0, "{told}");
}

/// A container in dunnage's namespace with a name like dunnage's and without its labels.
struct Foreign {
    socket: &'static str,
    name: String,
}

impl Foreign {
    fn plant() -> Foreign {
        let sockets = containerd::sockets();
        let holds_image =
            |socket: &&&str| !containerd::asked(socket, &["images", "ls", "--quiet"]).is_empty();
        let socket = sockets.iter().find(holds_image).expect("a containerd with our image");
        let images = containerd::asked(socket, &["images", "ls", "--quiet"]);
        let image = images.lines().next().expect("an image");
        let name = format!("dunnage-deadbeef-{}x", std::process::id());
        containerd::asked(socket, &["containers", "create", image, &name, "/nothing"]);
        let foreign = Foreign { socket, name };
        assert!(foreign.is_there(), "it could not be made");
        foreign
    }

    fn is_there(&self) -> bool {
        let names = containerd::asked(self.socket, &["containers", "ls", "--quiet"]);
        names.lines().any(|name| name == self.name)
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let words = ["--address", self.socket, "--namespace", "dunnage", "containers", "delete", &self.name];
        left::tried("ctr", &words);
    }
}

#[test]
fn what_others_keep_in_our_namespace_is_left_and_said() {
    const TEST: &str = "what_others_keep_in_our_namespace_is_left_and_said";
    if lacks(TEST, Need::Containerd) {
        return;
    }
    let _turn = turn();
    let dunnage = Dunnage::new();
    let ran = dunnage.run("check start -s containerd --set prestate=primed");
    assert_eq!(ran.code, 0, "{ran}");
    let foreign = Foreign::plant();
    let Some(swept) = swept_alone(TEST, &dunnage) else { return };
    assert_eq!(swept.code, 0, "{swept}");
    assert!(foreign.is_there(), "{swept}");
    let told = format!("namespace `dunnage` stays in containerd: it holds `{}`", foreign.name);
    assert!(format!("{swept}").contains(&told), "{swept}");
    // Without this container the namespace is removed too.
    drop(foreign);
    let Some(swept) = swept_alone(TEST, &dunnage) else { return };
    assert_eq!(swept.code, 0, "{swept}");
    assert_namespace_gone(&swept.to_string());
}

#[test]
fn a_failure_of_containerd_is_a_row_and_the_others_go_on() {
    if lacks("a_failure_of_containerd_is_a_row_and_the_others_go_on", Need::Containerd) {
        return;
    }
    let _turn = turn();
    let place = TempDir::new().expect("a directory");
    let real = dunnage::subject::on_path("ctr").expect("it is ready");
    let text = format!(
        "for word in \"$@\"; do\n  [ \"$word\" = run ] || continue\n  echo >> $0.runs\n  \
         [ $(wc -l < $0.runs) -gt 2 ] && echo 'ctr: it is broken' >&2 && exit 1\ndone\nexec {} \"$@\"",
        real.display()
    );
    let ctr = script(place.path(), "ctr-that-breaks", &text);
    let dunnage = Dunnage::new();
    let subjects = format!("-s bare -s breaks=containerd:bin={}", ctr.display());
    let ran = dunnage.run(&format!("run start {subjects} --rounds 1 --set prestate=primed -o DIR"));
    assert_eq!(ran.code, 6, "{ran}");
    let run = recorded(&dunnage, &ran);
    assert!(!run.failures.is_empty(), "{ran}");
    for row in &run.failures {
        let Cause::Failed(failure) = &row.cause else { panic!("{:?}", row.cause) };
        assert_eq!(failure.class, FailureClass::Crash);
        assert!(failure.to_string().contains("it is broken"), "{failure}");
    }
    assert!(values(&run, "start", "breaks", "returned").iter().all(|value| value.is_nan()), "{ran}");
    assert_eq!(values(&run, "start", "bare", "returned").len(), 1);
    assert_eq!(dunnage.run("sweep").code, 0);
}

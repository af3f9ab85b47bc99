//! Limits on CPU time, for real: in force on every subject, refused with clear words where they are
//! impossible, and nothing left of them, however a run ends.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::dunnage::{Dunnage, Ran};
use crate::left;
use crate::running::Running;
use crate::support::{LIMITED, Need, at_hand, lacks, skip, with};
use dunnage::record;
use dunnage::subject::on_path;
use dunnage::sys::cgroup::{self, CgroupPlan, CpuLimit};
use dunnage::sys::signals::Interrupts;
use dunnage::sys::spawn::{self, Program};
use dunnage::units::Nanos;

/// Long enough for anything that must happen; a test that reaches it has failed.
const AMPLE: Duration = Duration::from_secs(30);

/// Why limits cannot be set on this host, if they cannot.
fn cgroups() -> Result<CgroupPlan, String> {
    Need::Root.ready()?;
    CgroupPlan::here().map_err(|error| error.to_string())?.for_cpu().map_err(|why| why.to_string())
}

/// The plan; `None` if the test must return, which is reported.
fn cgroups_for(test: &str) -> Option<CgroupPlan> {
    cgroups().inspect_err(|why| skip(test, Need::Cgroup, why)).ok()
}

#[test]
fn half_a_cpu_is_in_force_everywhere_and_nothing_is_left() {
    const TEST: &str = "half_a_cpu_is_in_force_everywhere_and_nothing_is_left";
    if cgroups_for(TEST).is_none() {
        return;
    }
    let subjects = at_hand(TEST, &LIMITED);
    let dunnage = Dunnage::new();
    let arguments = with(&subjects, "cpus=0.5");
    let ran = dunnage.run(&format!("run start {arguments} --rounds 2 --set prestate=idle -o DIR"));
    assert!(ran.code == 0 && !ran.stderr.contains("not available"), "{ran}");
    let recorded = record::load(&dunnage.directory()).expect("a run directory");
    assert!(recorded.failures.is_empty(), "{ran}");
    // The floor has a variant next to it.
    let asked = recorded.plan.subjects.iter().filter(|one| one.twin_of.is_none() && one.only_in.is_empty());
    assert_eq!(asked.count(), subjects.len());
    assert!(!recorded.treatments.is_empty(), "{ran}");
    for facts in &recorded.treatments {
        assert!(facts.contains(&("cpus".into(), "0.5".into())), "{facts:?}");
    }
    assert_eq!(left::of_run(&recorded.run), Vec::<String>::new());
    assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new());
}

#[test]
fn whoever_enters_a_limited_container_is_limited_too() {
    const TEST: &str = "whoever_enters_a_limited_container_is_limited_too";
    if cgroups_for(TEST).is_none() {
        return;
    }
    let subjects = at_hand(TEST, &LIMITED[1..5]);
    let arguments = with(&subjects, "cpus=0.5");
    let ran = Dunnage::new().run(&format!("check exec {arguments} --set prestate=idle"));
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(facts(&ran, "cpus=0.5"), subjects.len(), "{ran}");
}

/// In how many cells `check` found this treatment.
fn facts(ran: &Ran, fact: &str) -> usize {
    ran.stdout.lines().filter(|line| line.split_whitespace().any(|word| word == fact)).count()
}

#[test]
fn no_limit_can_be_asked_for() {
    let ran = Dunnage::new().run("check start -s bare:cpus=none --set prestate=idle");
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stdout.contains("start prestate=idle bare\n"), "the same subject as without the key: {ran}");
}

#[test]
fn a_burst_is_in_force_or_it_is_told_who_left_it_out() {
    const TEST: &str = "a_burst_is_in_force_or_it_is_told_who_left_it_out";
    let Some(plan) = cgroups_for(TEST) else { return };
    let has_bursts = |place: &cgroup::Place| {
        let above = place.parent.parent().expect("a directory above ours");
        above.join("cpu.cfs_burst_us").exists() || above.join("init.scope/cpu.max.burst").exists()
    };
    if !plan.places.iter().any(has_bursts) {
        return skip(TEST, Need::Cgroup, "this kernel has no bursts");
    }
    let dunnage = Dunnage::new();
    for subject in at_hand(TEST, &LIMITED[..4]) {
        let arguments = with(&[subject], "cpus=0.5,burst=20ms");
        let ran = dunnage.run(&format!("check start {arguments} --set prestate=idle"));
        let ours = ["bare", "floor"].contains(&subject);
        if ran.code == 0 || ours {
            assert_eq!((ran.code, facts(&ran, "burst=20000us")), (0, 1), "{ran}");
            continue;
        }
        // An older runtime accepts the key and does nothing.
        let told = "treatment: not as asked: a CPU burst of 20.0 ms was asked for and none is in force";
        assert!(ran.stdout.contains(told) && ran.stdout.contains("such as runc 1.2 or newer"), "{ran}");
    }
    assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new());
}

#[test]
fn a_runtime_that_leaves_the_limit_out_is_found_out() {
    const TEST: &str = "a_runtime_that_leaves_the_limit_out_is_found_out";
    if cgroups_for(TEST).is_none() || lacks(TEST, Need::Crun) {
        return;
    }
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("crun");
    let real = on_path("crun").expect("it is installed");
    let text = format!(
        "#!/bin/sh\nlast=\nfor word in \"$@\"; do\n  [ \"$last\" = --bundle ] && \
         sed -i 's/\"quota\":50000/\"quota\":90000/' \"$word/config.json\"\n  last=$word\ndone\nexec {} \"$@\"\n",
        real.display()
    );
    fs::write(&path, text).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our file");
    let dunnage = Dunnage::new();
    let ran = dunnage.run(&format!("check start -s crun:cpus=0.5,bin={}", path.display()));
    assert_eq!(ran.code, 4, "{ran}");
    let told = "treatment: not as asked: a CPU limit of 0.5 was asked for and 0.9 is in force";
    assert!(ran.stdout.contains(told), "{ran}");
    assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new());
}

#[test]
fn what_cannot_be_a_limit_is_a_mistake_in_usage() {
    let dunnage = Dunnage::new();
    for subject in
        ["bare:cpus=0.001", "runc:cpus=-1", "docker:cpus=nan", "podman:cpus=inf", "floor:cpus=half"]
    {
        let ran = dunnage.run(&format!("check start -s {subject}"));
        assert_eq!(ran.code, 2, "{ran}");
        assert!(ran.stderr.contains("`cpus` takes a number of CPUs from 0.01"), "{ran}");
    }
    let ran = dunnage.run("check start -s runsc:cpus=0.5");
    assert!(ran.code == 2 && ran.stderr.contains("`runsc` has no key `cpus`"), "{ran}");
}

#[test]
fn what_the_kernel_does_not_take_is_told_with_a_remedy() {
    const TEST: &str = "what_the_kernel_does_not_take_is_told_with_a_remedy";
    if cgroups_for(TEST).is_none() {
        return;
    }
    let dunnage = Dunnage::new();
    let mut cases = vec![
        ("bare:burst=20ms", "add `cpus`"),
        ("floor:cpus=0.1,burst=20ms", "`burst=10000us` or less"),
        ("bare:cpus=1e9", "unsupported: cannot limit CPU time by"),
        ("floor:cpus=1e9", "the kernel does not allow this limit"),
    ];
    let of_others = [
        (Need::Docker, "docker:cpus=100000", "docker allows at most as many CPUs as there are"),
        (Need::Runc, "runc:cpus=1e9", "the kernel does not allow this limit"),
    ];
    for (need, subject, words) in of_others {
        if !at_hand(TEST, &[(need, subject)]).is_empty() {
            cases.push((subject, words));
        }
    }
    for (subject, words) in cases {
        let ran = dunnage.run(&format!("check start -s {subject} --set prestate=idle"));
        assert_eq!(ran.code, 4, "{ran}");
        assert!(ran.stdout.contains(words), "{subject}: {ran}");
        assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new(), "{ran}");
    }
}

#[test]
fn who_may_make_no_cgroup_hears_so() {
    const TEST: &str = "who_may_make_no_cgroup_hears_so";
    if lacks(TEST, Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let copy = dunnage.given_to(65534);
    let wrapper =
        format!("setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps -all {}", copy.display());
    for subject in ["bare", "runc"] {
        let ran = dunnage.through(&wrapper, &format!("check start -s {subject}:cpus=0.5"));
        assert_eq!(ran.code, 4, "{ran}");
        assert!(ran.stdout.contains("remedy: run as root"), "{ran}");
    }
}

/// A program in dunnage's cgroups is there from its first instruction, is throttled, and is gone with them.
#[test]
fn a_program_that_wants_more_than_its_quota_is_throttled() {
    const TEST: &str = "a_program_that_wants_more_than_its_quota_is_throttled";
    let Some(plan) = cgroups_for(TEST) else { return };
    let established = plan.establish().expect("dunnage's directories");
    let name = format!("dunnage-test-{}", std::process::id());
    plan.make_limited(&name, &CpuLimit::new(0.05, None)).expect("cgroups");
    let loops = "cat /proc/self/cgroup; while :; do :; done";
    let program = Program::new(Path::new("/bin/sh"), ["-c", loops]).expect("a shell");
    let child = spawn::start(&program.in_cgroups(&plan, &name)).expect("it starts");
    let began = Instant::now();
    while throttled(&plan, &name) < 3 && began.elapsed() < AMPLE {
        std::thread::sleep(Duration::from_millis(20));
    }
    let periods = throttled(&plan, &name);
    plan.remove(&name).expect("it goes, with the program in it");
    let ended = child.wait(Nanos::from_millis(5000), None::<&Interrupts>).expect("it was killed");
    assert_eq!(ended.status, spawn::Status::Killed(libc::SIGKILL));
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    let own = said.lines().filter(|line| line.ends_with(&format!("/dunnage/{name}"))).count();
    assert_eq!(own, plan.places.len(), "{said}");
    assert!(periods >= 3, "{periods} periods throttled in {:?}", began.elapsed());
    assert!(plan.directories(&name).iter().all(|path| !path.exists()));
    drop(established);
    plan.retire().expect("only dunnage's");
}

fn throttled(plan: &CgroupPlan, name: &str) -> u64 {
    let texts = plan.directories(name).into_iter().map(|path| fs::read_to_string(path.join("cpu.stat")));
    let counts = texts.flatten().filter_map(|text| {
        text.lines().find_map(|line| line.strip_prefix("nr_throttled ")?.trim().parse().ok())
    });
    counts.max().unwrap_or(0)
}

#[test]
fn nothing_is_left_after_a_kill_or_an_interruption() {
    const TEST: &str = "nothing_is_left_after_a_kill_or_an_interruption";
    if cgroups_for(TEST).is_none() {
        return;
    }
    let dunnage = Dunnage::new();
    let arguments = "run start -s bare:cpus=0.5 -s floor:cpus=0.5 --set prestate=primed --rounds 5000 -o DIR";
    // Its cgroups, its processes, its mounts.
    let look = |run: &str| left::of_run_in(&[], run);
    for signal in [libc::SIGINT, libc::SIGKILL, libc::SIGKILL] {
        let mut running = Running::start(&dunnage, arguments);
        running.await_event(&["\"round ends\""]);
        let run = if signal == libc::SIGINT {
            let (run, status) = running.signal_with(signal, look);
            assert_eq!(status.code(), Some(5), "{status}");
            run
        } else {
            let (run, there) = running.kill_with(look);
            let _ = fs::remove_dir_all(dunnage.directory());
            let next = dunnage.run("run start -s bare --rounds 1 -o DIR");
            assert_eq!(next.code, 0, "{there:?}, {next}");
            run
        };
        assert_eq!(left::of_run(&run), Vec::<String>::new());
        assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new());
        let _ = fs::remove_dir_all(dunnage.directory());
    }
}

/// A run that was killed while its probe worked in a cgroup: the next run kills the probe and removes the
/// cgroup.
#[test]
fn a_bare_probe_that_outlived_its_run_is_ended_with_its_cgroups() {
    const TEST: &str = "a_bare_probe_that_outlived_its_run_is_ended_with_its_cgroups";
    let Some(plan) = cgroups_for(TEST) else { return };
    let dunnage = Dunnage::new();
    let run = format!("{:08x}", std::process::id());
    let name = format!("dunnage-{run}-000001");
    let journals = dunnage.state().join("journal");
    fs::create_dir_all(&journals).expect("a directory");
    let entry = format!(
        "{{\"made\":{{\"id\":0,\"resource\":{{\"kind\":\"container\",\"id\":\"{name}\",\"attributes\":{{\"subject\":\"bare:cpus=0.5\"}}}}}}}}\n"
    );
    fs::write(journals.join(format!("{run}.jsonl")), entry).expect("a journal");
    let _established = plan.establish().expect("dunnage's directories");
    plan.make_limited(&name, &CpuLimit::new(0.5, None)).expect("cgroups");
    let program = Program::new(Path::new("/bin/sleep"), ["1000"]).expect("a program");
    let child = spawn::start(&program.in_cgroups(&plan, &name)).expect("it starts");
    let next = dunnage.run("run start -s bare --rounds 1 -o DIR");
    assert_eq!(next.code, 0, "{next}");
    let ended = child.wait(Nanos::from_millis(5000), None::<&Interrupts>).expect("it was killed");
    assert_eq!(ended.status, spawn::Status::Killed(libc::SIGKILL), "{next}");
    assert_eq!(left::of_run(&run), Vec::<String>::new(), "{next}");
    assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new());
}

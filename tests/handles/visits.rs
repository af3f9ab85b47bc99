//! Ramps of containers that are weighed: half a ramp is a result up to where it came, what is planted is found with who pays for it,
//! and nothing is left.

use std::os::unix::fs::PermissionsExt;

use ::dunnage::experiment::memory::{names, slope};
use ::dunnage::names::Series;
use ::dunnage::record;

use super::*;
use crate::dunnage::finished;

/// A runtime that does this before it does what it was asked for; `$@` are its words.
fn runtime(dunnage: &Dunnage, name: &str, before: &str) -> PathBuf {
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
        "set -- --root {0} \"$@\"; for word; do case $word in create) \
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
    assert!(mebibytes(&recorded, "cut", &[names::OWN_KERNEL]) > 0.0);
    // Nothing is left of either.
    assert_eq!(left::of_run(&recorded.environment.run), Vec::<String>::new());
    let names = std::fs::read_dir(&root).unwrap().flatten().map(|one| one.file_name());
    let containers = names.filter(|name| !name.to_string_lossy().starts_with('.'));
    assert_eq!(containers.collect::<Vec<_>>(), Vec::<std::ffi::OsString>::new());
}

/// The host's files that a program in Python needs.
const PYTHON: &str = "--mount /usr:/usr:ro --mount /lib:/lib:ro --mount /lib64:/lib64:ro";

/// The content of the planted container: so many mebibytes without a file, as many shared, a file, and threads.
const PLANT: &str = "import mmap, os, sys, threading, time
mebibytes, threads = int(sys.argv[1]), int(sys.argv[2])
own = mmap.mmap(-1, max(mebibytes, 1) << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
shared = mmap.mmap(-1, max(mebibytes, 1) << 20, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
for at in range(0, mebibytes << 20, 4096):
    own[at] = shared[at] = 1
with open('/planted', 'wb') as file:
    file.write(bytes(mebibytes << 19))
    os.fsync(file.fileno())
threading.stack_size(65536)
for _ in range(threads):
    threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
time.sleep(3600)
";

#[test]
fn planted_memory_is_found_in_the_container() {
    const TEST: &str = "planted_memory_is_found_in_the_container";
    if lacks(TEST, Need::Crun) || lacks(TEST, Need::Root) || !Path::new("/usr/bin/python3").exists() {
        return;
    }
    let weighed = |size: usize, threads: usize| {
        let dunnage = Dunnage::new();
        let script = dunnage.state().with_file_name("plant.py");
        std::fs::write(&script, PLANT).unwrap();
        let mut command = dunnage.command(&format!(
            "run memory -s crun --set containers=4 --rounds 1 --no-html -o DIR {PYTHON} --mount {}:/plant.py:ro",
            script.display()
        ));
        command.arg("--cmd").arg(format!("/usr/bin/python3 /plant.py {size} {threads}"));
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

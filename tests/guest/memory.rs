//! What containers weigh where only cgroup v2 is mounted: the kernel tells parts of its memory there, and limits are met without the
//! count of larger charges.

use ::dunnage::experiment::memory::limit::names as limit;
use ::dunnage::experiment::memory::names;
use ::dunnage::outcome::Sample;
use ::dunnage::plan::Cell;
use ::dunnage::record;

use super::left;
use crate::support::guest::Done;

/// What runs in the guest.
pub const SCRIPT: &str = "
find /sys/fs/cgroup -type d > before
dunnage run memory -s crun --set containers=4 --rounds 1 --no-html -o run > report; echo $? > run.code
dunnage run memory-limit -s floor -s crun --rounds 1 --no-html -o limit > limits; echo $? > limit.code
find /sys/fs/cgroup -type d > after
";

/// Looks at what it left.
pub fn check(done: &Done) {
    let (report, limits) = (left(done, "memory/report"), left(done, "memory/limits"));
    println!("{report}\n{limits}\n{done}");
    assert_eq!((left(done, "memory/run.code"), left(done, "memory/limit.code")), ("0".into(), "0".into()));
    assert_eq!(left(done, "memory/before"), left(done, "memory/after"), "cgroups were left behind");
    let weighed = sample(done, "run", "crun");
    let of = |series| weighed.series(series).unwrap_or_else(|| panic!("{series}: {report}")).to_vec();
    assert_eq!(of(names::CONTAINERS), [0, 1, 2, 4, 0]);
    // The parts are of the whole at each step. Stacks belong to those who start a process.
    let parts = [names::STACKS, names::PAGE_TABLES, names::PER_CPU, names::SLAB].map(of);
    let (kernel, reclaimable) = (of(names::OWN_KERNEL), of(names::RECLAIMABLE));
    for (step, kernel) in kernel.into_iter().enumerate() {
        let sum: i64 = parts.iter().map(|part| part[step]).sum();
        assert!(sum <= kernel && sum * 10 >= kernel * 7, "{parts:?} {kernel}: {report}");
        let most = parts[3][step] + of(names::OWN_FILE)[step] + of(names::OWN_SHMEM)[step];
        assert!((0..=most).contains(&reclaimable[step]), "{reclaimable:?} {parts:?}: {report}");
    }
    for subject in ["floor", "crun"] {
        let limited = sample(done, "limit", subject);
        let [smallest, comfortable, peak] =
            [limit::SMALLEST, limit::COMFORTABLE, limit::PEAK].map(|name| limited.counter(name).unwrap());
        assert!(65_536 < smallest && smallest <= comfortable, "{limits}");
        // Above the most that was ever charged, nothing is to be charged.
        assert!(comfortable <= peak + 2 * 65_536, "{comfortable} {peak}: {limits}");
    }
}

/// The only sample of a subject in a run.
fn sample(done: &Done, run: &str, subject: &str) -> Sample {
    let path = done.files().join("memory").join(run);
    let recorded = record::load(&path).unwrap_or_else(|why| panic!("{why}\n{done}"));
    let is_its = |cell: &Cell| recorded.plan.subjects[cell.subject].label == subject;
    let cell = recorded.plan.cells.iter().position(is_its).expect("a cell of each subject");
    recorded.series[cell].samples[0].clone().unwrap_or_else(|| panic!("{:?}", recorded.failures))
}

//! A quota is kept, and its counters are read, where only cgroup v2 is mounted. Times measured in an emulated
//! machine mean nothing; the bounds of a quota do.

use std::collections::BTreeSet;

use dunnage::experiment::throttle::Measured;
use dunnage::record;

use super::left;
use crate::support::guest::Done;

/// What runs in the guest. A runtime starts inside the cgroup that it limits: with a tenth of an emulated CPU that takes minutes.
pub const SCRIPT: &str = "
dunnage run throttle -s floor:cpus=0.1 -s crun:cpus=0.5 -s floor:cpus=1.9 --set load=continuous --set seconds=1 --rounds 2 --no-html -o run > report
echo $? > run.code; cat report
";

/// Looks at what it left.
pub fn check(done: &Done) {
    assert_eq!(left(done, "throttle/run.code"), "0", "{done}");
    let recorded = record::load(&done.files().join("throttle").join("run")).expect("a run directory");
    assert!(recorded.failures.is_empty(), "{done}");
    let samples = recorded.series.iter().flat_map(|series| series.samples.iter().flatten());
    let samples: Vec<_> = samples.filter_map(Measured::of).collect();
    // The first subject of each layer has a twin.
    assert_eq!(samples.len(), 10, "{done}");
    let (mut controls, mut kept) = (Vec::new(), BTreeSet::new());
    for measured in samples {
        let quota = measured.quota.expect("a quota");
        let [periods, throttled, time] = measured.throttling.expect("counters");
        assert!(throttled <= periods, "{measured:?}\n{done}");
        // Counted in microseconds, and reported in nanoseconds like everything else.
        assert!(time % 1000 == 0 && measured.usage.is_some_and(|usage| usage % 1000 == 0), "{measured:?}");
        // An emulated CPU that stands still for a while counts as used, and the kernel takes that back in later periods, but not each
        // time. Without the quota ten times as much would be used with a tenth of a CPU, and twice as much with half.
        let whole = (measured.window / quota.period + 1) * quota.each;
        let usage = measured.usage.expect("usage");
        assert!(0 < usage && usage <= whole * 3 / 2, "{measured:?}\n{done}");
        if usage <= whole + 5_000_000 {
            kept.insert(quota.each);
        }
        match quota.each {
            10_000_000 | 50_000_000 => assert!(throttled > 0 && time > 0, "{measured:?}\n{done}"),
            _ => controls.push((throttled, time)),
        }
    }
    assert_eq!(kept, BTreeSet::from([10_000_000, 50_000_000, 190_000_000]), "{done}");
    // The kernel refills a quota late if the emulator itself has to wait, but not each time.
    assert!(controls.contains(&(0, 0)), "{controls:?}\n{done}");
}

//! youki and gVisor's runsc from bundles.

use crate::containerd::{recorded, turn};
use crate::dunnage::Dunnage;
use crate::support::{Need, lacks};

fn starts(runtime: &str) {
    let _turn = turn();
    let dunnage = Dunnage::new();
    let ran = dunnage.run(&format!("check start -s {runtime}"));
    assert_eq!(ran.code, 0, "{ran}");
    let ran = dunnage.run(&format!("run start -s bare -s {runtime} --rounds 2 -o DIR"));
    assert_eq!(ran.code, 0, "{ran}");
    let run = recorded(&dunnage, &ran);
    assert!(run.failures.is_empty(), "{:?}", run.failures);
    let ran = dunnage.run(&format!("check exec lifecycle -s {runtime}:seccomp=off"));
    assert_eq!(ran.code, 0, "{ran}");
}

#[test]
fn youki_starts_containers() {
    if !lacks("youki_starts_containers", Need::Youki) {
        starts("youki");
    }
}

#[test]
fn runsc_starts_containers() {
    if !lacks("runsc_starts_containers", Need::Runsc) {
        starts("runsc");
    }
}

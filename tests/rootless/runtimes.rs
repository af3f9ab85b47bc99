//! Runtimes that an ordinary user starts, in a user namespace and without a cgroup of their own.

use dunnage::launch::names;
use dunnage::record::{self, Cause, FailureRow};
use dunnage::verdict::lost_too_many;

use crate::dunnage::Dunnage;
use crate::left;
use crate::support::{Need, lacks, skip};

/// Becomes a user of no rights.
const USER: &str = "setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all";

fn measures(test: &str, runtime: &str, need: Need) {
    if lacks(test, Need::Root) || lacks(test, need) {
        return;
    }
    let dunnage = Dunnage::new();
    let allowed = dunnage.through(&format!("{USER} unshare --user --map-root-user"), "true");
    if allowed.code != 0 {
        return skip(test, Need::Userns, &allowed.stderr);
    }
    let program = dunnage.given_to(65534);
    let ran = dunnage.through(
        &format!("{USER} {}", program.display()),
        &format!("run start exec lifecycle -s bare -s {runtime} --rounds 4 --set prestate=primed -o DIR"),
    );
    let run = record::load(&dunnage.directory()).expect("a run directory");
    let is_short = (0..run.plan.cells.len()).any(|cell| lost_too_many(&run, cell).is_some());
    assert_eq!(ran.code, if is_short { 6 } else { 0 }, "{ran}");
    assert!(!ran.stderr.contains("not available"), "{ran}");
    // Now and then crun 1.8 cannot enter a user's container: `setns(pid=…, CLONE_NEWUSER): Operation not permitted`.
    let is_known = |row: &FailureRow| match &row.cause {
        Cause::Failed(failure) => {
            runtime == "crun" && failure.words.as_ref().is_some_and(|words| words.contains("fail startup"))
        }
        Cause::Skipped(_) => false,
    };
    assert!(run.failures.iter().all(is_known), "{:?}", run.failures);
    for _ in &run.failures {
        crate::support::note("crun could not enter a user's container");
    }
    let own = |cell: &usize| run.plan.entry(*cell).label == runtime;
    let cells: Vec<usize> = (0..run.plan.cells.len()).filter(own).collect();
    assert_eq!(cells.len(), 3, "{ran}");
    for cell in cells {
        let values: Vec<f64> =
            run.series[cell].values[0].iter().copied().filter(|one| !one.is_nan()).collect();
        assert!(!values.is_empty() && values.iter().all(|value| *value > 0.0), "{ran}");
        let users: Vec<_> = run.facts(cell, names::USER).flatten().collect();
        assert!(!users.is_empty() && users.iter().all(|user| *user == "private"), "{users:?}: {ran}");
    }
    assert_eq!(left::of_run(&run.run), Vec::<String>::new(), "{ran}");
    assert_eq!(dunnage.left_in_state(), Vec::<std::path::PathBuf>::new(), "{ran}");
    assert!(!dunnage.state().join(runtime).exists(), "the runtime's own state is left: {ran}");
}

#[test]
fn an_ordinary_user_measures_crun() {
    measures("an_ordinary_user_measures_crun", "crun", Need::Crun);
}

#[test]
fn an_ordinary_user_measures_runc() {
    measures("an_ordinary_user_measures_runc", "runc", Need::Runc);
}

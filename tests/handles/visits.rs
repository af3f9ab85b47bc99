//! Visits that hold many containers: samples come in the order of the steps, and half a ramp is a result up to where it came.

use std::os::unix::fs::PermissionsExt;

use ::dunnage::record;

use super::*;

/// A runtime for which there is room for so many containers.
fn with_room_for(most: usize, dunnage: &Dunnage) -> PathBuf {
    let [path, root] = ["cramped", "containers"].map(|name| dunnage.state().with_file_name(name));
    let script = format!(
        "#!/bin/sh\nfor word; do case $word in\n\
         create) [ $(ls {root} | wc -l) -lt {most} ] || {{ echo there is no room for another >&2; exit 1; }};; esac; done\n\
         exec crun --root {root} \"$@\"\n",
        root = root.display()
    );
    std::fs::create_dir(&root).unwrap();
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// How many containers ran at each step of a subject, and whether the step has its time.
fn steps(recorded: &record::Recorded, label: &str) -> Vec<(f64, bool)> {
    let cells = recorded.plan.cells.iter().zip(&recorded.series);
    let own = cells.filter(|(cell, _)| recorded.plan.subjects[cell.subject].label == label);
    own.map(|(_, series)| (series.values[1][0], series.values[0][0].is_finite())).collect()
}

#[test]
fn a_ramp_that_is_cut_reports_how_far_it_came_and_why() {
    const TEST: &str = "a_ramp_that_is_cut_reports_how_far_it_came_and_why";
    if lacks(TEST, Need::Crun) || lacks(TEST, Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let runtime = with_room_for(12, &dunnage);
    let ran = dunnage.run(&format!(
        "run ramp -s whole=crun -s cut=crun:bin={} --rounds 1 --no-html -o DIR",
        runtime.display()
    ));
    let recorded = record::load(&dunnage.directory()).expect("a run directory");
    let (whole, cut) = (steps(&recorded, "whole"), steps(&recorded, "cut"));
    assert_eq!(whole, [(1.0, true), (4.0, true), (20.0, true), (0.0, true)], "{ran}");
    assert_eq!(cut, [(1.0, true), (4.0, true), (12.0, false), (0.0, true)], "{ran}");
    let [(metric, why)] = &recorded.missing[..] else { panic!("{:?}", recorded.missing) };
    assert!(metric == "raised" && why.starts_with("12 of 20 containers run: "), "{why}");
    assert!(why.contains("no room for another"), "{why}");
    // Nothing is left of either.
    assert_eq!(left::of_run(&recorded.environment.run), Vec::<String>::new());
    let names =
        std::fs::read_dir(runtime.with_file_name("containers")).unwrap().flatten().map(|one| one.file_name());
    let containers = names.filter(|name| !name.to_string_lossy().starts_with('.'));
    assert_eq!(containers.collect::<Vec<_>>(), Vec::<std::ffi::OsString>::new());
}

//! `density` on scripted containers: a start that gets longer is found with its slope and shape, and how many fit.

use ::dunnage::record;

use crate::dunnage::Dunnage;

#[test]
fn starts_that_get_longer_are_found_with_their_slope() {
    let dunnage = Dunnage::new();
    // Each launch of the script takes 0.4 % longer than the one before; a start is two of them, with 70 % of a launch's time.
    let ran = dunnage.run(
        "run density -s even=fake:time=100ms,noise=0.5 -s rising=fake:time=100ms,noise=0.5,drift=0.4 --rounds 8 --seed 7 \
         --set containers=20 --no-html -o DIR",
    );
    assert_eq!(ran.code, 0, "{ran}");
    let recorded = record::load(&dunnage.directory()).expect("a run directory");
    let metrics = ::dunnage::experiment::find("density").unwrap().metrics;
    let value = |cell: usize, name: &str| {
        let at = metrics.iter().position(|one| one.name == name).unwrap();
        let mut values = recorded.series[cell].values[at].clone();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let of = |label: &str, at_once: &str| {
        let is_its = |cell: &::dunnage::plan::Cell| {
            recorded.plan.subjects[cell.subject].label == label
                && cell.setting.get("at_once") == Some(at_once)
        };
        recorded.plan.cells.iter().position(is_its).unwrap()
    };
    let planted = 0.07 * 0.004 * 2.0;
    assert!((value(of("rising", "1"), "slope") - planted).abs() < 0.1 * planted, "{ran}");
    assert!(value(of("even", "1"), "slope").abs() < 0.1 * planted, "{ran}");
    assert!(value(of("rising", "4"), "slope").is_nan(), "{ran}");
    // A hundred tasks at first, ten for each container, of 32,768.
    assert_eq!(value(of("even", "1"), "fit"), 3266.0, "{ran}");
    let told = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("rising: the start of container 20 takes 10."), "{ran}");
    assert!(told.contains("longer than the first"), "{ran}");
    assert!(
        told.contains("even: the start of container 20 takes as long as the first, within 1.00 ms"),
        "{ran}"
    );
    let full = dunnage.run("report DIR --full").stdout;
    assert!(full.contains(" linear ") && full.contains(" constant "), "{full}");
    assert!(
        told.contains(
                        "3266 containers by what each uses (163 times as many as were tried: reckoned, not seen); what ends first: tasks"

        ),
        "{ran}"
    );
}

#[test]
fn more_at_once_than_there_are_is_refused() {
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run density -s fake --set at_once=9 --set containers=8 -o DIR");
    assert_eq!(ran.code, 2, "{ran}");
    assert!(ran.stderr.contains("`at_once=9` are more than the 8 containers that there are"), "{ran}");
    let ran = dunnage.run("run density -s fake --set at_once=0 -o DIR");
    assert!(ran.code == 2 && ran.stderr.contains("a number from 1 to 5000"), "{ran}");
}

#[test]
fn what_ends_only_beyond_the_most_or_not_at_all_is_told() {
    let dunnage = Dunnage::new();
    // The script never refuses one more.
    let ran =
        dunnage.run("run density -s fake --set at_once=1 --set until=tasks --rounds 1 --no-html -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    let told = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains("fake: 3269 containers ran, more than the 3266 that were predicted by tasks"),
        "{ran}"
    );
    let run = |more: &str| {
        Dunnage::new().run(&format!("run density -s fake --set at_once=1 {more} --rounds 1 --no-html -o DIR"))
    };
    let ran = run("--set until=ports");
    assert!(ran.code != 0, "{ran}");
    assert!(ran.stderr.contains("how many bridge ports there are for it is not known here"), "{ran}");
    let ran = run("--set until=patience");
    assert!(
        ran.code == 2 && ran.stderr.contains("a resource that others do not need: memory, tasks, files"),
        "{ran}"
    );
    let ran = run("--set until=tasks --set containers=100");
    assert!(ran.code != 0 && ran.stderr.contains("more than the 100 that are tried"), "{ran}");
}

//! `memory` on scripted containers: what they weigh is found, and what two subjects differ by is a sentence.

use ::dunnage::record;

use crate::dunnage::Dunnage;

#[test]
fn a_heavier_container_is_found_with_who_pays() {
    let dunnage = Dunnage::new();
    let ran = dunnage.run(
        "run memory -s light=fake -s heavy=fake:time=2ms --set containers=10 --rounds 8 --seed 7 --no-html -o DIR",
    );
    assert_eq!(ran.code, 0, "{ran}");
    let recorded = record::load(&dunnage.directory()).expect("a run directory");
    let metrics = ::dunnage::experiment::find("memory").unwrap().metrics;
    let mebibytes = |cell: usize, name: &str| {
        let at = metrics.iter().position(|one| one.name == name).unwrap();
        let mut values = recorded.series[cell].values[at].clone();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2] / f64::from(1 << 20)
    };
    // A mebibyte for each millisecond, a quarter of it in the kernel, and a helper with two.
    for (cell, each) in [(0, 1.0), (1, 2.0)] {
        assert!((mebibytes(cell, "container") - 1.25 * each).abs() < 1e-4, "{ran}");
        assert!((mebibytes(cell, "helpers") - 2.0 * each).abs() < 0.2 * each, "{ran}");
        assert!((mebibytes(cell, "sum") - 3.4 * each).abs() < 0.2 * each, "{ran}");
        assert!(mebibytes(cell, "unexplained").abs() < 1e-6 && mebibytes(cell, "fixed") == 40.0, "{ran}");
    }
    let told = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains("10 containers of heavy take ")
            && told.contains(" more than of light, of which helpers are "),
        "{ran}"
    );
    let page = dunnage.run("report DIR --format html").stdout;
    assert!(page.contains("Who pays for one more container") && page.contains("1.25 MiB + "), "{ran}");
    // Nothing waits for memory.
    let full = dunnage.run("report DIR --full").stdout + &page;
    for wrong in [
        "take longer",
        "jobs longer than",
        "jobs of up to",
        "until a command has",
        "took no longer",
        "timed interval",
    ] {
        assert!(!told.contains(wrong) && !full.contains(wrong), "{wrong}: {ran}");
    }
}

/// A container of a millisecond needs a mebibyte, and half as much again to be left alone.
#[test]
fn the_smallest_limit_is_found_in_few_tries() {
    let dunnage = Dunnage::new();
    let ran = dunnage.run(
        "run memory-limit -s light=fake:noise=0.001 -s heavy=fake:time=2500us,noise=0.001 --rounds 8 --seed 7 --no-html -o DIR",
    );
    let recorded = record::load(&dunnage.directory()).unwrap_or_else(|why| panic!("{why}: {ran}"));
    for (cell, smallest, comfortable) in [(0, 16, 24), (1, 40, 60)] {
        let of = |at: usize| recorded.series[cell].values[at][0] / 65_536.0;
        // What it needs varies by less than a step.
        for (found, planted) in [(of(0), smallest), (of(1), comfortable)] {
            assert!((0.0..=1.0).contains(&(found - f64::from(planted))), "{found} {planted}: {ran}");
        }
        assert!(recorded.series[cell].values[6][0] <= 18.0, "{ran}");
    }
    let told = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains("light with 1.0")
            && told.contains("light: with less it is refused (peak without a limit: 1."),
        "{ran}"
    );
    assert!(told.contains("MiB): more memory than its limit, by its script"), "{ran}");
}

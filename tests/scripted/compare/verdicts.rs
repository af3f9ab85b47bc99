//! Every verdict, planted, and the sentences around them.

use dunnage::compare::{Comparison, Meaning, Scope, summary};
use dunnage::document::{FORMATS, shown};
use dunnage::plan::{Ladder, Layer};
use dunnage::report::Look;
use dunnage::stats::Ruling;
use dunnage::verdict::Kind;

use super::planted::{compared, ladder, line, plain, run, run_of, said, word};
use crate::report::scripted::{cells_of, crash, entry, fail};

/// A factor for docker alone.
fn docker(factor: f64) -> impl Fn(&str, &str, usize) -> f64 {
    move |label, _, _| if label == "docker" { factor } else { 1.0 }
}

#[test]
fn a_change_of_one_subject_is_its_own() {
    let comparison = compared(&[run(1, 30, plain)], &[run(2, 30, docker(1.10))]);
    assert_eq!(word(&comparison, "docker"), "slower");
    assert_eq!(comparison.scope, Scope::TwoRuns);
    let sentence = said(&comparison, "docker");
    assert!(
        sentence.starts_with("returned of `docker` rises: +") && sentence.ends_with("over 2 settings"),
        "{sentence}"
    );
    assert!(
        summary(&comparison).iter().any(|one| one.contains("holds for these two runs")),
        "{:?}",
        summary(&comparison)
    );
    let back = compared(&[run(2, 30, docker(1.10))], &[run(1, 30, plain)]);
    assert_eq!(word(&back, "docker"), "faster");
    let (there, back) = (line(&comparison, "docker").together, line(&back, "docker").together);
    let product = there.expect("a change").change.value * back.expect("a change").change.value;
    assert!((product - 1.0).abs() < 1e-12, "one is not the other's inverse: {product}");
}

#[test]
fn what_did_not_change_is_the_same_or_undecided_with_what_it_takes() {
    let comparison = compared(&[run(1, 200, plain)], &[run(2, 200, plain)]);
    for label in ["bare", "floor", "docker"] {
        assert_eq!(word(&comparison, label), "same", "{}", said(&comparison, label));
    }
    let short = compared(&[run(1, 10, plain)], &[run(2, 10, plain)]);
    let found = line(&short, "docker");
    assert!(matches!(found.ruling, Some(Ruling::Undecided { new_run: Some(_), .. })), "{found:?}");
    assert!(said(&short, "docker").contains("smallest visible effect"), "{}", said(&short, "docker"));
    assert!(
        said(&short, "docker").contains("rounds might show that it does not matter"),
        "{}",
        said(&short, "docker")
    );
}

#[test]
fn what_bare_and_floor_show_too_is_the_machine() {
    let comparison = compared(&[run(1, 30, plain)], &[run(2, 30, |_, _, _| 1.12)]);
    for label in ["bare", "floor", "docker"] {
        assert_eq!(word(&comparison, label), "machine changed", "{}", said(&comparison, label));
    }
    assert_eq!(
        summary(&comparison)[0],
        "the machine changed: bare or floor changed in returned, first_instruction and gone of start; changes that \
         they share are not attributed to a subject"
    );
    // Nearly the same, but docker changed by much more than the machine.
    let more = |label: &str, _: &str, _: usize| if label == "docker" { 1.40 } else { 1.12 };
    let comparison = compared(&[run(1, 30, plain)], &[run(2, 30, more)]);
    assert_eq!([word(&comparison, "floor"), word(&comparison, "docker")], ["machine changed", "slower"]);
}

/// A value near the timer's step is reported without a ratio, and a machine that is slower by a share is
/// still recognised by that share, for small and large subjects.
#[test]
fn the_machine_is_known_near_the_timers_floor_too() {
    let coarse = |mut run: dunnage::record::Recorded| {
        run.environment.timer.step = 50_000_000;
        run
    };
    let old = || coarse(run(1, 30, plain));
    let slower = compared(&[old()], &[coarse(run(2, 30, |_, _, _| 1.12))]);
    for label in ["bare", "floor", "docker"] {
        let found = line(&slower, label);
        assert_eq!(word(&slower, label), "machine changed", "{}", said(&slower, label));
        assert!(found.settings.iter().all(|one| one.numbers.is_some_and(|numbers| numbers.ratio.is_none())));
        assert!(said(&slower, label).contains(" × what matters"), "{}", said(&slower, label));
    }
    assert_eq!(word(&compared(&[old()], &[coarse(run(2, 30, docker(1.10)))]), "docker"), "slower");
    // An increase in one setting and a decrease in another do not cancel out.
    let split = |label: &str, prestate: &str, _: usize| match (label, prestate) {
        ("docker", "idle") => 1.20,
        ("docker", _) => 0.84,
        _ => 1.0,
    };
    let mixed = compared(&[old()], &[coarse(run(2, 30, split))]);
    assert_eq!(word(&mixed, "docker"), "mixed");
    let sentence = said(&mixed, "docker");
    assert!(sentence.contains(" ms [") && sentence.contains("with prestate=idle"), "{sentence}");
    // What is open has the same unit as the change.
    let open = compared(&[coarse(run(1, 10, plain))], &[coarse(run(2, 10, plain))]);
    let Some(Ruling::Undecided { smallest_visible, .. }) = line(&open, "docker").ruling else {
        panic!("{}", said(&open, "docker"))
    };
    let interval = line(&open, "docker").together.and_then(|all| all.change.interval).expect("an interval");
    let wide = smallest_visible / interval.half_width();
    assert!((0.8..1.25).contains(&wide), "{smallest_visible} {interval:?}");
}

/// Imported measurements from the host do not show the state of the host.
#[test]
fn what_was_measured_in_blocks_shows_no_machine() {
    use dunnage::record::{Order, Origin};
    let foreign = |mut run: dunnage::record::Recorded| {
        let (format, file, sha256) = ("x".into(), "x".into(), "x".into());
        let (notes, issues) = (Vec::new(), Vec::new());
        run.environment.origin = Some(Origin { format, file, sha256, order: Order::Blocks, notes, issues });
        run
    };
    let slower = |label: &str, _: &str, _: usize| if label == "bare" { 1.20 } else { 1.0 };
    let comparison = compared(&[foreign(run(1, 30, plain))], &[foreign(run(2, 30, slower))]);
    assert_eq!(word(&comparison, "bare"), "slower", "{}", said(&comparison, "bare"));
    assert!(
        comparison.notices.iter().any(|one| one.starts_with("neither bare nor floor is in all runs:")),
        "{:?}",
        comparison.notices
    );
}

#[test]
fn a_machine_that_cannot_be_excluded_leaves_a_change_open() {
    // Bare is so noisy that it may have changed by as much as docker.
    let noisy = |label: &str, _: &str, round: usize| match label {
        "bare" => 0.6 + 0.8 * (round as f64 * 0.618).fract(),
        _ => 1.0,
    };
    let and_slower = move |label: &str, prestate: &str, round: usize| {
        noisy(label, prestate, round) * if label == "docker" { 1.10 } else { 1.0 }
    };
    let comparison = compared(&[run(1, 30, noisy)], &[run(2, 30, and_slower)]);
    let found = line(&comparison, "docker");
    assert!(matches!(found.ruling, Some(Ruling::ControlsTooWide(bound)) if bound > 0.10), "{found:?}");
    assert!(
        said(&comparison, "docker").contains("cannot rule out that the machine changed by up to "),
        "{}",
        said(&comparison, "docker")
    );
}

#[test]
fn a_run_that_differs_from_itself_settles_nothing() {
    let climbing = |label: &str, _: &str, round: usize| match label {
        "docker" => 0.95 + 0.01 * round as f64,
        _ => 1.0,
    };
    let comparison = compared(&[run(1, 30, plain)], &[run(2, 30, climbing)]);
    let found = line(&comparison, "docker");
    assert!(matches!(found.ruling, Some(Ruling::Unsteady(_))), "{found:?}");
    assert!(said(&comparison, "docker").contains(" within a run"), "{}", said(&comparison, "docker"));
}

#[test]
fn a_change_must_hold_over_all_settings() {
    let split = |label: &str, prestate: &str, _: usize| match (label, prestate) {
        ("docker", "idle") => 1.20,
        ("docker", _) => 0.84,
        _ => 1.0,
    };
    let comparison = compared(&[run(1, 30, plain)], &[run(2, 30, split)]);
    assert_eq!(word(&comparison, "docker"), "mixed");
    assert!(!comparison.unanswered().is_empty(), "slower in one setting is no silence");
    let sentence = said(&comparison, "docker");
    assert!(
        sentence.contains("with prestate=idle") && sentence.contains("with prestate=primed"),
        "{sentence}"
    );
    // In one setting only, and unchanged in others: it is true over all settings.
    let half = |label: &str, prestate: &str, _: usize| {
        if (label, prestate) == ("docker", "idle") { 1.20 } else { 1.0 }
    };
    let comparison = compared(&[run(1, 30, plain)], &[run(2, 30, half)]);
    assert_eq!(word(&comparison, "docker"), "slower");
}

#[test]
fn too_few_rounds_have_no_verdict_and_say_how_many_are_needed() {
    let comparison = compared(&[run(1, 4, plain)], &[run(2, 4, plain)]);
    let found = line(&comparison, "docker");
    assert!(matches!(found.ruling, Some(Ruling::TooFew { have: 4, need: 7 })), "{found:?}");
    assert!(!comparison.unanswered().is_empty());
}

#[test]
fn a_suspect_of_either_run_overrules() {
    let mut new = run(2, 30, plain);
    let cell = cells_of(&new, "docker")[0];
    // A part that takes longer than the whole.
    let (first, returned) =
        (crate::report::scripted::metric("first_instruction"), crate::report::scripted::metric("returned"));
    new.series[cell].values[first][3] = new.series[cell].values[returned][3] * 1.01;
    let comparison = compared(&[run(1, 30, plain)], &[new]);
    let lines = &comparison.experiments[0].lines;
    let found = lines.iter().find(|line| line.label == "docker" && line.metric == first).expect("the line");
    assert!(found.verdict == Kind::Suspect, "{found:?}");
    let suspect = found.suspect.as_deref().unwrap_or_default();
    assert!(suspect.starts_with("`after`: longer than the whole"), "{suspect}");
    assert_ne!(word(&comparison, "floor"), "suspect");
}

#[test]
fn a_cell_that_only_failed_is_told_in_its_own_words_and_never_a_number() {
    let mut new = run(2, 30, plain);
    for cell in cells_of(&new, "docker") {
        (0..30).for_each(|round| fail(&mut new, cell, round, crash("no such runtime \x1b[31m<b>")));
    }
    let comparison = compared(&[run(1, 30, plain)], &[new]);
    let found = line(&comparison, "docker");
    assert_eq!(found.verdict, Kind::NoData);
    assert!(
        said(&comparison, "docker").contains("new failed: crash: `docker run` ended with code 125"),
        "{}",
        said(&comparison, "docker")
    );
    assert!(comparison.has_values() && !comparison.unanswered().is_empty());
    for format in &FORMATS {
        let text = rendered(format.name, &comparison, &Look::default());
        assert!(
            !text.contains('\x1b')
                && (format.name == "terminal" || !text.contains("<b>") || format.name == "json"),
            "{text}"
        );
    }
}

/// A result in one setting is not reported for another one in which nothing is measured any more.
#[test]
fn a_setting_that_only_fails_in_the_new_run_is_no_silence() {
    let mut new = run(2, 30, docker(0.9));
    let cell = cells_of(&new, "docker")[0];
    (0..30).for_each(|round| fail(&mut new, cell, round, crash("no such runtime")));
    let comparison = compared(&[run(1, 30, plain)], &[new]);
    let found = line(&comparison, "docker");
    assert_eq!(found.verdict, Kind::Faster);
    assert!(said(&comparison, "docker").contains(", without prestate="), "{}", said(&comparison, "docker"));
    assert!(
        said(&comparison, "docker").contains("(new failed: crash: `docker run` ended with code 125"),
        "{}",
        said(&comparison, "docker")
    );
    assert!(
        comparison.unanswered().iter().any(|(_, line)| line.label == "docker"),
        "{:?}",
        comparison.unanswered()
    );
    // What fails in both runs cannot be lost.
    let failing = |seed| {
        let mut run = run(seed, 30, plain);
        (0..30).for_each(|round| fail(&mut run, cell, round, crash("no such runtime")));
        run
    };
    let comparison = compared(&[failing(1)], &[failing(2)]);
    assert!(comparison.unanswered().is_empty(), "{:?}", comparison.unanswered());
    // A run that drifts is recognised from the rest.
    let climbing = |label: &str, _: &str, round: usize| match label {
        "docker" => 0.95 + 0.01 * round as f64,
        _ => 1.0,
    };
    let mut new = run_of(ladder(), 2, 30, climbing);
    (0..30).for_each(|round| fail(&mut new, cell, round, crash("no such runtime")));
    let comparison = compared(&[failing(1)], &[new]);
    let found = line(&comparison, "docker");
    assert!(matches!(found.ruling, Some(Ruling::Unsteady(_))), "{found:?}");
}

#[test]
fn several_runs_a_side_count_as_one_value_each_where_they_are_enough() {
    // Each run has a level of its own, which no single run can show.
    let run_with_level = |seed: u64, factor: f64| {
        let level = 1.0 + 0.02 * ((seed * 37 % 11) as f64 - 5.0) / 5.0;
        run(seed, 12, move |label, _, _| if label == "docker" { level * factor } else { 1.0 })
    };
    let side = |from: u64, count: u64, factor: f64| -> Vec<_> {
        (from..from + count).map(|seed| run_with_level(seed, factor)).collect()
    };
    let many = compared(&side(1, 8, 1.0), &side(20, 8, 1.10));
    assert_eq!((many.scope, word(&many, "docker")), (Scope::RunsLikeThese, "slower"));
    assert!(
        summary(&many).iter().any(|one| one.contains("each run counts as one value")),
        "{:?}",
        summary(&many)
    );
    // What is open is predicted in runs, since their number matters.
    let open = compared(&side(1, 8, 1.0), &side(20, 8, 1.03));
    let found = line(&open, "docker");
    assert!(matches!(found.ruling, Some(Ruling::Undecided { new_run: Some(_), .. })), "{found:?}");
    assert!(said(&open, "docker").contains(" runs on each side might show"), "{}", said(&open, "docker"));
    let open = compared(&side(1, 2, 1.0), &side(20, 2, 1.03));
    let found = line(&open, "docker");
    assert!(matches!(found.ruling, Some(Ruling::Undecided { new_run: None, .. })), "{found:?}");
    assert!(
        said(&open, "docker").ends_with("with 7 runs on each side, each would count as one value"),
        "{}",
        said(&open, "docker")
    );
    let few = compared(&side(1, 2, 1.0), &side(20, 2, 1.25));
    assert_eq!((few.scope, word(&few, "docker")), (Scope::TheseRuns, "slower"));
}

#[test]
fn a_run_that_is_named_again_is_no_further_run() {
    let several = |seed: u64, factor: f64| vec![run(seed, 30, docker(factor)); 8];
    let comparison = compared(&several(1, 1.0), &several(2, 1.10));
    assert_eq!((comparison.scope, comparison.sides.each_ref().map(Vec::len)), (Scope::TwoRuns, [1, 1]));
    let told = comparison.notices.iter().filter(|one| one.ends_with("and counts once")).count();
    assert_eq!(told, 14, "{:?}", comparison.notices);
}

#[test]
fn a_run_without_a_complete_round_is_left_out_where_a_side_has_others() {
    let mut empty = run(3, 30, plain);
    empty.contexts.iter_mut().for_each(|context| *context = None);
    empty.run = "empty".into();
    let comparison = compared(&[empty.clone(), run(1, 30, docker(1.0))], &[run(2, 30, docker(1.5))]);
    assert_eq!(word(&comparison, "docker"), "slower");
    let told = "`before` has no complete round and is left out";
    assert!(comparison.notices.iter().any(|one| one == told), "{:?}", comparison.notices);
    assert_eq!(compared(&[empty], &[run(2, 30, plain)]).sides[0].len(), 1);
}

#[test]
fn only_shared_cells_are_compared_and_the_others_named() {
    let mut more = ladder();
    more.push(entry("podman", Layer::Engine, Ladder::AsInstalled, Some("crun")));
    let comparison = compared(&[run(1, 12, plain)], &[run_of(more, 2, 12, plain)]);
    assert!(comparison.alone[0].is_empty(), "{:?}", comparison.alone);
    assert_eq!(comparison.alone[1], ["start of `podman` (2 cells)"]);
    let other = run_of(vec![entry("podman", Layer::Engine, Ladder::AsInstalled, None)], 3, 12, plain);
    let (one, two) = (run(1, 12, plain), other);
    let (a, b) = (dunnage::verdict::quality(&one), dunnage::verdict::quality(&two));
    let of = |recorded, quality| dunnage::compare::Run { recorded, quality, place: "x" };
    assert!(dunnage::compare::compare(&[of(&one, &a)], &[of(&two, &b)]).is_none());
}

#[test]
fn what_differs_around_the_runs_is_told_first() {
    let old = run(1, 12, plain);
    let mut new = run(2, 12, plain);
    let fact = |run: &mut dunnage::record::Recorded, name: &str, value: &str| {
        run.environment.machine.insert(name.into(), value.into());
    };
    fact(&mut new, "kernel", "6.9.1<script>");
    fact(&mut new, "mitigation_meltdown", "Vulnerable");
    new.environment.probe = "0".repeat(64);
    new.environment.subjects.get_mut("docker").expect("it is there").components[0].version =
        "Docker version 28".into();
    new.treatments[0][0].1 = "private:lo".into();
    // A run from before it was recorded may have done any amount.
    new.treatments[0].push(("fixed_work".into(), "9000 passes".into()));
    let comparison = compared(&[old], &[new]);
    let found: Vec<(Meaning, &str)> =
        comparison.differences.iter().map(|one| (one.meaning, one.what.as_str())).collect();
    let expected = [
        (Meaning::Machine, "kernel"),
        (Meaning::Machine, "mitigation meltdown"),
        (Meaning::Instrument, "probe (SHA-256)"),
        (Meaning::Treatment, "fixed work"),
        (Meaning::Treatment, "network"),
        (Meaning::Programs, "engine"),
    ];
    assert_eq!(found, expected);
    assert!(
        comparison.notices[0].starts_with("not comparable: kernel, mitigation meltdown, probe"),
        "{:?}",
        comparison.notices
    );
    let work = comparison.differences.iter().find(|one| one.what == "fixed work").unwrap();
    assert_eq!((work.old.as_str(), work.new.as_str()), ("nothing", "9000 passes"));
    assert!(comparison.notices[0].contains(", fixed work, network differ, so"), "{:?}", comparison.notices);
    let page = rendered("html", &comparison, &Look::default());
    assert!(page.contains("6.9.1&#60;script&#62;") && !page.contains("6.9.1<script"), "{page}");
    let [addresses, names] =
        ["http", "xmlns=\"http://www.w3.org/2000/svg\""].map(|text| page.matches(text).count());
    assert_eq!(addresses, names + 1, "a page that needs the network");
    // The same executable on the same machine has no differences.
    assert_eq!(compared(&[run(1, 12, plain)], &[run(2, 12, plain)]).differences, []);
}

#[test]
fn margins_are_those_of_the_old_plan_and_others_are_told() {
    let old = run(1, 30, plain);
    let mut new = run(2, 30, docker(1.10));
    for margin in &mut new.plan.margins {
        margin.margin = dunnage::stats::Margin::fixed(0.0, 0.5);
    }
    let comparison = compared(&[old], &[new]);
    assert_eq!(word(&comparison, "docker"), "slower");
    assert!(
        comparison
            .notices
            .iter()
            .any(|one| one
                == "`after` has another margin for returned of start; that of `before` is used here"),
        "{:?}",
        comparison.notices
    );
}

#[test]
fn without_bare_and_floor_nobody_knows_what_the_machine_did() {
    let alone = |seed| run_of(ladder().split_off(2), seed, 12, plain);
    let comparison = compared(&[alone(1)], &[alone(2)]);
    assert!(
        comparison.notices.iter().any(|one| one.starts_with("neither bare nor floor")),
        "{:?}",
        comparison.notices
    );
}

#[test]
fn what_was_taken_in_blocks_is_said_in_every_format() {
    let mut new = run(2, 12, plain);
    new.environment.origin = Some(dunnage::record::Origin {
        format: "hyperfine's JSON".into(),
        file: "bench.json".into(),
        sha256: "0".repeat(64),
        order: dunnage::record::Order::Blocks,
        notes: Vec::new(),
        issues: Vec::new(),
    });
    let comparison = compared(&[run(1, 12, plain)], &[new]);
    for format in &FORMATS {
        let text = rendered(format.name, &comparison, &Look { width: 400, ..Look::default() });
        assert!(text.contains("imported and measured in blocks"), "{}: {text}", format.name);
    }
    let own = compared(&[run(1, 12, plain)], &[run(2, 12, plain)]);
    assert!(own.notices.iter().all(|one| !one.contains("blocks")), "{:?}", own.notices);
}

#[test]
fn what_changed_is_named_with_its_size_and_what_many_share_is_told_once() {
    let comparison = compared(&[run(1, 30, plain)], &[run(2, 30, docker(1.10))]);
    assert!(summary(&comparison)[0].starts_with("slower: "), "{:?}", summary(&comparison));
    assert!(summary(&comparison)[0].contains("returned of `docker` +10 % ["), "{:?}", summary(&comparison));
    let crowd: Vec<_> = ["bare", "docker", "podman", "crun", "runc", "youki"]
        .map(|name| {
            let layer = if name == "bare" { Layer::Bare } else { Layer::Engine };
            entry(name, layer, Ladder::AsInstalled, None)
        })
        .into();
    let few = |seed| run_of(crowd.clone(), seed, 3, plain);
    let text = rendered("terminal", &compared(&[few(1)], &[few(2)]), &Look::default());
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("returned of 6 subjects has no verdict: 3 rounds on each side, and this many"),
        "{text}"
    );
}

#[test]
fn a_label_is_never_cut_so_that_it_reads_like_another_one() {
    let labels = ["floor:mounts=private,uts=host", "floor:mounts=private,pid=host"];
    let subjects =
        || -> Vec<_> { labels.map(|label| entry(label, Layer::Floor, Ladder::AsInstalled, None)).into() };
    let sides = [1, 2].map(|seed| run_of(subjects(), seed, 12, plain));
    let [old, new] = sides;
    let text = rendered("terminal", &compared(&[old], &[new]), &Look::default());
    for label in labels {
        assert!(text.contains(label), "{text}");
    }
}

#[test]
fn the_table_looks_as_it_did() {
    let comparison = compared(&[run(1, 30, plain)], &[run(2, 30, docker(1.10))]);
    // The look of a page is tested in a browser, by `tests/html`.
    for (format, file) in [("terminal", "compare.txt"), ("md", "compare.md"), ("json", "compare.json")] {
        let text = rendered(format, &comparison, &Look::default());
        snapshot(file, &text);
    }
}

fn rendered(format: &str, comparison: &Comparison, look: &Look) -> String {
    shown(comparison, format, look).expect("it exists")
}

fn snapshot(name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        return std::fs::write(&path, text).expect("it can be written");
    }
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        before == text,
        "`{}` differs; look at it, then run with UPDATE_SNAPSHOTS=1\n\n{text}",
        path.display()
    );
}

//! Network paths on planted data with known truth and on the scripted subject: which subjects have which
//! paths, what a path adds, the kernel's part of it, and paths that are too quick to be true.

use dunnage::plan::{self, Entry, Layer, Plan, Request};
use dunnage::record::Recorded;
use dunnage::stats::Rng;
use dunnage::subject::{Need, Path};
use dunnage::verdict::analyse;
use dunnage::verdict::table::Item;

use crate::dunnage::Dunnage;
use crate::scripted::planted::{entry, recorded, request, rules};

const ROUNDS: usize = 16;
/// The round trip inside, in seconds.
const INSIDE: f64 = 20e-6;
const BRIDGE: f64 = 8e-6;
/// What an engine's rules add to the bridge.
const RULES: f64 = 3e-6;
const PROXY: f64 = 200e-6;

fn request_of(subjects: &[(&str, Layer, &[Need])]) -> Request {
    let subject = |(text, layer, more): &(&str, Layer, &[Need])| {
        let own = entry(text, *layer);
        Entry { offers: [&own.offers[..], more].concat(), ..own }
    };
    request(vec!["net-latency"], subjects.iter().map(subject).collect(), ROUNDS)
}

fn planned() -> (Request, Plan) {
    let request = request_of(&[
        ("bare", Layer::Bare, &[]),
        ("floor", Layer::Floor, &[Need::Address, Need::Joined]),
        ("docker", Layer::Engine, &[Need::Address, Need::Joined, Need::Ports]),
        ("docker:net=none", Layer::Engine, &[]),
    ]);
    (request.clone(), plan::make(request))
}

fn path_of(plan: &Plan, cell: usize) -> Path {
    plan.cells[cell].setting.get("path").unwrap().parse().unwrap()
}

/// Rounds have a pace of their own, which all cells share and which is larger than any path.
fn measured(plan: &Plan, adds: impl Fn(&str, Path) -> f64) -> Recorded {
    recorded(plan.clone(), |cell| {
        let mut own = Rng::for_stream(11, cell as u64);
        let subject = &plan.subjects[plan.cells[cell].subject];
        let mut values = vec![vec![f64::NAN; ROUNDS]; plan.metrics(&plan.cells[cell]).len()];
        for (round, value) in values[0].iter_mut().enumerate() {
            let pace = 300e-6 * Rng::for_stream(7, round as u64).standard_normal().abs();
            let noise = 50e-9 * own.standard_normal();
            *value = INSIDE + pace + noise + adds(&subject.spec.to_string(), path_of(plan, cell));
        }
        values
    })
}

fn as_planted(subject: &str, path: Path) -> f64 {
    match (subject, path) {
        (_, Path::Inside) => 0.0,
        ("floor", _) => BRIDGE,
        (_, Path::Bridge) => BRIDGE + RULES,
        _ => BRIDGE + PROXY,
    }
}

/// What happens once in a container is paid by the path that is measured first in it.
#[test]
fn a_path_that_is_slower_as_the_first_of_its_container_is_told() {
    let (_, plan) = planned();
    let told = |run: &Recorded| -> Vec<String> {
        let warnings = analyse(run).warnings.into_iter().filter(|one| one.kind == "carry-over");
        warnings.map(|one| one.seen).collect()
    };
    let mut run = measured(&plan, as_planted);
    for round in 0..ROUNDS {
        for pair in plan.order(plan.warmups + round).windows(2) {
            run.series[pair[1]].predecessors[round] = Some(pair[0]);
        }
    }
    assert_eq!(told(&run), [""; 0]);
    for cell in (0..plan.cells.len()).filter(|cell| plan.entry(*cell).label == "docker") {
        for round in 0..ROUNDS {
            let before = run.series[cell].predecessors[round];
            if before.is_none_or(|before| !plan.share(before, cell)) {
                run.series[cell].values[0][round] += 2e-3;
            }
        }
    }
    let seen = told(&run);
    let is_so =
        |one: &String| one.contains("docker") && one.contains(" right after the start of its container");
    assert!(!seen.is_empty() && seen.iter().all(is_so), "{seen:?}");
}

#[test]
fn subjects_have_the_paths_that_they_can_have_and_the_others_with_a_reason() {
    let (request, plan) = planned();
    let paths = |label: &str| {
        let own = (0..plan.cells.len()).filter(|cell| plan.entry(*cell).label == label);
        let mut paths: Vec<_> = own.map(|cell| path_of(&plan, cell).name()).collect();
        paths.dedup();
        paths
    };
    assert_eq!(paths("bare"), ["inside"]);
    assert_eq!(paths("floor"), ["inside", "bridge"]);
    assert_eq!(paths("docker"), ["inside", "bridge", "published"]);
    assert_eq!(paths("docker:net=none"), ["inside"]);
    let lacking = plan.lacking(&request);
    let told = |what: &str| -> Vec<&str> {
        lacking.iter().filter(|(own, ..)| own == what).map(|(_, label, _)| *label).collect()
    };
    assert_eq!(told("net-latency path=bridge"), ["bare", "docker:net=none"]);
    assert_eq!(told("net-latency path=published"), ["bare", "floor", "docker:net=none"]);
    assert_eq!(lacking.len(), 5, "{lacking:?}");
}

#[test]
fn what_a_path_adds_is_found_with_the_kernels_part() {
    let (_, plan) = planned();
    let analysis = analyse(&measured(&plan, as_planted));
    assert_eq!(rules(&analysis), [""; 0]);
    let table = analysis.experiment_tables.iter().find(|table| table.name == "paths").unwrap();
    let column = |name: &str| table.columns.iter().position(|column| column.name == name).unwrap();
    let row = |subject: &str, path: &str| {
        let text = |item: &Item, text: &str| *item == Item::Text(text.to_owned());
        table.rows.iter().find(|row| text(&row[0], subject) && text(&row[1], path)).unwrap()
    };
    let near = |item: &Item, truth: f64| match item {
        Item::Interval(found) => {
            let interval = found.interval.unwrap();
            assert!(interval.low <= truth && truth <= interval.high, "{truth}: {found:?}");
            assert!((found.value - truth).abs() < 100e-9, "{truth}: {found:?}");
        }
        other => panic!("{other:?}"),
    };
    near(&row("floor", "bridge")[column("path adds")], BRIDGE);
    near(&row("docker", "bridge")[column("path adds")], BRIDGE + RULES);
    near(&row("docker", "bridge")[column("kernel's part")], BRIDGE);
    near(&row("docker", "published")[column("path adds")], BRIDGE + PROXY);
    near(&row("docker", "published")[column("kernel's part")], BRIDGE);
    assert_eq!(row("docker", "inside")[column("path adds")], Item::Nothing("the reference".into()));
    let summary = table.told().join("\n");
    assert!(summary.contains("docker: added to a round trip (tcp, 1 B): `bridge` 11"), "{summary}");
    assert!(summary.contains("less than 3.0 % to requests that take longer than 6.9"), "{summary}");
}

#[test]
fn a_path_quicker_than_none_is_suspect_and_one_within_the_noise_is_not() {
    let (_, plan) = planned();
    let quicker = |by: f64| {
        let adds = move |subject: &str, path: Path| match (subject, path) {
            ("docker", Path::Published) => -by,
            other => as_planted(other.0, other.1),
        };
        rules(&analyse(&measured(&plan, adds)))
    };
    assert_eq!(quicker(0.0), [""; 0]);
    let found = quicker(5e-6);
    // Of the subject and of its twin.
    assert!(!found.is_empty() && found.iter().all(|rule| *rule == "negative price"), "{found:?}");
}

#[test]
fn the_scripted_subject_goes_through_the_whole_pipeline() {
    let dunnage = Dunnage::new();
    let ran = dunnage.run(
        "run net-latency -s fake --set protocol=tcp --set protocol=udp --rounds 12 --seed 7 --full -o DIR",
    );
    assert_eq!(ran.code, 0, "{ran}");
    for words in ["What does a network path add to a round trip?", "`published`", "round trips by path"] {
        assert!(ran.stdout.contains(words), "{words}: {ran}");
    }
    let csv = dunnage.run("report DIR --format csv");
    assert!(csv.stdout.contains("path=bridge;protocol=udp;size=1;receive=blocking"), "{csv}");
    let refused = dunnage.run("run net-latency -s fake --set path=outside");
    assert!(refused.code == 2 && refused.stderr.contains("published-host"), "{refused}");
    let nowhere = dunnage.run("plan net-latency -s fake --set path=peer");
    assert!(nowhere.to_string().contains("its containers are not joined by a network"), "{nowhere}");
}

#[test]
fn a_path_that_is_half_as_fast_adds_the_time_of_a_gigabyte() {
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run net-throughput -s fake --rounds 12 --seed 7 --full -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    let recorded = dunnage::record::load(&dunnage.directory()).unwrap();
    let analysis = analyse(&recorded);
    let table = analysis.experiment_tables.iter().find(|table| table.name == "paths").unwrap();
    let value = |row: &[Item], name: &str| {
        let column = table.columns.iter().position(|column| column.name == name).unwrap();
        match &row[column] {
            Item::Interval(found) => found.value,
            other => panic!("{name}: {other:?}"),
        }
    };
    let paths: Vec<_> = table.rows.iter().map(|row| row[1].clone()).collect();
    assert_eq!(paths, ["inside", "bridge", "published"].map(|path| Item::Text(path.to_owned())));
    let inside = value(&table.rows[0], "GB up");
    for row in &table.rows[1..] {
        assert!((value(row, "path adds") / inside - 1.0).abs() < 0.1, "{table:?}");
        assert!((value(row, "rate up") * 2.0 * inside / 1e9 - 1.0).abs() < 0.1, "{table:?}");
    }
    // One value for interfaces that are alike.
    let last = &table.rows[0][table.columns.len() - 2..];
    assert_eq!(last, ["1500", "eth0 tso gso,veth gso"].map(|told| Item::Text(told.to_owned())));
    assert!(ran.stdout.contains("added to a gigabyte to the server (1 at once): `bridge`"), "{ran}");
}

#[test]
fn the_paths_part_of_a_request_is_told_from_the_files_and_the_cpus() {
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run http -s fake --rounds 12 --seed 7 --full -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    let analysis = analyse(&dunnage::record::load(&dunnage.directory()).unwrap());
    let table = analysis.experiment_tables.iter().find(|table| table.name == "paths").unwrap();
    let value = |row: &[Item], name: &str| {
        let column = table.columns.iter().position(|column| column.name == name).unwrap();
        match &row[column] {
            Item::Interval(found) => found.value,
            other => panic!("{name}: {other:?}"),
        }
    };
    let inside = value(&table.rows[0], "request");
    for row in &table.rows[1..] {
        assert!((value(row, "path adds") / inside - 1.0).abs() < 0.1, "{table:?}");
        assert!((value(row, "rate") * 2.0 * inside - 1.0).abs() < 0.1, "{table:?}");
        // The script's file takes as long as a request inside, on every path.
        assert!((value(row, "file") / inside - 1.0).abs() < 0.1, "{table:?}");
    }
    let summary = table.told().join("\n");
    // Half of an empty request, a third of one with a file, a twelfth of one that computes.
    for (share, rest) in
        [("50", "of an empty request"), ("33", "of one that writes"), ("8", "of one that computes")]
    {
        let told = summary.lines().filter(|line| line.contains(rest));
        let near = |line: &str| {
            let before = line.split(rest).next().unwrap().trim_end().trim_end_matches(" is the path's");
            before.rsplit(' ').nth(1).unwrap().parse::<f64>().unwrap()
        };
        for line in told {
            assert!((near(line) - share.parse::<f64>().unwrap()).abs() < 3.0, "{share}: {line}");
        }
    }
    assert!(summary.contains("fake, `published`: "), "{summary}");
    let refused = dunnage.run("run http -s fake --cmd server");
    assert!(refused.code == 2 && refused.stderr.contains("--port 3000"), "{refused}");
    for (set, form) in
        [("clients=3/2", "a connection for each thread"), ("rate=0", "auto"), ("file=0", "1GiB")]
    {
        let wrong = dunnage.run(&format!("run http -s fake --set {set}"));
        assert!(wrong.code == 2 && wrong.stderr.contains(form), "{set}: {wrong}");
    }
}

#[test]
fn what_a_resolver_between_adds_to_a_name_is_found() {
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run dns -s fake --rounds 12 --seed 7 --full -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    let analysis = analyse(&dunnage::record::load(&dunnage.directory()).unwrap());
    let table = analysis.experiment_tables.iter().find(|table| table.name == "names").unwrap();
    let [usual, made] = &table.rows[..] else { panic!("{table:?}") };
    let value = |row: &[Item], name: &str| {
        let column = table.columns.iter().position(|column| column.name == name).unwrap();
        match &row[column] {
            Item::Interval(found) => found.value,
            other => panic!("{name}: {other:?}"),
        }
    };
    assert_eq!(made[1], Item::Text("user-defined".into()));
    // The script's resolver takes as long as everything else.
    let adds = value(made, "network adds") / value(usual, "name");
    assert!((adds - 1.0).abs() < 0.1, "{table:?}");
    assert_eq!(value(made, "queries"), 1.0);
    let told = "fake: a user-defined network adds";
    assert!(table.told()[0].starts_with(told), "{table:?}");
    assert!(table.told()[0].ends_with("to a fresh name through its resolver 192.0.2.1"), "{table:?}");
    assert!(ran.stdout.contains("How long does a name take inside?"), "{ran}");
    let nowhere = dunnage.run("plan dns -s bare --set network=user-defined");
    assert!(nowhere.to_string().contains("its networks have no resolver"), "{nowhere}");
}

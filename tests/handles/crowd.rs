//! Series and bursts of starts on real runtimes: what is planted in a start is found and called what it is, what fails is counted, and
//! nothing is left.

use ::dunnage::experiment::density::names;
use ::dunnage::outcome::Sample;
use ::dunnage::record::{self, Recorded};

use super::visits::runtime;
use super::*;

/// The cells of a subject: of its series, and of its burst.
fn cells(recorded: &Recorded, label: &str) -> [usize; 2] {
    let of = |at_once: &str| {
        let is_its = |cell: &::dunnage::plan::Cell| {
            recorded.plan.subjects[cell.subject].label == label
                && cell.setting.get("at_once") == Some(at_once)
        };
        recorded.plan.cells.iter().position(is_its).expect("a cell")
    };
    [of("1"), of("8")]
}

/// Their samples.
fn samples<'a>(recorded: &'a Recorded, label: &str) -> [&'a Sample; 2] {
    cells(recorded, label).map(|cell| {
        let sample = recorded.series[cell].samples[0].as_ref();
        sample.unwrap_or_else(|| panic!("{label} has no sample: {:?}", recorded.failures))
    })
}

fn value(sample: &Sample, metric: &str) -> Option<f64> {
    let metrics = ::dunnage::experiment::find("density").unwrap().metrics;
    metrics.iter().find(|one| one.name == metric).unwrap().value(sample)
}

#[test]
fn what_is_planted_in_starts_is_found_and_what_fails_is_counted() {
    const TEST: &str = "what_is_planted_in_starts_is_found_and_what_fails_is_counted";
    if lacks(TEST, Need::Crun) || lacks(TEST, Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let place = |name: &str| dunnage.state().with_file_name(name).display().to_string();
    let in_each = |what: &str| format!("for word; do case $word in --detach) {what};; esac; done");
    let (lock, count, root) = (place("lock"), place("count"), place("containers"));
    std::fs::create_dir(&root).unwrap();
    let planted = [
        ("locked", in_each(&format!("flock {lock} sleep 0.1"))),
        ("asleep", in_each("sleep 1")),
        // 100 ms for each that runs, more than a busy machine hides.
        (
            "slower",
            format!(
                "set -- --root {root} \"$@\"; {}",
                in_each(&format!("sleep $(printf 0.%03d $(($(ls {root} | wc -l) * 100)))"))
            ),
        ),
        // Each fourth, of those that are counted one after the other.
        (
            "failing",
            in_each(&format!(
                "exec 9>>{lock}.of; flock 9; echo >>{count}; [ $(($(wc -l <{count}) % 4)) != 0 ] || {{ echo no more for now >&2; exit 1; }}; exec 9>&-"
            )),
        ),
    ];
    let subjects: Vec<String> = planted
        .iter()
        .map(|(name, before)| format!("-s {name}=crun:bin={}", runtime(&dunnage, name, before).display()))
        .collect();
    let ran = dunnage.run(&format!(
        "run density {} --set at_once=1 --set at_once=8 --set containers=8 --rounds 1 --no-html -o DIR",
        subjects.join(" ")
    ));
    let recorded = record::load(&dunnage.directory()).unwrap_or_else(|why| panic!("{why}: {ran}"));
    let facts =
        |label: &str, name| cells(&recorded, label).map(|cell| recorded.facts(cell, name).next().flatten());
    // The lock lets ten pass in a second, however many there are.
    let [series, burst] = samples(&recorded, "locked");
    assert!(value(burst, "rate").unwrap() <= 10.0 && value(series, "start").unwrap() >= 0.1, "{ran}");
    assert!(value(burst, "waiting").unwrap() >= 0.5, "{ran}");
    let [of_series, of_burst] = facts("locked", names::LOCK);
    assert_eq!(of_burst, Some(lock.as_str()), "{ran}");
    assert_ne!(of_series, Some(lock.as_str()), "{ran}");
    // What only sleeps does so at the same time.
    let [series, burst] = samples(&recorded, "asleep");
    assert!(value(burst, "start").unwrap() >= 1.0, "{ran}");
    assert!(value(burst, "rate").unwrap() > value(series, "rate").unwrap(), "{ran}");
    let [series, _] = samples(&recorded, "slower");
    let slope = value(series, "slope").unwrap();
    assert!((0.075..0.5).contains(&slope), "{slope}: {ran}");
    assert!((value(series, "longer").unwrap() - 7.0 * slope).abs() < 1e-9, "{ran}");
    for sample in samples(&recorded, "failing") {
        assert_eq!(value(sample, "failed"), Some(2.0), "{ran}");
    }
    for why in facts("failing", names::FAILED).map(Option::unwrap_or_default) {
        assert!(why.starts_with("2 of 8 starts failed") && why.contains("no more for now"), "{why}: {ran}");
    }
    // Each container has at least its own first process and cgroup.
    let [series, _] = samples(&recorded, "locked");
    for resource in [names::ROOM_TASKS, names::ROOM_CGROUPS] {
        let [_, _, limit] = *series.series(resource).unwrap() else { panic!("three numbers") };
        assert!(limit > 1000, "{resource}: {limit}");
    }
    assert!(ran.stdout.contains("containers by what each uses"), "{ran}");
    assert_eq!(left::of_run(&recorded.environment.run), Vec::<String>::new());
}

#[test]
fn a_small_network_has_as_many_addresses_as_the_first_containers_foretell() {
    const TEST: &str = "a_small_network_has_as_many_addresses_as_the_first_containers_foretell";
    if lacks(TEST, Need::Podman) || lacks(TEST, Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let place = |name: &str| dunnage.state().with_file_name(name);
    let own = std::process::id();
    let (networks, bridge, subnet) =
        (place("networks"), format!("dns{own}"), format!("10.213.{}", own % 251));
    std::fs::create_dir(&networks).unwrap();
    let network = format!(
        r#"{{"name":"small{own}","id":"{own:064x}","driver":"bridge","network_interface":"{bridge}","created":"2024-01-01T00:00:00Z",
            "subnets":[{{"subnet":"{subnet}.0/28","gateway":"{subnet}.1"}}],"ipam_options":{{"driver":"host-local"}}}}"#
    );
    std::fs::write(networks.join(format!("small{own}.json")), network).unwrap();
    let known = place("containers.conf");
    let configuration = format!(
        "[network]\ndefault_network = \"small{own}\"\nnetwork_config_dir = \"{}\"\n",
        networks.display()
    );
    std::fs::write(&known, configuration).unwrap();
    let dunnage = dunnage.with("CONTAINERS_CONF", &known.display().to_string());
    let ran = dunnage
        .run("run density -s podman --set at_once=4 --set until=addresses --rounds 1 --no-html -o DIR");
    let recorded = record::load(&dunnage.directory()).unwrap_or_else(|why| panic!("{why}: {ran}"));
    let sample = recorded.series[0].samples[0].as_ref().unwrap_or_else(|| panic!("{ran}"));
    // Sixteen without the network's own, the bridge's and the one for all.
    assert_eq!(sample.counter(names::PREDICTED), Some(13), "{ran}");
    assert_eq!(sample.series(names::RETURNED).map(<[i64]>::len), Some(13), "{ran}");
    // Where they are kept is known too.
    assert!(sample.series(names::ROOM_INODES).is_some(), "{ran}");
    let told = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("13 containers ran, 13 were predicted by addresses; the next one: "), "{ran}");
    // In the engine's words.
    assert!(told.contains("free IP"), "{ran}");
    assert_eq!(left::of_run(&recorded.environment.run), Vec::<String>::new());
    assert!(!Path::new("/sys/class/net").join(bridge).exists());
}

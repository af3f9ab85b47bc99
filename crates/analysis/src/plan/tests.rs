//! What a plan of some subjects contains, tested without a machine.

use super::*;
use crate::stats::min_rounds;
use crate::subject::{Need, Spec};

fn entry(text: &str, layer: Layer, ladder: Ladder, runtime: Option<&str>) -> Entry {
    let spec = Spec::parse(text).unwrap();
    Entry {
        label: spec.shown(),
        spec,
        layer,
        ladder,
        twin_of: None,
        runtime: runtime.map(str::to_owned),
        launch: Nanos::from_millis(100),
        offers: Need::CONTAINER.to_vec(),
        only_in: Vec::new(),
        variant_of: None,
        inherited: Default::default(),
    }
}

fn ladder() -> Vec<Entry> {
    use Ladder::{AsInstalled, Equalised};
    vec![
        entry("bare", Layer::Bare, AsInstalled, None),
        entry("floor", Layer::Floor, AsInstalled, None),
        entry("crun", Layer::Runtime, AsInstalled, Some("crun")),
        entry("docker", Layer::Engine, AsInstalled, Some("runc")),
        entry("docker+crun", Layer::Engine, AsInstalled, Some("crun")),
        entry("docker+crun:log=none,net=none", Layer::Engine, Equalised, Some("crun")),
        entry("podman:log=none,net=none", Layer::Engine, Equalised, Some("crun")),
    ]
}

fn request(rounds: Rounds) -> Request {
    Request {
        experiments: vec!["start"],
        subjects: ladder(),
        chosen: Vec::new(),
        seed: 7,
        rounds,
        allowed: ALLOWED,
        margins: Vec::new(),
        factorial: None,
        predictions: Vec::new(),
        trial: None,
    }
}

fn plan(rounds: Rounds) -> Plan {
    make(request(rounds))
}

fn relation_of(plan: &Plan, subject: &str, against: &str) -> Option<Relation> {
    let label = |index: usize| plan.subjects[index].label.as_str();
    let found = |one: &&Comparison| label(one.subject) == subject && label(one.against) == against;
    plan.comparisons.iter().find(found).map(|one| one.relation.clone())
}

#[test]
fn a_limit_stretches_the_time_that_computing_takes_and_no_other() {
    let time = |experiment, text| {
        let subjects = vec![entry(text, Layer::Bare, Ladder::AsInstalled, None)];
        make(Request { experiments: vec![experiment], subjects, ..request(Rounds::Fixed(1)) }).round_time()
    };
    let [free, tenth] = ["bare", "bare:cpus=0.1"].map(|text| time("cpu", text).seconds());
    assert!(free > 3.0 && (tenth / free - 10.0).abs() < 1.0, "{free} {tenth}");
    for (experiment, text) in [("cpu", "bare:cpus=1.5"), ("start", "bare:cpus=0.1")] {
        assert_eq!(time(experiment, text), time(experiment, "bare"), "{experiment} {text}");
    }
}

#[test]
fn twins_take_part_only_in_the_settings_that_an_experiment_names() {
    let mut subjects = ladder();
    subjects.truncate(2);
    subjects[1].offers.push(Need::Images);
    let plan = make(Request { experiments: vec!["layers"], subjects, ..request(Rounds::Fixed(13)) });
    let cells = |is_twin: bool| {
        let own = plan.cells.iter().filter(|cell| plan.subjects[cell.subject].twin_of.is_some() == is_twin);
        own.map(|cell| cell.setting.get("at").unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(cells(true), ["bind", "bind"]);
    assert_eq!(cells(false).iter().filter(|at| **at != "bind").count(), 4, "those of the floor's image");
}

#[test]
fn what_tells_why_bursts_are_slow_takes_part_in_bursts_only() {
    let mut subjects = ladder();
    subjects.iter_mut().for_each(|entry| entry.offers.push(Need::Lifecycle));
    subjects[1].variant_of = Some(subjects[0].label.clone());
    let plan = make(Request { experiments: vec!["density"], subjects, ..request(Rounds::Fixed(9)) });
    let cells = |is_variant: bool| {
        let own =
            plan.cells.iter().filter(|cell| plan.subjects[cell.subject].variant_of.is_some() == is_variant);
        own.map(|cell| cell.setting.get("at_once").unwrap()).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(cells(true).into_iter().collect::<Vec<_>>(), ["16", "4"]);
    assert!(cells(false).contains("1"));
}

#[test]
fn computing_on_five_subjects_keeps_the_budget_with_enough_rounds_for_verdicts() {
    let all = [
        ("bare", Layer::Bare, 2),
        ("floor", Layer::Floor, 15),
        ("crun", Layer::Runtime, 40),
        ("docker", Layer::Engine, 350),
        ("podman", Layer::Engine, 450),
    ];
    let subjects = all.map(|(name, layer, millis)| Entry {
        launch: Nanos::from_millis(millis),
        offers: vec![Need::Work],
        ..entry(name, layer, Ladder::AsInstalled, None)
    });
    let request = request(Rounds::Fit(Nanos::from_millis(265_000)));
    let plan = make(Request { experiments: vec!["cpu"], subjects: subjects.to_vec(), ..request });
    assert_eq!((plan.cells.len(), plan.without_verdicts()), (9, Vec::new()));
    assert!(plan.predicted() <= Nanos::from_millis(360_000), "{}", plan.predicted());
}

#[test]
fn the_baseline_and_one_subject_of_each_layer_have_a_twin() {
    let plan = plan(Rounds::Fixed(3));
    let twins: Vec<_> = plan.subjects.iter().filter(|entry| entry.twin_of.is_some()).collect();
    let labels: Vec<_> = twins.iter().map(|entry| entry.label.as_str()).collect();
    assert_eq!(labels, ["bare (twin)", "floor (twin)", "crun (twin)", "docker (twin)"]);
}

#[test]
fn causes_are_named_only_where_one_thing_differs() {
    let plan = plan(Rounds::Fixed(3));
    let one = |key: &str| Some(Relation::OneKey { key: key.into() });
    assert_eq!(relation_of(&plan, "docker+crun", "docker"), one("runtime"));
    assert_eq!(
        relation_of(&plan, "podman:log=none,net=none", "docker+crun:log=none,net=none"),
        one("engine")
    );
    assert_eq!(relation_of(&plan, "crun", "floor"), Some(Relation::Step));
    assert_eq!(relation_of(&plan, "docker+crun:log=none,net=none", "crun"), Some(Relation::Step));
    assert_eq!(relation_of(&plan, "docker", "crun"), None);
    assert_eq!(relation_of(&plan, "docker", "bare"), Some(Relation::Baseline));
    assert_eq!(relation_of(&plan, "docker+crun:log=none,net=none", "docker+crun"), None);
}

#[test]
fn no_cause_is_named_where_something_inherited_differs_too() {
    let entry = |text: &str, files: &str| {
        let fact = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let facts = [("ulimit nofile", files), ("umask", "0022"), ("environment", "HOME=1 PATH=1")];
        let inherited = if files.is_empty() { Default::default() } else { facts.map(fact).into() };
        Entry { inherited, ..entry(text, Layer::Engine, Ladder::AsInstalled, Some("runc")) }
    };
    let relation = |one: (&str, &str), other: (&str, &str)| {
        let subjects = vec![entry("podman", "9"), entry(other.0, other.1), entry(one.0, one.1)];
        let plan = make(Request { subjects, ..request(Rounds::Fixed(3)) });
        relation_of(&plan, one.0, other.0).unwrap()
    };
    let remap = "docker:userns=remap";
    assert_eq!(relation((remap, "1024"), ("docker", "20000")), Relation::KeyAndMore { key: "userns".into() });
    // Near it: equal limits, limits that are the question, and a run that does not know them.
    assert_eq!(relation((remap, "20000"), ("docker", "20000")), Relation::OneKey { key: "userns".into() });
    let asked = ("docker:ulimit=1024", "1024");
    assert_eq!(relation(asked, ("docker", "20000")), Relation::OneKey { key: "ulimit".into() });
    assert_eq!(relation((remap, "1024"), ("docker", "")), Relation::OneKey { key: "userns".into() });
    assert_eq!(Relation::KeyAndMore { key: "userns".into() }.role(), Role::Asked);
}

#[test]
fn what_is_in_force_decides_and_not_what_was_typed() {
    use Ladder::{AsInstalled, Equalised};
    let relation = |upper: Entry, lower: Entry| {
        let bare = entry("bare", Layer::Bare, AsInstalled, None);
        let (one, other) = (upper.label.clone(), lower.label.clone());
        let plan = make(Request { subjects: vec![bare, lower, upper], ..request(Rounds::Fixed(3)) });
        relation_of(&plan, &one, &other)
    };
    let one = |key: &str| Some(Relation::OneKey { key: key.into() });
    let docker = |keys: &str| entry(&format!("docker{keys}"), Layer::Engine, AsInstalled, Some("runc"));
    let podman = |keys: &str| entry(&format!("podman{keys}"), Layer::Engine, Equalised, Some("runc"));
    assert_eq!(relation(docker(":log=none,seccomp=default"), docker(":log=none")), Some(Relation::Choice));
    assert_eq!(relation(docker(":log=default,seccomp=off"), docker("")), one("seccomp"));
    assert_eq!(relation(docker(":image=fat"), docker("")), one("image"));
    assert_eq!(relation(docker(":image=\"debian:12\""), docker("")), one("image"));
    assert_eq!(relation(docker(":image=fat,net=none"), docker("")), None);
    assert_eq!(relation(podman(":log=none,net=none,seccomp=off"), docker(":log=none,net=none")), None);
    let crun = entry("crun", Layer::Runtime, AsInstalled, Some("crun"));
    assert_eq!(relation(entry("runc", Layer::Runtime, AsInstalled, Some("runc")), crun), one("runtime"));
    let containerd = |keys: &str| {
        entry(&format!("containerd:log=none,net=none{keys}"), Layer::Engine, Equalised, Some("runc"))
    };
    assert_eq!(relation(containerd(""), docker(":log=none,net=none")), None);
    assert_eq!(relation(containerd(",seccomp=default"), docker(":log=none,net=none")), one("engine"));
    assert_eq!(relation(containerd(",seccomp=default"), containerd("")), one("seccomp"));
    assert_eq!(relation(podman(":log=default,net=none"), docker(":net=none,seccomp=default")), one("engine"));
}

#[test]
fn a_choice_of_one_thing_is_asked_and_of_several_described_on_demand() {
    use Ladder::AsInstalled;
    let engine = |text: &str, runtime: &str| entry(text, Layer::Engine, AsInstalled, Some(runtime));
    let subjects = vec![
        entry("bare", Layer::Bare, AsInstalled, None),
        engine("docker", "runc"),
        engine("docker+crun", "crun"),
        engine("podman", "crun"),
        engine("podman+runc", "runc"),
    ];
    let mut plan = make(Request { subjects, ..request(Rounds::Fixed(3)) });
    // Each with its defaults, though runtime, network and log differ too.
    assert_eq!(relation_of(&plan, "podman", "docker"), Some(Relation::Choice));
    assert_eq!(relation_of(&plan, "podman+runc", "docker+crun"), None);
    assert_eq!(relation_of(&plan, "podman", "docker+crun"), None);
    let before = plan.count_verdicts();
    assert_eq!(plan.describe("podman+runc", "docker+crun"), 1);
    assert_eq!(relation_of(&plan, "podman+runc", "docker+crun"), Some(Relation::Several));
    assert_eq!(plan.count_verdicts(), before);
    assert_eq!((plan.describe("podman", "docker"), plan.describe("podman", "unknown")), (1, 0));
    assert_eq!(relation_of(&plan, "podman", "docker"), Some(Relation::Choice));
}

#[test]
fn every_verdict_counts_in_the_family_of_its_experiment_and_twins_in_one_of_their_own() {
    let alone = plan(Rounds::Fixed(3));
    let own = &alone.verdicts[0];
    assert_eq!((own.all_asked() + own.controls, own.controls), (alone.comparisons.len() * 2 * 3, 4 * 2 * 3));
    // Docker with another runtime, and one engine as another, each by one metric in one setting.
    assert_eq!(own.first, 2);
    let compared: Vec<_> = alone.compared().collect();
    let first = |(comparison, cell, _): &(usize, usize, usize)| {
        (0..alone.metrics(&alone.cells[*cell]).len())
            .any(|metric| alone.role(*comparison, *cell, metric) == Role::First)
    };
    let asked: Vec<_> = compared.iter().filter(|one| first(one)).collect();
    assert_eq!(asked.len(), 2);
    assert!(asked.iter().all(|(_, cell, _)| alone.cells[*cell].setting == alone.cells[0].setting));
    // A plan of an older version has one family.
    let verdicts =
        alone.verdicts.iter().map(|own| Verdicts { first: 0, asked: own.all_asked(), ..own.clone() });
    let older = Plan { verdicts: verdicts.collect(), ..alone.clone() };
    assert!(compared.iter().all(|(comparison, cell, _)| older.role(*comparison, *cell, 0) != Role::First));
    let subjects = ladder().into_iter().map(|one| Entry { offers: Need::ALL.to_vec(), ..one }).collect();
    let experiments = vec!["start", "exec"];
    let both = make(Request { experiments, subjects, ..request(Rounds::Fixed(3)) });
    assert_eq!(both.verdicts.len(), 2);
    assert_eq!(both.verdicts_of("start"), Some(own));
    assert_eq!(both.alpha("start"), alone.alpha("start"));
    let needed = both.verdicts.iter().map(|one| min_rounds(Alpha::shared_by(one.asked))).max().unwrap();
    assert_eq!(both.rounds_for_verdicts(), needed + SPARE_ROUNDS);
}

/// A setting with a control is compared with it within each subject that has both, in the family of its experiment.
#[test]
fn settings_are_compared_with_their_controls_within_a_subject() {
    let subjects = || {
        let offers = |name: &str| if name == "floor" { vec![] } else { vec![Need::Volumes] };
        let more = |entry: Entry| Entry { offers: [entry.offers, offers(&entry.label)].concat(), ..entry };
        let named = ["bare", "floor", "docker"]
            .map(|name| ladder().into_iter().find(|entry| entry.label == name).expect("it is on the ladder"));
        let kept = entry("docker:rm=false", Layer::Engine, Ladder::AsInstalled, Some("runc"));
        let kept = Entry { variant_of: Some("docker".into()), ..kept };
        named.into_iter().chain([kept]).map(more).collect::<Vec<_>>()
    };
    let chosen = |places: &[&str]| {
        let places = places.iter().map(|place| (*place).to_owned()).collect();
        let (experiments, chosen) = (vec!["disk"], vec![("place".to_owned(), places)]);
        make(Request { experiments, chosen, subjects: subjects(), ..request(Rounds::Fixed(3)) })
    };
    let of_settings = |plan: &Plan| -> Vec<(String, String, String)> {
        let own = plan.compared().filter(|(one, ..)| plan.comparisons[*one].relation.is_of_settings());
        let place = |cell: usize| plan.cells[cell].setting.get("place").unwrap().to_owned();
        own.map(|(_, cell, against)| {
            assert_eq!(plan.entry(cell), plan.entry(against));
            (plan.entry(cell).label.clone(), place(cell), place(against))
        })
        .collect()
    };
    let both = chosen(&["bind", "root", "volume"]);
    let of = |label: &str| (label.to_owned(), "volume".to_owned(), "root".to_owned());
    // The floor has no volumes; twins watch the instrument, and variants show the effect of their key alone.
    assert_eq!(of_settings(&both), [of("bare"), of("docker")]);
    let between_subjects = Plan {
        comparisons: both.comparisons.iter().filter(|one| !one.relation.is_of_settings()).cloned().collect(),
        ..both.clone()
    };
    let asked = |plan: &Plan| plan.count_verdicts()[0].all_asked();
    // Each gives a verdict in every decisive metric.
    assert_eq!(asked(&both) - asked(&between_subjects), 2 * 5);
    assert_eq!(both.verdicts, both.count_verdicts());
    for without in [&["bind", "volume"][..], &["root"]] {
        assert_eq!(of_settings(&chosen(without)), [], "{without:?}");
    }
}

#[test]
fn a_quota_is_compared_with_none_and_no_subject_with_another() {
    let subjects = ["floor", "containerd", "docker", "podman"].into_iter().flat_map(|name| {
        let layer = if name == "floor" { Layer::Floor } else { Layer::Engine };
        let own = |text: &str| Entry {
            launch: Nanos::from_millis(if name == "floor" { 15 } else { 350 }),
            ..entry(text, layer, Ladder::AsInstalled, None)
        };
        let limited = ["0.4", "0.5"].map(|cpus| Entry {
            variant_of: Some(name.into()),
            only_in: vec!["throttle"],
            ..own(&format!("{name}:cpus={cpus}"))
        });
        [own(name)].into_iter().chain(limited)
    });
    let subjects: Vec<Entry> = subjects.collect();
    let planned = |experiments, subjects: &[Entry]| {
        let rounds = Rounds::Fit(Nanos::from_millis(265_000));
        make(Request { experiments, subjects: subjects.to_vec(), ..request(rounds) })
    };
    let plan = planned(vec!["throttle"], &subjects);
    let one_key = Relation::OneKey { key: "cpus".into() };
    assert!(plan.comparisons.iter().all(|one| [&one_key, &Relation::Twin].contains(&&one.relation)));
    let own = plan.verdicts_of("throttle").unwrap();
    assert_eq!((own.first, own.asked, own.controls), (4 * 2, 0, 2));
    let needed = min_rounds(plan.alpha_for("throttle", Role::First)) + SPARE_ROUNDS;
    assert_eq!((plan.rounds_of("throttle"), plan.warmups, plan.without_verdicts()), (needed, 0, Vec::new()));
    // One experiment alone is to keep to six minutes.
    assert!(plan.predicted() <= Nanos::from_millis(340_000), "{}", plan.predicted());
    // Next to others it is in no more rounds than it needs.
    let both = planned(vec!["start", "throttle"], &subjects);
    assert!(both.rounds_of("start") > both.rounds_of("throttle"));
    assert_eq!(both.rounds_of("throttle"), needed);
    // Without anything to compare, one round is enough.
    assert_eq!(planned(vec!["throttle"], &subjects[..1]).rounds_of("throttle"), 1);
}

/// The subjects of a machine with everything installed: not a promise but a figure to read, and to notice
/// when it grows.
#[test]
fn a_default_plan_of_many_subjects_asks_little_enough_to_be_decided() {
    use Ladder::{AsInstalled, Equalised};
    let runtime = |name: &str| entry(name, Layer::Runtime, AsInstalled, Some(name));
    let subjects = vec![
        entry("bare", Layer::Bare, AsInstalled, None),
        entry("floor", Layer::Floor, AsInstalled, None),
        runtime("crun"),
        runtime("runc"),
        runtime("youki"),
        entry("containerd", Layer::Engine, AsInstalled, Some("runc")),
        entry("docker", Layer::Engine, AsInstalled, Some("runc")),
        entry("docker+crun", Layer::Engine, AsInstalled, Some("crun")),
        entry("podman", Layer::Engine, AsInstalled, Some("crun")),
        entry("podman+runc", Layer::Engine, AsInstalled, Some("runc")),
        entry("docker+crun:log=none,net=none", Layer::Engine, Equalised, Some("crun")),
    ];
    let plan = make(Request { subjects, ..request(Rounds::Fit(Nanos(0))) });
    let own = &plan.verdicts[0];
    assert_eq!((own.first, own.asked, own.controls, plan.rounds_for_verdicts()), (8, 124, 24, 15));
    // What is asked first needs fewer rounds, and in as many leaves out what is farthest away.
    let lowest =
        |role| crate::stats::median_ranks(14, plan.alpha_for("start", role)).map(|ranks| ranks.lower);
    assert_eq!([Role::First, Role::Asked].map(lowest), [Some(2), Some(1)]);
}

#[test]
fn orders_are_permutations_that_the_seed_fixes() {
    let plan = plan(Rounds::Fixed(3));
    let mut sorted = plan.order(0);
    assert_eq!(plan.order(0), plan.clone().order(0));
    assert_ne!(plan.order(0), plan.order(1));
    sorted.sort_unstable();
    assert_eq!(sorted, (0..plan.cells.len()).collect::<Vec<_>>());
}

#[test]
fn cells_that_share_a_container_follow_each_other_in_any_order() {
    let mut subjects = ladder();
    subjects.iter_mut().for_each(|entry| entry.offers.push(Need::Address));
    let experiments = vec!["net-latency", "start", "net-throughput"];
    let plan = make(Request { experiments, subjects, ..request(Rounds::Fixed(20)) });
    let orders: Vec<_> = (0..20).map(|round| plan.order(round)).collect();
    let mut first = std::collections::BTreeSet::new();
    for order in &orders {
        let groups: Vec<_> = order.chunk_by(|one, next| plan.share(*one, *next)).collect();
        let about = |group: &&[usize]| (plan.cells[group[0]].experiment, plan.cells[group[0]].subject);
        let shared = groups.iter().filter(|group| about(group).0 != "start");
        let mut found: Vec<_> = shared.map(|group| about(group).1).collect();
        let count = found.len();
        found.sort_unstable();
        found.dedup();
        assert_eq!((found.len(), count), (plan.subjects.len(), plan.subjects.len()));
        assert!(groups.iter().all(|group| (group.len() == 1) == (about(group).0 == "start")));
        let of_first = groups.iter().find(|group| about(group).0 != "start" && about(group).1 == 0);
        first.insert(of_first.map(|group| group.to_vec()));
    }
    assert!(first.len() > 1, "{first:?}");
    // The container's time counts once.
    let launch = plan.subjects[0].launch;
    let of = |cells: &[usize]| {
        let cells = cells.iter().map(|cell| plan.cells[*cell].clone()).collect();
        Plan { cells, ..plan.clone() }.time_of(|name| name != "start")
    };
    let one = (0..plan.cells.len()).find(|cell| plan.share(*cell, *cell)).unwrap();
    let own: Vec<_> = (0..plan.cells.len()).filter(|cell| plan.share(one, *cell)).collect();
    let alone: Nanos = own.iter().map(|cell| of(&[*cell])).sum();
    assert_eq!((own.len(), alone.0 - of(&own).0), (4, 3 * 2 * launch.0));
}

#[test]
fn rounds_fit_the_time_but_never_fall_below_what_verdicts_need() {
    let short = plan(Rounds::Fit(Nanos::from_millis(1000)));
    assert_eq!(short.rounds, short.rounds_for_verdicts());
    let long = plan(Rounds::Fit(Nanos::from_millis(10_000_000)));
    assert_eq!(long.rounds, MOST_ROUNDS);
}

#[test]
fn chosen_values_restrict_the_settings() {
    let chosen = vec![("prestate".to_owned(), vec!["idle".to_owned()])];
    let plan = make(Request {
        experiments: vec!["start"],
        subjects: ladder(),
        chosen,
        seed: 7,
        rounds: Rounds::Fixed(1),
        allowed: ALLOWED,
        margins: Vec::new(),
        factorial: None,
        predictions: Vec::new(),
        trial: None,
    });
    assert_eq!(plan.cells.len(), plan.subjects.len());
}

//! Names that programs inside resolve: whom they ask, that dunnage's resolver answers in the end, and that a
//! delay planted there is found. Nothing asks a resolver elsewhere.

use std::process::Command;

use ::dunnage::orders::Answer;
use ::dunnage::orders::network::{Limit, Names, Resolve, Resolver, Which};
use ::dunnage::outcome::{Abort, FailureClass};
use ::dunnage::subject::lookup::{Helpers, Lookup};
use ::dunnage::subject::{Need as Offer, RunContext, Subject, bare};
use ::dunnage::units::Nanos;

use super::{PastDocker, ends, run_in, service, subject};
use crate::dunnage::Dunnage;
use crate::support::orders::failure;
use crate::support::{Need, lacks};

/// Subjects with what they ask, `resolver` for dunnage's own, on the networks that they can have.
const WHOM: &[(Need, &str, Offer, &str)] = &[
    (Need::Root, "bare", Offer::Resolver, "resolver"),
    (Need::Root, "floor", Offer::Resolver, "resolver"),
    (Need::Docker, "docker", Offer::Resolver, "resolver"),
    (Need::Docker, "docker:net=host", Offer::Resolver, "resolver"),
    (Need::Docker, "docker", Offer::Names, "127.0.0.11"),
    (Need::Docker, "docker:client=api", Offer::Names, "127.0.0.11"),
    (Need::Podman, "podman", Offer::Resolver, "resolver"),
    (Need::Podman, "podman", Offer::Names, "10."),
    (Need::Podman, "podman:client=api", Offer::Names, "10."),
];

fn begun<'a>(
    subject: &'a dyn Subject,
    host: &'a dyn Subject,
    (offer, micros): (Offer, i64),
    run: &'a RunContext,
) -> Lookup<'a> {
    let begun = Lookup::begin(subject, host, (offer, Nanos(micros * 1000)), run);
    begun.unwrap_or_else(|why| panic!("{}, {offer:?}: {why:?}", subject.about().spec))
}

/// Whether this podman is older than 4.4.3, with which `--dns` replaces the resolver of its network.
fn podman_replaces_its_resolver() -> bool {
    let said = Command::new("podman").args(["version", "--format", "{{.Client.Version}}"]).output().unwrap();
    let text = String::from_utf8(said.stdout).unwrap();
    let parts: Vec<u32> = text.trim().split(['.', '-']).map_while(|part| part.parse().ok()).collect();
    assert_eq!(parts.len(), 3, "podman's version is `{text}`");
    parts < vec![4, 4, 3]
}

fn is_replaced(names: Result<(Answer<Names>, Helpers), Abort>) {
    let Err(Abort::Failed(failure)) = names else { panic!("names were resolved: {names:?}") };
    assert_eq!(failure.class, FailureClass::Unsupported, "{failure}");
    assert!(failure.reason.contains("in place of its own"), "{failure}");
}

/// Resolves a hundred names. On a busy machine an answer may come so late that it counts as lost, so several attempts are made;
/// `asked` becomes what they asked for before the last one.
fn none_lost(lookup: &mut Lookup<'_>, which: &Which, asked: &mut i64) -> (Names, Helpers) {
    for _ in 0..5 {
        let (answer, helpers) = lookup.names(which.clone(), 100, Nanos::from_millis(5_000)).unwrap();
        if answer.done.lost == 0 {
            return (answer.done, helpers);
        }
        *asked = lookup.queries().unwrap();
    }
    panic!("each of five attempts lost answers");
}

#[test]
fn every_subject_asks_its_own_resolver_and_dunnages_answers() {
    let _open = PastDocker::begin();
    for (need, text, offer, whom) in WHOM {
        if lacks("every_subject_asks_its_own_resolver_and_dunnages_answers", *need) {
            continue;
        }
        let dunnage = Dunnage::new();
        let run = run_in(&dunnage.state());
        let (subject, host) = (subject(text, &run), bare::peer(&run.place));
        let mut lookup = begun(subject.as_ref(), &host, (*offer, 0), &run);
        let mut asked = 0;
        if *need == Need::Podman && *offer == Offer::Names && podman_replaces_its_resolver() {
            is_replaced(lookup.names(Which::Fresh, 100, Nanos::from_millis(5_000)));
            drop(lookup);
            ends(&dunnage, subject, run);
            continue;
        }
        for which in [Which::Fresh, Which::Repeated] {
            let (names, helpers) = none_lost(&mut lookup, &which, &mut asked);
            let Names { count, warm_up, wrong, lost, .. } = names;
            assert_eq!([count, warm_up, wrong, lost], [100, 1, 0, 0], "{text}");
            let told = names.resolver.ip().to_string();
            let own = lookup.resolver().ip().to_string();
            let expected = if *whom == "resolver" { &*own } else { whom };
            assert!(told.starts_with(expected), "{text}, {offer:?}: {told:?}, not {expected}");
            let is_forwarded = text.starts_with("podman") && *offer == Offer::Names;
            // One process of podman's answers for all of its networks, those of other tests too.
            assert!(!is_forwarded || helpers.names.contains("aardvark-dns"), "{text}: {helpers:?}");
            assert!(text.starts_with("podman") || helpers.names == "none", "{text}: {helpers:?}");
            // Neither engine has a cache. The first name is in no count.
            asked += 102;
            assert_eq!(lookup.queries().unwrap(), asked, "{text}, {offer:?}, {which:?}");
        }
        drop(lookup);
        ends(&dunnage, subject, run);
    }
}

#[test]
fn the_name_of_a_container_is_known_to_its_engine_alone() {
    let _open = PastDocker::begin();
    for (need, text) in [(Need::Docker, "docker"), (Need::Podman, "podman")] {
        if lacks("the_name_of_a_container_is_known_to_its_engine_alone", need) {
            continue;
        }
        let dunnage = Dunnage::new();
        let run = run_in(&dunnage.state());
        let (subject, host) = (subject(text, &run), bare::peer(&run.place));
        let mut lookup = begun(subject.as_ref(), &host, (Offer::Names, 0), &run);
        lookup.join(subject.as_ref(), &run).unwrap();
        if need == Need::Podman && podman_replaces_its_resolver() {
            is_replaced(lookup.names(Which::Repeated, 100, Nanos::from_millis(5_000)));
        } else {
            let (names, _) = none_lost(&mut lookup, &Which::Repeated, &mut 0);
            assert_eq!([names.count, names.wrong, names.lost], [100, 0, 0], "{text}");
        }
        assert_eq!(lookup.queries().unwrap(), 0, "{text}");
        drop(lookup);
        ends(&dunnage, subject, run);
    }
}

/// By way of the engine's own resolver; `load/names.rs` asks one directly.
#[test]
fn a_delay_in_the_resolver_is_found() {
    const PLANTED: i64 = 5000;
    if lacks("a_delay_in_the_resolver_is_found", Need::Docker) {
        return;
    }
    let dunnage = Dunnage::new();
    let run = run_in(&dunnage.state());
    let (subject, host) = (subject("docker", &run), bare::peer(&run.place));
    let mut both = [0, PLANTED].map(|micros| begun(subject.as_ref(), &host, (Offer::Names, micros), &run));
    let mut took = |side: usize| {
        let (answer, _) = both[side].names(Which::Fresh, 75, Nanos::from_millis(2_000)).unwrap();
        let names = &answer.done.name;
        [0.0, 0.1].map(|share| names.quantile(share).unwrap() / 1000)
    };
    let (quick, slow) = (took(0), took(1));
    let planted = PLANTED as u64;
    // Other programs only add to a time, so a tenth has next to none of it.
    assert!(slow[0] >= planted && slow[1] < 2 * planted, "{slow:?} µs, without a delay {quick:?} µs");
    assert!(quick[1] < planted, "{slow:?} µs, without a delay {quick:?} µs");
    drop(both);
    ends(&dunnage, subject, run);
}

#[test]
fn a_resolver_elsewhere_is_not_asked_and_a_missing_one_is_a_failure() {
    const TEST: &str = "a_resolver_elsewhere_is_not_asked_and_a_missing_one_is_a_failure";
    let file = Some("/etc/resolv.conf".into());
    let resolver = Resolver { own: "198.19.0.1:53".parse().unwrap(), file, is_engines: false };
    let limit = Limit { count: 10, time: Nanos(0) };
    let names = Resolve { resolver, which: Which::Fresh, limit, cpu: None };
    // The floor's image has no such file, and docker copies the host's, whose resolver is elsewhere.
    for (need, text, class, words) in [
        (Need::Root, "floor", FailureClass::Environment, "cannot read `/etc/resolv.conf`"),
        (Need::Docker, "docker", FailureClass::Permission, "is neither this machine nor a container of it"),
    ] {
        if lacks(TEST, need) {
            continue;
        }
        let dunnage = Dunnage::new();
        let run = run_in(&dunnage.state());
        let subject = subject(text, &run);
        let mut container = service(subject.as_ref(), None, &run);
        let failure = failure(&mut container, names.clone());
        assert_eq!(failure.class, class, "{text}: {failure}");
        assert!(failure.reason.contains(words), "{text}: {failure}");
        drop(container);
        ends(&dunnage, subject, run);
    }
}

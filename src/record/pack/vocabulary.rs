//! Words that a pack must be able to contain, even if a machine or user has such a name: the names of its fields, and words
//! that the program writes into them. Otherwise a user called `cell` could not write any pack.
//!
//! Every new field of a record must be named here, which a test checks, so that its author decides in `clean` or `samples` what
//! happens to it.

use dunnage_analysis::subject::limits::RESOURCES;

use super::clean::PUBLIC;
use crate::subject::KINDS;

/// The words of the format.
pub fn vocabulary() -> String {
    let mut words: Vec<&str> = vec![FIELDS, SAID, PUBLIC, INHERITED];
    words.extend(RESOURCES);
    words.extend(crate::experiment::names());
    for kind in KINDS {
        words.push(kind.name);
        words.extend(kind.keys.iter().map(|key| key.name));
    }
    for experiment in crate::experiment::ALL {
        words.push(experiment.name);
        words.extend(experiment.metrics.iter().map(|metric| metric.name));
        for key in experiment.all_keys() {
            words.push(key.name);
            words.extend(key.values);
        }
    }
    words.join(" ")
}

/// Names of fields in the files of a run and in the manifest of a pack.
const FIELDS: &str = "absolute against allowed_ns artefacts asked at available_memory baseline begin busy bytes \
    capped cell cells class command comparisons components containers control controls cost counters cpu_pressure \
    distributions disturbed issues dunnage end evidence experiment factorial factors facts failed file files \
    filter format frequency given host inherited io_pressure key label labels ladder launch_ns layer levels load looks machine \
    margins mechanism metric missing name no_cpu_accounting notes offers only_in order origin path pilot_rounds \
    position precision predecessor predicted predictions probe profile quotas reason relation relative removed role \
    round rounds rule run runtime seed series setting sha256 skipped stamps started steal step stop subject subjects \
    tags timer took treatment twin_of unavailable unknown_ns value variant_of verdicts version warmups words";

/// Words that the program writes, other than the declared names of what samples hold.
const SAID: &str = "all architecture as backend bare blocks boot_time burst chowned client connects daemon data driver engine \
    environment equalised execute floor graph idmapped installed json kernel kernel_command_line laid launch \
    lifecycle log maker manager measured mnt monitor namespace network none one ordinary own pack pieces pilot \
    pinned plan port ports private published root root_durability rootless samples seccomp_instructions server \
    snapshotter socket step storage uid unknown unpacked uptime user_mapping";

/// The words of the names of what is inherited, other than those of limits.
const INHERITED: &str = "adj allowed cpus nice oom score slack timer ulimit umask";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde::{Deserialize, Serialize};
    use serde_json::Value;
    use serde_reflection::{ContainerFormat, Tracer, TracerConfig};

    use super::super::Manifest;
    use super::*;
    use crate::outcome::{Artefact, Distribution, Failure, FailureClass};
    use crate::plan::{
        Cell, Comparison, Entry, Factor, Factorial, FixedMargin, Ladder, Plan, Precision, Quota, Relation,
        Verdicts,
    };
    use crate::record::wire::{Begin, Header, Pairs, SampleLine, Stop, Treatment};
    use crate::record::{Environment, RoundContext, plan_file};
    use crate::stats::Margin;
    use crate::subject::{Layer, Need, Spec};
    use crate::units::{Nanos, Stamp};

    /// The names of all fields of a format, at any depth, as the reader sees them.
    fn fields<'de, T: Deserialize<'de>>() -> Vec<String> {
        let mut tracer = Tracer::new(TracerConfig::default());
        tracer.trace_simple_type::<T>().expect("a format that serde can trace");
        // The values of an enumeration are not fields.
        let all = tracer.registry_unchecked();
        let of = |format: &ContainerFormat| match format {
            ContainerFormat::Struct(fields) => fields.iter().map(|field| field.name.clone()).collect(),
            _ => Vec::new(),
        };
        all.values().flat_map(of).collect()
    }

    /// The names in a complete example, for a format whose values have their own parser.
    fn names_in(example: &impl Serialize) -> Vec<String> {
        fn all_of(value: &Value, found: &mut Vec<String>) {
            match value {
                Value::Object(fields) => {
                    found.extend(fields.keys().cloned());
                    fields.values().for_each(|one| all_of(one, found));
                }
                Value::Array(values) => values.iter().for_each(|one| all_of(one, found)),
                _ => {}
            }
        }
        let mut found = Vec::new();
        all_of(&serde_json::to_value(example).expect("an example can be written"), &mut found);
        found
    }

    /// A plan with every field. New fields have to be added here too.
    fn plan() -> Plan {
        let entry = Entry {
            label: "crun".into(),
            spec: Spec::plain("crun"),
            layer: Layer::Runtime,
            ladder: Ladder::Equalised,
            twin_of: Some(0),
            runtime: Some("crun".into()),
            launch: Nanos(1),
            offers: vec![Need::Launch],
            only_in: vec!["start"],
            variant_of: Some("crun".into()),
            inherited: [("key".to_owned(), "value".to_owned())].into(),
        };
        let relation =
            Relation::OneSetting { key: "key".into(), value: "value".into(), control: "control".into() };
        Plan {
            seed: 1,
            rounds: 1,
            warmups: 1,
            baseline: 0,
            verdicts: vec![Verdicts { experiment: "start", asked: 1, controls: 0 }],
            allowed: Nanos(1),
            subjects: vec![entry],
            cells: vec![Cell { experiment: "start", setting: Default::default(), subject: 0 }],
            comparisons: vec![Comparison { experiment: "start", subject: 0, against: 0, relation }],
            margins: vec![FixedMargin {
                experiment: "start".into(),
                metric: "gone".into(),
                margin: Margin::fixed(0.0, 0.0),
            }],
            precision: Some(Precision { asked: 1.0, pilot_rounds: 1, predicted: Some(1.0), capped: false }),
            factorial: Some(Factorial {
                factors: vec![Factor { name: "net".into(), levels: Default::default() }],
                subjects: vec![0],
            }),
            looks: vec![1],
            quotas: vec![Quota { experiment: "start".into(), rounds: 1 }],
            predictions: Vec::new(),
            unknown: Nanos(1),
        }
    }

    /// A sample with every field.
    fn sample() -> SampleLine {
        fn one<T>(value: T) -> Pairs<T> {
            Pairs(vec![("seed".into(), value)])
        }
        SampleLine {
            cell: 0,
            round: 0,
            position: 0,
            predecessor: Some(0),
            started: 0,
            treatment: Some(0),
            stamps: Some(one(Stamp(0))),
            counters: one(0),
            series: one(vec![0]),
            distributions: one(Distribution::of([1])),
            artefacts: one(Artefact::File("artefacts/trace".into())),
            given: one(0.0),
            missing: one("why".into()),
            skipped: Some("why".into()),
            failed: Some(Failure::new(FailureClass::Crash, "why").with_words(b"words")),
        }
    }

    #[test]
    fn every_field_of_a_record_is_named_and_no_other() {
        let mut all: BTreeSet<String> = BTreeSet::new();
        all.extend(fields::<Environment>());
        all.extend(names_in(&plan_file::to_wire(&plan())));
        all.extend(fields::<Manifest>());
        all.extend(fields::<Header>());
        all.extend(fields::<Begin>());
        all.extend(fields::<Stop>());
        all.extend(fields::<RoundContext>());
        all.extend(fields::<Treatment>());
        all.extend(names_in(&sample()));
        // There is no prediction in the example, because it needs one that can be parsed.
        all.insert("predictions".into());
        assert!(all.len() > 90, "fields are not found: {all:?}");
        let named: BTreeSet<String> = FIELDS.split(' ').map(str::to_owned).collect();
        let new: Vec<_> = all.difference(&named).collect();
        assert!(
            new.is_empty(),
            "decide in `clean` or `samples` whether {new:?} may be in a pack, then name it here"
        );
        let gone: Vec<_> = named.difference(&all).collect();
        assert!(gone.is_empty(), "no file still has {gone:?}");
    }

    #[test]
    fn words_stand_once() {
        for words in [FIELDS, SAID] {
            let all: Vec<&str> = words.split(' ').collect();
            let distinct: BTreeSet<&str> = all.iter().copied().collect();
            assert_eq!(all.len(), distinct.len());
        }
    }
}

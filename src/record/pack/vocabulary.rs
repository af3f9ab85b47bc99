//! What must a pack be able to say, whatever the machine and its people are called? The names of its fields, and what
//! the program itself writes into them: a person called `cell` is not looked for, or no pack of theirs could be written.
//!
//! A field that is added to a record must be named here, and a test counts them: so nobody adds one without having
//! decided in `clean` or `samples` what becomes of it.

use super::clean::PUBLIC;
use crate::subject::KINDS;

/// The words of the format.
pub fn vocabulary() -> String {
    let mut words: Vec<&str> = vec![FIELDS, SAID];
    words.extend(PUBLIC);
    for kind in KINDS {
        words.push(kind.name);
        words.extend(kind.keys.iter().map(|key| key.name));
    }
    for experiment in crate::experiment::ALL {
        let about = experiment.about();
        words.push(about.name);
        words.extend(about.metrics.iter().map(|metric| metric.name));
        for key in about.all_keys() {
            words.push(key.name);
            words.extend(key.values);
        }
    }
    words.join(" ")
}

/// Names of fields, in the files of a run and in the list of what a pack holds.
const FIELDS: &str = "absolute against allowed_ns artefacts asked at available_memory baseline begin busy bytes \
    capped cell cells class command comparisons components containers controls cost counters cpu_pressure \
    distributions disturbed doubts dunnage end evidence experiment factorial factors facts failed file files \
    filter format frequency given host io_pressure key label labels ladder launch_ns layer levels load machine \
    margins mechanism metric missing name no_cpu_accounting notes offers only_in order origin path pilot_rounds \
    position precision predecessor predicted predictions probe profile quotas reason relation relative removed role \
    round rounds rule run runtime seed series setting sha256 skipped stamps started steal step subject subjects \
    tags timer took treatment twin_of unavailable variant_of verdicts version warmups words";

/// Names of facts, stamps and counters, and words that the program writes.
const SAID: &str = "aligned all architecture as attached backend bare batches began blocks boot_time burst burst_periods burst_time \
    bursts_done bursts_waiting calls capabilities cgroup cgroup_ns client client_cpu cpu cpus created daemon data \
    driver empty engine engine_cpu environment equalised every exec execed first floor gone graph huge_pages \
    indirect_branch installed ipc json kernel kernel_command_line launch length lifecycle log look made main maker \
    manager measured mnt monitor namespace network no_new_privs none one ordinary overlay own pack period_cpu \
    periods pid pieces pilot plan private processes quota quota_burst quota_period ready removed returned root \
    root_durability rootless samples seccomp seccomp_filters seccomp_instructions server snapshotter socket spawn \
    start step stop stopped storage store_bypass system threads throttled throttled_time turns uid undo undone \
    unknown uptime usage user uts vdso waited window wrong";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde::Deserialize;
    use serde_reflection::{ContainerFormat, Tracer, TracerConfig};

    use super::super::Manifest;
    use super::*;
    use crate::record::Environment;
    use crate::record::plan_file::PlanFile;
    use crate::record::wire::{Begin, End, Header, SampleLine, Treatment};

    /// The names of all fields that a file of this form can have, however deep, as the reader would take them.
    fn fields<'de, T: Deserialize<'de>>() -> Vec<String> {
        let mut tracer = Tracer::new(TracerConfig::default());
        tracer.trace_simple_type::<T>().expect("a form that serde can tell");
        // Which values an enumeration has is no matter of fields.
        let all = tracer.registry_unchecked();
        let of = |format: &ContainerFormat| match format {
            ContainerFormat::Struct(fields) => fields.iter().map(|field| field.name.clone()).collect(),
            _ => Vec::new(),
        };
        all.values().flat_map(of).collect()
    }

    #[test]
    fn every_field_of_a_record_is_named_and_no_other() {
        let mut all: BTreeSet<String> = BTreeSet::new();
        all.extend(fields::<Environment>());
        all.extend(fields::<PlanFile>());
        all.extend(fields::<Manifest>());
        all.extend(fields::<Header>());
        all.extend(fields::<Begin>());
        all.extend(fields::<End>());
        all.extend(fields::<Treatment<'_>>());
        all.extend(fields::<SampleLine<'_>>());
        assert!(all.len() > 90, "fields are not found: {all:?}");
        let named: BTreeSet<String> = FIELDS.split(' ').map(str::to_owned).collect();
        let new: Vec<_> = all.difference(&named).collect();
        assert!(
            new.is_empty(),
            "decide in `clean` or `samples` whether {new:?} may be in a pack, then name it here"
        );
        let gone: Vec<_> = named.difference(&all).collect();
        assert!(gone.is_empty(), "no file has {gone:?} any more");
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

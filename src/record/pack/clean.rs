//! The files of a run without private content. Everything that is kept is named here, field by field, and free texts go through
//! `words` and `label`. The samples are in `samples`.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::super::import::hyperfine::LABELLED;
use super::super::{
    ComponentFacts, Environment, FilterFacts, IssueFacts, Order, Origin, Source, SubjectFacts, plan_file,
    reader,
};
use super::label::{self, Labels};
use super::words::{Kind, Words};
use crate::experiment::Setting;
use crate::experiment::command::line;
use crate::experiment::setting::interned;
use crate::plan::{Entry, Plan, Prediction, Relation};
use dunnage_analysis::record::kernel::shared_arguments;
use dunnage_analysis::subject::inherited::ENVIRONMENT as VARIABLES;

/// Facts about the machine that do not identify it.
pub(super) const PUBLIC: &str = "architecture boot_time capabilities cgroup_mode cgroup_v1_controllers \
    cgroup_v2_controllers clock_source cpu cpu_cores cpu_share cpu_sockets cpu_threads cpu_usable distribution disk_kind disk_model hypervisor inside \
    kernel kernel_version memory_bytes pressure security_modules state_filesystem";
const MITIGATION: &str = "mitigation_";

/// Cleans environment and plan.
pub fn head(source: &Source, words: &mut Words, dropped: &[String]) -> Result<(Environment, Plan)> {
    let (environment, plan) = reader::head(source)?;
    let labels = match &environment.origin {
        Some(origin) if origin.order == Order::Blocks => Labels::Commands,
        _ => Labels::Subjects,
    };
    let environment = clean_environment(environment, labels, words, dropped);
    let plan = clean_plan(plan, labels, words);
    // If two texts became the same, only the reader of the pack would notice.
    plan_file::check(&plan).context(
        "the run cannot be read without its private words\n\nhint: use `--private WORD` to give a word another placeholder",
    )?;
    Ok((environment, plan))
}

fn clean_environment(run: Environment, labels: Labels, words: &mut Words, dropped: &[String]) -> Environment {
    let mut tags = BTreeMap::new();
    for (key, value) in run.tags {
        if dropped.contains(&key) {
            words.left_out(&format!("tag {key}={value}"));
        } else {
            tags.insert(words.kept(Kind::Tag, "key", &key), words.kept(Kind::Tag, "tag", &value));
        }
    }
    let mut machine = BTreeMap::new();
    for (name, value) in run.machine {
        if let Some(value) = machine_fact(&name, &value, words) {
            machine.insert(own(&name, words), value);
        }
    }
    let mut subjects = BTreeMap::new();
    for (subject, facts) in run.subjects {
        let components = facts.components.iter().map(|one| ComponentFacts {
            role: own(&one.role, words),
            path: words.program(&one.path),
            version: words.told(&one.version),
            sha256: own(&one.sha256, words),
        });
        let components = components.collect();
        let named = |(name, value): (&String, &String)| (own(name, words), note(value, labels, words));
        let notes = facts.notes.iter().map(named);
        let facts = SubjectFacts { components, notes: notes.collect() };
        subjects.insert(label::label(&subject, labels, words), facts);
    }
    if !run.command.is_empty() {
        words.left_out("the command line of the run");
    }
    Environment {
        dunnage: own(&run.dunnage, words),
        probe: own(&run.probe, words),
        run: own(&run.run, words),
        host: words.host(&run.host),
        started: own(&run.started, words),
        // It contains paths; its request is in the plan.
        command: Vec::new(),
        asked: run.asked.iter().map(|name| label::label(name, labels, words)).collect(),
        tags,
        machine,
        timer: run.timer,
        subjects,
        unavailable: run
            .unavailable
            .iter()
            .map(|(name, why)| (label::label(name, labels, words), words.told(why)))
            .collect(),
        words: BTreeMap::new(),
        no_cpu_accounting: run.no_cpu_accounting.map(|why| words.told(&why)),
        filter: run.filter.map(|filter| FilterFacts {
            origin: words.told(&filter.origin),
            sha256: own(&filter.sha256, words),
            profile: None,
        }),
        origin: run.origin.map(|origin| clean_origin(origin, labels, words)),
    }
}

/// The origin of imported samples: the file's name, and texts that may quote the file.
fn clean_origin(origin: Origin, labels: Labels, words: &mut Words) -> Origin {
    let issue = |one: IssueFacts, words: &mut Words| IssueFacts {
        labels: one.labels.iter().map(|one| label::label(one, labels, words)).collect(),
        rule: own(&one.rule, words),
        metric: one.metric.map(|metric| own(&metric, words)),
        evidence: words.quoting(&one.evidence),
        mechanism: words.quoting(&one.mechanism),
    };
    Origin {
        format: words.told(&origin.format),
        sha256: own(&origin.sha256, words),
        file: words.kept(Kind::Path, "file", &origin.file),
        notes: origin.notes.iter().map(|note| words.quoting(note)).collect(),
        issues: origin.issues.into_iter().map(|one| issue(one, words)).collect(),
        order: origin.order,
    }
}

fn machine_fact(name: &str, value: &str, words: &mut Words) -> Option<String> {
    match name {
        // Without the arguments that show the boot device and other software.
        "kernel_command_line" => {
            let shared = shared_arguments(value);
            if shared != value {
                words.left_out(&format!("{name}: {value}"));
            }
            Some(words.told(&shared))
        }
        "user" => Some(if value == "0" { "0" } else { "ordinary" }.to_owned()),
        _ if name.starts_with(MITIGATION) || PUBLIC.split_whitespace().any(|public| public == name) => {
            Some(words.told(value))
        }
        _ => {
            words.left_out(&format!("{name}: {value}"));
            None
        }
    }
}

/// A note about a subject: the output of a program, or the parameters of an imported command.
fn note(text: &str, labels: Labels, words: &mut Words) -> String {
    match labels {
        Labels::Subjects => words.told(text),
        Labels::Commands => label::command(text, words),
    }
}

fn clean_plan(mut plan: Plan, labels: Labels, words: &mut Words) -> Plan {
    plan.subjects = plan.subjects.into_iter().map(|entry| clean_entry(entry, labels, words)).collect();
    let mut settings: BTreeMap<Setting, Setting> = BTreeMap::new();
    for cell in &mut plan.cells {
        let cleaned = settings
            .entry(cell.setting.clone())
            .or_insert_with_key(|setting| clean_setting(cell.experiment, setting, words));
        cell.setting = cleaned.clone();
    }
    for factor in plan.factorial.iter_mut().flat_map(|factorial| &mut factorial.factors) {
        let name = factor.name.clone();
        factor.levels =
            std::mem::take(&mut factor.levels).map(|level| label::key_value(&name, &level, words));
        factor.name = own(&name, words);
    }
    for comparison in &mut plan.comparisons {
        match &mut comparison.relation {
            Relation::OneKey { key } | Relation::KeyAndMore { key } => *key = own(key, words),
            Relation::OneSetting { key, value, control } => {
                [key, value, control].into_iter().for_each(|text| *text = own(text, words));
            }
            _ => {}
        }
    }
    for fixed in &mut plan.margins {
        fixed.experiment = own(&fixed.experiment, words);
        fixed.metric = own(&fixed.metric, words);
    }
    for quota in &mut plan.quotas {
        quota.experiment = own(&quota.experiment, words);
    }
    plan.predictions.iter_mut().for_each(|prediction| clean_prediction(prediction, labels, words));
    plan
}

/// A text that the program writes: a name, a version, a digest, a time. If it has a character that none of these has, it comes
/// from elsewhere.
pub(super) fn own(text: &str, words: &mut Words) -> String {
    if text.contains(['/', '@', ' ']) { words.told(text) } else { text.to_owned() }
}

fn clean_entry(entry: Entry, labels: Labels, words: &mut Words) -> Entry {
    let mut inherited = entry.inherited.clone();
    if inherited.remove(VARIABLES).is_some() {
        words.left_out("the names of variables in containers");
    }
    Entry {
        inherited: inherited.iter().map(|(name, value)| (own(name, words), own(value, words))).collect(),
        label: label::label(&entry.label, labels, words),
        spec: label::spec(entry.spec, words),
        runtime: entry.runtime.map(|runtime| words.kept(Kind::Label, "runtime", &runtime)),
        variant_of: entry.variant_of.map(|of| label::label(&of, labels, words)),
        ..entry
    }
}

fn clean_setting(experiment: &str, setting: &Setting, words: &mut Words) -> Setting {
    let cleaned = setting.0.iter().map(|&(key, value)| match is_listed(experiment, key, value) {
        true => (key, value),
        false => (key, interned(&value_of_setting(key, value, words))),
    });
    Setting(cleaned.collect())
}

/// The user's value for a key of an experiment, in the key's format.
fn value_of_setting(key: &str, text: &str, words: &mut Words) -> String {
    let pair = |word: &String, words: &mut Words| match word.split_once('=') {
        Some((name, value)) => {
            format!("{}={}", words.kept(Kind::Value, "name", name), label::value("value", value, words))
        }
        // Of a variable there is only the name.
        None if key == "env" => words.kept(Kind::Value, "name", word),
        None => words.given(Kind::Value, "value", word),
    };
    let place = |part: &str, words: &mut Words| {
        if matches!(part, "ro" | "rw") { part.to_owned() } else { words.path(part) }
    };
    let all = line::split(text).unwrap_or_else(|_| vec![text.to_owned()]);
    let kept = match key {
        "cmd" if text == LABELLED => return text.to_owned(),
        "cmd" | "serve" => return label::command(text, words),
        "ready" => {
            let pattern = text.strip_prefix("log ").map(|pattern| label::value("value", pattern, words));
            return pattern.map_or_else(|| text.to_owned(), |pattern| format!("log {pattern}"));
        }
        "workdir" | "request" => return words.path(text),
        "env" | "sweep" => all.iter().map(|word| pair(word, words)).collect::<Vec<_>>(),
        "mount" => {
            let mount =
                |word: &String| word.split(':').map(|part| place(part, words)).collect::<Vec<_>>().join(":");
            all.iter().map(mount).collect()
        }
        _ => return words.kept(Kind::Value, key, text),
    };
    if kept == all { text.to_owned() } else { line::join(&kept) }
}

/// Whether the experiment itself lists this value for the key.
fn is_listed(experiment: &str, key: &str, value: &str) -> bool {
    let own = crate::experiment::find(experiment);
    let mut keys = own.into_iter().flat_map(|one| one.all_keys());
    keys.any(|one| one.name == key && one.values.contains(&value))
}

/// Cleans subjects and values of settings as in the plan, so that a prediction still refers to them.
fn clean_prediction(prediction: &mut Prediction, labels: Labels, words: &mut Words) {
    for (key, value) in &mut prediction.written.setting {
        if !is_listed(prediction.experiment, key, value) {
            *value = value_of_setting(key, value, words);
        }
    }
    for subject in &mut prediction.written.subjects {
        *subject = label::label(subject, labels, words);
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::tests::annas as words;
    use super::*;

    #[test]
    fn of_the_machine_only_what_bears_on_the_numbers_stays() {
        let mut own = words();
        let line = "root=UUID=1-2 mitigations=off ip=10.0.0.1 isolcpus=1 -- --name anna";
        let kept = machine_fact("kernel_command_line", line, &mut own);
        assert_eq!(kept.as_deref(), Some("mitigations=off isolcpus=1"));
        assert_eq!(machine_fact("user", "1204", &mut own), Some("ordinary".into()));
        assert_eq!(machine_fact("state_filesystem", "ext4", &mut own), Some("ext4".into()));
        for private in ["serial_number", "storage_state"] {
            assert_eq!(machine_fact(private, "123", &mut own), None);
        }
    }
}

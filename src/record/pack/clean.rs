//! The files of a run without what is private in them. What is kept is named here, field by field; what is not
//! named is left out, and texts that anybody may have written go through `words`. The samples stand in `samples`.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Serialize;

use super::super::source::Source;
use super::super::{Environment, environment, plan_file, reader};
use super::words::{Kind, Words};
use crate::experiment::setting::interned;
use crate::experiment::{Setting, command};
use crate::plan::{Entry, Plan};
use crate::subject::{KINDS, Spec};

/// Facts about the machine that do not tell which one it is.
pub(super) const PUBLIC: [&str; 20] = [
    "architecture",
    "boot_time",
    "capabilities",
    "cgroup_mode",
    "cgroup_v1_controllers",
    "cgroup_v2_controllers",
    "clock_source",
    "cpu",
    "cpu_cores",
    "cpu_sockets",
    "cpu_threads",
    "cpu_usable",
    "distribution",
    "hypervisor",
    "inside",
    "kernel",
    "kernel_version",
    "memory_bytes",
    "pressure",
    "security_modules",
];
const MITIGATION: &str = "mitigation_";
const STORAGE: &str = "storage_";

/// Arguments of the kernel that change what is measured, by the beginning of their names.
const ARGUMENTS: &str = "acpi amd_iommu amd_pstate apparmor audit cgroup clocksource cpufreq cpuidle default_hugepagesz elevator hpet \
    hugepages idle init_on_ intel_idle intel_iommu intel_pstate iommu irqaffinity isolcpus kpti l1tf lsm maxcpus mds \
    mem= mitigations nmi_watchdog no_timer_check noapic nohz nopti nosmt nospec nr_cpus numa page_poison preempt \
    processor. psi pti rcu_nocb security selinux skew_tick spec swapaccount transparent_hugepage \
    systemd.unified_cgroup_hierarchy systemd.legacy_systemd_cgroup_controller";

/// What a pack must be able to say, whatever the machine and its people are called.
pub(super) fn vocabulary() -> String {
    let mut words: Vec<&str> = vec![FIELDS];
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

/// Names of fields, and of what the program writes into them.
const FIELDS: &str = "absolute against allowed_ns architecture as asked at attached available_memory bare baseline began begin \
    boot_time burst busy bytes capabilities capped cell cells cgroup cgroup_ns class client client_cpu command \
    comparisons components containers cost counters cpu cpu_pressure cpus created daemon disturbed dunnage end \
    engine engine_cpu environment equalised exec experiment facts factorial factors failed family files first floor \
    format frequency gone host installed io_pressure ipc json kernel key label ladder launch launch_ns layer levels \
    lifecycle load look machine made main maker margins measured metric missing mnt monitor network none notes \
    offers ordinary overlay own pack path pid pieces pilot plan position predecessor predicted private probe \
    processes quotas ready relation returned role root round rounds run runtime samples seccomp seed series server \
    setting stamps started storage subject timer unknown user version";

/// Environment and plan of one run directory without what is private, and what its samples need.
pub struct Head {
    /// What becomes `env.json`.
    pub environment: Vec<u8>,
    /// What becomes `plan.json`.
    pub plan: Vec<u8>,
    /// By cell, whether it is of a command that may have said anything.
    pub(super) talks: Vec<bool>,
}

/// Cleans environment and plan.
pub fn head(source: &Source, words: &mut Words, dropped: &[String]) -> Result<(Head, Environment, Plan)> {
    let (environment, plan) = reader::head(source)?;
    let environment = clean_environment(environment, words, dropped);
    let plan = clean_plan(plan, words);
    let talks = plan.cells.iter().map(|cell| cell.experiment == command::NAME).collect();
    let head = Head { environment: pretty(&environment)?, plan: pretty(&plan_file::to_wire(&plan))?, talks };
    Ok((head, environment, plan))
}

fn pretty(value: &impl Serialize) -> Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(value).context("cannot put a file into JSON")?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn clean_environment(run: Environment, words: &mut Words, dropped: &[String]) -> Environment {
    let host = if run.host.is_empty() { run.host } else { words.whole(Kind::Host, &run.host) };
    let mut tags = BTreeMap::new();
    for (key, value) in run.tags {
        if dropped.contains(&key) {
            words.left_out(Kind::LeftOut, &format!("tag {key}={value}"));
        } else {
            tags.insert(words.text(&key), words.text(&value));
        }
    }
    let mut machine = BTreeMap::new();
    for (name, value) in run.machine {
        if let Some(value) = machine_fact(&name, &value, words) {
            machine.insert(name, value);
        }
    }
    let mut subjects = BTreeMap::new();
    for (subject, facts) in run.subjects {
        let components = facts.components.iter().map(|one| environment::ComponentFacts {
            role: one.role.clone(),
            path: words.path(&one.path),
            version: words.version(&one.version),
            sha256: one.sha256.clone(),
        });
        let components = components.collect();
        let notes = facts.notes.iter().map(|(name, value)| (name.clone(), words.version(value))).collect();
        subjects.insert(label(&subject, words), environment::SubjectFacts { components, notes });
    }
    Environment {
        dunnage: run.dunnage,
        probe: run.probe,
        run: run.run,
        host,
        started: run.started,
        command: own_command(&run.command, words),
        tags,
        machine,
        timer: run.timer,
        subjects,
        unavailable: run
            .unavailable
            .iter()
            .map(|(name, why)| (label(name, words), words.text(why)))
            .collect(),
        no_cpu_accounting: run.no_cpu_accounting.map(|why| words.text(&why)),
        origin: run.origin.map(|origin| super::origin::clean(origin, words)),
    }
}

fn machine_fact(name: &str, value: &str, words: &mut Words) -> Option<String> {
    if PUBLIC.contains(&name) || name.starts_with(MITIGATION) {
        return Some(words.version(value));
    }
    if name == "kernel_command_line" {
        return Some(kernel_arguments(value, words));
    }
    if name == "user" {
        return Some(if value == "0" { "0" } else { "ordinary" }.to_owned());
    }
    if name.starts_with(STORAGE) {
        return Some(storage(value, words));
    }
    words.left_out(Kind::LeftOut, &format!("{name}: {value}"));
    None
}

/// What the boot loader passed, without what says where the machine boots from and what else runs on it.
fn kernel_arguments(line: &str, words: &mut Words) -> String {
    // What follows two hyphens is for the first program.
    let own = line.split(" -- ").next().unwrap_or_default();
    let is_known = |word: &&str| ARGUMENTS.split_whitespace().any(|known| word.starts_with(known));
    let (kept, others): (Vec<&str>, Vec<&str>) = own.split_whitespace().partition(is_known);
    let rest = line.strip_prefix(own).unwrap_or_default().trim();
    for word in others.into_iter().chain((!rest.is_empty()).then_some(rest)) {
        words.left_out(Kind::LeftOut, &format!("kernel argument {word}"));
    }
    words.version(&kept.join(" "))
}

/// What lies under a directory: its filesystem and the options that are switches or numbers.
fn storage(value: &str, words: &mut Words) -> String {
    let parts = value.rsplit_once(" (").and_then(|(front, options)| {
        let (path, filesystem) = front.split_once(": ")?;
        let (filesystem, device) = filesystem.split_once(" on ")?;
        Some((path, filesystem, device, options.strip_suffix(')')?))
    });
    let Some((path, filesystem, device, options)) = parts else {
        return words.whole(Kind::Path, value);
    };
    let plain = |c: char| c.is_ascii_alphanumeric();
    // A disk is called by its place on a bus; other names are given by people.
    let device = match device.strip_prefix("/dev/").filter(|name| name.chars().all(plain)) {
        Some(disk) => format!("/dev/{}", words.version(disk)),
        None if device.contains(['/', ':', '.']) => words.whole(Kind::Path, device),
        None => words.version(device),
    };
    let is_known = |option: &&str| match option.split_once('=') {
        None => option.chars().all(|c| plain(c) || c == '_'),
        Some((_, value)) => !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()),
    };
    let kept: Vec<&str> = options.split(',').filter(is_known).collect();
    format!("{}: {filesystem} on {device} ({})", words.path(path), kept.join(","))
}

/// The command line that began the run: `dunnage`, and each word by its own form.
fn own_command(all: &[String], words: &mut Words) -> Vec<String> {
    let mut cleaned = Vec::new();
    let mut before = "";
    for (at, word) in all.iter().enumerate() {
        let (option, value) = match word.split_once('=').filter(|_| word.starts_with("--")) {
            Some((option, value)) => (option, value),
            None => (before, word.as_str()),
        };
        let head = &word[..word.len() - value.len()];
        let clean = match option {
            _ if at == 0 => "dunnage".to_owned(),
            _ if word.starts_with('-') && head.is_empty() => words.text(word),
            "-o" | "--output" | "--plan" | "--write" => file_name(value, words),
            "-s" | "--subject" => label(value, words),
            "--cmd" => command_line(value, words),
            "--mount" => mounts(value, words),
            "--env" => variables(value, words),
            _ => words.text(value),
        };
        cleaned.push(if at == 0 { clean } else { format!("{head}{clean}") });
        before = if word.starts_with('-') { word } else { "" };
    }
    cleaned
}

/// A file that a person named; plans that the program brings have plain names, and so may others.
fn file_name(name: &str, words: &mut Words) -> String {
    if name.contains('/') { words.path(name) } else { words.text(name) }
}

/// A subject's label or specification.
pub(super) fn label(text: &str, words: &mut Words) -> String {
    const TWIN: &str = " (twin)";
    let (own, twin) = text.strip_suffix(TWIN).map_or((text, ""), |own| (own, TWIN));
    let Ok(parsed) = Spec::parse(own) else { return words.text(text) };
    let name = parsed.label.as_ref().map(|name| format!("{}=", words.text(name))).unwrap_or_default();
    format!("{name}{}{twin}", spec(parsed, words))
}

/// A specification in which values that a person chose are replaced by their kind.
fn spec(spec: Spec, words: &mut Words) -> Spec {
    let keys = spec.keys.into_iter().map(|(key, value)| {
        let value = key_value(&key, &value, words);
        (key, value)
    });
    let is_kind = KINDS.iter().any(|kind| kind.name == spec.name);
    Spec {
        keys: keys.collect(),
        name: if is_kind { spec.name } else { words.text(&spec.name) },
        runtime: spec.runtime.map(|runtime| words.text(&runtime)),
        label: None,
    }
}

fn key_value(key: &str, value: &str, words: &mut Words) -> String {
    match key {
        "image" => image(value, words),
        "rootless" => words.whole(Kind::User, value),
        _ if value.contains('/') && !value.contains("://") => words.path(value),
        _ => words.text(value),
    }
}

/// An image keeps its name where that is one word, as those have that everybody can pull.
fn image(name: &str, words: &mut Words) -> String {
    if name.contains('/') { words.whole(Kind::Image, name) } else { words.text(name) }
}

fn clean_plan(mut plan: Plan, words: &mut Words) -> Plan {
    plan.subjects = plan.subjects.into_iter().map(|entry| clean_entry(entry, words)).collect();
    let mut settings: BTreeMap<Setting, Setting> = BTreeMap::new();
    for cell in &mut plan.cells {
        let cleaned = settings
            .entry(cell.setting.clone())
            .or_insert_with_key(|setting| clean_setting(cell.experiment, setting, words));
        cell.setting = cleaned.clone();
    }
    for factor in plan.factorial.iter_mut().flat_map(|factorial| &mut factorial.factors) {
        let name = factor.name.clone();
        factor.levels = std::mem::take(&mut factor.levels).map(|level| key_value(&name, &level, words));
    }
    plan
}

fn clean_entry(entry: Entry, words: &mut Words) -> Entry {
    Entry {
        label: label(&entry.label, words),
        spec: spec(entry.spec, words),
        runtime: entry.runtime.map(|runtime| words.text(&runtime)),
        variant_of: entry.variant_of.map(|of| label(&of, words)),
        ..entry
    }
}

fn clean_setting(experiment: &str, setting: &Setting, words: &mut Words) -> Setting {
    let own = crate::experiment::find(experiment);
    let listed = |key: &str, value: &str| {
        let mut keys = own.into_iter().flat_map(|one| one.about().all_keys());
        keys.any(|one| one.name == key && one.values.contains(&value))
    };
    let cleaned = setting.0.iter().map(|&(key, value)| {
        let text = match key {
            _ if listed(key, value) => return (key, value),
            "cmd" => command_line(value, words),
            "mount" => mounts(value, words),
            "env" | "sweep" => variables(value, words),
            "workdir" => words.path(value),
            _ => words.text(value),
        };
        (key, interned(&text))
    });
    Setting(cleaned.collect())
}

/// The words of a text as a shell would split them, each cleaned, and joined again. What cannot be split is no
/// command.
fn each_word(text: &str, clean: &mut dyn FnMut(&str) -> String) -> String {
    match command::line::split(text) {
        Ok(words) => command::line::join(&words.iter().map(|word| clean(word)).collect::<Vec<_>>()),
        Err(_) => clean(text),
    }
}

/// The names behind which a command is given what nobody else should know.
const BEFORE_SECRETS: [&str; 8] = ["pass", "token", "secret", "key", "auth", "credential", "cookie", "user"];

/// A command that was measured: its program and options stay, places and values behind telling names do not.
fn command_line(text: &str, words: &mut Words) -> String {
    let is_telling = |name: &str| {
        let name = name.to_lowercase();
        BEFORE_SECRETS.iter().any(|part| name.contains(part))
    };
    let mut value_follows = false;
    each_word(text, &mut |word| {
        if std::mem::take(&mut value_follows) && !word.starts_with('-') {
            return words.whole(Kind::Value, word);
        }
        if let Some((name, value)) = word.split_once('=')
            && !name.contains(char::is_whitespace)
        {
            let is_variable = !name.starts_with('-')
                && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
            if !value.is_empty() && (is_variable || is_telling(name)) {
                return format!("{name}={}", words.whole(Kind::Value, value));
            }
        }
        value_follows = word.starts_with("--") && !word.contains('=') && is_telling(word);
        let is_path = ["/", "./", "../", "~/"].iter().any(|start| word.starts_with(start));
        let is_one = is_path && !word.contains([':', '=', ';', '|', '&', '\n']);
        if is_one { words.path(word) } else { words.text(word) }
    })
}

/// Mounts as `HOST:INSIDE[:ro]`, one or several.
fn mounts(text: &str, words: &mut Words) -> String {
    each_word(text, &mut |mount| {
        let parts: Vec<String> = mount
            .split(':')
            .map(|part| if part.starts_with('/') { words.path(part) } else { part.to_owned() })
            .collect();
        parts.join(":")
    })
}

/// Variables as `NAME=VALUE`, one or several; numbers stay.
fn variables(text: &str, words: &mut Words) -> String {
    each_word(text, &mut |pair| match pair.split_once('=') {
        Some((_, value)) if value.parse::<f64>().is_ok() || value.is_empty() => pair.to_owned(),
        Some((name, value)) => format!("{name}={}", words.whole(Kind::Value, value)),
        None => words.text(pair),
    })
}

#[cfg(test)]
mod tests {
    use super::super::words::Known;
    use super::*;

    fn words() -> Words {
        let machine = crate::host::private::Private { users: vec!["anna".into()], ..Default::default() };
        let programs = ["crun-1.8".to_owned(), "gzip".to_owned()].into();
        Words::new(Known { machine, programs, vocabulary: vocabulary(), ..Known::default() })
    }

    #[test]
    fn a_command_keeps_its_program_and_options_and_loses_places_and_secrets() {
        let cases = [
            ("gzip -k9 /data/file", "gzip -k9 '/…/path1'"),
            ("/usr/bin/gzip -k9 {n}", "'/…/gzip' -k9 '{n}'"),
            ("curl --token abc -v https://a.b/c", "curl --token value1 -v https://place1"),
            ("x --password=abc TOKEN=abc size=3", "x --password=value1 TOKEN=value1 size=3"),
            ("sh -c 'cat /home/anna/x | wc'", "sh -c 'cat /…/path1 | wc'"),
            ("cat '/home/anna/my files/x'", "cat '/…/path1'"),
        ];
        for (text, expected) in cases {
            let cleaned = command_line(text, &mut words());
            assert_eq!(cleaned, expected, "{text}");
            assert!(command::line::split(&cleaned).is_ok());
        }
        assert_eq!(mounts("/srv/a:/in:ro", &mut words()), "'/…/path1:/…/path2:ro'");
        assert_eq!(variables("A=secret N=10", &mut words()), "A=value1 N=10");
    }

    #[test]
    fn subjects_keep_what_they_are() {
        let cases = [
            ("docker+crun:net=none", "docker+crun:net=none"),
            ("old=crun:bin=./crun-1.8", "old=crun:bin=/…/crun-1.8"),
            ("docker:image=\"registry.a:5000/x\" (twin)", "docker:image=image1 (twin)"),
            ("podman:rootless=berta", "podman:rootless=user1"),
            ("docker:image=\"alpine:3\"", "docker:image=\"alpine:3\""),
        ];
        for (text, expected) in cases {
            assert_eq!(label(text, &mut words()), expected);
        }
    }

    #[test]
    fn of_the_machine_only_what_bears_on_the_numbers_stays() {
        let mut own = words();
        let line = "root=UUID=1-2 mitigations=off ip=10.0.0.1 isolcpus=1 -- --name anna";
        assert_eq!(kernel_arguments(line, &mut own), "mitigations=off isolcpus=1");
        let shown = storage(
            "/home/anna/x: ext4 on /dev/vda1 (rw,relatime,data=ordered,commit=5,user=anna)",
            &mut own,
        );
        assert_eq!(shown, "/…/path1: ext4 on /dev/vda1 (rw,relatime,commit=5)");
        let shown = storage("/srv: nfs on files.corp:/x (rw,addr=10.0.0.2)", &mut own);
        assert_eq!(shown, "/…/path2: nfs on path1 (rw)");
        assert_eq!(machine_fact("user", "1204", &mut own), Some("ordinary".into()));
        assert_eq!(machine_fact("serial_number", "123", &mut own), None);
        let typed = ["/x/dunnage", "run", "-o", "/home/anna/first", "--tag", "owner=anna", "--cmd=cat /a"];
        let cleaned = own_command(&typed.map(str::to_owned), &mut words());
        assert_eq!(
            cleaned,
            ["dunnage", "run", "-o", "/…/path1", "--tag", "owner=user1", "--cmd=cat '/…/path2'"]
        );
    }
}

//! What was measured where and how: the head of every format for people.

use super::model::{Order, Report};
use super::text::{confidence, in_brackets, in_shell, listed};
use crate::distinct;
use crate::record::ComponentFacts;
use crate::stats::Alpha;
use crate::units::counted;

/// Formats a fact.
type Shown = fn(&str) -> String;

/// The facts about a machine that the head shows, with their formats.
const MACHINE: [(&str, Shown); 7] = [
    ("distribution", str::to_owned),
    ("kernel", |release| format!("Linux {release}")),
    ("cpu", str::to_owned),
    ("cpu_usable", |count| format!("{count} CPU{}", if count == "1" { "" } else { "s" })),
    ("memory_bytes", |bytes| bytes.parse().map_or_else(|_| bytes.to_owned(), memory)),
    ("hypervisor", |name| format!("under {name}")),
    ("inside", |name| format!("inside {name}")),
];

fn memory(bytes: f64) -> String {
    format!("{} GiB", crate::units::three_digits(bytes / f64::from(1 << 30)))
}

/// A fact about the machine.
pub fn fact<'a>(report: &'a Report, name: &str) -> Option<&'a str> {
    report.machine.iter().find(|(own, _)| own == name).map(|(_, fact)| fact.as_str())
}

/// The machine, without its name.
pub fn machine(report: &Report) -> Vec<String> {
    let shown = MACHINE.iter().filter_map(|(name, shown)| fact(report, name).map(shown));
    shown.filter(|text| !text.is_empty()).collect()
}

/// The versions of what was measured, each once.
pub fn versions(report: &Report) -> Vec<String> {
    let told = |program: &ComponentFacts| {
        let name = program.path.rsplit('/').next().unwrap_or_default();
        let version = &program.version;
        let says_its_name = version.to_lowercase().contains(&name.to_lowercase());
        let text = if says_its_name { version.clone() } else { format!("{name} {version}") };
        (!version.is_empty()).then_some(text)
    };
    distinct(report.programs.iter().filter_map(told))
}

/// The number of rounds, their order, and the level of verdicts.
pub fn rounds(report: &Report) -> String {
    let Some(imported) = &report.imported else {
        let probe: String = report.probe.chars().take(12).collect();
        return format!("{}; probe {probe}", own_rounds(report));
    };
    let how = match imported.order {
        Order::Rounds => own_rounds(report),
        Order::Blocks => {
            format!("{} in blocks, not in rounds; no verdicts", counted(report.samples, "sample"))
        }
    };
    format!("imported from {}, not measured by dunnage; {how}", imported.from)
}

/// How many rounds are complete, and how many were planned if not all are.
pub fn done(complete: usize, planned: usize) -> String {
    let of = if complete == planned { String::new() } else { format!("{complete} of ") };
    of + &counted(planned, "round")
}

fn own_rounds(report: &Report) -> String {
    let rounds = report.rounds;
    let done = done(rounds.complete, rounds.planned);
    let rare = report.experiments.iter().filter_map(|one| Some(format!("{} with {}", one.rounds?, one.name)));
    let rare = in_brackets(&listed(rare, ", "));
    let verdicts = families(report);
    // An imported table has the order of each round, but no seed.
    let seed = match report.imported {
        None => format!(", seed {}", rounds.seed),
        Some(_) => String::new(),
    };
    let warmups = counted(rounds.warmups, "warm-up round");
    format!("{done}{rare} in shuffled order after {warmups}{seed}; {verdicts}")
}

/// The number of verdicts of each experiment, and their level.
fn families(report: &Report) -> String {
    let asked = report.experiments.iter().flat_map(|one| {
        let of = |count: usize, level: f64, what: &str, on: &str| {
            let level = Alpha::new(level).map_or_else(String::new, confidence);
            (count > 0).then(|| format!("{} of {}{on} at {level}", counted(count, what), one.name))
        };
        let others = if one.first_verdicts > 0 { "other verdict" } else { "verdict" };
        [
            of(one.first_verdicts, one.first_level, "verdict", " on what is asked first"),
            of(one.verdicts_in_family, one.verdict_level, others, ""),
        ]
    });
    match listed(asked.flatten(), ", ") {
        none if none.is_empty() => "no verdicts".to_owned(),
        each => format!("{each}, so that each of these families holds at 95 %"),
    }
}

/// A time in UTC to the second; anything else unchanged.
pub fn started(text: &str) -> String {
    let known = text.parse::<jiff::Timestamp>();
    known.map_or_else(|_| text.to_owned(), |time| time.strftime("%F %T UTC").to_string())
}

/// The result of the test for carry-over.
pub fn carry_over(report: &Report) -> String {
    let found = report.warnings.iter().filter(|notice| notice.kind == "carry-over").count();
    let metric =
        report.experiments.first().and_then(|one| one.metrics.first()).map_or("", |metric| metric.name);
    let tested = counted(report.carry_over_tested, "cell");
    match (report.carry_over_tested, found) {
        (0, _) => "carry-over cannot be tested: too few rounds or kinds of predecessors".to_owned(),
        (_, 0) => format!("carry-over tested in {tested} of {metric}: none found"),
        (_, some) => format!("carry-over tested in {tested} of {metric}: found in {some}, see warnings"),
    }
}

/// The command line that measures the same again, and the one that also repeats the order.
pub fn repeat(report: &Report) -> Vec<String> {
    let has = |is_it: fn(&str) -> bool| report.command.iter().any(|word| is_it(word));
    let command = in_shell(&report.command);
    let seeded = (has(|word| word == "run") && !has(|word| word == "--seed" || word.starts_with("--seed=")))
        .then(|| format!("{command} --seed {}", report.rounds.seed));
    [command].into_iter().filter(|line| !line.is_empty()).chain(seeded).collect()
}

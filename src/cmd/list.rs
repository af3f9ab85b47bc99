//! `dunnage list`: experiments, subjects, metrics and plans, from the lists that the program itself uses.

use std::io::Write;

use anyhow::Result;

use crate::cli::Listed;
use crate::experiment::{self, Weight};
use crate::plan_file::shipped;
use crate::subject::{self, Spec};
use crate::{exit, session};

/// Runs the verb.
pub fn run(what: Option<Listed>) -> Result<i32> {
    let mut out = std::io::stdout().lock();
    let wanted = |one| what.is_none() || what == Some(one);
    if wanted(Listed::Experiments) {
        writeln!(out, "experiments")?;
        experiments(&mut out)?;
    }
    if wanted(Listed::Metrics) {
        writeln!(out, "metrics")?;
        metrics(&mut out)?;
    }
    if wanted(Listed::Plans) {
        writeln!(out, "plans")?;
        plans(&mut out)?;
    }
    if wanted(Listed::Subjects) {
        writeln!(out, "subjects")?;
        subjects(&mut out)?;
    }
    Ok(exit::FINE)
}

fn experiments(out: &mut impl Write) -> Result<()> {
    for experiment in experiment::ALL {
        let about = experiment.about();
        writeln!(out, "  {}\n    {}", about.name, about.question)?;
        for key in about.all_keys() {
            writeln!(out, "    --set {}={}: {}", key.name, shown(key), key.meaning)?;
        }
    }
    Ok(())
}

/// The values that a key takes; one without any takes what a person writes.
fn shown(key: &experiment::SettingKey) -> String {
    if key.values.is_empty() { "…".to_owned() } else { key.values.join("|") }
}

fn metrics(out: &mut impl Write) -> Result<()> {
    for experiment in experiment::ALL {
        let about = experiment.about();
        for metric in about.metrics {
            let (absolute, relative) = metric.margin.parts();
            let weight = match metric.weight {
                Weight::Verdict => format!(
                    "verdict; differences below {} or {} % do not matter",
                    metric.unit.format(absolute),
                    relative * 100.0
                ),
                Weight::Context => "shown beside the verdicts".to_owned(),
            };
            writeln!(out, "  {} {} [{}] ({weight})", about.name, metric.name, metric.unit.name())?;
            writeln!(out, "    {}", metric.meaning)?;
        }
    }
    Ok(())
}

fn plans(out: &mut impl Write) -> Result<()> {
    for plan in shipped::ALL {
        let file = plan.read();
        writeln!(out, "  {}\n    {}", plan.name, file.about.unwrap_or_default())?;
        let subjects: Vec<_> = file.subjects.iter().map(|one| one.text.as_str()).collect();
        writeln!(out, "    subjects: {}", subjects.join(" "))?;
    }
    Ok(())
}

fn subjects(out: &mut impl Write) -> Result<()> {
    let place = session::place()?;
    for kind in subject::shown_kinds() {
        writeln!(out, "  {} ({}): {}", kind.name, kind.layer.name(), kind.meaning)?;
        match (kind.build)(&Spec::plain(kind.name), &place) {
            Ok(subject) => {
                let facts = subject.facts();
                for one in &facts.components {
                    let hash = &one.hash[..12];
                    writeln!(
                        out,
                        "    {:<10} {} ({}), sha256 {hash}…",
                        one.role,
                        one.path.display(),
                        one.version
                    )?;
                }
                for (name, value) in facts.notes.iter().filter(|(_, value)| !value.is_empty()) {
                    writeln!(out, "    {name}: {value}")?;
                }
            }
            Err(why) => {
                writeln!(out, "    not available: {}", why.reason)?;
                if let Some(remedy) = why.remedy {
                    writeln!(out, "    remedy: {remedy}")?;
                }
            }
        }
        for key in kind.keys {
            writeln!(out, "    :{}={}: {}", key.name, key.values.described(), key.meaning)?;
        }
    }
    Ok(())
}

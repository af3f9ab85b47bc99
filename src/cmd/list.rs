//! `dunnage list`: experiments, subjects, metrics and plans, from the lists that the program itself uses.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use super::show::{self, Output, show};
use crate::cli::Listed;
use crate::document::{Block, Document, Findings, Item, Look, Section, Tone};
use crate::experiment::{self, Weight};
use crate::plan_file::shipped;
use crate::subject::{self, Spec};
use crate::units::Unit;
use crate::{exit, session};

/// Runs the verb.
pub fn run(what: Option<Listed>, format: &str) -> Result<i32> {
    show::known::<Lists>(format)?;
    let wanted = |one| what.is_none() || what == Some(one);
    let lists = Lists {
        experiments: if wanted(Listed::Experiments) { experiments() } else { Vec::new() },
        metrics: if wanted(Listed::Metrics) { metrics() } else { Vec::new() },
        plans: if wanted(Listed::Plans) { plans() } else { Vec::new() },
        subjects: if wanted(Listed::Subjects) { subjects()? } else { Vec::new() },
    };
    show(&lists, format, Path::new("."), Output::default())?;
    Ok(exit::FINE)
}

/// What was asked for; the declared shape of its JSON.
#[derive(Serialize)]
struct Lists {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    experiments: Vec<Experiment>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    metrics: Vec<Metric>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    plans: Vec<Shipped>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subjects: Vec<Subject>,
}

#[derive(Serialize)]
struct Experiment {
    name: &'static str,
    question: &'static str,
    keys: Vec<Key>,
}

#[derive(Serialize)]
struct Key {
    name: &'static str,
    values: String,
    meaning: &'static str,
}

#[derive(Serialize)]
struct Metric {
    experiment: &'static str,
    name: &'static str,
    unit: Unit,
    weight: String,
    meaning: &'static str,
}

#[derive(Serialize)]
struct Shipped {
    name: &'static str,
    about: String,
    subjects: Vec<String>,
}

#[derive(Serialize)]
struct Subject {
    name: &'static str,
    layer: &'static str,
    meaning: &'static str,
    programs: Vec<Program>,
    facts: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unavailable: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    keys: Vec<Key>,
}

#[derive(Serialize)]
struct Program {
    role: String,
    path: String,
    version: String,
    sha256: String,
}

impl Findings for Lists {
    const SCHEMA: &'static str = "dunnage-list/1";

    fn data(&self) -> impl Serialize {
        self
    }

    fn document(&self, _: &Look) -> Document {
        let set = |item: Item, key: &Key| {
            item.detail(format!("--set {}={}: {}", key.name, key.values, key.meaning))
        };
        let experiments = self
            .experiments
            .iter()
            .map(|one| one.keys.iter().fold(Item::of(one.question).named(one.name), set));
        let metrics = self.metrics.iter().map(|one| {
            let name = format!("{} {} [{}]", one.experiment, one.name, one.unit.name());
            Item::of(one.meaning).named(name).detail(&one.weight)
        });
        let plans = self.plans.iter().map(|one| {
            Item::of(&one.about).named(one.name).detail(format!("subjects: {}", one.subjects.join(" ")))
        });
        let sections = [
            ("experiments", experiments.collect::<Vec<_>>()),
            ("metrics", metrics.collect()),
            ("plans", plans.collect()),
            ("subjects", self.subjects.iter().map(Subject::item).collect()),
        ];
        let told = sections.into_iter().filter(|(_, items)| !items.is_empty());
        let mut document = Document::titled("What dunnage knows");
        document.sections = told.map(|(title, items)| Section::of(title, vec![Block::List(items)])).collect();
        document
    }
}

impl Subject {
    fn item(&self) -> Item {
        let mut item = Item::of(self.meaning).named(format!("{} ({})", self.name, self.layer));
        for Program { role, path, version, sha256 } in &self.programs {
            item = item.detail(format!("{role} {path} ({version}), sha256 {}…", &sha256[..12]));
        }
        for (name, value) in &self.facts {
            item = item.detail(format!("{name}: {value}"));
        }
        if let Some(why) = &self.unavailable {
            item = item.marked(Tone::Open, "not available").detail(why);
        }
        if let Some(remedy) = &self.remedy {
            item = item.detail(format!("remedy: {remedy}"));
        }
        let keys = self.keys.iter().map(|key| format!(":{}={}: {}", key.name, key.values, key.meaning));
        keys.fold(item, Item::detail)
    }
}

fn experiments() -> Vec<Experiment> {
    // A key without values takes what a person writes.
    let shown = |key: &experiment::SettingKey| {
        if key.values.is_empty() { "…".to_owned() } else { key.values.join("|") }
    };
    let key = |key: &experiment::SettingKey| Key { name: key.name, values: shown(key), meaning: key.meaning };
    let abouts = experiment::ALL.iter().map(|one| one.about());
    abouts
        .map(|about| Experiment {
            name: about.name,
            question: about.question,
            keys: about.all_keys().map(key).collect(),
        })
        .collect()
}

fn metrics() -> Vec<Metric> {
    let abouts = experiment::ALL.iter().map(|one| one.about());
    let all = abouts.flat_map(|about| about.metrics.iter().map(move |metric| (about.name, metric)));
    let told = |(experiment, metric): (&'static str, &experiment::Metric)| {
        let (absolute, relative) = metric.margin.parts();
        let weight = match metric.weight {
            Weight::Verdict => format!(
                "verdict; differences below {} or {} % do not matter",
                metric.unit.format(absolute),
                relative * 100.0
            ),
            Weight::Context => "shown beside the verdicts".to_owned(),
        };
        Metric { experiment, name: metric.name, unit: metric.unit, weight, meaning: metric.meaning }
    };
    all.map(told).collect()
}

fn plans() -> Vec<Shipped> {
    let read = |plan: &shipped::Shipped| {
        let file = plan.read();
        Shipped {
            name: plan.name,
            about: file.about.unwrap_or_default(),
            subjects: file.subjects.into_iter().map(|one| one.text).collect(),
        }
    };
    shipped::ALL.iter().map(read).collect()
}

fn subjects() -> Result<Vec<Subject>> {
    let place = session::place()?;
    let told = |kind: &subject::Kind| {
        let key = |key: &subject::Key| Key {
            name: key.name,
            values: key.values.described().to_string(),
            meaning: key.meaning,
        };
        let mut told = Subject {
            name: kind.name,
            layer: kind.layer.name(),
            meaning: kind.meaning,
            programs: Vec::new(),
            facts: BTreeMap::new(),
            unavailable: None,
            remedy: None,
            keys: kind.keys.iter().map(key).collect(),
        };
        match (kind.build)(&Spec::plain(kind.name), &place) {
            Ok(subject) => {
                let facts = subject.facts();
                let program = |one: &subject::Component| Program {
                    role: one.role.to_string(),
                    path: one.path.display().to_string(),
                    version: one.version.to_string(),
                    sha256: one.hash.to_string(),
                };
                told.programs = facts.components.iter().map(program).collect();
                let notes = facts.notes.iter().filter(|(_, value)| !value.is_empty());
                told.facts = notes.map(|(name, value)| (name.to_string(), value.to_string())).collect();
            }
            Err(why) => (told.unavailable, told.remedy) = (Some(why.reason), why.remedy),
        }
        told
    };
    Ok(subject::shown_kinds().map(told).collect())
}

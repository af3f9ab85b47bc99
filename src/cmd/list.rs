//! `dunnage list`: experiments, subjects, metrics and plans, from the lists that the program itself uses.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use dunnage_analysis::distinct;
use serde::Serialize;
use serde_json::{Value, json};

use super::show::{self, Output, show};
use crate::cli::Listed;
use crate::document::{Block, Document, Findings, Item, Look, Section, Tone};
use crate::exit::{self, usage};
use crate::experiment::{self, Weight};
use crate::plan_file::shipped;
use crate::record::SubjectFacts;
use crate::report::text::{meant, quoted};
use crate::session;
use crate::subject::{self, Place, Spec};

/// Runs the verb.
pub fn run(what: Option<Listed>, name: Option<&str>, format: &str) -> Result<i32> {
    show::known::<Lists>(format)?;
    let wanted = |one: &Listed| what.is_none() || what == Some(*one);
    let all = [Listed::Experiments, Listed::Metrics, Listed::Plans, Listed::Subjects].into_iter();
    let mut lists = all.filter(wanted).map(list).collect::<Result<Vec<_>>>()?;
    if let Some(name) = name {
        only(&mut lists, name)?;
    }
    let is_short = what.is_none() || (what == Some(Listed::Experiments) && name.is_none());
    show(&Lists { lists, is_short }, format, Path::new("."), Output::default())?;
    Ok(exit::FINE)
}

/// A list with its name, each entry as data for programs and as an item for people.
type List = (&'static str, Vec<(Value, Item)>);

/// Leaves what has this name, or belongs to an experiment of this name.
fn only(lists: &mut [List], name: &str) -> Result<()> {
    for (what, all) in lists {
        let key = if *what == "metrics" { "experiment" } else { "name" };
        let names = distinct(all.iter().filter_map(|(data, _)| data[key].as_str().map(str::to_owned)));
        all.retain(|(data, _)| data[key] == name);
        if all.is_empty() {
            let about = |area: &experiment::Area| about(area);
            let area =
                experiment::area(&name.to_lowercase()).filter(|_| ["experiments", "metrics"].contains(what));
            let meant = area.map_or_else(|| meant(name, names.iter().map(String::as_str)), about);
            return Err(usage(format!(
                "nothing in {what} is called `{name}`\n\nhint: {meant}there are {}",
                quoted(names)
            )));
        }
    }
    Ok(())
}

/// A hint for a word that means an area.
pub fn about(area: &experiment::Area) -> String {
    format!("for {} there are {}; ", area.name, quoted(area.experiments.iter().map(|one| one.name)))
}

/// The requested lists.
struct Lists {
    lists: Vec<List>,
    /// Whether people see of experiments only their questions.
    is_short: bool,
}

impl Findings for Lists {
    const SCHEMA: &'static str = "dunnage-list/1";

    fn data(&self) -> impl Serialize {
        let data = |all: &[(Value, Item)]| all.iter().map(|(data, _)| data.clone()).collect::<Vec<_>>();
        self.lists.iter().map(|(name, all)| (*name, data(all))).collect::<BTreeMap<_, _>>()
    }

    fn document(&self, _: &Look) -> Document {
        let mut document = Document::titled("What dunnage can measure");
        let items = |all: &[(Value, Item)]| all.iter().map(|(_, item)| item.clone()).collect();
        for (name, all) in &self.lists {
            if *name == "experiments" && self.is_short {
                document.sections.extend(experiment::AREAS.iter().map(questions));
            } else {
                document.sections.push(Section::of(name, vec![Block::List(items(all))]));
            }
        }
        if self.is_short {
            let more = "What can be set in an experiment: `dunnage list experiments NAME`. To measure: `dunnage run NAME`.";
            document.sections.extend([Section::of("more", vec![Block::note(more)])]);
        }
        document
    }
}

/// The questions of an area.
fn questions(area: &experiment::Area) -> Section {
    let all = area.experiments.iter().map(|one| Item::of(one.question).named(one.name)).collect();
    Section::of(area.name, vec![Block::List(all)])
}

fn list(what: Listed) -> Result<List> {
    Ok(match what {
        Listed::Experiments => ("experiments", experiment::ALL.iter().map(|one| experiment(one)).collect()),
        Listed::Metrics => {
            let all = experiment::ALL
                .iter()
                .flat_map(|about| about.metrics.iter().map(move |one| metric(about.name, one)));
            ("metrics", all.collect())
        }
        Listed::Plans => ("plans", shipped::ALL.iter().map(plan).collect()),
        Listed::Subjects => {
            let place = session::place_without_image()?;
            ("subjects", subject::shown_kinds().map(|kind| subject(kind, &place)).collect())
        }
    })
}

fn experiment(about: &experiment::Experiment) -> (Value, Item) {
    let mut item = Item::of(about.question).named(about.name);
    let mut keys = Vec::new();
    for key in about.all_keys() {
        // A key without a list of values takes free text.
        let values = if key.values.is_empty() { "…".to_owned() } else { key.values.join("|") };
        item = item.detail(format!("--set {}={values}: {}", key.name, key.meaning));
        keys.push(json!({"name": key.name, "values": values, "meaning": key.meaning}));
    }
    (json!({"name": about.name, "question": about.question, "keys": keys}), item)
}

fn metric(experiment: &str, metric: &experiment::Metric) -> (Value, Item) {
    let (absolute, relative) = metric.margin.parts();
    let weight = match metric.weight {
        Weight::Verdict => format!(
            "decides verdicts; differences below {} or {} %, whichever is larger, do not matter",
            metric.unit.format(absolute),
            relative * 100.0
        ),
        Weight::Context => "context, without a verdict".to_owned(),
    };
    let name = format!("{experiment} {} [{}]", metric.name, metric.unit.name());
    let item = Item::of(metric.meaning).named(name).detail(&weight);
    let data = json!({
        "experiment": experiment, "name": metric.name, "unit": metric.unit, "weight": weight, "meaning": metric.meaning,
    });
    (data, item)
}

fn plan(plan: &shipped::Shipped) -> (Value, Item) {
    let file = plan.read();
    let about = file.about.unwrap_or_default();
    let subjects: Vec<_> = file.subjects.into_iter().map(|one| one.text).collect();
    let item = Item::of(&about).named(plan.name).detail(format!("subjects: {}", subjects.join(" ")));
    (json!({"name": plan.name, "about": about, "subjects": subjects}), item)
}

fn subject(kind: &subject::Kind, place: &Place) -> (Value, Item) {
    let mut item = Item::of(kind.meaning).named(format!("{} ({})", kind.name, kind.layer.name()));
    let mut data = json!({"name": kind.name, "layer": kind.layer.name(), "meaning": kind.meaning});
    let mut found = SubjectFacts::default();
    match (kind.build)(&Spec::plain(kind.name), place) {
        Ok(subject) => found = session::facts_of(&subject.about().facts),
        Err(why) => {
            item = item.marked(Tone::Open, "not available").detail(&why.reason);
            data["unavailable"] = json!(why.reason);
            if let Some(remedy) = why.remedy {
                item = item.detail(format!("remedy: {remedy}"));
                data["remedy"] = json!(remedy);
            }
        }
    }
    found.notes.retain(|_, value| !value.is_empty());
    for one in &found.components {
        let sum = &one.sha256[..12];
        item = item.detail(format!("{} {} ({}), sha256 {sum}…", one.role, one.path, one.version));
    }
    for (name, value) in &found.notes {
        item = item.detail(format!("{name}: {value}"));
    }
    (data["programs"], data["facts"]) = (json!(found.components), json!(found.notes));
    let mut keys = Vec::new();
    for key in kind.keys {
        let values = key.values.described().to_string();
        item = item.detail(format!(":{}={values}: {}", key.name, key.meaning));
        keys.push(json!({"name": key.name, "values": values, "meaning": key.meaning}));
    }
    data["keys"] = json!(keys);
    (data, item)
}

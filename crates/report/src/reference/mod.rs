//! Published results: numbers with their sources, conditions and known faults. They can be shown next to those of a
//! run, but never enter a verdict or an average.
//!
//! The data are in `data/reference` and part of the program. Deliberately absent: corrections. Mistakes are kept as
//! printed, and reported.

pub mod beside;
pub mod counterpart;
mod read;
pub mod shown;

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::stats::Estimate;
use crate::units::Unit;

/// A document with published results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// A short name.
    #[serde(default)]
    pub name: String,
    /// Its title.
    pub title: String,
    /// Where it was published; none if it is not public.
    pub url: Option<String>,
    /// The version that was read.
    pub revision: Option<String>,
    /// Its licence.
    #[serde(alias = "license")]
    pub licence: String,
    /// Its language.
    pub language: String,
    /// The machine.
    pub hardware: String,
    /// The kernel.
    pub kernel: String,
    /// Engines and tools.
    pub engines: String,
    /// Its experiments, in the words of its table.
    pub experiments: Vec<String>,
    /// The method of measurement.
    pub method: String,
    /// Known faults of its numbers.
    pub cautions: Vec<Caution>,
    /// Suspects that the rules find in them, by experiment.
    #[serde(skip_deserializing)]
    pub suspects: Vec<Suspect>,
    /// Its numbers, in the order of its tables.
    #[serde(skip)]
    pub numbers: Vec<Number>,
}

/// A published number.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Number {
    /// The experiment, in the words of the table.
    pub experiment: String,
    /// The subject: `bare`, or an engine with its runtime and options.
    pub subject: String,
    /// The conditions, in their order.
    #[serde(serialize_with = "in_words")]
    pub conditions: Vec<(String, String)>,
    /// The metric.
    pub metric: String,
    /// The unit, as the table names it.
    pub unit: String,
    /// The number of the raw repetition; none for an aggregate.
    pub repetition: Option<u32>,
    /// The number as printed.
    pub printed: String,
    /// The same as a number.
    pub value: f64,
    /// The ends of its interval, as printed.
    pub interval: Option<[f64; 2]>,
    /// The number of repetitions behind it.
    pub repetitions: Option<u32>,
    /// A note.
    pub note: String,
}

/// A caution about published numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String")]
pub struct Caution {
    /// The experiments it is about, as the source names them; empty if all.
    pub about: Vec<String>,
    /// Its text.
    pub text: String,
    /// Whether it is proven.
    pub standing: Standing,
}

/// The basis of a caution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// The document's own numbers, its public scripts and data, or upstream documentation.
    Shown,
    /// A guess.
    Guess,
}

/// What a rule found in published numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suspect {
    /// The name of the rule.
    pub rule: String,
    /// The experiment, as the source names it.
    pub experiment: String,
    /// The evidence.
    pub evidence: String,
    /// The probable cause.
    pub mechanism: String,
}

/// A published source with the quantities that a run measured too. Nothing here is computed from both sides: no
/// verdict, no average.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reference {
    /// The source, with the cautions and suspects about the shown numbers, and without its other numbers.
    #[serde(flatten)]
    pub source: Source,
    /// Its numbers next to those of the run.
    pub tables: Vec<Beside>,
}

/// One quantity as published, and as the run measured it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Beside {
    /// The experiment, as the source names it.
    pub published_experiment: String,
    /// The experiment of the run.
    pub experiment: &'static str,
    /// Its metric.
    pub metric: &'static str,
    /// The unit of all numbers in the rows.
    pub unit: Unit,
    /// Whether the numbers are values, or differences from a bare process.
    pub quantity: Quantity,
    /// The settings of the run in which the quantities are the same.
    pub conditions: String,
    /// How the two quantities differ, in a sentence.
    pub differs: String,
    /// By subject and conditions.
    pub rows: Vec<BesideRow>,
}

/// The kind of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Quantity {
    /// A value of a subject.
    #[serde(rename = "value")]
    Value,
    /// A subject's value minus that of a bare process.
    #[serde(rename = "difference from bare")]
    Difference,
}

/// One subject.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BesideRow {
    /// The published subject.
    pub subject: String,
    /// The published conditions, `key=value` joined by `;`.
    pub conditions: String,
    /// The published numbers.
    pub published: Vec<Published>,
    /// The numbers of the run: one for each setting and each subject that is the same.
    pub ours: Vec<Ours>,
}

/// A published number.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Published {
    /// Its statistic: `single value`, `mean`, `min`, `max`, `median`, `standard deviation`.
    pub statistic: String,
    /// As printed, with its unit.
    pub printed: String,
    /// In the unit of the table.
    pub value: f64,
    /// Its interval, if one was printed.
    pub interval: Option<(f64, f64)>,
    /// The number of repetitions behind it, if known.
    pub repetitions: Option<u32>,
    /// A note.
    pub note: String,
}

/// A number of the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ours {
    /// The subject's label.
    pub label: String,
    /// The setting.
    pub setting: String,
    /// The median, or the median of the paired differences, with its interval.
    #[serde(rename = "median")]
    pub estimate: Estimate,
}

impl Published {
    /// As printed, and in base units.
    pub fn of(number: &Number) -> Published {
        let base = |value: f64| number.in_base_units(value).map_or(value, |(_, value)| value);
        let interval = number.interval.map_or(String::new(), |[low, high]| format!(" [{low}, {high}]"));
        Published {
            statistic: number.statistic().to_owned(),
            printed: format!("{}{interval} {}", number.printed, number.unit),
            value: base(number.value),
            interval: number.interval.map(|[low, high]| (base(low), base(high))),
            repetitions: number.repetitions,
            note: number.note.clone(),
        }
    }
}

impl Number {
    /// The value of a condition.
    pub fn condition(&self, key: &str) -> Option<&str> {
        self.conditions.iter().find(|(own, _)| own == key).map(|(_, value)| value.as_str())
    }

    /// All conditions, `key=value` joined by `;`.
    pub fn conditions_in_words(&self) -> String {
        joined(&self.conditions)
    }

    /// The conditions without these keys.
    pub fn without(&self, keys: &[&str]) -> Vec<(String, String)> {
        self.conditions.iter().filter(|(key, _)| !keys.contains(&key.as_str())).cloned().collect()
    }

    /// Its statistic: a single value, a mean, or the value of `stat`.
    pub fn statistic(&self) -> &str {
        match (self.repetition, self.condition("stat")) {
            (_, Some("sd")) => "standard deviation",
            (_, Some(other)) => other,
            (Some(_), None) => "single value",
            (None, None) if self.is_derived() => "derived",
            (None, None) => "mean",
        }
    }

    /// Whether it was computed from other numbers: a ratio, a difference, a share.
    pub fn is_derived(&self) -> bool {
        self.condition("vs").is_some() || self.metric.ends_with("_per_container") && self.repetition.is_none()
    }

    /// Whether it was measured: not an estimate, a quotation, or a headline that a table of the same document
    /// contradicts.
    pub fn is_measured(&self) -> bool {
        self.condition("basis").is_none() && self.condition("where").is_none()
    }

    /// The value in base units, if dunnage has such a unit.
    pub fn in_base_units(&self, value: f64) -> Option<(Unit, f64)> {
        let (unit, factor) = match self.unit.as_str() {
            "s" => (Unit::Seconds, 1.0),
            "ms" => (Unit::Seconds, 1e-3),
            "us" => (Unit::Seconds, 1e-6),
            "ns" => (Unit::Seconds, 1e-9),
            "MB" => (Unit::Bytes, 1e6),
            "kB" => (Unit::Bytes, 1e3),
            "%" => (Unit::Share, 0.01),
            "ratio" => (Unit::Ratio, 1.0),
            "count" => (Unit::Count, 1.0),
            "req/s" => (Unit::PerSecond, 1.0),
            _ => return None,
        };
        Some((unit, value * factor))
    }
}

fn in_words<S: serde::Serializer>(conditions: &[(String, String)], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&joined(conditions))
}

/// `key=value` joined by `;`.
pub fn joined(conditions: &[(String, String)]) -> String {
    let parts: Vec<_> = conditions.iter().map(|(key, value)| format!("{key}={value}")).collect();
    parts.join(";")
}

/// All sources, in the order of the file.
pub fn sources() -> &'static [Source] {
    static ALL: OnceLock<Vec<Source>> = OnceLock::new();
    ALL.get_or_init(|| {
        read::sources(read::SOURCES, read::NUMBERS, read::SUSPECTS)
            .expect("the tables that the program brings are read in its tests")
    })
}

/// The source with this name.
pub fn find(name: &str) -> Option<&'static Source> {
    sources().iter().find(|source| source.name == name)
}

/// Where the tables come from, and under which terms they are used.
pub fn provenance() -> &'static str {
    read::PROVENANCE.rsplit("\n\n").next().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_source_that_names_its_experiment() {
        assert_eq!(
            sources().iter().map(|one| one.name.as_str()).collect::<Vec<_>>(),
            ["course", "runc-crun", "upv-unionfs", "opscart", "node-http"]
        );
        for source in sources() {
            assert!(!source.numbers.is_empty() && !source.cautions.is_empty(), "{}", source.name);
            for number in &source.numbers {
                assert!(source.experiments.contains(&number.experiment), "{number:?}");
            }
        }
        assert_eq!(sources().iter().map(|one| one.numbers.len()).sum::<usize>(), 490);
        assert!(
            provenance().starts_with("Provenance: facts and figures only") && provenance().contains("Cite")
        );
    }

    /// Reads the file by hand, without the reader, so that a slip in either shows. The checksums are those of the
    /// files as collected.
    #[test]
    fn no_number_is_lost_or_changed_between_the_collection_and_what_is_shown() {
        use sha2::{Digest, Sha256};
        let sum = |text: &str| {
            Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        assert_eq!(sum(read::NUMBERS), "bc018d0b4262d9519b818902933281b0cc73bdb6c0f07819ef1db5c2ba1e26e8");
        assert_eq!(sum(read::SOURCES), "2230ba7a145951fa7c3c43f6f67f5af7927d92b7c7dd758d0a271708ecfdfbef");
        let mut all: Vec<(&Source, &Number)> =
            sources().iter().flat_map(|source| source.numbers.iter().map(move |one| (source, one))).collect();
        for row in read::NUMBERS.lines().skip(1) {
            let mut fields: Vec<String> = vec![String::new()];
            let mut quoted = false;
            for letter in row.chars() {
                match letter {
                    '"' => quoted = !quoted,
                    ',' if !quoted => fields.push(String::new()),
                    other => fields.last_mut().unwrap().push(other),
                }
            }
            let (source, one) = all.remove(0);
            let end = |at: usize| fields[at].parse::<f64>().ok();
            assert_eq!(fields[..3], [source.name.as_str(), &one.experiment, &one.subject], "{row}");
            assert_eq!(fields[3..6], [one.conditions_in_words().as_str(), &one.metric, &one.unit], "{row}");
            assert_eq!(fields[6].parse::<u32>().ok(), one.repetition, "{row}");
            assert_eq!((&fields[7], end(7)), (&one.printed, Some(one.value)), "{row}");
            assert_eq!(
                (end(8), end(9)),
                (one.interval.map(|ends| ends[0]), one.interval.map(|ends| ends[1]))
            );
            assert_eq!((fields[10].parse::<u32>().ok(), &fields[11]), (one.repetitions, &one.note), "{row}");
        }
        assert_eq!(all, []);
    }

    /// Every caution in the collection is shown with its source, complete except for its head.
    #[test]
    fn every_caution_is_there() {
        let file: toml::Table = read::SOURCES.parse().unwrap();
        for (name, table) in &file {
            let source = find(name).unwrap();
            let written = table["cautions"].as_array().unwrap();
            assert_eq!(written.len(), source.cautions.len(), "{name}");
            for (text, caution) in written.iter().zip(&source.cautions) {
                assert!(text.as_str().unwrap().ends_with(&caution.text), "{name}: {}", caution.text);
                let head = text.as_str().unwrap().len() - caution.text.len();
                assert!(head < 60, "{name}: {text}");
            }
        }
    }

    #[test]
    fn numbers_are_as_printed_and_known_in_base_units() {
        let course = find("course").unwrap();
        let mean =
            course.numbers.iter().find(|one| one.subject == "docker" && one.repetition.is_none()).unwrap();
        assert_eq!((mean.printed.as_str(), mean.statistic(), mean.repetitions), ("307.8", "mean", Some(10)));
        let (unit, seconds) = mean.in_base_units(mean.value).unwrap();
        assert!(unit == Unit::Seconds && (seconds - 0.3078).abs() < 1e-12);
        let headline =
            find("opscart").unwrap().numbers.iter().find(|one| one.condition("where").is_some()).unwrap();
        assert!(!headline.is_measured() && headline.is_derived());
    }

    #[test]
    fn cautions_say_what_they_are_about_and_what_is_a_guess() {
        let opscart = find("opscart").unwrap();
        let guess = opscart.cautions.iter().find(|one| one.standing == Standing::Guess).unwrap();
        assert_eq!(guess.about, ["syscall"]);
        assert!(guess.text.starts_with("the cause (PID namespace"));
        let course = find("course").unwrap();
        let both = course.cautions.iter().find(|one| one.about.len() == 2).unwrap();
        assert_eq!(both.about, ["cpu_run", "cpu_exec"]);
        assert!(
            course
                .cautions
                .iter()
                .any(|one| one.about.is_empty() && one.text.starts_with("arms ran one after"))
        );
    }
}

//! Results that others published: numbers with their sources, their conditions and what is wrong with them. They can be
//! shown beside a run's own, and never enter a verdict or an average.
//!
//! The data lie in `data/reference` and are part of the program. Deliberately absent: correcting them. Mistakes are kept as
//! they were printed, and said.

pub mod beside;
pub mod counterpart;
mod read;
pub mod shown;

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::stats::Estimate;
use crate::units::Unit;

/// A document in which results were published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// A short name.
    #[serde(default)]
    pub name: String,
    /// Its title.
    pub title: String,
    /// Where it was published; none where it is not public.
    pub url: Option<String>,
    /// The version that was read.
    pub revision: Option<String>,
    /// Its licence.
    #[serde(alias = "license")]
    pub licence: String,
    /// The language that it is written in.
    pub language: String,
    /// On what was measured.
    pub hardware: String,
    /// The kernel.
    pub kernel: String,
    /// Engines and tools.
    pub engines: String,
    /// Its experiments, in the words of its table.
    pub experiments: Vec<String>,
    /// How was measured.
    pub method: String,
    /// What is wrong with its numbers.
    pub cautions: Vec<Caution>,
    /// What the rules for suspect numbers find in them, by experiment.
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
    /// What was measured.
    pub metric: String,
    /// The unit, as the table names it.
    pub unit: String,
    /// Which raw repetition this is; none of an aggregate.
    pub repetition: Option<u32>,
    /// The number as it was printed.
    pub printed: String,
    /// The same as a number.
    pub value: f64,
    /// The ends of its interval, as printed.
    pub interval: Option<[f64; 2]>,
    /// How many repetitions stand behind it.
    pub repetitions: Option<u32>,
    /// What the number alone does not say.
    pub note: String,
}

/// Something that a reader of published numbers must know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String")]
pub struct Caution {
    /// The experiments that it is about, in the source's words; none where it is about all.
    pub about: Vec<String>,
    /// What it says.
    pub text: String,
    /// Whether it is proven.
    pub standing: Standing,
}

/// What a caution rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// The document's own numbers, its public scripts and data, or upstream documentation.
    Shown,
    /// A guess.
    Guess,
}

/// What a rule found in numbers that others took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suspect {
    /// The name of the rule.
    pub rule: String,
    /// The experiment, in the source's words.
    pub experiment: String,
    /// What was seen.
    pub evidence: String,
    /// What probably made it so.
    pub mechanism: String,
}

/// A published source beside a run, as far as it speaks of things that the run measured too. Nothing here is computed from both
/// sides, no verdict rests on it, and no average holds both.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reference {
    /// The source, with the cautions and suspects that are about what is shown, and without its numbers.
    #[serde(flatten)]
    pub source: Source,
    /// The numbers beside ours.
    pub tables: Vec<Beside>,
}

/// One quantity, as they published it and as we measured it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Beside {
    /// The experiment as the source's table calls it.
    pub published_experiment: String,
    /// Our experiment.
    pub experiment: &'static str,
    /// Our metric.
    pub metric: &'static str,
    /// The unit of all numbers in the rows.
    pub unit: Unit,
    /// Whether the numbers are values, or differences from a bare process.
    pub quantity: Quantity,
    /// In which of our settings the quantities are the same.
    pub conditions: String,
    /// In what the two quantities differ, in a sentence.
    pub differs: String,
    /// By subject and conditions.
    pub rows: Vec<BesideRow>,
}

/// What a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Quantity {
    /// A value of a subject.
    #[serde(rename = "value")]
    Value,
    /// A subject's value less that of a bare process.
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
    /// What they published.
    pub published: Vec<Published>,
    /// What we measured: one for each setting and each subject of ours that is the same.
    pub ours: Vec<Ours>,
}

/// A published number.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Published {
    /// What it is: `single value`, `mean`, `min`, `max`, `median`, `standard deviation`.
    pub statistic: String,
    /// As it was printed, with its unit.
    pub printed: String,
    /// In the unit of the table.
    pub value: f64,
    /// Its interval, where one was printed.
    pub interval: Option<(f64, f64)>,
    /// How many repetitions stand behind it, where that is said.
    pub repetitions: Option<u32>,
    /// What the number alone does not say.
    pub note: String,
}

/// A number of ours.
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
    /// As it was printed, and in base units.
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

    /// What it is: a single value, a mean, or what `stat` says.
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

    /// Whether it is a number that somebody measured, where it stands: not an estimate, not a quotation, not a headline
    /// that a table of the same document denies.
    pub fn is_measured(&self) -> bool {
        self.condition("basis").is_none() && self.condition("where").is_none()
    }

    /// The value in base units, where ours have such a unit.
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

/// Where the tables come from, and under which terms they stand here.
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

    /// Read by hand, field by field, and with nothing of the reader: a slip in either shows. The sums are those of the
    /// files as they were collected.
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

    /// Every sentence of caution in the collection is shown with its source, whole but for its head.
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

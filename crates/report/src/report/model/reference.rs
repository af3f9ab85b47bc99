//! What others published, set beside what a run measured: plain data. Nothing here is computed from both sides, no
//! verdict rests on it, and no average holds both.

use serde::Serialize;

use crate::stats::Estimate;
use crate::units::Unit;

/// A published source, as far as it speaks of things that the run measured too.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reference {
    /// Its short name, as `dunnage reference` takes it.
    pub source: String,
    /// Its title.
    pub title: String,
    /// Where it was published.
    pub url: Option<String>,
    /// Its licence.
    pub licence: String,
    /// On what was measured.
    pub hardware: String,
    /// The kernel.
    pub kernel: String,
    /// Engines and tools.
    pub engines: String,
    /// How was measured.
    pub method: String,
    /// What is wrong with its numbers, as far as they are shown here.
    pub cautions: Vec<Caution>,
    /// What the rules for suspect numbers find in them.
    #[serde(rename = "suspects")]
    pub doubts: Vec<Doubt>,
    /// The numbers beside ours.
    pub tables: Vec<Beside>,
}

/// Something that a reader of published numbers must know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Doubt {
    /// The name of the rule.
    pub rule: &'static str,
    /// The experiment, in the source's words.
    pub experiment: String,
    /// What was seen.
    pub evidence: String,
    /// What probably made it so.
    pub mechanism: String,
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

impl BesideRow {
    /// Single values together, then what was made of them; what is noted stands at the end, once.
    pub fn published_in_words(&self) -> String {
        let all = &self.published;
        let is_single = |one: &&Published| one.statistic == "single value";
        let single: Vec<&str> = all.iter().filter(is_single).map(|one| one.printed.as_str()).collect();
        let mut parts: Vec<String> = Vec::new();
        if !single.is_empty() {
            parts.push(single.join(", "));
        }
        for one in all.iter().filter(|one| !is_single(one)) {
            let of = one.repetitions.map(|count| format!(" of {count}")).unwrap_or_default();
            parts.push(format!("{} {}{of}", one.statistic, one.printed));
        }
        let mut notes: Vec<&str> =
            all.iter().map(|one| one.note.as_str()).filter(|note| !note.is_empty()).collect();
        notes.dedup();
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
        format!("{}{notes}", parts.join("; "))
    }
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

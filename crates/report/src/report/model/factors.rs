//! The effects of a complete factorial in words. Each sentence names levels and numbers. The answer to "which factor
//! is it?" begins with the largest effect, and names what is undecided.

use serde::Serialize;

use super::compared::{Compared, Place};
use crate::plan::{Factor, Factorial};
use crate::report::text::{capital, clean, estimated, in_brackets, in_percent, joined};
use crate::report::words::undecided;
use crate::stats::{self, Estimate};
use crate::units::Unit;
use crate::verdict::factors::FactorFinding;
use crate::verdict::{Kind, Verdict};

/// The effects of the factors of a complete factorial.
#[derive(Debug, Clone, Serialize)]
pub struct Factors {
    /// The question: which factor is it?
    pub question: String,
    /// The factors with their levels; an effect is the second less the first.
    pub factors: Vec<Factor>,
    /// The answer in each setting and decisive metric.
    pub answers: Vec<FactorAnswer>,
    /// Every effect, by setting and metric, the largest first.
    pub effects: Vec<Effect>,
}

/// The answer in one setting and metric.
#[derive(Debug, Clone, Serialize)]
pub struct FactorAnswer {
    /// Its setting and metric.
    #[serde(flatten)]
    pub place: Place,
    /// In plain words.
    pub text: String,
}

/// A main effect or an interaction.
#[derive(Debug, Clone, Serialize)]
pub struct Effect {
    /// Its setting and metric.
    #[serde(flatten)]
    pub place: Place,
    /// The names of the factors concerned; several are an interaction.
    pub factors: Vec<String>,
    /// Median of the contrasts: second level minus first.
    pub difference: Option<Estimate>,
    /// The same of the logarithms, exponentiated.
    pub ratio: Option<Estimate>,
    /// The smallest effect that matters, in the unit of the metric.
    pub matters: Option<f64>,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// The same in a word, by the unit and direction of the metric.
    #[serde(skip)]
    pub kind: Kind,
    /// The same for the level that is named; `interaction` if several factors do not simply add up.
    #[serde(rename = "verdict")]
    pub told: &'static str,
    /// The level that is slower, worse, or has more, if a main effect is decided.
    #[serde(rename = "slower_level")]
    pub slower: Option<String>,
    /// The same in words.
    pub sentence: String,
}

impl Effect {
    /// The verdict in a few words: which level is slower, or that factors interact.
    pub fn word(&self) -> String {
        match (&self.slower, &self.verdict) {
            (Some(level), _) => format!("{level} {}", self.told),
            (None, Verdict::More | Verdict::Less) => "interact".into(),
            (None, _) => self.kind.word().into(),
        }
    }

    /// Twice the change that it makes in a single combination.
    fn size(&self) -> f64 {
        let difference = self.difference.map_or(0.0, |difference| difference.value.abs());
        difference / f64::from(1u32 << (self.factors.len() - 1))
    }
}

/// The factorial of a run in one experiment.
pub(super) fn factors(compared: &Compared<'_>) -> Option<Factors> {
    let factorial = compared.run.plan.factorial.as_ref()?;
    let own =
        |finding: &&FactorFinding| compared.run.plan.cells[finding.cells[0]].experiment == compared.name;
    let findings = compared.analysis.factors.iter().filter(own);
    let mut effects: Vec<Effect> = findings.map(|finding| effect(compared, factorial, finding)).collect();
    if effects.is_empty() {
        return None;
    }
    let mut answers = Vec::new();
    for group in effects.chunk_by_mut(|one, other| one.place == other.place) {
        group.sort_by(|one, other| other.size().total_cmp(&one.size()));
        answers.push(FactorAnswer { place: group[0].place.clone(), text: answer(group) });
    }
    let names: Vec<String> = factorial.factors.iter().map(|factor| called(&factor.name)).collect();
    let levels = factorial.factors.iter().map(|one| Factor {
        name: clean(&one.name),
        levels: one.levels.each_ref().map(|level| clean(level)),
    });
    Some(Factors {
        question: format!("is it {}?", joined(&names, "or")),
        factors: levels.collect(),
        answers,
        effects,
    })
}

/// The common name of a factor.
fn called(name: &str) -> String {
    match name {
        "engine" => "the engine".into(),
        "runtime" => "the runtime".into(),
        "net" => "the network".into(),
        other => format!("`{}`", clean(other)),
    }
}

/// A level in a sentence.
fn level(factor: &Factor, index: usize) -> String {
    let level = clean(&factor.levels[index]);
    if ["engine", "runtime"].contains(&factor.name.as_str()) {
        level
    } else {
        format!("{}={level}", clean(&factor.name))
    }
}

fn effect(compared: &Compared<'_>, factorial: &Factorial, finding: &FactorFinding) -> Effect {
    let is_concerned = |(place, _): &(usize, &Factor)| finding.factors >> place & 1 == 1;
    let concerned: Vec<&Factor> =
        factorial.factors.iter().enumerate().filter(is_concerned).map(|(_, one)| one).collect();
    let metric = &compared.metrics[finding.metric];
    let kind = finding.verdict.kind(metric.unit, metric.better);
    // The difference is that of the second level; the sentence names the worse one.
    let is_second = kind.is_worse() || kind == Kind::More;
    Effect {
        place: compared.place(finding.cells[0], finding.metric),
        factors: concerned.iter().map(|one| clean(&one.name)).collect(),
        difference: finding.effect.map(|effect| effect.difference),
        ratio: finding.effect.and_then(|effect| effect.ratio),
        matters: finding.effect.map(|effect| effect.matters),
        verdict: finding.verdict.clone(),
        told: match kind.of_the_one_named() {
            kind if kind.is_difference() && concerned.len() > 1 => "interaction",
            kind => kind.word(),
        },
        slower: match &concerned[..] {
            [only] if kind.is_difference() => Some(clean(&only.levels[usize::from(is_second)])),
            _ => None,
        },
        kind,
        sentence: sentence(&concerned, metric.unit, finding),
    }
}

/// An effect in a sentence without a full stop.
fn sentence(factors: &[&Factor], unit: Unit, finding: &FactorFinding) -> String {
    let all =
        |factors: &[&Factor]| joined(&factors.iter().map(|one| called(&one.name)).collect::<Vec<_>>(), "and");
    let name = match factors {
        [only] => called(&only.name),
        several => format!("the interaction of {}", all(several)),
    };
    let Some(stats::Effect { difference, ratio, matters, .. }) = finding.effect else {
        return format!("{name} is unknown: no round has values for all combinations");
    };
    let plain = estimated(unit, &difference);
    // The direction of an undecided difference.
    let so = match factors {
        [only] => format!("{} minus {} is {plain}", level(only, 1), level(only, 0)),
        _ => plain,
    };
    // In the other direction, the difference is negated and the ratio inverted.
    let (size, ratio, high, low) = match difference.value < 0.0 {
        true => (difference.map(|value| -value), ratio.map(|ratio| ratio.map(f64::recip)), 0, 1),
        false => (difference, ratio, 1, 0),
    };
    let size = estimated(unit, &size);
    if !matches!(finding.verdict, Verdict::More | Verdict::Less) {
        return format!("{name} {}", undecided(&finding.verdict, unit, &so, matters));
    }
    match factors {
        [only] => {
            let share = ratio.map_or(String::new(), |ratio| in_brackets(&in_percent(&ratio)));
            format!("{} takes {size} more than {}{share}", level(only, high), level(only, low))
        }
        [one, other] => format!(
            "the difference between {} and {} is {size} larger with {} than with {}{}",
            level(other, 1),
            level(other, 0),
            level(one, high),
            level(one, low),
            scale(ratio)
        ),
        [most @ .., last] => format!(
            "the interaction of {} is {size} larger with {} than with {}{}",
            all(most),
            level(last, high),
            level(last, low),
            scale(ratio)
        ),
        [] => String::new(),
    }
}

/// Whether an interaction is more than a matter of scale: if factors multiply, longer times differ by more, but
/// ratios do not differ.
fn scale(ratio: Option<Estimate>) -> String {
    let Some(ratio) = ratio else { return String::new() };
    let shown = in_percent(&ratio);
    match ratio.interval {
        Some(interval) if interval.contains(1.0) => {
            format!(" (not visible as a ratio, {shown}, so it may be a matter of scale)")
        }
        _ => format!(" (as a ratio too: {shown})"),
    }
}

/// The answer in plain words, from the effects in one setting and metric, the largest first.
fn answer(effects: &[Effect]) -> String {
    if let Some(Verdict::Suspect(index)) = effects.first().map(|one| &one.verdict)
        && effects.iter().all(|one| matches!(one.verdict, Verdict::Suspect(_)))
    {
        return format!("No answer: its numbers are suspect, see suspect {}.", index + 1);
    }
    let is_decided = |one: &&Effect| matches!(one.verdict, Verdict::More | Verdict::Less);
    let (mains, interactions): (Vec<&Effect>, Vec<&Effect>) =
        effects.iter().partition(|one| one.factors.len() == 1);
    let name = |one: &Effect| called(&one.factors[0]);
    if let Some((have, need)) = effects.iter().find_map(|one| match one.verdict {
        Verdict::TooFew { have, need } => Some((have, need)),
        _ => None,
    }) {
        return format!("No verdict: there are {have} complete rounds, and a verdict needs {need}.");
    }
    let mut parts: Vec<String> = Vec::new();
    let decided: Vec<&Effect> = mains.iter().copied().filter(is_decided).collect();
    for (index, one) in decided.iter().enumerate() {
        let begin = match index {
            0 => "Mainly it is",
            1 => "Then it is",
            _ => "And it is",
        };
        parts.push(format!("{begin} {}: {}.", name(one), one.sentence));
    }
    if decided.is_empty() {
        parts.push("No factor alone makes a difference that matters, as far as this run shows.".into());
    }
    let others = mains.iter().filter(|one| !is_decided(one));
    parts.extend(others.map(|one| format!("{}.", capital(&one.sentence))));
    let together: Vec<&Effect> = interactions.iter().copied().filter(is_decided).collect();
    let open = interactions.iter().filter(|one| !is_decided(one) && one.verdict != Verdict::Same);
    let open: Vec<_> = open.map(|one| one.factors.join(" × ")).collect();
    if together.is_empty() && open.is_empty() {
        parts.push("The factors add up: no interaction matters.".into());
    }
    if !together.is_empty() {
        let all: Vec<_> = together.iter().map(|one| one.sentence.as_str()).collect();
        parts.push(format!("The factors do not simply add up: {}.", all.join("; ")));
    }
    if !open.is_empty() {
        let rest = if together.is_empty() { "the factors add up" } else { "more of them interact" };
        parts.push(format!("Whether {rest} is undecided ({}).", open.join(", ")));
    }
    parts.join(" ")
}

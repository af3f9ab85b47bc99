//! Where the metric decides: pairs of one layer and ladder in which one subject is better in another metric, but not
//! in the first metric, which decides the choice.

use dunnage_analysis::group::in_groups;

use super::choice::CHOICES;
use super::{Claim, Decided, Finding, One, Topic, takes};
use crate::distinct;
use crate::experiment::Weight;
use crate::plan::{Ladder, Layer};
use crate::report::text::joined;
use crate::report::words::called;
use crate::units::Better;
use crate::verdict::Verdict;

/// A decided finding about another metric of a pair, and the finding about the first metric, which orders the pair
/// differently or not at all.
type Turned<'a> = (Decided<'a>, &'a Finding);

/// What the first metric says about a pair that another metric orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum First {
    /// It orders the pair the other way round.
    Reversed,
    /// No difference that matters.
    Same,
    /// Undecided.
    Open,
}

impl First {
    fn of(first: &Finding) -> First {
        match Decided::of(first).map(|one| one.finding.verdict == Verdict::Same) {
            Some(true) => First::Same,
            Some(false) => First::Reversed,
            None => First::Open,
        }
    }
}

/// A metric in words, as an addition to a sentence.
fn in_metric(metric: &str) -> String {
    match called(metric) {
        plain if plain == metric => format!("in `{metric}`"),
        words => words.to_owned(),
    }
}

impl<'a> One<'a> {
    /// By layer, ladder, metric, and what the first metric says.
    pub(super) fn otherwise(&self) -> Vec<Claim> {
        let of = |(layer, ladder)| {
            let mut turned = self.turned(layer, ladder);
            let size = |one: &Turned<'_>| one.0.difference.value.abs();
            turned.sort_by(|one, other| size(other).total_cmp(&size(one)));
            let mut kinds = in_groups(turned, |(one, first)| (one.finding.metric, First::of(first)));
            kinds.sort_unstable_by_key(|(kind, _)| *kind);
            let told =
                |((_, first), own): (_, Vec<Turned<'_>>)| self.told_otherwise(layer, ladder, first, &own);
            kinds.into_iter().map(told).collect::<Vec<_>>()
        };
        CHOICES.into_iter().flat_map(of).collect()
    }

    fn turned(&self, layer: Layer, ladder: Ladder) -> Vec<Turned<'a>> {
        let plan = self.plan;
        let stands = |subject: usize| {
            let entry = &plan.subjects[subject];
            entry.layer == layer && entry.ladder == ladder && plan.is_original(subject)
        };
        let of = |finding: &'a Finding| -> Option<Turned<'a>> {
            let comparison = self.comparison(finding);
            let metric = plan.metrics(&plan.cells[finding.cell]).get(finding.metric)?;
            let is_meant = comparison.experiment == self.name
                && !comparison.relation.is_of_settings()
                && finding.metric > 0
                && metric.weight == Weight::Verdict
                && stands(comparison.subject)
                && stands(comparison.against);
            let decided = Decided::of(finding).filter(|_| is_meant)?;
            let kind = finding.kind();
            let same_pair = |other: &&Finding| {
                (other.comparison, other.cell, other.metric) == (finding.comparison, finding.cell, 0)
            };
            let first = self.analysis.findings.iter().find(same_pair)?;
            let is_known = matches!(
                first.verdict,
                Verdict::More | Verdict::Less | Verdict::Same | Verdict::Undecided { .. }
            );
            let is_worse = (first.difference?.value > 0.0) == (self.better == Better::Less);
            let is_turned = is_worse != kind.is_worse() || first.verdict == Verdict::Same;
            let is_told = (kind.is_worse() || kind.is_better()) && is_known && is_turned;
            (is_told && self.better != Better::Neither).then_some((decided, first))
        };
        self.analysis.findings.iter().filter_map(of).collect()
    }

    /// The pair that differs most, with its numbers by setting, and the other pairs by name.
    fn told_otherwise(&self, layer: Layer, ladder: Ladder, known: First, turned: &[Turned<'_>]) -> Claim {
        let better_and_worse = |(one, _): &Turned<'_>| {
            let comparison = self.comparison(one.finding);
            match one.finding.kind().is_worse() {
                true => [comparison.against, comparison.subject],
                false => [comparison.subject, comparison.against],
            }
        };
        let pairs = distinct(turned.iter().map(better_and_worse));
        let named = |pair: &[usize; 2]| self.names(layer, ladder, pair);
        let (largest, first) = &turned[0];
        let own: Vec<&Turned<'_>> = turned.iter().filter(|one| better_and_worse(one) == pairs[0]).collect();
        let size =
            |one: Decided<'_>| format!("{}{}", one.absolute(), self.in_setting(self.setting_of(one.finding)));
        let sizes = |all: Vec<Decided<'_>>| joined(&all.into_iter().map(size).collect::<Vec<_>>(), "and");
        let first_metric = in_metric(first.about.metric);
        let in_first = match known {
            First::Reversed => {
                let reversed = own.iter().filter_map(|(_, first)| Decided::of(first)).collect();
                let [verb, worse] = takes(first, [["", "slower"], ["uses ", "more"], ["has ", "less"]]);
                format!(", but {verb}{} {worse} {first_metric}", sizes(reversed))
            }
            First::Same => format!("; {first_metric} they take the same"),
            First::Open => format!("; {first_metric} they cannot be told apart"),
        };
        let names = named(&pairs[0]);
        let sizes = sizes(own.iter().map(|(one, _)| *one).collect());
        let metric = in_metric(largest.finding.about.metric);
        let [verb, better] = takes(largest.finding, [["is", "faster"], ["uses", "less"], ["has", "more"]]);
        let claim = format!("{verb} {sizes} {better} than {} {metric}", names[1]);
        let equalised =
            if ladder == Ladder::Equalised { format!("{}: ", self.without(layer)) } else { String::new() };
        let mut text = format!("{equalised}{} {claim}{in_first}", names[0]);
        let others: Vec<String> = pairs[1..].iter().map(|pair| named(pair).join(" against ")).collect();
        if !others.is_empty() {
            text.push_str(&format!("; likewise {}", others.join(", ")));
        }
        let rests_on = turned.iter().flat_map(|(one, first)| [one.finding, first]).collect();
        self.claim(Topic::Otherwise, text, rests_on)
    }
}

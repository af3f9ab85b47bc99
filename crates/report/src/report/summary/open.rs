//! What the rounds leave open: comparisons that are not decided or rest on suspect numbers, and how slow a launch can still be.

use super::{Decided, One, Sentence, Topic, a, is_hidden, is_open};
use crate::experiment::Event;
use crate::plan::Layer;
use crate::report::text::{in_brackets, joined, percent};
use crate::stats::Estimate;
use crate::units::{counted, three_digits};
use crate::verdict::{Finding, HOPELESS, Verdict};

/// Pairs that are named as examples of what is open.
const EXAMPLES: usize = 3;

fn is_are(count: usize) -> String {
    format!("{count} {}", if count == 1 { "is" } else { "are" })
}

impl<'a> One<'a> {
    /// Of the highest layer that was compared, the cell with the value that is the largest multiple of its median. With
    /// n values, the largest exceeds the quantile q with probability 1 − qⁿ, whatever the distribution.
    pub(super) fn tail(&self) -> Option<Sentence> {
        let layers = [Layer::Engine, Layer::Runtime, Layer::Floor].into_iter();
        let decided = |layer| self.against_baseline(layer).into_iter().filter_map(Decided::of).collect();
        let all: Vec<Decided<'_>> = layers.map(decided).find(|all: &Vec<_>| !all.is_empty())?;
        let tail = |one: &Decided<'a>| {
            let values = self.analysis.cells[one.finding.cell].metrics[one.finding.metric].as_ref()?;
            let multiple = values.range.1 / values.median.value;
            multiple.is_finite().then_some((*one, multiple, values.median))
        };
        let (one, multiple, Estimate { rounds, alpha, .. }) =
            all.iter().filter_map(tail).max_by(|(_, one, _), (_, other, _)| one.total_cmp(other))?;
        let what = match self.event {
            Event::Once(what) => what.to_owned(),
            Event::Whole => "sample".to_owned(),
            _ => format!("`{}`", one.finding.about.metric),
        };
        let text = format!(
            "the {what} of {} that is farthest above its median took {} times as long ({}, {}); these rounds cannot rule out \
             that {} take even longer, at 95 %",
            a(self.layer(self.comparison(one.finding).subject)),
            three_digits(multiple),
            self.place(&one),
            counted(rounds, "round"),
            percent(1.0 - alpha.get().powf(1.0 / rounds as f64))
        );
        Some(self.sentence(Topic::Risk, text, vec![one.finding]))
    }

    /// That there are too few rounds.
    pub(super) fn too_few(&self) -> Option<Sentence> {
        let few = self.such(|finding| matches!(finding.verdict, Verdict::TooFew { .. }));
        let Verdict::TooFew { have, need } = few.first()?.verdict else { return None };
        let have = counted(have, "round");
        let text =
            format!("nothing is decided about {}: {have}, and this many comparisons need {need}", self.name);
        Some(self.sentence(Topic::Open, text, few))
    }

    /// What was not resolved, the largest differences first.
    pub(super) fn open(&self) -> Option<Sentence> {
        let (mut open, hidden) = (self.such(is_open), self.such(is_hidden));
        if open.is_empty() && hidden.is_empty() {
            return None;
        }
        let rounds = |finding: &&Finding| match finding.verdict {
            Verdict::Undecided { new_run, .. } => Some(new_run?.rounds).filter(|one| *one <= HOPELESS),
            _ => None,
        };
        let mut needed: Vec<usize> = open.iter().filter_map(rounds).collect();
        needed.sort_unstable();
        let size = |finding: &Finding| finding.difference.map_or(0.0, |one| one.value.abs());
        open.sort_by(|one, other| size(other).total_cmp(&size(one)));
        let name = |finding: &&Finding| {
            let about = &finding.about;
            let metric = (!self.event.has_one_answer()).then(|| format!("`{}`", about.metric));
            let place: Vec<String> =
                metric.into_iter().chain(self.values(self.setting_of(finding))).collect();
            format!("{} against {}{}", about.subject, about.against, in_brackets(&place.join(", ")))
        };
        let of = format!("of {} of {}", counted(self.findings.len(), "comparison"), self.name);
        let mut text = String::new();
        if !open.is_empty() {
            let named: Vec<String> = open.iter().take(EXAMPLES).map(name).collect();
            let such = if open.len() > EXAMPLES { ", such as " } else { ": " };
            text.push_str(&format!("{of}, {} undecided{such}{}", is_are(open.len()), joined(&named, "and")));
        }
        // As many as half of them need: what it takes to decide the last one would frighten off.
        if let Some(rounds) = needed.get(needed.len() / 2) {
            let decided = match needed.len() / 2 + 1 {
                all if all == open.len() => "that".to_owned(),
                some => format!("{some} of them"),
            };
            text.push_str(&format!("; a new run of {} might decide {decided}", counted(*rounds, "round")));
        }
        if !hidden.is_empty() {
            let of = if open.is_empty() { format!("{of}, ") } else { "; ".to_owned() };
            text.push_str(&format!("{of}{} decided, but not above the noise floor", is_are(hidden.len())));
        }
        Some(self.sentence(Topic::Open, text, [open, hidden].concat()))
    }

    /// What rests on numbers that must not be believed.
    pub(super) fn void(&self) -> Option<Sentence> {
        let void = self.such(|finding| matches!(finding.verdict, Verdict::Suspect(_)));
        let many = counted(void.len(), "comparison");
        let text = format!(
            "{many} of {} rest on numbers that are suspect, and nothing is concluded from them",
            self.name
        );
        (!void.is_empty()).then(|| self.sentence(Topic::Open, text, void))
    }
}

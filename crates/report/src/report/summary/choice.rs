//! Which subject of a layer is fastest, or uses least, or has most, on each ladder and in each setting: the one that
//! beats every other, directly or by way of the baseline, or those that no other was shown to beat.

use std::collections::BTreeSet;

use dunnage_analysis::group::in_groups;
use dunnage_analysis::subject::defaults::lacks;

use super::{Claim, Decided, Finding, One, Topic, findings, is_hidden, is_open, takes};
use crate::distinct;
use crate::experiment::Setting;
use crate::plan::{Ladder, Layer};
use crate::report::text::{in_brackets, joined, listed, width, with_interval};
use crate::report::words::{shared_keys, without};
use crate::units::Better;
use crate::verdict::Verdict;

/// The layers whose subjects are chosen from, as installed and equalised.
pub(super) const CHOICES: [(Layer, Ladder); 4] = [
    (Layer::Runtime, Ladder::AsInstalled),
    (Layer::Runtime, Ladder::Equalised),
    (Layer::Engine, Ladder::AsInstalled),
    (Layer::Engine, Ladder::Equalised),
];

/// Columns of subjects that a question names.
const ASKED: usize = 20;

/// The outcome of a choice, with the settings that share it.
struct Choice<'a> {
    settings: Vec<&'a Setting>,
    /// The subjects that no other was shown to beat: the best one, or those among which it is.
    subjects: Vec<usize>,
    /// All others.
    losers: BTreeSet<usize>,
    /// The comparisons among them.
    open: Vec<&'a Finding>,
    /// What shows that the others are worse, the next best first; for a single best subject, by setting.
    over: Vec<Vec<Decided<'a>>>,
}

/// One subject is better than another.
struct Beats<'a> {
    winner: usize,
    loser: usize,
    /// The evidence: a comparison of the two, or of the loser and the baseline.
    shown: Decided<'a>,
    /// In the latter case, the comparison of the winner and the baseline.
    by_way_of: Option<Decided<'a>>,
}

impl<'a> One<'a> {
    /// The best subject of each layer, as installed and equalised.
    pub(super) fn choices(&self) -> Vec<Claim> {
        CHOICES.into_iter().filter_map(|(layer, ladder)| self.on(layer, ladder)).collect()
    }

    fn on(&self, layer: Layer, ladder: Ladder) -> Option<Claim> {
        let choices = self.choice(layer, ladder);
        let told = |choice: &Choice<'a>| match choice.subjects[..] {
            [subject] => self.least(layer, ladder, subject, choice),
            _ => Some(self.among(layer, ladder, choice)),
        };
        let (answers, rests_on): (Vec<String>, Vec<Vec<&Finding>>) = choices.iter().filter_map(told).unzip();
        let all = distinct(choices.iter().flat_map(|one| one.subjects.iter().chain(&one.losers)).copied());
        let names = self.names(layer, ladder, &all);
        let question = match (ladder, &names[..]) {
            (Ladder::Equalised, _) => format!("{}?", self.without(layer)),
            (_, few) if width(&joined(few, "or")) <= ASKED => format!("{}?", joined(few, "or")),
            _ => format!("which {}?", layer.name()),
        };
        let claim = self.claim(Topic::Choice, answers.join("; "), rests_on.concat());
        (!claim.answer.is_empty()).then_some(Claim { question, ..claim })
    }

    /// What the equalised subjects of a layer all do without.
    pub(super) fn without(&self, layer: Layer) -> String {
        let own =
            self.plan.subjects.iter().filter(|one| one.layer == layer && one.ladder == Ladder::Equalised);
        without(&listed(shared_keys(own).iter().map(|(key, value)| format!("{key}={value}")), ", "))
    }

    fn ends(&self, finding: &Finding) -> [usize; 2] {
        let comparison = self.comparison(finding);
        [comparison.subject, comparison.against]
    }

    /// Whether one of these findings compares two subjects.
    fn is_compared(&self, findings: &[&Finding], one: usize, other: usize) -> bool {
        findings.iter().any(|finding| [[one, other], [other, one]].contains(&self.ends(finding)))
    }

    /// By setting; settings with the same best subject are combined.
    fn choice(&self, layer: Layer, ladder: Ladder) -> Vec<Choice<'a>> {
        let lacking = self.lacking(layer, ladder);
        let stands = |subject: usize| {
            let entry = &self.plan.subjects[subject];
            entry.layer == layer && entry.ladder == ladder && !lacking.contains(&subject)
        };
        let inside = self.between_subjects(|finding| self.ends(finding).into_iter().all(stands));
        let mut all: Vec<Choice<'_>> = Vec::new();
        for setting in distinct(inside.iter().map(|finding| self.setting_of(finding))) {
            let own = inside.iter().copied().filter(|finding| self.setting_of(finding) == setting);
            let Some(choice) = self.in_one(setting, &own.collect::<Vec<_>>()) else { continue };
            let is_same = |known: &&mut Choice<'_>| {
                known.subjects == choice.subjects
                    && (known.subjects.len() == 1 || known.losers == choice.losers)
            };
            match all.iter_mut().find(is_same) {
                Some(known) => {
                    known.settings.extend(choice.settings);
                    known.open.extend(choice.open);
                    known.over.extend(choice.over);
                }
                None => all.push(choice),
            }
        }
        all
    }

    fn in_one(&self, setting: &'a Setting, own: &[&'a Finding]) -> Option<Choice<'a>> {
        // A subject without any value is not among those to choose from.
        let own: &[&Finding] =
            &own.iter().copied().filter(|one| one.verdict != Verdict::NoData).collect::<Vec<_>>();
        let all: BTreeSet<usize> = own.iter().flat_map(|finding| self.ends(finding)).collect();
        let direct = own.iter().filter_map(|finding| Decided::of(finding)).filter_map(|one| {
            let [subject, against] = self.ends(one.finding);
            let kind = one.finding.kind();
            let (winner, loser) = match (kind.is_worse(), kind.is_better()) {
                (true, _) => (against, subject),
                (_, true) => (subject, against),
                _ => return None,
            };
            Some(Beats { winner, loser, shown: one, by_way_of: None })
        });
        let mut beats: Vec<Beats<'_>> = direct.collect();
        let size = |one: &Beats<'_>| one.shown.difference.value.abs();
        beats.sort_by(|one, other| size(one).total_cmp(&size(other)));
        beats.extend(self.by_way_of_the_baseline(setting, &all, own));
        let is_beaten = |subject: &usize| beats.iter().any(|one| one.loser == *subject);
        let subjects: Vec<usize> = all.iter().copied().filter(|one| !is_beaten(one)).collect();
        // Only the unbeaten subjects count as winners.
        beats.retain(|one| subjects.contains(&one.winner));
        // Without a comparison nothing says whether they can be told apart: what only varies another subject in a key has
        // sentences of its own.
        if pairs(&subjects).any(|(one, other)| !self.is_compared(own, one, other)) {
            let varies = |finding: &&&Finding| self.ends(finding).into_iter().any(|end| self.is_varied(end));
            let fewer: Vec<&Finding> = own.iter().filter(|one| !varies(one)).copied().collect();
            if fewer.len() < own.len() {
                return self.in_one(setting, &fewer);
            }
        }
        let losers: BTreeSet<usize> = beats.iter().map(|one| one.loser).collect();
        let mut over: Vec<Decided<'_>> = beats.iter().map(|one| one.shown).collect();
        let rest: Vec<Decided<'_>> = beats.iter().filter_map(|one| one.by_way_of).collect();
        let is_among = |finding: &&Finding| self.ends(finding).iter().all(|end| subjects.contains(end));
        let mut open: Vec<&Finding> = own.iter().copied().filter(is_among).collect();
        let is_known =
            |finding: &&Finding| is_open(finding) || is_hidden(finding) || finding.verdict == Verdict::Same;
        let is_told = match subjects.len() {
            1 => losers.len() + 1 == all.len(),
            // Without verdicts, nothing was tried.
            many => many > 1 && (!over.is_empty() || (!open.is_empty() && open.iter().all(is_known))),
        };
        open.extend(findings(&rest));
        if subjects.len() == 1 {
            over.extend(rest);
        }
        is_told.then(|| Choice { settings: vec![setting], subjects, losers, open, over: vec![over] })
    }

    /// Engines as installed that do without what others have: they are not among those to choose from.
    fn lacking(&self, layer: Layer, ladder: Ladder) -> Vec<usize> {
        if (layer, ladder) != (Layer::Engine, Ladder::AsInstalled) {
            return Vec::new();
        }
        let own = self.plan.subjects.iter().enumerate();
        let own = own.filter(|(_, one)| one.layer == layer && one.ladder == ladder);
        let own: Vec<(usize, Vec<&str>)> = own.map(|(at, one)| (at, lacks(&one.spec))).collect();
        let is_less = |one: &(usize, Vec<&str>)| own.iter().any(|(_, other)| other.len() < one.1.len());
        own.iter().filter(|one| is_less(one)).map(|(at, _)| *at).collect()
    }

    /// Whether a subject is another of the plan with more keys.
    fn is_varied(&self, subject: usize) -> bool {
        let own = &self.plan.subjects[subject];
        self.plan.subjects.iter().any(|other| {
            let is_same = other.ladder == own.ladder
                && other.spec.name == own.spec.name
                && other.spec.runtime == own.spec.runtime;
            let has_fewer = other.spec.keys.len() < own.spec.keys.len();
            is_same && has_fewer && other.spec.keys.iter().all(|key| own.spec.keys.contains(key))
        })
    }

    /// Subjects that are not compared directly count as different if their decided differences from the baseline, which
    /// hold together with all others, are further apart than the smallest difference that matters.
    fn by_way_of_the_baseline(
        &self,
        setting: &Setting,
        subjects: &BTreeSet<usize>,
        own: &[&Finding],
    ) -> Vec<Beats<'a>> {
        let baseline = self.plan.baseline_of(self.name);
        let from_it = |subject: usize| {
            let found = self.between_subjects(|finding| {
                self.ends(finding) == [subject, baseline]
                    && finding.metric == 0
                    && self.setting_of(finding) == setting
            });
            let finding = *found.first()?;
            Some((subject, Decided::of(finding)?, finding.matters?))
        };
        let known: Vec<_> = subjects.iter().filter_map(|&one| from_it(one)).collect();
        let mut all = Vec::new();
        for &(loser, shown, matters) in &known {
            for &(winner, other, also) in &known {
                let apart = match self.better {
                    Better::More => other.interval.low - shown.interval.high,
                    _ => shown.interval.low - other.interval.high,
                };
                if apart > f64::max(matters, also) && !self.is_compared(own, winner, loser) {
                    all.push(Beats { winner, loser, shown, by_way_of: Some(other) });
                }
            }
        }
        all
    }

    /// The best of a group, and by how much, by setting.
    fn least(
        &self,
        layer: Layer,
        ladder: Ladder,
        subject: usize,
        choice: &Choice<'a>,
    ) -> Option<(String, Vec<&'a Finding>)> {
        let first = choice.over.first()?.first()?.finding;
        let lead = |over: &Vec<Decided<'a>>| -> Option<(String, Decided<'a>)> {
            let is_pair = |one: &&Decided<'_>| {
                let ends = self.ends(one.finding);
                ends.contains(&subject) && ends.iter().all(|end| self.layer(*end) == layer)
            };
            let next = over.iter().find(is_pair)?;
            let [one, other] = self.ends(next.finding);
            let other = if one == subject { other } else { one };
            let other = self.names(layer, ladder, &[other]).concat();
            Some((other, *next))
        };
        let leads = in_groups(choice.over.iter().filter_map(lead), |(other, _)| other.clone()).into_iter();
        // In one setting with its interval; in the others the number alone, since the claim can be opened.
        let leads = leads.map(|(other, all)| {
            let rest = all.iter().skip(1).map(|(_, one)| {
                let values = self.values(self.setting_of(one.finding)).unwrap_or_default();
                format!(
                    "{values} by {}",
                    with_interval(one.finding.about.unit, one.difference.value.abs(), None)
                )
            });
            let first = all.first().map_or(String::new(), |(_, one)| one.absolute());
            format!("{first} over {other}{}", in_brackets(&rest.collect::<Vec<_>>().join(", ")))
        });
        let leads: Vec<String> = leads.collect();
        let by = if leads.is_empty() { String::new() } else { format!(", by {}", joined(&leads, "and")) };
        let name = self.names(layer, ladder, &[subject]).concat();
        let answer = format!("{name}{}{by}", takes(first, ["", " uses least", " has most"]));
        Some((answer, choice.over.iter().flat_map(|over| findings(over)).collect()))
    }

    /// Several that cannot be told apart, and those that are worse than at least one of them.
    fn among(&self, layer: Layer, ladder: Ladder, choice: &Choice<'a>) -> (String, Vec<&'a Finding>) {
        let names = joined(&self.names(layer, ladder, &choice.subjects), "and");
        let over = choice.over.concat();
        let mut rests_on = choice.open.clone();
        rests_on.extend(findings(&over));
        let is_among = |one: &&&Finding| self.ends(one).iter().all(|end| choice.subjects.contains(end));
        let mut among = choice.open.iter().filter(is_among).peekable();
        let are_same = among.peek().is_some() && among.all(|one| one.verdict == Verdict::Same);
        let are_compared =
            pairs(&choice.subjects).any(|(one, other)| self.is_compared(&choice.open, one, other));
        let alike = if !are_compared {
            "were not shown to differ".to_owned()
        } else if are_same {
            "show no difference that matters".to_owned()
        } else {
            format!("cannot be told apart{}", self.at_most(&choice.open))
        };
        let values: Vec<String> = choice.settings.iter().filter_map(|one| self.values(one)).collect();
        let text = format!("{names} {alike}{}", in_brackets(&joined(&values, "and")));
        let losers: Vec<usize> = choice.losers.iter().copied().collect();
        let behind = rests_on.first().filter(|_| !losers.is_empty()).map(|one| {
            let verb = match losers.len() {
                1 => takes(one, ["is slower", "uses more", "has less"]),
                _ => takes(one, ["are slower", "use more", "have less"]),
            };
            let losers = joined(&self.names(layer, ladder, &losers), "and");
            format!("; {losers} {verb} than at least one of them")
        });
        (text + &behind.unwrap_or_default(), rests_on)
    }

    /// How far apart those that are not told apart can be, all of them together.
    fn at_most(&self, open: &[&Finding]) -> String {
        let ends = open.iter().filter(|one| is_open(one)).map(|one| Some((one, one.difference?.interval?)));
        let Some(ends) = ends.collect::<Option<Vec<_>>>().filter(|ends| !ends.is_empty()) else {
            return String::new();
        };
        let unit = ends[0].0.about.unit;
        match ends.iter().map(|(_, interval)| interval.farthest_end()).fold(0.0, f64::max) {
            most if most.is_finite() => format!(", at most {} apart", with_interval(unit, most, None)),
            _ => String::new(),
        }
    }
}

/// Every two of these subjects, which are in ascending order.
fn pairs(subjects: &[usize]) -> impl Iterator<Item = (usize, usize)> {
    subjects
        .iter()
        .flat_map(|one| subjects.iter().map(|other| (*one, *other)))
        .filter(|(one, other)| one < other)
}

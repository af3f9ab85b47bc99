//! Which subject of a layer takes the least, or has the most of what a person wishes for, on each ladder and in each setting: one that beats every other,
//! directly or by way of the baseline, or those that none was shown to beat.

use std::collections::BTreeSet;

use super::{Decided, Finding, One, Sentence, Topic, findings, group, takes};
use crate::distinct;
use crate::experiment::Setting;
use crate::plan::{Ladder, Layer};
use crate::report::text::joined;
use crate::units::Better;

/// What is known of a choice in a setting.
struct Choice<'a> {
    setting: &'a Setting,
    /// Those which no other was shown to beat: the one that takes the least, or those among which it is.
    subjects: Vec<usize>,
    /// How they compare with each other.
    open: Vec<&'a Finding>,
    /// What shows that the others take more, the next one first; of one that takes the least, by setting.
    over: Vec<Vec<Decided<'a>>>,
}

/// One subject takes more than another.
struct Beats<'a> {
    winner: usize,
    loser: usize,
    /// What shows it: of both, or of the loser and the baseline.
    shown: Decided<'a>,
    /// What shows in the latter case where the winner stands.
    by_way_of: Option<Decided<'a>>,
}

impl<'a> One<'a> {
    /// Which subject of each layer and ladder takes the least.
    pub(super) fn choices(&self) -> Vec<Sentence> {
        let mut all = Vec::new();
        for layer in [Layer::Runtime, Layer::Engine] {
            for ladder in [Ladder::AsInstalled, Ladder::Equalised] {
                let told = |choice: Choice<'_>| match choice.subjects[..] {
                    [subject] => self.least(layer, ladder, subject, &choice),
                    _ => Some(self.among(layer, ladder, &choice)),
                };
                all.extend(self.choice(layer, ladder).into_iter().filter_map(told));
            }
        }
        all
    }

    fn ends(&self, finding: &Finding) -> [usize; 2] {
        let comparison = self.comparison(finding);
        [comparison.subject, comparison.against]
    }

    /// By setting; those in which the same subject takes the least together.
    fn choice(&self, layer: Layer, ladder: Ladder) -> Vec<Choice<'a>> {
        let stands = |subject: usize| {
            let entry = &self.plan.subjects[subject];
            entry.layer == layer && entry.ladder == ladder
        };
        let inside = self.such(|finding| self.ends(finding).into_iter().all(stands));
        let mut all: Vec<Choice<'_>> = Vec::new();
        for setting in distinct(inside.iter().map(|finding| self.setting_of(finding))) {
            let own = inside.iter().copied().filter(|finding| self.setting_of(finding) == setting);
            let Some(choice) = self.in_one(setting, &own.collect::<Vec<_>>()) else { continue };
            let is_same =
                |known: &&mut Choice<'_>| known.subjects.len() == 1 && known.subjects == choice.subjects;
            match all.iter_mut().find(is_same) {
                Some(known) => known.over.extend(choice.over),
                None => all.push(choice),
            }
        }
        all
    }

    fn in_one(&self, setting: &'a Setting, own: &[&'a Finding]) -> Option<Choice<'a>> {
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
        // Beating is meant of those that were not beaten, or it would explain nothing.
        beats.retain(|one| subjects.contains(&one.winner));
        let losers: BTreeSet<usize> = beats.iter().map(|one| one.loser).collect();
        let mut over: Vec<Decided<'_>> = beats.iter().map(|one| one.shown).collect();
        let rest: Vec<Decided<'_>> = beats.iter().filter_map(|one| one.by_way_of).collect();
        let is_among = |finding: &&Finding| self.ends(finding).iter().all(|end| subjects.contains(end));
        let open = own.iter().copied().filter(is_among).chain(findings(&rest)).collect();
        let is_told = match subjects.len() {
            1 => losers.len() + 1 == all.len(),
            // Where nobody is shown to take more, there is no choice to narrow down.
            many => many > 1 && !over.is_empty(),
        };
        if subjects.len() == 1 {
            over.extend(rest);
        }
        is_told.then(|| Choice { setting, subjects, open, over: vec![over] })
    }

    /// Those that no comparison sets beside each other are told apart where their differences from the baseline, which
    /// are decided and hold together with all others, lie apart by more than matters.
    fn by_way_of_the_baseline(
        &self,
        setting: &Setting,
        subjects: &BTreeSet<usize>,
        own: &[&Finding],
    ) -> Vec<Beats<'a>> {
        let baseline = self.plan.baseline_of(self.name);
        let from_it = |subject: usize| {
            let fits = |finding: &&&Finding| {
                self.ends(finding) == [subject, baseline]
                    && finding.metric == 0
                    && self.setting_of(finding) == setting
            };
            let finding = self.findings.iter().find(fits)?;
            Some((subject, Decided::of(finding)?, finding.matters?))
        };
        let is_compared = |one: usize, other: usize| {
            own.iter().any(|finding| self.ends(finding).contains(&one) && self.ends(finding).contains(&other))
        };
        let known: Vec<_> = subjects.iter().filter_map(|&one| from_it(one)).collect();
        let mut all = Vec::new();
        for &(loser, shown, matters) in &known {
            for &(winner, other, also) in &known {
                let apart = match self.better {
                    Better::More => other.interval.low - shown.interval.high,
                    _ => shown.interval.low - other.interval.high,
                };
                let is_apart = apart > f64::max(matters, also) && shown.finding.kind().is_worse();
                if is_apart && !is_compared(winner, loser) {
                    all.push(Beats { winner, loser, shown, by_way_of: Some(other) });
                }
            }
        }
        all
    }

    /// That one of a group takes the least, and by how much, setting by setting.
    fn least(&self, layer: Layer, ladder: Ladder, subject: usize, choice: &Choice<'_>) -> Option<Sentence> {
        let first = choice.over.first()?.first()?.finding;
        let lead = |over: &Vec<Decided<'_>>| {
            let is_pair = |one: &&Decided<'_>| {
                let ends = self.ends(one.finding);
                ends.contains(&subject) && ends.iter().all(|end| self.layer(*end) == layer)
            };
            let next = over.iter().find(is_pair)?;
            let [one, other] = self.ends(next.finding);
            let other = if one == subject { other } else { one };
            // Of those that are compared with others alone nobody knows how far behind they are.
            let is_next = over.len() > 1 && over.iter().all(|one| is_pair(&one));
            let next_one = if is_next { ", the next" } else { "" };
            let setting = self.in_setting(self.setting_of(next.finding));
            let other = self.names(layer, ladder, &[other]).concat();
            Some(format!("by {} before {other}{next_one}{setting}", next.absolute()))
        };
        let leads: Vec<String> = choice.over.iter().filter_map(lead).collect();
        let by = if leads.is_empty() { String::new() } else { format!(": {}", joined(&leads, "and")) };
        let text = format!(
            "of the {}, {} {} (`{}`){by}",
            group(layer, ladder),
            self.names(layer, ladder, &[subject]).concat(),
            takes(first, "takes the least", "has the most"),
            first.about.metric
        );
        let rests_on = choice.over.iter().flat_map(|over| findings(over)).collect();
        Some(self.sentence(Topic::Choice, text, rests_on))
    }

    /// That which of several takes the least is open; none of the others does.
    fn among(&self, layer: Layer, ladder: Ladder, choice: &Choice<'_>) -> Sentence {
        let names = self.names(layer, ladder, &choice.subjects);
        let over = choice.over.concat();
        let loser = |one: &Decided<'_>| {
            let [subject, against] = self.ends(one.finding);
            if one.finding.kind().is_worse() { subject } else { against }
        };
        let losers: BTreeSet<usize> = over.iter().map(loser).collect();
        let losers = self.names(layer, ladder, &losers.into_iter().collect::<Vec<_>>());
        let takes = |less, more| over.first().map_or(less, |one| takes(one.finding, less, more));
        let text = format!(
            "of the {}{}, which of {} {} is not decided; {} {} than at least one of them",
            group(layer, ladder),
            self.in_setting(choice.setting),
            joined(&names, "and"),
            takes("takes the least", "has the most"),
            joined(&losers, "and"),
            if losers.len() == 1 { takes("takes more", "has less") } else { takes("take more", "have less") }
        );
        self.sentence(Topic::Choice, text, [choice.open.clone(), findings(&over)].concat())
    }
}

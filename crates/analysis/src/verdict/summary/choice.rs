//! Which subject of a layer takes the least, or has the most of what a person wishes for, on each ladder and in each setting: one that beats every other,
//! directly or by way of the baseline, or those that none was shown to beat.

use super::{Decided, One, Says};
use crate::experiment::Setting;
use crate::plan::{Ladder, Layer};
use crate::units::Better;

impl One<'_> {
    /// Which subject of each layer and ladder takes the least.
    pub(super) fn choices(&self) -> Vec<Says> {
        let mut all = Vec::new();
        for layer in [Layer::Runtime, Layer::Engine] {
            for ladder in [Ladder::AsInstalled, Ladder::Equalised] {
                all.extend(self.choice(layer, ladder));
            }
        }
        all
    }

    fn choice(&self, layer: Layer, ladder: Ladder) -> Vec<Says> {
        let stands = |subject: usize| {
            let entry = self.entry(subject);
            entry.layer == layer && entry.ladder == ladder
        };
        let inside = |index: &usize| {
            let comparison = self.comparison(*index);
            stands(comparison.subject) && stands(comparison.against)
        };
        let findings: Vec<usize> = self.findings.iter().copied().filter(inside).collect();
        let mut settings: Vec<&Setting> = Vec::new();
        for &index in &findings {
            if !settings.contains(&self.setting(index)) {
                settings.push(self.setting(index));
            }
        }
        let mut all: Vec<Says> = Vec::new();
        for setting in settings {
            let own: Vec<usize> =
                findings.iter().copied().filter(|index| self.setting(*index) == setting).collect();
            match self.least(layer, ladder, setting, &own) {
                Some(Says::Least { subject, leads, .. }) => {
                    let same = |one: &&mut Says| matches!(one, Says::Least { subject: known, .. } if *known == subject);
                    match all.iter_mut().find(same) {
                        Some(Says::Least { leads: known, .. }) => known.extend(leads),
                        _ => all.push(Says::Least { layer, ladder, subject, leads }),
                    }
                }
                other => all.extend(other),
            }
        }
        all
    }

    fn least(&self, layer: Layer, ladder: Ladder, setting: &Setting, own: &[usize]) -> Option<Says> {
        let ends = |index: usize| [self.comparison(index).subject, self.comparison(index).against];
        let mut subjects: Vec<usize> = own.iter().flat_map(|&index| ends(index)).collect();
        subjects.sort_unstable();
        subjects.dedup();
        let decided = own.iter().filter_map(|&index| self.decided(index));
        let direct = decided.filter_map(|one| {
            let [subject, against] = ends(one.finding());
            let (winner, loser) = match (one.is_worse(), one.is_better()) {
                (true, _) => (against, subject),
                (_, true) => (subject, against),
                _ => return None,
            };
            Some(Beats { winner, loser, shown: one, by_way_of: None })
        });
        let mut beats: Vec<Beats> = direct.collect();
        let size = |one: &Beats| one.shown.difference().value.abs();
        beats.sort_by(|one, other| size(one).total_cmp(&size(other)));
        let is_compared = |one: usize, other: usize| {
            own.iter().any(|&index| ends(index).contains(&one) && ends(index).contains(&other))
        };
        beats.extend(self.by_way_of_the_baseline(setting, &subjects, is_compared));
        let is_beaten = |subject: &usize| beats.iter().any(|one| one.loser == *subject);
        let unbeaten: Vec<usize> = subjects.iter().copied().filter(|one| !is_beaten(one)).collect();
        // Beating is meant of those that were not beaten, or it would explain nothing.
        beats.retain(|one| unbeaten.contains(&one.winner));
        let mut over: Vec<Decided> = Vec::new();
        let mut rest = Vec::new();
        let mut losers: Vec<usize> = Vec::new();
        for one in &beats {
            losers.push(one.loser);
            over.push(one.shown);
            rest.extend(one.by_way_of);
        }
        losers.sort_unstable();
        losers.dedup();
        if let [subject] = unbeaten[..]
            && losers.len() + 1 == subjects.len()
        {
            over.extend(rest);
            return Some(Says::Least { layer, ladder, subject, leads: vec![over] });
        }
        let among = |index: &usize| ends(*index).iter().all(|end| unbeaten.contains(end));
        let open = own.iter().copied().filter(among).chain(rest.iter().map(Decided::finding)).collect();
        // Where nobody is shown to take more, there is no choice to narrow down.
        let narrows = !over.is_empty() && unbeaten.len() > 1;
        let setting = setting.clone();
        narrows.then_some(Says::Among { layer, ladder, setting, subjects: unbeaten, open, over })
    }

    /// Those that no comparison sets beside each other are told apart where their differences from the baseline, which
    /// are decided and hold together with all others, lie apart by more than matters.
    fn by_way_of_the_baseline(
        &self,
        setting: &Setting,
        subjects: &[usize],
        is_compared: impl Fn(usize, usize) -> bool,
    ) -> Vec<Beats> {
        let baseline = self.run.plan.baseline_of(self.name);
        let from_it = |subject: usize| {
            let fits = |index: &usize| {
                let comparison = self.comparison(*index);
                (comparison.subject, comparison.against) == (subject, baseline)
                    && self.finding(*index).metric == 0
                    && self.setting(*index) == setting
            };
            let index = self.findings.iter().copied().find(fits)?;
            Some((self.decided(index)?, self.finding(index).numbers?.matters))
        };
        let known: Vec<_> = subjects.iter().filter_map(|&one| Some((one, from_it(one)?))).collect();
        let mut all = Vec::new();
        for &(loser, (shown, matters)) in &known {
            for &(winner, (other, also)) in &known {
                let apart = match self.better {
                    Better::More => other.interval().low - shown.interval().high,
                    _ => shown.interval().low - other.interval().high,
                };
                if apart > f64::max(matters, also) && shown.is_worse() && !is_compared(winner, loser) {
                    all.push(Beats { winner, loser, shown, by_way_of: Some(other) });
                }
            }
        }
        all
    }
}

/// One subject takes more than another.
struct Beats {
    winner: usize,
    loser: usize,
    /// What shows it: of both, or of the loser and the baseline.
    shown: Decided,
    /// What shows in the latter case where the winner stands.
    by_way_of: Option<Decided>,
}

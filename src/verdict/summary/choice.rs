//! Which subject of a layer takes the least, on each ladder and in each setting: one that beats every other,
//! or those that none was shown to beat.

use super::{Decided, One, Says, Way};
use crate::experiment::Setting;
use crate::plan::{Ladder, Layer};

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
        let decided: Vec<Decided> = own.iter().filter_map(|&index| self.decided(index)).collect();
        let loser = |one: &Decided| match one.way() {
            Way::More => Some(ends(one.finding())[0]),
            Way::Less => Some(ends(one.finding())[1]),
            Way::Same => None,
        };
        let beaten: Vec<usize> = decided.iter().filter_map(loser).collect();
        let unbeaten: Vec<usize> = subjects.iter().copied().filter(|one| !beaten.contains(one)).collect();
        // Beating is meant of those that were not beaten, or it would explain nothing.
        let over = |one: &&Decided| {
            let winner = ends(one.finding()).into_iter().find(|end| Some(*end) != loser(one));
            loser(one).is_some() && winner.is_some_and(|winner| unbeaten.contains(&winner))
        };
        let mut over: Vec<Decided> = decided.iter().filter(over).copied().collect();
        over.sort_by(|one, other| one.difference().value.abs().total_cmp(&other.difference().value.abs()));
        if let [subject] = unbeaten[..]
            && over.len() + 1 == subjects.len()
        {
            return Some(Says::Least { layer, ladder, subject, leads: vec![over] });
        }
        let among = |index: &usize| ends(*index).iter().all(|end| unbeaten.contains(end));
        let open: Vec<usize> = own.iter().copied().filter(among).collect();
        // Where nobody is shown to take more, there is no choice to narrow down.
        let narrows = !over.is_empty() && !open.is_empty();
        let setting = setting.clone();
        narrows.then_some(Says::Among { layer, ladder, setting, subjects: unbeaten, open, over })
    }
}

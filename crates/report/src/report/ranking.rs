//! The places of subjects in a metric, by what comparisons decided: a difference puts one subject behind another,
//! `same` lets them share a place, and an undecided subject has a range of places. Two subjects without a comparison
//! are in order if their differences from a third, whose intervals hold together at 95 %, are further apart than what
//! matters.
//!
//! Deliberately absent: anything read off the medians alone.

use super::model::{Experiment, Row};
use crate::stats::Interval;
use crate::units::Better;
use crate::verdict::Verdict;

/// The places that a subject may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The best that the verdicts allow; 1 is the first.
    pub best: usize,
    /// The worst that they allow.
    pub worst: usize,
    /// How many subjects share it, this one included.
    pub sharing: usize,
}

impl Place {
    /// As text: `1`, `2=` if shared, `3–5` if undecided.
    pub fn text(&self) -> String {
        let shared = if self.sharing > 1 { "=" } else { "" };
        if self.best == self.worst {
            return format!("{}{shared}", self.best);
        }
        format!("{}–{}{shared}", self.best, self.worst)
    }
}

/// The subjects of a setting with their places in a metric, the best first; undecided ones in the order of their
/// medians. Subjects that are suspect, have no value, or are variants that show a cause have no place.
pub fn places(experiment: &Experiment, setting: usize, metric: usize) -> Vec<(&Row, Place)> {
    let mut rows: Vec<(&Row, f64)> = Vec::new();
    for row in experiment.settings[setting].subjects() {
        let is_ranked = row.variant_of.is_none() && !row.is_suspect(metric);
        rows.extend(row.value(metric).filter(|_| is_ranked).map(|value| (row, value.summary.median.value)));
    }
    rows.sort_by(|(_, one), (_, other)| one.total_cmp(other));
    if experiment.metrics[metric].better == Better::More {
        rows.reverse();
    }
    let labels: Vec<&str> = rows.iter().map(|(row, _)| row.label.as_str()).collect();
    let (behind, equal) = decided(experiment, setting, metric, &labels);
    let places = of_groups(&groups(&behind, equal), &behind);
    let mut ranked: Vec<_> = rows.iter().map(|(row, _)| *row).zip(places).collect();
    // The sort is stable: medians decide the order within a place, though not the places.
    ranked.sort_by_key(|(_, place)| (place.best + place.worst, place.best));
    ranked
}

/// Which subject is behind which, and which are the same, by index.
fn decided(
    experiment: &Experiment,
    setting: usize,
    metric: usize,
    labels: &[&str],
) -> (Vec<Vec<bool>>, Vec<(usize, usize)>) {
    let none = vec![vec![false; labels.len()]; labels.len()];
    let (mut behind, mut compared, mut equal) = (none.clone(), none, Vec::new());
    // By subject and third: the ends of the interval of the difference, and what matters.
    let mut differences: Vec<(usize, &str, Interval, f64)> = Vec::new();
    let index = |label: &str| labels.iter().position(|own| *own == label);
    let is_more_better = experiment.metrics[metric].better == Better::More;
    let setting = &experiment.settings[setting].text;
    let findings = experiment.comparisons.iter().map(|told| &told.finding);
    let findings = findings.filter(|one| !one.about.relation.is_of_settings());
    for finding in findings.filter(|one| one.metric == metric && one.about.setting == *setting) {
        let Some(subject) = index(&finding.about.subject) else { continue };
        let against = index(&finding.about.against);
        // A description holds at no level together with the rest.
        if !matches!(finding.verdict, Verdict::Suspect(_) | Verdict::Context) {
            if let Some(against) = against {
                compared[subject][against] = true;
                compared[against][subject] = true;
            }
            let difference =
                finding.difference.map(|one| if is_more_better { one.map(|value| -value) } else { one });
            if let (Some(interval), Some(matters)) =
                (difference.and_then(|one| one.interval), finding.matters)
            {
                differences.push((subject, &finding.about.against, interval, matters));
            }
        }
        // A difference within the noise floor orders nothing.
        let Some(against) = against.filter(|_| finding.noise.is_none()) else { continue };
        match finding.verdict {
            Verdict::More if !is_more_better => behind[subject][against] = true,
            Verdict::Less if is_more_better => behind[subject][against] = true,
            Verdict::More | Verdict::Less => behind[against][subject] = true,
            Verdict::Same => equal.push((subject.min(against), subject.max(against))),
            _ => {}
        }
    }
    // Subjects compared with the same third one, but not with each other.
    for (one, third, shown, matters) in &differences {
        for (other, same, less, also) in &differences {
            let is_apart = shown.low > less.high + matters.max(*also);
            if third == same && !compared[*one][*other] && is_apart {
                behind[*one][*other] = true;
            }
        }
    }
    // Neighbours join first, so that a chain of them is not broken by its ends.
    equal.sort_by_key(|(one, other)| (other - one, *one));
    (behind, equal)
}

/// The group of each subject: joined by `same`, unless a difference was decided between two members, since `same`
/// within a margin is not transitive.
fn groups(behind: &[Vec<bool>], equal: Vec<(usize, usize)>) -> Vec<usize> {
    let mut group: Vec<usize> = (0..behind.len()).collect();
    for (one, other) in equal {
        let (keep, join) = (group[one], group[other]);
        let members =
            |of: usize| group.iter().enumerate().filter(move |(_, own)| **own == of).map(|(at, _)| at);
        let apart = members(keep).any(|a| members(join).any(|b| behind[a][b] || behind[b][a]));
        if !apart {
            group.iter_mut().filter(|own| **own == join).for_each(|own| *own = keep);
        }
    }
    group
}

/// The place of each subject. A subject behind one member of a group is behind the whole group, and behind all that
/// the group is behind.
fn of_groups(group: &[usize], behind: &[Vec<bool>]) -> Vec<Place> {
    let count = group.len();
    let mut reach = vec![vec![false; count]; count];
    for (from, row) in behind.iter().enumerate() {
        for (to, _) in row.iter().enumerate().filter(|(_, is)| **is) {
            reach[group[from]][group[to]] = true;
        }
    }
    for middle in 0..count {
        let onwards = reach[middle].clone();
        for from in reach.iter_mut().filter(|from| from[middle]) {
            from.iter_mut().zip(&onwards).for_each(|(known, more)| *known |= more);
        }
    }
    let size = |of: usize| group.iter().filter(|own| **own == of).count();
    let place = |own: &usize| {
        // Two that are behind each other by different paths are not told apart.
        let is_behind = |one: usize, other: usize| reach[one][other] && !reach[other][one];
        let before = group.iter().filter(|other| is_behind(*own, **other)).count();
        let after = group.iter().filter(|other| is_behind(**other, *own)).count();
        let sharing = size(*own);
        Place { best: before + 1, worst: count - after - sharing + 1, sharing }
    };
    group.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(count: usize, behind: &[(usize, usize)], equal: &[(usize, usize)]) -> Vec<String> {
        let mut table = vec![vec![false; count]; count];
        behind.iter().for_each(|(one, other)| table[*one][*other] = true);
        of_groups(&groups(&table, equal.to_vec()), &table).iter().map(Place::text).collect()
    }

    #[test]
    fn decided_differences_carry_over_and_the_same_share_a_place() {
        assert_eq!(shown(3, &[(1, 0), (2, 1)], &[]), ["1", "2", "3"]);
        assert_eq!(shown(4, &[(1, 0), (3, 2)], &[(1, 2)]), ["1", "2=", "2=", "4"]);
    }

    #[test]
    fn what_is_not_decided_has_a_range() {
        assert_eq!(shown(3, &[(1, 0), (2, 0)], &[]), ["1", "2–3", "2–3"]);
        assert_eq!(shown(4, &[(1, 0), (2, 0), (3, 0)], &[(1, 2)]), ["1", "2–3=", "2–3=", "2–4"]);
        assert_eq!(shown(2, &[], &[]), ["1–2", "1–2"]);
    }

    #[test]
    fn the_same_of_the_same_is_not_the_same_where_a_difference_was_decided() {
        assert_eq!(shown(3, &[(2, 0)], &[(0, 1), (1, 2)]), ["1=", "1=", "3"]);
        // A contradiction orders nothing.
        assert_eq!(shown(2, &[(0, 1), (1, 0)], &[]), ["1–2", "1–2"]);
    }
}

//! The verdict of each line of an experiment, given what bare and floor did and how far a run differs from
//! itself. The rules are in `stats::runs`; here they are applied to each setting of a line, then to all
//! together. The verdicts of an experiment share one level.

use super::lines::{InSetting, Line, Measured, NO_VALUE, Ready, Scale, Together};
use super::{Experiment, Key, Subject};
use crate::experiment::{self, Weight};
use crate::stats::{Alpha, Estimate, Ruling};
use crate::verdict::{Kind, in_parallel};

/// What both sides have of an experiment; none if they share no cell of it.
pub(super) fn experiment(
    about: &'static experiment::Experiment,
    sides: &[Vec<Ready<'_>>; 2],
    subjects: &[Subject],
) -> Option<Experiment> {
    let is_own = |(name, ..): &&Key| *name == about.name;
    let mut own: Vec<(&Subject, Vec<&Key>)> =
        subjects.iter().map(|one| (one, one.shared.iter().filter(is_own).collect())).collect();
    own.retain(|(_, keys)| !keys.is_empty());
    let plan = sides[0].first().filter(|_| !own.is_empty())?.plan();
    let family = family(about.metrics, &own);
    // Each of two runs may have ended at any of its looks.
    let looks = |side: &Vec<Ready<'_>>| if let [one] = &side[..] { one.plan().looks.len().max(1) } else { 1 };
    let alpha = Alpha::shared_by(family * looks(&sides[0]) * looks(&sides[1]));
    // Failures are a family of their own: where nothing fails, the verdicts lose nothing.
    let failure_level = Alpha::shared_by(own.iter().map(|(_, keys)| keys.len()).sum());
    let wanted: Vec<(usize, &(&Subject, Vec<&Key>))> =
        (0..about.metrics.len()).flat_map(|metric| own.iter().map(move |one| (metric, one))).collect();
    let mut lines = in_parallel(&wanted, |&(metric, (subject, keys))| {
        let definition = &about.metrics[metric];
        let margin = plan.margin_of(about.name, definition);
        let measured = Measured { sides, keys, metric, margin, alpha, failure_level };
        let line = measured.line(subject, definition);
        let own = measured.own_move(&line.settings);
        (line, own, keys)
    });
    // Metrics that only one side can have (the requests of a subject over an API) are not gaps, nor are those
    // that neither measured (imported files have a column or two).
    let is_unmeasured = |one: &InSetting| one.failure.iter().all(|why| why.as_deref() == Some(NO_VALUE));
    lines.retain(|(line, ..)| match line.verdict {
        Kind::Context => line.settings.iter().any(|one| one.numbers.is_some()),
        _ => !line.settings.iter().all(is_unmeasured),
    });
    let controls: Vec<Line> =
        lines.iter().map(|one| &one.0).filter(|line| line.is_control).cloned().collect();
    for (line, own, keys) in lines.iter_mut().filter(|(line, ..)| line.verdict != Kind::Context) {
        judge(line, &about.metrics[line.metric], &controls, *own);
        // What is suspect in a run alone is suspect here.
        let suspect = |(key, one): (&&Key, &InSetting)| {
            let size = one.numbers.map_or(0.0, |numbers| numbers.difference.value.abs());
            sides.iter().flatten().find_map(|run| run.suspect(key, line.metric, size))
        };
        line.suspect = keys.iter().zip(&line.settings).find_map(suspect);
        if line.suspect.is_some() {
            line.verdict = Kind::Suspect;
        }
    }
    Some(Experiment {
        name: about.name,
        question: about.question,
        family,
        level: alpha,
        metrics: plan.metric_facts(about),
        lines: lines.into_iter().map(|(line, ..)| line).collect(),
    })
}

/// The number of intervals of decisive metrics of an experiment: one for each setting of a subject, and one
/// over all if there are several.
fn family(metrics: &[experiment::Metric], subjects: &[(&Subject, Vec<&Key>)]) -> usize {
    let decisive = metrics.iter().filter(|metric| metric.weight == Weight::Verdict).count();
    let of = |(_, keys): &(&Subject, Vec<&Key>)| keys.len() + usize::from(keys.len() > 1);
    decisive * subjects.iter().map(of).sum::<usize>()
}

/// Applies the rules for two runs to a line.
fn judge(line: &mut Line, metric: &experiment::Metric, controls: &[Line], own: f64) {
    let Some(together) = line.together else { return };
    let is_other = |control: &&Line| !line.is_control && control.metric == line.metric;
    let others: Vec<&Line> = controls.iter().filter(is_other).collect();
    // Without logarithms, the size of the machine's change here is unknown.
    let own = together.log_matters.map_or(0.0, |_| own);
    let shift =
        |all: Together| together.log_matters.and(all.log_matters).map(|_| all.decided.over_both.shift);
    let of_controls: Vec<Estimate> = others.iter().filter_map(|control| shift(control.together?)).collect();
    let matters = together.log_matters.unwrap_or(together.matters);
    let ruling = together.decided.rule(matters, &of_controls, own);
    for one in &mut line.settings {
        let same = |control: &&Line| control.settings.iter().find(|own| own.text == one.text)?.logarithm;
        let of_controls: Vec<Estimate> =
            others.iter().filter_map(same).map(|(control, _)| control.over_both.shift).collect();
        one.ruling = one.logarithm.map(|(change, matters)| change.rule(matters, &of_controls, own));
    }
    let any = |ruling: Ruling| line.settings.iter().any(|one| one.ruling == Some(ruling));
    let (up, down) = (any(Ruling::More), any(Ruling::Less));
    line.verdict = match ruling {
        // A changed control is the sign of a changed machine.
        Ruling::More | Ruling::Less if line.is_control => Kind::Machine,
        Ruling::More if down => Kind::Mixed,
        Ruling::Less if up => Kind::Mixed,
        Ruling::More | Ruling::Less => {
            Kind::of_difference(ruling == Ruling::More, metric.unit, metric.better)
        }
        _ if up && down => Kind::Mixed,
        Ruling::Same if up || down => Kind::Mixed,
        Ruling::Same => Kind::Same,
        Ruling::Machine => Kind::Machine,
        Ruling::ControlsTooWide(_) | Ruling::Unsteady(_) | Ruling::Undecided { .. } => Kind::Undecided,
        Ruling::TooFew { .. } => Kind::TooFew,
    };
    line.ruling = Some(match ruling {
        Ruling::ControlsTooWide(bound) => Ruling::ControlsTooWide(told(&together, bound)),
        Ruling::Unsteady(bound) => Ruling::Unsteady(told(&together, bound)),
        Ruling::Undecided { smallest_visible, new_run } => {
            Ruling::Undecided { smallest_visible: told(&together, smallest_visible), new_run }
        }
        other => other,
    });
}

/// Converts a size from the scale of the decision to that of the sentence: a share, or units of what matters.
fn told(together: &Together, size: f64) -> f64 {
    match (together.log_matters, together.scale) {
        (None, _) => size,
        // If everything matters, a unit is the old median.
        (Some(least), Scale::Margins) if least > 0.0 => size.exp_m1() / least.exp_m1(),
        (Some(_), _) => size.exp_m1(),
    }
}

//! What does a line come to, given what bare and floor did and what a run does by itself? The rules stand in
//! `stats::runs`; here they meet a line, first each of its settings, then all of them together.

use super::{Line, Scale, Together, Verdict};
use crate::experiment::Metric;
use crate::stats::{self, Estimate, Ruling};
use crate::verdict::Kind;

/// Applies the rules of two runs to a line.
pub(super) fn judge(line: &mut Line, metric: &Metric, controls: &[Line], own: f64) {
    let Some(together) = line.together else { return };
    let others: Vec<&Line> = match line.is_control {
        true => Vec::new(),
        false => controls.iter().filter(|control| control.metric == line.metric).collect(),
    };
    // Without logarithms nothing says what a change of the machine would come to here.
    let own = together.log_matters.map_or(0.0, |_| own);
    let of_controls: Vec<Estimate> = others
        .iter()
        .filter_map(|control| control.together)
        .filter(|control| together.log_matters.and(control.log_matters).is_some())
        .map(|control| control.decided.shift)
        .collect();
    let matters = together.log_matters.unwrap_or(together.matters);
    let ruling = stats::rule(&together.decided, matters, &of_controls, own);
    for one in &mut line.settings {
        one.ruling = one.logarithm.map(|change| {
            let same = |control: &&Line| control.settings.iter().find(|own| own.text == one.text)?.logarithm;
            let of_controls: Vec<Estimate> =
                others.iter().filter_map(same).map(|control| control.shift).collect();
            let share = one.matters / one.medians[0].unwrap_or(f64::INFINITY);
            stats::rule(&change, share.ln_1p(), &of_controls, own)
        });
    }
    let any = |ruling: Ruling| line.settings.iter().any(|one| one.ruling == Some(ruling));
    let (up, down) = (any(Ruling::More), any(Ruling::Less));
    line.verdict = match ruling {
        // A control that changed is what a changed machine is known by.
        Ruling::More | Ruling::Less if line.is_control => Verdict::Machine,
        Ruling::More if down => Verdict::Mixed,
        Ruling::Less if up => Verdict::Mixed,
        Ruling::More | Ruling::Less => {
            Verdict::Changed(Kind::of_difference(ruling == Ruling::More, metric.unit, metric.better))
        }
        _ if up && down => Verdict::Mixed,
        Ruling::Same if up || down => Verdict::Mixed,
        Ruling::Same => Verdict::Same,
        Ruling::Machine => Verdict::Machine,
        Ruling::ControlsTooWide(bound) => Verdict::ControlsTooWide(told(&together, bound)),
        Ruling::Unsteady(bound) => Verdict::Unsteady(told(&together, bound)),
        Ruling::Undecided { smallest_visible, new_run } => {
            Verdict::Undecided { smallest_visible: told(&together, smallest_visible), new_run }
        }
        Ruling::TooFew { have, need } => Verdict::TooFew { have, need },
    };
}

/// A size on the scale on which a line is decided as its sentence tells it: a share, or units of what matters.
fn told(together: &Together, size: f64) -> f64 {
    match (together.log_matters, together.scale) {
        (None, _) => size,
        // Where everything matters, a unit is the old median.
        (Some(least), Scale::Margins) if least > 0.0 => size.exp_m1() / least.exp_m1(),
        (Some(_), _) => size.exp_m1(),
    }
}

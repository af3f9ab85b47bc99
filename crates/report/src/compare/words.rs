//! A comparison in sentences, which come from verdicts only. Their scope depends on the number of runs.

use dunnage_analysis::compare::{Experiment, FailedRounds, InSetting, Line, Scale, Together};

use crate::report::text::{
    clean, estimated, in_brackets, in_one, in_percent, listed, number, percent, percent_parts,
};
use crate::stats::{Basis, Estimate, Goal, NewRun, Ruling, fewest_each};
use crate::units::{Unit, counted};
use crate::verdict::{HOPELESS, Kind};

/// The unit of a change without a ratio: the smallest difference that matters.
pub(super) const MATTERS: &str = " × what matters";

/// One line in a sentence without a full stop, or several lines of a metric that say the same. Several have the
/// range of their sizes.
pub fn sentence(experiment: &Experiment, lines: &[&Line]) -> String {
    let [line, others @ ..] = lines else { return String::new() };
    let metric = &experiment.metrics[line.metric];
    let of = if others.is_empty() { format!("`{}`", line.label) } else { counted(lines.len(), "subject") };
    let name = format!("{} of {of}", metric.name);
    let said = match (line.together, line.verdict, &line.suspect) {
        (_, Kind::Suspect, Some(words)) => format!("is suspect in {words}"),
        (Some(together), ..) => decided(metric.unit, lines, &together),
        (None, ..) => format!("cannot be compared: {}", missing(line)),
    };
    clean(&format!("{name} {said}"))
}

/// How often rounds failed in a setting, without a full stop.
pub fn failures(experiment: &Experiment, line: &Line, failed: &FailedRounds) -> String {
    let more = match failed.verdict {
        Kind::Worse => " more often",
        Kind::Better => " less often",
        _ => "",
    };
    let ([old, new], [of_old, of_new]) = (failed.failed, failed.rounds);
    let what = format!("{} of `{}`{}", experiment.name, line.label, in_brackets(&failed.setting));
    clean(&format!("{what} fails{more}: in {new} of {of_new} rounds, before in {old} of {of_old}"))
}

fn decided(unit: Unit, lines: &[&Line], together: &Together) -> String {
    let (line, scale) = (lines[0], together.scale);
    let changes = || lines.iter().filter_map(|line| line.together);
    let over = match line.settings.iter().filter(|one| one.numbers.is_some()).count() {
        1 => String::new(),
        several => format!(" over {several} settings"),
    };
    let shown = match lines.len() {
        1 => format!("{}{over}{}", in_one(change(together)), lost(line)),
        _ => sizes(scale, changes().map(|all| from_none(all.scale, all.change.value).abs())),
    };
    let moves = match (changes().any(|all| goes_up(&all)), changes().all(|all| goes_up(&all))) {
        (_, true) => "rises",
        (false, _) => "falls",
        _ => "moves",
    };
    let bounds = || {
        let bound = |line: &&Line| match line.ruling? {
            Ruling::ControlsTooWide(size) | Ruling::Unsteady(size) => Some(size),
            Ruling::Undecided { smallest_visible, .. } => Some(smallest_visible),
            _ => None,
        };
        sizes(scale, lines.iter().filter_map(bound))
    };
    match (line.verdict, line.ruling) {
        (Kind::Same, _) => {
            let matters = sizes(scale, [from_none(scale, together.matters)].into_iter());
            format!("is the same: {shown}, within {matters}")
        }
        (Kind::Machine, _) if line.is_control => format!("{moves}: {shown}: the machine changed"),
        (Kind::Machine, _) => format!("{moves}: {shown}; bare or floor does too: the machine changed"),
        (Kind::Mixed, _) => format!("is mixed: {}", in_settings(line, unit)),
        (_, Some(Ruling::Undecided { smallest_visible, .. })) if smallest_visible.is_infinite() => {
            format!("is undecided: {shown}; rounds failed that could have shown any change")
        }
        (_, Some(Ruling::Undecided { .. })) => format!(
            "is undecided: {shown}; smallest visible effect {}; {}",
            bounds(),
            how_to_decide(lines, together)
        ),
        (_, Some(Ruling::ControlsTooWide(_))) => format!(
            "is undecided: it {moves}, {shown}, but bare and floor cannot rule out that the machine changed by up to {}",
            bounds()
        ),
        (_, Some(Ruling::Unsteady(_))) => {
            format!("is undecided: it {moves}, {shown}, but it varies by {} within a run", bounds())
        }
        (_, Some(Ruling::TooFew { have, need })) => format!(
            "has no verdict: {} on each side, and this many comparisons need {need}; so far {shown}",
            counted(have, "round")
        ),
        _ => format!("{moves}: {shown}"),
    }
}

/// The setting of all lines, if they have the same one.
pub(super) fn one_setting<'a>(lines: &[&'a Line]) -> Option<&'a str> {
    let first = lines.first()?.settings.first()?;
    let is_only = |line: &&Line| line.settings.len() == 1 && line.settings[0].text == first.text;
    lines.iter().all(is_only).then_some(first.text.as_str())
}

/// A change with its interval.
pub(super) fn change(together: &Together) -> (String, String) {
    let change = &together.change;
    if together.scale == Scale::Ratio {
        return percent_parts(change);
    }
    let shown = |value: f64| number(value, 1);
    let interval = change.interval.map(|one| format!("[{}, {}]", shown(one.low), shown(one.high)));
    (format!("{}{MATTERS}", shown(change.value)), interval.unwrap_or_default())
}

/// A size on a scale where no change is zero.
pub(super) fn from_none(scale: Scale, size: f64) -> f64 {
    if scale == Scale::Ratio { size - 1.0 } else { size }
}

/// The range of sizes, without directions.
fn sizes(scale: Scale, all: impl Iterator<Item = f64>) -> String {
    let (low, high) =
        all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), size| (low.min(size), high.max(size)));
    let shown = |size: f64| match scale {
        Scale::Ratio => percent(size),
        Scale::Margins => format!("{}{MATTERS}", number(size, 1)),
    };
    let (low, high) = (shown(low), shown(high));
    if low == high { high } else { format!("{} to {high}", low.trim_end_matches(MATTERS)) }
}

fn goes_up(together: &Together) -> bool {
    from_none(together.scale, together.change.value) > 0.0
}

fn in_settings(line: &Line, unit: Unit) -> String {
    let one = |one: &InSetting| {
        let numbers = one.numbers?;
        let absolute = || estimated(unit, &numbers.difference);
        let change = numbers.ratio.as_ref().map_or_else(absolute, in_percent);
        Some(format!("{change} with {}", one.text))
    };
    listed(line.settings.iter().filter_map(one), ", ")
}

/// The settings without new values, which a line says nothing about.
fn lost(line: &Line) -> String {
    let all = listed(line.lost().map(|(setting, why)| format!("{setting} (new {why})")), ", ");
    if all.is_empty() { all } else { format!(", without {all}") }
}

/// Why a line has no numbers.
fn missing(line: &Line) -> String {
    let of = |one: &InSetting| {
        let [old, new] = one.failure.each_ref().map(Option::as_deref);
        old.map(|why| format!("old {why}")).or_else(|| new.map(|why| format!("new {why}")))
    };
    line.settings.iter().find_map(of).unwrap_or_else(|| "no round has values for all settings".into())
}

/// How many rounds or runs might decide undecided lines.
fn how_to_decide(lines: &[&Line], together: &Together) -> String {
    let new_run = |line: &&Line| match line.ruling {
        Some(Ruling::Undecided { new_run, .. }) => new_run.filter(|run| run.rounds <= HOPELESS),
        _ => None,
    };
    let known: Vec<NewRun> = lines.iter().filter_map(new_run).collect();
    let rounds = || known.iter().map(|run| run.rounds);
    let basis = together.basis;
    let (Some(least), Some(most)) = (rounds().min(), rounds().max()) else {
        let Estimate { alpha, .. } = together.change;
        return match basis {
            Basis::Pairs => {
                format!(
                    "with {} on each side, each would count as one value",
                    counted(fewest_each(alpha), "run")
                )
            }
            _ => "no prediction of how many rounds would decide it".into(),
        };
    };
    let all_show = |goal: Goal| known.iter().all(|run| run.goal == goal);
    let goal = match () {
        () if all_show(Goal::Same) => "show that it does not matter",
        () if all_show(Goal::Difference) => "show a change",
        () => "decide it",
    };
    let what = if basis == Basis::Runs { "run" } else { "round" };
    let count = if least == most { counted(most, what) } else { format!("{least} to {most} {what}s") };
    let rest = match lines.len() - known.len() {
        0 => String::new(),
        open => format!(", with no prediction for {open}"),
    };
    match basis {
        Basis::Runs => format!("{count} on each side might {goal}{rest}"),
        _ => format!("runs of {count} might {goal}{rest}"),
    }
}

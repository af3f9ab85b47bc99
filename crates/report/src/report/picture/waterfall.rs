//! What does each piece cost, and do the prices add up? A bar for each price, which begins at the end of the
//! previous one, followed by the measured whole. The prices come from the stamps of one launch or, in runs without
//! stamps, from a ladder of launches.

use super::Picture;
use super::rows::{Layout, Mark, Panel, Row, Rows};
use super::svg::End;
use crate::distinct;
use crate::experiment::primitives;
use crate::report::model::{Amount, Experiment, Priced};
use crate::report::text::estimated;
use crate::stats::Estimate;
use crate::units::{Unit, counted};

/// The ways of pricing whose prices add up.
const LADDER: &str = "ladder";
const STAMPS: &str = "stamps";
/// The colours of increases, decreases, and the whole.
const COLOURS: [usize; 3] = [4, 5, 0];

static LAYOUT: Layout =
    Layout { names: 150.0, beside: 168.0, row: 21.0, bar: 12.0, columns: &[("", 0.0, End::Last)] };

/// A picture for each subject.
pub(super) fn pictures(experiment: &Experiment) -> Vec<Picture> {
    let labels = distinct(experiment.prices.iter().map(|one| one.label.as_str()));
    labels.into_iter().filter_map(|label| picture(experiment, label)).collect()
}

fn picture(experiment: &Experiment, label: &str) -> Option<Picture> {
    let unit = experiment.metrics.first()?.unit;
    let own = experiment.prices.iter().filter(|one| one.label == label);
    let panels = distinct(own.map(|one| one.prestate)).into_iter();
    let panels = panels
        .map(|prestate| Panel::of_bars(prestate.to_owned(), unit, rows(experiment, label, prestate, unit)));
    let panels: Vec<Panel> = panels.filter(|panel| !panel.rows.is_empty()).collect();
    let rungs = panels.first()?.rows.iter().filter(|row| row.size.is_some()).count();
    let title = format!("{}: what each of {} of {label} adds", experiment.name, counted(rungs, "piece"));
    let is_stamped = experiment.prices.iter().any(|one| one.label == label && one.way == STAMPS);
    let what = match is_stamped {
        true => "the median time between two readings of the clock within one launch",
        false => "the median of the paired differences between a launch with this piece and one without it",
    };
    let caption = vec![
        format!(
            "Each bar is {what}, and begins at the end of the previous one; the thin line is its 95 % interval."
        ),
        "The last bars are whole launches as measured; the medians of their pieces need not add up exactly."
            .into(),
    ];
    let heads = vec!["piece", "price [interval]", "kind"];
    let rows = Rows { layout: &LAYOUT, legend: &[], heads, panels };
    Some(rows.picture(&[experiment.name, "waterfall", label], title, caption, "Waterfall of the pieces"))
}

fn rows(experiment: &Experiment, label: &str, prestate: &str, unit: Unit) -> Vec<Row> {
    let steps = steps(experiment, label, prestate);
    let row = |(index, &(name, begin, price)): (usize, &(&str, Option<f64>, Estimate))| {
        let from = begin.unwrap_or(0.0);
        let to = from + price.value;
        let (colour, class, kind) = match begin {
            None => (COLOURS[2], "ink title", "whole"),
            Some(_) if price.value < 0.0 => (COLOURS[1], "ink", "adds"),
            Some(_) => (COLOURS[0], "ink", "adds"),
        };
        let mut marks = vec![Mark::Bar((from, to), colour)];
        if steps.get(index + 1).is_some_and(|(_, next, _)| next.is_some()) {
            marks.push(Mark::Down(to));
        }
        marks.extend(price.interval.map(|one| Mark::Whisker((from + one.low, from + one.high))));
        let told = estimated(unit, &price);
        Row {
            subject: label.to_owned(),
            name: name.to_owned(),
            size: begin.map(|_| price.value),
            marks,
            texts: vec![(class, told.clone())],
            cells: vec![name.to_owned(), told, kind.to_owned()],
            ..Row::default()
        }
    };
    steps.iter().enumerate().map(row).collect()
}

/// The pieces from the first to the last, then the whole: the name, the beginning of the bar (none for a whole, which
/// begins at zero), and the price or the whole.
fn steps<'a>(
    experiment: &'a Experiment,
    label: &str,
    prestate: &str,
) -> Vec<(&'a str, Option<f64>, Estimate)> {
    let metric = experiment.metrics[0].name;
    let own = || experiment.prices.iter().filter(|one| one.label == label && one.prestate == prestate);
    let mut from = 0.0;
    let mut steps = Vec::new();
    let whole = own().find(|one| (one.way, one.piece) == (STAMPS, primitives::WHOLE));
    for (_, piece) in primitives::pieces() {
        let Some(amount) = whole.and_then(|whole| whole.amount(piece)) else { continue };
        steps.push((piece, Some(from), amount.price));
        from += amount.price.value;
    }
    let all: Vec<(&Priced, &Amount)> =
        own().filter(|_| steps.is_empty()).filter_map(|one| Some((one, one.amount(metric)?))).collect();
    let last = all.iter().rposition(|(one, _)| one.way == LADDER);
    let mut chain: Vec<&(&Priced, &Amount)> = Vec::new();
    let mut at = last.map(|last| &all[last]);
    while let Some(rung) = at {
        chain.push(rung);
        let below = rung.1.reference.as_ref();
        at = below.and_then(|below| all.iter().find(|(one, _)| one.setting == *below));
        if chain.len() > all.len() {
            return Vec::new();
        }
    }
    for (one, amount) in chain.into_iter().rev() {
        steps.push((one.piece, Some(from), amount.price));
        from += amount.price.value;
    }
    if let Some(sum) = experiment.sums.iter().find(|sum| sum.label == label && sum.prestate == prestate) {
        steps.push(("whole launch", None, sum.last));
        steps.extend(sum.whole.map(|price| ("measured whole", None, price)));
    }
    steps
}

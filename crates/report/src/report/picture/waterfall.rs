//! What does each piece cost, and do the prices make the whole? Prices one after the other, each bar beginning where
//! the one before ends, beside the whole as it was measured.

use super::axis::Axis;
use super::letters::shorten;
use super::svg::{Canvas, End, LABEL, SIDE, SMALL, WIDTH, tick_room};
use super::{Drawing, Picture, Table, named};
use crate::report::model::{Amount, Experiment, Line, PriceList};
use crate::report::text::with_interval;
use crate::stats::Estimate;
use crate::units::{Unit, counted};

/// The way of pricing whose prices add up.
const LADDER: &str = "ladder";
/// Told of a price, in the class of its colour: dearer, cheaper, and the whole.
const COLOURS: [&str; 3] = ["k4", "k5", "k0"];

const LABEL_ROOM: f64 = 150.0;
const PLOT: (f64, f64) = (SIDE + LABEL_ROOM + 10.0, WIDTH - SIDE - 168.0);
const ROW: f64 = 21.0;
const BAR: f64 = 12.0;

/// Steps, panel by panel.
#[derive(Debug, Clone)]
pub struct Waterfall {
    /// The unit of the prices.
    pub unit: Unit,
    /// What ran before, and the steps.
    pub panels: Vec<(String, Vec<Step>)>,
    /// Whose prices these are.
    pub label: String,
}

/// A bar.
#[derive(Debug, Clone)]
pub struct Step {
    /// What is priced.
    pub name: String,
    /// Where the bar begins; none for a whole, which is measured and begins at zero.
    pub from: Option<f64>,
    /// What is added, or the whole.
    pub price: Estimate,
}

/// A picture a price list.
pub(super) fn pictures(experiment: &Experiment) -> Vec<Picture> {
    experiment.price_lists.iter().filter_map(|list| picture(experiment, list)).collect()
}

fn picture(experiment: &Experiment, list: &PriceList) -> Option<Picture> {
    let unit = experiment.metrics.first()?.unit;
    let panels: Vec<(String, Vec<Step>)> = list
        .prestates
        .iter()
        .enumerate()
        .map(|(index, prestate)| ((*prestate).to_owned(), steps(list, index)))
        .filter(|(_, steps)| !steps.is_empty())
        .collect();
    let (_, first) = panels.first()?;
    let rungs = first.iter().filter(|step| step.from.is_some()).count();
    Some(Picture {
        name: named(&[experiment.name, "waterfall", &list.label]),
        experiment: experiment.name,
        title: format!("{}: what {} of {} add, one after the other", experiment.name, counted(rungs, "piece"), list.label),
        caption: vec![
            "Each bar is the median of the paired differences between a launch with this piece and the launch one rung \
             below, and begins where the one before ends; the thin line is its interval at 95 %. A price below zero \
             points to the left."
                .into(),
            "The last bars are whole launches as they were measured: where the prices end elsewhere, they do not add up."
                .into(),
        ],
        alternative: alternative(&panels, unit, &list.label),
        table: table(&panels, unit),
        drawing: Drawing::Waterfall(Waterfall { unit, panels, label: list.label.clone() }),
    })
}

/// From the launch that nothing is told in difference of to the last rung, then the whole.
fn steps(list: &PriceList, prestate: usize) -> Vec<Step> {
    let amount = |line: &'_ Line| line.amounts.get(prestate)?.first()?.clone();
    let all: Vec<(&Line, Amount)> =
        list.lines.iter().filter_map(|line| Some((line, amount(line)?))).collect();
    let last = all.iter().rposition(|(line, _)| line.way == LADDER);
    let mut chain: Vec<&(&Line, Amount)> = Vec::new();
    let mut at = last.map(|last| &all[last]);
    while let Some(rung) = at {
        chain.push(rung);
        let below = rung.1.reference.as_ref();
        at = below.and_then(|below| all.iter().find(|(_, amount)| amount.setting == *below));
        if chain.len() > all.len() {
            return Vec::new();
        }
    }
    chain.reverse();
    let mut from = 0.0;
    let mut steps: Vec<Step> = Vec::new();
    for (line, amount) in chain {
        steps.push(Step { name: line.piece.to_owned(), from: Some(from), price: amount.price });
        from += amount.price.value;
    }
    for total in list.totals.iter().filter(|total| Some(&total.prestate) == list.prestates.get(prestate)) {
        let whole = |name: &str, price: Estimate| Step { name: name.to_owned(), from: None, price };
        steps.push(whole("last launch", total.last));
        steps.extend(total.whole.map(|price| whole("measured whole", price)));
    }
    steps
}

fn told(price: &Estimate, unit: Unit) -> String {
    with_interval(unit, price.value, price.interval.map(|one| (one.low, one.high)))
}

fn alternative(panels: &[(String, Vec<Step>)], unit: Unit, label: &str) -> String {
    let of_panel = |(title, steps): &(String, Vec<Step>)| {
        let mut rungs: Vec<&Step> = steps.iter().filter(|step| step.from.is_some()).collect();
        rungs.sort_by(|one, other| other.price.value.total_cmp(&one.price.value));
        let dearest: Vec<_> =
            rungs.iter().take(3).map(|step| format!("{} {}", step.name, told(&step.price, unit))).collect();
        let sum: f64 = rungs.iter().map(|step| step.price.value).sum();
        format!(
            "{title}: {} add up to {}, the dearest are {}.",
            counted(rungs.len(), "price"),
            unit.format(sum).replace('-', "−"),
            dearest.join(", ")
        )
    };
    let told: Vec<_> = panels.iter().map(of_panel).collect();
    format!("Waterfall of the pieces of {label}. {}", told.join(" "))
}

fn table(panels: &[(String, Vec<Step>)], unit: Unit) -> Table {
    let columns = ["before", "piece", "price [interval]", "kind"].map(str::to_owned).to_vec();
    let row = |title: &String, step: &Step| {
        let kind = if step.from.is_some() { "adds" } else { "whole" };
        vec![title.clone(), step.name.clone(), told(&step.price, unit), kind.to_owned()]
    };
    let rows = panels.iter().flat_map(|(title, steps)| steps.iter().map(move |step| row(title, step)));
    Table { columns, rows: rows.collect() }
}

impl Step {
    /// Where the bar begins and ends.
    fn ends(&self) -> (f64, f64) {
        let from = self.from.unwrap_or(0.0);
        (from, from + self.price.value)
    }

    /// Where its interval begins and ends.
    fn whiskers(&self) -> Option<(f64, f64)> {
        let from = self.from.unwrap_or(0.0);
        self.price.interval.map(|one| (from + one.low, from + one.high))
    }
}

impl Waterfall {
    /// Draws it from a height on, and says where it ends.
    pub(super) fn draw(&self, canvas: &mut Canvas, top: f64) -> f64 {
        let steps = || self.panels.iter().flat_map(|(_, steps)| steps);
        let ends = steps().flat_map(|step| {
            let (from, to) = step.ends();
            let (low, high) = step.whiskers().unwrap_or((from, to));
            [from, to, low, high]
        });
        let Some(axis) = Axis::from_zero(ends, self.unit, PLOT) else { return top };
        let ticks = axis.ticks(tick_room);
        let mut y = top;
        for (title, steps) in &self.panels {
            y += LABEL * 1.5;
            canvas.text("ink title", (SIDE, y), End::Start, LABEL, title);
            ticks.iter().for_each(|tick| canvas.text("faint", (tick.at, y), End::Middle, SMALL, &tick.label));
            y += 6.0;
            let foot = y + ROW * steps.len() as f64;
            ticks.iter().for_each(|tick| canvas.line("grid", (tick.at, y), (tick.at, foot)));
            canvas.line("axis", (axis.at(0.0), y), (axis.at(0.0), foot));
            canvas.subject("", &self.label, &format!("{}, {title}", self.label));
            for (index, step) in steps.iter().enumerate() {
                let next = steps.get(index + 1).filter(|next| next.from.is_some());
                self.step(canvas, &axis, step, y, next.is_some());
                y += ROW;
            }
            canvas.end();
            y += 8.0;
        }
        y
    }

    fn step(&self, canvas: &mut Canvas, axis: &Axis, step: &Step, y: f64, goes_on: bool) {
        let (from, to) = step.ends();
        let (left, right) = (axis.at(from.min(to)), axis.at(from.max(to)));
        let middle = y + ROW / 2.0;
        let colour = match step.from {
            None => COLOURS[2],
            Some(_) if step.price.value < 0.0 => COLOURS[1],
            Some(_) => COLOURS[0],
        };
        canvas.text("ink", (SIDE, middle + 4.0), End::Start, LABEL, &shorten(&step.name, LABEL, LABEL_ROOM));
        canvas.group(colour);
        canvas.rectangle("mark", (left, middle - BAR / 2.0), ((right - left).max(1.0), BAR));
        canvas.end();
        if goes_on {
            canvas.line(
                "axis faint-line",
                (axis.at(to), middle + BAR / 2.0),
                (axis.at(to), middle + ROW - BAR / 2.0),
            );
        }
        if let Some((low, high)) = step.whiskers() {
            canvas.line("axis", (axis.at(low), middle), (axis.at(high), middle));
        }
        let class = if step.from.is_none() { "ink title" } else { "ink" };
        canvas.text(class, (WIDTH - SIDE, middle + 4.0), End::Last, SMALL, &told(&step.price, self.unit));
    }
}

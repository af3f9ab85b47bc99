//! The price list: one line a piece, prices alone and on the ladder after each prestate beside each
//! other, single calls below; and whether the rungs add up.

use crate::document::Tone;
use crate::document::page::Page;
use crate::report::model::{Amount, Experiment, Line, PriceList};
use crate::report::text::{decimals, left, number, right, shorten, width, with_interval};
use crate::stats::Estimate;
use crate::units::{Scale, Unit};

const MEDIAN: usize = 6;
const INTERVAL: usize = 9;
/// The longest name of a piece on the ladder.
const NAMES: usize = 12;
/// The name that readers of the table know a mark by.
const BELOW_ZERO: char = '!';
/// Pieces named in the summary.
const DEAREST: usize = 4;

/// All price lists of an experiment.
pub(super) fn prices(page: &mut Page, experiment: &Experiment) {
    for list in &experiment.price_lists {
        launches(page, experiment, list);
        calls(page, experiment, list);
        totals(page, experiment, list);
        lost(page, list);
    }
}

/// A column of prices: its head and how a piece's price is found.
struct Column {
    way: &'static str,
    prestate: usize,
    metric: usize,
    head: String,
    width: usize,
    /// What of it a price with its interval may take; where that is too little, the median stands alone.
    text: usize,
}

/// A price with its interval.
const PRICE: usize = MEDIAN + 1 + INTERVAL;
/// How the sum of a rung and all below it is asked for.
const SUM: &str = "sum";

fn launches(page: &mut Page, experiment: &Experiment, list: &PriceList) {
    let pieces = list.pieces(&["alone", "ladder"]);
    if pieces.is_empty() {
        return;
    }
    page.title(Tone::Strong, &format!("{} of {}: price list of launches", experiment.name, list.label));
    let columns = ["alone", "ladder"].into_iter().flat_map(|way| {
        list.prestates.iter().enumerate().map(move |(prestate, name)| Column {
            way,
            prestate,
            metric: 0,
            head: format!("{way}, {name}"),
            width: PRICE,
            text: PRICE,
        })
    });
    let mut columns: Vec<_> = columns.collect();
    let sums = list.prestates.iter().enumerate().map(|(prestate, name)| {
        let head = format!("sum, {name}");
        Column { way: SUM, prestate, metric: 0, width: width(&head), text: MEDIAN, head }
    });
    let needed = |columns: &[Column]| NAMES + columns.iter().map(|column| column.width + 1).sum::<usize>();
    let with_sums: Vec<_> = sums.collect();
    if needed(&columns) + needed(&with_sums) - NAMES <= page.width {
        columns.extend(with_sums);
    }
    table(page, experiment, list, &pieces, &columns);
    let text = "median of the differences round by round, and its 95 % interval; n, µ and m for ns, µs and ms. alone: a \
                launch with this piece less the same without it. ladder: all pieces up to this one less all before it. \
                spawn is a whole launch with nothing; least what no container here does without (as root nothing: \
                this is what a price of nothing looks like).";
    page.paragraph(Tone::Faint, "", text);
    let first =
        |line: &Line| line.amounts.iter().filter_map(|all| all.first()?.as_ref()).any(|one| one.below_zero);
    if list.lines.iter().any(first) {
        page.paragraph(Tone::Open, "", &format!("{BELOW_ZERO} less than nothing, beyond its interval"));
    }
}

fn calls(page: &mut Page, experiment: &Experiment, list: &PriceList) {
    let pieces = list.pieces(&["call"]);
    if pieces.is_empty() {
        return;
    }
    page.title(Tone::Strong, &format!("{} of {}: price list of single calls", experiment.name, list.label));
    // What undoing takes stands without its interval, to leave room for the names.
    let heads = [("call", "time", PRICE, PRICE), ("undo", "undo", "undo, primed".len(), MEDIAN)];
    let columns = heads.into_iter().flat_map(|(head, name, width, text)| {
        let metric = experiment.metrics.iter().position(|metric| metric.name == name).unwrap_or(0);
        list.prestates.iter().enumerate().map(move |(prestate, before)| Column {
            way: "call",
            prestate,
            metric,
            head: format!("{head}, {before}"),
            width,
            text,
        })
    });
    table(page, experiment, list, &pieces, &columns.collect::<Vec<_>>());
    let text =
        "medians of the system calls by themselves. undo: none where the end of the process undoes it.";
    page.paragraph(Tone::Faint, "", text);
}

fn table(page: &mut Page, experiment: &Experiment, list: &PriceList, pieces: &[&str], columns: &[Column]) {
    let room = page.width.saturating_sub(columns.iter().map(|column| column.width + 1).sum());
    let names = pieces.iter().map(|piece| width(piece)).max().unwrap_or(0).clamp(5, room.max(5));
    let mut head = left("", names);
    for column in columns {
        let room = column.width.saturating_sub(width(&column.head)).min(2);
        head.push_str(&format!(" {}{}", " ".repeat(room), left(&column.head, column.width - room)));
    }
    page.line(&[(Tone::Faint, &head)]);
    for piece in pieces {
        let mut parts = vec![(Tone::Strong, left(piece, names))];
        for column in columns {
            parts.push((Tone::Plain, " ".to_owned()));
            let unit = experiment.metrics.get(column.metric).map_or(Unit::Seconds, |metric| metric.unit);
            parts.push(match column.way {
                SUM => summed(list, piece, column, unit),
                way => priced(list.line(way, piece), column, unit),
            });
        }
        let parts: Vec<_> = parts.iter().map(|(tone, text)| (*tone, text.as_str())).collect();
        page.line(&parts);
    }
}

fn priced(line: Option<&Line>, column: &Column, unit: Unit) -> (Tone, String) {
    let amount = line.and_then(|line| line.amounts.get(column.prestate)?.get(column.metric)?.as_ref());
    match (amount, line.and_then(|line| line.lost.as_ref())) {
        (Some(amount), _) => {
            let tone = match amount {
                Amount { suspect: true, .. } => Tone::Alarm,
                Amount { below_zero: true, .. } => Tone::Open,
                _ => Tone::Plain,
            };
            let mark = if amount.below_zero { BELOW_ZERO.to_string() } else { String::new() };
            (tone, left(&compact(unit, &amount.price, &mark, column.text), column.width))
        }
        (None, Some((class, _))) if column.metric == 0 => (Tone::Alarm, left(class, column.width)),
        (None, _) => (Tone::Faint, left(&right("-", MEDIAN), column.width)),
    }
}

/// A rung with everything below it, medians added up from the bare spawn on.
fn summed(list: &PriceList, piece: &str, column: &Column, unit: Unit) -> (Tone, String) {
    let price = |line: &Line| Some(line.amounts.get(column.prestate)?.first()?.as_ref()?.price.value);
    let below = ["spawn", "least"].map(|piece| list.line("alone", piece).and_then(price));
    let mut ladder = list.lines.iter().filter(|line| line.way == "ladder");
    let position = ladder.position(|line| line.piece == piece);
    let rungs = list.lines.iter().filter(|line| line.way == "ladder");
    let rungs = position.map(|position| rungs.take(position + 1).map(price).collect::<Option<Vec<_>>>());
    match (below, rungs.flatten()) {
        ([Some(spawn), Some(least)], Some(rungs)) => {
            let sum = spawn + least + rungs.iter().sum::<f64>();
            let scale = unit.scale_for(sum);
            let text = format!("{}{}", shown(sum, scale, 2), scale.symbol.trim_end_matches('s'));
            (Tone::Plain, left(&right(&text, MEDIAN), column.width))
        }
        _ => (Tone::Faint, left(&right("-", MEDIAN), column.width)),
    }
}

/// A median and its interval with one unit, in as few columns as can be: `12.3µ 11.0–14.2`. What does not
/// fit has fewer digits, and where there is no room for the interval at all, the median stands alone.
fn compact(unit: Unit, estimate: &Estimate, mark: &str, columns: usize) -> String {
    let median = |scale: Scale| {
        let symbol = scale.symbol.trim_end_matches('s');
        let text = format!("{}{symbol}{mark}", shown(estimate.value, scale, 2));
        " ".repeat(MEDIAN.saturating_sub(width(&text))) + &text
    };
    let Some(interval) = estimate.interval else { return median(unit.scale_for(estimate.value)) };
    let end = interval.farthest_end();
    // Noise around nothing reads best in the unit of the noise.
    let scales = [unit.scale_for(estimate.value.abs().max(end / 4.0)), unit.scale_for(end)];
    let texts = scales.into_iter().flat_map(|scale| {
        [2, 1, 0].map(|decimals| {
            let [low, high] = [interval.low, interval.high].map(|bound| shown(bound, scale, decimals));
            format!("{} {low}–{high}", median(scale))
        })
    });
    let fitting = texts.into_iter().find(|text| width(text) <= columns);
    fitting.unwrap_or_else(|| median(unit.scale_for(estimate.value)))
}

/// Three digits, and no more decimals than these.
fn shown(value: f64, scale: Scale, most: usize) -> String {
    let value = value / scale.divisor;
    number(value, decimals(value).min(most))
}

fn totals(page: &mut Page, experiment: &Experiment, list: &PriceList) {
    let Some(metric) = experiment.metrics.first() else { return };
    for total in &list.totals {
        let told = |estimate: &Estimate| {
            with_interval(metric.unit, estimate.value, estimate.interval.map(|one| (one.low, one.high)))
        };
        let rungs = with_interval(metric.unit, total.rungs, None);
        let whole = match &total.whole {
            Some(whole) => {
                let off = crate::report::text::percent((total.rungs - whole.value) / whole.value);
                format!("; `{}` measured whole: {} (the sum is {off} off)", list.label, told(whole))
            }
            None => String::new(),
        };
        let first = format!("{}: ", total.prestate);
        let last = told(&total.last);
        page.paragraph(
            Tone::Plain,
            &first,
            &format!("the rungs add up to {rungs}; their last launch takes {last}{whole}. Without the probe's own work, all of them."),
        );
    }
}

/// Why pieces have no price.
fn lost(page: &mut Page, list: &PriceList) {
    for line in &list.lines {
        if let Some((class, reason)) = &line.lost {
            let first = format!("{} ({}): {class}: ", line.piece, line.way);
            page.paragraph(Tone::Plain, &shorten(&first, page.width / 2), reason);
        }
    }
}

/// The dearest rungs in a line, for whoever sees only the end of the page.
pub(super) fn in_short(page: &mut Page, experiment: &Experiment) {
    let Some(metric) = experiment.metrics.first() else { return };
    for list in &experiment.price_lists {
        for (index, prestate) in list.prestates.iter().enumerate() {
            let told: Vec<_> = list
                .dearest(index, DEAREST)
                .iter()
                .map(|(piece, price)| format!("{piece} {}", with_interval(metric.unit, *price, None)))
                .collect();
            if !told.is_empty() {
                let first = format!("  dearest pieces of {}, {prestate}  ", list.label);
                page.paragraph(Tone::Plain, &shorten(&first, page.width / 2), &told.join(", "));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Alpha, Sample};

    fn shown_in_column(values: &[f64]) -> String {
        let estimate = Estimate::of_median(&Sample::new(values).unwrap(), Alpha::FIVE_PERCENT);
        compact(Unit::Seconds, &estimate, "", PRICE)
    }

    #[test]
    fn prices_fit_their_column_whatever_their_size() {
        assert_eq!(shown_in_column(&[1.1e-3, 1.2e-3, 1.23e-3, 1.25e-3, 1.25e-3, 1.3e-3]), " 1.24m 1.10–1.30");
        assert_eq!(shown_in_column(&[-40e-6, -3e-6, 0.4e-6, 0.6e-6, 2e-6, 41e-6]), " 0.50µ −40–41");
        assert_eq!(shown_in_column(&[2.16e-2]), " 21.6m");
        for size in [1e-7, 3.21e-6, 9.876e-5, 4.321e-4, 1.234e-3, 2.345e-2, 0.5] {
            let text = shown_in_column(&[-size, size / 2.0, size, size, size * 1.5, size * 20.0]);
            assert!(width(&text) <= PRICE && text.contains('–'), "{text}");
        }
    }

    #[test]
    fn an_interval_that_is_much_wider_than_its_median_is_told_in_its_own_unit() {
        assert_eq!(shown_in_column(&[-1.21e-3, 1e-4, 2e-4, 3e-4, 4e-4, 3.41e-3]), " 0.25m −1.2–3.4");
        let values = Sample::new([1.5e-3, 1.6e-3, 1.7e-3, 1.7e-3, 1.8e-3, 1.9e-3]).unwrap();
        let estimate = Estimate::of_median(&values, Alpha::FIVE_PERCENT);
        assert_eq!(compact(Unit::Seconds, &estimate, "", MEDIAN), " 1.70m");
    }

    #[test]
    fn a_price_below_zero_is_shown_as_it_is() {
        let values = Sample::new([-5e-6, -4e-6, -3e-6, -4e-6, -2e-6, -1e-6]).unwrap();
        let estimate = Estimate::of_median(&values, Alpha::FIVE_PERCENT);
        assert_eq!(compact(Unit::Seconds, &estimate, "!", 17), "−3.50µ! −5.0–−1.0");
    }
}

//! One experiment as Markdown: what each subject takes, which factor it is, and tables of its own; and folded away what
//! lies inside the numbers, prices, effects and comparisons.

use crate::document::markdown::{Column, Page, escaped, own_words, sentence};
use crate::report::model::{Change, Effect, Experiment, Factors, Ladder, Metric, PriceList, Row, Setting};
use crate::report::text::{in_percent, percent, with_interval};
use crate::stats::Estimate;
use crate::units::{Unit, three_digits};
use crate::verdict::Verdict;
use crate::verdict::exhibit::{Exhibit, Item};

pub(super) fn shown(unit: Unit, estimate: &Estimate) -> String {
    escaped(&with_interval(unit, estimate.value, estimate.interval.map(|one| (one.low, one.high))))
}

pub(super) fn experiment(page: &mut Page, experiment: &Experiment) {
    page.paragraph(&format!("### {}", experiment.name));
    page.paragraph(&format!("_{}_", escaped(experiment.question)));
    if !experiment.speaks_for_itself() {
        for setting in &experiment.settings {
            for ladder in &setting.ladders {
                one_ladder(page, experiment, setting, ladder);
            }
            noise(page, experiment, setting);
        }
        legend(page, experiment);
    }
    if let Some(factors) = &experiment.factors {
        factorial(page, experiment, factors);
    }
    for one in &experiment.exhibits {
        page.paragraph(&format!("**{}**", escaped(&one.title)));
        exhibit(page, one);
    }
}

/// What stands behind that, folded away, at the end: where a comment has no room for all, rows of these go first.
pub(super) fn details(page: &mut Page, experiment: &Experiment) {
    let meanings = experiment.metrics.iter().map(|one| format!("`{}`: {}", one.name, own_words(one.meaning)));
    let meanings: Vec<String> = meanings.collect();
    page.folded(&format!("what lies inside the numbers of {}", experiment.name), |page| page.list(meanings));
    for list in &experiment.price_lists {
        page.folded(&escaped(&format!("prices of {}", list.label)), |page| prices(page, experiment, list));
    }
    if let Some(factors) = &experiment.factors {
        page.folded(&format!("all effects in {}", experiment.name), |page| {
            effects(page, experiment, factors)
        });
    }
    if !experiment.speaks_for_itself() {
        page.folded(&format!("all comparisons of {}", experiment.name), |page| comparisons(page, experiment));
    }
}

/// The metrics that are decided upon; of an experiment without any, the first.
fn shown_metrics(experiment: &Experiment) -> Vec<(usize, &Metric)> {
    let all = experiment.metrics.iter().enumerate();
    let decisive: Vec<_> = all.clone().filter(|(_, metric)| metric.decisive).collect();
    if decisive.is_empty() { all.take(1).collect() } else { decisive }
}

fn one_ladder(page: &mut Page, experiment: &Experiment, setting: &Setting, ladder: &Ladder) {
    let named = [setting.text.as_str(), ladder.name, ladder.shared_keys.as_str()];
    let named: Vec<String> = named.into_iter().filter(|text| !text.is_empty()).map(escaped).collect();
    page.paragraph(&format!("**{}**", named.join(", ")));
    let metrics = shown_metrics(experiment);
    let mut columns = vec![Column::text("subject")];
    for (index, metric) in &metrics {
        columns.push(Column::number(format!("`{}`", metric.name)));
        if *index == 0 {
            columns.extend([
                Column::number(format!("× {}", escaped(&ladder.baseline))),
                Column::text("verdict"),
            ]);
        }
    }
    let row = |row: &Row| {
        let mut cells = vec![escaped(&row.short)];
        for (index, metric) in &metrics {
            cells.push(median(row, *index, metric.unit));
            if *index == 0 {
                let change = row.against_baseline.first().and_then(Option::as_ref);
                let ratio = change.and_then(|change| change.ratio);
                let own = if row.is_baseline { "1" } else { "" };
                cells.push(ratio.map_or(own.to_owned(), |ratio| three_digits(ratio.value)));
                cells.push(change.map_or(String::new(), verdict));
            }
        }
        cells
    };
    let rows: Vec<_> = ladder.rows.iter().map(row).collect();
    page.table(&columns, &rows);
}

/// A median with its interval, and whether it must not be believed.
fn median(row: &Row, metric: usize, unit: Unit) -> String {
    match row.values.get(metric).and_then(Option::as_ref) {
        Some(value) if row.is_suspect(metric) => format!("{} suspect", shown(unit, &value.median)),
        Some(value) => shown(unit, &value.median),
        None => "–".to_owned(),
    }
}

/// What twins show about the first metric, by layer.
fn noise(page: &mut Page, experiment: &Experiment, setting: &Setting) {
    let Some(metric) = experiment.metrics.first() else { return };
    let own = setting.noise.iter().filter(|noise| noise.metric == 0);
    let told = own.map(|noise| {
        let moved = if noise.holds_zero { "" } else { " (its twins differ)" };
        format!("{} {}{moved}", noise.layer, with_interval(metric.unit, noise.units, None))
    });
    let told: Vec<String> = told.collect();
    if !told.is_empty() {
        page.paragraph(&escaped(&format!("Noise floor (twins): {}.", told.join(" · "))));
    }
}

/// How the words in the tables came about.
fn legend(page: &mut Page, experiment: &Experiment) {
    let is_compared = experiment.pairs.iter().any(|pair| !pair.changes.is_empty());
    let Some(metric) = experiment.metrics.first().filter(|_| is_compared) else { return };
    let (absolute, relative) = metric.margin;
    page.paragraph(&escaped(&format!(
        "Medians with their 95 % intervals. Verdicts rest on differences round by round. slower, faster: the interval \
         leaves zero and the difference exceeds {} or {}, whichever is larger; same: the whole interval lies within that; \
         undecided: neither; in noise: slower or faster, but by no more than twins differ.",
        with_interval(metric.unit, absolute, None),
        percent(relative)
    )));
}

/// Which factor it is.
fn factorial(page: &mut Page, experiment: &Experiment, factors: &Factors) {
    let name = |metric: usize| experiment.metrics.get(metric).map_or("", |metric| metric.name);
    let setting = |index: usize| experiment.settings.get(index).map_or("", |setting| &setting.values);
    page.paragraph(&format!("**factors: {}**", sentence(&factors.question)));
    let levels: Vec<_> =
        factors.factors.iter().map(|(name, [one, other])| format!("{name} ({one}, {other})")).collect();
    page.paragraph(&escaped(&format!(
        "Every combination of {} in every round, and nothing else differs. An effect is the mean at the second level minus \
         the mean at the first, round by round; an interaction is the difference between two such differences.",
        levels.join(", ")
    )));
    page.list(factors.answers.iter().map(|answer| {
        let values = setting(answer.setting);
        let comma = if values.is_empty() { "" } else { ", " };
        format!("`{}`{comma}{}: {}", name(answer.metric), escaped(values), sentence(&answer.text))
    }));
}

/// Every effect, the largest first.
fn effects(page: &mut Page, experiment: &Experiment, factors: &Factors) {
    let row = |effect: &Effect| {
        let unit = experiment.metrics.get(effect.metric).map_or(Unit::Ratio, |metric| metric.unit);
        vec![
            escaped(&effect.name),
            escaped(experiment.settings.get(effect.setting).map_or("", |setting| &setting.values)),
            format!("`{}`", experiment.metrics.get(effect.metric).map_or("", |metric| metric.name)),
            effect.difference.map_or("–".to_owned(), |difference| shown(unit, &difference)),
            effect.ratio.map_or(String::new(), |ratio| escaped(&in_percent(&ratio))),
            escaped(&decided(effect)),
        ]
    };
    let rows: Vec<_> = factors.effects.iter().map(row).collect();
    page.table(&columns("effect"), &rows);
}

/// What was decided of an effect: the level that is slower, or that factors interact.
fn decided(effect: &Effect) -> String {
    match effect.verdict {
        Verdict::Suspect(index) => format!("suspect {}", index + 1),
        _ => effect.word(),
    }
}

/// Every comparison of decisive metrics, what is decided first by kind of pair.
fn comparisons(page: &mut Page, experiment: &Experiment) {
    let margin = |metric: &Metric| {
        let (absolute, relative) = metric.margin;
        format!("{} or {}", with_interval(metric.unit, absolute, None), percent(relative))
    };
    let margins =
        shown_metrics(experiment).into_iter().map(|(_, one)| format!("`{}` {}", one.name, margin(one)));
    let margins: Vec<String> = margins.collect();
    page.paragraph(&format!(
        "Median of the differences round by round, with its interval. Below {}, the larger, no difference matters.",
        margins.join(", ")
    ));
    let mut rows = Vec::new();
    for pair in experiment.pairs.iter().chain(&experiment.twins) {
        for change in pair.changes.iter().filter(|change| experiment.metrics[change.metric].decisive) {
            rows.push(vec![
                sentence(&pair.phrase),
                escaped(experiment.settings.get(change.setting).map_or("", |setting| &setting.values)),
                format!("`{}`", experiment.metrics[change.metric].name),
                difference(experiment, change),
                change.ratio.map_or(String::new(), |ratio| escaped(&in_percent(&ratio))),
                verdict(change),
            ]);
        }
    }
    page.table(&columns("compared"), &rows);
}

/// What is told of a difference, and of what.
fn columns(of: &'static str) -> [Column; 6] {
    [
        Column::text(of),
        Column::text("setting"),
        Column::text("metric"),
        Column::number("difference"),
        Column::number("ratio"),
        Column::text("verdict"),
    ]
}

fn difference(experiment: &Experiment, change: &Change) -> String {
    let unit = experiment.metrics[change.metric].unit;
    change.difference.map_or("–".to_owned(), |difference| shown(unit, &difference))
}

fn verdict(change: &Change) -> String {
    match &change.verdict {
        Verdict::Suspect(index) => format!("suspect {}", index + 1),
        _ => change.word().to_owned(),
    }
}

fn exhibit(page: &mut Page, one: &Exhibit) {
    let columns = one.columns.iter().map(|column| match column.unit {
        Some(_) => Column::number(escaped(&column.name)),
        None => Column::text(escaped(&column.name)),
    });
    let columns: Vec<Column> = columns.collect();
    let item = |(index, item): (usize, &Item)| {
        let unit = one.columns.get(index).and_then(|column| column.unit).unwrap_or(Unit::Count);
        match item {
            Item::Text(text) => escaped(text),
            Item::Value(value) => escaped(&with_interval(unit, *value, None)),
            Item::Interval(estimate) => shown(unit, estimate),
            Item::Nothing(why) => format!("_{}_", escaped(why)),
        }
    };
    let rows: Vec<_> =
        one.rows.iter().map(|row| row.iter().enumerate().map(item).collect::<Vec<_>>()).collect();
    page.table(&columns, &rows);
    page.list(one.notes.iter().map(|note| sentence(note)));
}

fn prices(page: &mut Page, experiment: &Experiment, list: &PriceList) {
    let Some(metric) = experiment.metrics.first() else { return };
    let mut columns = vec![Column::text("piece"), Column::text("way")];
    columns.extend(list.prestates.iter().map(|prestate| Column::number(escaped(prestate))));
    let rows = list.lines.iter().map(|line| {
        let amounts = line.amounts.iter().map(|amounts| match amounts.first().and_then(Option::as_ref) {
            Some(amount) if amount.suspect => format!("{} suspect", shown(metric.unit, &amount.price)),
            Some(amount) => shown(metric.unit, &amount.price),
            None => "–".to_owned(),
        });
        [escaped(line.piece), escaped(line.way)].into_iter().chain(amounts).collect::<Vec<_>>()
    });
    let rows: Vec<_> = rows.collect();
    page.table(&columns, &rows);
    page.list(list.totals.iter().map(|total| {
        let whole = total.whole.as_ref().map_or(String::new(), |whole| {
            format!("; {} measured whole: {}", list.label, shown(metric.unit, whole))
        });
        let rungs = with_interval(metric.unit, total.rungs, None);
        let last = shown(metric.unit, &total.last);
        escaped(&format!(
            "{}: the rungs add up to {rungs}; their last launch takes {last}{whole}; all of them without the \
             probe's own work",
            total.prestate
        ))
    }));
}

//! The table of paths: what each adds to the same exchange inside one network namespace, how much of that the
//! kernel alone needs, and which way the packets really went.

use super::latency::{NAME, is_of_streams};
use super::{on, path};
use crate::experiment::Setting;
use crate::plan::Layer;
use crate::subject::Path;
use crate::text::{estimated, listed, percent};
use crate::units::Unit;
use crate::verdict::View;
use crate::verdict::price::JUDGED;
use crate::verdict::table::{Column, ExperimentTable, Item};

/// All tables.
pub fn all(view: &View<'_>) -> Vec<ExperimentTable> {
    let plan = view.plan();
    let is_shown = |cell: &usize| plan.entry(*cell).twin_of.is_none();
    let mut cells: Vec<usize> = view.cells_of(NAME).filter(is_shown).collect();
    // By subject; the settings of one keep their order.
    cells.sort_by_key(|cell| plan.cells[*cell].subject);
    let rows: Vec<_> = cells.iter().map(|cell| row(view, *cell)).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let columns = vec![
        Column::of_texts("subject"),
        Column::of_texts("path"),
        Column::of_texts("exchange"),
        Column::of_values("round trip", Unit::Seconds),
        Column::of_values("path adds", Unit::Seconds),
        Column::of_values("kernel's part", Unit::Seconds),
        Column::of_values("connect", Unit::Seconds),
        Column::of_values("helpers' CPU", Unit::Seconds),
        Column::of_texts("translation"),
        Column::of_texts("listener"),
        Column::of_texts("interfaces"),
    ];
    let notes = [
        "medians over rounds of the median full round trip of each; `path adds` is the difference from the same exchange inside \
         one network namespace of the same subject, round by round; all with their 95 % intervals",
        "kernel's part: what the floor's path adds, a bridge and a veth pair without address translation, filters and proxies; for published ports too",
        "translation, listener and interfaces are read back while the packets pass, on the host and at both ends",
    ];
    let summary = summary(view, &cells);
    let title = "round trips by path".to_owned();
    vec![ExperimentTable {
        rows,
        notes: notes.map(str::to_owned).to_vec(),
        summary,
        ..ExperimentTable::new(NAME, "paths", title, columns)
    }]
}

/// What is exchanged, in words.
fn exchange(setting: &Setting) -> String {
    let protocol = setting.get("protocol").unwrap_or_default();
    let receive = setting.get("receive").filter(|receive| *receive != "blocking");
    let size = setting.get("size").unwrap_or("1");
    let unit = if size.ends_with('B') { "" } else { " B" };
    listed([protocol, &format!("{size}{unit}")].into_iter().chain(receive), ", ")
}

fn row(view: &View<'_>, cell: usize) -> Vec<Item> {
    let setting = &view.cell(cell).setting;
    let is_reference = path(setting) == Path::Inside;
    let value = |name: &str, why: &str| {
        let metric = view.metric_index(cell, name);
        let found = metric.and_then(|metric| view.cells[cell].metrics[metric].as_ref());
        found.map_or_else(|| Item::Nothing(why.to_owned()), |one| Item::Interval(one.median))
    };
    let adds = |cell: usize| view.price(cell).map(|price| price.price);
    let priced = |estimate, why: &str| match estimate {
        _ if is_reference => Item::Nothing("the reference".into()),
        Some(estimate) => Item::Interval(estimate),
        None => Item::Nothing(why.to_owned()),
    };
    let fact = |name: &str| {
        let found = view.run.facts(cell, name).flatten().next_back();
        found.map_or_else(|| Item::Nothing("not read".into()), |fact| Item::Text(fact.to_owned()))
    };
    let no_connection = if is_of_streams(setting) { "no data" } else { "not applicable" };
    vec![
        Item::Text(view.label(cell).to_owned()),
        Item::Text(path(setting).name().to_owned()),
        Item::Text(exchange(setting)),
        value("p50", "no data"),
        priced(adds(cell), "no data"),
        priced(kernel(view, cell).and_then(adds), "not measured"),
        value("connect", no_connection),
        value("helper_cpu", "no data"),
        fact("way"),
        fact("listener"),
        fact("interfaces"),
    ]
}

/// The floor's cell on the same path, for layers above it; packets to a published port pass a bridge too.
fn kernel(view: &View<'_>, cell: usize) -> Option<usize> {
    let plan = view.plan();
    let is_floor =
        |subject: &usize| plan.subjects[*subject].layer == Layer::Floor && plan.is_original(*subject);
    let floor = (0..plan.subjects.len()).find(is_floor)?;
    let is_above = plan.entry(cell).layer > Layer::Floor;
    let setting = &plan.cells[cell].setting;
    let own = match path(setting) {
        Path::Published | Path::PublishedHost | Path::Published6 => Path::Bridge,
        other => other,
    };
    is_above.then(|| plan.cell_of(NAME, &on(setting, own), floor))?
}

/// What each subject's paths add to the first exchange that was chosen, and when that does not matter.
fn summary(view: &View<'_>, cells: &[usize]) -> Vec<String> {
    let plan = view.plan();
    let Some(first) = cells.first().map(|cell| exchange(&plan.cells[*cell].setting)) else {
        return Vec::new();
    };
    let own = |cell: &&usize| exchange(&plan.cells[**cell].setting) == first;
    let priced: Vec<(usize, _)> = cells
        .iter()
        .filter(own)
        .filter_map(|&cell| Some((cell, view.price(cell).filter(|price| price.reference.is_some())?)))
        .collect();
    let of_subject = |subject: usize| {
        let own = priced.iter().filter(|(cell, _)| plan.cells[*cell].subject == subject);
        let told = own.map(|(cell, price)| {
            let path = path(&plan.cells[*cell].setting).name();
            let kernel = kernel(view, *cell).and_then(|floor| view.price(floor));
            let kernel = kernel
                .map(|kernel| format!(", of which the kernel {}", estimated(Unit::Seconds, &kernel.price)));
            format!("`{path}` {}{}", estimated(Unit::Seconds, &price.price), kernel.unwrap_or_default())
        });
        let told = listed(told, "; ");
        (!told.is_empty())
            .then(|| format!("{}: added to a round trip ({first}): {told}", plan.subjects[subject].label))
    };
    let mut all: Vec<String> = (0..plan.subjects.len()).filter_map(of_subject).collect();
    let highs = priced.iter().map(|(_, price)| price.price.interval.map(|interval| interval.high));
    let most = highs.collect::<Option<Vec<f64>>>().unwrap_or_default().into_iter().fold(0.0, f64::max);
    let share = cells.first().map_or(0.0, |cell| plan.margin_of(NAME, view.metric(*cell, JUDGED)).parts().1);
    if most > 0.0 && share > 0.0 {
        let (long, share) = (Unit::Seconds.format(most / share), percent(share));
        all.push(format!("these paths add less than {share} to requests that take longer than {long} and wait for one round trip"));
    }
    all
}

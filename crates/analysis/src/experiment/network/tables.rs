//! The table of paths: what each adds to the same exchange inside one network namespace, how much of that the
//! kernel alone needs, and which way the packets really went.

use super::{http, latency, on, path, throughput};
use crate::experiment::Setting;
use crate::launch::names::{INTERFACES, LISTENER, MTU, OFFLOADS, WAY};
use crate::names::Fact;
use crate::plan::Layer;
use crate::stats::Estimate;
use crate::subject::Path;
use crate::text::{estimated, listed, percent};
use crate::units::Unit;
use crate::verdict::price::JUDGED;
use crate::verdict::table::{Answer, Column, ExperimentTable, Item, Screen};
use crate::verdict::{Price, View};

/// What the table of an experiment shows.
struct Shown {
    /// The experiment.
    name: &'static str,
    title: &'static str,
    /// What its first metric is about, as a heading and in a sentence.
    heading: &'static str,
    of: &'static str,
    /// What is exchanged in a setting, in words.
    exchange: fn(&Setting) -> String,
    /// More metrics, with their headings and units.
    more: &'static [(&'static str, &'static str, Unit)],
    /// Facts about the interfaces, next to their names, with their headings.
    links: &'static [(&'static str, Fact)],
    /// When what paths add does not matter: from this share, and the most that a path adds.
    small: fn(&str, f64) -> String,
}

static LATENCY: Shown = Shown {
    name: latency::NAME,
    title: "round trips by path",
    heading: "round trip",
    of: "a round trip",
    exchange: message,
    more: &[("connect", "connect", Unit::Seconds), ("helpers' CPU", "helper_cpu", Unit::Seconds)],
    links: &[],
    small: |share, longer| {
        let longer = Unit::Seconds.format(longer);
        format!(
            "these paths add less than {share} to requests that take longer than {longer} and wait for one round trip"
        )
    },
};

static THROUGHPUT: Shown = Shown {
    name: throughput::NAME,
    title: "a gigabyte by path",
    heading: "GB up",
    of: "a gigabyte to the server",
    exchange: |setting| listed([setting.get("streams").unwrap_or("1"), "at once"], " "),
    more: &[
        ("rate up", "up_rate", Unit::BytesPerSecond),
        ("rate down", "down_rate", Unit::BytesPerSecond),
        ("client's CPU", "client_cpu", Unit::Seconds),
        ("server's CPU", "server_cpu", Unit::Seconds),
        ("helpers' CPU", "helper_cpu", Unit::Seconds),
    ],
    links: &[("MTU", MTU), ("offloads", OFFLOADS)],
    small: |share, longer| {
        let slower = Unit::BytesPerSecond.format(1e9 / longer);
        format!(
            "these paths add less than {share} to transfers that are slower than {slower} for another reason"
        )
    },
};

static HTTP: Shown = Shown {
    name: http::NAME,
    title: "requests by path",
    heading: "request",
    of: "a request",
    exchange: |setting| {
        let clients = setting.get("clients").unwrap_or_default();
        listed(
            [setting
                .get("cmd")
                .map_or_else(|| format!("from {clients}"), |cmd| format!("{cmd}, from {clients}"))],
            "",
        )
    },
    more: &[
        ("rate", "rate", Unit::PerSecond),
        ("p50", "p50", Unit::Seconds),
        ("p99", "p99", Unit::Seconds),
        ("p99.9", "p999", Unit::Seconds),
        ("max", "max", Unit::Seconds),
        ("file", "file", Unit::Seconds),
        ("hashing", "hashing", Unit::Seconds),
        ("client's CPU", "client_cpu", Unit::Seconds),
        ("server's CPU", "server_cpu", Unit::Seconds),
        ("helpers' CPU", "helper_cpu", Unit::Seconds),
        ("failed", "failed", Unit::Count),
    ],
    links: &[],
    small: |share, longer| {
        let longer = Unit::Seconds.format(longer);
        format!(
            "these paths take less than {share} of the throughput of a service that works longer than {longer} for each request"
        )
    },
};

/// The table of requests.
pub fn of_http(view: &View<'_>) -> Vec<ExperimentTable> {
    table(&HTTP, view).into_iter().collect()
}

/// The table of round trips.
pub fn of_latency(view: &View<'_>) -> Vec<ExperimentTable> {
    table(&LATENCY, view).into_iter().collect()
}

/// The table of bulk transfer.
pub fn of_throughput(view: &View<'_>) -> Vec<ExperimentTable> {
    table(&THROUGHPUT, view).into_iter().collect()
}

fn table(shown: &Shown, view: &View<'_>) -> Option<ExperimentTable> {
    let plan = view.plan();
    let is_shown = |cell: &usize| plan.entry(*cell).twin_of.is_none();
    let mut cells: Vec<usize> = view.cells_of(shown.name).filter(is_shown).collect();
    // By subject; the settings of one keep their order.
    cells.sort_by_key(|cell| plan.cells[*cell].subject);
    let rows: Vec<_> = cells.iter().map(|cell| row(shown, view, *cell)).collect();
    if rows.is_empty() {
        return None;
    }
    let first = [shown.heading, "path adds", "kernel's part", MATTERS].map(|name| (name, Unit::Seconds));
    let values = first.into_iter().chain(shown.more.iter().map(|(heading, _, unit)| (*heading, *unit)));
    let mut columns = ["subject", "path", "exchange"].map(Column::of_texts).to_vec();
    columns.extend(values.map(|(name, unit)| Column::of_values(name, unit)));
    columns.extend(["translation", "listener", "interfaces"].map(Column::of_texts));
    columns.extend(shown.links.iter().map(|(heading, _)| Column::of_texts(heading)));
    let mut notes = vec![
        "path adds: more than the same exchange inside one network namespace",
        "medians over rounds; what a path adds is the difference from the same exchange inside one network namespace of the same subject, round by round; all with their 95 % intervals; it matters below: where the work of each exchange takes no longer than that",
        "kernel's part: what the floor's path adds, a bridge and a veth pair without address translation, filters and proxies; for published ports too",
        "translation, listener and interfaces are read back while the packets pass, on the host and at both ends",
    ];
    if shown.more.iter().any(|(_, metric, _)| *metric == "p999") {
        notes.push("p99, p99.9 and max: of the requests of all rounds together; p99 and p99.9 with an interval from 200 rounds on");
    }
    if !shown.links.is_empty() {
        notes.push(
            "MTU and offloads are those of the interfaces, by their names for `ethtool`: checksums received (`rx`) and sent \
             (`tx`), segmentation (`tso`, `gso`) and `gro`",
        );
    }
    let answers = answers(shown, view, &cells);
    // The first exchange alone, and without the reference, to which a path adds nothing.
    let first = rows.first().map(|row| row[EXCHANGE].clone());
    let is_answer = |(_, row): &(usize, &Vec<Item>)| {
        Some(&row[EXCHANGE]) == first.as_ref() && matches!(row[ADDS], Item::Interval(_))
    };
    let answer: Vec<usize> = rows.iter().enumerate().filter(is_answer).map(|(at, _)| at).collect();
    let has_kernel = answer.iter().any(|at| matches!(rows[*at][KERNEL], Item::Interval(_)));
    let columns_of_it = if has_kernel { WITH_KERNEL } else { ANSWER };
    let screen = match answer.is_empty() {
        true => Screen::No,
        false => Screen::Part { columns: columns_of_it.to_vec(), rows: answer },
    };
    Some(ExperimentTable {
        screen,
        rows,
        notes: notes.into_iter().map(str::to_owned).collect(),
        answers,
        ..ExperimentTable::new(shown.name, "paths", shown.title.to_owned(), columns)
    })
}

/// How long the exchanged work takes below which the path matters.
const MATTERS: &str = "matters below";
/// The columns of the exchange, of what a path adds, and of the kernel's part of it.
const EXCHANGE: usize = 2;
const ADDS: usize = 4;
const KERNEL: usize = 5;
/// The columns of the answer: subject, path, the whole or the kernel's part, what is added, and when that matters.
const ANSWER: [usize; 5] = [0, 1, 3, ADDS, 6];
const WITH_KERNEL: [usize; 5] = [0, 1, ADDS, KERNEL, 6];

/// A message, in words.
fn message(setting: &Setting) -> String {
    let protocol = setting.get("protocol").unwrap_or_default();
    let receive = setting.get("receive").filter(|receive| *receive != "blocking");
    let size = setting.get("size").unwrap_or("1");
    let unit = if size.ends_with('B') { "" } else { " B" };
    listed([protocol, &format!("{size}{unit}")].into_iter().chain(receive), ", ")
}

fn row(shown: &Shown, view: &View<'_>, cell: usize) -> Vec<Item> {
    let setting = &view.cell(cell).setting;
    let is_reference = path(setting) == Path::Inside;
    let value = |metric: usize| {
        let found = view.cells[cell].metrics[metric].as_ref();
        found.map_or_else(|| Item::Nothing("no data".into()), |one| Item::Interval(one.median))
    };
    let adds = |cell: usize| view.price(cell).map(|price| price.price);
    let priced = |estimate, why: &str| match estimate {
        _ if is_reference => Item::Nothing("the reference".into()),
        Some(estimate) => Item::Interval(estimate),
        None => Item::Nothing(why.to_owned()),
    };
    let fact = |name: Fact| {
        let found = view.run.facts(cell, name).flatten().next_back();
        found.map_or_else(|| Item::Nothing("not read".into()), |fact| Item::Text(fact.to_owned()))
    };
    let mut row = vec![
        Item::Text(view.label(cell).to_owned()),
        Item::Text(path(setting).name().to_owned()),
        Item::Text((shown.exchange)(setting)),
        value(JUDGED),
        priced(adds(cell), "no data"),
        match view.plan().entry(cell).layer {
            Layer::Floor if !is_reference => Item::Nothing("all".to_owned()),
            _ => priced(kernel(view, cell).and_then(adds), "not measured"),
        },
        match adds(cell).filter(|_| !is_reference).and_then(|adds| matters_below(view, cell, &adds)) {
            Some(longest) => Item::Value(longest),
            None => Item::Nothing("not known".into()),
        },
    ];
    row.extend(shown.more.iter().filter_map(|(_, name, _)| view.metric_index(cell, name)).map(value));
    row.extend([WAY, LISTENER, INTERFACES].map(fact));
    row.extend(shown.links.iter().map(|(_, name)| match fact(*name) {
        Item::Text(told) => Item::Text(alike(&told).unwrap_or(told)),
        other => other,
    }));
    row
}

/// The value of interfaces that all have the same.
fn alike(told: &str) -> Option<String> {
    let mut values = told.split(',').map(|one| one.split_once(' ').map(|(_, value)| value));
    let first = values.next()??;
    values.all(|value| value == Some(first)).then(|| first.to_owned())
}

/// With work that takes longer than this, what a path adds is less than the share that matters.
fn matters_below(view: &View<'_>, cell: usize, adds: &Estimate) -> Option<f64> {
    let share = view.plan().margin_of(view.cell(cell).experiment, view.metric(cell, JUDGED)).parts().1;
    let most = adds.interval?.high;
    (share > 0.0 && most > 0.0 && most.is_finite()).then_some(most / share)
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
    is_above.then(|| plan.cell_of(view.cell(cell).experiment, &on(setting, own), floor))?
}

/// What each subject's paths add to the first exchange that was chosen, and when that does not matter.
fn answers(shown: &Shown, view: &View<'_>, cells: &[usize]) -> Vec<Answer> {
    let plan = view.plan();
    let Some(first) = cells.first().map(|cell| (shown.exchange)(&plan.cells[*cell].setting)) else {
        return Vec::new();
    };
    let own = |cell: &&usize| (shown.exchange)(&plan.cells[**cell].setting) == first;
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
            // An interval that holds zero shows nothing added.
            let is_open = price.price.interval.is_some_and(|ends| ends.contains(0.0));
            let open = if is_open { " (0 is possible)" } else { "" };
            format!("`{path}` {}{open}{}", estimated(Unit::Seconds, &price.price), kernel.unwrap_or_default())
        });
        let told = listed(told, "; ");
        (!told.is_empty())
            .then(|| format!("{}: added to {} ({first}): {told}", plan.subjects[subject].label, shown.of))
    };
    let mut all = Answer::all("what does a path add?", (0..plan.subjects.len()).filter_map(of_subject));
    let of_work = priced.iter().flat_map(|(cell, price)| beside_work(view, *cell, price.price.value));
    all.extend(Answer::all("how much of a request?", of_work));
    let high = |price: &Price| price.price.interval.map(|interval| interval.high);
    let highs = priced.iter().map(|(_, price)| high(price).filter(|high| high.is_finite()));
    let most = highs.collect::<Option<Vec<f64>>>().unwrap_or_default().into_iter().fold(0.0, f64::max);
    let share =
        cells.first().map_or(0.0, |cell| plan.margin_of(shown.name, view.metric(*cell, JUDGED)).parts().1);
    if most > 0.0 && share > 0.0 {
        all.extend(Answer::all("does it matter?", [(shown.small)(&percent(share), most / share)]));
    }
    all
}

/// What share of requests that do something is the path's, where there are such.
fn beside_work(view: &View<'_>, cell: usize, adds: f64) -> Option<String> {
    let value = |name: &str| {
        let metric = view.metric_index(cell, name)?;
        view.cells[cell].metrics[metric].as_ref().map(|one| one.median.value)
    };
    let (request, file, hashing) = (value("request")?, value("file")?, value("hashing")?);
    let share = |more: f64| percent(adds.max(0.0) / (request + more));
    let setting = &view.cell(cell).setting;
    let size = setting.get("file").unwrap_or("64KiB");
    Some(format!(
        "{}, `{}`: {} of an empty request is the path's, {} of one that writes and reads a file of {size}, {} of one that \
         computes 100,000 hashes",
        view.label(cell),
        path(setting).name(),
        share(0.0),
        share(file),
        share(hashing),
    ))
}

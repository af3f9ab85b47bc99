//! What a CPU quota did to a load, compared with the model: one row per cell, a second table for the work
//! that was done, and a third for the latency of bursts. Only complete rounds are shown.
//!
//! The reference is the model, with the periods of the quota and the bursts of all windows; for bursts it is also the same
//! subject without a quota. Deliberately absent: any word that calls waiting a loss. Others could use what a throttled
//! process could not.

use super::enough::against_none;
use super::rows::{Row, control, quota_in_words, rows};
use super::window::{FEWEST_FOR_A_SLOPE, Measured, seconds};
use super::{cause, enough};
use crate::stats::quota::{Backlog, Health, Load};
use crate::stats::{Alpha, Estimate};
use crate::units::Unit;
use crate::verdict::table::{Answer, Column, ExperimentTable, Item, Screen, notes};
use crate::verdict::{Finding, View};

/// The names of the tables.
pub const TABLES: [&str; 4] = ["limits", "quota", "work", "bursts"];
/// Shares of throttled periods at which published rules raise an alarm; the second is that of
/// `CPUThrottlingHigh` for Kubernetes.
pub const PUBLISHED_ALARMS: [f64; 2] = [0.10, 0.25];

/// The tables of a run; none if nothing was measured.
pub fn experiment_tables(view: &View<'_>) -> Vec<ExperimentTable> {
    let rows = rows(view);
    if rows.is_empty() {
        return Vec::new();
    }
    let table = |name, title: &str, columns: &[Column], rows: Vec<Vec<Item>>, notes: Vec<String>| {
        let columns = [&["subject", "load and limit"].map(Column::of_texts), columns].concat();
        ExperimentTable { rows, notes, ..ExperimentTable::new(super::NAME, name, title.to_owned(), columns) }
    };
    let of_quotas = [
        Column::of_values("mean usage", Unit::Share),
        Column::of_values("ideal", Unit::Share),
        Column::of_values("throttled periods", Unit::Share),
        Column::of_values("ideal", Unit::Share),
        Column::of_values("waiting in each", Unit::Seconds),
        Column::of_values("ideal", Unit::Seconds),
        Column::of_texts("who waits"),
    ];
    let of_work = [
        Column::of_values("work per second", Unit::PerSecond),
        Column::of_values("of the control", Unit::Share),
        Column::of_texts("throttled periods"),
        Column::of_values("throttled time", Unit::Seconds),
        Column::of_values("system time", Unit::Seconds),
    ];
    let of_limits = [
        Column::of_values("work", Unit::Share),
        Column::of_values("median", Unit::Seconds),
        Column::of_values("longest", Unit::Seconds),
        Column::of_texts("who waits"),
        Column::of_texts("than without"),
    ];
    let notes_on_limits = notes([
        "median, longest: of bursts; `!`, `!!`: published alarms go off (10 %, 25 %)",
        "work: what is done, as a share of what is done without a limit; who waits: the slowest or the typical requests",
    ]);
    let notes_on_work = notes([
        "work: iterations of a loop of one multiplication and one addition. The control is the same load without a \
         quota, or else with the largest quota above the load",
    ]);
    let title = "what a CPU quota does to a load, compared with the model";
    let title_of_work = "what the quota does to the work done, and what the kernel counted";
    let rows_of_limits = rows.iter().map(|row| limit_of(view, &rows, row)).collect();
    let rows_of_work = rows.iter().map(|row| work_of(&rows, row)).collect();
    let enough = Answer::all("which limit is enough?", enough::told_of(view, &rows));
    let mut tables = vec![
        ExperimentTable {
            screen: Screen::All,
            ..table(TABLES[0], "what each limit does", &of_limits, rows_of_limits, notes_on_limits)
        },
        ExperimentTable {
            answers: [enough, cause::told_of(&rows)].concat(),
            ..table(TABLES[1], title, &of_quotas, rows.iter().map(items_of).collect(), notes_on_quotas(&rows))
        },
        table(TABLES[2], title_of_work, &of_work, rows_of_work, notes_on_work),
    ];
    let bursts: Vec<&Row> = rows.iter().filter(|row| row.measured.demand.load != Load::Continuous).collect();
    if !bursts.is_empty() {
        let of_bursts = [
            Column::of_values("median latency", Unit::Seconds),
            Column::of_values("ideal median", Unit::Seconds),
            Column::of_values("90th percentile", Unit::Seconds),
            Column::of_values("longest", Unit::Seconds),
            Column::of_values("extra wait per burst", Unit::Seconds),
            Column::of_values("ideal", Unit::Seconds),
            Column::of_values("left over", Unit::Count),
            Column::of_values("longer than without", Unit::Seconds),
            Column::of_texts("verdict"),
        ];
        let title = "what the quota does to the latency of bursts";
        let rows_of_bursts = bursts.iter().map(|row| latencies_of(view, row)).collect();
        tables.push(table(TABLES[3], title, &of_bursts, rows_of_bursts, notes_on_bursts(&bursts)));
    }
    tables
}

fn shown(row: &Row) -> [Item; 2] {
    let load = format!("{} {}", row.name[1], quota_in_words(row.measured.quota));
    [row.name[0].clone(), load].map(Item::Text)
}

/// A limit in a row: the work, the bursts, who waits, and how it compares with none.
fn limit_of(view: &View<'_>, rows: &[Row], row: &Row) -> Vec<Item> {
    let measured = &row.measured;
    let share = control(rows, row).and_then(|control| measured.work_share(control));
    let is_bursty = measured.demand.load != Load::Continuous;
    let latency = |share| Item::value(measured.latency(share).filter(|_| is_bursty), "–");
    let compared = against_none(view, row).map(|found| {
        match found.difference.filter(|_| found.kind().is_difference()) {
            Some(one) => format!("{} {}", Unit::Seconds.format(one.value.abs()), found.word()),
            None => found.word().to_owned(),
        }
    });
    let values = vec![
        Item::value(share, "–"),
        latency(0.5),
        latency(1.0),
        Item::text(measured.throttled_share().map(|_| band_in_words(measured)), "–"),
        Item::text(compared, "–"),
    ];
    shown(row).into_iter().chain(values).collect()
}

fn items_of(row: &Row) -> Vec<Item> {
    let measured = &row.measured;
    let has_model = measured.quota.is_some() && !measured.demand.is_at(measured.quota);
    let values = vec![
        Item::Value(measured.usage_share().unwrap_or(measured.own_share())),
        Item::Value(measured.ideal_share()),
        Item::value(measured.throttled_share(), if measured.quota.is_some() { "none counted" } else { "-" }),
        Item::value(measured.ideal_throttled_share(), if has_model { "none counted" } else { "-" }),
        Item::value(measured.throttled_per_period(), if measured.quota.is_some() { "none" } else { "-" }),
        Item::value(measured.ideal_per_period(), if has_model { "none" } else { "-" }),
        Item::Text(band_in_words(measured)),
    ];
    shown(row).into_iter().chain(values).collect()
}

fn work_of(rows: &[Row], row: &Row) -> Vec<Item> {
    let measured = &row.measured;
    let share = control(rows, row).and_then(|control| measured.work_share(control));
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    let counted = measured.throttling.map(|[periods, throttled, _]| format!("{throttled} of {periods}"));
    let values = vec![
        Item::value((measured.turns > 0).then(|| measured.work_rate()), "not counted"),
        Item::value(share, "no control"),
        Item::text(counted, "-"),
        Item::value(measured.throttling.map(|[.., time]| seconds(time)), "-"),
        Item::Value(seconds(measured.own[1])),
    ];
    shown(row).into_iter().chain(values).collect()
}

fn latencies_of(view: &View<'_>, row: &Row) -> Vec<Item> {
    let compared = against_none(view, row);
    let measured = &row.measured;
    let median = seconds(&measured.bursts()).map(|all| Estimate::of_median(&all, Alpha::FIVE_PERCENT));
    let at_the_edge = measured.ideal.backlog == Backlog::AtTheEdge || measured.demand.is_at(measured.quota);
    let edge = if at_the_edge { "at the edge" } else { "-" };
    let values = vec![
        Item::interval(median, "-"),
        Item::value(measured.ideal_latency(0.5), edge),
        Item::value(measured.tail(), "-"),
        Item::value(measured.latency(1.0), "-"),
        Item::value(measured.growth(), "-"),
        Item::value(measured.ideal_growth(), "-"),
        Item::Value(measured.waiting as f64),
        Item::interval(compared.and_then(|found| found.difference), "-"),
        Item::text(compared.map(Finding::word), "-"),
    ];
    shown(row).into_iter().chain(values).collect()
}

/// What the share of throttled periods means for latency, and how many published alarms it raises; neither
/// if things outside the model decide.
pub fn band_in_words(measured: &Measured) -> String {
    let Some(share) = measured.throttled_share() else { return "not applicable".into() };
    if measured.demand.is_at(measured.quota) {
        return "at the edge".into();
    }
    let word = match Health::of_share(share) {
        Health::Clear if measured.is_starved() => "unknown",
        Health::Clear => "no one",
        Health::TailWaits => "slowest",
        Health::TypicalWaits => "typical",
    };
    let alarms = PUBLISHED_ALARMS.iter().filter(|alarm| share >= **alarm).count();
    format!("{word}{}", ["", " !", " !!"][alarms])
}

fn notes_on_quotas(rows: &[Row]) -> Vec<String> {
    let any = |of: fn(&Measured) -> bool| rows.iter().any(|row| of(&row.measured));
    let mut notes = vec![
        format!("ideal: the kernel's rule without the kernel's own work and without other load; {}", windows(rows)),
        "throttled time is counted on each CPU's queue. It is waiting, and others can use the CPU meanwhile"
            .to_owned(),
        "who waits: below 1 % of throttled periods no one notices; from 1 to 50 % the slowest requests wait for the \
         next period; above 50 % the typical request does. `!` and `!!`: published rules raise an alarm from 10 % and \
         from 25 %"
            .to_owned(),
    ];
    if any(|measured| measured.quota.is_none()) {
        notes.push(
            "without a quota there are no periods: a share of throttled ones does not apply, and is not 0 %"
                .into(),
        );
    }
    if any(|measured| measured.usage.is_none()) {
        notes.push("if a process shares its cgroup with others, usage is by its own account".into());
    }
    if any(|measured| measured.demand.is_at(measured.quota)) {
        notes.push(
            "at the edge: demand and quota are within 1 % of each other, so things outside the model decide, and no alarm \
             is marked"
                .into(),
        );
    }
    match rows.iter().filter(|row| row.measured.is_starved()).count() {
        0 => {}
        count => notes.push(format!(
            "in {count} of {} cells, less CPU time was used than the model says without more throttling: other load \
             had the CPUs. If nothing was throttled then, who would wait is unknown",
            rows.len()
        )),
    }
    notes
}

/// The length of the windows, asked for and real.
fn windows(rows: &[Row]) -> String {
    let shown = |nanos: u64| Unit::Seconds.format(nanos as f64 / 1e9);
    let all = |of: fn(&Measured) -> u64| rows.iter().map(move |row| of(&row.measured));
    let ends = |of| all(of).min().zip(all(of).max()).unwrap_or_default();
    let (asked, most_asked) = ends(|measured| measured.length);
    let (least, most) =
        ends(|measured| (measured.window / measured.windows()).saturating_sub(measured.length));
    let length = if asked == most_asked { shown(asked) } else { "the length asked for".into() };
    let all = match ends(Measured::windows) {
        (_, 1) => "windows were".to_owned(),
        (few, many) if few == many => format!("each row has all of its {many} windows, which were"),
        _ => "each row has all of its windows, which were".to_owned(),
    };
    format!("over {length}; {all} longer by {} to {}", shown(least), shown(most))
}

fn notes_on_bursts(rows: &[&Row]) -> Vec<String> {
    let mut notes = notes([
        "latency: from intended start to end of the finished bursts; for an alternating load, from the real start. \
         Left over: bursts that were due but not finished at the end",
        "longer than without: the median of a window, less that of the same subject without a quota, round by round; where \
         bursts pile up, it grows with the length of the window",
    ]);
    if rows.iter().any(|row| row.measured.ideal_growth().is_some()) {
        notes.push(format!(
            "extra wait per burst: the slope of a line through the latencies of the window, for {FEWEST_FOR_A_SLOPE} \
             bursts or more of one thread, if the quota is less than they need. Median and longest then only show how \
             long the window was"
        ));
    }
    notes
}

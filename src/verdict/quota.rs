//! What a CPU quota did to a load, beside what the model says it does to that load: one row a cell, and the
//! cells in which the quota is above the load as the control.
//!
//! A row is not compared with another subject: the reference is the model, and the replicates are the
//! periods of the quota and the bursts. Deliberately absent: any word for waiting that would call it lost. What
//! a throttled process could not use, others could.

mod suspects;

use super::exhibit::{Column, Evidence, Exhibit, Item};
use crate::outcome::Sample;
use crate::stats::quota::{self, Backlog, Demand, Health, Ideal, Load, Quota};
use crate::stats::{self, Alpha, Estimate};
use crate::units::Unit;
pub(super) use suspects::suspects;

/// The experiment whose samples these are.
pub const EXPERIMENT: &str = "throttle";
/// The name of the table.
pub const EXHIBIT: &str = "quota";
/// Shares of throttled periods at which published rules raise an alarm; the second is that of
/// `CPUThrottlingHigh` for Kubernetes.
pub const PUBLISHED_ALARMS: [f64; 2] = [0.10, 0.25];
/// A sample of the probe's work `throttle`, understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// From one end of the window to the other, in nanoseconds.
    pub window: u64,
    /// CPU time by the cgroup; none where its counters are not the process's own.
    pub usage: Option<u64>,
    /// CPU time by the process's own account, in user mode and in the kernel.
    pub own: [u64; 2],
    /// The quota in force, if any.
    pub quota: Option<Quota>,
    /// What was asked of the CPUs.
    pub demand: Demand,
    /// Periods, throttled periods and throttled time in nanoseconds; none without a quota.
    pub throttling: Option<[u64; 3]>,
    /// Of each burst that was done, in nanoseconds.
    pub latencies: Vec<u64>,
    /// Bursts that were due and not done.
    pub waiting: u64,
    /// CPU time in each period, in nanoseconds.
    pub period_cpu: Vec<u64>,
    /// What the model says of the window that was asked for.
    pub ideal: Ideal,
    /// That window.
    pub length: u64,
}

impl Measured {
    /// None where the sample is not one of this work.
    pub fn of(sample: &Sample) -> Option<Measured> {
        let number = |name: &str| sample.counter(name).and_then(|value| u64::try_from(value).ok());
        let numbers = |name: &str| -> Vec<u64> {
            let all = sample.series(name).unwrap_or_default();
            all.iter().filter_map(|value| u64::try_from(*value).ok()).collect()
        };
        let (busy, every) = (number("busy")?, number("every")?);
        let load = match number("load")? {
            0 => Load::Continuous,
            1 => Load::Bursts { work: busy, every },
            _ => Load::Alternating { busy, idle: every.saturating_sub(busy) },
        };
        let demand = Demand { load, threads: number("threads")?, cpus: number("cpus")? };
        let quota = number("quota").and_then(|each| {
            Some(Quota { each, period: number("quota_period")?, burst: number("quota_burst").unwrap_or(0) })
        });
        let throttling = || Some([number("periods")?, number("throttled")?, number("throttled_time")?]);
        let length = number("length")?;
        Some(Measured {
            window: number("window").filter(|window| *window > 0)?,
            usage: number("usage"),
            own: [number("user")?, number("system")?],
            quota,
            demand,
            throttling: quota.and_then(|_| throttling()),
            latencies: numbers("latency"),
            waiting: number("bursts_waiting").unwrap_or(0),
            period_cpu: numbers("period_cpu"),
            ideal: quota::ideal(quota, demand, length),
            length,
        })
    }

    /// CPUs used on average in the window, by the cgroup.
    pub fn usage_share(&self) -> Option<f64> {
        Some(self.usage? as f64 / self.window as f64)
    }

    /// The same by the process's own account.
    pub fn own_share(&self) -> f64 {
        (self.own[0] + self.own[1]) as f64 / self.window as f64
    }

    /// What the model says.
    pub fn ideal_share(&self) -> f64 {
        self.ideal.usage as f64 / self.length as f64
    }

    /// Throttled periods as a share of all; none without a quota, or where no period was counted.
    pub fn throttled_share(&self) -> Option<f64> {
        let [periods, throttled, _] = self.throttling?;
        (periods > 0).then(|| throttled as f64 / periods as f64)
    }

    /// Waiting in each throttled period, in seconds.
    pub fn throttled_per_period(&self) -> Option<f64> {
        let [_, throttled, time] = self.throttling?;
        (throttled > 0).then(|| time as f64 / 1e9 / throttled as f64)
    }

    /// A quantile of the latency of bursts, in seconds.
    pub fn latency(&self, p: f64) -> Option<f64> {
        Some(seconds(&self.latencies)?.quantile(p))
    }

    /// What the model says of the share of throttled periods; nothing where the demand is at the quota.
    pub fn ideal_throttled_share(&self) -> Option<f64> {
        self.ideal.throttled_share().filter(|_| !self.demand.is_at(self.quota))
    }

    /// What it says of the waiting in each.
    pub fn ideal_per_period(&self) -> Option<f64> {
        self.ideal.throttled_per_period().filter(|_| !self.demand.is_at(self.quota))
    }

    /// What it says of the latency of bursts.
    pub fn ideal_latency(&self, p: f64) -> Option<f64> {
        Some(seconds(&self.ideal.latencies)?.quantile(p)).filter(|_| !self.demand.is_at(self.quota))
    }

    /// Whether the load cannot meet its quota: what would be throttled here was not throttled by the quota.
    pub fn is_control(&self) -> bool {
        let Some(quota) = self.quota else { return true };
        let given = quota.each as f64 / quota.period as f64;
        self.ideal.throttled == 0 && self.demand.cpus_wanted() < given * (1.0 - quota::TOLERANCE)
    }
}

fn seconds(nanos: &[u64]) -> Option<stats::Sample> {
    stats::Sample::new(nanos.iter().map(|nanos| *nanos as f64 / 1e9).collect::<Vec<_>>()).ok()
}

/// A cell with its first sample that counts, and what tells it from the others.
struct Row {
    /// The subject as it was asked for, and the load.
    name: [String; 2],
    measured: Measured,
}

/// By subject and load, the largest quota first.
fn rows(evidence: &Evidence<'_>) -> Vec<Row> {
    let plan = &evidence.run.plan;
    let cells = plan.cells.iter().enumerate().filter(|(_, planned)| planned.experiment == EXPERIMENT);
    let several = |key: &str| {
        let mut values: Vec<_> = cells.clone().filter_map(|(_, planned)| planned.setting.get(key)).collect();
        values.sort_unstable();
        values.dedup();
        values.len() > 1
    };
    let row = |(cell, planned): (usize, &crate::plan::Cell)| {
        let sample = evidence.run.series[cell].samples.iter().flatten().next()?;
        let entry = &plan.subjects[planned.subject];
        // What its quota is stands beside it; so those that differ in nothing else stand together.
        let mut spec = entry.spec.clone();
        spec.keys.retain(|(key, _)| key != "cpus" && key != "burst");
        let subject = entry.variant_of.clone().unwrap_or_else(|| match (entry.twin_of, &spec.label) {
            (None, None) => spec.shown(),
            _ => entry.label.clone(),
        });
        let load = |(key, value): &(&str, &str)| match *key {
            "load" => Some((*value).to_owned()),
            key => several(key).then(|| format!("{key}={value}")),
        };
        let load: Vec<_> = planned.setting.0.iter().filter_map(load).collect();
        Some((planned.subject, Row { name: [subject, load.join(" ")], measured: Measured::of(sample)? }))
    };
    let mut rows: Vec<_> = cells.clone().filter_map(row).collect();
    let first: Vec<_> = rows.iter().map(|(subject, row)| (row.name[0].clone(), *subject)).collect();
    let first = |label: &str| first.iter().filter(|(own, _)| own == label).map(|(_, subject)| *subject).min();
    rows.sort_by_key(|(_, Row { name: [label, load], measured })| {
        let each = measured.quota.map_or(0, |quota| u64::MAX - quota.each);
        (first(label), load.clone(), each)
    });
    rows.into_iter().map(|(_, row)| row).collect()
}

/// The table of a run; none where nothing was measured.
pub fn exhibits(evidence: &Evidence<'_>) -> Vec<Exhibit> {
    let rows = rows(evidence);
    if rows.is_empty() {
        return Vec::new();
    }
    let mut columns = vec![Column::of_texts("subject, load, quota")];
    for (name, unit) in [
        ("usage", Unit::Share),
        ("ideal usage", Unit::Share),
        ("usage per period", Unit::Share),
        ("throttled periods", Unit::Share),
        ("ideal throttled", Unit::Share),
        ("waiting in each", Unit::Seconds),
        ("ideal waiting", Unit::Seconds),
        ("burst p50", Unit::Seconds),
        ("burst p99", Unit::Seconds),
        ("ideal p99", Unit::Seconds),
    ] {
        columns.push(Column::of_values(name, unit));
    }
    columns.extend(["latency", "bursts"].map(Column::of_texts));
    vec![Exhibit {
        experiment: EXPERIMENT,
        name: EXHIBIT,
        title: "what a CPU quota does to a load, beside what the model says it does".into(),
        columns,
        rows: rows.iter().map(items_of).collect(),
        notes: notes(&rows),
        summary: controls(&rows),
    }]
}

fn items_of(row: &Row) -> Vec<Item> {
    let measured = &row.measured;
    let lacks = |why: &str| Item::Nothing(why.to_owned());
    let value = |value: Option<f64>, why: &str| value.map_or_else(|| lacks(why), Item::Value);
    let (share, none) = match measured.quota {
        None => ("not applicable", "-"),
        Some(_) if measured.demand.is_at(measured.quota) => ("at the edge", "at the edge"),
        Some(_) => ("none counted", "none"),
    };
    let period = measured.quota.map_or(quota::USUAL_PERIOD, |quota| quota.period) as f64;
    let shares: Vec<f64> = measured.period_cpu.iter().map(|used| *used as f64 / period).collect();
    let middle = |sample: Option<stats::Sample>, why: &str| {
        let of = |sample| Item::Interval(Estimate::of_median(&sample, Alpha::FIVE_PERCENT));
        sample.map_or_else(|| lacks(why), of)
    };
    vec![
        Item::Text(format!("{} {} {}", row.name[0], row.name[1], quota_in_words(measured.quota))),
        Item::Value(measured.usage_share().unwrap_or(measured.own_share())),
        Item::Value(measured.ideal_share()),
        middle(stats::Sample::new(shares).ok(), "-"),
        value(measured.throttled_share(), share),
        value(measured.ideal_throttled_share(), share),
        value(measured.throttled_per_period(), if measured.quota.is_some() { "none" } else { "-" }),
        value(measured.ideal_per_period(), none),
        middle(seconds(&measured.latencies), "-"),
        value(measured.latency(0.99), "-"),
        value(measured.ideal_latency(0.99), if none == "none" { "-" } else { none }),
        Item::Text(band_in_words(measured)),
        Item::Text(backlog_in_words(measured)),
    ]
}

/// `0.5 CPUs`, or `no quota`.
fn quota_in_words(quota: Option<Quota>) -> String {
    let Some(quota) = quota else { return "no quota".into() };
    let share = format!("{:.3}", quota.each as f64 / quota.period as f64);
    let share = share.trim_end_matches('0').trim_end_matches('.');
    let noun = if share == "1" { "CPU" } else { "CPUs" };
    match quota.burst {
        0 => format!("{share} {noun}"),
        burst => format!("{share} {noun} and bursts of {}", Unit::Seconds.format(burst as f64 / 1e9)),
    }
}

/// What the share of throttled periods means for latency, and how many published alarms it raises.
fn band_in_words(measured: &Measured) -> String {
    let Some(share) = measured.throttled_share() else { return "not applicable".into() };
    let word = match Health::of_share(share) {
        Health::Clear => "no effect",
        Health::TailWaits => "the tail waits",
        Health::TypicalWaits => "the typical request waits",
    };
    let alarms = PUBLISHED_ALARMS.iter().filter(|alarm| share >= **alarm).count();
    format!("{word}{}", ["", " !", " !!"][alarms])
}

fn backlog_in_words(measured: &Measured) -> String {
    match (measured.demand.load, measured.ideal.backlog) {
        (Load::Bursts { .. }, Backlog::Bounded) => match measured.waiting {
            0 => "keep up".into(),
            waiting => format!("{waiting} waiting"),
        },
        (Load::Bursts { .. }, Backlog::AtTheEdge) => format!("at the edge, {} waiting", measured.waiting),
        (Load::Bursts { .. }, Backlog::Grows(more)) => {
            format!("each +{}, {} waiting", Unit::Seconds.format(more), measured.waiting)
        }
        _ => "-".into(),
    }
}

/// What proves that the quota is the cause: the same subject and load with a quota that it cannot meet, the
/// smallest such quota, or none.
fn controls(rows: &[Row]) -> Vec<String> {
    let each = |row: &&Row| row.measured.quota.map_or(u64::MAX, |quota| quota.each);
    let mut names: Vec<_> = rows.iter().map(|row| &row.name).collect();
    names.dedup();
    let sentence = |name: &[String; 2]| {
        let own = || rows.iter().filter(|row| row.name == *name);
        let control = own().filter(|row| row.measured.is_control()).min_by_key(each)?;
        let throttled = |row: &&Row| row.measured.throttled_share().is_some_and(|share| share >= 0.01);
        let worst = own().filter(|row| !row.measured.is_control()).filter(throttled).min_by_key(each)?;
        let what = if control.measured.quota.is_some() { "a quota above the load" } else { "no quota" };
        Some(format!(
            "`{}`, {}: with {what}{}; with {}{}: the quota is the cause",
            name[0],
            name[1],
            told(&control.measured),
            quota_in_words(worst.measured.quota),
            told(&worst.measured),
        ))
    };
    names.into_iter().filter_map(sentence).collect()
}

/// Periods, and the tail of latencies where it has an end.
fn told(measured: &Measured) -> String {
    let quota = measured.quota.filter(|_| measured.is_control());
    let quota = quota.map_or(String::new(), |quota| format!(" ({})", quota_in_words(Some(quota))));
    let periods = match measured.throttling {
        Some([periods, 0, _]) => format!(" none of {periods} periods is throttled"),
        Some([periods, throttled, _]) => format!(" {throttled} of {periods} periods are throttled"),
        None => " there are no periods".into(),
    };
    let tail = match (measured.latency(0.99), measured.ideal.backlog) {
        (Some(_), Backlog::Grows(more)) => {
            format!(", and each burst waits {} longer than the one before", Unit::Seconds.format(more))
        }
        (Some(p99), _) => format!(", and the 99th percentile of bursts is {}", Unit::Seconds.format(p99)),
        (None, _) => String::new(),
    };
    format!("{quota}{periods}{tail}")
}

fn notes(rows: &[Row]) -> Vec<String> {
    let mut notes = vec![
        "ideal: the kernel's rule without the kernel's own work and without other load, over the same window; \
         throttled time is counted on each CPU's queue"
            .to_owned(),
        "latency: below 1 % of throttled periods nobody notices; from 1 to 50 % the slowest requests wait for the \
         next period; above, the typical request does. `!` and `!!`: published rules raise an alarm from 10 % and \
         from 25 % on. It is waiting, and others can use the CPU meanwhile"
            .to_owned(),
    ];
    if rows.iter().any(|row| row.measured.quota.is_none()) {
        notes.push(
            "without a quota there are no periods: a share of throttled ones does not apply, and is not 0 %"
                .into(),
        );
    }
    if rows.iter().any(|row| row.measured.usage.is_none()) {
        notes.push("where a process shares its cgroup with others, usage is by its own account".into());
    }
    if rows.iter().any(|row| row.measured.demand.is_at(row.measured.quota)) {
        notes.push(
            "at the edge: demand and quota are within 1 % of each other, so that what is not in the model decides"
                .into(),
        );
    }
    let starved = |row: &&Row| {
        let measured = &row.measured;
        let missing = measured.own_share() < measured.ideal_share() * (1.0 - quota::TOLERANCE);
        let share = measured.throttled_share().unwrap_or(0.0);
        missing && share < measured.ideal_throttled_share().unwrap_or(0.0) + 0.01
    };
    match rows.iter().filter(starved).count() {
        0 => {}
        count => notes.push(format!(
            "in {count} of {} cells less CPU time was used than the model says without more throttling: other load had the CPUs",
            rows.len()
        )),
    }
    notes
}

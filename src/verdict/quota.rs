//! What a CPU quota did to a load, beside what the model says it does to that load: one row a cell, and a second
//! table for the latency of bursts. Only rounds that were completed are shown.
//!
//! A row is not compared with another subject: the reference is the model, and the replicates are the
//! periods of the quota and the bursts. Deliberately absent: any word for waiting that would call it lost. What
//! a throttled process could not use, others could.

mod cause;
mod suspects;

use super::exhibit::{Column, Evidence, Exhibit, Item};
use crate::outcome::Sample;
use crate::record::Recorded;
use crate::stats::quota::{self, Backlog, Demand, FEWEST_FOR_A_TAIL, Health, Ideal, Load, Quota};
use crate::stats::{self, Alpha, Estimate};
use crate::units::Unit;
pub(super) use suspects::suspects;

/// The experiment whose samples these are.
pub const EXPERIMENT: &str = "throttle";
/// The names of the tables.
pub const EXHIBITS: [&str; 2] = ["quota", "bursts"];
/// Shares of throttled periods at which published rules raise an alarm; the second is that of
/// `CPUThrottlingHigh` for Kubernetes.
pub const PUBLISHED_ALARMS: [f64; 2] = [0.10, 0.25];

/// Through fewer bursts than these a line would be one through two points.
const FEWEST_FOR_A_SLOPE: usize = 3;

/// Numbers of a file that anybody may have made: no time or count is larger than this (thirteen days of nanoseconds), no
/// machine has more CPUs, and the model does not go through more bursts and periods.
const LARGEST: u64 = 1 << 50;
const MOST_THREADS: u64 = 1 << 16;
const MOST_EVENTS: u64 = 1_000_000;

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
        let number = |name: &str| {
            let known = sample.counter(name).and_then(|value| u64::try_from(value).ok());
            known.filter(|value| *value <= LARGEST)
        };
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
        let few = |name: &str| number(name).filter(|count| (1..=MOST_THREADS).contains(count));
        let demand = Demand { load, threads: few("threads")?, cpus: few("cpus")? };
        let quota = number("quota").filter(|each| *each > 0).and_then(|each| {
            let period = number("quota_period").filter(|period| *period > 0)?;
            Some(Quota { each, period, burst: number("quota_burst").unwrap_or(0) })
        });
        let throttling = || Some([number("periods")?, number("throttled")?, number("throttled_time")?]);
        let length = number("length")?;
        let periods = quota.map_or(0, |quota| length / quota.period);
        let step = match load {
            Load::Continuous => length,
            Load::Bursts { .. } => every,
            Load::Alternating { .. } => busy.max(every),
        };
        if length / step.max(1) + periods > MOST_EVENTS {
            return None;
        }
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

    /// The 99th percentile of the latency of bursts; none of so few that it would be the longest.
    pub fn tail(&self) -> Option<f64> {
        self.latency(0.99).filter(|_| self.latencies.len() >= FEWEST_FOR_A_TAIL)
    }

    /// How many seconds each burst waited longer than the one before, where they must pile up: the slope of the
    /// line through those that were done. None of several threads, whose bursts are not told apart.
    pub fn growth(&self) -> Option<f64> {
        let piles_up = matches!(self.ideal.backlog, Backlog::Grows(_)) && self.demand.threads == 1;
        let points = self.latencies.iter().enumerate();
        let points = points.map(|(number, nanos)| (number as f64, *nanos as f64 / 1e9));
        stats::slope(points).filter(|_| piles_up && self.latencies.len() >= FEWEST_FOR_A_SLOPE)
    }

    /// What the model says of that.
    pub fn ideal_growth(&self) -> Option<f64> {
        match self.ideal.backlog {
            Backlog::Grows(more) => Some(more),
            _ => None,
        }
    }

    /// Whether less CPU time was used than the model says, without more throttling: others had the CPUs, so
    /// that what the quota would have done is not told.
    pub fn is_starved(&self) -> bool {
        let lacks = self.own_share() < self.ideal_share() * (1.0 - quota::TOLERANCE);
        let share = self.throttled_share().unwrap_or(0.0);
        lacks && share < self.ideal_throttled_share().unwrap_or(0.0) + quota::TOLERANCE
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

    /// Whether there is a quota which the load cannot meet: what would be throttled here was not throttled by it.
    pub fn is_control(&self) -> bool {
        let Some(quota) = self.quota else { return false };
        let given = quota.each as f64 / quota.period as f64;
        self.ideal.throttled == 0 && self.demand.cpus_wanted() < given * (1.0 - quota::TOLERANCE)
    }
}

fn seconds(nanos: &[u64]) -> Option<stats::Sample> {
    stats::Sample::new(nanos.iter().map(|nanos| *nanos as f64 / 1e9).collect::<Vec<_>>()).ok()
}

/// The samples of a cell in the rounds that were completed.
fn counted(run: &Recorded, cell: usize) -> impl Iterator<Item = &Sample> {
    let rounds = run.contexts.iter().skip(run.plan.warmups);
    run.series[cell].samples.iter().zip(rounds).filter_map(|(sample, context)| {
        context.as_ref()?;
        sample.as_ref()
    })
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
        let sample = counted(evidence.run, cell).next()?;
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

/// The tables of a run; none where nothing was measured.
pub fn exhibits(evidence: &Evidence<'_>) -> Vec<Exhibit> {
    let rows = rows(evidence);
    if rows.is_empty() {
        return Vec::new();
    }
    let first = || Column::of_texts("subject, load, quota");
    let values = |columns: &[(&str, Unit)]| -> Vec<Column> {
        columns.iter().map(|(name, unit)| Column::of_values(name, *unit)).collect()
    };
    let mut columns = vec![first()];
    columns.extend(values(&[
        ("mean usage", Unit::Share),
        ("ideal", Unit::Share),
        ("throttled periods", Unit::Share),
        ("ideal", Unit::Share),
        ("waiting in each", Unit::Seconds),
        ("ideal", Unit::Seconds),
    ]));
    columns.push(Column::of_texts("who waits"));
    let mut exhibits = vec![Exhibit {
        experiment: EXPERIMENT,
        name: EXHIBITS[0],
        title: "what a CPU quota does to a load, beside what the model says it does".into(),
        columns,
        rows: rows.iter().map(items_of).collect(),
        notes: notes(&rows),
        summary: cause::sentences(&rows),
    }];
    let bursts: Vec<&Row> = rows.iter().filter(|row| row.measured.demand.load != Load::Continuous).collect();
    if !bursts.is_empty() {
        let mut columns = vec![first()];
        columns.extend(values(&[
            ("median latency", Unit::Seconds),
            ("ideal median", Unit::Seconds),
            ("longest", Unit::Seconds),
            ("each waits longer by", Unit::Seconds),
            ("ideal", Unit::Seconds),
            ("left over", Unit::Count),
        ]));
        exhibits.push(Exhibit {
            experiment: EXPERIMENT,
            name: EXHIBITS[1],
            title: "what that does to the latency of bursts".into(),
            columns,
            rows: bursts.iter().map(|row| latencies_of(row)).collect(),
            notes: notes_on_bursts(&bursts),
            summary: Vec::new(),
        });
    }
    exhibits
}

fn value(value: Option<f64>, why: &str) -> Item {
    value.map_or_else(|| Item::Nothing(why.to_owned()), Item::Value)
}

fn shown(row: &Row) -> Item {
    Item::Text(format!("{} {} {}", row.name[0], row.name[1], quota_in_words(row.measured.quota)))
}

fn items_of(row: &Row) -> Vec<Item> {
    let measured = &row.measured;
    let has_model = measured.quota.is_some() && !measured.demand.is_at(measured.quota);
    vec![
        shown(row),
        Item::Value(measured.usage_share().unwrap_or(measured.own_share())),
        Item::Value(measured.ideal_share()),
        value(measured.throttled_share(), if measured.quota.is_some() { "none counted" } else { "-" }),
        value(measured.ideal_throttled_share(), if has_model { "none counted" } else { "-" }),
        value(measured.throttled_per_period(), if measured.quota.is_some() { "none" } else { "-" }),
        value(measured.ideal_per_period(), if has_model { "none" } else { "-" }),
        Item::Text(band_in_words(measured)),
    ]
}

fn latencies_of(row: &Row) -> Vec<Item> {
    let measured = &row.measured;
    let median = seconds(&measured.latencies).map(|all| Estimate::of_median(&all, Alpha::FIVE_PERCENT));
    let at_the_edge = measured.ideal.backlog == Backlog::AtTheEdge || measured.demand.is_at(measured.quota);
    let edge = if at_the_edge { "at the edge" } else { "-" };
    vec![
        shown(row),
        median.map_or_else(|| Item::Nothing("-".into()), Item::Interval),
        value(measured.ideal_latency(0.5), edge),
        value(measured.latency(1.0), "-"),
        value(measured.growth(), "-"),
        value(measured.ideal_growth(), "-"),
        Item::Value(measured.waiting as f64),
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
        burst => format!("{share} {noun}, burst {}", Unit::Seconds.format(burst as f64 / 1e9)),
    }
}

/// What the share of throttled periods means for latency, and how many published alarms it raises; neither
/// where what is not in the model decides.
fn band_in_words(measured: &Measured) -> String {
    let Some(share) = measured.throttled_share() else { return "not applicable".into() };
    if measured.demand.is_at(measured.quota) {
        return "at the edge".into();
    }
    let word = match Health::of_share(share) {
        Health::Clear if measured.is_starved() => "not told",
        Health::Clear => "nobody",
        Health::TailWaits => "the slowest",
        Health::TypicalWaits => "the typical",
    };
    let alarms = PUBLISHED_ALARMS.iter().filter(|alarm| share >= **alarm).count();
    format!("{word}{}", ["", " !", " !!"][alarms])
}

fn notes(rows: &[Row]) -> Vec<String> {
    let any = |of: fn(&Measured) -> bool| rows.iter().any(|row| of(&row.measured));
    let mut notes = vec![
        format!("ideal: the kernel's rule without the kernel's own work and without other load; {}", windows(rows)),
        "throttled time is counted on each CPU's queue. It is waiting, and others can use the CPU meanwhile"
            .to_owned(),
        "who waits: below 1 % of throttled periods nobody notices; from 1 to 50 % the slowest requests wait for the \
         next period; above, the typical request does. `!` and `!!`: published rules raise an alarm from 10 % and \
         from 25 % on"
            .to_owned(),
    ];
    if any(|measured| measured.quota.is_none()) {
        notes.push(
            "without a quota there are no periods: a share of throttled ones does not apply, and is not 0 %"
                .into(),
        );
    }
    if any(|measured| measured.usage.is_none()) {
        notes.push("where a process shares its cgroup with others, usage is by its own account".into());
    }
    if any(|measured| measured.demand.is_at(measured.quota)) {
        notes.push(
            "at the edge: demand and quota are within 1 % of each other, so that what is not in the model decides, \
             and no alarm is marked"
                .into(),
        );
    }
    match rows.iter().filter(|row| row.measured.is_starved()).count() {
        0 => {}
        count => notes.push(format!(
            "in {count} of {} cells less CPU time was used than the model says without more throttling: other load \
             had the CPUs. Where nothing was throttled then, it is not told who would wait",
            rows.len()
        )),
    }
    notes
}

/// How long the windows were that were asked for, and how long they were.
fn windows(rows: &[Row]) -> String {
    let shown = |nanos: u64| Unit::Seconds.format(nanos as f64 / 1e9);
    let all = |of: fn(&Measured) -> u64| rows.iter().map(move |row| of(&row.measured));
    let ends = |of| all(of).min().zip(all(of).max()).unwrap_or_default();
    let (asked, most_asked) = ends(|measured| measured.length);
    let (least, most) = ends(|measured| measured.window - measured.window.min(measured.length));
    match asked == most_asked {
        true => format!("over {}; windows were longer by {} to {}", shown(asked), shown(least), shown(most)),
        false => {
            format!("over what was asked for; windows were longer by {} to {}", shown(least), shown(most))
        }
    }
}

fn notes_on_bursts(rows: &[&Row]) -> Vec<String> {
    let mut notes = vec![
        "latency: from intended start to end of the bursts that were done; of a load that alternates, from the \
         real start. Left over: those that were due and not done at the end"
            .to_owned(),
    ];
    if rows.iter().any(|row| row.measured.ideal_growth().is_some()) {
        notes.push(format!(
            "each waits longer by: the slope of a line through the latencies of the window, of {FEWEST_FOR_A_SLOPE} \
             bursts or more of one thread, where the quota is less than they want. Median and longest only say how \
             long the window was then"
        ));
    }
    notes
}

#[cfg(test)]
mod tests;

//! The table of `nested`: a row for each way, and a sentence for each.

use super::names::{
    ASKED, BOUND, BUILT, CAPABILITIES, CGROUP, DEVICES, DISKS, DRIVER, FILTER, INSTEAD, MASKED, OPENS, PLACE,
    PROFILE, REFUSED, REMEDY, UNWRITTEN,
};
use super::{DOES, INSIDE, NAME, SIBLING};
use crate::names::{Counter, Fact};
use crate::stats::Estimate;
use crate::text::listed;

use crate::units::Unit;
use crate::verdict::View;
use crate::verdict::table::{Answer, Column, ExperimentTable, Item, Screen};

/// Capabilities that reach beyond a container, by their numbers; an engine gives none of them by default.
const FAR: [(u32, &str); 12] = [
    (2, "DAC_READ_SEARCH"),
    (12, "NET_ADMIN"),
    (16, "SYS_MODULE"),
    (17, "SYS_RAWIO"),
    (19, "SYS_PTRACE"),
    (21, "SYS_ADMIN"),
    (22, "SYS_BOOT"),
    (24, "SYS_RESOURCE"),
    (25, "SYS_TIME"),
    (34, "SYSLOG"),
    (38, "PERFMON"),
    (39, "BPF"),
];
/// Those with which the host is at hand: files by their handles, modules of the kernel, raw memory and ports.
const REACH: u64 = 1 << 2 | 1 << 16 | 1 << 17;
/// A sync after which less of what was written has come to the device has not reached it.
const SYNCED: f64 = 0.5;
/// With more of them than this, only their number is said.
const LISTED: usize = 3;

/// A way of one subject.
struct Row<'a> {
    view: &'a View<'a>,
    cell: usize,
}

impl Row<'_> {
    fn fact(&self, name: Fact) -> Option<&str> {
        self.view.run.facts(self.cell, name).flatten().next_back()
    }

    fn of(&self, metric: &str) -> Option<Estimate> {
        let cell = &self.view.cells[self.cell];
        cell.metrics[self.view.metric_index(self.cell, metric)?].as_ref().map(|one| one.median)
    }

    fn counter(&self, name: Counter) -> Option<i64> {
        let samples = &self.view.run.series[self.cell].samples;
        samples.iter().flatten().rev().find_map(|sample| sample.counter(name))
    }

    fn way(&self) -> &str {
        self.view.cell(self.cell).setting.get("way").unwrap_or_default()
    }

    /// The builder that was asked for, if it is not the engine's own.
    fn kit(&self) -> Option<&'static str> {
        (self.view.cell(self.cell).setting.get(DOES) == Some("buildkit")).then_some("BuildKit")
    }

    /// In how many rounds there is such a fact.
    fn rounds(&self, name: Fact) -> usize {
        self.view.run.facts(self.cell, name).flatten().count()
    }

    /// Whether it works, in a word or two.
    fn works(&self) -> String {
        let (worked, refused) = (self.rounds(PLACE), self.rounds(REFUSED));
        match (self.fact(REFUSED), self.fact(PLACE)) {
            (Some(_), Some(_)) => format!("in {worked} of {}", worked + refused),
            (Some(why), None) => format!("no: {}", why.split_once(':').map_or(why, |(class, _)| class)),
            (None, Some(SIBLING)) => "a sibling".to_owned(),
            (None, Some(_)) => "yes".to_owned(),
            (None, None) => "not known".to_owned(),
        }
    }

    /// Why it does not, and what helps.
    fn refused(&self) -> Option<String> {
        let why = self.fact(REFUSED)?;
        let remedy = self.fact(REMEDY).map(|remedy| format!(" – {remedy}")).unwrap_or_default();
        Some(format!("{why}{remedy}"))
    }

    /// Whether the host could be shown to be reached from the outer container; none if that was not tried.
    fn reaches(&self) -> Option<bool> {
        let opens = self.fact(OPENS)?;
        let is_sibling = self.fact(PLACE) == Some(SIBLING);
        Some(is_sibling || !opens.is_empty() || self.held() & REACH != 0 || self.fact(BOUND).is_some())
    }

    /// Whether it works, and the host could not be shown to be reached.
    fn keeps(&self) -> bool {
        self.fact(PLACE).is_some() && self.reaches() == Some(false)
    }

    /// Whether what is synced inside does not reach the disk.
    fn loses(&self) -> bool {
        self.of("reached").is_some_and(|share| share.value < SYNCED)
    }

    /// Its capabilities.
    fn held(&self) -> u64 {
        self.fact(CAPABILITIES).and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0)
    }

    /// What root inside can do beyond its container.
    fn gives(&self) -> Option<String> {
        self.fact(CAPABILITIES)?;
        let held = self.held();
        let far: Vec<&str> =
            FAR.iter().filter(|(bit, _)| held & 1 << bit != 0).map(|(_, name)| *name).collect();
        let capabilities = match far.len() {
            0 => None,
            count if count > LISTED => Some(format!("{} capabilities", held.count_ones())),
            _ => Some(far.join(", ")),
        };
        let filter = (self.fact(FILTER) == Some("0")).then(|| "no seccomp".to_owned());
        // Where the kernel has none, nothing is said of it.
        let profile = (self.fact(PROFILE) == Some("unconfined")).then(|| "no AppArmor".to_owned());
        let covered = (self.counter(MASKED) == Some(0)).then(|| "all of /proc".to_owned());
        let disks = self.counter(DISKS).filter(|disks| *disks > 0);
        let devices = disks
            .and_then(|disks| Some(format!("{} devices, {disks} of them disks", self.counter(DEVICES)?)));
        let daemon =
            (self.fact(PLACE) == Some(SIBLING)).then(|| "the host: its daemon obeys every order".to_owned());
        let opens = self.fact(OPENS).filter(|opens| !opens.is_empty());
        let opens = opens.map(|opens| format!("the host: opens {opens}"));
        let bound = self.fact(BOUND).map(|places| format!("the host: writes to what is bound to {places}"));
        let all: Vec<String> = [daemon, opens, bound, devices, covered, capabilities, filter, profile]
            .into_iter()
            .flatten()
            .collect();
        Some(if all.is_empty() { "nothing that was tried".to_owned() } else { all.join("; ") })
    }
}

/// What works with one engine outside.
fn told(label: &str, rows: &[Row<'_>]) -> String {
    let own: Vec<&Row<'_>> = rows.iter().filter(|row| row.view.label(row.cell) == label).collect();
    let names = |is_it: &dyn Fn(&Row<'_>) -> bool| {
        let mut names: Vec<&str> = own.iter().filter(|row| is_it(row)).map(|row| row.way()).collect();
        names.dedup();
        names.join(", ")
    };
    let inside = names(&|row| row.fact(PLACE) == Some(INSIDE));
    if inside.is_empty() {
        let siblings = names(&|row| row.fact(PLACE) == Some(SIBLING));
        return match siblings.is_empty() {
            true => format!("{label}: no way that was tried works"),
            false => format!(
                "{label}: no container runs inside; {siblings} starts siblings, by the daemon outside"
            ),
        };
    }
    let unsynced = names(&|row| row.loses());
    let unsynced = (!unsynced.is_empty())
        .then(|| format!("; what is synced inside does not reach the disk with {unsynced}"));
    let kept = match names(&|row| row.keeps()) {
        none if none.is_empty() => "each of them gives the host away".to_owned(),
        those => format!("nothing of the host could be opened with {those}"),
    };
    format!("{label}: containers run inside with {inside}; {kept}{}", unsynced.unwrap_or_default())
}

/// Which ways work, give nothing of the host away and keep what is synced, where several engines are outside.
fn kept(labels: &[&str], rows: &[Row<'_>]) -> Option<String> {
    let ways = |label: &str, is_durable: bool| {
        let own = rows.iter().filter(|row| row.view.label(row.cell) == label && row.keeps());
        let mut ways: Vec<&str> = own.filter(|row| row.loses() != is_durable).map(Row::way).collect();
        ways.dedup();
        (!ways.is_empty()).then(|| format!("{label} with {}", ways.join(", ")))
    };
    let told = |is_durable| listed(labels.iter().filter_map(|label| ways(label, is_durable)), "; ");
    let (durable, volatile) = (told(true), told(false));
    if labels.len() < 2 || durable.is_empty() {
        return None;
    }
    let but = match volatile.is_empty() {
        true => String::new(),
        false => format!("; so too in {volatile}, but what is synced inside does not reach the disk there"),
    };
    Some(format!("nothing of the host could be opened in {durable}{but}"))
}

/// The tables.
pub fn all(view: &View<'_>) -> Vec<ExperimentTable> {
    let has_samples = |cell: &usize| view.run.series[*cell].samples.iter().any(Option::is_some);
    let mut rows: Vec<Row<'_>> =
        view.cells_of(NAME).filter(has_samples).map(|cell| Row { view, cell }).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    rows.sort_by_key(|row| view.cell(row.cell).subject);
    let mut labels: Vec<&str> = rows.iter().map(|row| view.label(row.cell)).collect();
    labels.dedup();
    let text = |text: Option<&str>| {
        text.map_or(Item::Nothing("not known".to_owned()), |own| Item::Text(own.to_owned()))
    };
    let head =
        |row: &Row<'_>| vec![Item::Text(view.label(row.cell).to_owned()), Item::Text(row.way().to_owned())];
    let builds = |row: &Row<'_>| {
        let own = row.fact(BUILT)?;
        let answer = own.split_once(": ").map_or(own, |(no, _)| no);
        Some(format!("{}{answer}", row.kit().map(|kit| format!("{kit}: ")).unwrap_or_default()))
    };
    let is_built = rows.iter().any(|row| builds(row).is_some());
    let ways = |row: &Row<'_>| {
        let interval = |metric| row.of(metric).map_or(Item::Nothing("none".to_owned()), Item::Interval);
        let host = match row.reaches() {
            Some(false) => Item::Text("no".to_owned()),
            Some(true) => Item::Text("yes".to_owned()),
            None => Item::Nothing("not tried".to_owned()),
        };
        let more = [Item::Text(row.works()), interval("inner"), interval("times"), host];
        let built = is_built.then(|| text(builds(row).as_deref()));
        head(row).into_iter().chain(more).chain(built).collect()
    };
    let options = |row: &Row<'_>| {
        let [asked, driver, cgroup, instead] =
            [ASKED, DRIVER, CGROUP, INSTEAD].map(|name| text(row.fact(name)));
        let gives = text(row.gives().as_deref());
        head(row).into_iter().chain([asked, gives, driver, cgroup, instead]).collect()
    };
    let mut answers = Answer::all("which to use?", kept(&labels, &rows));
    answers.extend(Answer::all("what works?", labels.iter().map(|label| told(label, &rows))));

    for label in &labels {
        // Ways that fail in the same words are named together.
        let mut all: Vec<(String, Vec<&str>)> = Vec::new();
        for row in rows.iter().filter(|row| view.label(row.cell) == *label) {
            let Some(why) = row.refused() else { continue };
            match all.iter_mut().find(|(known, _)| *known == why) {
                Some((_, ways)) => ways.push(row.way()),
                None => all.push((why, vec![row.way()])),
            }
        }
        let why_not = all.iter().map(|(why, ways)| format!("{label} {}: {why}", ways.join(", ")));
        answers.extend(Answer::all("why not?", why_not));
        let unbuilt = rows.iter().filter(|row| view.label(row.cell) == *label);
        let unbuilt = unbuilt.filter_map(|row| {
            let (_, why) = row.fact(BUILT)?.split_once("no: ")?;
            let kit = row.kit().map(|kit| format!(", {kit}")).unwrap_or_default();
            Some(format!("{label} {}{kit}: {why}", row.way()))
        });
        answers.extend(Answer::all("why no build?", unbuilt));
    }
    let mut columns = vec![
        Column::of_texts("outside"),
        Column::of_texts("way"),
        Column::of_texts("works"),
        Column::of_values("start inside", Unit::Seconds),
        Column::of_values("× outside", Unit::Ratio),
        Column::of_texts("opens host"),
    ];
    columns.extend(is_built.then(|| Column::of_texts("builds")));
    // What works and gives nothing away first.
    let rank = |row: &Row<'_>| match (row.fact(PLACE), row.reaches()) {
        (Some(INSIDE), Some(false)) => 0,
        (Some(INSIDE), _) => 1,
        (Some(_), _) => 2,
        (None, _) => 3,
    };
    let mut sorted: Vec<usize> = (0..rows.len()).collect();
    sorted.sort_by_key(|at| (view.cell(rows[*at].cell).subject, rank(&rows[*at])));
    let ways = ExperimentTable {
        rows: rows.iter().map(ways).collect(),
        notes: vec![
            "works: its process has a process id in three namespaces, and the outer container's first process among its parents; a sibling has \
             neither; opens host: whether the outer container's user could open files of the host's kernel or its disks for writing, or orders \
             its daemon"
                .to_owned(),
        ],
                        answers,
        screen: Screen::Part { columns: (0..columns.len()).collect(), rows: sorted },
        ..ExperimentTable::new(NAME, "ways", "which way of running containers in containers works".to_owned(), columns)
    };
    let columns = ["outside", "way", "options", "gives away", "inner storage", "its cgroup", "instead"]
        .map(Column::of_texts);
    let options = ExperimentTable {
        rows: rows.iter().map(options).collect(),
        notes: vec![
            "gives away: what could be opened, and capabilities beyond those that engines give by default"
                .to_owned(),
        ],
        ..ExperimentTable::new(NAME, "options", "what each way asks for".to_owned(), columns.to_vec())
    };
    let stored = |row: &Row<'_>| {
        let interval = |metric| row.of(metric).map_or(Item::Nothing("none".to_owned()), Item::Interval);
        let values = ["write", "write_times", "reached", "read", "read_times"].map(interval);
        head(row).into_iter().chain([text(row.fact(DRIVER))]).chain(values).collect()
    };
    let columns = vec![
        Column::of_texts("outside"),
        Column::of_texts("way"),
        Column::of_texts("inner storage"),
        Column::of_values("write inside", Unit::Seconds),
        Column::of_values("× outside", Unit::Ratio),
        Column::of_values("at the device", Unit::Ratio),
        Column::of_values("read inside", Unit::Seconds),
        Column::of_values("× outside", Unit::Ratio),
    ];
    let unwritten =
        |row: &Row<'_>| Some(format!("{} {}: {}", row.view.label(row.cell), row.way(), row.fact(UNWRITTEN)?));
    let storage = ExperimentTable {
        answers: Answer::all("what is not written?", rows.iter().filter_map(unwritten)),
        rows: rows.iter().filter(|row| row.fact(PLACE).is_some()).map(stored).collect(),
        notes: vec![
            "16 MiB, written and synced, and read again from the page cache, in the innermost and in the outer container; at the device: how much \
             of it the device below wrote meanwhile (0: a sync inside does not reach it)"
                .to_owned(),
        ],
        ..ExperimentTable::new(NAME, "storage", "what files cost inside".to_owned(), columns)
    };
    let storage = Some(storage).filter(|table| !table.rows.is_empty());
    [Some(ways), storage, Some(options)].into_iter().flatten().collect()
}

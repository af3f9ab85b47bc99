//! The price list: the time of each piece between two readings of the clock within one launch, what other
//! ways to make some pieces would save, and where differences of launches disagree.

use super::{LAUNCHED, NAME, STAMPED, WHOLE, pieces};
use crate::distinct;
use crate::stats::{Estimate, Sample};
use crate::text::{estimated, listed};
use crate::units::Unit;
use crate::verdict::View;
use crate::verdict::price::JUDGED;
use crate::verdict::table::{Answer, Column, ExperimentTable, Item, Screen};

/// How many of the most expensive pieces a screen shows.
const SHOWN: usize = 10;
/// How many of them the sentence names.
const DEAREST: usize = 4;

/// The tables of each subject.
pub fn all(view: &View<'_>) -> Vec<ExperimentTable> {
    let subjects = distinct(view.cells_of(NAME).map(|cell| view.cell(cell).subject));
    let of = |subject| {
        let on = OnSubject { view, subject };
        [on.prices(), on.alternatives()]
    };
    subjects.into_iter().flat_map(of).flatten().collect()
}

struct OnSubject<'a, 'v> {
    view: &'a View<'v>,
    subject: usize,
}

impl OnSubject<'_, '_> {
    /// The cell of a piece priced in this way, after this prestate.
    fn cell(&self, way: &str, piece: &str, prestate: &str) -> Option<usize> {
        let asked = [Some(way), Some(piece), Some(prestate)];
        self.view.cells_of(NAME).find(|cell| {
            let own = self.view.cell(*cell);
            own.subject == self.subject
                && ["way", "piece", "prestate"].map(|key| own.setting.get(key)) == asked
        })
    }

    fn label(&self) -> &str {
        &self.view.plan().subjects[self.subject].label
    }

    /// The stamped launches that gave values, by prestate.
    fn wholes(&self) -> Vec<(&'static str, usize)> {
        let stated = ["idle", "primed"].into_iter();
        let found = stated.filter_map(|prestate| Some((prestate, self.cell("stamps", WHOLE, prestate)?)));
        found.filter(|(_, cell)| self.view.median(*cell, JUDGED).is_some()).collect()
    }

    /// The time of each piece, and of the launch as a whole.
    fn prices(&self) -> Option<ExperimentTable> {
        let wholes = self.wholes();
        let row = |(metric, name): (usize, &str)| {
            let cells = wholes.iter().map(|(_, cell)| self.view.estimate(*cell, metric));
            let cells: Vec<Option<Estimate>> = cells.collect();
            let has_any = cells.iter().any(Option::is_some);
            let items = cells.into_iter().map(|found| Item::interval(found, "–"));
            has_any.then(|| [Item::Text(name.to_owned())].into_iter().chain(items).collect())
        };
        let rows: Vec<Vec<Item>> = pieces().chain([(JUDGED, WHOLE)]).filter_map(row).collect();
        // The most expensive pieces, and the whole, which is the last row.
        let time = |at: &usize| match &rows[*at][1] {
            Item::Interval(one) => one.value,
            _ => 0.0,
        };
        let mut dearest: Vec<usize> = (0..rows.len().saturating_sub(1)).collect();
        dearest.sort_by(|one, other| time(other).total_cmp(&time(one)));
        dearest.truncate(SHOWN);
        dearest.extend(rows.len().checked_sub(1));
        let columns = wholes.iter().map(|(prestate, _)| Column::of_values(prestate, Unit::Seconds));
        let columns = [Column::of_texts("piece")].into_iter().chain(columns).collect();
        let title = format!("time of each piece of {}, from stamps within one launch", self.label());
        let how = format!(
            "Medians with their 95 % intervals. In every launch the pieces add up to the whole, which excludes the probe's own \
             work; medians need not add up exactly. `exit` is the end of the process, when the kernel tears namespaces and \
             mounts down: no piece's row includes its part of that. A reading of the clock takes {}.",
            Unit::Seconds.format(self.view.run.environment.timer.cost as f64 / 1e9)
        );
        let table = ExperimentTable {
            rows,
            notes: [how].into_iter().chain(wholes.iter().filter_map(|one| self.elsewhere(*one))).collect(),
            screen: Screen::Part { columns: (0..=wholes.len()).collect(), rows: dearest },
            answers: Answer::all("what costs most?", wholes.iter().filter_map(|one| self.dearest(*one))),
            ..ExperimentTable::new(NAME, "stamps", title, columns)
        };
        (!table.rows.is_empty()).then_some(table)
    }

    /// The most expensive pieces.
    fn dearest(&self, (prestate, cell): (&str, usize)) -> Option<String> {
        let mut all: Vec<(&str, Estimate)> =
            pieces().filter_map(|(metric, name)| Some((name, self.view.estimate(cell, metric)?))).collect();
        all.sort_by(|(_, one), (_, other)| other.value.total_cmp(&one.value));
        let whole = self.view.estimate(cell, JUDGED)?;
        let told = |estimate: &Estimate| estimated(Unit::Seconds, estimate);
        let most = all.iter().take(DEAREST).map(|(name, one)| format!("{name} {}", told(one)));
        Some(format!(
            "{}, {prestate}: of {}, the most expensive pieces are {}",
            self.label(),
            told(&whole),
            listed(most, ", ")
        ))
    }

    /// The pieces for which launches with and without differ by more or less than the time between stamps.
    fn elsewhere(&self, (prestate, whole): (&str, usize)) -> Option<String> {
        let view = self.view;
        let level = view.plan().level(LAUNCHED.len());
        let more = |(metric, name): (usize, &'static str)| {
            let (_, without) = LAUNCHED.iter().find(|(own, _)| *own == name)?;
            let [with, without] = [name, without].map(|piece| self.cell("alone", piece, prestate));
            let columns = [(with?, JUDGED), (without?, JUDGED), (whole, metric)];
            let [with, without, own] = columns.map(|(cell, metric)| view.columns.get(cell, metric));
            let rounds = with.iter().zip(without).zip(own);
            let values = rounds.filter_map(|((with, without), own)| Some((*with)? - (*without)? - (*own)?));
            let more = Estimate::of_median(&Sample::new(values.collect::<Vec<f64>>())?, level);
            let is_known = more.interval.is_some_and(|interval| !interval.contains(0.0));
            is_known.then(|| format!("{name} {}", Unit::Seconds.format_signed(more.value)))
        };
        let all: Vec<String> = pieces().filter_map(more).collect();
        (!all.is_empty()).then(|| {
            format!(
                "{prestate}: a launch with one of these pieces, less one without, differs from its stamps by: {}. The excess is paid \
                 at the end of the process or later.",
                listed(all, ", ")
            )
        })
    }

    /// What other ways to make some pieces cost or save.
    fn alternatives(&self) -> Option<ExperimentTable> {
        let view = self.view;
        let wholes = self.wholes();
        let row = |other: &Alternative| {
            let cells = wholes.iter().map(|(prestate, _)| self.cell("stamps", other.name, prestate));
            let cells: Vec<usize> = cells.collect::<Option<_>>()?;
            let item = |cell: usize, estimate: Option<Estimate>| {
                let failed = view.cells[cell].failures.first().map_or("–", |(class, ..)| class.name());
                Item::interval(estimate, failed)
            };
            let own = cells.iter().map(|cell| item(*cell, self.more(*cell, other.pieces)));
            let all = cells.iter().map(|cell| item(*cell, view.price(*cell).map(|price| price.price)));
            let told = [Item::Text(other.name.to_owned()), Item::Text(other.against().to_owned())];
            Some(told.into_iter().chain(own).chain(all).collect())
        };
        let rows: Vec<Vec<Item>> = ALTERNATIVES.iter().filter_map(row).collect();
        let of = |what: &str| {
            let columns = wholes.iter().map(|(prestate, _)| format!("{what}, {prestate}"));
            columns.map(|name| Column::of_values(&name, Unit::Seconds)).collect::<Vec<_>>()
        };
        let texts = ["way", "compared with"].map(Column::of_texts);
        let title = format!("other ways to make some pieces of {}: what they add", self.label());
        let columns = texts.into_iter().chain(of("pieces")).chain(of("launch")).collect();
        let how = "Median of the differences round by round, with its 95 % interval; below zero is a saving. pieces: the time \
                   between the stamps of the pieces concerned. launch: the whole, including costs that fall elsewhere. Each way is a \
                   value of a key of the floor: `floor:cgroup=procs`, `floor:mounts=fsmount`.";
        let told = ALTERNATIVES.iter().map(|other| {
            let cell = wholes.first().and_then(|(prestate, _)| self.cell("stamps", other.name, prestate));
            let failed = cell.and_then(|cell| view.cells[cell].failures.first());
            let failed = failed.map_or_else(String::new, |(_, _, why)| format!(" ({why})"));
            format!("{}: {}{failed}.", other.name, other.what)
        });
        let table = ExperimentTable {
            rows,
            notes: [how.to_owned()].into_iter().chain(told).collect(),
            ..ExperimentTable::new(NAME, "alternatives", title, columns)
        };
        (!table.rows.is_empty() && !wholes.is_empty()).then_some(table)
    }

    /// How much longer these pieces take than in the reference launch of a cell.
    fn more(&self, cell: usize, concerned: &[&str]) -> Option<Estimate> {
        let view = self.view;
        let reference = view.price(cell)?.reference?;
        let own = pieces().filter(|(_, name)| concerned.contains(name)).map(|(metric, _)| metric);
        let mut all: Vec<Option<f64>> = vec![Some(0.0); view.columns.get(cell, JUDGED).len()];
        for metric in own {
            let pairs = view.columns.get(cell, metric).iter().zip(view.columns.get(reference, metric));
            for (sum, (one, other)) in all.iter_mut().zip(pairs) {
                *sum = sum.zip(*one).zip(*other).map(|((sum, one), other)| sum + one - other);
            }
        }
        Some(Estimate::of_median(&Sample::new(all.iter().flatten())?, view.plan().level(1)))
    }
}

/// Another way to make some pieces.
struct Alternative {
    name: &'static str,
    pieces: &'static [&'static str],
    what: &'static str,
}

impl Alternative {
    /// The way to compare it with.
    fn against(&self) -> &'static str {
        STAMPED.iter().find(|(name, _)| *name == self.name).map_or(WHOLE, |(_, against)| against)
    }
}

static ALTERNATIVES: [Alternative; 4] = [
    Alternative {
        name: "procs",
        pieces: &["cgroup", "clone"],
        what: "every cgroup is entered by writing to `cgroup.procs`, as most runtimes do",
    },
    Alternative {
        name: "born",
        pieces: &["cgroup", "clone"],
        what: "`clone3` creates the process in its cgroup of version 2 (`CLONE_INTO_CGROUP`); those of version 1 as before",
    },
    Alternative {
        name: "fsmount",
        pieces: &["mount", "overlay", "filesystems", "masked", "read_only"],
        what: "`fsopen`, `fsmount`, `move_mount`, `open_tree` and `mount_setattr` instead of `mount`",
    },
    Alternative {
        name: "open_tree",
        pieces: &["mount", "overlay"],
        what: "a mount namespace by `OPEN_TREE_NAMESPACE` instead of `unshare` and `pivot_root`",
    },
];

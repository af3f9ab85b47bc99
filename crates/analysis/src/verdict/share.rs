//! The kernel's share of a launch: the time of the floor that comes closest to what the runtime asks of the
//! kernel.
//!
//! Runtimes enter their cgroups by writing to `cgroup.procs` in both versions, as the system calls of runc
//! 1.1 and crun 1.8 and youki's source show. But crun from 1.7 starts in its cgroup if there is only version
//! 2 and it creates the cgroup itself, as it does for a bundle.

use std::cmp::Reverse;

use super::columns::Columns;
use super::finding::sibling;
use crate::experiment::Event;
use crate::launch::names::ROOT;
use crate::plan::{Entry, Layer};
use crate::record::Recorded;
use crate::stats::Estimate;
use crate::subject::Spec;

/// The part of a subject's `returned` that the floor alone needs.
#[derive(Debug, Clone)]
pub struct FloorShare {
    /// The subject's cell.
    pub cell: usize,
    /// The floor, as a subject of the plan.
    pub floor: usize,
    /// The keys in which it differs from what the subject does.
    pub unlike: Vec<&'static str>,
    /// Median of the paired ratios floor ÷ subject.
    pub share: Estimate,
}

/// Shares are for the first metric, which users wait for, and only for launches: that arithmetic takes as
/// long on the floor, which says nothing about a container.
pub(super) fn floor_shares(run: &Recorded, columns: &Columns) -> Vec<FloorShare> {
    let plan = &run.plan;
    let is_floor = |subject: &usize| {
        let entry = &plan.subjects[*subject];
        entry.spec.name == "floor" && entry.twin_of.is_none()
    };
    let floors: Vec<usize> = (0..plan.subjects.len()).filter(is_floor).collect();
    let timer = run.environment.timer.step as f64 / 1e9;
    let share = |cell: usize| {
        let entry = plan.entry(cell);
        let waited_for = matches!(plan.cells[cell].asks().event, Event::Once(_));
        if entry.twin_of.is_some() || !waited_for || entry.layer <= Layer::Floor {
            return None;
        }
        let of = |floor: &usize| {
            let beside = sibling(plan, cell, *floor)?;
            Some((unlike(run, cell, &plan.subjects[*floor].spec), *floor, beside))
        };
        let (unlike, floor, beside) = floors.iter().filter_map(of).min_by_key(|(unlike, floor, _)| {
            // The way into the cgroup weighs milliseconds, an overlay tenths of one; with any other key it is
            // not such a floor.
            let weight = unlike.iter().map(|key| match *key {
                "overlay" => 1,
                "cgroup" => 2,
                _ => 4,
            });
            (weight.sum::<usize>(), Reverse(plan.is_original(*floor)), *floor)
        })?;
        let pairs = columns.pairs(cell, beside, 0)?;
        Some(FloorShare { cell, floor, unlike, share: pairs.ratio(timer, plan.level(1))? })
    };
    (0..plan.cells.len()).filter_map(share).collect()
}

/// The keys in which a floor makes the kernel do something else than a cell's subject does.
fn unlike(run: &Recorded, cell: usize, floor: &Spec) -> Vec<&'static str> {
    let entry = run.plan.entry(cell);
    let way = floor.get("cgroup").unwrap_or("own");
    let is_another_way = !ways(run, entry).contains(&way);
    let is_another_root = (floor.get("overlay") != Some("off")) != has_overlay(run, cell);
    let is_another = floor.keys.iter().any(|(key, _)| !["cgroup", "overlay"].contains(&key.as_str()));
    let all = [("cgroup", is_another_way), ("overlay", is_another_root), ("others", is_another)];
    all.into_iter().filter(|(_, is_so)| *is_so).map(|(key, _)| key).collect()
}

/// The values of the floor's key that match how a subject enters cgroups on this machine.
fn ways(run: &Recorded, entry: &Entry) -> &'static [&'static str] {
    let is_second = run.environment.machine.get("cgroup_mode").is_some_and(|mode| mode == "v2");
    match is_second && entry.layer == Layer::Runtime && entry.spec.name == "crun" {
        true => &["own", "born"],
        false if is_second => &["procs", "tasks"],
        false => &["procs"],
    }
}

/// Whether its root was an overlay, if that was read back; runtimes use the directory of a bundle as it is.
fn has_overlay(run: &Recorded, cell: usize) -> bool {
    let read_back = run.facts(cell, ROOT).flatten().next();
    read_back.map_or(run.plan.entry(cell).layer != Layer::Runtime, |root| root == "overlay")
}

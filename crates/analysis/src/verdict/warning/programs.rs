//! Do several subjects run the same file as their command? A different build of it can differ more than any
//! container does.

use super::Warning;
use crate::experiment::command::names::{PROGRAM, PROGRAM_SHA256};
use crate::group::in_groups;
use crate::names::Fact;
use crate::record::Recorded;
use crate::text::{clean, listed};

/// The warnings of every setting in which subjects reported the file that they executed.
pub(super) fn warnings(run: &Recorded) -> Vec<Warning> {
    let of = |&cell: &usize| (run.plan.cells[cell].experiment, &run.plan.cells[cell].setting);
    let groups = in_groups(0..run.plan.cells.len(), of).into_iter();
    groups.flat_map(|(_, cells)| [different(run, &cells), of_the_host(run, &cells)]).flatten().collect()
}

/// A fact of a cell's first sample.
fn fact(run: &Recorded, cell: usize, name: Fact) -> Option<&str> {
    run.facts(cell, name).next()?
}

fn label(run: &Recorded, cell: usize) -> String {
    clean(&run.plan.entry(cell).label)
}

/// A warning of one setting about some of its cells.
fn of(run: &Recorded, kind: &'static str, cells: &[usize], seen: String, remedy: &'static str) -> Warning {
    let labels = cells.iter().map(|&cell| label(run, cell)).collect();
    Warning { labels, ..Warning::of_run(kind, seen, remedy).about(&run.plan, cells[0]) }
}

fn different(run: &Recorded, cells: &[usize]) -> Option<Warning> {
    let known = cells.iter().filter_map(|&cell| Some((fact(run, cell, PROGRAM_SHA256)?, cell)));
    let files = in_groups(known, |(sum, _)| *sum);
    let told = |(sum, own): &(&str, Vec<(&str, usize)>)| {
        let labels = listed(own.iter().map(|(_, cell)| label(run, *cell)), ", ");
        format!("{}… by {labels}", sum.get(..12).unwrap_or(sum))
    };
    let (told, setting) = (listed(files.iter().map(told), "; "), &run.plan.cells[cells[0]].setting);
    let seen = format!("subjects execute different files ({setting}): {told}");
    let remedy =
        "differences may come from the builds; use the same image for every subject, including `bare`";
    let concerned: Vec<usize> = files.iter().flat_map(|(_, own)| own).map(|(_, cell)| *cell).collect();
    (files.len() > 1).then(|| of(run, "other program", &concerned, seen, remedy))
}

fn of_the_host(run: &Recorded, cells: &[usize]) -> Option<Warning> {
    let is_the_hosts = |cell: &&usize| {
        let spec = &run.plan.entry(**cell).spec;
        spec.name == "bare" && spec.get("image").is_none() && fact(run, **cell, PROGRAM_SHA256).is_some()
    };
    let hosts: Vec<usize> = cells.iter().filter(is_the_hosts).copied().collect();
    let path = fact(run, *hosts.first()?, PROGRAM)?;
    let all = listed(hosts.iter().map(|&cell| label(run, cell)), ", ");
    let setting = &run.plan.cells[cells[0]].setting;
    let seen = format!("{all} executes the host's own `{path}`, with the host's libraries ({setting})");
    let remedy =
        "use the image for it as well, as in `bare:image=REF`, to run from the image's unpacked root";
    (cells.len() > hosts.len()).then(|| of(run, "the host's program", &hosts, seen, remedy))
}

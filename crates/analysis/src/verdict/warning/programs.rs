//! Is the command that several subjects run one and the same file? Another build of it can differ more than
//! any container does.

use super::Warning;
use crate::plan::Cell;
use crate::record::Recorded;
use crate::text::clean;

/// The warnings of every setting in which subjects said which file they executed.
pub(super) fn warnings(run: &Recorded) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for first in 0..run.plan.cells.len() {
        let same = |other: &Cell| {
            let own = &run.plan.cells[first];
            other.experiment == own.experiment && other.setting == own.setting
        };
        if run.plan.cells[..first].iter().any(same) {
            continue;
        }
        let cells: Vec<usize> =
            (first..run.plan.cells.len()).filter(|&at| same(&run.plan.cells[at])).collect();
        warnings.extend(different(run, first, &cells));
        warnings.extend(of_the_host(run, first, &cells));
    }
    warnings
}

/// A fact of a cell's first sample.
fn fact<'a>(run: &'a Recorded, cell: usize, name: &'a str) -> Option<&'a str> {
    run.facts(cell, name).next()?
}

fn label(run: &Recorded, cell: usize) -> String {
    clean(&run.plan.subjects[run.plan.cells[cell].subject].label)
}

fn different(run: &Recorded, first: usize, cells: &[usize]) -> Option<Warning> {
    let mut files: Vec<(&str, Vec<String>)> = Vec::new();
    for &cell in cells {
        let Some(sum) = fact(run, cell, "program_sha256") else { continue };
        match files.iter_mut().find(|(own, _)| *own == sum) {
            Some((_, labels)) => labels.push(label(run, cell)),
            None => files.push((sum, vec![label(run, cell)])),
        }
    }
    let told = |(sum, labels): &(&str, Vec<String>)| {
        format!("{}… by {}", sum.get(..12).unwrap_or(sum), labels.join(", "))
    };
    let told: Vec<String> = files.iter().map(told).collect();
    let setting = &run.plan.cells[first].setting;
    let warning = Warning::of_cell(
        run,
        first,
        "other program",
        &format!("not the same file is executed everywhere ({setting}): {}", told.join("; ")),
        "differences may be those of the builds; give every subject the same image, `bare` too",
    );
    let labels = files.into_iter().flat_map(|(_, labels)| labels).collect();
    (told.len() > 1).then_some(Warning { labels, ..warning })
}

fn of_the_host(run: &Recorded, first: usize, cells: &[usize]) -> Option<Warning> {
    let is_the_hosts = |cell: &&usize| {
        let spec = &run.plan.subjects[run.plan.cells[**cell].subject].spec;
        spec.name == "bare" && spec.get("image").is_none() && fact(run, **cell, "program_sha256").is_some()
    };
    let hosts: Vec<usize> = cells.iter().filter(is_the_hosts).copied().collect();
    let path = fact(run, *hosts.first()?, "program")?;
    let labels: Vec<String> = hosts.iter().map(|&cell| label(run, cell)).collect();
    let (all, setting) = (labels.join(", "), &run.plan.cells[first].setting);
    let warning = Warning::of_cell(
        run,
        first,
        "the host's program",
        &format!("{all} executes the host's own `{path}`, with the host's libraries ({setting})"),
        "name the image for it too, as in `bare:image=REF`: then it runs from the image's unpacked root",
    );
    (cells.len() > hosts.len()).then_some(Warning { labels, ..warning })
}

//! Is the command that several subjects run one and the same file? Another build of it can differ more than
//! any container does.

use super::Warning;
use crate::plan::Cell;
use crate::record::Recorded;

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
fn fact<'a>(run: &'a Recorded, cell: usize, name: &str) -> Option<&'a str> {
    let number = run.series[cell].treatments.iter().flatten().next()?;
    let (_, fact) = run.treatments.get(*number)?.iter().find(|(own, _)| own == name)?;
    Some(fact)
}

fn label(run: &Recorded, cell: usize) -> String {
    run.plan.subjects[run.plan.cells[cell].subject].label.clone()
}

fn different(run: &Recorded, first: usize, cells: &[usize]) -> Option<Warning> {
    let mut files: Vec<(String, Vec<String>)> = Vec::new();
    for &cell in cells {
        let Some(sum) = fact(run, cell, "program_sha256") else { continue };
        match files.iter_mut().find(|(own, _)| own == sum) {
            Some((_, labels)) => labels.push(label(run, cell)),
            None => files.push((sum.to_owned(), vec![label(run, cell)])),
        }
    }
    (files.len() > 1).then_some(Warning::OtherPrograms { cell: first, files })
}

fn of_the_host(run: &Recorded, first: usize, cells: &[usize]) -> Option<Warning> {
    let is_the_hosts = |cell: &&usize| {
        let spec = &run.plan.subjects[run.plan.cells[**cell].subject].spec;
        spec.name == "bare" && spec.get("image").is_none() && fact(run, **cell, "program_sha256").is_some()
    };
    let hosts: Vec<usize> = cells.iter().filter(is_the_hosts).copied().collect();
    let has_others = cells.len() > hosts.len();
    let path = fact(run, *hosts.first()?, "program")?.to_owned();
    let labels = hosts.iter().map(|&cell| label(run, cell)).collect();
    has_others.then_some(Warning::HostsProgram { cell: first, path, labels })
}

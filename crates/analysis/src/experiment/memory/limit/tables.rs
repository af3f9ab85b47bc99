//! The table of `memory-limit`, and a sentence for each subject.

use super::NAME;
use super::names::BELOW;
use crate::text::listed;
use crate::units::Unit;
use crate::verdict::View;
use crate::verdict::table::{Answer, Column, ExperimentTable, Item, Screen, notes};

/// What a runtime wrote into its log is its message there.
fn fell(told: &str) -> String {
    let Some((what, said)) = told.split_once(": ") else { return told.to_owned() };
    let message =
        said.split_once("msg=\"").and_then(|(_, rest)| rest.split_once('"')).map(|(message, _)| message);
    format!("{what}: {}", message.unwrap_or(said))
}

/// The columns of the answer: both limits, the peak, and what a start takes without a limit and with the smallest.
const ANSWER: [usize; 6] = [0, 1, 2, 3, 4, 6];

/// The table: both limits, what a start takes with each, and what happens with less.
pub fn all(view: &View<'_>) -> Vec<ExperimentTable> {
    let cells: Vec<usize> = view.originals_of(NAME).collect();
    if cells.iter().all(|cell| view.estimate_of(*cell, "smallest").is_none()) {
        return Vec::new();
    }
    let row = |cell: &usize| {
        let interval = |metric| Item::interval(view.estimate_of(*cell, metric), "not known");
        let value = |metric| Item::value(view.estimate_of(*cell, metric).map(|one| one.value), "not known");
        vec![
            Item::Text(view.label(*cell).to_owned()),
            interval("smallest"),
            interval("comfortable"),
            value("peak"),
            value("unlimited"),
            value("at_comfortable"),
            value("at_smallest"),
            Item::text(view.fact(*cell, BELOW).map(fell), "not known"),
        ]
    };
    let told = |cell: &usize| {
        let smallest = Unit::Bytes.format(view.estimate_of(*cell, "smallest")?.value);
        Some(format!("{} with {smallest}", view.label(*cell)))
    };
    let told = listed(cells.iter().filter_map(told), "; ");
    // An engine may have a minimum of its own.
    let refused = |cell: &usize| {
        let words = view.fact(*cell, BELOW)?.strip_prefix("refused: ")?;
        let own = match view.estimate_of(*cell, "peak") {
            Some(peak) => format!(" (peak without a limit: {})", Unit::Bytes.format(peak.value)),
            None => String::new(),
        };
        Some(format!("{}: with less it is refused{own}: {words}", view.label(*cell)))
    };

    let columns = vec![
        Column::of_texts("subject"),
        Column::of_values("starts with", Unit::Bytes),
        Column::of_values("left alone with", Unit::Bytes),
        Column::of_values("peak", Unit::Bytes),
        Column::of_values("start, unlimited", Unit::Seconds),
        Column::of_values("start, left alone", Unit::Seconds),
        Column::of_values("start, smallest", Unit::Seconds),
        Column::of_texts("with 64 KiB less"),
    ];

    let title = "with how little memory a container starts".to_owned();
    vec![ExperimentTable {
        rows: cells.iter().map(row).collect(),
        notes: notes([
            "starts with: the smallest limit with which the probe inside says that it runs, and a program of yours with it, without a process that \
             the kernel killed; left alone with: the smallest that nothing was \
             ever to be charged above, so that the kernel reclaims nothing",
            "peak: the most that is charged without a limit, with pages that each CPU keeps unused, which a limit leaves out; then what a start takes without one, with the second and with the first",
        ]),
        answers: [
            Answer::decided("how little is enough?", Some(told).filter(|all| !all.is_empty())),
            Answer::decided("why no less?", cells.iter().filter_map(refused)),
        ]
        .concat(),
        screen: Screen::Part { columns: ANSWER.to_vec(), rows: (0..cells.len()).collect() },
        ..ExperimentTable::new(NAME, "limits", title, columns)
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_from_a_log() {
        let log = "killed: time=\"2026-11-28T06:50:27Z\" level=error msg=\"cannot start a container that has stopped\"\n";
        assert_eq!(fell(log), "killed: cannot start a container that has stopped");
        assert_eq!(
            fell("refused: Minimum memory limit allowed is 6MB"),
            "refused: Minimum memory limit allowed is 6MB"
        );
    }
}

//! Columns of a table that are copies of one another.

use super::Number;
use crate::report::model::Doubt;

/// Fewer equal numbers could be chance, or rounding.
const FEWEST: usize = 5;
/// Conditions that tell columns apart; all others tell rows apart.
const COLUMNS: [&str; 3] = ["table", "layers", "place"];

struct Column<'a> {
    experiment: &'a str,
    /// Subject and conditions of the column.
    name: String,
    /// What each row says, in their order: the row, the value and its interval.
    cells: Vec<(String, &'a str, Option<[f64; 2]>)>,
}

/// Two measurements never agree in every row to the last digit, intervals included.
pub fn copies(numbers: &[Number]) -> Vec<Doubt> {
    let mut columns: Vec<Column<'_>> = Vec::new();
    for one in numbers.iter().filter(|one| !one.is_derived()) {
        let own: Vec<_> =
            one.conditions.iter().filter(|(key, _)| COLUMNS.contains(&key.as_str())).cloned().collect();
        let name = format!("`{}` ({})", one.subject, super::super::joined(&own)).replace(" ()", "");
        let row =
            format!("{}|{}|{:?}", super::super::joined(&one.without(&COLUMNS)), one.metric, one.repetition);
        let cell = (row, one.printed.as_str(), one.interval);
        match columns.iter_mut().find(|column| column.experiment == one.experiment && column.name == name) {
            Some(column) => column.cells.push(cell),
            None => columns.push(Column { experiment: &one.experiment, name, cells: vec![cell] }),
        }
    }
    columns.iter_mut().for_each(|column| column.cells.sort_by(|one, other| one.0.cmp(&other.0)));
    let is_constant = |column: &Column<'_>| column.cells.iter().all(|cell| cell.1 == column.cells[0].1);
    columns.retain(|column| column.cells.len() >= FEWEST && !is_constant(column));
    let mut found = Vec::new();
    while let Some(first) = columns.first() {
        let is_copy = |other: &Column<'_>| other.experiment == first.experiment && other.cells == first.cells;
        let (same, others): (Vec<usize>, Vec<usize>) =
            (0..columns.len()).partition(|&at| is_copy(&columns[at]));
        if same.len() > 1 {
            let names: Vec<_> = same.iter().map(|&at| columns[at].name.as_str()).collect();
            found.push(Doubt {
                rule: "columns that are copies",
                experiment: first.experiment.to_owned(),
                evidence: format!("{}: the same number and interval in each of {} rows", names.join(", "), first.cells.len()),
                mechanism: "one measurement that was printed several times, or copied into a table where another was meant".into(),
            });
        }
        let mut at = 0;
        columns.retain(|_| {
            at += 1;
            others.contains(&(at - 1))
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tests::{fired, number};
    use super::*;

    fn table(columns: &[(&str, [&str; 5])]) -> Vec<Number> {
        let of = |(name, values): &(&str, [&str; 5])| {
            let row = |(at, value): (usize, &&str)| {
                number(&format!("x bare op={at};table={name} wall_time s"), 0, value)
            };
            values.iter().enumerate().map(row).collect::<Vec<_>>()
        };
        columns.iter().flat_map(of).collect()
    }

    #[test]
    fn columns_that_agree_everywhere_are_copies_and_one_digit_saves_them() {
        let values = ["1.0", "2.0", "3.0", "4.0", "5.0"];
        let evidence = fired(
            copies,
            &table(&[("a", values), ("b", values), ("c", ["1.0", "2.0", "3.0", "4.0", "5.1"])]),
        );
        assert_eq!(
            evidence,
            ["`bare` (table=a), `bare` (table=b): the same number and interval in each of 5 rows"]
        );
        assert_eq!(
            fired(copies, &table(&[("a", values), ("b", ["1.0", "2.0", "3.0", "4.0", "5.00"])])),
            [""; 0]
        );
    }

    #[test]
    fn few_rows_and_rows_that_are_all_alike_show_nothing() {
        let mut few = table(&[("a", ["1", "2", "3", "4", "5"]), ("b", ["1", "2", "3", "4", "5"])]);
        few.retain(|one| one.condition("op") != Some("4"));
        assert_eq!(fired(copies, &few), [""; 0]);
        assert_eq!(fired(copies, &table(&[("a", ["0.3"; 5]), ("b", ["0.3"; 5])])), [""; 0]);
    }

    #[test]
    fn another_interval_is_another_measurement() {
        let values = ["1.0", "2.0", "3.0", "4.0", "5.0"];
        let mut numbers = table(&[("a", values), ("b", values)]);
        numbers[0].interval = Some([0.9, 1.1]);
        assert_eq!(fired(copies, &numbers), [""; 0]);
    }
}

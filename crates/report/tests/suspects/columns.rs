//! Columns of a table that are copies of each other.

use dunnage_analysis::group::in_groups;

use crate::{Number, fired, joined, number};

/// Fewer equal numbers could be chance or rounding.
const FEWEST: usize = 5;
/// Conditions that distinguish columns; all others distinguish rows.
const COLUMNS: [&str; 3] = ["table", "layers", "place"];

/// The experiment and the column name of a number.
fn column(one: &Number) -> (&str, String) {
    let mut own = one.conditions.clone();
    own.retain(|(key, _)| COLUMNS.contains(&key.as_str()));
    (&one.experiment, format!("`{}` ({})", one.subject, joined(&own)).replace(" ()", ""))
}

/// The row of a number, its value as printed, and its interval.
fn row(one: &Number) -> (String, &str, Option<[f64; 2]>) {
    let name = format!("{}|{}|{:?}", joined(&one.without(&COLUMNS)), one.metric, one.repetition);
    (name, &one.printed, one.interval)
}

/// Two measurements never agree in every row to the last digit, intervals included.
pub fn copies(numbers: &[Number]) -> Vec<(&str, String)> {
    let columns = in_groups(numbers.iter().filter(|one| !one.is_derived()), |one| column(one));
    let columns = columns.into_iter().filter_map(|((experiment, name), all)| {
        let mut rows: Vec<_> = all.into_iter().map(row).collect();
        rows.sort_by(|one, other| one.0.cmp(&other.0));
        let is_telling = rows.len() >= FEWEST && rows.iter().any(|row| row.1 != rows[0].1);
        is_telling.then_some((experiment, rows, name))
    });
    let alike = in_groups(columns, |(experiment, rows, _)| (*experiment, rows.clone()));
    let copied = alike.into_iter().filter(|(_, same)| same.len() > 1).map(|((experiment, rows), same)| {
        let names: Vec<String> = same.into_iter().map(|(.., name)| name).collect();
        let names = names.join(", ");
        (experiment, format!("{names}: the same number and interval in each of {} rows", rows.len()))
    });
    copied.collect()
}

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
        "columns that are copies",
        &table(&[("a", values), ("b", values), ("c", ["1.0", "2.0", "3.0", "4.0", "5.1"])]),
    );
    assert_eq!(
        evidence,
        ["`bare` (table=a), `bare` (table=b): the same number and interval in each of 5 rows"]
    );
    assert_eq!(
        fired(
            "columns that are copies",
            &table(&[("a", values), ("b", ["1.0", "2.0", "3.0", "4.0", "5.00"])])
        ),
        [""; 0]
    );
}

#[test]
fn few_rows_and_rows_that_are_all_alike_show_nothing() {
    let mut few = table(&[("a", ["1", "2", "3", "4", "5"]), ("b", ["1", "2", "3", "4", "5"])]);
    few.retain(|one| one.condition("op") != Some("4"));
    assert_eq!(fired("columns that are copies", &few), [""; 0]);
    assert_eq!(fired("columns that are copies", &table(&[("a", ["0.3"; 5]), ("b", ["0.3"; 5])])), [""; 0]);
}

#[test]
fn another_interval_is_another_measurement() {
    let values = ["1.0", "2.0", "3.0", "4.0", "5.0"];
    let mut numbers = table(&[("a", values), ("b", values)]);
    numbers[0].interval = Some([0.9, 1.1]);
    assert_eq!(fired("columns that are copies", &numbers), [""; 0]);
}

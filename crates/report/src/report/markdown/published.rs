//! What others published, beside ours: each source with its cautions and what our rules find in its numbers, folded
//! away. No verdict stands here, and nothing is made of both sides.

use super::experiment::shown;
use crate::document::markdown::{Column, Page, escaped};
use crate::report::model::{Beside, BesideRow, Caution, Ours, Quantity, Reference, Report, Standing};

/// Every source that was asked for.
pub(super) fn references(page: &mut Page, report: &Report) {
    if report.references.is_empty() {
        return;
    }
    page.paragraph("### Published by others");
    page.paragraph(
        "Taken on other machines, kernels and programs: shown beside ours, with what is wrong with them. No verdict, ratio or \
         average is made of both.",
    );
    for reference in &report.references {
        page.folded(&escaped(&reference.title), |page| source(page, reference));
    }
}

fn source(page: &mut Page, reference: &Reference) {
    let place = reference.url.as_deref().map_or("not public".to_owned(), escaped);
    page.list([
        format!("{}: {place}; licence: {}", escaped(&reference.source), escaped(&reference.licence)),
        format!(
            "on: {}; {}; {}",
            escaped(&reference.hardware),
            escaped(&reference.kernel),
            escaped(&reference.engines)
        ),
        format!("how: {}", escaped(&reference.method)),
    ]);
    page.list(reference.cautions.iter().map(caution).chain(reference.doubts.iter().map(|doubt| {
        format!(
            "**suspect, {}**: {}: {}; probably: {}",
            doubt.rule,
            escaped(&doubt.experiment),
            escaped(&doubt.evidence),
            escaped(&doubt.mechanism)
        )
    })));
    for table in &reference.tables {
        beside(page, table);
    }
}

fn caution(caution: &Caution) -> String {
    let head = match caution.standing {
        Standing::Shown => "caution",
        Standing::Guess => "caution, a guess",
    };
    match caution.about.is_empty() {
        true => format!("**{head}**: {}", escaped(&caution.text)),
        false => {
            format!("**{head}**: {}: {}", escaped(&caution.about.join(", ")), escaped(&caution.text))
        }
    }
}

fn beside(page: &mut Page, table: &Beside) {
    let what = match table.quantity {
        Quantity::Value => "",
        Quantity::Difference => ", difference from bare",
    };
    page.paragraph(&format!(
        "**`{}` of {}{what}, beside their {}.** Not alike: {}",
        table.metric,
        table.experiment,
        escaped(&table.published_experiment),
        escaped(&table.differs)
    ));
    let columns = ["published subject", "conditions", "published", "ours"].map(Column::text);
    let rows: Vec<_> = table.rows.iter().map(|one| row(table, one)).collect();
    page.table(&columns, &rows);
}

fn row(table: &Beside, row: &BesideRow) -> Vec<String> {
    let ours: Vec<String> = row.ours.iter().map(|one| own(table, one)).collect();
    let ours = match ours.is_empty() {
        true => escaped(&format!("none in this run (it takes {}, {})", row.subject, table.conditions)),
        false => ours.join("; "),
    };
    vec![escaped(&row.subject), escaped(&row.conditions), escaped(&row.published_in_words()), ours]
}

fn own(table: &Beside, one: &Ours) -> String {
    let setting = if one.setting.is_empty() { String::new() } else { format!(" ({})", one.setting) };
    format!(
        "{}: median {} of {}{}",
        escaped(&one.label),
        shown(table.unit, &one.estimate),
        one.estimate.rounds,
        escaped(&setting)
    )
}

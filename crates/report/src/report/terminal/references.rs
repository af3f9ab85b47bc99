//! What others published, beside ours: the source, what is wrong with it, their numbers and ours. No verdict stands here.

use crate::document::Tone;
use crate::document::page::Page;
use crate::report::model::{Beside, Caution, Ours, Quantity, Reference, Report, Standing};
use crate::report::text::with_interval;
use crate::units::Unit;

/// Every source that was asked for.
pub(super) fn references(page: &mut Page, report: &Report) {
    for reference in &report.references {
        page.title(Tone::Strong, &format!("published: {}", reference.source));
        source(page, reference);
        for caution in &reference.cautions {
            page.paragraph(Tone::Open, head(caution), &told(caution));
        }
        for doubt in &reference.doubts {
            page.paragraph(Tone::Alarm, "  suspect: ", &format!("{}: {}", doubt.rule, doubt.evidence));
        }
        for table in &reference.tables {
            beside(page, table);
        }
    }
    if !report.references.is_empty() {
        page.gap();
        let why = "Published numbers were taken on other machines, kernels and programs: they are shown beside ours, and no \
                   verdict, ratio or average is made of both.";
        page.paragraph(Tone::Faint, "", why);
    }
}

fn source(page: &mut Page, reference: &Reference) {
    let url = reference.url.as_deref().unwrap_or("not public");
    page.paragraph(Tone::Plain, "  ", &format!("{}, {url}; licence: {}", reference.title, reference.licence));
    page.paragraph(
        Tone::Plain,
        "  on    ",
        &format!("{}; {}; {}", reference.hardware, reference.kernel, reference.engines),
    );
    page.paragraph(Tone::Plain, "  how   ", &reference.method);
}

fn head(caution: &Caution) -> &'static str {
    match caution.standing {
        Standing::Shown => "  caution: ",
        Standing::Guess => "  caution, a guess: ",
    }
}

fn told(caution: &Caution) -> String {
    match caution.about.is_empty() {
        true => caution.text.clone(),
        false => format!("{}: {}", caution.about.join(", "), caution.text),
    }
}

fn beside(page: &mut Page, table: &Beside) {
    page.gap();
    let what = match table.quantity {
        Quantity::Value => String::new(),
        Quantity::Difference => ", difference from bare".to_owned(),
    };
    let title =
        format!("{} {}{what}, beside their {}", table.experiment, table.metric, table.published_experiment);
    page.line(&[(Tone::Plain, "  "), (Tone::Strong, &title)]);
    page.paragraph(Tone::Faint, "  not alike: ", &table.differs);
    for row in &table.rows {
        page.line(&[
            (Tone::Plain, "    "),
            (Tone::Strong, &row.subject),
            (Tone::Faint, &format!("  {}", row.conditions)),
        ]);
        page.paragraph(Tone::Plain, "      published  ", &row.published_in_words());
        let ours = match row.ours.is_empty() {
            true => format!("none in this run (it takes `{}`, {})", row.subject, table.conditions),
            false => row.ours.iter().map(|one| own(table.unit, one)).collect::<Vec<_>>().join("; "),
        };
        page.paragraph(Tone::Plain, "      ours       ", &ours);
    }
}

fn own(unit: Unit, one: &Ours) -> String {
    let interval = one.estimate.interval.map(|interval| (interval.low, interval.high));
    let shown = with_interval(unit, one.estimate.value, interval);
    let setting = if one.setting.is_empty() { String::new() } else { format!(" ({})", one.setting) };
    format!("{}: median {shown} of {}{setting}", one.label, one.estimate.rounds)
}

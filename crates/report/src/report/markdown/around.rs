//! What stands around the numbers: failures, warnings, and folded away the environment, how it was measured and how to
//! repeat it.

use crate::document::markdown::{Column, Page, escaped, sentence};
use crate::report::model::Report;
use crate::report::{Look, head, text};
use crate::units::counted;

/// Warnings that are told in full.
const IN_FULL: usize = 10;

pub(super) fn failures(page: &mut Page, report: &Report) {
    if !report.failures.is_empty() {
        page.paragraph("### Failures");
        page.list(report.failures.iter().map(|one| {
            let settings: Vec<String> =
                one.settings.iter().filter(|one| !one.is_empty()).map(|one| escaped(one)).collect();
            let settings =
                if settings.is_empty() { String::new() } else { format!(" ({})", settings.join(", ")) };
            format!(
                "**{}** in {}{settings}: {}, {} of {}: {}",
                escaped(&one.label),
                one.experiment,
                one.class,
                one.times,
                counted(one.planned, "sample"),
                escaped(&one.reason)
            )
        }));
    }
    if !report.unavailable.is_empty() {
        page.paragraph("### Found, but not usable");
        page.list(
            report.unavailable.iter().map(|(name, why)| format!("**{}**: {}", escaped(name), escaped(why))),
        );
    }
}

pub(super) fn warnings(page: &mut Page, report: &Report) {
    let told: Vec<_> =
        report.notices.iter().filter(|one| !matches!(one.kind, "failures" | "skipped")).collect();
    if told.is_empty() {
        return;
    }
    page.paragraph("### Warnings");
    page.list(
        told.iter().take(IN_FULL).map(|one| format!("{} _({})_", sentence(&one.seen), sentence(&one.remedy))),
    );
    if told.len() > IN_FULL {
        page.paragraph(&format!("_and {} more; the JSON report has all._", told.len() - IN_FULL));
    }
}

pub(super) fn environment(page: &mut Page, report: &Report, look: &Look) {
    page.folded("environment, programs, how it was measured and how to repeat it", |page| {
        let rows: Vec<_> =
            report.machine.iter().map(|(name, fact)| vec![escaped(name), escaped(fact)]).collect();
        page.table(&["fact", "value"].map(Column::text), &rows);
        let programs = report.programs.iter().map(|one| {
            let hash: String = one.sha256.chars().take(12).collect();
            vec![escaped(&one.role), escaped(&one.path), escaped(&one.version), escaped(&hash)]
        });
        let programs: Vec<_> = programs.collect();
        page.table(&["program", "path", "version", "SHA-256"].map(Column::text), &programs);
        let tags: Vec<String> =
            report.tags.iter().map(|(key, value)| escaped(&format!("{key}={value}"))).collect();
        page.list(
            [
                format!("{}; {}", escaped(&head::rounds(report)), counted(report.samples, "sample")),
                escaped(&head::carry_over(report)),
                format!(
                    "one machine ({}), one boot, and one daemon of each engine: n = 1 in each of these",
                    escaped(&report.host)
                ),
                format!("probe {}", escaped(&report.probe)),
            ]
            .into_iter()
            .chain((!tags.is_empty()).then(|| format!("tags: {}", tags.join(" ")))),
        );
        let place = text::clean(&look.place);
        let all = format!("dunnage report {place} --format json");
        let commands = head::repeat(report);
        if !commands.is_empty() {
            page.paragraph("To measure the same again, and in the same order:");
            page.code(&commands);
        }
        page.paragraph("Every number of it:");
        page.code(&[all]);
    });
}

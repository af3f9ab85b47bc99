//! What each subject adds to a job of the reader's: a line each, settings beside each other.

use crate::document::Tone;
use crate::document::page::Page;
use crate::report::model::{JOB_HOLDS, JobShare, Report};
use crate::report::text::{left, width, with_interval};
use crate::units::Unit;

/// Settings that fit beside each other in 80 columns.
const BESIDE: usize = 2;
/// The columns of one setting.
const COLUMN: usize = 25;

pub(super) fn job(page: &mut Page, report: &Report) {
    let Some(job) = &report.job else { return };
    page.title(Tone::Strong, &format!("what is added to a job of {}", Unit::Seconds.format(job.length)));
    if job.shares.is_empty() {
        return page.paragraph(Tone::Plain, "  ", "nothing that this run measured happens once in a job");
    }
    for of_experiment in job.shares.chunk_by(|one, other| one.experiment == other.experiment) {
        let mut settings: Vec<&str> = Vec::new();
        for share in of_experiment {
            if !settings.contains(&share.values.as_str()) {
                settings.push(&share.values);
            }
        }
        for beside in settings.chunks(BESIDE) {
            columns(page, of_experiment, beside);
        }
    }
    page.paragraph(Tone::Faint, "  ", JOB_HOLDS);
}

fn columns(page: &mut Page, shares: &[JobShare], settings: &[&str]) {
    let room = page.width.saturating_sub(4 + COLUMN * settings.len());
    let mut labels: Vec<&str> = Vec::new();
    for share in shares {
        if !labels.contains(&share.label.as_str()) {
            labels.push(&share.label);
        }
    }
    let names = labels.iter().map(|label| width(label)).max().unwrap_or(0);
    let title = format!("each {}, more than {}", shares[0].occasion, shares[0].against);
    // What is told of must be read whole, if need be on a line of its own.
    let beside = if width(&title) <= room { title.as_str() } else { "" };
    if beside.is_empty() {
        page.line(&[(Tone::Faint, &format!("  {title}"))]);
    }
    let names = names.max(width(beside)).min(room);
    let heads: String = settings.iter().map(|setting| left(setting, COLUMN)).collect();
    page.line(&[(Tone::Faint, &format!("  {}  {heads}", left(beside, names)))]);
    for label in labels {
        let own = |setting: &&str| {
            let share = shares.iter().find(|share| share.label == label && share.values == **setting);
            let text = share.map_or(String::new(), |share| {
                let interval = share.share.interval.map(|one| (one.low, one.high));
                with_interval(Unit::Share, share.share.value, interval)
            });
            left(&text, COLUMN)
        };
        let values: String = settings.iter().map(own).collect();
        page.line(&[
            (Tone::Strong, &format!("  {}", left(label, names))),
            (Tone::Plain, &format!("  {values}")),
        ]);
    }
}

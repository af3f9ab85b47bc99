//! Reports must show every kind of run correctly in every format. Runs are scripted and their reports
//! compared with files under `tests/snapshots`; with `UPDATE_SNAPSHOTS` set, the files are written instead.

mod brief;
mod claims;
mod csv;
pub mod factors;
mod gobench;
mod json;
mod markdown;
pub mod pictures;
mod references;
pub mod scripted;
mod series;
mod terminal;

use std::path::Path;

use dunnage::document::shown;
use dunnage::record::Recorded;
use dunnage::report::{Look, Report};
use dunnage::verdict::analyse;

pub fn report(run: &Recorded) -> Report {
    Report::of(run, &analyse(run))
}

/// The report in a format that every verb has.
fn rendered(format: &str, report: &Report, look: &Look) -> String {
    shown(report, format, look).expect("a format")
}

/// Compares a text with its last reviewed version.
fn compare(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(name);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("it can be made");
        return std::fs::write(&path, text).expect("it can be written");
    }
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let difference = before.lines().zip(text.lines()).position(|(old, new)| old != new);
    assert!(
        before == text,
        "`{}` differs from line {:?}; look at it, then run with UPDATE_SNAPSHOTS=1\n\n{text}",
        path.display(),
        difference.map(|line| line + 1)
    );
}

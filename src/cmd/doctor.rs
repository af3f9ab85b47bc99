//! `dunnage doctor`: what can be measured here, what would distort it, and how to mend it.

use std::io::Write;

use anyhow::Result;

use crate::exit;
use crate::host::checks::{self, State, View};
use crate::session;
use crate::units::Nanos;

/// How long the machine is watched for what else runs on it.
const LOOK: Nanos = Nanos::from_millis(1000);

/// Runs the verb. The exit code is 4 when nothing can be measured here, and 0 otherwise: what only
/// distorts is the person's to weigh.
pub fn run() -> Result<i32> {
    let mut out = std::io::stdout().lock();
    let state = crate::subject::stage::state_directory()?;
    let view = View::gather(&state, LOOK);
    writeln!(out, "this machine")?;
    for (check, finding) in checks::run(&view) {
        writeln!(out, "  {:<8} {:<20} {}", finding.state.name(), check.name, finding.what)?;
        if let Some(fix) = finding.fix.filter(|_| finding.state >= State::Warning) {
            writeln!(out, "  {:<8} {:<20} fix: {fix}", "", "")?;
        }
    }
    let mut stage = session::begin(0, &mut super::tell)?;
    let found = session::find(session::default_subjects(), &mut stage, &mut super::tell);
    let found = found.inspect_err(|_| super::tell("the search for subjects was stopped"))?;
    writeln!(out, "subjects, each tried twice")?;
    for one in &found.candidates {
        let runtime =
            one.entry.runtime.as_deref().map(|name| format!(", runtime {name}")).unwrap_or_default();
        let words = format!("works: {} a launch until all is gone{runtime}", one.entry.launch);
        writeln!(out, "  {:<8} {:<34} {words}", "ok", one.entry.label)?;
    }
    for (name, why) in &found.unavailable {
        writeln!(out, "  {:<8} {name:<34} {}", "problem", why.reason)?;
        if let Some(remedy) = &why.remedy {
            writeln!(out, "  {:<8} {:<34} fix: {remedy}", "", "")?;
        }
    }
    if let Err(why) = &stage.listener {
        writeln!(out, "  {:<8} {:<20} {why}", "warning", "cpu-accounting")?;
    }
    let works = !found.candidates.is_empty();
    session::finish(found.candidates, &mut stage);
    session::end(stage);
    Ok(if works { exit::FINE } else { exit::NOTHING })
}

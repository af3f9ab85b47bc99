//! `dunnage doctor`: what can be measured here, what would distort it, and how to fix it.
//!
//! The machine's checks and a trial of every subject become rows of one kind. Deliberately absent: the checks themselves.

mod document;

use anyhow::Result;
use serde::Serialize;

use self::document::Examined;
use super::show::{self, Output, show};
use crate::document::Extent;
use crate::exit::{self, Special};
use crate::host::checks::{self, Finding, State, View};
use crate::host::facts;
use crate::plan::Ladder;
use crate::session::{self, Found, Leftovers, Session, Trial, Wanted};
use crate::subject;
use crate::subject::component;
use crate::subject::survey::{self, Programs};
use crate::subject::{Cause, Spec};
use crate::units::Nanos;

/// How long to watch the machine for other load.
const LOOK: Nanos = Nanos::from_millis(1000);
/// How long a program may take to answer and a launch to end, since the user is waiting.
const PATIENCE: Nanos = Nanos::from_millis(5000);

/// The result of a check, or of the trial of a subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The heading that it is listed under.
    pub group: &'static str,
    /// What was checked.
    pub name: String,
    /// Why it matters for measuring.
    pub matters: &'static str,
    /// What was found.
    #[serde(flatten)]
    pub finding: Finding,
}

/// Runs the verb. The exit code is 4 if nothing can be measured here, 1 if something that is installed does not work, and 0
/// otherwise: whether a distortion matters is up to the user.
pub fn run(format: &str, extent: Extent) -> Result<i32> {
    show::known::<Examined>(format)?;
    component::answer_within(PATIENCE);
    let state = subject::context::state_directory()?;
    let view = View::gather(&state, LOOK);
    let programs = Programs::gather();
    let row = |group, name: &str, matters, finding| Row { group, name: name.to_owned(), matters, finding };
    let of_machine =
        checks::run(&view).map(|(group, one, finding)| row(group, one.name, one.matters, finding));
    let mut rows: Vec<Row> = of_machine.collect();
    let of_programs = survey::run(&view, &programs).into_iter();
    rows.extend(of_programs.map(|(one, finding)| row(survey::GROUP, one.name, one.matters, finding)));
    let tried = subjects(&programs).or_else(|error| match error.downcast_ref::<Special>() {
        Some(_) => Err(error),
        None => Ok(vec![none_works(&error)]),
    });
    if let Ok(subjects) = &tried {
        rows.extend(subjects.iter().cloned());
    }
    let code = tried.as_ref().map(|subjects| verdict(&rows, subjects)).unwrap_or_default();
    show(&Examined::of(rows, facts::host_name()), format, &state, Output { extent, ..Output::default() })?;
    tried.map(|_| code)
}

fn verdict(rows: &[Row], subjects: &[Row]) -> i32 {
    if subjects.iter().all(|row| row.finding.state != State::Ok) {
        return exit::NOTHING;
    }
    if rows.iter().any(|row| row.finding.state == State::Problem) { exit::ERROR } else { exit::FINE }
}

/// Starts a container with every subject, as installed, since nothing else proves that it works. Subjects of an engine that
/// does not answer are skipped.
fn subjects(programs: &Programs) -> Result<Vec<Row>> {
    let mut session = Session::begin(0, Leftovers::Kept, super::tell)?;
    session.run.allowed = PATIENCE;
    let wanted = session::default_subjects().into_iter().filter(|one| one.ladder == Ladder::AsInstalled);
    let (silent, wanted): (Vec<_>, Vec<_>) = wanted.partition(|one| why_not(one, programs).is_some());
    let found = session.find(wanted, Trial::Once);
    found.inspect_err(|_| super::tell("interrupted while looking for subjects"))?;
    let mut rows = of_subjects(&session.found);
    rows.extend(silent.iter().filter_map(|one| {
        let question = why_not(one, programs)?;
        let finding = Finding::not_applicable(format!(
            "not tried, because its engine does not answer: see `{question}`"
        ));
        Some(of_subject(&one.spec.shown(), finding))
    }));
    Ok(rows)
}

/// Only for a subject with its defaults: another host or user may have an engine that answers.
fn why_not(wanted: &Wanted, programs: &Programs) -> Option<&'static str> {
    let plain = Spec { runtime: wanted.spec.runtime.clone(), ..Spec::plain(&wanted.spec.name) };
    programs.silent(&wanted.spec.name).filter(|_| wanted.spec == plain)
}

fn of_subject(name: &str, finding: Finding) -> Row {
    Row {
        group: "subjects",
        name: name.to_owned(),
        matters: "a subject works if the probe starts in it and finds the requested settings",
        finding,
    }
}

/// The row of all subjects if not even a session can begin, for example without a state directory.
fn none_works(error: &anyhow::Error) -> Row {
    let told = super::with_hints_last(error);
    let (what, hint) =
        told.split_once(super::HINT).unwrap_or((&told, "run `dunnage check -s bare` for details"));
    of_subject("all", Finding::problem(what).advice(hint))
}

fn of_subjects(found: &Found) -> Vec<Row> {
    let works = found.entries.iter().map(|entry| {
        let runtime = entry.runtime.as_deref().filter(|runtime| !entry.label.ends_with(*runtime));
        let runtime = runtime.map(|name| format!(", runtime {name}")).unwrap_or_default();
        of_subject(&entry.label, Finding::ok(format!("works: first launch in {}{runtime}", entry.launch)))
    });
    let fails = found.unavailable.iter().map(|(name, why)| {
        let absent = why.cause == Cause::NotInstalled;
        let finding = match absent {
            true => Finding::not_applicable(why.reason.clone()),
            false => Finding::problem(why.reason.clone()),
        };
        of_subject(name, why.remedy.iter().fold(finding, |finding, remedy| finding.advice(remedy.clone())))
    });
    works.chain(fails).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::Unavailable;

    pub(super) fn row(name: &str, finding: Finding) -> Row {
        Row { group: "group", name: name.to_owned(), matters: "it matters", finding }
    }

    #[test]
    fn the_exit_code_tells_broken_from_distorted_and_from_nothing() {
        let (ok, warning, problem) =
            (row("a", Finding::ok("")), row("b", Finding::warning("")), row("c", Finding::problem("")));
        let code = |rows: &[&Row]| {
            let rows: Vec<Row> = rows.iter().map(|row| (*row).clone()).collect();
            verdict(&rows, &rows)
        };
        assert_eq!(code(&[&ok, &warning]), exit::FINE);
        assert_eq!(code(&[&ok, &warning, &problem]), exit::ERROR);
        assert_eq!(code(&[&warning, &problem]), exit::NOTHING);
        assert_eq!(code(&[]), exit::NOTHING);
    }

    #[test]
    fn what_is_not_installed_is_no_problem_and_what_is_broken_is() {
        let absent = |reason: &str| Unavailable::not_installed(reason).with_remedy("fix it");
        let broken = |reason: &str| Unavailable::because(reason).with_remedy("fix it");
        let found = Found {
            entries: Vec::new(),
            unavailable: vec![
                ("podman".into(), absent("not installed")),
                ("podman+runc".into(), absent("the runtime `runc` is not installed")),
                ("docker".into(), broken("it says that something is not installed")),
            ],
            began: crate::units::Stamp(0),
            values: Default::default(),
        };
        let states: Vec<_> = of_subjects(&found).into_iter().map(|row| row.finding.state).collect();
        assert_eq!(states, [State::NotApplicable, State::NotApplicable, State::Problem]);
        assert!(of_subjects(&found).iter().all(|row| row.finding.fix.as_deref() == Some("fix it")));
    }
}

//! `lifecycle`: one container per sample, verb by verb.

use super::sample_of;
use crate::experiment::lifecycle::names;
use crate::experiment::{QUIET, Setting};
use crate::outcome::{Abort, Failure, FailureClass, Sample};
use crate::probe::Task;
use crate::subject::{Container, ContainerRequest, Entered, GRACE, RunContext, Span, Subject};
use crate::units::Nanos;

/// Longer than any stop of a program that handles SIGTERM, and shorter than any engine's stop timeout.
const PATIENCE: Nanos = Nanos::from_millis(8_000);
/// How often to check whether the probe is waiting.
const LOOKS: usize = 100;

/// Takes a sample.
pub fn measure(subject: &mut dyn Subject, _: &Setting, run: &RunContext) -> Result<Sample, Abort> {
    subject.machine().rest(run, QUIET)?;
    live(subject, run)
}

/// A running container of the subject whose program is ready to be stopped.
pub(super) fn ready<'a>(
    subject: &'a dyn Subject,
    request: &ContainerRequest,
    run: &'a RunContext,
) -> Result<Container<'a>, Abort> {
    let mut container = Container::create(subject, request, run)?;
    container.start()?;
    let entered = container.exec(Task::Enter)?;
    until_it_waits(&mut container, run, &entered)?;
    Ok(container)
}

fn live(subject: &dyn Subject, run: &RunContext) -> Result<Sample, Abort> {
    let mut container = Container::create(subject, &ContainerRequest::default(), run)?;
    let start = container.start()?;
    let entered = container.exec(Task::Enter)?;
    until_it_waits(&mut container, run, &entered)?;
    let stop = container.stop(GRACE)?;
    if stop.took() >= PATIENCE {
        let reason = format!(
            "`stop` took {}: the program inside did not get SIGTERM, or did not react to it",
            stop.took()
        );
        return Err(Failure { took: stop.took(), ..Failure::new(FailureClass::Treatment, reason) }.into());
    }
    let create = container.created();
    let remove = container.remove()?;
    let exec = Span { began: entered.spawned, ended: entered.returned };
    let named = [
        ([names::CREATE, names::CREATED], create),
        ([names::START, names::STARTED], start),
        ([names::EXEC, names::EXECED], exec),
        ([names::STOP, names::STOPPED], stop),
        ([names::REMOVE, names::REMOVED], remove),
    ];
    let ends = named.into_iter().flat_map(|([from, to], span)| [(from, span.began), (to, span.ended)]);
    Ok(sample_of(ends.collect(), &entered.treatment))
}

/// Checks, outside every timed interval, until the first process of the container waits for the signal. If
/// process ids are the host's, the signal ends it even when it does not wait.
fn until_it_waits(container: &mut Container<'_>, run: &RunContext, entered: &Entered) -> Result<(), Abort> {
    let own_ids =
        |entered: &Entered| entered.message.inside.namespaces.get("pid") != run.host.namespaces.get("pid");
    if !own_ids(entered) || entered.message.inside.awaits_term() != Some(false) {
        return Ok(());
    }
    for _ in 0..LOOKS {
        if container.exec(Task::Enter)?.message.inside.awaits_term() != Some(false) {
            return Ok(());
        }
    }
    let reason =
        format!("the first process of the container was not waiting for SIGTERM after {LOOKS} checks");
    Err(Failure::new(FailureClass::Environment, reason).into())
}

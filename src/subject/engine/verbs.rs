//! The life of a container by the verbs of a docker-like command line, each one command:
//! `create`, `start`, `exec`, `stop`, `rm`. Never with `--rm`: a container that removes itself has no
//! verb left to be measured.

use super::super::client::Terminal;
use super::super::verbs::{self, Entered, Span, Standing, Verbs};
use super::{Engine, Found};
use crate::image::EXECUTABLE;
use crate::outcome::{Abort, Failure, FailureClass};
use crate::probe::{LIMITS, PROBE};
use crate::subject::{Mount, Order, RunContext};
use crate::sys::spawn::Ended;

impl Engine {
    /// One verb on the container that stands.
    fn on_it(&self, run: &RunContext, verb: &str) -> Result<Ended, Abort> {
        let standing = self.standing.as_ref().ok_or_else(verbs::nothing_stands)?;
        let arguments: Vec<_> =
            self.arguments(&[verb, &standing.name]).into_iter().map(str::to_owned).collect();
        verbs::carry_out(run, &self.program(&arguments)?)
    }
}

impl Verbs for Engine {
    fn create_for(&mut self, run: &RunContext, mounts: &[Mount]) -> Result<Span, Abort> {
        let image = self.image.clone().expect("`prepare` provides the image before any verb");
        let standing = Standing::announce(run, &self.spec)?;
        let names = (standing.name.as_str(), image.as_str());
        let program = self.program(&self.making_arguments(&["create"], run, names, Order::Stay(mounts)));
        self.standing = Some(standing);
        let made = program.map_err(Abort::from).and_then(|program| verbs::carry_out(run, &program));
        // A command that ended by itself made nothing any more; one that was killed may have.
        let killed = |failure: &Failure| failure.class == FailureClass::Timeout;
        if matches!(&made, Err(Abort::Failed(failure)) if !killed(failure))
            && let Some(standing) = self.standing.take()
            && self.rm(&standing.name).is_ok()
        {
            run.cross_out(standing.entry);
        }
        Ok(verbs::span(&made?))
    }

    fn start(&mut self, run: &RunContext) -> Result<Span, Abort> {
        Ok(verbs::span(&self.on_it(run, "start")?))
    }

    fn enter(&mut self, order: Order<'_>, run: &RunContext) -> Result<Entered, Abort> {
        let standing = self.standing.as_ref().ok_or_else(verbs::nothing_stands)?;
        let tty = self.spec.get("tty") == Some("true");
        let mut verb = vec!["exec"];
        if tty {
            verb.push("--tty");
        }
        let words = order.words(self.limits().map(|_| LIMITS));
        verb.extend([standing.name.as_str(), EXECUTABLE, PROBE]);
        verb.extend(words.iter().map(String::as_str));
        let arguments: Vec<_> = self.arguments(&verb).into_iter().map(str::to_owned).collect();
        let terminal = if tty { Terminal::Yes } else { Terminal::No };
        let entered =
            verbs::enter(run, &self.program(&arguments)?, order.allowed(run), &self.expected(), terminal)?;
        if let Some(limits) = self.limits() {
            limits.check(&entered.message.inside)?;
        }
        self.check_mapping(&entered.message.inside)?;
        Ok(entered)
    }

    fn stop(&mut self, run: &RunContext) -> Result<Span, Abort> {
        Ok(verbs::span(&self.on_it(run, "stop")?))
    }

    fn delete(&mut self, run: &RunContext) -> Result<Span, Abort> {
        let ended = self.on_it(run, "rm")?;
        if let Some(standing) = self.standing.take() {
            run.cross_out(standing.entry);
        }
        Ok(verbs::span(&ended))
    }

    fn discard(&mut self, run: &RunContext) {
        let Some(standing) = self.standing.take() else { return };
        // A daemon whose client was killed may still make the container that is not there yet: then
        // the journal keeps it for whoever comes next.
        if matches!(self.rm(&standing.name), Ok(Found::Yes)) {
            run.cross_out(standing.entry);
        }
    }
}

//! A build of an image by the inner engine: it works if a step of it has run inside.

use dunnage_orders::work::Spin;

use super::{ALLOWED, Found, LOOK, Nest};
use crate::experiment::nested::INSIDE;
use crate::outcome::{Abort, Failure, FailureClass};
use crate::subject::nested::BUILT;
use crate::subject::{Entrypoint, Work};
use crate::units::Nanos;

/// How long its step takes, in which it is found.
const STEP: u64 = 500;

impl Nest<'_> {
    /// Builds an image with this builder, below the outer container with this first process.
    pub(super) fn built(&mut self, how: &str, place: &str, first: i32) -> Result<(), Abort> {
        if place != INSIDE {
            let reason = "the daemon outside builds, and keeps what it has built";
            return Err(Failure::new(FailureClass::Unsupported, reason).into());
        }
        let name = self.run.next_name();
        let work = Work::new(Spin { millis: STEP }, ALLOWED);
        let order = Entrypoint::Work(&work).words(None);
        let script = self.way.build(&name, &self.bound.image, &order, how)?;
        self.script("the build does not begin", &script, ALLOWED)?;
        let ended = format!("cat {BUILT}/code 2>/dev/null || true");
        let (mut place, mut left) = (None, ALLOWED.0);
        let code = loop {
            if let Some(found) = place.is_none().then(|| Found::of(&name, first, self.run)).flatten() {
                place = Some(found.place);
            }
            let code = self.script("the build cannot be asked", &ended, ALLOWED)?.output;
            if !code.trim().is_empty() {
                break code;
            }
            if left <= 0 {
                return Err(self.why(Failure::new(
                    FailureClass::Timeout,
                    format!("the build has not ended in {ALLOWED}"),
                )));
            }
            self.subject.machine().rest(self.run, LOOK)?;
            left -= LOOK.0;
        };
        match (code.trim(), place) {
            ("0", Some(INSIDE)) => Ok(()),
            ("0", _) => Err(self.why(Failure::new(
                FailureClass::WrongOutput,
                "the build says that it succeeded, and no step of it was seen inside",
            ))),
            _ => Err(self.why(Failure::new(FailureClass::Crash, "the build failed"))),
        }
    }

    /// The failure with the end of what the build has said.
    fn why(&mut self, failure: Failure) -> Abort {
        let said = self.script("it has said nothing", &format!("tail -n 8 {BUILT}/log"), Nanos(ALLOWED.0));
        match said {
            Ok(said) => failure.with_words(said.output.as_bytes()).into(),
            Err(Abort::Failed(_)) => failure.into(),
            Err(abort) => abort,
        }
    }
}

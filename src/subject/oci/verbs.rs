//! The verbs of the OCI runtime specification: `create`, `start`, `exec` (an extension that all runtimes
//! have), `kill`, `delete`. `kill` returns before the program has ended, so `stop` here is `kill` and then a
//! wait on a pidfd until it has. `stats` is `events --stats`, which crun does not have. What the program
//! writes goes where the output of `create` goes, so there are no logs.

use serde_json::Value;

use super::super::client::Terminal;
use super::{Bundle, Oci};
use crate::outcome::{Abort, Failure, OrEnvironment};
use crate::resource::Found;
use crate::subject::Entrypoint;
use crate::subject::draft::{Draft, Entered, First, Said, Span, Verbs, no_verb, nothing_runs};
use crate::subject::limits::Limits;
use crate::subject::roots::Fresh;

/// A container of a runtime.
pub(super) struct OfRuntime<'a> {
    pub oci: &'a Oci,
    pub draft: Draft<'a>,
    pub bundle: Bundle,
    /// Its writable root.
    pub _root: Fresh,
    /// Set by `create`.
    pub first: Option<First>,
}

impl OfRuntime<'_> {
    /// A verb that makes the container.
    fn make(&mut self, verb: &[&str]) -> Result<Span, Abort> {
        let bundle = self.bundle.directory().to_string_lossy();
        let file = self.draft.directory.join("first.pid");
        let of_both = ["--bundle", &bundle, "--pid-file", &file.to_string_lossy(), &self.draft.name];
        let span = self.draft.carry_out(&self.oci.client, &[verb, &of_both].concat())?;
        self.first = Some(First::of_file(&file, &self.oci.about.spec.name)?);
        Ok(span)
    }
}

impl Verbs for OfRuntime<'_> {
    fn create(&mut self) -> Result<Span, Abort> {
        self.make(&["create"])
    }

    fn run(&mut self) -> Result<Span, Abort> {
        self.make(&["run", "--detach"])
    }

    fn start(&mut self) -> Result<Span, Abort> {
        self.draft.carry_out(&self.oci.client, &["start", &self.draft.name])
    }

    fn exec(&mut self, entrypoint: Entrypoint<'_>) -> Result<Entered, Abort> {
        // runc takes it from the container's configuration, crun only from its own option.
        let own =
            if self.oci.about.spec.name == "crun" { &["exec", "--no-new-privs"][..] } else { &["exec"] };
        self.draft.enter(&self.oci.client, own, entrypoint, Terminal::No)
    }

    fn stop(&mut self, grace: u32) -> Result<Span, Abort> {
        let first = self.first.as_ref().ok_or_else(nothing_runs)?;
        let kill = |signal: &'static str| vec!["kill", &self.draft.name, &signal["SIG".len()..]];
        self.draft.stop(&self.oci.client, kill, first, grace)
    }

    fn remove(&mut self) -> Result<Span, Abort> {
        // runsc counts a sandbox as running until it has been reaped.
        let own = if self.oci.about.spec.name == "runsc" { &["delete", "--force"][..] } else { &["delete"] };
        self.draft.carry_out(&self.oci.client, &[own, &[&self.draft.name]].concat())
    }

    fn stats(&mut self) -> Result<Said, Abort> {
        if self.oci.about.spec.name == "crun" {
            return Err(no_verb("stats"));
        }
        self.draft.ask(&self.oci.client, &["events", "--stats", &self.draft.name])
    }

    fn update(&mut self, limits: &Limits) -> Result<Span, Abort> {
        let file = self.draft.directory.join("limits.json");
        std::fs::write(&file, Value::from(limits.resources()).to_string())
            .or_environment(format_args!("cannot write `{}`", file.display()))?;
        let words = ["update", "--resources", &file.to_string_lossy(), &self.draft.name];
        self.draft.carry_out(&self.oci.client, &words)
    }

    fn first_process(&mut self) -> Result<i32, Failure> {
        self.first.as_ref().map(|first| first.pid).ok_or_else(nothing_runs)
    }

    fn discard(&mut self) -> Result<Found, Failure> {
        self.oci.discard(&self.draft.name, &self.draft.name)
    }
}

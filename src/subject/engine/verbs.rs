//! The verbs of a docker-like command line, one command each: `create`, `start`, `exec`, `stop`, `rm` and more. With
//! `--rm` only on request, since then `rm` cannot be measured.

use std::net::{IpAddr, SocketAddr};

use super::super::client::Terminal;
use super::{Engine, rm};
use crate::outcome::{Abort, Failure};
use crate::resource::Found;
use crate::subject::Entrypoint;
use crate::subject::draft::{Draft, Entered, Published, Said, Span, Verbs, seconds};
use crate::subject::limits::Limits;

/// A container of an engine.
pub(super) struct OfEngine<'a> {
    pub engine: &'a Engine,
    pub draft: Draft<'a>,
}

impl OfEngine<'_> {
    /// A verb that makes the container.
    fn make(&self, verb: &str) -> Result<Span, Abort> {
        let Draft { run, name, .. } = &self.draft;
        let goes = self.draft.request.may_go && !self.engine.keeps();
        let verb: Vec<&str> = verb.split(' ').chain(goes.then_some("--rm")).collect();
        let arguments = self.engine.making_arguments(&verb, run, name, self.draft.entrypoint());
        self.draft.carry_out(&self.engine.client, &arguments)
    }

    fn verb(&self, verb: &str) -> Result<Span, Abort> {
        self.draft.carry_out(&self.engine.client, &[verb, &self.draft.name])
    }
}

impl Verbs for OfEngine<'_> {
    fn create(&mut self) -> Result<Span, Abort> {
        self.make("create")
    }

    fn run(&mut self) -> Result<Span, Abort> {
        self.make("run --detach")
    }

    fn start(&mut self) -> Result<Span, Abort> {
        self.verb("start")
    }

    fn exec(&mut self, entrypoint: Entrypoint<'_>) -> Result<Entered, Abort> {
        let terminal = self.engine.terminal();
        let verb = if terminal == Terminal::Yes { &["exec", "--tty"][..] } else { &["exec"] };
        self.draft.enter(&self.engine.client, verb, entrypoint, terminal)
    }

    fn stop(&mut self, grace: u32) -> Result<Span, Abort> {
        let words = ["stop", "-t", &grace.to_string(), &self.draft.name];
        let allowed = self.draft.run.allowed + seconds(grace);
        Ok(Span::of(&self.draft.ended(allowed, &self.engine.client, &words)?))
    }

    fn remove(&mut self) -> Result<Span, Abort> {
        self.verb("rm")
    }

    fn end(&mut self) -> Result<Span, Abort> {
        let words = rm(&self.engine.about.spec, &self.draft.name);
        self.draft.carry_out(&self.engine.client, &words)
    }

    fn first_process(&mut self) -> Result<i32, Failure> {
        let words = ["inspect", "--format", "{{.State.Pid}}", &self.draft.name];
        let pid = self.engine.client.ask(&words)?.trim().parse();
        let runs = pid.ok().filter(|pid| *pid > 0);
        runs.ok_or_else(|| Failure::environment(format!("`{}` does not run", self.draft.name)))
    }

    fn ports(&mut self) -> Result<Vec<Published>, Failure> {
        if self.draft.entrypoint().ports(&self.engine.about.spec).is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.engine.client.ask(&["port", &self.draft.name])?.lines().filter_map(published).collect())
    }

    fn logs(&mut self) -> Result<Said, Abort> {
        let Draft { run, name, .. } = &self.draft;
        // Both engines have the option; podman 5 warns of a machine with cgroup v1 at every command.
        let words = ["--log-level", "error", "logs", name];
        let ended = self.draft.ended(run.allowed, &self.engine.client, &words)?;
        Ok(Said::of(&ended, &[&ended.stdout, &ended.stderr]))
    }

    fn stats(&mut self) -> Result<Said, Abort> {
        let words = ["stats", "--no-stream", "--format", "{{json .}}", &self.draft.name];
        self.draft.ask(&self.engine.client, &words)
    }

    fn update(&mut self, limits: &Limits) -> Result<Span, Abort> {
        let swap = limits.with_swap().map(|bytes| ("--memory-swap", bytes.to_string()));
        let options: Vec<_> = limits.options().chain(swap).collect();
        let options = options.iter().flat_map(|(option, value)| [*option, value]);
        let words: Vec<_> = ["update"].into_iter().chain(options).chain([&*self.draft.name]).collect();
        self.draft.carry_out(&self.engine.client, &words)
    }

    fn discard(&mut self) -> Result<Found, Failure> {
        self.engine.rm(&self.draft.name)
    }
}

/// A line such as `80/tcp -> 127.0.0.1:49153`; some clients print IPv6 addresses without brackets.
fn published(line: &str) -> Option<Published> {
    let (inside, host) = line.split_once(" -> ")?;
    let (address, port) = host.trim().rsplit_once(':')?;
    let address: IpAddr = address.trim_matches(['[', ']']).parse().ok()?;
    let host = SocketAddr::new(address, port.parse().ok()?);
    Some(Published { inside: inside.split('/').next()?.parse().ok()?, host })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_ports_are_read() {
        let found = published("80/tcp -> 127.0.0.1:49153").unwrap();
        assert_eq!((found.inside, found.host.to_string().as_str()), (80, "127.0.0.1:49153"));
        for line in ["80/tcp -> [::1]:80", "80/udp -> ::1:80"] {
            assert_eq!(published(line).map(|port| port.host.to_string()).as_deref(), Some("[::1]:80"));
        }
        assert_eq!((published(""), published("no port")), (None, None));
    }
}

//! The floor taken apart: launches with some of its pieces, and single pieces.

use super::{Floor, cgroups, launch_prepared, no_way, program_in};
use crate::outcome::{Abort, Failure, FailureClass};
use crate::probe::Task;
use crate::subject::pieces::{Apart, Making, Piece, Pieces, Primitive, Timed};
use crate::subject::resources::container;
use crate::subject::treatment::{Cgroup, Expected, Network, Own};
use crate::subject::{Launch, RunContext};
use crate::sys::container::{LaunchError, LaunchFailed};
use crate::sys::raw;

impl Apart for Floor {
    fn whole(&self) -> Pieces {
        self.prepared().making().pieces
    }

    fn least(&self) -> Pieces {
        match self.whole().has(Piece::User) {
            true => Pieces::NONE.with(Piece::User),
            false => Pieces::NONE,
        }
    }

    fn get_ready(&mut self, making: Making) -> Result<(), Abort> {
        let there = self.variants.iter().any(|own| own.making() == making);
        if there || making == self.prepared().making() {
            return Ok(());
        }
        if let Some(why) = no_way(making.way, making.mounts, &cgroups()?) {
            return Err(Failure::new(FailureClass::Unsupported, why).into());
        }
        let program = program_in(making.pieces, &self.executable);
        let variant = self.prepared().vary(making, program);
        let variant = variant.map_err(|error| Failure::environment(format!("{error:#}")))?;
        self.variants.push(variant);
        Ok(())
    }

    fn launch_with(&mut self, making: Making, run: &RunContext) -> Result<Launch, Abort> {
        self.get_ready(making)?;
        let mut all = self.prepared.as_deref_mut().into_iter().chain(&mut self.variants);
        let prepared = all.find(|one| one.making() == making).expect("`get_ready` has made it");
        let pieces = making.pieces;
        let blind = pieces.has(Piece::Mounts) && !pieces.has(Piece::Filesystems);
        let expected = expected_of(pieces);
        let expected = if blind { without_a_view(&expected) } else { expected };
        launch_prepared(&self.about.spec, prepared, &expected, class_of, Task::Start.into(), run)
    }

    fn time(&mut self, primitive: Primitive, run: &RunContext) -> Result<Timed, Abort> {
        let name = run.next_name();
        let entry = run.note(container(&self.about.spec, &name))?;
        let prepared = self.prepared.as_mut().expect("`prepare` comes before any launch");
        let timed = prepared.time(primitive, &name);
        let clean = timed.as_ref().err().is_none_or(|failed| failed.cleanup.is_none());
        if clean {
            run.cross_out(entry);
        }
        timed.map_err(|failed| {
            let class = class_of(&failed);
            Failure::new(class, failed.told()).into()
        })
    }
}

/// What the probe must find in a container with exactly these pieces.
pub(super) fn expected_of(pieces: Pieces) -> Expected {
    let own = |piece| if pieces.has(piece) { Own::Private } else { Own::Host };
    Expected {
        network: if pieces.has(Piece::Network) { Network::Loopback } else { Network::Host },
        pid: own(Piece::Pid),
        user: own(Piece::User),
        mount: own(Piece::Mounts),
        ipc: own(Piece::Ipc),
        uts: own(Piece::Uts),
        // Without cgroup mounts, a cgroup namespace shows the host's.
        cgroup: Cgroup::Any,
        no_new_privs: pieces.has(Piece::NoNewPrivileges).then_some(1),
        seccomp: pieces.has(Piece::Seccomp).then_some(2),
        capabilities: pieces.has(Piece::Capabilities).then_some(raw::DOCKER_CAPABILITIES),
        root: if pieces.has(Piece::Overlay) { &["overlay"] } else { &[] },
        ..Expected::container()
    }
}

/// In a root without `/proc` the probe sees only the results of system calls, and no namespaces or mounts.
fn without_a_view(expected: &Expected) -> Expected {
    let Expected { no_new_privs, seccomp, capabilities, .. } = *expected;
    Expected { no_new_privs, seccomp, capabilities, ..Expected::anything() }
}

/// Why a piece could not be made.
fn class_of(failed: &LaunchFailed) -> FailureClass {
    let errno = match &failed.error {
        LaunchError::Impossible(_) | LaunchError::OverlayInUserNamespace(_) => {
            return FailureClass::Unsupported;
        }
        LaunchError::Step(error) => error.errno,
        LaunchError::Clone(error) => error.raw_os_error().unwrap_or(0),
        LaunchError::Setup(_) | LaunchError::Name(_) => 0,
    };
    match errno {
        libc::EPERM | libc::EACCES => FailureClass::Permission,
        libc::EOPNOTSUPP | libc::ENOSYS | libc::ENODEV | libc::EINVAL => FailureClass::Unsupported,
        _ => FailureClass::Environment,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::steps::StepError;

    #[test]
    fn what_is_expected_follows_the_pieces() {
        let all = expected_of(Pieces::engine());
        assert_eq!((all.mount, all.user, all.seccomp), (Own::Private, Own::Host, Some(2)));
        assert_eq!(all.root, ["overlay"]);
        let none = expected_of(Pieces::NONE);
        assert_eq!(none, Expected { network: Network::Host, ..Expected::bare() });
        assert_eq!(without_a_view(&all).seccomp, Some(2));
    }

    #[test]
    fn a_refusal_is_a_permission_and_a_lack_is_unsupported() {
        let step = |errno| StepError { step: "make", path: "".into(), errno };
        let class = |error: LaunchError| class_of(&LaunchFailed { error, cleanup: None });
        assert_eq!(class(step(libc::EPERM).into()), FailureClass::Permission);
        assert_eq!(class(step(libc::EOPNOTSUPP).into()), FailureClass::Unsupported);
        assert_eq!(class(step(libc::ENOSPC).into()), FailureClass::Environment);
        assert_eq!(class(LaunchError::Impossible("no".into())), FailureClass::Unsupported);
    }
}

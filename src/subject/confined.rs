//! Limits of processes (`ulimit`) and the CPUs that they may use (`cpuset`): what a subject asks for, and the
//! check that the probe found it inside. Those of a cgroup are in `limits`.

use super::Unavailable;
use super::spec::Spec;
use crate::probe::inherited::Inherited;
use crate::sys::affinity;
use crate::sys::bounds::Bounds;
use crate::sys::identity::Limit;
use dunnage_analysis::subject::limits::{Ulimit, cpus_text, parse_cpus, parse_ulimits, ulimits_text};

/// What a subject asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Confined {
    /// Resource limits.
    pub ulimits: Vec<Ulimit>,
    /// CPUs, lowest first; none for all that are inherited.
    pub cpus: Vec<usize>,
}

impl Confined {
    /// What this subject asks for; nothing if it has neither key.
    pub fn of(spec: &Spec) -> Confined {
        Confined {
            ulimits: spec.get("ulimit").and_then(parse_ulimits).unwrap_or_default(),
            cpus: spec.get("cpuset").and_then(parse_cpus).unwrap_or_default(),
        }
    }

    /// Whether it asks for nothing.
    pub fn is_empty(&self) -> bool {
        self.ulimits.is_empty() && self.cpus.is_empty()
    }

    /// The differences from what the probe found.
    pub(super) fn faults(&self, found: Option<&Inherited>) -> Vec<String> {
        let differs = |asked: &&Ulimit| found.and_then(|found| found.limit(asked.resource)) != Some(**asked);
        let limit = |asked: &Ulimit| {
            let found = found.and_then(|found| found.limit(asked.resource));
            let found = found.map_or("an unknown one".to_owned(), |found| found.value());
            format!("a limit `{}` of {} was asked for and {found} is in force", asked.name(), asked.value())
        };
        let mut all: Vec<String> = self.ulimits.iter().filter(differs).map(limit).collect();
        let allowed = found.map(|found| &found.cpus[..]).unwrap_or_default();
        if !self.cpus.is_empty() && self.cpus != allowed {
            let (asked, allowed) = (cpus_text(&self.cpus), cpus_text(allowed));
            all.push(format!("the CPUs {asked} were asked for and it may use {allowed}"));
        }
        all
    }

    /// What the probe found of it: facts of the treatment.
    pub(super) fn found(&self, found: Option<&Inherited>) -> Vec<(&'static str, String)> {
        let Some(found) = found else { return Vec::new() };
        let asked = |one: &Ulimit| self.ulimits.iter().any(|asked| asked.resource == one.resource);
        let limits: Vec<Ulimit> = found.limits.iter().copied().filter(asked).collect();
        let limits = (!limits.is_empty()).then(|| ("ulimit", ulimits_text(&limits)));
        let cpus = (!self.cpus.is_empty()).then(|| ("cpuset", cpus_text(&found.cpus)));
        limits.into_iter().chain(cpus).collect()
    }

    /// The same for a process that dunnage starts, if it may have it.
    pub fn bounds(&self) -> Result<Option<Bounds>, Unavailable> {
        if self.is_empty() {
            return Ok(None);
        }
        let limit = |one: &Ulimit| Limit { resource: one.resource as u32, soft: one.soft, hard: one.hard };
        let bounds = Bounds {
            limits: self.ulimits.iter().map(limit).collect(),
            cpus: self.cpus.clone(),
            ..Bounds::default()
        };
        let unknown = |error| Unavailable::because(format!("cannot read dunnage's own limits: {error}"));
        let (bounds, refused) = bounds.attainable().map_err(unknown)?;
        if let Some(first) = refused.first() {
            let reason =
                format!("`{}` cannot be raised from {} to {} here", first.what, first.got, first.wanted);
            return Err(Unavailable::because(reason).with_remedy(format!(
                "lower `ulimit`, or start dunnage with CAP_SYS_RESOURCE or from a shell whose hard limit is {}",
                first.wanted.rsplit(':').next().unwrap_or_default()
            )));
        }
        self.check_cpus()?;
        Ok(Some(bounds))
    }

    /// Refuses CPUs that this machine does not give to dunnage; the kernel would leave them out without an error.
    pub fn check_cpus(&self) -> Result<(), Unavailable> {
        let allowed = affinity::allowed().unwrap_or_else(|_| self.cpus.clone());
        if self.cpus.iter().all(|cpu| allowed.contains(cpu)) {
            return Ok(());
        }
        let (asked, allowed) = (cpus_text(&self.cpus), cpus_text(&allowed));
        Err(Unavailable::because(format!("`cpuset={asked}` names CPUs that dunnage may not use"))
            .with_remedy(format!("choose among {allowed}")))
    }

    /// Options of docker and podman.
    pub fn options(&self) -> Vec<String> {
        let limit = |one: &Ulimit| ["--ulimit".to_owned(), format!("{}={}", one.name(), one.value())];
        let cpus = (!self.cpus.is_empty()).then(|| ["--cpuset-cpus".to_owned(), cpus_text(&self.cpus)]);
        self.ulimits.iter().map(limit).chain(cpus).flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::limits;

    fn asked(text: &str) -> Confined {
        Confined::of(&Spec::parse(text).unwrap())
    }

    fn found(soft: u64, cpus: &[usize]) -> Inherited {
        let limits = vec![Ulimit { resource: 7, soft, hard: 2048 }];
        Inherited { limits, cpus: cpus.to_vec(), ..Inherited::default() }
    }

    #[test]
    fn what_was_found_is_compared_with_what_was_asked_for() {
        let both = asked("x:ulimit=\"1024:2048\",cpuset=0-1");
        assert_eq!(both.faults(Some(&found(1024, &[0, 1]))), [""; 0]);
        let faults = both.faults(Some(&found(1000, &[0])));
        assert_eq!(
            faults,
            [
                "a limit `nofile` of 1024:2048 was asked for and 1000:2048 is in force",
                "the CPUs 0-1 were asked for and it may use 0",
            ]
        );
        assert_eq!(both.faults(None).len(), 2);
        assert_eq!(asked("x").faults(Some(&found(5, &[3]))), [""; 0]);
        let facts = both.found(Some(&found(1000, &[0])));
        assert_eq!(facts, [("ulimit", "1000:2048".to_owned()), ("cpuset", "0".to_owned())]);
        assert_eq!(asked("x").found(Some(&found(1000, &[0]))), []);
    }

    #[test]
    fn a_limit_that_cannot_be_had_is_refused_with_a_remedy() {
        let why = asked("x:cpuset=8000").bounds().unwrap_err();
        assert!(why.reason.contains("may not use") && why.remedy.unwrap().starts_with("choose among"));
        assert_eq!(asked("x").bounds().unwrap(), None);
        assert!(asked("x:ulimit=5,cpuset=0").bounds().unwrap().is_some());
        if !limits::may_be_raised() && limits::open_files() < u64::MAX {
            let why = asked(&format!("x:ulimit={}", limits::open_files() + 1)).bounds().unwrap_err();
            assert!(why.reason.contains("`ulimit nofile` cannot be raised from"), "{}", why.reason);
            assert!(why.remedy.unwrap().contains("CAP_SYS_RESOURCE"));
        }
    }

    #[test]
    fn engines_get_their_own_options() {
        let options = asked("docker:ulimit=\"core=0,nofile=5:6\",cpuset=0").options();
        assert_eq!(options, ["--ulimit", "core=0", "--ulimit", "nofile=5:6", "--cpuset-cpus", "0"]);
    }
}

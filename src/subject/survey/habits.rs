//! Defaults of engines that are not faults and still make figures differ.

use super::{Asked, Programs};
use crate::host::checks::{Finding, View};
use crate::subject::component::numbers;

/// The engines that answer, with their versions.
fn engines<'a>(programs: &'a Programs) -> Vec<(&'static str, &'a str)> {
    let engines = [("docker", &programs.docker), ("podman", &programs.podman)];
    let answer = |(name, asked): (&'static str, &'a Asked)| {
        Some((name, asked.as_ref()?.as_ref().ok()?.version.as_str()))
    };
    engines.into_iter().filter_map(answer).collect()
}

pub(super) fn stats(_: &View, programs: &Programs) -> Finding {
    match engines(programs)[..] {
        [] | [_] => Finding::not_applicable("fewer than two engines to compare"),
        [(_, docker), (_, podman), ..] => Finding::note(format!(
            "docker {docker} and podman {podman} may count page cache differently: their memory columns are not comparable"
        ))
        .advice("compare what dunnage reads from the cgroups, not what `stats` prints"),
    }
}

/// The oldest versions known to load an archive with an OCI layout and docker's manifest.
const OLDEST: [(&str, (u32, u32)); 3] = [("docker", (20, 10)), ("podman", (4, 3)), ("ctr", (1, 6))];

pub(super) fn archive(_: &View, programs: &Programs) -> Finding {
    let mut versions = engines(programs);
    let ctr = programs.find("ctr").and_then(|program| program.version.as_ref().ok());
    versions.extend(ctr.map(|version| ("ctr", version.as_str())));
    if versions.is_empty() {
        return Finding::not_applicable("no engine is installed, or none answers");
    }
    let oldest = |name: &str| OLDEST.iter().find(|(known, _)| *known == name).map(|(_, oldest)| *oldest);
    let is_older = |name: &str, version: &str| {
        numbers(version).zip(oldest(name)).is_some_and(|(own, oldest)| own < oldest)
    };
    let older: Vec<_> = versions.iter().filter(|(name, version)| is_older(name, version)).collect();
    if older.is_empty() {
        return Finding::ok("docker 20.10, podman 4.3, ctr 1.6 and newer load the same archive");
    }
    let names: Vec<_> = older.iter().map(|(name, version)| format!("{name} ({version})")).collect();
    Finding::warning(format!("older than any version known to load dunnage's archive: {}", names.join(", ")))
        .advice("if loading fails, use one of the engine's images, as in `-s 'docker:image=\"debian:12\"'`")
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;
    use crate::host::checks::State::*;

    #[test]
    fn two_engines_have_two_formulas() {
        let view = crate::host::checks::planted();
        assert_eq!(stats(&view, &planted::all()).state, Note);
        assert_eq!(stats(&view, &Programs { podman: None, ..planted::all() }).state, NotApplicable);
    }

    #[test]
    fn engines_older_than_those_that_were_tried_are_told() {
        let view = crate::host::checks::planted();
        let found = |version: &str| {
            let mut programs = planted::all();
            if let Some(Result::Ok(podman)) = &mut programs.podman {
                podman.version = version.to_owned();
            }
            archive(&view, &programs).state
        };
        assert_eq!(
            (found("4.2.9"), found("3.9"), found("4.3.0"), found("5.0.0")),
            (Warning, Warning, Ok, Ok)
        );
        assert_eq!(archive(&view, &Programs::default()).state, NotApplicable);
    }
}

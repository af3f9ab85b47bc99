//! Engines and runtimes that are no longer supported. One table of the days since which a project makes no
//! more releases of a series; a distribution may still patch its own package.
//!
//! Deliberately absent: crun, youki and gVisor, which publish no such days: only their newest release is
//! supported.

use super::{Asked, Programs};
use crate::host::checks::{Finding, View};
use crate::subject::component::numbers;

/// A series, up to and including this version, and the day on which its support ended.
type End = ((u32, u32), &'static str);

/// A project's series from old to new, and the source. Anything newer than the last one is supported, as far
/// as is known.
struct Project {
    name: &'static str,
    ends: &'static [End],
    source: &'static str,
}

static PROJECTS: [Project; 4] = [
    Project {
        name: "docker",
        ends: &[
            ((20, 10), "2023-12-10"),
            ((23, 0), "2025-05-19"),
            ((24, 0), "2024-06-08"),
            ((26, 0), "2024-06-08"),
            ((26, 1), "2025-02-17"),
            ((27, 5), "2025-05-03"),
        ],
        source: "https://endoflife.date/docker-engine",
    },
    Project {
        name: "podman",
        ends: &[
            ((4, 3), "2022-11-10"),
            ((4, 9), "2024-05-30"),
            ((5, 4), "2025-05-13"),
            ((5, 7), "2026-02-12"),
            ((5, 8), "2026-09-26"),
            ((6, 0), "2026-08-12"),
        ],
        source: "https://endoflife.date/podman",
    },
    Project {
        name: "containerd",
        ends: &[
            ((1, 6), "2025-08-23"),
            ((1, 7), "2026-09-30"),
            ((2, 0), "2025-11-07"),
            ((2, 1), "2026-05-05"),
            ((2, 2), "2026-11-06"),
        ],
        source: "https://containerd.io/releases",
    },
    Project {
        name: "runc",
        // Its policy starts with 1.2; before, only the newest minor version was supported.
        ends: &[((1, 0), "2022-01-14"), ((1, 1), "2024-10-22")],
        source: "https://github.com/opencontainers/runc/blob/main/RELEASES.md",
    },
];

impl Project {
    /// The day since which a version is out of support, if it is on this day.
    fn ended(&self, version: &str, today: &str) -> Option<&'static str> {
        let own = numbers(version)?;
        // Amazon and others still maintain this series of docker.
        let is_kept = self.name == "docker" && own == (25, 0);
        let end = self.ends.iter().find(|(series, _)| own <= *series).map(|(_, end)| *end);
        end.filter(|end| !is_kept && *end <= today)
    }
}

pub(super) fn ended(_: &View, programs: &Programs) -> Finding {
    let asked = |asked: &Asked| Some(asked.as_ref()?.as_ref().ok()?.version.clone());
    let version = |name: &str| match name {
        "docker" => asked(&programs.docker),
        "podman" => asked(&programs.podman),
        other => programs.find(other)?.version.clone().ok(),
    };
    let known: Vec<_> = PROJECTS.iter().filter_map(|one| Some((one, version(one.name)?))).collect();
    if known.is_empty() {
        return Finding::not_applicable("docker, podman, containerd and runc do not answer");
    }
    let told = known.iter().filter_map(|(project, version)| {
        let since = project.ended(version, &programs.today)?;
        let (major, minor) = numbers(version)?;
        Some((format!("{} {major}.{minor} since {since}", project.name), project.source))
    });
    let (told, sources): (Vec<_>, Vec<_>) = told.unzip();
    if told.is_empty() {
        return Finding::ok("no version is known to be out of support");
    }
    Finding::note(format!(
        "out of support upstream: {}; a distribution may still patch its own package",
        told.join(", ")
    ))
    .advice(format!(
        "measure a newer stack before you rely on figures of this one (see {})",
        sources.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::super::planted;
    use super::*;
    use crate::host::checks::State;

    fn found(docker: &str, today: &str) -> Finding {
        let mut programs = Programs { today: today.to_owned(), ..planted::all() };
        if let Some(Ok(engine)) = &mut programs.docker {
            engine.version = docker.to_owned();
        }
        programs.podman = None;
        programs.found.retain(|one| one.name != "runc");
        ended(&crate::host::checks::planted(), &programs)
    }

    #[test]
    fn a_version_is_told_from_the_day_on_which_its_support_ended() {
        assert_eq!(found("26.1.5+dfsg1", "2025-02-16").state, State::Ok);
        let late = found("26.1.5+dfsg1", "2025-02-17");
        assert!(late.state == State::Note && late.what.contains("docker 26.1 since 2025-02-17"), "{late:?}");
        assert!(found("19.03.15", "2026-11-01").what.contains("docker 19.3 since 2023-12-10"));
        for kept in ["25.0.14", "28.5.2", "99.1"] {
            assert_eq!(found(kept, "2026-11-01").state, State::Ok, "{kept}");
        }
        assert_eq!(ended(&crate::host::checks::planted(), &Programs::default()).state, State::NotApplicable);
    }

    #[test]
    fn every_series_has_a_day_and_they_are_in_order() {
        for Project { ends, source, .. } in &PROJECTS {
            assert!(ends.is_sorted_by_key(|(series, _)| series) && source.starts_with("https://"));
            assert!(ends.iter().all(|(_, day)| day.parse::<jiff::civil::Date>().is_ok()));
        }
    }
}

//! Published tables of memory: what `free` said before and with containers (`runtime,metric,value`), and what cgroups and a daemon had
//! (`runtime,metric,count,value`).

use anyhow::{Context, Result, ensure};

use super::foreign::{Arm, Foreign, distinct, issue};
use super::hyperfine::UNKNOWN;
use crate::experiment::{Setting, memory};
use crate::outcome::{Failure, FailureClass, Outcome, Sample};
use crate::record::IssueFacts;
use crate::report::text::quoted;
use crate::subject::{Spec, kind_of};
use crate::units::Unit;

const HEADER: &str = "runtime,metric,value";
/// The first line of the second.
pub const COUNTED: &str = "runtime,metric,count,value";
const MEBIBYTE: f64 = 1_048_576.0;
const KIBIBYTE: f64 = 1024.0;

/// A figure of one container.
struct Figure<'a> {
    label: String,
    runtime: &'a str,
    /// The metric with the same meaning.
    metric: &'static str,
    bytes: Result<f64, String>,
}

impl Figure<'_> {
    fn arm(self, label: String) -> Arm {
        let named = Spec::parse(self.runtime).ok().filter(|spec| kind_of(spec).is_ok());
        let outcome = match self.bytes {
            Ok(bytes) => Outcome::Measured(Sample::imported([(self.metric, bytes)])),
            Err(why) => Outcome::Failed(Failure::new(FailureClass::Crash, why)),
        };
        let subject = named.unwrap_or_else(|| Spec::plain(UNKNOWN));
        Arm { label, subject, notes: Vec::new(), outcomes: vec![(outcome, None)] }
    }
}

/// The change of the machine's use by so many containers: `containers_5_overhead_mb`.
fn overhead(metric: &str) -> Option<f64> {
    let count = metric.strip_prefix("containers_")?.strip_suffix("_overhead_mb")?;
    count.parse::<u32>().ok().filter(|count| *count > 0).map(f64::from)
}

/// Whether a text is one of these tables: other metrics of the first one are times.
pub fn is_one(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    match lines.next() {
        Some(COUNTED) => true,
        Some(HEADER) => {
            lines.filter_map(|line| line.split(',').nth(1)).any(|metric| overhead(metric.trim()).is_some())
        }
        _ => false,
    }
}

/// Reads one. What has no counterpart is named.
///
/// # Errors
/// If a line is unlike the first one, or nothing has a counterpart.
pub fn read(text: &str) -> Result<Foreign> {
    let is_counted = text.lines().next().is_some_and(|line| line.trim() == COUNTED);
    let (mut found, mut left_out) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(text.lines().map(str::trim)).skip(1).filter(|(_, line)| !line.is_empty())
    {
        let unlike = || format!("line {number}: `{line}` does not have the format of the first line");
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let (runtime, metric, count, value) = match (&fields[..], is_counted) {
            ([runtime, metric, count, value], true) => (*runtime, *metric, Some(*count), *value),
            ([runtime, metric, value], false) => (*runtime, *metric, None, *value),
            _ => return Err(anyhow::anyhow!(unlike())),
        };
        let each = match count {
            Some(count) => {
                let count = count.parse::<u32>().ok().with_context(unlike)?;
                (metric == "per_container_kb" && count > 0).then_some(("charged", KIBIBYTE))
            }
            None => overhead(metric).map(|count| ("machine", MEBIBYTE / count)),
        };
        match each {
            Some((own, unit)) => {
                let label =
                    [Some(runtime), Some(metric), count].into_iter().flatten().collect::<Vec<_>>().join(" ");
                let number = value.parse::<f64>().ok().filter(|value| value.is_finite());
                let bytes =
                    number.map(|value| value * unit).ok_or_else(|| format!("`{value}` is not a number"));
                found.push(Figure { label, runtime, metric: own, bytes });
            }
            None => left_out.push(metric),
        }
    }
    left_out.sort_unstable();
    left_out.dedup();
    ensure!(
        !found.is_empty(),
        "none of its metrics has a counterpart in `{}`: {}",
        memory::NAME,
        quoted(left_out)
    );
    let labels = distinct(found.iter().map(|one| one.label.as_str()));
    let bytes: Vec<Option<f64>> = found.iter().map(|one| one.bytes.as_ref().ok().copied()).collect();
    let issues = suspects(&labels, &bytes, is_counted);
    let arms = labels.into_iter().zip(found).map(|(label, one)| one.arm(label)).collect();
    let mut notes = vec![
        "the file has no information on machine, kernel, programs, order, or how many containers there were before".to_owned(),
        "each figure is of a single series (n = 1), so nothing is known of its spread".to_owned(),
    ];
    if !left_out.is_empty() {
        notes.push(format!("not imported, because they have no counterpart: {}", quoted(left_out)));
    }
    let format = if is_counted {
        "a table of memory by runtime and count"
    } else {
        "a table of the machine's memory by runtime"
    };
    Ok(Foreign {
        format,
        experiment: memory::NAME,
        setting: Setting::default(),
        arms,
        started: None,
        notes,
        issues,
    })
}

/// Why the figures are not the memory of containers.
fn suspects(labels: &[String], bytes: &[Option<f64>], is_counted: bool) -> Vec<IssueFacts> {
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    let (rule, evidence, mechanism) = match is_counted {
        true => (
            "memory by an unknown formula",
            "the file does not say by which formula each engine's figure was made".to_owned(),
            "one engine's tool gives all that is charged, with pages that are not in use, another one memory of processes alone; shims, \
             and daemons below the first one, are in none",
        ),
        false => {
            let least = labels.iter().zip(bytes).filter_map(|(label, bytes)| Some((label, (*bytes)?)));
            let least = least.min_by(|(_, one), (_, other)| one.total_cmp(other));
            let least = least.map(|(label, bytes)| {
                format!(", down to {} a container ({label})", Unit::Bytes.format(bytes))
            });
            (
                "memory of the whole machine",
                format!("the change of what the whole machine uses{}", least.unwrap_or_default()),
                "what `free` calls used is an estimate of the kernel's for the whole machine: it changes by other programs and by what the \
                 kernel can take back, and falls below zero",
            )
        }
    };
    vec![issue(rule, &labels, evidence, mechanism)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Label, subject, and the metric with its value.
    type Told = (String, String, Option<(String, f64)>);

    fn values(text: &str) -> Vec<Told> {
        let value = |outcome: &Outcome| match outcome {
            Outcome::Measured(sample) => Some((sample.given[0].0.to_string(), sample.given[0].1)),
            _ => None,
        };
        let made = read(text).unwrap();
        made.arms
            .iter()
            .map(|arm| (arm.label.clone(), arm.subject.to_string(), value(&arm.outcomes[0].0)))
            .collect()
    }

    #[test]
    fn the_machines_memory_is_each_containers_share_and_suspect() {
        let text = "runtime,metric,value\nbaseline,used_mb,9924\ndocker,containers_1_overhead_mb,-41\npodman,containers_5_overhead_mb,-145\n\
            docker,containers_5_overhead_mb,?\n";
        assert!(is_one(text) && !is_one("runtime,metric,value\nbare,startup_ms,1.4\n"));
        let found = values(text);
        assert_eq!(
            found[0],
            (
                "docker containers_1_overhead_mb".into(),
                "docker".into(),
                Some(("machine".into(), -41.0 * MEBIBYTE))
            )
        );
        assert_eq!(found[1].2, Some(("machine".into(), -29.0 * MEBIBYTE)));
        assert_eq!(found[2].2, None);
        let made = read(text).unwrap();
        assert_eq!(
            (made.issues[0].rule.as_str(), made.issues[0].labels.len()),
            ("memory of the whole machine", 3)
        );
        assert!(
            made.issues[0].evidence.contains("−41.0 MiB a container (docker containers_1"),
            "{}",
            made.issues[0].evidence
        );
        assert!(made.notes.last().unwrap().ends_with("`used_mb`"), "{:?}", made.notes);
    }

    #[test]
    fn figures_of_cgroups_are_taken_without_the_daemons_alone() {
        let text = "runtime,metric,count,value\ndocker,daemon_rss_kb,0,119480\ndocker,per_container_kb,1,432\nodd,per_container_kb,5,98\n";
        assert!(is_one(text));
        let found = values(text);
        assert_eq!(
            found[0],
            ("docker per_container_kb 1".into(), "docker".into(), Some(("charged".into(), 432.0 * 1024.0)))
        );
        assert_eq!((found[1].1.as_str(), found.len()), (UNKNOWN, 2));
        assert!(
            read("runtime,metric,count,value\ndocker,daemon_rss_kb,0,1\n")
                .unwrap_err()
                .to_string()
                .contains("`daemon_rss_kb`")
        );
        assert!(
            read("runtime,metric,count,value\ndocker,per_container_kb,432\n")
                .unwrap_err()
                .to_string()
                .starts_with("line 2: ")
        );
    }
}

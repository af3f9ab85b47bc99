//! A published table of many starts: `runtime,count,time_seconds,memory_mb`, the time of so many containers together.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};

use super::foreign::{Arm, Foreign, issue};
use super::hyperfine::UNKNOWN;
use crate::experiment::{Setting, density};
use crate::outcome::{Outcome, Sample};
use crate::record::IssueFacts;
use crate::subject::{Spec, kind_of};
use crate::units::Unit;

/// Its first line.
pub const HEADER: &str = "runtime,count,time_seconds,memory_mb";

/// What one more container takes may differ so much from one step to the next before no line fits.
const UNLIKE: f64 = 2.0;

/// So many containers of a runtime, and how long they took together.
type Taken<'a> = (&'a str, u32, f64);

/// Reads one.
///
/// # Errors
/// If a line is unlike the first one, or there is none.
pub fn read(text: &str) -> Result<Foreign> {
    let mut found: Vec<Taken<'_>> = Vec::new();
    for (number, line) in (1..).zip(text.lines().map(str::trim)).skip(1).filter(|(_, line)| !line.is_empty())
    {
        let unlike = || format!("line {number}: `{line}` does not have the format of the first line");
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let [runtime, count, seconds, _] = fields[..] else { return Err(anyhow::anyhow!(unlike())) };
        let count = count.parse::<u32>().ok().filter(|count| *count > 0).with_context(unlike)?;
        let seconds: f64 =
            seconds.parse().ok().filter(|one: &f64| *one > 0.0 && one.is_finite()).with_context(unlike)?;
        let is_new = found.iter().all(|(own, of, _)| (*own, *of) != (runtime, count));
        ensure!(is_new, "line {number}: `{runtime}` has more than one time for {count} containers");
        found.push((runtime, count, seconds));
    }
    ensure!(!found.is_empty(), "it has no line after the first one");
    let label = |(runtime, count, _): &Taken<'_>| format!("{runtime} {count}");
    let arm = |one: &Taken<'_>| {
        let named = Spec::parse(one.0).ok().filter(|spec| kind_of(spec).is_ok());
        let rate = f64::from(one.1) / one.2;
        Arm {
            label: label(one),
            subject: named.unwrap_or_else(|| Spec::plain(UNKNOWN)),
            notes: Vec::new(),
            outcomes: vec![(Outcome::Measured(Sample::imported([("rate", rate)])), None)],
        }
    };
    Ok(Foreign {
        format: "a table of many starts by runtime and count",
        experiment: density::NAME,
        setting: Setting(vec![("at_once", "1")]),
        arms: found.iter().map(arm).collect(),
        started: None,
        notes: vec![
            "the file has no information on machine, kernel, programs, order, or how many containers there were before".to_owned(),
            "each figure is of a single series (n = 1), so nothing is known of its spread, and no shape can be told".to_owned(),
            "whether a time is of starts one after the other, and whether removal is in it, the file does not say".to_owned(),
            "not imported: `memory_mb`, which has no counterpart: what of the machine it is, the file does not say".to_owned(),
        ],
        issues: bent(&found).into_iter().collect(),
    })
}

/// What one more container takes between the counts of a runtime, where that differs too much for a line.
fn bent(found: &[Taken<'_>]) -> Option<IssueFacts> {
    let mut by_runtime: BTreeMap<&str, Vec<(u32, f64)>> = BTreeMap::new();
    for (runtime, count, seconds) in found {
        by_runtime.entry(runtime).or_default().push((*count, *seconds));
    }
    let (mut labels, mut told) = (Vec::new(), Vec::new());
    for (runtime, mut points) in by_runtime {
        points.sort_by_key(|(count, _)| *count);
        let step = |pair: &[(u32, f64)]| {
            let [(from, before), (to, after)] = [pair[0], pair[1]];
            (from, to, (after - before) / f64::from(to - from))
        };
        let steps: Vec<(u32, u32, f64)> = points.windows(2).map(step).collect();
        let each = || steps.iter().map(|(.., each)| *each);
        let (least, most) = (each().fold(f64::INFINITY, f64::min), each().fold(f64::NEG_INFINITY, f64::max));
        if steps.len() > 1 && (least <= 0.0 || most > UNLIKE * least) {
            labels.extend(points.iter().map(|(count, _)| format!("{runtime} {count}")));
            let words = steps
                .iter()
                .map(|(from, to, each)| format!("{} from {from} to {to}", Unit::Seconds.format(*each)));
            told.push(format!("{runtime}: one more takes {}", words.collect::<Vec<_>>().join(", ")));
        }
    }
    (!told.is_empty()).then(|| {
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        issue(
            "no line through these times",
            &labels,
            told.join("; "),
            "something else than the number of containers differed, or the first ones took what later ones need not; one series of each number \
             cannot tell",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_times_refute_the_line_that_was_said_to_be_in_them() {
        let text = format!(
            "{HEADER}\ndocker,10,2.00,50\ndocker,20,7.76,119\ndocker,50,10.70,199\nodd,10,2,1\nodd,20,4.1,1\nodd,50,10,1\n"
        );
        let made = read(&text).unwrap();
        let rates: Vec<(String, f64)> = made
            .arms
            .iter()
            .map(|arm| match &arm.outcomes[0].0 {
                Outcome::Measured(sample) => (arm.label.clone(), sample.given[0].1),
                _ => unreachable!("all are values"),
            })
            .collect();
        assert_eq!(rates[0], ("docker 10".to_owned(), 5.0));
        assert_eq!(rates[2], ("docker 50".to_owned(), 50.0 / 10.7));
        let [bent] = &made.issues[..] else { panic!("{:?}", made.issues) };
        assert_eq!(bent.labels, ["docker 10", "docker 20", "docker 50"]);
        assert_eq!(bent.evidence, "docker: one more takes 576 ms from 10 to 20, 98.0 ms from 20 to 50");
        assert!(read(&format!("{HEADER}\ndocker,0,1,1\n")).unwrap_err().to_string().starts_with("line 2: "));
        assert!(read(&format!("{HEADER}\ndocker,1,1,1\ndocker,1,2,1\n")).is_err());
        assert!(read(HEADER).is_err());
    }
}

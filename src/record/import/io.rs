//! A published table of rates of writing: `runtime,mode,rep,mb_per_sec`.

use anyhow::{Context, Result, ensure};
use dunnage_analysis::group::in_groups;

use super::foreign::{Arm, Foreign, issue};
use super::hyperfine::UNKNOWN;
use crate::experiment::Setting;
use crate::experiment::storage::disk;
use crate::outcome::{Outcome, Sample};
use crate::record::IssueFacts;
use crate::stats;
use crate::subject::{Spec, kind_of};

/// Its first line.
pub const HEADER: &str = "runtime,mode,rep,mb_per_sec";

/// A median above this multiple of the device's own rate is suspect; that is what bypasses the page cache on the host.
const ABOVE: f64 = 1.5;
/// The runtime and mode that do.
const DEVICE: [&str; 2] = ["bare", "direct"];
const MEGABYTES_OF_A_GIGABYTE: f64 = 1000.0;

/// Reads one.
///
/// # Errors
/// If a line is unlike the first one, or there is none.
pub fn read(text: &str) -> Result<Foreign> {
    let mut found: Vec<([&str; 2], f64)> = Vec::new();
    for (number, line) in (1..).zip(text.lines().map(str::trim)).skip(1).filter(|(_, line)| !line.is_empty())
    {
        let unlike = || format!("line {number}: `{line}` does not have the format of the first line");
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let [runtime, mode, repetition, rate] = fields[..] else { return Err(anyhow::anyhow!(unlike())) };
        ensure!(repetition.parse::<u32>().is_ok(), unlike());
        let rate: f64 =
            rate.parse().ok().filter(|one: &f64| *one > 0.0 && one.is_finite()).with_context(unlike)?;
        found.push(([runtime, mode], rate));
    }
    ensure!(!found.is_empty(), "it has no line after the first one");
    let groups: Vec<([&str; 2], Vec<f64>)> = in_groups(found, |(key, _)| *key)
        .into_iter()
        .map(|(key, rows)| (key, rows.into_iter().map(|(_, rate)| rate).collect()))
        .collect();
    let issues = cached(&groups).into_iter().collect();
    let arm = |([runtime, mode], rates): &([&str; 2], Vec<f64>)| {
        let named = Spec::parse(runtime).ok().filter(|spec| kind_of(spec).is_ok());
        let outcome = |rate: &f64| {
            let given = [("write_gb", MEGABYTES_OF_A_GIGABYTE / rate), ("write_rate", rate * 1e6)];
            (Outcome::Measured(Sample::imported(given)), None)
        };
        Arm {
            label: format!("{runtime} {mode}"),
            subject: named.unwrap_or_else(|| Spec::plain(UNKNOWN)),
            notes: Vec::new(),
            outcomes: rates.iter().map(outcome).collect(),
        }
    };
    Ok(Foreign {
        format: "a table of rates of writing by runtime and mode",
        experiment: disk::NAME,
        setting: Setting::default(),
        arms: groups.iter().map(arm).collect(),
        started: None,
        notes: vec![
            "the file has no information on machine, kernel, programs, order, disk, or whether bytes were on it when a time ended".to_owned(),
            "megabytes are taken as millions of bytes, and each runtime and mode is its own subject".to_owned(),
        ],
        issues,
    })
}

/// What writes faster than the device.
fn cached(groups: &[([&str; 2], Vec<f64>)]) -> Option<IssueFacts> {
    let median = |rates: &[f64]| stats::Sample::new(rates.to_vec()).map(|all| all.median());
    let device = groups.iter().find(|(key, _)| *key == DEVICE).and_then(|(_, rates)| median(rates))?;
    let above: Vec<(String, f64)> = groups
        .iter()
        .filter_map(|([runtime, mode], rates)| Some((format!("{runtime} {mode}"), median(rates)?)))
        .filter(|(_, rate)| *rate > ABOVE * device)
        .collect();
    let labels: Vec<&str> = above.iter().map(|(label, _)| label.as_str()).collect();
    let told: Vec<String> = above.iter().map(|(label, rate)| format!("{label}: {rate:.0} MB/s")).collect();
    (!above.is_empty()).then(|| {
        issue(
            "faster than the device",
            &labels,
            format!("{}; {} alone: {device:.0} MB/s", told.join(", "), DEVICE.join(" ")),
            "the bytes were in memory when the time ended: in the page cache, or since a sync does nothing there (podman mounts roots of \
             containers volatile)",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_faster_than_the_device_was_not_on_it() {
        let rows = "bare,direct,1,448\nbare,direct,2,452\ndocker,overlay,1,380\npodman,overlay,1,1700.0\n";
        let made = read(&format!("{HEADER}\n{rows}")).unwrap();
        assert_eq!(made.arms[0].outcomes.len(), 2);
        let Outcome::Measured(sample) = &made.arms[1].outcomes[0].0 else { panic!("{:?}", made.arms[1]) };
        assert_eq!(sample.given, [("write_gb".into(), 1000.0 / 380.0), ("write_rate".into(), 380e6)]);
        let [cached] = &made.issues[..] else { panic!("{:?}", made.issues) };
        assert_eq!(cached.labels, ["podman overlay"]);
        assert_eq!(cached.evidence, "podman overlay: 1700 MB/s; bare direct alone: 450 MB/s");
        // A difference that devices have is none.
        let near = read(&format!("{HEADER}\nbare,direct,1,448\npodman,volume,1,500\n")).unwrap();
        assert!(near.issues.is_empty());
        assert!(read(&format!("{HEADER}\nbare,direct,x,1\n")).is_err() && read(HEADER).is_err());
    }
}

//! Why a fixed work takes longer than on the baseline, in a sentence: CPU time, throttling, or waiting for others.

use crate::units::{Unit, counted};
use crate::verdict::View;

/// The share of a difference from which on a part is its reason.
const REASON: f64 = 0.8;

/// What of a difference is CPU time of each thread, throttling, and waiting for others.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Parts {
    cpu: f64,
    throttled: f64,
    others: f64,
}

impl Parts {
    /// The one that is most of it, in words.
    fn reason(self) -> &'static str {
        let all = self.cpu + self.throttled + self.others;
        let parts = [
            (self.throttled, "its CPU limit is the reason"),
            (self.cpu, "more CPU time is the reason, no limit"),
            (self.others, "others on its CPUs are the reason, no limit"),
        ];
        let reason = parts.into_iter().find(|(part, _)| *part >= REASON * all);
        reason.map_or("no reason is most of it", |(_, reason)| reason)
    }
}

/// Of a cell beside the baseline, how much longer the work takes and why; `work` says which, and names of metrics end
/// with `suffix`. None where nothing held it back and it is not known to take longer.
pub(crate) fn sentence(
    view: &View<'_>,
    [cell, against]: [usize; 2],
    work: &str,
    suffix: &str,
) -> Option<String> {
    let metric = |name: &str| view.metric_index(cell, &format!("{name}{suffix}"));
    let finding = |name: &str| {
        let asked = (cell, against, metric(name)?);
        view.findings.iter().find(|one| (one.cell, one.against, one.metric) == asked)
    };
    let median = |cell, name: &str| view.median(cell, metric(name)?);
    let throttled = median(cell, "throttled_time").unwrap_or(0.0);
    let periods = median(cell, "throttled_periods").unwrap_or(0.0).round() as usize;
    let limit =
        format!("throttled for {} in {}", Unit::Seconds.format(throttled), counted(periods, "period"));
    let whole = finding("elapsed")?;
    let [own, baseline] = [cell, against].map(|cell| view.label(cell));
    if !whole.kind().is_worse() || whole.noise.is_some() {
        let open = format!("that it takes longer than on `{baseline}` is not decided");
        return (throttled > 0.0).then(|| format!("{work} on `{own}` is {limit}; {open}"));
    }
    let (more, before) = (whole.difference?.value, median(against, "elapsed")?);
    let [now, then] = [median(cell, "elapsed")?, before].map(|seconds| Unit::Seconds.format(seconds));
    let told = format!(
        "{work} takes {:.1} % longer on `{own}` than on `{baseline}`, {now}, not {then}",
        more / before * 100.0
    );
    // Where nothing was throttled, the reason says so already.
    let limit = if throttled > 0.0 { format!("{limit}, ") } else { String::new() };
    let Some(cpu) = finding("cpu_time").and_then(|one| one.difference) else { return Some(told) };
    let throttled = throttled - median(against, "throttled_time").unwrap_or(0.0);
    let parts = Parts { cpu: cpu.value, throttled, others: more - cpu.value - throttled };
    let [cpu, others] = [parts.cpu, parts.others].map(|seconds| Unit::Seconds.format_signed(seconds));
    Some(format!("{told}: {}; {limit}CPU time {cpu}, waiting for others {others}", parts.reason()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_most_of_a_difference_is_its_reason() {
        let parts = |cpu, throttled, others| Parts { cpu, throttled, others }.reason();
        assert_eq!(parts(0.001, 0.181, 0.002), "its CPU limit is the reason");
        assert_eq!(parts(0.9, 0.0, 0.1), "more CPU time is the reason, no limit");
        assert_eq!(parts(0.0, 0.1, 0.9), "others on its CPUs are the reason, no limit");
        assert_eq!(parts(0.5, 0.5, 0.0), "no reason is most of it");
    }
}

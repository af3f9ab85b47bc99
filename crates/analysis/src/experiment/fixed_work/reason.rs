//! Says in a sentence why fixed work takes longer than on the baseline: CPU time, throttling, or waiting for
//! others.

use crate::units::{Unit, counted};
use crate::verdict::View;

/// A part is the cause if it is at least this share of the difference.
const REASON: f64 = 0.8;

/// A difference, split into CPU time of each thread, throttling, and waiting for others.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Parts {
    cpu: f64,
    throttled: f64,
    others: f64,
}

impl Parts {
    /// The part that accounts for most of it, in words.
    fn reason(self) -> &'static str {
        let all = self.cpu + self.throttled + self.others;
        let parts = [
            (self.throttled, "its CPU limit is the cause"),
            (self.cpu, "more CPU time is the cause, not a limit"),
            (self.others, "others on its CPUs are the cause, not a limit"),
        ];
        let reason = parts.into_iter().find(|(part, _)| *part >= REASON * all);
        reason.map_or("no single cause accounts for most of it", |(_, reason)| reason)
    }
}

/// How much longer the work takes in a cell than on the baseline, and why; `work` names it, and names of
/// metrics end with `suffix`. None if nothing held it back and it is not known to take longer.
pub(crate) fn sentence(
    view: &View<'_>,
    [cell, against]: [usize; 2],
    work: &str,
    suffix: &str,
) -> Option<String> {
    let finding = |name: &str| view.finding(cell, against, &format!("{name}{suffix}"));
    let median = |cell, name: &str| Some(view.estimate_of(cell, &format!("{name}{suffix}"))?.value);
    let throttled = median(cell, "throttled_time").unwrap_or(0.0);
    let periods = median(cell, "throttled_periods").unwrap_or(0.0).round() as usize;
    let limit =
        format!("throttled for {} in {}", Unit::Seconds.format(throttled), counted(periods, "period"));
    let whole = finding("elapsed")?;
    let [own, baseline] = [cell, against].map(|cell| view.label(cell));
    if !whole.kind().is_worse() || whole.noise.is_some() {
        let open = format!("whether it takes longer than on `{baseline}` is undecided");
        return (throttled > 0.0).then(|| format!("{work} on `{own}` is {limit}; {open}"));
    }
    let (more, before) = (whole.difference?.value, median(against, "elapsed")?);
    let [now, then] = [median(cell, "elapsed")?, before].map(|seconds| Unit::Seconds.format(seconds));
    let told = format!(
        "{work} takes {:.1} % longer on `{own}` than on `{baseline}`, by the median of the rounds' differences; the medians are {now} and {then}",
        more / before * 100.0
    );
    // If nothing was throttled, the reason says so already.
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
        assert_eq!(parts(0.001, 0.181, 0.002), "its CPU limit is the cause");
        assert_eq!(parts(0.9, 0.0, 0.1), "more CPU time is the cause, not a limit");
        assert_eq!(parts(0.0, 0.1, 0.9), "others on its CPUs are the cause, not a limit");
        assert_eq!(parts(0.5, 0.5, 0.0), "no single cause accounts for most of it");
    }
}

//! How much a layer adds to the baseline, and for which jobs that matters.

use std::collections::BTreeSet;

use super::{Claim, Decided, One, Topic, a, findings, is_hidden, is_open};
use crate::experiment::{self, Event};
use crate::plan::Layer;
use crate::report::text::{estimated, in_percent, joined, listed, percent};
use crate::units::{Unit, counted};
use crate::verdict::{Finding, Verdict};

impl<'a> One<'a> {
    /// What a layer adds to the baseline, the smallest difference first.
    pub(super) fn more(&self, layer: Layer) -> Vec<Decided<'a>> {
        let decided = self.against_baseline(layer).into_iter().filter_map(Decided::of);
        let mut more: Vec<_> = decided.filter(|one| one.finding.verdict == Verdict::More).collect();
        more.sort_by(|one, other| one.difference.value.total_cmp(&other.difference.value));
        more
    }

    pub(super) fn costs(&self, layer: Layer) -> Option<Claim> {
        let more = self.more(layer);
        let (least, range) = (more.first()?, self.range(&more, ["between", "and"])?);
        let what = match self.event {
            Event::Once(what) | Event::Held(what) => format!("each {what}"),
            _ => self.name.to_owned(),
        };
        let metric = least.finding.about.metric;
        let text =
            format!("{} adds {range} to {what} (`{metric}`), compared with {}", a(layer), self.baseline());
        Some(self.claim(Topic::Cost, text, findings(&more)))
    }

    /// The smallest and the largest of them with their places, joined by two words.
    pub(super) fn range(&self, more: &[Decided<'_>], [from, to]: [&str; 2]) -> Option<String> {
        let told = |one: &Decided<'_>| {
            format!("{} ({})", estimated(one.finding.about.unit, &one.difference), self.place(one))
        };
        Some(match more {
            [] => return None,
            [only] => told(only),
            [least, .., most] => format!("{from} {} {to} {}", told(least), told(most)),
        })
    }

    /// Which jobs notice what a layer adds: the difference as a share of the time from one event to the next. All
    /// intervals hold at once, so above the largest upper end no subject reaches the share, and below the smallest
    /// lower end all exceed it. A layer with an undecided subject is left out: its limit is unknown.
    pub(super) fn matters(&self) -> Option<Claim> {
        let metric = &experiment::find(self.name)?.metrics[0];
        let (_, share) = self.plan.margin_of(self.name, metric).parts();
        let (mut rests_on, mut limits) = (Vec::new(), Vec::new());
        for layer in self.above_the_baseline() {
            // Of many kinds of calls, the first represents those that do least.
            let asked = self.against_baseline(layer).iter().filter(|finding| finding.metric == 0).count();
            let mut more = self.more(layer);
            more.retain(|one| one.finding.metric == 0);
            if more.is_empty() || more.len() < asked {
                continue;
            }
            let low = more.iter().map(|one| one.interval.low).fold(f64::INFINITY, f64::min);
            let high = more.iter().map(|one| one.interval.high).fold(f64::NEG_INFINITY, f64::max);
            // Where rounds timed out, no length is known on which it has no effect.
            if high.is_infinite() {
                continue;
            }
            let told = |end: f64| Unit::Seconds.format(end / share);
            limits.push((layer, told(low), told(high)));
            rests_on.extend(findings(&more));
        }
        if share <= 0.0 || limits.is_empty() {
            return None;
        }
        let share = percent(share);
        let text = match self.event {
            Event::Often(what) => {
                let always =
                    listed(limits.iter().map(|(layer, low, _)| format!("{low} ({})", a(*layer))), ", ");
                let never =
                    listed(limits.iter().map(|(layer, _, high)| format!("{high} ({})", a(*layer))), ", ");
                format!(
                    "a layer adds more than {share} to programs that make the {what} `{}` every {always} or more often, and less than {share} to those that make it every {never} or less often, if only the {what} itself changes",
                    metric.name
                )
            }
            Event::Once(_) => {
                // The floor is no choice, unless there is nothing else.
                if limits.iter().any(|(layer, ..)| *layer != Layer::Floor) {
                    limits.retain(|(layer, ..)| *layer != Layer::Floor);
                }
                let limits = limits.iter().map(|(layer, low, high)| {
                    format!("{} adds less than {share} to jobs above {high}, more below {low}", a(*layer))
                });
                listed(limits, "; ")
            }
            Event::Held(_) | Event::Whole | Event::Works => return None,
        };
        Some(self.claim(Topic::Threshold, text, rests_on))
    }

    /// How a layer compares with the baseline in all decisive metrics.
    pub(super) fn ranks(&self, layer: Layer) -> Option<Claim> {
        let all = self.against_baseline(layer);
        let of = |verdict: Verdict| -> Vec<Decided<'_>> {
            let decided = all.iter().filter_map(|finding| Decided::of(finding));
            let mut decided: Vec<_> = decided.filter(|one| one.finding.verdict == verdict).collect();
            let ratio = |one: &Decided<'_>| one.finding.ratio.map_or(0.0, |ratio| ratio.value);
            decided.sort_by(|one, other| ratio(one).total_cmp(&ratio(other)));
            decided
        };
        let (more, less, same) = (of(Verdict::More), of(Verdict::Less), of(Verdict::Same));
        let hidden: Vec<&Finding> = all.iter().copied().filter(|finding| is_hidden(finding)).collect();
        let open: Vec<&Finding> = all.iter().copied().filter(|finding| is_open(finding)).collect();
        if more.is_empty() && less.is_empty() && same.is_empty() && hidden.is_empty() {
            return None;
        }
        let far = |all: &[Decided<'_>], which: Option<&Decided<'_>>| {
            let Some(one) = which else { return String::new() };
            let about = &one.finding.about;
            let size = match one.finding.ratio {
                Some(ratio) => in_percent(&ratio),
                None => estimated(about.unit, &one.difference),
            };
            let most = if all.len() > 1 { "at most " } else { "" };
            format!(" ({most}{size}: `{}`, {})", about.metric, self.place(one))
        };
        let parts = [
            (more.len(), "higher", far(&more, more.last())),
            (less.len(), "lower", far(&less, less.first())),
            (same.len(), "the same", String::new()),
            (hidden.len(), "in noise", String::new()),
            (open.len(), "undecided", String::new()),
        ];
        let parts = parts.into_iter().filter(|(count, ..)| *count > 0);
        let parts: Vec<String> = parts.map(|(count, what, far)| format!("{count} {what}{far}")).collect();
        let rests_on = [findings(&more), findings(&less), findings(&same), hidden, open].concat();
        let metrics: BTreeSet<&str> = rests_on.iter().map(|finding| finding.about.metric).collect();
        let text = format!(
            "{} against {}, {} in {} of {}: {}",
            a(layer),
            self.baseline(),
            counted(rests_on.len(), "comparison"),
            counted(metrics.len(), "metric"),
            self.name,
            joined(&parts, "and")
        );
        Some(self.claim(Topic::Cost, text, rests_on))
    }
}

//! What the rounds leave open: undecided and suspect comparisons, and how slow a launch can get.

use super::{Claim, Decided, One, Topic, a, is_hidden, is_open};
use crate::experiment::Event;
use crate::plan::Layer;
use crate::report::text::{in_brackets, joined, percent};
use crate::report::words::sides;
use crate::stats::Estimate;
use crate::units::{Unit, counted, three_digits};
use crate::verdict::{Finding, HOPELESS, Verdict};

/// How far apart the two sides may be, as a share of the one compared with: the farther end of the ratio's interval.
fn apart(finding: &Finding) -> Option<f64> {
    finding.ratio?.interval.map(|one| (one.high - 1.0).abs().max((1.0 - one.low).abs()))
}

fn is_are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// Pairs named as examples of open comparisons.
const EXAMPLES: usize = 3;

impl<'a> One<'a> {
    /// How far the slowest value of the highest compared layer is above its median. The largest of n values exceeds
    /// the quantile q with probability 1 − qⁿ, for any distribution.
    pub(super) fn tail(&self) -> Option<Claim> {
        let layers = [Layer::Engine, Layer::Runtime, Layer::Floor].into_iter();
        let decided = |layer| self.against_baseline(layer).into_iter().filter_map(Decided::of).collect();
        let all: Vec<Decided<'_>> = layers.map(decided).find(|all: &Vec<_>| !all.is_empty())?;
        let tail = |one: &Decided<'a>| {
            let values = self.analysis.cells[one.finding.cell].metrics[one.finding.metric].as_ref()?;
            let multiple = values.range.1 / values.median.value;
            multiple.is_finite().then_some((*one, multiple, values.median))
        };
        let (one, multiple, Estimate { value: median, rounds, alpha, .. }) =
            all.iter().filter_map(tail).max_by(|(_, one, _), (_, other, _)| one.total_cmp(other))?;
        let is_time = one.finding.about.unit == Unit::Seconds;
        let (what, took) = match self.event {
            Event::Once(what) if is_time => (format!("slowest {what}"), "took"),
            Event::Whole if is_time => ("slowest sample".to_owned(), "took"),
            _ => (format!("largest `{}`", one.finding.about.metric), "was"),
        };
        let text = format!(
            "the {what} of {} {took} {}, {} times its median ({}, {}); at most {} {} than that (95 % confidence)",
            a(self.layer(self.comparison(one.finding).subject)),
            one.finding.about.unit.format(multiple * median),
            three_digits(multiple),
            self.place(&one),
            counted(rounds, "round"),
            percent(1.0 - alpha.get().powf(1.0 / rounds as f64)),
            if is_time { "take longer" } else { "are larger" }
        );
        Some(self.claim(Topic::Risk, text, vec![one.finding]))
    }

    /// Too few rounds for any verdict.
    pub(super) fn too_few(&self) -> Option<Claim> {
        let few = self.such(|finding| matches!(finding.verdict, Verdict::TooFew { .. }));
        let rounds = |finding: &&Finding| match finding.verdict {
            Verdict::TooFew { have, need } => Some((have, need)),
            _ => None,
        };
        // A round counts for a comparison if both sides have a value in it.
        let (have, need) = few.iter().filter_map(rounds).max()?;
        let of = counted(self.findings.len(), "comparison");
        let [subject, against] = sides(&few[0].about);
        let more = if few.len() > 1 { format!(" and {} more", few.len() - 1) } else { String::new() };
        let some = few.len();
        let text = format!(
            "{some} of {of}: {need} rounds are needed, with values in {}: {subject} against {against}{more}",
            counted(have, "round")
        );

        Some(self.claim(Topic::Open, text, few))
    }

    /// Undecided comparisons, the largest differences first, and those that do not rise above the noise floor.
    pub(super) fn open(&self) -> Option<Claim> {
        let (mut open, hidden) = (self.such(is_open), self.such(is_hidden));
        if open.is_empty() && hidden.is_empty() {
            return None;
        }
        let rounds = |finding: &&Finding| match finding.verdict {
            Verdict::Undecided { new_run, .. } => Some(new_run?.rounds).filter(|one| *one <= HOPELESS),
            _ => None,
        };
        let mut needed: Vec<usize> = open.iter().filter_map(rounds).collect();
        needed.sort_unstable();
        // Metrics have units of their own: what they share is how far apart the two may be.
        open.sort_by(|one, other| apart(other).unwrap_or(0.0).total_cmp(&apart(one).unwrap_or(0.0)));
        let at_most = open.first().filter(|_| open.iter().all(|one| apart(one).is_some()));
        let at_most = at_most.and_then(|one| apart(one)).filter(|widest| widest.is_finite()).map_or(
            String::new(),
            |widest| {
                let each = if open.len() > 1 { "each " } else { "" };
                format!(", {each}at most {} apart", percent(widest))
            },
        );

        // The subject of a comparison, what it is compared with, and the metric and setting.
        let parts = |finding: &&Finding| {
            let about = &finding.about;
            let metric = (!self.event.has_one_answer()).then(|| format!("`{}`", about.metric));
            let setting = about.relation.shared(self.setting_of(finding));
            let place: Vec<String> = metric.into_iter().chain(self.values(&setting)).collect();
            let [subject, against] = sides(about);
            (subject, against, in_brackets(&place.join(", ")))
        };
        // Prices, which most screens are about, are other comparisons than those of subjects.
        let of_settings =
            |all: &[&Finding]| all.iter().filter(|one| one.about.relation.is_of_settings()).count();
        let all = of_settings(&self.findings);
        let told = [&open[..], &hidden[..]].concat();
        let (count, kind) = match of_settings(&told) {
            0 => (self.findings.len() - all, " of subjects"),
            some if some == told.len() => (all, " of settings"),
            _ => (self.findings.len(), ""),
        };
        let of = format!("of {}{kind}", counted(count, "comparison"));

        let mut text = String::new();
        let named = |all: &[&Finding]| {
            let parts: Vec<(String, String, String)> = all.iter().take(EXAMPLES).map(parts).collect();
            let shared = parts.first().map(|(_, against, _)| against);
            let shared = shared.filter(|one| parts.iter().all(|(_, against, _)| against == *one));
            let named = parts.iter().map(|(subject, against, place)| match shared {
                Some(_) => format!("{subject}{place}"),
                None => format!("{subject} against {against}{place}"),
            });
            let such = if all.len() > EXAMPLES { ", such as" } else { ":" };
            let shared = shared.map_or(String::new(), |against| format!(" against {against}"));
            format!("{such} {}{shared}", joined(&named.collect::<Vec<_>>(), "and"))
        };
        if !open.is_empty() {
            text = format!("{} {of}{at_most}{}", open.len(), named(&open));
        }
        // The rounds that half of them need: the last one may need far more.
        if let Some(rounds) = needed.get(needed.len() / 2) {
            let decided = match (needed.len() / 2 + 1, open.len()) {
                (_, 1) => "it".to_owned(),
                (some, all) if some == all => "all of them".to_owned(),
                (some, _) => format!("{some} of them"),
            };
            text.push_str(&format!("; a new run of {} might decide {decided}", counted(*rounds, "round")));
        }
        if !hidden.is_empty() {
            let many = match open.len() {
                0 => format!("{} {of}", hidden.len()),
                _ => format!("; {}", hidden.len()),
            };
            let are = is_are(hidden.len());
            let noise = "in noise (decided, but not above the noise floor)";
            text.push_str(&format!("{many} {are} {noise}{}", named(&hidden)));
        }
        Some(self.claim(Topic::Open, text, [open, hidden].concat()))
    }

    /// Comparisons that rest on suspect numbers.
    pub(super) fn void(&self) -> Option<Claim> {
        let void = self.such(|finding| matches!(finding.verdict, Verdict::Suspect(_)));
        let many = counted(void.len(), "comparison");
        let rest = if void.len() == 1 { "rests" } else { "rest" };
        let text = format!("{many} of {} {rest} on suspect numbers and cannot be judged", self.name);
        (!void.is_empty()).then(|| self.claim(Topic::Open, text, void))
    }
}

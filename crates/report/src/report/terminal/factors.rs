//! The factors of a complete factorial: the answer in plain words, then every effect, the largest first.

use crate::document::Tone;
use crate::document::page::Page;
use crate::report::model::{Effect, Experiment, Factors};
use crate::report::text::{in_percent, left, width, with_interval};
use crate::verdict::Verdict;

/// What the factorial says about the first metric, and about others where they say something else.
pub(super) fn factors(page: &mut Page, experiment: &Experiment) {
    let Some(factors) = &experiment.factors else { return };
    let Some(first) = experiment.metrics.first() else { return };
    page.title(Tone::Strong, &format!("factors: {}", factors.question));
    let levels: Vec<_> =
        factors.factors.iter().map(|(name, [one, other])| format!("{name} ({one}, {other})")).collect();
    page.paragraph(
        Tone::Faint,
        "",
        &format!(
            "Every combination of {} in every round, and nothing else differs. An effect is the mean at the second level minus \
             the mean at the first, round by round; an interaction is the difference between two such differences.",
            levels.join(", ")
        ),
    );
    for answer in factors.answers.iter().filter(|answer| answer.metric == 0) {
        page.gap();
        let setting = experiment.settings.get(answer.setting).map_or("", |setting| &setting.values);
        let comma = if setting.is_empty() { "" } else { ", " };
        page.line(&[(Tone::Strong, &format!("{}{comma}{setting}", first.name))]);
        page.paragraph(Tone::Plain, "  ", &answer.text);
        page.gap();
        effects(page, experiment, factors, answer.setting);
        for (metric, definition) in experiment.metrics.iter().enumerate().skip(1) {
            let own = |one: &&Effect| one.setting == answer.setting && one.metric == metric;
            let words: Vec<_> = factors
                .effects
                .iter()
                .filter(own)
                .map(|one| format!("{} {}", one.name, one.word()))
                .collect();
            if !words.is_empty() {
                page.paragraph(Tone::Faint, &format!("  {}: ", definition.name), &words.join(" · "));
            }
        }
    }
}

/// Every effect on the first metric with its numbers, under each other.
fn effects(page: &mut Page, experiment: &Experiment, factors: &Factors, setting: usize) {
    let own = |one: &&Effect| one.setting == setting && one.metric == 0;
    let all: Vec<&Effect> = factors.effects.iter().filter(own).collect();
    let unit = experiment.metrics[0].unit;
    let size = |one: &&Effect| {
        let difference = one.difference?;
        Some(with_interval(unit, difference.value, difference.interval.map(|ends| (ends.low, ends.high))))
    };
    let sizes: Vec<String> = all.iter().map(|one| size(one).unwrap_or_else(|| "-".into())).collect();
    let ratios: Vec<String> =
        all.iter().map(|one| one.ratio.as_ref().map(in_percent).unwrap_or_default()).collect();
    let widest = |texts: &mut dyn Iterator<Item = &str>| texts.map(width).max().unwrap_or(0).min(34);
    let names = widest(&mut all.iter().map(|one| one.name.as_str()));
    let size_room = widest(&mut sizes.iter().map(String::as_str));
    let words = all.iter().map(|one| width(&one.word())).max().unwrap_or(0);
    // Ratios are context; where they would cut the verdict they stand in sentences and JSON alone.
    let ratio_room = widest(&mut ratios.iter().map(String::as_str)) + 2;
    let ratio_room = if names + size_room + ratio_room + words + 6 > page.width { 0 } else { ratio_room };
    for ((one, size), ratio) in all.iter().zip(&sizes).zip(&ratios) {
        page.line(&[
            (Tone::Strong, &format!("  {}  ", left(&one.name, names))),
            (Tone::Plain, &format!("{}  ", left(size, size_room))),
            (Tone::Faint, &left(ratio, ratio_room)),
            (Tone::of(one.kind), &one.word()),
        ]);
        if one.factors.len() > 1 && matches!(one.verdict, Verdict::Undecided { .. }) {
            page.paragraph(Tone::Faint, "      ", &one.sentence);
        }
    }
}

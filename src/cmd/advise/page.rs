//! The advice as a page for people: what was seen, what other limits would mean, and what to type.

use super::Told;
use crate::advise::demand::STEP;
use crate::advise::recommend::{HEALTHY, HEAVY, Origin, Recommendation, Tried};
use crate::advise::{Cpus, Quota};
use crate::report::Look;
use crate::report::terminal::page::{Page, Tone};
use crate::report::text::width;
use crate::sys::cgroup::Version;
use crate::units::Nanos;
use crate::watch::sampler::End;
use crate::watch::target::Engine;

/// Columns of the names on the left.
const NAMES: usize = 12;

/// The page.
pub fn render(told: &Told<'_>, look: &Look) -> String {
    let mut page = Page::new(look);
    head(&mut page, told);
    seen(&mut page, told);
    page.title(Tone::Strong, "what other limits would mean");
    trade(&mut page, told);
    page.title(Tone::Strong, "advice");
    advice(&mut page, told);
    settings(&mut page, told);
    page.finish()
}

fn entry(page: &mut Page, name: &str, text: &str) {
    page.paragraph(Tone::Plain, &format!("{name:<NAMES$}"), text);
}

fn head(page: &mut Page, told: &Told<'_>) {
    let target = told.target;
    let what = match target.engine {
        Some(engine) => format!("a container of {}", engine.name()),
        None => "a cgroup".to_owned(),
    };
    page.line(&[(Tone::Strong, "dunnage advise cpu: "), (Tone::Plain, &format!("{}, {what}", target.name))]);
    page.gap();
    let version = if target.group.version == Version::V2 { "v2" } else { "v1" };
    entry(page, "cgroup", &format!("{} ({version})", target.group.directory.display()));
    let seen = told.seen;
    let early = if seen.end == End::Asked { ", ended early by Ctrl-C" } else { "" };
    let missed = if seen.missed > 0 { format!(", {} missed", seen.missed) } else { String::new() };
    let count = seen.usage.readings().len();
    entry(
        page,
        "watched",
        &format!("{}, {count} readings, one every {}{missed}{early}", seen.usage.duration(), told.pace.every),
    );
}

fn seen(page: &mut Page, told: &Told<'_>) {
    let (seen, advice) = (told.seen, told.advice);
    entry(page, "limit", &in_force(told));
    let quantiles = advice.quantiles;
    let usage = format!(
        "p50 {:.3}  p95 {:.3}  p99 {:.3}  max {:.3} CPUs in windows of {}, mean {:.3}",
        quantiles.p50.0,
        quantiles.p95.0,
        quantiles.p99.0,
        quantiles.max.0,
        Quota::USUAL_PERIOD,
        seen.usage.mean().0
    );
    entry(page, "usage", &usage);
    if let Some(queued) = seen.queued {
        let limit = if seen.in_force().is_some() { ", the limit included" } else { "" };
        let waiting = format!(
            "its tasks used {} and were ready to run without a CPU for {queued}{limit}: what others kept them from is not seen",
            seen.usage.total()
        );
        entry(page, "waiting", &waiting);
    }
}

fn in_force(told: &Told<'_>) -> String {
    let seen = told.seen;
    let changed = match seen.was_limited_anew() {
        false => String::new(),
        true => {
            let [from, to] = [seen.limit, seen.limit_at_the_end].map(in_cpus);
            format!(
                "; it was changed from {from} to {to} while it was watched, so that nothing here is of one piece"
            )
        }
    };
    let Some(limit) = seen.in_force() else {
        let none =
            if told.target.group.can_be_limited() { "none" } else { "none can be set here: no controller" };
        return format!("{none}; throttled periods: not applicable{changed}");
    };
    let counted = seen.throttling;
    let throttled = match counted.share() {
        Some(share) => format!(
            "{} of {} periods throttled ({}), {} waited",
            counted.throttled,
            counted.periods,
            percent(share),
            counted.waited
        ),
        None => "not one period was active".to_owned(),
    };
    format!("{} CPUs ({} in each {}); {throttled}{changed}", limit.cpus(), limit.quota, limit.period)
}

fn in_cpus(limit: Option<Quota>) -> String {
    limit.map_or_else(|| "none".to_owned(), |limit| limit.cpus().to_string())
}

fn trade(page: &mut Page, told: &Told<'_>) {
    page.line(&[(
        Tone::Faint,
        &format!("{:>8}  {:>10}  {:>9} {:>9} {:>9}", "", "throttled", "waits", "", ""),
    )]);
    page.line(&[(
        Tone::Faint,
        &format!("{:>8}  {:>10}  {:>9} {:>9} {:>9}", "CPUs", "periods", "p50", "p99", "max"),
    )]);
    for tried in &told.advice.tried {
        row(page, tried);
    }
    page.gap();
    let threads = told.advice.threads;
    let threads = if threads == 1 { "one thread".to_owned() } else { format!("{threads} threads") };
    page.paragraph(Tone::Faint, "", &format!("The usage replayed under each limit as the kernel deals it out, with {threads} at a time. Throttled: periods at whose end something waited, of those that the kernel counts; below 1 % healthy, above 50 % the rule (a published alarm stands at 10 %). Waits: how much later CPU time was given than without a limit, by CPU time. Work comes when it came; a program that asks for more only when it is done waits less often."));
}

fn row(page: &mut Page, tried: &Tried) {
    let words: Vec<&str> = tried.origins.iter().filter_map(|origin| word(*origin)).collect();
    let words = words.join(", ");
    let cpus = format!("{:>8}", tried.cpus.to_string());
    let Some(found) = &tried.prediction else {
        let unknown = format!("  {:>10}  what the limit in force held back is not known  ", "?");
        return with_remarks(page, &[(Tone::Plain, &cpus), (Tone::Open, &unknown)], "", &words);
    };
    let share = found.throttled.unwrap_or(0.0);
    let tone = match share {
        share if share < HEALTHY => Tone::Better,
        share if share < HEAVY => Tone::Open,
        _ => Tone::Worse,
    };
    let is_behind = found.falls_behind();
    let wait = |time: Nanos| match time {
        // A replay knows no less than one step.
        Nanos(0) => format!("<{STEP}"),
        // What falls behind has waited for at least so long.
        time if is_behind => format!(">{time}"),
        time => time.to_string(),
    };
    let waits =
        format!(" {:>9} {:>9} {:>9}  ", wait(found.wait.p50), wait(found.wait.p99), wait(found.wait.max));
    let behind = match is_behind {
        true => format!("falls behind by {}; ", found.behind),
        false => String::new(),
    };
    let share = format!("  {:>10} ", percent(share));
    with_remarks(page, &[(Tone::Plain, &cpus), (tone, &share), (Tone::Plain, &waits)], &behind, &words);
}

/// The numbers of a row, with what is to be said of them beside them where there is room, else below.
fn with_remarks(page: &mut Page, numbers: &[(Tone, &str)], behind: &str, words: &str) {
    let used: usize = numbers.iter().map(|(_, text)| width(text)).sum();
    if used + width(behind) + width(words) <= page.width {
        let remarks = [(Tone::Worse, behind), (Tone::Plain, words)];
        return page.line(&[numbers, &remarks].concat());
    }
    page.line(numbers);
    let tone = if behind.is_empty() { Tone::Plain } else { Tone::Worse };
    page.paragraph(tone, &" ".repeat(NAMES), &format!("{behind}{words}"));
}

fn word(origin: Origin) -> Option<&'static str> {
    match origin {
        Origin::Trade => None,
        Origin::Rule => Some("p95 × 1.5"),
        Origin::InForce => Some("in force"),
        Origin::Asked => Some("asked for"),
        Origin::Recommended => Some("recommended"),
    }
}

fn advice(page: &mut Page, told: &Told<'_>) {
    let advice = told.advice;
    match advice.recommendation {
        Recommendation::Limit(cpus) => page.paragraph(Tone::Strong, "", &format!(
            "{cpus} CPUs: the smallest limit under which fewer than 1 % of the periods would have been throttled. It leaves no room for what was not seen in these {}.",
            told.seen.usage.duration()
        )),
        Recommendation::Raise { from, to } if to > from => page.paragraph(Tone::Strong, "", &format!(
            "at least {from} CPUs, the limit in force: it held work back, so what was seen is less than what was wanted, and nobody can say how much less. Raise it to {to}, or lift it, and watch again."
        )),
        Recommendation::Raise { from, .. } => page.paragraph(Tone::Strong, "", &format!(
            "at least {from} CPUs, the limit in force, which is all that the machine has: it held work back, so what was seen is less than what was wanted. A smaller one would hold back more."
        )),
        Recommendation::None => page.paragraph(Tone::Strong, "", "no limit: any below the number of CPUs of this machine would have throttled 1 % of the periods or more."),
    }
    page.paragraph(Tone::Plain, "", &format!(
        "The usual rule, p95 × 1.5, says {}. It sees neither how long a burst lasts nor how many threads share it, and leaves 5 % of the windows out of sight.",
        advice.rule
    ));
}

/// What to type, each on a line that can be copied.
fn settings(page: &mut Page, told: &Told<'_>) {
    let Some(cpus) = to_set(told.advice.recommendation) else { return };
    page.gap();
    let lines = [
        ("docker", command(told, Engine::Docker, cpus)),
        ("podman", command(told, Engine::Podman, cpus)),
        ("kubernetes", "resources:".to_owned()),
        ("", "  requests:".to_owned()),
        ("", format!("    cpu: {}", in_milli(told.advice.request))),
        ("", "  limits:".to_owned()),
        ("", format!("    cpu: {}", in_milli(cpus))),
    ];
    for (name, line) in lines {
        page.uncut(&format!("{name:<NAMES$}{line}"));
    }
}

/// The limit to set; none where there is nothing to do.
pub fn to_set(recommendation: Recommendation) -> Option<Cpus> {
    match recommendation {
        Recommendation::Limit(cpus) => Some(cpus),
        Recommendation::Raise { from, to } => Some(to).filter(|_| to > from),
        Recommendation::None => None,
    }
}

/// The command line that sets it; for the container itself where it is this engine's.
pub fn command(told: &Told<'_>, engine: Engine, cpus: Cpus) -> String {
    let program = engine.name();
    match told.target.engine {
        Some(own) if own == engine => format!("{program} update --cpus {cpus} {}", told.target.name),
        _ => format!("{program} run --cpus {cpus} …"),
    }
}

/// As Kubernetes writes it.
pub fn in_milli(cpus: Cpus) -> String {
    format!("{}m", cpus.milli())
}

/// A share as people read it: tenths below 10 %.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if p > 0.0 && p < 0.1 => "<0.1 %".to_owned(),
        p if p < 9.95 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

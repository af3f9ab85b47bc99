//! The advice: what was seen, what other limits would mean, and what to type.

use serde::Serialize;

use crate::advise::demand::STEP;
use crate::advise::recommend::{Advice, HEALTHY, HEAVY, Origin, Recommendation, Tried};
use crate::advise::usage::Quantiles;
use crate::advise::{Cpus, Quota, Throttling};
use crate::document::{Block, Cell, Column, Document, Findings, Item, Look, Section, Table, Tone};
use crate::sys::cgroup::Version;
use crate::units::{Nanos, counted};
use crate::watch::sampler::{End, Pace, Seen};
use crate::watch::target::{Engine, Target};

/// What was watched, and what follows.
#[derive(Serialize)]
pub(super) struct Advised {
    target: Watched,
    watched: During,
    usage: Used,
    #[serde(flatten)]
    advice: Advice,
    settings: Option<Settings>,
}

#[derive(Serialize)]
struct Watched {
    name: String,
    engine: Option<&'static str>,
    id: Option<String>,
    cgroup: String,
    cgroup_version: u8,
}

#[derive(Serialize)]
struct During {
    seconds: Nanos,
    every: Nanos,
    readings: usize,
    missed: u64,
    ended_early: bool,
    limit: Option<InForce>,
    limit_changed: bool,
    #[serde(skip)]
    limits: [Option<Quota>; 2],
    #[serde(skip)]
    can_be_limited: bool,
    machine_pressure: Option<f64>,
    queued: Option<Nanos>,
    used: Nanos,
}

#[derive(Serialize)]
struct Used {
    /// That of most limits.
    window: Nanos,
    #[serde(flatten)]
    quantiles: Quantiles,
    mean: Cpus,
}

#[derive(Serialize)]
struct InForce {
    cpus: Cpus,
    #[serde(flatten)]
    limit: Quota,
    #[serde(flatten)]
    counted: Throttling,
    throttled_share: Option<f64>,
}

/// What to type, by engine.
#[derive(Serialize)]
struct Settings {
    docker: String,
    podman: String,
    kubernetes: Kubernetes,
}

#[derive(Serialize)]
struct Kubernetes {
    requests: Resource,
    limits: Resource,
}

#[derive(Serialize)]
struct Resource {
    cpu: String,
}

impl Advised {
    pub fn of(target: &Target, pace: Pace, seen: &Seen, advice: Advice) -> Advised {
        let counted = seen.throttling;
        let in_force =
            |limit: Quota| InForce { cpus: limit.cpus(), limit, counted, throttled_share: counted.share() };
        Advised {
            target: Watched {
                name: crate::report::text::clean(&target.name),
                engine: target.engine.map(Engine::name),
                id: target.id.clone(),
                cgroup: target.group.directory.display().to_string(),
                cgroup_version: if target.group.version == Version::V2 { 2 } else { 1 },
            },
            watched: During {
                seconds: seen.usage.duration(),
                every: pace.every,
                readings: seen.usage.readings().len(),
                missed: seen.missed,
                ended_early: seen.end == End::Asked,
                limit: seen.in_force().map(in_force),
                limit_changed: seen.was_limited_anew(),
                limits: [seen.limit, seen.limit_at_the_end],
                can_be_limited: target.group.can_be_limited(),
                machine_pressure: seen.pressure,
                queued: seen.queued,
                used: seen.usage.total(),
            },
            usage: Used { window: Quota::USUAL_PERIOD, quantiles: advice.quantiles, mean: seen.usage.mean() },
            settings: to_set(advice.recommendation).map(|cpus| settings(target, advice.request, cpus)),
            advice,
        }
    }
}

/// The limit to set; none where there is nothing to do.
fn to_set(recommendation: Recommendation) -> Option<Cpus> {
    match recommendation {
        Recommendation::Limit { cpus } => Some(cpus),
        Recommendation::Raise { from, to } => Some(to).filter(|_| to > from),
        Recommendation::None => None,
    }
}

/// The command lines that set it; for the container itself where it is this engine's.
fn settings(target: &Target, request: Cpus, cpus: Cpus) -> Settings {
    let command = |engine: Engine| match target.engine {
        Some(own) if own == engine => format!("{} update --cpus {cpus} {}", engine.name(), target.name),
        _ => format!("{} run --cpus {cpus} …", engine.name()),
    };
    let resource = |cpus: Cpus| Resource { cpu: format!("{}m", cpus.milli()) };
    Settings {
        docker: command(Engine::Docker),
        podman: command(Engine::Podman),
        kubernetes: Kubernetes { requests: resource(request), limits: resource(cpus) },
    }
}

impl Findings for Advised {
    const SCHEMA: &'static str = "dunnage-advice-cpu/2";

    fn data(&self) -> impl Serialize {
        self
    }

    fn document(&self, _: &Look) -> Document {
        let what = match self.target.engine {
            Some(engine) => format!("a container of {engine}"),
            None => "a cgroup".to_owned(),
        };
        let mut document = Document::titled(&format!("dunnage advise cpu: {}, {what}", self.target.name));
        let watched = &self.watched;
        document.fact("cgroup", &format!("{} (v{})", self.target.cgroup, self.target.cgroup_version));
        let early = if watched.ended_early { ", ended early by Ctrl-C" } else { "" };
        let missed = if watched.missed > 0 { format!(", {} missed", watched.missed) } else { String::new() };
        document.fact(
            "watched",
            &format!(
                "{}, {} readings, one every {}{missed}{early}",
                watched.seconds, watched.readings, watched.every
            ),
        );
        document.fact("limit", &self.in_force());
        let Used { window, quantiles, mean } = &self.usage;
        document.fact(
            "usage",
            &format!(
                "p50 {:.3}, p95 {:.3}, p99 {:.3}, max {:.3} CPUs in windows of {window}, mean {:.3}",
                quantiles.p50.0, quantiles.p95.0, quantiles.p99.0, quantiles.max.0, mean.0
            ),
        );
        if let Some(queued) = watched.queued {
            let limit = if watched.limit.is_some() { ", the limit included" } else { "" };
            document.fact(
                "waiting",
                &format!(
                    "its tasks used {} and were ready to run without a CPU for {queued}{limit}: what others kept them from \
                     is not seen",
                    watched.used
                ),
            );
        }
        document.answer = self.recommended();
        document.sections.push(Section {
            name: "limits".into(),
            title: "what other limits would mean".into(),
            blocks: vec![Block::Table(self.trade())],
        });
        document
    }
}

impl Advised {
    fn in_force(&self) -> String {
        let watched = &self.watched;
        let changed = match watched.limit_changed {
            false => String::new(),
            true => {
                let in_cpus =
                    |limit: Option<Quota>| limit.map_or("none".to_owned(), |limit| limit.cpus().to_string());
                let [from, to] = watched.limits.map(in_cpus);
                format!(
                    "; it was changed from {from} to {to} while it was watched, so nothing here is of one piece"
                )
            }
        };
        let Some(InForce { cpus, limit, counted, throttled_share }) = &watched.limit else {
            let none = if watched.can_be_limited { "none" } else { "none can be set here: no controller" };
            return format!("{none}; throttled periods: not applicable{changed}");
        };
        let throttled = match throttled_share {
            Some(share) => format!(
                "{} of {} periods throttled ({}), {} waited",
                counted.throttled,
                counted.periods,
                percent(*share),
                counted.waited
            ),
            None => "not one period was active".to_owned(),
        };
        format!("{cpus} CPUs ({} in each {}); {throttled}{changed}", limit.quota, limit.period)
    }

    fn trade(&self) -> Table {
        let columns =
            ["CPUs", "throttled periods", "waits p50", "waits p99", "waits max"].map(Column::numbers);
        let columns = columns.into_iter().chain([Column::words("")]).collect();
        let mut table = Table::of("", columns).note(format!(
            "The usage replayed under each limit as the kernel deals it out, with {} at a time. Throttled: periods at whose \
             end something waited, of those that the kernel counts; below 1 % healthy, above 50 % the rule (a published \
             alarm stands at 10 %). Waits: how much later CPU time was given than without a limit, by CPU time. Work comes \
             when it came; a program that asks for more only when it is done waits less often.",
            counted(self.advice.threads, "thread")
        ));
        self.advice.tried.iter().for_each(|tried| table.row(&[], row(tried)));
        table
    }

    fn recommended(&self) -> Vec<Block> {
        let seconds = self.watched.seconds;
        let text = match self.advice.recommendation {
            Recommendation::Limit { cpus } => format!(
                "{cpus} CPUs: the smallest limit under which fewer than 1 % of the periods would have been throttled. It \
                 leaves no room for what was not seen in these {seconds}."
            ),
            Recommendation::Raise { from, to } if to > from => format!(
                "At least {from} CPUs, the limit in force: it held work back, so what was seen is less than what was \
                 wanted, by an unknown amount. Raise it to {to}, or lift it, and watch again."
            ),
            Recommendation::Raise { from, .. } => format!(
                "At least {from} CPUs, the limit in force, which is all that the machine has: it held work back, so what \
                 was seen is less than what was wanted. A smaller one would hold back more."
            ),
            Recommendation::None => {
                "No limit: any below the number of CPUs of this machine would have throttled 1 % of \
                                     the periods or more."
                    .into()
            }
        };
        let rule = format!(
            "The usual rule, p95 × 1.5, says {}. It sees neither how long a burst lasts nor how many threads share it, and \
             leaves 5 % of the windows out of sight.",
            self.advice.rule
        );
        let mut blocks = vec![Block::Words(Tone::Strong, text), Block::words(rule)];
        if let Some(set) = &self.settings {
            let lines =
                ["requests", "limits"].into_iter().zip([&set.kubernetes.requests, &set.kubernetes.limits]);
            let lines = lines.flat_map(|(name, one)| [format!("  {name}:"), format!("    cpu: {}", one.cpu)]);
            blocks.push(Block::List(vec![
                Item::default().copy("docker", &set.docker).copy("podman", &set.podman),
            ]));
            blocks.push(Block::words("kubernetes:"));
            blocks.push(Block::copy(["resources:".to_owned()].into_iter().chain(lines)));
        }
        blocks
    }
}

fn row(tried: &Tried) -> Vec<Cell> {
    let words: Vec<&str> = tried.origins.iter().filter_map(|origin| word(*origin)).collect();
    let cpus = Cell::words(tried.cpus.to_string()).key(tried.cpus.0);
    let Some(found) = &tried.prediction else {
        let unknown = Cell::words("what the limit in force held back is not known");
        let [p50, p99, max] = [(); 3].map(|()| Cell::nothing("?"));
        return vec![cpus, Cell::nothing("?"), p50, p99, max, unknown.tone(Tone::Open)];
    };
    let share = found.throttled.unwrap_or(0.0);
    let tone = match share {
        share if share < HEALTHY => Tone::Good,
        share if share < HEAVY => Tone::Open,
        _ => Tone::Bad,
    };
    let is_behind = found.falls_behind();
    let wait = |time: Nanos| {
        let shown = match time {
            // A replay knows no less than one step.
            Nanos(0) => format!("<{STEP}"),
            // What falls behind has waited for at least so long.
            time if is_behind => format!(">{time}"),
            time => time.to_string(),
        };
        Cell::words(shown).key(time.seconds())
    };
    let behind = if is_behind { vec![format!("falls behind by {}", found.behind)] } else { Vec::new() };
    let words: Vec<String> = behind.into_iter().chain(words.into_iter().map(str::to_owned)).collect();
    let throttled = Cell::words(percent(share)).key(share).tone(tone);
    vec![
        cpus,
        throttled,
        wait(found.wait.p50),
        wait(found.wait.p99),
        wait(found.wait.max),
        Cell::words(words.join(", ")),
    ]
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

/// A share as people read it: tenths below 10 %.
fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p > 0.0 && p < 0.1 => "<0.1 %".to_owned(),
        p if p < 9.95 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

//! The advice as a document: what was seen, what other limits would do, and the commands to type.

use serde::Serialize;
use serde_json::json;

use crate::advise::demand::STEP;
use crate::advise::recommend::{Advice, HEALTHY, HEAVY, Origin, Recommendation, Tried};
use crate::advise::usage::Quantiles;
use crate::advise::{Cpus, Quota, Throttling};
use crate::document::{Block, Cell, Column, Document, Findings, Item, Look, Section, Table, Tone};
use crate::report::text::{clean, in_shell, listed};
use crate::sys::cgroup::Version;
use crate::units::{Nanos, counted};
use crate::watch::sampler::{End, Pace, Seen};
use crate::watch::target::{Engine, Target};

/// What was watched, and the advice.
pub(super) struct Advised {
    pub target: Target,
    pub pace: Pace,
    pub seen: Seen,
    pub advice: Advice,
}

/// The command that sets a limit: on the container itself if it belongs to this engine.
fn command(engine: Engine, target: &Target, cpus: Cpus) -> String {
    match target.engine {
        Some(own) if own == engine => format!("{} update --cpus {cpus} {}", engine.name(), target.name),
        _ => format!("{} run --cpus {cpus} …", engine.name()),
    }
}

/// The command that changes the current limit.
fn command_now(target: &Target, cpus: Cpus) -> String {
    let own = || match target.engine {
        Some(engine) => command(engine, target, cpus),
        None => target.group.command(cpus),
    };
    target.group.command_around(cpus).unwrap_or_else(own)
}

impl Findings for Advised {
    const SCHEMA: &'static str = "dunnage-advice-cpu/3";

    fn data(&self) -> impl Serialize {
        let Advised { target, pace, seen, advice } = self;
        let mut data = json!(advice);
        data["target"] = json!({
            "name": clean(&target.name),
            "engine": target.engine.map(Engine::name),
            "id": target.id,
            "cgroup": target.group.directory.display().to_string(),
            "cgroup_version": self.version(),
        });
        let limit = seen.in_force().map(|limit| {
            let Throttling { periods, throttled, waited } = seen.throttling;
            json!({
                "cpus": limit.cpus(), "quota": limit.quota, "period": limit.period, "periods": periods,
                "throttled_periods": throttled, "throttled_time": waited, "throttled_share": seen.throttling.share(),
            })
        });
        data["watched"] = json!({
            "seconds": seen.usage.duration(),
            "every": pace.every,
            "readings": seen.usage.readings().len(),
            "missed": seen.missed,
            "ended_early": seen.end == End::Asked,
            "limit": limit,
            "limit_changed": seen.was_limited_anew(),
            "machine_pressure": seen.pressure,
            "queued": seen.queued,
            "used": seen.usage.total(),
        });
        data["usage"] = json!(advice.quantiles);
        // The period of most limits.
        data["usage"]["window"] = json!(Quota::USUAL_PERIOD);
        data["usage"]["mean"] = json!(seen.usage.mean());
        if let Recommendation::Raise { from, to } = advice.recommendation {
            let commands = (to > from).then(|| [to, from].map(|cpus| command_now(target, cpus)));
            data["recommendation"]["commands"] =
                json!(commands.map(|[raise, back]| json!({"raise": raise, "put_back": back})));
        }
        let resource = |cpus: Cpus| json!({"cpu": format!("{}m", cpus.milli())});
        let settings = |(cpus, request): (Cpus, Cpus)| {
            json!({
                "docker": command(Engine::Docker, target, cpus),
                "podman": command(Engine::Podman, target, cpus),
                "kubernetes": {"requests": resource(request), "limits": resource(cpus)},
            })
        };
        data["settings"] = json!(self.to_set().map(settings));
        data
    }

    fn document(&self, _: &Look) -> Document {
        let Advised { target, pace, seen, advice } = self;
        let what = match target.engine {
            Some(engine) => format!("a container of {}", engine.name()),
            None => "a cgroup".to_owned(),
        };
        let mut document = Document::titled(&format!("dunnage advise cpu: {}, {what}", clean(&target.name)));
        let directory = target.group.directory.display();
        document.fact("cgroup", &format!("{directory} (v{})", self.version()));
        let early = if seen.end == End::Asked { ", ended early by Ctrl-C" } else { "" };
        let missed = if seen.missed > 0 { format!(", {} missed", seen.missed) } else { String::new() };
        let (seconds, readings, every) = (seen.usage.duration(), seen.usage.readings().len(), pace.every);
        document
            .fact("watched", &format!("{seconds}, {readings} readings, one every {every}{missed}{early}"));
        document.fact("limit", &self.in_force());
        let Quantiles { p50, p95, p99, max } = advice.quantiles;
        let [p50, p95, max, mean] = [p50, p95, max, seen.usage.mean()].map(|cpus| format!("{:.3}", cpus.0));
        let p99 = p99.map_or(String::new(), |cpus| format!("p99 {:.3}, ", cpus.0));
        let window = Quota::USUAL_PERIOD;
        document.fact(
            "usage",
            &format!("p50 {p50}, p95 {p95}, {p99}max {max} CPUs in windows of {window}, mean {mean}"),
        );
        if let Some(queued) = seen.queued {
            let limit = if seen.in_force().is_some() { ", which includes the limit" } else { "" };
            document.fact(
                "waiting",
                &format!(
                    "its tasks used {} and were ready to run without a CPU for {queued}{limit}; the effect of other load \
                     is not part of the advice",
                    seen.usage.total()
                ),
            );
        }
        document.answer = self.recommended();
        document.sections.push(Section {
            name: "limits".into(),
            title: "what other limits would do".into(),
            blocks: vec![Block::Table(self.trade())],
        });
        document
    }
}

impl Advised {
    /// The limit to set and the CPUs to reserve, if there is anything to set.
    fn to_set(&self) -> Option<(Cpus, Cpus)> {
        match self.advice.recommendation {
            Recommendation::Limit { cpus } => Some((cpus, self.advice.request?)),
            _ => None,
        }
    }

    fn version(&self) -> u8 {
        if self.target.group.version == Version::V2 { 2 } else { 1 }
    }

    fn in_force(&self) -> String {
        let seen = &self.seen;
        let changed = match seen.was_limited_anew() {
            false => String::new(),
            true => {
                let [from, to] = [seen.limit, seen.limit_at_the_end]
                    .map(|limit| limit.map_or("none".to_owned(), |limit| limit.cpus().to_string()));
                format!(
                    "; the limit changed from {from} to {to} during the watch, so these results mix two limits"
                )
            }
        };
        let Some(limit) = seen.in_force() else {
            let can = self.target.group.can_be_limited();
            let none = if can { "none" } else { "none, and none can be set: no controller" };
            return format!("{none}; throttled periods: not applicable{changed}");
        };
        let Throttling { periods, throttled, waited } = seen.throttling;
        let throttled = match seen.throttling.share() {
            Some(share) => {
                format!("{throttled} of {periods} periods throttled ({}), {waited} waited", percent(share))
            }
            None => "no period was active".to_owned(),
        };
        format!("{} CPUs ({} in each {}); {throttled}{changed}", limit.cpus(), limit.quota, limit.period)
    }

    fn trade(&self) -> Table {
        let columns =
            ["CPUs", "throttled periods", "waits p50", "waits p99", "waits max"].map(Column::numbers);
        let columns = columns.into_iter().chain([Column::words("")]).collect();
        let mut table = Table::of("", columns).note(format!(
            "The usage, replayed under each limit as the kernel enforces it, with {} at a time. Throttled periods: those at whose \
             end a thread waited, of those that the kernel counts. Below 1 % is healthy, above 50 % is heavy (a published \
             alarm is set at 10 %). Waits: the delay of CPU time compared with no limit, weighted by CPU time. Work arrives \
             as it did; a program that asks for more work only when it is done waits less often.",
            counted(self.advice.threads, "thread")
        ));
        if self.advice.is_censored {
            table = table.note("The current limit already held back usage, so smaller limits would throttle more than shown.");
        }
        self.advice.tried.iter().for_each(|tried| table.row(&[], row(tried)));
        table
    }

    fn recommended(&self) -> Vec<Block> {
        let seconds = self.seen.usage.duration();
        let text = match self.advice.recommendation {
            Recommendation::Limit { cpus } => format!(
                "{cpus} CPUs: the smallest limit that would have throttled fewer than 1 % of the periods. It \
                 leaves no room for usage that did not occur in these {seconds}."
            ),
            Recommendation::Raise { from, to } => return self.refused(from, to),
            Recommendation::None => {
                "No limit: any limit below the number of CPUs of this machine would have throttled 1 % of the \
                 periods or more."
                    .into()
            }
        };
        let rule = |rule: Cpus| {
            Block::words(format!(
                "The usual rule, p95 × 1.5, gives {rule}. It ignores how long a burst lasts and how many threads share \
                 it, and 5 % of the windows."
            ))
        };
        let mut blocks = vec![Block::Words(Tone::Strong, text)];
        blocks.extend(self.advice.rule.map(rule));
        if let Some((cpus, request)) = self.to_set() {
            let [docker, podman] = Engine::ALL.map(|engine| command(engine, &self.target, cpus));
            let lines = [("requests", request), ("limits", cpus)];
            let lines =
                lines.map(|(name, cpus)| [format!("  {name}:"), format!("    cpu: {}m", cpus.milli())]);
            blocks.push(Block::List(vec![Item::default().copy("docker", docker).copy("podman", podman)]));
            blocks.push(Block::words("kubernetes:"));
            blocks
                .push(Block::copy(["resources:".to_owned()].into_iter().chain(lines.into_iter().flatten())));
        }
        blocks
    }

    /// What to do if the current limit hides the real demand.
    fn refused(&self, from: Cpus, to: Cpus) -> Vec<Block> {
        let share = percent(self.seen.throttling.share().unwrap_or(0.0));
        let why = format!(
            "No advice: the current limit of {from} CPUs throttled {share} of its periods, so the real demand is larger \
             than the usage, by an unknown amount."
        );
        let mut blocks = vec![Block::Words(Tone::Strong, why)];
        if to <= from {
            blocks.push(Block::words(
                "This limit is already all CPUs of the machine; a smaller one would throttle more.",
            ));
            return blocks;
        }
        let [raise, back] = [to, from].map(|cpus| command_now(&self.target, cpus));
        let watch = in_shell(["dunnage", "advise", "cpu", &self.target.name]);
        blocks.push(Block::words(
            "Raise the limit for a while, watch again, then set the limit that it advises:",
        ));
        blocks.push(Block::List(vec![
            Item::default().copy("raise", raise).copy("watch", watch).copy("back", back),
        ]));
        blocks.push(Block::words(
            "Wait until the higher limit is in effect and the backlog is gone: trust the first watch that \
             shows fewer than 1 % of its periods throttled. Until then, raise the limit further.",
        ));
        blocks
    }
}

fn row(tried: &Tried) -> Vec<Cell> {
    let cpus = Cell::words(tried.cpus.to_string()).key(tried.cpus.0);
    let Some(found) = &tried.prediction else {
        let unknown = Cell::words("unknown: the current limit held back usage");
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
            // A replay cannot resolve less than one step.
            Nanos(0) => format!("<{STEP}"),
            // What falls behind has waited at least this long.
            time if is_behind => format!(">{time}"),
            time => time.to_string(),
        };
        Cell::words(shown).key(time.seconds())
    };
    let behind = is_behind.then(|| format!("falls behind by {}", found.behind));
    let origins = tried.origins.iter().filter_map(|origin| word(*origin)).map(str::to_owned);
    let words = Cell::words(listed(behind.into_iter().chain(origins), ", "));
    let throttled = Cell::words(percent(share)).key(share).tone(tone);
    let [p50, p99, max] = [found.wait.p50, found.wait.p99, found.wait.max].map(wait);
    vec![cpus, throttled, p50, p99, max, words]
}

fn word(origin: Origin) -> Option<&'static str> {
    match origin {
        Origin::Trade => None,
        Origin::Rule => Some("p95 × 1.5"),
        Origin::InForce => Some("current"),
        Origin::Asked => Some("requested"),
        Origin::Recommended => Some("recommended"),
    }
}

/// A share in percent, with tenths below 10 %.
fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p > 0.0 && p < 0.1 => "<0.1 %".to_owned(),
        p if p < 9.95 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

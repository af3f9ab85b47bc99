//! The advice as JSON for programs. The shape is described in `docs/advise-json.md`; times are seconds, shares are 0 to 1.

use serde::Serialize;

use super::Told;
use super::page::in_milli;
use crate::advise::recommend::{Origin, Recommendation, Tried};
use crate::advise::{Quota, Throttling};
use crate::report::text::clean;
use crate::sys::cgroup::Version;
use crate::units::Nanos;
use crate::watch::sampler::End;
use crate::watch::target::Engine;

/// Name and version of the shape.
const SCHEMA: &str = "dunnage-advice-cpu/1";

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    dunnage: &'static str,
    target: Target,
    watched: Watched,
    usage: Usage,
    is_censored: bool,
    threads: usize,
    rule: f64,
    tried: Vec<Limit>,
    recommendation: Advised,
    settings: Option<Settings>,
}

#[derive(Serialize)]
struct Target {
    name: String,
    engine: Option<&'static str>,
    id: Option<String>,
    cgroup: String,
    cgroup_version: u8,
}

#[derive(Serialize)]
struct Watched {
    seconds: f64,
    every: f64,
    readings: usize,
    missed: u64,
    ended_early: bool,
    limit: Option<InForce>,
    limit_changed: bool,
    machine_pressure: Option<f64>,
    queued: Option<f64>,
}

#[derive(Serialize)]
struct InForce {
    cpus: f64,
    quota: f64,
    period: f64,
    periods: u64,
    throttled_periods: u64,
    throttled_share: Option<f64>,
    throttled_time: f64,
}

#[derive(Serialize)]
struct Usage {
    window: f64,
    p50: f64,
    p95: f64,
    p99: f64,
    max: f64,
    mean: f64,
}

#[derive(Serialize)]
struct Limit {
    cpus: f64,
    origins: Vec<&'static str>,
    predicted: Option<Predicted>,
}

#[derive(Serialize)]
struct Predicted {
    throttled_share: Option<f64>,
    wait_p50: f64,
    wait_p99: f64,
    wait_max: f64,
    falls_behind: Option<f64>,
}

#[derive(Serialize)]
struct Advised {
    kind: &'static str,
    cpus: Option<f64>,
    watch_again_with: Option<f64>,
}

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

/// The document.
pub fn render(told: &Told<'_>) -> String {
    let (advice, seen) = (told.advice, told.seen);
    let document = Document {
        schema: SCHEMA,
        dunnage: env!("CARGO_PKG_VERSION"),
        target: target(told),
        watched: Watched {
            seconds: seen.usage.duration().seconds(),
            every: told.pace.every.seconds(),
            readings: seen.usage.readings().len(),
            missed: seen.missed,
            ended_early: seen.end == End::Asked,
            limit: seen.in_force().map(|limit| in_force(limit, seen.throttling)),
            limit_changed: seen.was_limited_anew(),
            machine_pressure: seen.pressure,
            queued: seen.queued.map(Nanos::seconds),
        },
        usage: Usage {
            window: Quota::USUAL_PERIOD.seconds(),
            p50: advice.quantiles.p50.0,
            p95: advice.quantiles.p95.0,
            p99: advice.quantiles.p99.0,
            max: advice.quantiles.max.0,
            mean: seen.usage.mean().0,
        },
        is_censored: advice.is_censored,
        threads: advice.threads,
        rule: advice.rule.0,
        tried: advice.tried.iter().map(limit).collect(),
        recommendation: advised(advice.recommendation),
        settings: settings(told),
    };
    serde_json::to_string_pretty(&document).expect("strings, numbers and lists of them become JSON") + "\n"
}

fn target(told: &Told<'_>) -> Target {
    let target = told.target;
    Target {
        name: clean(&target.name),
        engine: target.engine.map(Engine::name),
        id: target.id.clone(),
        cgroup: target.group.directory.display().to_string(),
        cgroup_version: if target.group.version == Version::V2 { 2 } else { 1 },
    }
}

fn in_force(limit: Quota, counted: Throttling) -> InForce {
    InForce {
        cpus: limit.cpus().0,
        quota: limit.quota.seconds(),
        period: limit.period.seconds(),
        periods: counted.periods,
        throttled_periods: counted.throttled,
        throttled_share: counted.share(),
        throttled_time: counted.waited.seconds(),
    }
}

fn limit(tried: &Tried) -> Limit {
    let predicted = tried.prediction.as_ref().map(|found| Predicted {
        throttled_share: found.throttled,
        wait_p50: found.wait.p50.seconds(),
        wait_p99: found.wait.p99.seconds(),
        wait_max: found.wait.max.seconds(),
        falls_behind: found.falls_behind().then(|| found.behind.seconds()),
    });
    Limit {
        cpus: tried.cpus.0,
        origins: tried.origins.iter().map(|origin| name(*origin)).collect(),
        predicted,
    }
}

fn name(origin: Origin) -> &'static str {
    match origin {
        Origin::Trade => "trade",
        Origin::Rule => "rule",
        Origin::InForce => "in-force",
        Origin::Asked => "asked",
        Origin::Recommended => "recommended",
    }
}

fn advised(recommendation: Recommendation) -> Advised {
    match recommendation {
        Recommendation::Limit(cpus) => Advised { kind: "limit", cpus: Some(cpus.0), watch_again_with: None },
        Recommendation::Raise { from, to } => {
            Advised { kind: "raise", cpus: Some(from.0), watch_again_with: Some(to.0).filter(|_| to > from) }
        }
        Recommendation::None => Advised { kind: "none", cpus: None, watch_again_with: None },
    }
}

fn settings(told: &Told<'_>) -> Option<Settings> {
    let cpus = super::page::to_set(told.advice.recommendation)?;
    Some(Settings {
        docker: super::page::command(told, Engine::Docker, cpus),
        podman: super::page::command(told, Engine::Podman, cpus),
        kubernetes: Kubernetes {
            requests: Resource { cpu: in_milli(told.advice.request) },
            limits: Resource { cpu: in_milli(cpus) },
        },
    })
}

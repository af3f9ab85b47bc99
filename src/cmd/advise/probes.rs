//! `dunnage advise probes`: what share of a CPU health checks would cost under each engine, from a recorded run of `exec` or
//! from a new short run.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;
use serde_json::json;

use super::time;
use crate::advise::probes::{Cost, Schedule, costs};
use crate::cli::{self, Selection};
use crate::cmd::{run, show};
use crate::document::{Block, Cell, Column, Document, Findings, Look, Table, Tone};
use crate::exit::{self, Special, nothing};
use crate::record;
use crate::report::text::{estimated, in_shell, joined};
use crate::runner::Ending;
use crate::stats::Estimate;
use crate::subject::{self, Layer};
use crate::units::{Nanos, Unit, counted};

/// The shortest useful time between two checks.
const OFTEN: Nanos = Nanos::from_millis(100);
/// The longest one.
const SELDOM: Nanos = Nanos::from_millis(86_400_000);

/// Enough for an interval of each of a handful of subjects.
const ROUNDS: u32 = 13;

/// The schedule, and its costs in a run.
struct Checks {
    schedule: Schedule,
    run: PathBuf,
    costs: Vec<Cost>,
}

/// Runs the verb.
pub fn run(options: &cli::AdviseProbes) -> Result<i32> {
    show::known::<Checks>(&options.format)?;
    let every = time("--every", &options.every, (OFTEN, SELDOM), "10s")?;
    let schedule = Schedule { containers: options.containers, every };
    let directory = options.run.clone().map_or_else(|| measured(options, schedule), Ok)?;
    let recorded = record::open(&directory)?;
    let costs = costs(&recorded, schedule);
    if costs.is_empty() {
        let reasons = recorded.missing.iter().filter(|(name, _)| name.ends_with("_cpu"));
        let why = reasons.map(|(_, why)| format!(": {why}")).next().unwrap_or_default();
        return Err(nothing(format!(
            "`{}` has no CPU times of `exec`{why}\n\nhint: measure them with `dunnage run exec` as root",
            directory.display()
        )));
    }
    let checks = Checks { schedule, run: directory, costs };
    show::show(&checks, &options.format, Path::new("."), show::Output::default())?;
    Ok(exit::FINE)
}

/// The subjects of a run of its own: a bare process, and the engines, which are what runs health checks.
fn engines() -> Vec<String> {
    let is_one = |kind: &&subject::Kind| matches!(kind.layer, Layer::Bare | Layer::Engine);
    subject::shown_kinds().filter(is_one).map(|kind| kind.name.to_owned()).collect()
}

/// Makes a short run of `exec` for this schedule.
fn measured(options: &cli::AdviseProbes, schedule: Schedule) -> Result<PathBuf> {
    let selection = Selection {
        experiments: vec!["exec".into()],
        subjects: if options.subjects.is_empty() { engines() } else { options.subjects.clone() },
        rounds: Some(ROUNDS),
        set: vec![format!("prestate={}", schedule.prestate())],
        ..Selection::default()
    };
    let wanted = cli::Run { selection, outcome: cli::Outcome::default(), output: options.output.clone() };
    match run::measured(&wanted)? {
        (Ok(Ending::Complete), directory) => Ok(directory),
        (Ok(Ending::Interrupted), _) => Err(Special::Interrupted.into()),
        (Err(error), _) => Err(error),
    }
}

impl Findings for Checks {
    const SCHEMA: &'static str = "dunnage-advice-probes/1";

    fn data(&self) -> impl Serialize {
        let estimate = |one: &Estimate| {
            let ends = one.interval.map(|ends| [ends.low, ends.high]);
            json!({"median": one.value, "interval": ends, "confidence": 1.0 - one.alpha.get(), "rounds": one.rounds})
        };
        let cost = |one: &Cost| {
            json!({
                "subject": one.subject,
                "setting": one.setting.to_string(),
                "check": estimate(&one.check),
                "check_without_client": estimate(&one.engine),
                "cpus": estimate(&one.share),
                "cpus_without_client": estimate(&one.engine_share),
            })
        };
        json!({
            "run": self.run.display().to_string(),
            "containers": self.schedule.containers,
            "every": self.schedule.every,
            "rate": self.schedule.rate(),
            "subjects": self.costs.iter().map(cost).collect::<Vec<_>>(),
        })
    }

    fn document(&self, _: &Look) -> Document {
        let Checks { schedule, run, costs } = self;
        let mut document = Document::titled("dunnage advise probes: what health checks cost");
        let containers = counted(schedule.containers as usize, "container");
        let rate = format!("{:.3}", schedule.rate());
        let rate = rate.trim_end_matches('0').trim_end_matches('.');
        document.fact("checks", &format!("{containers}, each every {}: {rate} per second", schedule.every));
        document
            .fact("measured", &format!("{} in `{}`", of_settings(costs), in_shell([run.to_string_lossy()])));
        let told =
            |one: &Cost| format!("{} of a CPU with {}", estimated(Unit::Share, &one.share), one.subject);
        let mut ordered: Vec<&Cost> = costs.iter().collect();
        ordered.sort_by(|one, other| one.share.value.total_cmp(&other.share.value));
        let answer = match ordered[..] {
            [least, _, .., most] => format!("between {} and {}", told(least), told(most)),
            _ => joined(&ordered.into_iter().map(told).collect::<Vec<_>>(), "and"),
        };
        let columns = ["CPU time of a check", "share of a CPU", "without the client"].map(Column::numbers);
        let columns = [Column::words("subject")].into_iter().chain(columns).collect();
        let mut table = Table::of("", columns).note(
            "Medians over rounds, with intervals that together have 95 % confidence. Docker runs a `HEALTHCHECK` in its daemon, so its cost is in the \
             last column. Checks by `docker exec` (cron, a kubelet's exec probe) and `podman healthcheck run` start a client \
             and cost the whole. The measured check does almost nothing; add the cost of your own.",
        );
        for one in costs {
            let cells = [Cell::estimate(Unit::Seconds, &one.check), Cell::estimate(Unit::Share, &one.share)];
            let own = Cell::estimate(Unit::Share, &one.engine_share);
            let cells = [Cell::words(&one.subject)].into_iter().chain(cells).chain([own]);
            table.row(&[&one.subject], cells.collect());
        }
        document.answer = vec![
            Block::Words(Tone::Strong, format!("Health checks would take {answer}.")),
            Block::Table(table),
        ];
        document
    }
}

/// The settings and rounds that the costs are from.
fn of_settings(costs: &[Cost]) -> String {
    let settings = dunnage_analysis::distinct(costs.iter().map(|one| one.setting.to_string()));
    let rounds = costs.iter().map(|one| one.check.rounds).max().unwrap_or(0);
    format!("`exec`, {}, {}", joined(&settings, "and"), counted(rounds, "round"))
}

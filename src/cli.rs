//! The command line for clap: definitions only. `cmd` interprets them.

mod advise;

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::document;
use crate::exit;
use crate::subject::spec::parse_duration;

pub use advise::{Advise, AdviseCpu, AdviseProbes};

/// Measure what Linux containers cost, layer by layer, before the application does any work.
#[derive(Debug, Parser)]
#[command(name = "dunnage", version, about, max_term_width = 100, after_help = exit::HELP,
    after_long_help = concat!("Examples:
  dunnage run                                  all engines and runtimes found, in about five minutes
  dunnage run --quick                          the same in about a minute, with fewer subjects
  dunnage run start -s bare -s docker -s docker:net=none
  dunnage run command --cmd 'gzip -k9 /data/file' -s bare:image=debian -s docker:image=debian
  dunnage run start -s old=crun:bin=./crun-1.8 -s new=crun:bin=./crun
  dunnage report DIR --format csv > samples.csv

Exit codes: 0 success, 1 error, 2 usage error, 3 regression found by `compare`, 4 nothing could be
measured, 5 interrupted (samples kept), 6 measured, but some requested results are missing"))]
pub struct Cli {
    /// The verb.
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check what can be measured on this machine, what would distort it, and how to fix it.
    Doctor {
        /// Output format: terminal, html, md or json.
        #[arg(long, default_value = "terminal")]
        format: String,
        /// How much to print.
        #[command(flatten)]
        extent: Extent,
    },
    /// List experiments, subjects, metrics or plans.
    List {
        /// What to list [default: everything].
        #[arg(value_enum)]
        what: Option<Listed>,
        /// Only the one of this name, with all there is to say of it; for metrics, those of this experiment.
        #[arg(requires = "what")]
        name: Option<String>,
        /// Output format: terminal, html, md or json.
        #[arg(long, default_value = "terminal")]
        format: String,
    },
    /// Show the cells, comparisons, order and expected time of a run without measuring.
    Plan(Plan),
    /// Run every cell once and verify that its settings took effect.
    Check(Selection),
    /// Run the experiments, print the answer and keep the samples.
    #[command(after_long_help = "Examples:
  dunnage run
  dunnage run --quick -o first-look
  dunnage run start -s bare -s floor -s crun --rounds 30
  dunnage run start -s docker -s docker:seccomp=off --set prestate=primed
  dunnage run --plan ladder --rounds 30 --tag commit=1a2b3c
  dunnage run --events json > events.jsonl")]
    Run(Run),
    /// Resume an interrupted run.
    Resume {
        /// Run directory.
        directory: PathBuf,
        /// What to print.
        #[command(flatten)]
        outcome: Outcome,
    },
    /// Show the results of a run.
    Report {
        /// Run directory or pack.
        directory: PathBuf,
        /// Output format: terminal, html, md, json, csv, gobench, openmetrics, bmf, github-benchmark, svg or png.
        #[arg(long, default_value = "terminal")]
        format: String,
        /// Write to this file instead of standard output.
        #[arg(short, long)]
        output: Option<PathBuf>,
        /// Show published results next to those of the run, with their limitations.
        #[arg(long)]
        reference: bool,
        /// Show what each subject adds to a job of this length, such as `2s` or `2h`, in percent.
        #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
        job: Option<String>,
        /// Open one answer by its number: what it rests on, and what would turn it round; 0 lists all.
        #[arg(long, value_name = "N")]
        question: Option<usize>,
        /// Compare two subjects that differ in several things, with intervals but without verdicts.
        #[arg(long, num_args = 2, value_names = ["SUBJECT", "SUBJECT"])]
        between: Vec<String>,
        /// How much to print.
        #[command(flatten)]
        extent: Extent,
    },
    /// Show published results, their limitations and the metrics of dunnage that match them.
    #[command(after_long_help = "Examples:
  dunnage reference
  dunnage reference opscart
  dunnage reference --format csv > published.csv")]
    Reference {
        /// Show only this source [default: a list of all sources].
        source: Option<String>,
        /// Output format: terminal, html, md, json or csv.
        #[arg(long, default_value = "terminal")]
        format: String,
    },
    /// Compare old runs with new ones: what changed, and whether the subject or the machine caused it.
    #[command(after_long_help = "Examples:
  dunnage compare before after
  dunnage compare before after --format md > comment.md
  dunnage compare before-1 before-2 before-3 before-4 -- after-1 after-2 after-3 after-4
  dunnage compare runs/before runs/after
  dunnage compare before after --fail-on slower=5%

With one run on each side, the result applies to these two runs only. With `--fail-on`, the exit code is 3 if a subject is slower or fails more often, and 1 if that cannot be decided: values are missing, too few or suspect, more than 5 % of a subject's rounds failed, or the subject is slower in one setting and not in another.")]
    Compare(Compare),
    /// Convert another program's measurements into a run: hyperfine JSON, critest benchmark JSON, raw lists and tables, or dunnage's own csv.
    #[command(after_long_help = "Examples:
  hyperfine --export-json bench.json 'crun --version' 'runc --version'; dunnage import bench.json
  dunnage import container_benchmark_data.json -o critest-run --tag runtime=containerd
  dunnage import startup.csv  # `runtime,metric,value`, or stamps `START,END`, or `0m1.531s` a line
  dunnage import samples.csv -o again")]
    Import {
        /// File to import.
        file: PathBuf,
        /// Run directory to create; must be new or empty [default: named after the file].
        #[arg(short, long, value_name = "DIR")]
        output: Option<PathBuf>,
        /// Label to keep with the run and show in reports; repeatable.
        #[arg(long = "tag", value_name = "KEY=VALUE")]
        tags: Vec<String>,
    },
    /// Suggest a CPU limit for a running container, or show what health checks cost.
    #[command(subcommand)]
    Advise(Advise),
    /// Show a metric over many runs, and where its level changed.
    #[command(after_long_help = "Examples:
  dunnage history runs
  dunnage history runs --by commit -s docker --metric start.returned
  dunnage history runs/2026-* more.dunnage --format csv > history.csv")]
    History(History),
    /// Pack a run into one file to share, without private data.
    #[command(after_long_help = "Examples:
  dunnage pack first-look --dry-run
  dunnage pack first-look -o first-look.dunnage --private acme
  dunnage report first-look.dunnage

Before it writes anything, `pack` shows what it removes and the placeholders. docs/run-directory.md describes what a
pack contains and what it leaves out.")]
    Pack(Pack),
    /// Turn a pack back into a run directory.
    Unpack {
        /// Pack to read.
        file: PathBuf,
        /// Run directory to create [default: named after the pack].
        #[arg(short, long, value_name = "DIR")]
        output: Option<PathBuf>,
    },
    /// Remove dunnage's leftovers of killed runs, and its images in engines.
    Sweep {
        /// What to remove.
        #[arg(value_enum, default_value_t = Swept::All)]
        what: Swept,
        /// Show what would be removed, and remove nothing.
        #[arg(long)]
        dry_run: bool,
    },
    /// Print a completion script for a shell.
    Completions {
        /// Shell to print it for.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
}

/// A whole number in this range.
pub(crate) fn whole<T: TryFrom<i128>>(text: &str, range: RangeInclusive<i128>) -> Result<T, String> {
    let number = text.parse().map_err(|_| "not a whole number")?;
    let fits = Some(number).filter(|number| range.contains(number)).and_then(|number| number.try_into().ok());
    fits.ok_or_else(|| format!("{number} is not in {range:?}"))
}

/// A number of rounds, or of containers.
pub(crate) fn count(text: &str) -> Result<u32, String> {
    whole(text, 1..=1_000_000)
}

/// A time in whole seconds, with or without a unit.
fn seconds(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().or_else(|| Some(parse_duration(text)?.ceil() as u32));
    match number {
        Some(number @ 1..=3600) => Ok(number),
        Some(number) => Err(format!("{number} is not in 1..=3600")),
        None => Err("write seconds, or a time with its unit, as in `2min`".to_owned()),
    }
}

/// What `sweep` removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Swept {
    /// Leftovers of killed runs, and images.
    All,
    /// Containers, mounts, cgroups and the like that killed runs left.
    Containers,
    /// Images in engines and unpacked images, unless another dunnage is running.
    Images,
}

/// What `list` lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    /// The questions that dunnage can answer.
    Experiments,
    /// What can be measured, with its keys, and what was found on this machine.
    Subjects,
    /// The metrics, and what each number includes.
    Metrics,
    /// The plans that come with dunnage, for `--plan`.
    Plans,
}

/// The heading of what few runs need.
const MORE: &str = "Less often";
/// The heading of what runs a user's program.
const OWN: &str = "Your own program";

/// The cells of a run.
#[derive(Debug, Args, Default)]
pub struct Selection {
    /// Experiments to run, or `all` [default: start primitives].
    #[arg(value_name = "EXPERIMENT")]
    pub experiments: Vec<String>,
    /// Subject to measure, `[LABEL=]NAME[+RUNTIME][:key=value,…]`; repeatable [default: all that work here].
    #[arg(short = 's', long = "subject", value_name = "SUBJECT")]
    pub subjects: Vec<String>,
    /// Finish in about a minute, or one for each named experiment: fewer subjects and settings, but enough rounds for
    /// verdicts.
    #[arg(long)]
    pub quick: bool,
    /// Number of rounds [default: as many as fit in five minutes].
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = count)]
    pub rounds: Option<u32>,
    /// Measure only this value of an experiment's setting; repeatable.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Options of the experiment `command`.
    #[command(flatten)]
    pub command: CommandOptions,
    /// Plan file to read (docs/plan-file.md), or the name of a plan from `list plans`. Options given here override it.
    #[arg(help_heading = MORE, long, value_name = "FILE")]
    pub plan: Option<String>,
    /// Measure differences from the baseline to within P % of the longer median. A pilot finds the number of rounds; the run may stop earlier.
    #[arg(help_heading = MORE, long, value_name = "P%", allow_negative_numbers = true)]
    pub precision: Option<String>,
    /// Do not let experiments vary the subjects' keys, as `syscall` does with `seccomp`.
    #[arg(help_heading = MORE, long)]
    pub no_vary: bool,
    /// Let `density` also leave one thing out of engines at a time, such as the network or the log, to tell why bursts of starts
    /// are slow.
    #[arg(help_heading = MORE, long, conflicts_with = "no_vary")]
    pub why: bool,
    /// Let `start`, `command` and `service` also measure `cache=cold`, which empties the page cache of the whole machine before each
    /// such launch and slows down everything else on it. Needs root.
    #[arg(help_heading = MORE, long)]
    pub drop_caches: bool,
    /// What you expect, such as `start.returned: bare < floor < docker`: `<` less, `=` no difference that matters, `>` more.
    /// It is fixed before the run and checked in every report. `METRIC[key=value]: …` is about one setting only; repeatable.
    #[arg(help_heading = MORE, long = "predict", value_name = "PREDICTION")]
    pub predictions: Vec<String>,
    /// Seed for the order of measurements [default: random].
    #[arg(help_heading = MORE, long, value_name = "N", allow_negative_numbers = true, value_parser = |text: &str| whole::<u64>(text, 0..=u64::MAX.into()))]
    pub seed: Option<u64>,
    /// Time after which a launch counts as hung, in seconds or with a unit [default: 60].
    #[arg(help_heading = MORE, long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<u32>,
    /// Label to keep with the run and show in reports; repeatable.
    #[arg(help_heading = MORE, long = "tag", value_name = "KEY=VALUE")]
    pub tags: Vec<String>,
}

/// What the experiment `command` runs. Each option becomes a setting that is kept with the run.
#[derive(Debug, Args, Default)]
pub struct CommandOptions {
    /// Command for the experiment `command`. It is split into words as a shell would, `#` starting a comment, but no shell
    /// runs it.
    #[arg(help_heading = OWN, long, value_name = "COMMAND")]
    pub cmd: Option<String>,
    /// Run the command with the image's `/bin/sh -c`.
    #[arg(help_heading = OWN, long)]
    pub shell: bool,
    /// Start a container for the command, or enter a running one; repeatable to measure both [default: run].
    #[arg(help_heading = OWN, long, value_name = "run|exec")]
    pub mode: Vec<String>,
    /// Bind-mount a host path into the container, both paths absolute; repeatable.
    #[arg(help_heading = OWN, long, value_name = "HOST:INSIDE[:ro]")]
    pub mount: Vec<String>,
    /// Working directory of the command, inside the container.
    #[arg(help_heading = OWN, long, value_name = "DIR")]
    pub workdir: Option<String>,
    /// Environment variable for the command, whose value no result shows; `NAME` alone takes the value from dunnage's
    /// environment, where other users cannot read it in the list of processes; repeatable.
    #[arg(help_heading = OWN, long, value_name = "NAME[=VALUE]")]
    pub env: Vec<String>,
    /// Measure until the command, a service, is ready, then stop it: `log REGEX` waits for a matching line of output,
    /// `port N` for an open port inside, `exit` for the command's end [default: exit].
    #[arg(help_heading = OWN, long, value_name = "WHEN")]
    pub ready: Option<String>,
    /// The port where the command, a web service, answers inside: for `http`, `memory`, `memory-limit` and `density`.
    #[arg(help_heading = OWN, long, value_name = "N")]
    pub port: Option<u16>,
    /// Run the command with each value in place of `{NAME}`; repeatable for all combinations.
    #[arg(help_heading = OWN, long, value_name = "NAME=V1,V2,…")]
    pub sweep: Vec<String>,
}

/// The options of `plan`.
#[derive(Debug, Args)]
pub struct Plan {
    /// The cells.
    #[command(flatten)]
    pub selection: Selection,
    /// Also write the plan to this file, for `--plan`.
    #[arg(long, value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// How much to print.
    #[command(flatten)]
    pub extent: Extent,
}

/// The options of `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// The cells.
    #[command(flatten)]
    pub selection: Selection,
    /// Run directory to create [default: named after the date].
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// What to print.
    #[command(flatten)]
    pub outcome: Outcome,
}

/// How much to print on a terminal.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct Extent {
    /// Print everything, not only the answer that fits one screen.
    #[arg(long)]
    pub full: bool,
}

impl From<Extent> for document::Extent {
    fn from(extent: Extent) -> document::Extent {
        if extent.full { document::Extent::Full } else { document::Extent::Brief }
    }
}

/// What a run prints and writes.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct Outcome {
    /// Print events for other programs instead of progress and a report.
    #[arg(help_heading = MORE, long, value_enum)]
    pub events: Option<Events>,
    /// Do not write `report.html` into the run directory.
    #[arg(help_heading = MORE, long)]
    pub no_html: bool,
    /// How much to print.
    #[command(flatten)]
    pub extent: Extent,
}

/// The options of `compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// Old and new run, as run directories or packs. Any other directory means all runs in it.
    #[arg(value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// New runs, if a side has several.
    #[arg(last = true, value_name = "NEW")]
    pub new: Vec<PathBuf>,
    /// Output format: terminal, html, md or json.
    #[arg(long, default_value = "terminal")]
    pub format: String,
    /// Exit with 3 if a subject is slower, or slower by an estimated P % or more.
    #[arg(long, value_name = "slower[=P%]")]
    pub fail_on: Option<String>,
    /// Write to this file instead of standard output.
    #[arg(short, long)]
    pub output: Option<PathBuf>,
    /// How much to print.
    #[command(flatten)]
    pub extent: Extent,
}

/// The options of `history`.
#[derive(Debug, Args)]
pub struct History {
    /// Run directories, packs, or directories that contain them.
    #[arg(value_name = "DIR", required = true)]
    pub runs: Vec<PathBuf>,
    /// Order the runs by the first appearance of each value of this tag instead of by date. A change is then located
    /// between two values.
    #[arg(long, value_name = "TAG")]
    pub by: Option<String>,
    /// Metric to show, `EXPERIMENT.METRIC`; repeatable [default: the main metric of each experiment].
    #[arg(long = "metric", value_name = "METRIC")]
    pub metrics: Vec<String>,
    /// Subject to show, by its label; repeatable [default: all].
    #[arg(short = 's', long = "subject", value_name = "SUBJECT")]
    pub subjects: Vec<String>,
    /// Treat the runs of different hosts as one series; use it for hosts that are alike.
    #[arg(long)]
    pub across_hosts: bool,
    /// Output format: terminal, html, md, json or csv.
    #[arg(long, default_value = "terminal")]
    pub format: String,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// How much to print.
    #[command(flatten)]
    pub extent: Extent,
}

/// The options of `pack`.
#[derive(Debug, Args)]
pub struct Pack {
    /// Run directory.
    pub directory: PathBuf,
    /// File to write [default: named after the directory, with `.dunnage` appended].
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Also remove this word from all texts; repeatable.
    #[arg(long = "private", value_name = "WORD")]
    pub private: Vec<String>,
    /// Leave out this tag; repeatable. Other tags are kept.
    #[arg(long = "drop-tag", value_name = "KEY")]
    pub drop_tags: Vec<String>,
    /// Show everything that would be removed, and write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Overwrite an existing file.
    #[arg(long)]
    pub force: bool,
}

/// Format of the event stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Events {
    /// One JSON object per line, on standard output.
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_has_a_unit_or_is_in_seconds() {
        assert_eq!(["90", "90s", "1.5min", "1ms"].map(seconds), [Ok(90), Ok(90), Ok(90), Ok(1)]);
        assert_eq!(seconds("0"), Err("0 is not in 1..=3600".into()));
        assert!(seconds("2h").is_err() && seconds("soon").is_err());
    }
}

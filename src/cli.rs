//! The command line, as clap sees it. Definitions only; what they mean is worked out in `cmd`.

mod advise;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::document;
use crate::exit;
use crate::subject::spec::parse_duration;

pub use advise::{Advise, AdviseCpu, AdviseProbes};

/// Measures what Linux containers cost, layer by layer, before the application does any work.
#[derive(Debug, Parser)]
#[command(name = "dunnage", version, about, max_term_width = 100, after_help = exit::HELP,
    after_long_help = concat!("Examples:
  dunnage run                                  the ladder of all engines and runtimes found, in five minutes
  dunnage run --quick                          the same in one minute, with fewer subjects
  dunnage run start -s bare -s docker -s docker:net=none
  dunnage run command --cmd 'gzip -k9 /data/file' -s bare:image=debian -s docker:image=debian
  dunnage run start -s old=crun:bin=./crun-1.8 -s new=crun:bin=./crun
  dunnage report DIR --format csv > samples.csv

Exit codes: 0 fine, 1 error, 2 wrong usage, 3 a comparison found a regression, 4 nothing could be
measured, 5 interrupted (samples kept), 6 measured, but part of what was asked for is missing"))]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say what can be measured here, what would distort it, and how to fix it.
    Doctor {
        /// Output format: terminal, html, md or json.
        #[arg(long, default_value = "terminal")]
        format: String,
        /// How much is shown.
        #[command(flatten)]
        extent: Extent,
    },
    /// List experiments, subjects, metrics or plans.
    List {
        /// What to list; everything unless given.
        #[arg(value_enum)]
        what: Option<Listed>,
        /// Output format: terminal, html, md or json.
        #[arg(long, default_value = "terminal")]
        format: String,
    },
    /// Show the cells, the comparisons, the order and the time a run would take; measure nothing.
    Plan(Plan),
    /// Try every cell once and verify the treatment.
    Check(Selection),
    /// Measure.
    #[command(after_long_help = "Examples:
  dunnage run
  dunnage run --quick -o first-look
  dunnage run start -s bare -s floor -s crun --rounds 30
  dunnage run start -s docker -s docker:seccomp=off --set prestate=primed
  dunnage run --plan ladder --rounds 30 --tag commit=1a2b3c
  dunnage run --events json > events.jsonl")]
    Run(Run),
    /// Go on with a run that was interrupted.
    Resume {
        /// The run directory.
        directory: PathBuf,
        /// How it is shown.
        #[command(flatten)]
        outcome: Outcome,
    },
    /// Show the results of a run.
    Report {
        /// The run directory, or a pack.
        directory: PathBuf,
        /// Output format: terminal, html, md, json, csv, gobench, openmetrics, bmf, github-benchmark, svg or png.
        #[arg(long, default_value = "terminal")]
        format: String,
        /// Write to this file instead of standard output.
        #[arg(short, long)]
        output: Option<PathBuf>,
        /// Show what others published about the same things beside it, with its cautions.
        #[arg(long)]
        reference: bool,
        /// Say what each subject adds to a job of this length, such as `2s` or `2h`, as a share of it.
        #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
        job: Option<String>,
        /// Show two subjects side by side that differ in several things, with intervals and without verdicts.
        #[arg(long, num_args = 2, value_names = ["SUBJECT", "SUBJECT"])]
        between: Vec<String>,
        /// How much is shown.
        #[command(flatten)]
        extent: Extent,
    },
    /// Show what others published, with its cautions and what of ours is the same.
    #[command(after_long_help = "Examples:
  dunnage reference
  dunnage reference opscart
  dunnage reference --format csv > published.csv")]
    Reference {
        /// Which source; a list of all unless given.
        source: Option<String>,
        /// Output format: terminal, html, md, json or csv.
        #[arg(long, default_value = "terminal")]
        format: String,
    },
    /// Set old runs beside new ones: what changed, and whether it is the subject's doing or the machine's.
    #[command(after_long_help = "Examples:
  dunnage compare before after
  dunnage compare before after --format md > comment.md
  dunnage compare before-1 before-2 before-3 before-4 -- after-1 after-2 after-3 after-4
  dunnage compare runs/before runs/after
  dunnage compare before after --fail-on slower=5%

One run a side says only whether these two runs differ. With `--fail-on` the exit code is 3 where a subject is slower, and 1 where that cannot be said: no values, too few, a suspect, or slower in one setting and not in another.")]
    Compare(Compare),
    /// Make a run of what another program measured: hyperfine's JSON, critest's benchmark JSON, raw lists and tables, or our own csv.
    #[command(after_long_help = "Examples:
  hyperfine --export-json bench.json 'crun --version' 'runc --version'; dunnage import bench.json
  dunnage import container_benchmark_data.json -o critest-run --tag runtime=containerd
  dunnage import startup.csv  # `runtime,metric,value`, or stamps `START,END`, or `0m1.531s` a line
  dunnage import samples.csv -o again")]
    Import {
        /// The file.
        file: PathBuf,
        /// Where the run goes, a new or empty directory; named after the file unless given.
        #[arg(short, long, value_name = "DIR")]
        output: Option<PathBuf>,
        /// A label of the run, kept with it and shown in reports; repeat for several.
        #[arg(long = "tag", value_name = "KEY=VALUE")]
        tags: Vec<String>,
    },
    /// Say which CPU limit a running container would bear, or what health checks cost.
    #[command(subcommand)]
    Advise(Advise),
    /// Show a metric over many runs, and where its level changed.
    #[command(after_long_help = "Examples:
  dunnage history runs
  dunnage history runs --by commit -s docker --metric start.returned
  dunnage history runs/2026-* more.dunnage --format csv > history.csv")]
    History(History),
    /// Make one file of a run that can be given away: everything to analyse it again, and nothing private.
    #[command(after_long_help = "Examples:
  dunnage pack first-look --dry-run
  dunnage pack first-look -o first-look.dunnage --private acme
  dunnage report first-look.dunnage

What is taken out and what stands for it is shown before anything is written; docs/run-directory.md says what a
pack holds and what it lacks.")]
    Pack(Pack),
    /// Make a run directory of a pack again.
    Unpack {
        /// The pack.
        file: PathBuf,
        /// The run directory to make; one named as the pack unless given.
        #[arg(short, long, value_name = "DIR")]
        output: Option<PathBuf>,
    },
    /// Remove everything of ours that killed runs left, and the images in engines.
    Sweep {
        /// Which of it.
        #[arg(value_enum, default_value_t = Swept::All)]
        what: Swept,
        /// Remove nothing, and say what would be removed.
        #[arg(long)]
        dry_run: bool,
    },
    /// Print a script with which a shell completes the command line.
    Completions {
        /// For which shell.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
}

/// A time in whole seconds, with or without its unit.
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
    /// What killed runs left, and images.
    All,
    /// Containers, mounts, cgroups and the like that killed runs left.
    Containers,
    /// Images in engines and unpacked ones, where no other dunnage runs.
    Images,
}

/// What `list` lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    /// The questions that can be asked.
    Experiments,
    /// Where they can be asked, with keys, and what was found on this machine.
    Subjects,
    /// What is measured, and what lies inside each number.
    Metrics,
    /// The plans for `--plan` that the program brings with it.
    Plans,
}

/// Which cells a run has.
#[derive(Debug, Args, Default)]
pub struct Selection {
    /// Experiments, or `all`; the main ones unless given.
    #[arg(value_name = "EXPERIMENT")]
    pub experiments: Vec<String>,
    /// Take what is not given here from a plan file (docs/plan-file.md): a path, or the name of a plan that `list plans` shows.
    #[arg(long, value_name = "FILE")]
    pub plan: Option<String>,
    /// A subject, `[LABEL=]NAME[+RUNTIME][:key=value,…]`; repeat for several. Everything that works here unless given.
    #[arg(short = 's', long = "subject", value_name = "SUBJECT")]
    pub subjects: Vec<String>,
    /// Rounds to measure; as many as fit the time unless given.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rounds: Option<u32>,
    /// As many rounds as a pilot finds necessary, or fewer where they do, so that differences from the baseline are known to within P % of the longer median.
    #[arg(long, value_name = "P%", allow_negative_numbers = true)]
    pub precision: Option<String>,
    /// At most a minute: fewer subjects and settings, enough rounds for verdicts.
    #[arg(long)]
    pub quick: bool,
    /// Restrict a setting of an experiment to a value; repeat for several.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// What `command` runs and how.
    #[command(flatten)]
    pub command: CommandOptions,
    /// Measure the subjects as they are: let no experiment vary keys of theirs, as `syscall` does with `seccomp`.
    #[arg(long)]
    pub no_vary: bool,
    /// Let `start`, `command` and `service` vary the setting `cache` too: `cache=cold` empties the page cache of the whole machine before each
    /// such launch, which slows everybody on it down. Needs root.
    #[arg(long)]
    pub drop_caches: bool,
    /// What you expect, fixed before measuring and set against the outcome in every report, such as
    /// `start.returned: bare < floor < docker`: `<` less, `=` no difference that matters, `>` more; repeat for several.
    /// `METRIC[key=value]: …` is about one setting only.
    #[arg(long = "predict", value_name = "PREDICTION")]
    pub predictions: Vec<String>,
    /// The seed of every order; chosen by chance unless given.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Seconds after which a launch counts as hung; 60 unless given.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<u32>,
    /// A label of the run, kept with it and shown in reports; repeat for several.
    #[arg(long = "tag", value_name = "KEY=VALUE")]
    pub tags: Vec<String>,
}

/// What the experiment `command` runs: each becomes a setting, kept with the run.
#[derive(Debug, Args, Default)]
pub struct CommandOptions {
    /// The command that `command` runs, split into words as a shell does it: a word that begins with `#` starts a comment
    /// unless it is quoted. No shell runs it.
    #[arg(long, value_name = "COMMAND")]
    pub cmd: Option<String>,
    /// Have `/bin/sh -c` of the image run the command.
    #[arg(long)]
    pub shell: bool,
    /// Start a container for the command, or enter one that runs already; repeat for both.
    #[arg(long, value_name = "run|exec")]
    pub mode: Vec<String>,
    /// Bind a place of the host into the container, both paths absolute; repeat for several.
    #[arg(long, value_name = "HOST:INSIDE[:ro]")]
    pub mount: Vec<String>,
    /// The directory inside in which the command starts.
    #[arg(long, value_name = "DIR")]
    pub workdir: Option<String>,
    /// A variable of the command; repeat for several.
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// Measure until the command, a service, is ready, and end it then: `log REGEX`, once a line of its output fits, or
    /// `port N`, once that port is open inside. `exit`, as without it: until it ends.
    #[arg(long, value_name = "WHEN")]
    pub ready: Option<String>,
    /// Run the command with each value in place of `{NAME}`; repeat for all combinations.
    #[arg(long, value_name = "NAME=V1,V2,…")]
    pub sweep: Vec<String>,
}

/// The options of `plan`.
#[derive(Debug, Args)]
pub struct Plan {
    /// Which cells.
    #[command(flatten)]
    pub selection: Selection,
    /// Write the plan to this file too, for `--plan`.
    #[arg(long, value_name = "FILE")]
    pub write: Option<PathBuf>,
    /// How much is shown.
    #[command(flatten)]
    pub extent: Extent,
}

/// The options of `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// Which cells.
    #[command(flatten)]
    pub selection: Selection,
    /// How it is shown.
    #[command(flatten)]
    pub outcome: Outcome,
    /// The run directory to make; one named after the date unless given.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// How much a terminal shows.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct Extent {
    /// Print everything on the terminal, and not only the answer in a screen.
    #[arg(long)]
    pub full: bool,
}

impl From<Extent> for document::Extent {
    fn from(extent: Extent) -> document::Extent {
        if extent.full { document::Extent::Full } else { document::Extent::Brief }
    }
}

/// How a run shows what it does and what came out.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct Outcome {
    /// Print events for other programs instead of progress and report.
    #[arg(long, value_enum)]
    pub events: Option<Events>,
    /// Write no `report.html` into the run directory.
    #[arg(long)]
    pub no_html: bool,
    /// How much is shown.
    #[command(flatten)]
    pub extent: Extent,
}

/// The options of `compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// The old run and the new one: run directories or packs; a directory that is no run stands for all runs in it.
    #[arg(value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// The new runs, where there are several on a side.
    #[arg(last = true, value_name = "NEW")]
    pub new: Vec<PathBuf>,
    /// Output format: terminal, html, md or json.
    #[arg(long, default_value = "terminal")]
    pub format: String,
    /// Exit with 3 where a subject is slower, perhaps only by P % or more as estimated.
    #[arg(long, value_name = "slower[=P%]")]
    pub fail_on: Option<String>,
    /// Write to this file instead of standard output.
    #[arg(short, long)]
    pub output: Option<PathBuf>,
    /// How much is shown.
    #[command(flatten)]
    pub extent: Extent,
}

/// The options of `history`.
#[derive(Debug, Args)]
pub struct History {
    /// Run directories, packs, or directories that hold them.
    #[arg(value_name = "DIR", required = true)]
    pub runs: Vec<PathBuf>,
    /// Put the runs in the order in which the values of this tag appeared, instead of by date; a change then lies
    /// between two values.
    #[arg(long, value_name = "TAG")]
    pub by: Option<String>,
    /// A metric, `EXPERIMENT.METRIC`; repeat for several. The first decisive one of each experiment unless given.
    #[arg(long = "metric", value_name = "METRIC")]
    pub metrics: Vec<String>,
    /// A subject by its label; repeat for several. All unless given.
    #[arg(short = 's', long = "subject", value_name = "SUBJECT")]
    pub subjects: Vec<String>,
    /// Take runs of different hosts as one series, because they are alike; each stands apart unless given.
    #[arg(long)]
    pub across_hosts: bool,
    /// Output format: terminal, html, md, json or csv.
    #[arg(long, default_value = "terminal")]
    pub format: String,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// How much is shown.
    #[command(flatten)]
    pub extent: Extent,
}

/// The options of `pack`.
#[derive(Debug, Args)]
pub struct Pack {
    /// The run directory.
    pub directory: PathBuf,
    /// The file to write; one named as the directory, with `.dunnage` behind it, unless given.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Take this word out too, wherever a text may hold it; repeat for several.
    #[arg(long = "private", value_name = "WORD")]
    pub private: Vec<String>,
    /// Leave this tag out; repeat for several. Other tags stay.
    #[arg(long = "drop-tag", value_name = "KEY")]
    pub drop_tags: Vec<String>,
    /// Show everything that would be taken out, and write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Write over a file that is there already.
    #[arg(long)]
    pub force: bool,
}

/// The form of the event stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Events {
    /// One JSON object a line, on standard output.
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

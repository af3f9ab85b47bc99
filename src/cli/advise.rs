//! What `advise` is asked for.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::watch::target::Engine;

/// On what `advise` advises.
#[derive(Debug, Subcommand)]
pub enum Advise {
    /// Watch a running container and say which limit its usage would bear.
    #[command(after_long_help = "Examples:
  dunnage advise cpu web
  dunnage advise cpu web --for 120s --limit 0.5 --limit 2
  dunnage advise cpu 3f2a --engine podman --format json > advice.json
  dunnage advise cpu /sys/fs/cgroup/system.slice/nginx.service

Ctrl-C ends watching early and advises on what was seen until then.")]
    Cpu(AdviseCpu),
    /// Say what share of a CPU health checks would cost under each engine.
    #[command(after_long_help = "Examples:
  dunnage advise probes
  dunnage advise probes --containers 500 --every 30s
  dunnage advise probes first-look --containers 100 --every 10s
  dunnage advise probes -s docker -s podman -s crun -o entries")]
    Probes(AdviseProbes),
}

/// The options of `advise probes`.
#[derive(Debug, Args)]
pub struct AdviseProbes {
    /// A run directory or pack that holds `exec`; a quick run is made unless given.
    #[arg(value_name = "RUN")]
    pub run: Option<PathBuf>,
    /// How many containers are checked.
    #[arg(long, value_name = "N", default_value = "100", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub containers: u32,
    /// From one check of a container to its next, 100 ms to 1 d.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "10s")]
    pub every: String,
    /// A subject of the quick run; repeat for several. Everything that works here unless given.
    #[arg(short = 's', long = "subject", value_name = "SUBJECT", conflicts_with = "run")]
    pub subjects: Vec<String>,
    /// The directory of the quick run; one named after the date unless given.
    #[arg(short, long, value_name = "DIR", conflicts_with = "run")]
    pub output: Option<PathBuf>,
    /// Output format: terminal, html, md or json.
    #[arg(long, default_value = "terminal")]
    pub format: String,
}

/// The options of `advise cpu`.
#[derive(Debug, Args)]
pub struct AdviseCpu {
    /// A running container of docker or podman, by its name or the beginning of its id; or the path of a cgroup, as
    /// a directory or as it stands in `/proc/PID/cgroup`.
    pub container: String,
    /// For how long to watch, 5 s to 1 h. What does not happen in this time is not in the advice.
    #[arg(long = "for", value_name = "TIME", allow_hyphen_values = true, default_value = "30s")]
    pub watch: String,
    /// How often to read the usage, 1 ms to 100 ms.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "10ms")]
    pub every: String,
    /// Whose container it is; looked for in both unless given.
    #[arg(long, value_enum)]
    pub engine: Option<Engine>,
    /// Predict what this limit would mean, too; repeat for several.
    #[arg(long = "limit", value_name = "CPUS", allow_hyphen_values = true)]
    pub limits: Vec<String>,
    /// Output format: terminal, html, md or json.
    #[arg(long, default_value = "terminal")]
    pub format: String,
}

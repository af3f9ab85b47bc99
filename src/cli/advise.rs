//! The options of `advise`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::watch::target::Engine;

/// What `advise` gives advice on.
#[derive(Debug, Subcommand)]
pub enum Advise {
    /// Watch a running container and suggest a CPU limit that its usage allows.
    #[command(after_long_help = "Examples:
  dunnage advise cpu web
  dunnage advise cpu web --for 120s --limit 0.5 --limit 2
  dunnage advise cpu 3f2a --engine podman --format json > advice.json
  dunnage advise cpu /sys/fs/cgroup/system.slice/nginx.service

Press Ctrl-C to stop watching early; the advice then covers the time until then.")]
    Cpu(AdviseCpu),
    /// Show what share of a CPU health checks would cost under each engine.
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
    /// Run directory or pack that contains `exec` [default: a new short run].
    #[arg(value_name = "RUN")]
    pub run: Option<PathBuf>,
    /// Number of containers to check.
    #[arg(long, value_name = "N", default_value = "100", allow_negative_numbers = true, value_parser = super::count)]
    pub containers: u32,
    /// Time between two checks of a container, 100 ms to 1 d.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "10s")]
    pub every: String,
    /// Subject of the short run; repeatable [default: bare and the engines that work here].
    #[arg(short = 's', long = "subject", value_name = "SUBJECT", conflicts_with = "run")]
    pub subjects: Vec<String>,
    /// Directory of the short run [default: named after the date].
    #[arg(short, long, value_name = "DIR", conflicts_with = "run")]
    pub output: Option<PathBuf>,
    /// Output format: terminal, html, md or json.
    #[arg(long, default_value = "terminal")]
    pub format: String,
}

/// The options of `advise cpu`.
#[derive(Debug, Args)]
pub struct AdviseCpu {
    /// A running container of docker or podman, by name or by the beginning of its id, or the path of a cgroup: its
    /// directory, or the path in `/proc/PID/cgroup`.
    pub container: String,
    /// How long to watch, 5 s to 1 h. Usage outside of this time is not considered.
    #[arg(long = "for", value_name = "TIME", allow_hyphen_values = true, default_value = "30s")]
    pub watch: String,
    /// How often to read the usage, 1 ms to 100 ms.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "10ms")]
    pub every: String,
    /// Engine of the container [default: the one that has it].
    #[arg(long, value_enum)]
    pub engine: Option<Engine>,
    /// Also predict the effect of this limit; repeatable.
    #[arg(long = "limit", value_name = "CPUS", allow_hyphen_values = true)]
    pub limits: Vec<String>,
    /// Output format: terminal, html, md or json.
    #[arg(long, default_value = "terminal")]
    pub format: String,
}

//! Works of a command, of calls, of computing and of a limit.

use dunnage_analysis::experiment::cpu::{KINDS, WIDTHS};
use dunnage_analysis::units::{Nanos, Stamp, whole_nanos};
use serde::{Deserialize, Serialize};

/// Keeps a CPU busy: a work without a purpose, to test everything that carries works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Spin {
    /// For so many milliseconds.
    pub millis: u64,
}

/// Makes system calls in batches.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Syscall {
    /// How long each call is repeated.
    #[serde(with = "whole_nanos")]
    pub window: Nanos,
    /// How often the call of the fixed work is made, without reading the clock.
    pub fixed: u64,
    /// Their names; all calls if there are none.
    pub calls: Vec<String>,
}

/// Computes, in passes of five kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cpu {
    /// Passes of each kind.
    pub passes: usize,
    /// Work of each pass in addition, in thousandths; only for benchmarks.
    pub more: u64,
    /// Passes in the fixed work.
    pub fixed: u64,
}

/// Puts a load on CPUs for a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Throttle {
    /// Its shape.
    pub load: Load,
    /// CPU time of a burst; of an alternating load wall time.
    #[serde(with = "whole_nanos")]
    pub busy: Nanos,
    /// From one burst to the next.
    #[serde(with = "whole_nanos")]
    pub every: Nanos,
    /// Threads that each carry it.
    pub threads: u64,
    /// The length of the window.
    #[serde(with = "whole_nanos")]
    pub length: Nanos,
}

/// The shape of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// Without a pause.
    Continuous,
    /// Bursts of CPU time that are due at even intervals.
    Bursts,
    /// Busy, then asleep.
    Alternating,
}

/// Runs a user's command, or starts it as a service.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Command {
    /// What is done with it.
    pub mode: Mode,
    /// Whether its output takes the probe's own way; otherwise it is discarded.
    pub through: bool,
    /// The file for the probe's message, which first holds the variables.
    pub file: String,
    /// How it gets ready, if it is a service.
    pub service: Option<Ready>,
    /// The working directory; empty for the current one.
    pub directory: String,
    /// How many variables there are.
    pub variables: usize,
    /// Its words; without any nothing is started, which measures the start alone.
    pub words: Vec<String>,
}

/// What is done with a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The file that would be executed is reported with its SHA-256.
    Identify,
    /// It runs.
    Run,
    /// The same, and how much of its file is in the page cache is reported.
    Cold,
}

/// When a service is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ready {
    /// When this port is open; without one, when the host signals it.
    pub port: Option<u16>,
    /// How long it has.
    #[serde(with = "whole_nanos")]
    pub allowed: Nanos,
}

/// Runs a program inside until it ends, with its words kept: for what a user would do in a shell there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Execute {
    /// Whether it has the variables of its container.
    pub inherits: bool,
    /// Its own variables, each `NAME=VALUE`.
    pub variables: Vec<String>,
    /// Its words.
    pub words: Vec<String>,
    /// After this time it is killed, with all in its process group.
    #[serde(with = "whole_nanos")]
    pub allowed: Nanos,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Executed {
    /// Right before it was started.
    pub began: Stamp,
    /// When its end was reported.
    pub ended: Stamp,
    /// Its exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// Whether it was killed since it took too long.
    pub timed_out: bool,
    /// The end of its standard output.
    pub output: String,
    /// The end of its standard error.
    pub errors: String,
}

/// How long a CPU was busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spun {
    /// Readings of the clock.
    pub turns: u64,
    /// The time.
    #[serde(with = "whole_nanos")]
    pub took: Nanos,
}

/// A fixed work, done once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whole {
    /// Wall time.
    #[serde(with = "whole_nanos")]
    pub took: Nanos,
    /// CPU time of all its threads.
    #[serde(with = "whole_nanos")]
    pub cpu: Nanos,
    /// What the CPU limit of its cgroup did meanwhile, if there is one.
    pub limit: Option<Throttled>,
}

/// What a CPU limit did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttled {
    /// Its periods.
    pub periods: u64,
    /// Of these, the throttled ones.
    pub throttled: u64,
    /// How long queues were stopped, added up over CPUs.
    #[serde(with = "whole_nanos")]
    pub time: Nanos,
}

/// The times of system calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calls {
    /// The CPU that made them.
    pub cpu: usize,
    /// Each by its name, or the error number.
    pub each: Vec<(String, Result<Called, i32>)>,
    /// The fixed work in words, and the work if it could be done.
    pub fixed: (String, Option<Whole>),
    /// Whether there is a vDSO.
    pub has_vdso: bool,
    /// What the kernel says of the process: the mitigation of speculative store bypass, that of indirect branches, and the
    /// number of filters.
    pub status: [Option<String>; 3],
    /// Why its cgroup's counters are not its own, or not there.
    pub no_counters: Option<String>,
}

/// The time of a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Called {
    /// Picoseconds of one.
    pub picoseconds: u64,
    /// Calls that were made.
    pub calls: u64,
    /// Their batches.
    pub batches: u64,
}

/// What computing took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Computed {
    /// By kind and width.
    pub passes: [[Passes; WIDTHS.len()]; KINDS.len()],
    /// The fixed work in words, and the work by width; none if there was none to do.
    pub fixed: (String, Option<[Whole; WIDTHS.len()]>),
    /// Passes with a wrong result.
    pub wrong: u64,
    /// The time of an empty pass.
    #[serde(with = "whole_nanos")]
    pub empty: Nanos,
    /// How many threads work at once.
    pub threads: u64,
    /// The CPU of the one that also works alone.
    pub cpu: usize,
    /// Bytes of its memory that are in huge pages, where the kernel says so.
    pub huge_pages: Option<u64>,
    /// Why its cgroup's counters are not its own, or not there.
    pub no_counters: Option<String>,
}

/// The times of passes, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Passes {
    /// From the first start to the last end.
    pub wall: Vec<i64>,
    /// The longest time that one of its threads was off its CPU.
    pub waited: Vec<i64>,
}

/// What happened in the window of a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Carried {
    /// The CPUs that it may use.
    pub cpus: usize,
    /// Whether the window began with a period.
    pub aligned: bool,
    /// Its length.
    #[serde(with = "whole_nanos")]
    pub window: Nanos,
    /// CPU time of the process in user mode.
    #[serde(with = "whole_nanos")]
    pub user: Nanos,
    /// And in the kernel.
    #[serde(with = "whole_nanos")]
    pub system: Nanos,
    /// By its cgroup's counters, or why there are none.
    pub cgroup: Result<Counted, String>,
    /// Iterations of the loop.
    pub turns: u64,
    /// Its bursts, of a load that has some.
    pub bursts: Option<Bursts>,
    /// CPU time in each period, in nanoseconds.
    pub period_cpu: Vec<i64>,
}

/// What a cgroup counted in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// CPU time.
    #[serde(with = "whole_nanos")]
    pub usage: Nanos,
    /// The quota in force, and what it did.
    pub quota: Option<(Quota, Throttled)>,
    /// How often saved quota was used, and for how many nanoseconds, where the kernel counts that.
    pub saved: Option<(u64, i64)>,
}

/// A limit, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// CPU time in each period.
    pub each: i64,
    /// The period.
    pub period: i64,
    /// The most unused quota that may be saved up.
    pub burst: i64,
}

/// The bursts of a load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bursts {
    /// Those that ended.
    pub done: u64,
    /// Those that were due and did not.
    pub waiting: u64,
    /// From intended start to end, in nanoseconds.
    pub latency: Vec<i64>,
}

/// What became of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ran {
    /// The file that is executed, once it is found.
    pub program: Option<String>,
    /// Its SHA-256, if it was asked for and can be read.
    pub sha256: Option<String>,
    /// How much of it was in the page cache, if that was asked for.
    pub cached: Option<Cached>,
    /// The peak of the memory that its own cgroup was charged with, or why that is not known.
    pub charged: Option<Result<u64, String>>,
    /// How it ended.
    pub end: End,
}

/// A file in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cached {
    /// Its pages there, if that can be found out.
    pub pages: Option<u64>,
    /// Its length.
    pub bytes: u64,
}

/// How a command ended; the numbers are those of errors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It was not to be started.
    NotAsked,
    /// The directory is not there, or cannot be entered.
    NoDirectory(i32),
    /// The program is not there, or cannot be executed.
    NotExecuted(i32),
    /// No process could be started.
    NotStarted(i32),
    /// Something listens at the service's port already.
    PortTaken(u16),
    /// It ran and ended.
    Ended(Ended),
}

/// The end of a command that ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// As of `wait4`.
    pub status: i32,
    /// The last of what it wrote to standard error, if it failed and that is kept.
    pub said: String,
    /// Processes that it left running.
    pub left_running: u64,
    /// What it used, or how it served.
    pub took: Took,
}

/// What a command used, or how a service served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Took {
    /// A command.
    Command(Spent),
    /// A service.
    Service(Served),
}

/// What a command used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// From right before the fork until it was reaped.
    #[serde(with = "whole_nanos")]
    pub took: Nanos,
    /// CPU time in user mode.
    #[serde(with = "whole_nanos")]
    pub user: Nanos,
    /// And in the kernel.
    #[serde(with = "whole_nanos")]
    pub system: Nanos,
    /// Bytes of the largest resident set of a process.
    pub most_memory: i64,
    /// The same of a child of the probe that executed nothing.
    pub own_memory: i64,
}

/// How a service served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// When it was forked.
    pub forked: Stamp,
    /// When its port was open.
    pub serving: Option<Stamp>,
    /// Whether it got SIGTERM.
    pub asked_to_end: bool,
    /// Whether that was because it was not ready in time.
    pub late: bool,
}

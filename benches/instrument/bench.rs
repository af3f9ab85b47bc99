//! What all benchmarks share: a context like that of a run, with the measured executable as the probe, a
//! directory for compiled programs, and the subjects as the program itself makes them.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use dunnage::outcome::Abort;
use dunnage::session;
use dunnage::subject::{self, Launch, Place, RunContext, Spec, Subject, context};
use dunnage::sweep;
use dunnage::sys::accounting::Listener;
use dunnage::sys::clock;
use dunnage::sys::signals::Interrupts;

/// The executable that is measured: the program, and the probe.
pub const DUNNAGE: &str = env!("CARGO_BIN_EXE_dunnage");

/// What benchmarks work with.
pub struct Bench {
    /// The context of a run.
    pub run: RunContext,
    /// The seed of all orders.
    pub seed: u64,
    /// The resolution of the clock, in seconds.
    pub timer: f64,
    /// Whether the user interrupted.
    pub interrupted: bool,
    scratch: tempfile::TempDir,
    load: String,
}

impl Bench {
    /// Removes what killed runs left, and unpacks the probe in the place of a run.
    pub fn begin(seed: Option<u64>) -> Result<Bench> {
        let seed = seed.map_or_else(session::random_seed, Ok)?;
        let place = place()?;
        for line in sweep::abandoned(&place)? {
            eprintln!("bench: {line}");
        }
        let id = format!("{:08x}", session::random_seed()?);
        let mut run = RunContext::begin(place, Interrupts::install()?, id, seed)?;
        run.host = subject::bare::view(&run).map_err(explained)?;
        Ok(Bench {
            run,
            seed,
            timer: clock::timer_floor().step.seconds(),
            interrupted: false,
            scratch: tempfile::Builder::new().prefix("dunnage-bench-").tempdir()?,
            load: load(),
        })
    }

    /// A second run in the same place.
    pub fn another_run(&self) -> Result<RunContext> {
        let id = format!("{:08x}", session::random_seed()?);
        let mut run = RunContext::begin(self.run.place.clone(), Interrupts::install()?, id, self.seed)?;
        run.host = self.run.host.clone();
        Ok(run)
    }

    /// A directory for compiled or generated files.
    pub fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// A subject as the program makes it, prepared.
    pub fn subject(&mut self, text: &str) -> Result<Box<dyn Subject>> {
        let spec = Spec::parse(text)?;
        let kind = subject::kind_of(&spec)?;
        let mut subject = (kind.build)(&spec, &self.run.place).map_err(|why| anyhow!("{}", why.reason))?;
        subject.prepare(&self.run).map_err(explained)?;
        Ok(subject)
    }

    /// One launch, with the listener for CPU time as in a run.
    pub fn launch(&mut self, subject: &mut dyn Subject) -> Result<Launch> {
        if self.run.listener.is_err() {
            self.run.listener = Listener::open().map_err(|error| error.to_string());
        }
        if self.run.interrupts.asked() {
            self.interrupted = true;
        }
        let launched = match self.interrupted {
            true => Err(Abort::Interrupted),
            false => subject.launch(&self.run),
        };
        self.interrupted |= matches!(launched, Err(Abort::Interrupted));
        launched.map_err(explained)
    }

    /// Stops the listener: a yardstick must not pay for any part of the instrument.
    pub fn fall_silent(&mut self) {
        self.run.listener = Err("a yardstick is running".into());
    }

    /// The circumstances of the numbers, in one line.
    pub fn described(&self) -> String {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        format!(
            "probe {}, {cpus} CPUs, load {} at the beginning, {} at the end, seed {}",
            &self.run.place.digest[..12],
            self.load,
            load(),
            self.seed
        )
    }
}

fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

/// Like `session::place`, but for an executable other than this one.
fn place() -> Result<Place> {
    let state: PathBuf = context::state_directory()?;
    std::fs::create_dir_all(&state)?;
    let bytes = std::fs::read(DUNNAGE)?;
    session::place_in(&state, &bytes)
}

/// The reason of a failed launch.
pub fn explained(abort: Abort) -> anyhow::Error {
    match abort {
        Abort::Failed(failure) => anyhow!("{failure}"),
        Abort::Interrupted => anyhow!("interrupted"),
    }
}

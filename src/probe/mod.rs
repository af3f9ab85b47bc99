//! What runs inside a subject: the dunnage executable, made the probe by its first argument. It stamps, reads
//! its treatment back from inside, writes one message to standard output, and ends. A launch does all this
//! before libc starts (the crate `dunnage_launch`); the code here is for the other tasks, after libc's start
//! and without a runtime or an option parser: to work (`work`), to stay and carry out orders from a channel
//! (`serve`), and a launch that includes libc's start. Each of them, and launches too, can enter a root
//! first.

pub mod inherited;
mod load;
pub mod message;
mod serve;
mod work;

use core::ffi::CStr;

pub use dunnage_launch::entry::PROBE;
use dunnage_launch::entry::{CAPACITY, ENTER, START, STAY, stamp, stay};
use dunnage_launch::inside;
pub use dunnage_launch::inside::INSIDE;
pub(crate) use dunnage_launch::message::CGROUP_DIRECTORIES;
pub(crate) use dunnage_launch::message::Detail;
use dunnage_launch::message::Message;
pub use dunnage_launch::words::Words;
use dunnage_orders::Order;

use crate::sys::raw;

/// The task that works: followed by the detail to read back, or `-`, and an order in JSON.
pub const WORK: &str = "work";

/// The task that carries out orders: followed by the directory of its channel and the detail to read back, or
/// `-`.
pub const SERVE: &str = "serve";

pub use dunnage_analysis::experiment::syscall::LEAST_BATCHES;

/// The task that ends at once: the cost of a program that only starts libc.
pub const NOTHING: &CStr = c"none";

/// The task that is a launch after libc's start.
const MAIN: &str = "main";

/// A task of the probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Stamp the entry, read the treatment back, and end.
    Start,
    /// The same, and also read back what is inherited. No measurement.
    Inherit,
    /// The same after libc's start, which is then part of the measurement.
    StartLibc,
    /// The same as a second process, and report whether the first one is waiting for SIGTERM.
    Enter,
    /// Wait for SIGTERM, then exit with 0. Writes no message.
    Stay,
}

impl Task {
    /// The argument for the task.
    pub const fn argument(self) -> &'static str {
        match self {
            Task::Start | Task::Inherit => START,
            Task::StartLibc => MAIN,
            Task::Enter => ENTER,
            Task::Stay => STAY,
        }
    }
}

/// Runs the probe; does not return.
///
/// The exit code is 0 if the message was written, 2 for an unknown task, 3 if standard output could not be
/// written.
pub fn run(words: Words<'_>) -> ! {
    let main = raw::monotonic();
    let words = if words.is(2, INSIDE) { inside::enter(words) } else { words };
    let (task, detail) = (words.get(2), words.get(3));
    let Some(word) = task.map(|task| task.to_str().unwrap_or_default()) else { start(main, detail, |_| ()) };
    match word {
        START | MAIN => start(main, detail, |_| ()),
        ENTER => start(main, detail, |message| message.init()),
        STAY => stay(),
        SERVE => serve::serve(main, detail, words.get(4)),
        "load" => load::be(detail.map(CStr::to_bytes)),
        WORK => work(main, detail, words.get(4)),
        _ if task == Some(NOTHING) => raw::exit(0),
        _ => unknown(),
    }
}

fn start(main: u64, detail: Option<&CStr>, first: fn(&mut Message<'_>)) -> ! {
    let mut buffer = [0; CAPACITY];
    let mut message = Message::begin(&mut buffer, stamp(), Some(main));
    first(&mut message);
    read_back(&mut message, detail);
    message.write_out()
}

/// Reads the treatment back with this detail.
fn read_back(message: &mut Message<'_>, detail: Option<&CStr>) {
    message.treatment(detail.and_then(|word| Detail::of(word.to_bytes())).unwrap_or_default());
}

/// Reads the treatment back before the work, so that this is not between the work's stamps.
fn work(main: u64, detail: Option<&CStr>, order: Option<&CStr>) -> ! {
    let Some(Ok(order)) = order.map(|order| serde_json::from_slice::<Order>(order.to_bytes())) else {
        unknown()
    };
    let mut buffer = vec![0; work::CAPACITY];
    let mut message = Message::begin(&mut buffer, stamp(), Some(main));
    read_back(&mut message, detail);
    let answer = serde_json::to_vec(&work::carry_out(order)).unwrap_or_default();
    message.named("answer", &answer);
    message.write_out()
}

fn unknown() -> ! {
    let _ = raw::write_all(2, b"dunnage probe: unknown task\n");
    raw::exit(2)
}

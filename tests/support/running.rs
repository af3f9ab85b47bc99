//! A run in the background that a test stops or kills at a moment that it knows: by an event, and by what is there then.
#![allow(dead_code, reason = "no test executable uses all of it")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::dunnage::Dunnage;

/// How long anything may take that a test waits for.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until this is true.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A run that writes its events; it is killed if the test ends before it.
pub struct Running<'a> {
    dunnage: &'a Dunnage,
    child: Child,
    events: Receiver<String>,
}

impl<'a> Running<'a> {
    /// Starts it with these arguments and `--events json`.
    pub fn start(dunnage: &'a Dunnage, arguments: &str) -> Running<'a> {
        let mut command = dunnage.command(&format!("{arguments} --events json"));
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.expect("the program starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        let (sender, events) = channel();
        // In a thread, so that a full pipe does not stop it while the test waits for something else.
        std::thread::spawn(move || lines.map_while(|line| sender.send(line).ok()).for_each(drop));
        Running { dunnage, child, events }
    }

    /// Waits for the next event with all of these words.
    pub fn await_event(&mut self, words: &[&str]) {
        let has = |line: &String| words.iter().all(|word| line.contains(word));
        let next = || {
            self.events.recv_timeout(PATIENCE).unwrap_or_else(|why| panic!("no event with {words:?}: {why}"))
        };
        while !has(&next()) {}
    }

    /// The id of the run, once it has a journal.
    pub fn id(&self) -> String {
        let journal = self.dunnage.state().join("journal");
        let find = || {
            let entries = fs::read_dir(&journal).into_iter().flatten().flatten();
            let names: Vec<_> =
                entries.map(|entry| entry.file_name().into_string().expect("a name")).collect();
            assert!(names.len() < 2, "{names:?}");
            names.first().and_then(|name| name.strip_suffix(".jsonl")).map(str::to_owned)
        };
        until("a journal", || find().is_some());
        find().expect("a journal")
    }

    /// Stops it for a look, again and again, until something is there; it stays stopped then. Between two looks it runs as long as a
    /// look takes, so that it gets on.
    fn stopped_with(&mut self, look: impl Fn(&str) -> Vec<String>) -> (String, Vec<String>) {
        let id = self.id();
        let mut there = Vec::new();
        until("something of it is there", || {
            self.send(libc::SIGSTOP);
            let mut status = 0;
            // SAFETY: waits for a child of this test that nothing else waits for; the status is valid.
            let waited = unsafe { libc::waitpid(self.child.id() as i32, &mut status, libc::WUNTRACED) };
            assert!(waited > 0 && libc::WIFSTOPPED(status), "it ended early, with status {status}");
            let began = Instant::now();
            there = look(&id);
            if there.is_empty() {
                self.send(libc::SIGCONT);
                std::thread::sleep(began.elapsed());
            }
            !there.is_empty()
        });
        (id, there)
    }

    /// Kills it while something of it is there. Returns its id, and what was there.
    pub fn kill_with(mut self, look: impl Fn(&str) -> Vec<String>) -> (String, Vec<String>) {
        let found = self.stopped_with(look);
        self.send(libc::SIGKILL);
        self.child.wait().expect("it ends");
        found
    }

    /// Sends it this signal while something of it is there, and waits until it ends. Returns its id, and how it ended.
    pub fn signal_with(mut self, signal: i32, look: impl Fn(&str) -> Vec<String>) -> (String, ExitStatus) {
        let (id, _) = self.stopped_with(look);
        self.send(signal);
        self.send(libc::SIGCONT);
        (id, self.child.wait().expect("it ends"))
    }

    fn send(&self, signal: i32) {
        // SAFETY: signals a child that has not been waited for.
        unsafe { libc::kill(self.child.id() as i32, signal) };
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

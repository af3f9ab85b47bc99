//! A test again, in a process of its own: for what needs another user, a kill, or a process without other threads. An
//! environment variable that the first process sets tells the test that it is in the second one.
#![allow(dead_code, reason = "no test executable uses all of it")]

use std::process::{Command, Output};

/// The path of the running test in its executable: the harness gives it to the thread of the test as its name.
pub fn path() -> String {
    let thread = std::thread::current();
    thread.name().filter(|name| *name != "main").expect("called by the thread of a test").to_owned()
}

/// The path of this test in its executable.
pub fn path_of<Test: Fn()>(_: Test) -> String {
    let name = std::any::type_name::<Test>();
    // The first part is the executable.
    name.split_once("::").expect("a path").1.to_owned()
}

/// The command line that runs the test with this path alone.
pub fn words(path: &str) -> [String; 4] {
    let own = std::env::current_exe().expect("our own path").into_os_string();
    [own.into_string().expect("a path in UTF-8"), "--exact".into(), path.into(), "--nocapture".into()]
}

/// Runs the running test again.
pub fn again() -> Command {
    let [program, words @ ..] = words(&path());
    let mut command = Command::new(program);
    command.args(words);
    command
}

/// Fails unless the process ran its test and that passed: under a wrong name nothing runs, which libtest calls a success.
pub fn passed(output: &Output) {
    let [said, complaint] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    let has_run = said.contains("test result: ok. 1 passed;");
    assert!(output.status.success() && has_run, "{}:\n{said}{complaint}", output.status);
}

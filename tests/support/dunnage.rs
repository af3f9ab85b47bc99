//! The built program as the tests call it: with its own state directory, and with its output and exit code
//! collected in one `Ran`.
//!
//! ```ignore
//! let dunnage = Dunnage::new();
//! let ran = dunnage.run("run start -s a=fake --rounds 20 --seed 7 -o DIR");
//! assert_eq!(ran.code, 0, "{ran}");
//! ```
//! In arguments, `DIR` means a directory that is removed at the end.
#![allow(dead_code, reason = "no test executable uses all of it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

pub struct Dunnage {
    place: TempDir,
    program: PathBuf,
    environment: Vec<(String, String)>,
}

/// The result of one call.
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Dunnage {
    pub fn new() -> Dunnage {
        // On a disk, like state directories; `/tmp` is in memory on many machines.
        let place = tempfile::Builder::new().prefix("dunnage-").tempdir_in("/var/tmp").expect("a directory");
        Dunnage { place, program: env!("CARGO_BIN_EXE_dunnage").into(), environment: Vec::new() }
    }

    /// A copy of the program that is its own build: it has an image that no other has, and the name of that image in engines.
    pub fn of_its_own() -> (Dunnage, String) {
        let mut dunnage = Dunnage::new();
        let program = dunnage.state().with_file_name("dunnage");
        let mut bytes = std::fs::read(&dunnage.program).expect("the program");
        // Nothing reads what follows the end of an executable.
        bytes.extend(dunnage.place.path().to_string_lossy().bytes());
        std::fs::write(&program, &bytes).expect("a copy");
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, permissions).expect("our file");
        std::fs::create_dir_all(dunnage.state()).expect("a directory");
        let place = ::dunnage::session::place_in(&dunnage.state(), &bytes).expect("an image");
        dunnage.program = program;
        (dunnage, place.reference)
    }

    /// Gives the directory of the test to a user, and returns a copy of the program that the user can start.
    pub fn given_to(&self, user: u32) -> PathBuf {
        std::os::unix::fs::chown(self.place.path(), Some(user), Some(user)).expect("our directory");
        let program = self.place.path().join("dunnage");
        // Written by a child, so that no child of another thread still has it open.
        let copied = std::process::Command::new("cp").arg(&self.program).arg(&program).status();
        assert!(copied.expect("a copy").success());
        program
    }

    pub fn with(mut self, variable: &str, value: &str) -> Dunnage {
        self.environment.push((variable.to_owned(), value.to_owned()));
        self
    }

    /// Programs in this directory are found before all others.
    pub fn with_first_on_path(self, directory: &Path) -> Dunnage {
        let path = std::env::var("PATH").unwrap_or_default();
        self.with("PATH", &format!("{}:{path}", directory.display()))
    }

    /// Finds no engine, only these runtimes: for what is the same with engines, which are slow to ask.
    pub fn without_engines(self) -> Dunnage {
        let directory = self.place.path().join("bin");
        std::fs::create_dir(&directory).expect("a directory");
        for runtime in ["crun", "runc", "youki"] {
            if let Some(path) = ::dunnage::subject::on_path(runtime) {
                std::os::unix::fs::symlink(path, directory.join(runtime)).expect("a link");
            }
        }
        self.with("PATH", &directory.display().to_string())
    }

    /// The meaning of `DIR` in arguments.
    pub fn directory(&self) -> PathBuf {
        self.place.path().join("run")
    }

    pub fn state(&self) -> PathBuf {
        self.place.path().join("state")
    }

    /// The program with these arguments, separated by spaces, ready to start.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(&self.program);
        self.dress(&mut command);
        command.args(self.words(arguments));
        command
    }

    /// The same through another command line: `through("setpriv --reuid 1 /copy/of/dunnage", "run …")`.
    pub fn through(&self, wrapper: &str, arguments: &str) -> Ran {
        let mut words = wrapper.split(' ');
        let mut command = Command::new(words.next().expect("a program"));
        self.dress(&mut command);
        command.args(words).args(self.words(arguments));
        finished(command.output().expect("the program starts"))
    }

    pub fn run(&self, arguments: &str) -> Ran {
        let _turn = arguments.starts_with("sweep").then(crate::support::Sweeps::begin);
        finished(self.command(arguments).output().expect("the program starts"))
    }

    fn words(&self, arguments: &str) -> Vec<String> {
        let directory = self.directory().display().to_string();
        arguments.split_whitespace().map(|word| word.replace("DIR", &directory)).collect()
    }

    fn dress(&self, command: &mut Command) {
        command
            .env("DUNNAGE_STATE", self.state())
            .env("COLUMNS", "100")
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null());
        command.current_dir(self.place.path());
        command.envs(self.environment.iter().map(|(variable, value)| (variable, value)));
    }

    /// The content of the state directory without the unpacked image, the key, and empty directories.
    pub fn left_in_state(&self) -> Vec<PathBuf> {
        let mut open = vec![self.state()];
        let mut left = Vec::new();
        while let Some(directory) = open.pop() {
            for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
                let path = entry.path();
                let is_image =
                    path.starts_with(self.state().join("images")) || path == self.state().join("id");
                match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    true => open.push(path),
                    false if !is_image && path != self.state().join("key") => left.push(path),
                    false => {}
                }
            }
        }
        left
    }
}

/// A test that passed leaves nothing, so that no mount of it keeps its directory.
impl Drop for Dunnage {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            std::fs::remove_dir_all(self.place.path()).expect("nothing keeps the directory of this test");
        }
    }
}

pub fn finished(output: Output) -> Ran {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    }
}

/// Everything that is needed to understand a failed test.
impl std::fmt::Display for Ran {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "code {}\nstdout:\n{}\nstderr:\n{}", self.code, self.stdout, self.stderr)
    }
}

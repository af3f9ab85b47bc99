//! Identifies the programs of a subject by path, version and hash. A program that cannot be identified is not
//! measured.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::login::Login;
use super::{Component, Spec, Unavailable, on_path};
use crate::image::Digest;
use crate::outcome::{Abort, Failure, FailureClass};
use crate::resource::command;
use crate::sys::signals::Interrupts;
use crate::sys::spawn::{Ended, Program, Reading, Status};
use crate::units::Nanos;

/// How long a program may take to answer a question about itself, in nanoseconds.
static ANSWER: AtomicI64 = AtomicI64::new(20_000_000_000);

/// Sets how long programs may take to answer from now on, for interactive verbs.
pub fn answer_within(time: Nanos) {
    ANSWER.store(time.0, Ordering::Relaxed);
}

fn answer_time() -> Nanos {
    Nanos(ANSWER.load(Ordering::Relaxed))
}

/// The program in this file, with the version that it reports.
pub(super) fn identified(role: &str, path: &Path, version: &str) -> Result<Component, Unavailable> {
    let digest = digest(path)
        .map_err(|error| Unavailable::because(format!("cannot read `{}`: {error}", path.display())))?;
    let (role, version) = (role.to_owned(), version.to_owned());
    Ok(Component { role, path: path.display().to_string(), version, sha256: digest.hex() })
}

/// More bytes than any program has.
const LARGEST: u64 = 512 << 20;

/// The digest of a file. Variants of an engine share its programs, of up to 100 MB: each is read once, unless it has changed.
fn digest(path: &Path) -> io::Result<Digest> {
    static KNOWN: Mutex<BTreeMap<[i64; 7], Digest>> = Mutex::new(BTreeMap::new());
    // An ordinary user's podman says which programs it uses: a pipe or a file that grows would hold root up, to open a device may
    // do something, and a digest tells about a file that only root may read.
    let found = File::options().read(true).custom_flags(libc::O_PATH).open(path)?;
    let facts = found.metadata()?;
    if !facts.is_file() || facts.size() > LARGEST {
        return Err(io::Error::other("it is not a program: not a regular file, or one of more than 512 MiB"));
    }
    if facts.mode() & 0o111 == 0 {
        return Err(io::Error::other("it is not a program: no one may execute it"));
    }
    let file = File::open(format!("/proc/self/fd/{}", found.as_raw_fd()))?;
    let (device, number, size) = (facts.dev() as i64, facts.ino() as i64, facts.size() as i64);
    let [written, changed] = [[facts.mtime(), facts.mtime_nsec()], [facts.ctime(), facts.ctime_nsec()]];
    let state = [device, number, size, written[0], written[1], changed[0], changed[1]];
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(digest) = known().get(&state) {
        return Ok(*digest);
    }
    let mut read = file.take(facts.size());
    let digest = Digest::of_reader(&mut read)?;
    if read.limit() > 0 || read.get_ref().metadata()?.size() != facts.size() {
        return Err(io::Error::other("it changed while it was read"));
    }
    known().insert(state, digest);
    Ok(digest)
}

/// The program of a subject: the build that `bin` names, else the one with this name on the search path.
pub(super) fn program(spec: &Spec, name: &str, remedy: &str) -> Result<PathBuf, Unavailable> {
    let found = spec.get("bin").map(PathBuf::from).or_else(|| on_path(name));
    found.ok_or_else(|| {
        let which = if spec.name == name { String::new() } else { format!("`{name}` is ") };
        Unavailable::absent(&which, name, remedy)
    })
}

/// The programs for these roles, where they are found, asked as this user.
pub(super) fn components(
    login: Option<&Login>,
    parts: impl IntoIterator<Item = (&'static str, Option<PathBuf>)>,
) -> Result<Vec<Component>, Unavailable> {
    let there = parts.into_iter().filter_map(|(role, path)| Some((role, path?)));
    there.map(|(role, path)| Client { login: login.cloned(), ..Client::of(path) }.component(role)).collect()
}

/// The first two numbers of a version, anywhere in a program's answer.
pub(super) fn numbers(version: &str) -> Option<(u32, u32)> {
    let words = version.split(|c: char| c.is_whitespace() || c == ',' || c == '~' || c == '+' || c == '-');
    words.into_iter().find_map(|word| {
        let mut parts = word.trim_start_matches('v').split('.');
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    })
}

/// A program, and how to call it.
#[derive(Debug, Clone)]
pub struct Client {
    /// Its path.
    pub path: PathBuf,
    /// Arguments before every verb.
    pub global: Vec<String>,
    /// The user that it is started as, where that is not dunnage's own.
    pub login: Option<Login>,
}

impl Client {
    /// A client run as dunnage's own user, with nothing before the verb.
    pub(crate) fn of(path: impl Into<PathBuf>) -> Client {
        Client { path: path.into(), global: Vec::new(), login: None }
    }

    /// The program with a verb and its arguments.
    pub(super) fn program(&self, words: &[impl AsRef<str>]) -> Result<Program, Unavailable> {
        let words = words.iter().map(AsRef::as_ref);
        let program = Program::new(&self.path, self.global.iter().map(String::as_str).chain(words));
        let dressed = program.and_then(|program| match &self.login {
            Some(login) => login.dress(program),
            None => Ok(program),
        });
        dressed
            .map_err(|error| Unavailable::because(format!("cannot start `{}`: {error}", self.path.display())))
    }

    /// Its answer on standard output to these arguments; its own words where it fails. Returns at once when
    /// the user interrupts.
    pub(crate) fn ask(&self, words: &[impl AsRef<str>]) -> Result<String, Unavailable> {
        run_within(answer_time(), &self.program(words)?).map(|ended| text(&ended.stdout))
    }

    /// The same for what must be done even while stopping: removing things.
    pub(super) fn insist(&self, words: &[impl AsRef<str>]) -> Result<String, Unavailable> {
        run(answer_time(), &self.program(words)?, None).map(|ended| text(&ended.stdout))
    }

    /// The answer, with what a program that succeeded wrote to standard error.
    pub(super) fn words(&self, words: &[&str]) -> Result<(String, String), Unavailable> {
        let ended = run_within(answer_time(), &self.program(words)?)?;
        Ok((text(&ended.stdout), text(&ended.stderr).trim().to_owned()))
    }

    /// The first line of its answer to `--version`.
    pub(super) fn version(&self) -> Result<String, Unavailable> {
        let answer = self.ask(&["--version"])?;
        Ok(answer.lines().next().unwrap_or_default().trim().to_owned())
    }

    /// The client as a component of a subject.
    pub(super) fn component(&self, role: &str) -> Result<Component, Unavailable> {
        identified(role, &self.path, &self.version()?)
    }
}

/// Runs a program for at most this long, unless the user interrupts.
pub(super) fn run_within(allowed: Nanos, program: &Program) -> Result<Ended, Unavailable> {
    run(allowed, program, Interrupts::install().ok().as_ref())
}

fn run(allowed: Nanos, program: &Program, interrupts: Option<&Interrupts>) -> Result<Ended, Unavailable> {
    let ended = command::until_it_ends(program, Reading::Late, allowed, interrupts).map_err(unavailable)?;
    if ended.status == Status::Exited(0) {
        return Ok(ended);
    }
    let words = if ended.stderr.is_empty() { &ended.stdout } else { &ended.stderr };
    Err(Unavailable::in_words(&format!("`{}` ended with {}", program.shown(), ended.status), &text(words)))
}

/// Turns a failure to answer into the reason why an engine is unavailable.
pub(super) fn unavailable(abort: Abort) -> Unavailable {
    match abort {
        Abort::Interrupted => Unavailable::because("interrupted"),
        Abort::Failed(failure) if failure.class == FailureClass::Timeout => {
            Unavailable::no_answer(format!("gave no answer ({failure})"))
        }
        Abort::Failed(Failure { reason, words, .. }) => {
            Unavailable::in_words(&reason, &words.unwrap_or_default())
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_program_that_was_replaced_or_rewritten_has_another_digest() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("program");
        let may = |path: &Path| std::fs::set_permissions(path, Permissions::from_mode(0o700)).unwrap();
        let write = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            may(&path);
        };
        let is_of = |bytes: &[u8]| assert_eq!(digest(&path).unwrap(), Digest::of(bytes));
        write(b"one");
        is_of(b"one");
        is_of(b"one");
        write(b"longer");
        is_of(b"longer");
        let other = path.with_extension("other");
        std::fs::write(&other, b"sixsix").unwrap();
        may(&other);
        std::fs::rename(&other, &path).unwrap();
        is_of(b"sixsix");
    }

    #[test]
    fn a_pipe_a_file_without_an_end_and_one_that_is_not_executed_are_no_programs() {
        let place = tempfile::tempdir().unwrap();
        let secret = place.path().join("secret");
        std::fs::write(&secret, "secret").unwrap();
        let (pipe, endless) = (place.path().join("pipe"), place.path().join("endless"));
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        File::create(&endless).unwrap().set_len(LARGEST + 1).unwrap();
        std::fs::set_permissions(&endless, Permissions::from_mode(0o755)).unwrap();
        for path in [&pipe, &endless, &secret, Path::new("/dev/zero"), place.path()] {
            assert!(digest(path).is_err(), "{}", path.display());
        }
    }

    #[test]
    fn versions_are_found_wherever_they_stand() {
        assert_eq!(numbers("Docker version 20.10.24+dfsg1, build 297e128"), Some((20, 10)));
        assert_eq!(numbers("ctr github.com/containerd/containerd v1.6.20~ds1"), Some((1, 6)));
        assert_eq!(numbers("podman version 4.3.1"), Some((4, 3)));
        assert_eq!(numbers("runsc version VERSION_MISSING"), None);
    }
}

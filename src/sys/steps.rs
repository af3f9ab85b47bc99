//! System calls prepared as data before a measured interval and made in sequence within it, by dunnage or by
//! a child that shares its memory. Making them allocates nothing, touches no state of libc and cannot panic;
//! an error names its step. A step can also be a stamp, so that the work of a child is timed where it is
//! done.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use dunnage_analysis::names::StampName;
use thiserror::Error;

use super::{clock, raw};
use crate::units::Stamp;

/// A step that the kernel refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("cannot {step}{}: {}", shown(.path), io::Error::from_raw_os_error(*.errno))]
pub struct StepError {
    /// The action, such as `mount proc`.
    pub step: &'static str,
    /// Its object.
    pub path: PathBuf,
    /// The kernel's error number.
    pub errno: i32,
}

fn shown(path: &Path) -> String {
    if path.as_os_str().is_empty() { String::new() } else { format!(" `{}`", path.display()) }
}

/// How a step uses the descriptor that an earlier one opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Uses {
    Nothing,
    /// Its result is the descriptor for the following steps.
    Opens,
    /// Its first argument is that descriptor.
    Takes,
    /// The same, and its result replaces that descriptor, which is closed.
    Trades,
    /// Its answer is a netlink acknowledgement, whose error number becomes the step's.
    Answers,
    /// It is not a call, but reads the clock.
    Stamps(StampName),
}

/// The descriptor that was opened last in a sequence of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptor(pub usize);

impl Descriptor {
    /// None was opened; an invalid number, so that a step which uses it is refused.
    pub const fn none() -> Descriptor {
        Descriptor(u32::MAX as usize)
    }
}

/// One system call, with everything that its arguments point to. The kernel only reads that memory, except
/// `_answer`, which it may write.
#[derive(Debug)]
pub struct Step {
    name: &'static str,
    path: CString,
    number: libc::c_long,
    arguments: [usize; 6],
    uses: Uses,
    tolerated: i32,
    _strings: Vec<CString>,
    _words: Vec<Box<[u64]>>,
    _answer: Option<Box<Answer>>,
}

/// Memory for a stamp, or for the head of a netlink acknowledgement.
type Answer = [AtomicU64; 4];

/// The arguments of a `mount`.
#[derive(Debug, Clone, Copy)]
pub(in crate::sys) struct Asked<'a> {
    pub source: &'a OsStr,
    pub target: &'a OsStr,
    pub kind: Option<&'a OsStr>,
    pub flags: libc::c_ulong,
    pub options: Option<&'a OsStr>,
}

/// An argument of a call, before it is placed in memory.
#[derive(Debug)]
pub enum Argument {
    /// A plain number.
    Number(usize),
    /// A string that ends with a zero byte.
    Text(CString),
    /// A structure, as 64-bit words.
    Words(Box<[u64]>),
}

/// A C string; the text is dunnage's own, or was checked for zero bytes earlier.
pub fn text(value: impl AsRef<OsStr>) -> Argument {
    Argument::Text(c_string(value))
}

fn c_string(value: impl AsRef<OsStr>) -> CString {
    CString::new(value.as_ref().as_bytes()).expect("zero bytes are refused before steps are written down")
}

/// A plain number.
pub fn number(value: impl TryInto<usize>) -> Argument {
    Argument::Number(value.try_into().unwrap_or(usize::MAX))
}

/// `AT_FDCWD`: paths are relative to the working directory.
pub(in crate::sys) fn here() -> Argument {
    Argument::Number(libc::AT_FDCWD as usize)
}

impl Step {
    /// A call that is named `name` in errors, and concerns `path` (which may be empty). Only for this module:
    /// it must be a call that writes nothing into this process's memory.
    pub(in crate::sys) fn call(
        name: &'static str,
        path: impl AsRef<OsStr>,
        number: libc::c_long,
        arguments: impl IntoIterator<Item = Argument>,
    ) -> Step {
        let mut step = Step {
            name,
            path: c_string(path),
            number,
            arguments: [0; 6],
            uses: Uses::Nothing,
            tolerated: 0,
            _strings: Vec::new(),
            _words: Vec::new(),
            _answer: None,
        };
        for (slot, argument) in step.arguments.iter_mut().zip(arguments) {
            match argument {
                Argument::Number(value) => *slot = value,
                Argument::Text(string) => {
                    *slot = string.as_ptr() as usize;
                    step._strings.push(string);
                }
                Argument::Words(words) => {
                    *slot = words.as_ptr() as usize;
                    step._words.push(words);
                }
            }
        }
        step
    }

    /// Execution of a program; the step owns the argument and environment vectors.
    pub fn execute(program: &Path, arguments: &[CString], environment: &[CString]) -> Step {
        let mut strings = Vec::new();
        let mut vector = |list: &[CString]| -> Box<[u64]> {
            let owned: Vec<CString> = list.to_vec();
            let pointers = owned.iter().map(|one| one.as_ptr() as u64).chain([0]).collect();
            strings.extend(owned);
            pointers
        };
        let (arguments, environment) = (vector(arguments), vector(environment));
        let list = [text(program), Argument::Words(arguments), Argument::Words(environment)];
        let mut step = Step::call("execute", program, libc::SYS_execve, list);
        step._strings.extend(strings);
        step
    }

    /// Installs a seccomp program for this process, as runc and crun do.
    pub fn seccomp(program: &[libc::sock_filter]) -> Step {
        const ALLOW_SPECULATION: usize = 1 << 2;
        let instruction = |one: &libc::sock_filter| {
            u64::from(one.code) | u64::from(one.jt) << 16 | u64::from(one.jf) << 24 | u64::from(one.k) << 32
        };
        let instructions: Box<[u64]> = program.iter().map(instruction).collect();
        let header = Box::new([instructions.len() as u64, instructions.as_ptr() as u64]);
        let arguments = [
            Argument::Number(libc::SECCOMP_SET_MODE_FILTER as usize),
            Argument::Number(ALLOW_SPECULATION),
            Argument::Words(header),
        ];
        let mut step = Step::call("install seccomp filter", "", libc::SYS_seccomp, arguments);
        step._words.push(instructions);
        step
    }

    /// Reads `CLOCK_MONOTONIC` at the end of the part with this name; [`Step::stamped`] returns it.
    pub fn stamp(name: StampName) -> Step {
        Step { uses: Uses::Stamps(name), ..Step::call(name.text(), "", 0, []).answered_in(0) }
    }

    /// Whether it is a stamp.
    pub fn is_stamp(&self) -> bool {
        matches!(self.uses, Uses::Stamps(_))
    }

    /// The name of the part, and the last clock reading of this step.
    pub fn stamped(&self) -> Option<(StampName, Stamp)> {
        let (Uses::Stamps(name), Some(answer)) = (self.uses, &self._answer) else { return None };
        let nanos = answer[0].load(Ordering::Acquire);
        (nanos > 0).then_some((name, Stamp(nanos)))
    }

    /// The arguments if this step is a `mount`: source, target, kind, flags and options.
    pub(in crate::sys) fn mounts(&self) -> Option<Asked<'_>> {
        let mut texts = self._strings.iter().map(|text| text.to_bytes()).map(OsStr::from_bytes);
        let [_, _, kind, flags, options, _] = self.arguments;
        let is_mount = self.number == libc::SYS_mount && !self.is_stamp();
        let (source, target) = is_mount.then(|| texts.next().zip(texts.next()))??;
        let mut given = |argument: usize| if argument == 0 { None } else { texts.next() };
        Some(Asked {
            source,
            target,
            kind: given(kind),
            flags: flags as libc::c_ulong,
            options: given(options),
        })
    }

    /// Another call with the same name and path.
    pub(in crate::sys) fn instead(
        &self,
        number: libc::c_long,
        arguments: impl IntoIterator<Item = Argument>,
    ) -> Step {
        Step::call(self.name, self.path(), number, arguments)
    }

    /// Receives the acknowledgement of the netlink request that was just sent through this descriptor; an
    /// error in it is an error of this step.
    pub(in crate::sys) fn acknowledgement(name: &'static str, path: impl AsRef<OsStr>, socket: i32) -> Step {
        let arguments = [number(socket), number(0usize), number(size_of::<Answer>())];
        let call = Step::call(name, path, libc::SYS_recvfrom, arguments).answered_in(1);
        Step { uses: Uses::Answers, ..call }
    }

    /// The same call, with this argument pointing to memory of the step that the kernel may write.
    fn answered_in(mut self, argument: usize) -> Step {
        let answer: Box<Answer> = Box::default();
        self.arguments[argument] = answer.as_ptr() as usize;
        Step { _answer: Some(answer), ..self }
    }

    /// `mkdir`.
    pub fn mkdir(name: &'static str, path: &Path, mode: u32) -> Step {
        Step::call(name, path, libc::SYS_mkdirat, [here(), text(path), number(mode)])
    }

    /// `rmdir`.
    pub fn rmdir(name: &'static str, path: &Path) -> Step {
        Step::call(name, path, libc::SYS_unlinkat, [here(), text(path), number(libc::AT_REMOVEDIR)])
    }

    /// `open`; the following steps use the descriptor.
    pub fn open(name: &'static str, path: &Path, flags: i32) -> Step {
        let arguments = [here(), text(path), number(flags | libc::O_CLOEXEC)];
        Step { uses: Uses::Opens, ..Step::call(name, path, libc::SYS_openat, arguments) }
    }

    /// `write` to the descriptor opened last, which belongs to `path`.
    pub fn write(name: &'static str, path: &Path, content: &str) -> Step {
        let arguments = [number(0usize), text(content), number(content.len())];
        Step::call(name, path, libc::SYS_write, arguments).on_descriptor()
    }

    /// `close` of the descriptor opened last.
    pub fn close() -> Step {
        Step::call("close", "", libc::SYS_close, []).on_descriptor()
    }

    /// `mount`, with the filesystem `kind` and its options, both optional.
    pub fn mount(
        name: &'static str,
        (source, target): (impl AsRef<OsStr>, &Path),
        kind: Option<&str>,
        flags: libc::c_ulong,
        options: Option<&OsStr>,
    ) -> Step {
        let optional = |value: Option<&OsStr>| value.map_or(Argument::Number(0), text);
        let arguments =
            [text(source), text(target), optional(kind.map(OsStr::new)), number(flags), optional(options)];
        Step::call(name, target, libc::SYS_mount, arguments)
    }

    /// `symlink`.
    pub fn symlink(name: &'static str, target: &str, path: &Path) -> Step {
        Step::call(name, path, libc::SYS_symlinkat, [text(target), here(), text(path)])
    }

    /// `mknod`, for devices and empty files.
    pub fn mknod(name: &'static str, path: &Path, mode: u32, device: u64) -> Step {
        let arguments = [here(), text(path), number(mode), number(device)];
        Step::call(name, path, libc::SYS_mknodat, arguments)
    }

    /// The same call, whose result is the descriptor for the following steps.
    pub fn opening(self) -> Step {
        Step { uses: Uses::Opens, ..self }
    }

    /// The same call with the descriptor opened last as its first argument.
    pub fn on_descriptor(self) -> Step {
        Step { uses: Uses::Takes, ..self }
    }

    /// The same call, for which this error is not a failure.
    pub fn or(self, tolerated: i32) -> Step {
        Step { tolerated, ..self }
    }

    /// The same call on that descriptor, which is then closed and replaced by the result.
    pub fn trading(self) -> Step {
        Step { uses: Uses::Trades, ..self }
    }

    /// The path that the step concerns.
    pub fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.path.to_bytes()))
    }

    /// Whether later steps use its result.
    pub fn opens(&self) -> bool {
        self.uses == Uses::Opens
    }

    /// The error of this step with this number.
    pub fn failed(&self, errno: i32) -> StepError {
        StepError { step: self.name, path: self.path().to_owned(), errno }
    }

    /// Makes the call. Safe in a child that shares its parent's memory; see the module.
    #[inline(always)]
    pub fn run(&self, descriptor: &mut Descriptor) -> Result<usize, i32> {
        let mut arguments = self.arguments;
        match (self.uses, &self._answer) {
            (Uses::Stamps(_), Some(answer)) => {
                answer[0].store(clock::now().0, Ordering::Release);
                return Ok(0);
            }
            (Uses::Takes | Uses::Trades, _) => arguments[0] = descriptor.0,
            _ => {}
        }
        // SAFETY: the pointers among the arguments were taken from heap memory that this step owns and that
        // does not move with it; the kernel only reads it, and writes at most its size into the answer, which
        // consists of atomics.
        match unsafe { raw::syscall(self.number, arguments) } {
            Err(errno) if errno == self.tolerated => Ok(0),
            Ok(value) => {
                match self.uses {
                    Uses::Opens => *descriptor = Descriptor(value),
                    Uses::Trades => {
                        raw::close(descriptor.0 as RawFd);
                        *descriptor = Descriptor(value);
                    }
                    Uses::Answers => self.acknowledged()?,
                    Uses::Nothing | Uses::Takes | Uses::Stamps(_) => {}
                }
                Ok(value)
            }
            Err(errno) => Err(errno),
        }
    }

    /// The error in the acknowledgement: `nlmsghdr` with the type in its second 32 bits, then the error.
    #[inline(always)]
    fn acknowledged(&self) -> Result<(), i32> {
        let Some(answer) = &self._answer else { return Err(libc::EPROTO) };
        let kind = (answer[0].load(Ordering::Acquire) >> 32) as u16;
        let error = answer[2].load(Ordering::Acquire) as u32 as i32;
        match (i32::from(kind), error) {
            (libc::NLMSG_ERROR, 0) => Ok(()),
            (libc::NLMSG_ERROR, error) => Err(error.wrapping_neg()),
            _ => Err(libc::EPROTO),
        }
    }
}

/// Programs must not inherit dunnage's signal settings: SIGPIPE gets its default action, and no signal is
/// blocked.
pub(in crate::sys) fn clean_signals() -> [Step; 2] {
    let mask =
        [number(libc::SIG_SETMASK), Argument::Words(Box::new([0])), number(0), number(size_of::<u64>())];
    [reset_signal(libc::SIGPIPE), Step::call("unblock signals", "", libc::SYS_rt_sigprocmask, mask)]
}

/// Takes the handlers of dunnage (SIGXFSZ) and of Rust's runtime from a child that shares its memory, before signals are unblocked:
/// with exec they end anyway, but another user could send such a signal before. `posix_spawn` does the same.
pub(in crate::sys) fn without_handlers() -> [Step; 3] {
    [libc::SIGXFSZ, libc::SIGSEGV, libc::SIGBUS].map(reset_signal)
}

fn reset_signal(signal: i32) -> Step {
    // The kernel's own `sigaction`: handler, flags, restorer, mask; all zero is the default.
    let action = [number(signal), Argument::Words(Box::new([0; 4])), number(0), number(size_of::<u64>())];
    Step::call("reset signal", "", libc::SYS_rt_sigaction, action)
}

/// Duplicates these descriptors to standard input, output and error.
pub(in crate::sys) fn set_up_streams(streams: [RawFd; 3]) -> impl Iterator<Item = Step> {
    streams
        .into_iter()
        .enumerate()
        .map(|(target, from)| Step::call("set up stream", "", libc::SYS_dup2, [number(from), number(target)]))
}

/// Makes the calls in order until one is refused. Returns how many were made, without stamps, and the
/// descriptor opened last.
pub fn run_all(steps: &[Step]) -> (usize, Result<Descriptor, StepError>) {
    let mut descriptor = Descriptor::none();
    let calls = |steps: &[Step]| steps.iter().filter(|step| !step.is_stamp()).count();
    for (at, step) in steps.iter().enumerate() {
        if let Err(errno) = step.run(&mut descriptor) {
            return (calls(&steps[..at]), Err(step.failed(errno)));
        }
    }
    (calls(steps), Ok(descriptor))
}

#[cfg(test)]
mod tests {
    use dunnage_analysis::launch::names::{GONE, SPAWN};

    use super::*;

    #[test]
    fn steps_do_what_they_say_and_name_what_they_cannot() {
        let top = tempfile::tempdir().unwrap();
        let (directory, file) = (top.path().join("a"), top.path().join("a/f"));
        let steps = [
            Step::mkdir("make", &directory, 0o700),
            Step::mkdir("make", &directory, 0o700).or(libc::EEXIST),
            Step::mknod("touch", &file, libc::S_IFREG | 0o600, 0),
            Step::open("open", &file, libc::O_WRONLY),
            Step::write("fill", &file, "content"),
            Step::close(),
            Step::symlink("link", "f", &top.path().join("a/l")),
        ];
        assert_eq!(run_all(&steps).0, steps.len());
        assert_eq!(std::fs::read_to_string(top.path().join("a/l")).unwrap(), "content");
        let error = run_all(&[Step::rmdir("remove", &directory)]).1.unwrap_err();
        assert_eq!((error.step, error.errno), ("remove", libc::ENOTEMPTY));
        assert!(error.to_string().starts_with(&format!("cannot remove `{}`: ", directory.display())));
    }

    #[test]
    fn a_stamp_is_read_when_its_step_is_made() {
        let steps = [Step::stamp(SPAWN), Step::stamp(GONE)];
        assert_eq!(steps[0].stamped(), None);
        let before = clock::now();
        assert_eq!(run_all(&steps).0, 0, "stamps are not calls");
        let [(one, first), (other, second)] = steps.each_ref().map(|step| step.stamped().unwrap());
        assert_eq!((one, other), (SPAWN, GONE));
        assert!(before <= first && first <= second && second <= clock::now());
        assert_eq!(Step::close().stamped(), None);
    }

    #[test]
    fn a_step_that_takes_a_descriptor_before_one_was_opened_is_refused() {
        assert_eq!(run_all(&[Step::close()]).1.unwrap_err().errno, libc::EBADF);
    }
}

//! A virtual machine for a few seconds: a stock Debian kernel under emulation, with pure cgroup v2, all
//! capabilities, and only the files that a test puts there.
//!
//! ```ignore
//! if support::lacks("it_works_there", Need::Guest) { return; }
//! let done = Guest::new().program("crun").run("crun --version", Duration::from_secs(60));
//! ```
//! busybox' shell runs the script as pid 1's child, in `/out`; the files in it are returned, with the output
//! and the exit code. A guest that does not boot, or does not end within its deadline, is an error with the
//! console's last lines; no wait is unlimited. The shell prefers busybox' own commands: call another
//! `setpriv` or `sleep` by its path.
//!
//! Deliberately absent: hardware acceleration, which most test machines do not have; a network.
#![allow(dead_code, reason = "no test executable uses all of it")]

mod contents;
mod cpio;

use std::fmt;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use cpio::Archive;

const QEMU: &str = "qemu-system-x86_64";
/// How many of the console's last lines an error shows.
const LAST_LINES: usize = 150;
/// What a fault says that is not the script's, since dunnage never waits without a limit.
const STOOD_STILL: &str = "the guest did not end within";

/// The file of its disk.
const DISK: &str = "disk";

/// What `init.sh` says first on the console.
const BEGAN: &str = "guest: init has begun";

/// A machine under construction.
pub struct Guest {
    qemu: PathBuf,
    modules: Vec<&'static str>,
    memory: u32,
    disk: Option<u64>,
    contents: Archive,
}

/// The result of a script that ended.
pub struct Done {
    /// Its exit code.
    pub code: i32,
    /// Its standard output and error, as they came.
    pub output: String,
    /// Everything on the console, including the kernel's messages.
    pub console: String,
    /// From the start of the emulator to its end.
    pub took: Duration,
    files: TempDir,
}

impl Done {
    /// The files that the script left in `/out`.
    pub fn files(&self) -> PathBuf {
        self.files.path().join("out")
    }
}

/// Everything that is needed to understand a failed test.
impl fmt::Display for Done {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "code {} after {:?}\noutput:\n{}", self.code, self.took, self.output)?;
        write!(out, "console:\n{}", last_lines(&self.console))
    }
}

/// Why there is no result, and the end of the console's output.
#[derive(Debug)]
pub struct Fault {
    pub what: String,
    pub console: String,
}

impl Fault {
    fn is_before_init(&self) -> bool {
        self.console.contains("Kernel panic") && !self.console.contains(BEGAN)
    }

    fn stood_still(&self) -> bool {
        self.what.starts_with(STOOD_STILL)
    }

    /// Its first panic, or where its processors stood still.
    fn in_short(&self) -> String {
        let lines = |word: &'static str| self.console.lines().filter(move |line| line.contains(word));
        match lines("Kernel panic").next() {
            Some(panic) => format!("`{}`", panic.trim()),
            None => {
                let places: Vec<_> = lines("RIP: ").map(str::trim).collect();
                format!("`{}` (the kernel: {})", self.what, places.join(", "))
            }
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let console = match self.console.trim() {
            "" => "the console stayed silent".to_owned(),
            _ => format!("the console's last lines:\n{}", last_lines(&self.console)),
        };
        write!(out, "{}; {console}", self.what)
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}

/// A file that `cargo xtask test` prepares: a kernel, its modules, a static busybox.
fn prepared(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target/guest").join(name)
}

/// The kernel that is booted.
fn kernel() -> PathBuf {
    prepared("vmlinuz")
}

/// The shell and all commands of the guest, one static executable.
fn busybox() -> PathBuf {
    prepared("busybox")
}

/// Why no guest can be started here.
pub fn ready() -> Result<(), String> {
    let told = Command::new(QEMU).arg("--version").stdin(Stdio::null()).output();
    told.map_err(|error| format!("{QEMU}: {error}"))?;
    let kernel = kernel();
    match kernel.is_file() {
        true => Ok(()),
        false => Err(format!("no kernel at `{}`, where `cargo xtask test` puts one", kernel.display())),
    }
}

impl Guest {
    /// With a shell and the modules that containers need.
    pub fn new() -> Guest {
        let guest = Guest {
            qemu: QEMU.into(),
            modules: vec!["overlay", "veth", "bridge"],
            memory: 1024,
            disk: None,
            contents: Archive::default(),
        };
        guest.file(&busybox(), "/bin/busybox")
    }

    /// Adds this module, with everything that it depends on.
    pub fn module(mut self, name: &'static str) -> Guest {
        self.modules.push(name);
        self
    }

    /// A file of this machine at a path in the guest.
    pub fn file(self, from: &Path, to: &str) -> Guest {
        let bytes = fs::read(from).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
        self.content(to, &bytes)
    }

    /// A file with this content.
    pub fn content(mut self, to: &str, bytes: &[u8]) -> Guest {
        self.contents.add(&Path::new("guest").join(to.trim_start_matches('/')), bytes);
        self
    }

    /// A program of this machine's search path at the same path in the guest, with its libraries.
    pub fn program(self, name: &str) -> Guest {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found =
            std::env::split_paths(&path).map(|directory| directory.join(name)).find(|path| path.is_file());
        let found = found.unwrap_or_else(|| panic!("`{name}` is not on the search path"));
        self.program_at(&found, &found.to_string_lossy())
    }

    /// This program at this path in the guest, with its libraries.
    pub fn program_at(self, from: &Path, to: &str) -> Guest {
        let libraries = contents::libraries(from);
        let guest = libraries.iter().fold(self, |guest, path| guest.file(path, &path.to_string_lossy()));
        guest.file(from, to)
    }

    /// What loads AppArmor's profiles: where the kernel has it, engines need it.
    pub fn with_apparmor(self) -> Guest {
        self.program_at(&prepared("apparmor_parser"), "/usr/sbin/apparmor_parser")
            .content("/etc/apparmor/parser.conf", b"")
    }

    /// With this many MiB of memory; 1024 by default, four fifths of which can hold files.
    pub fn memory(self, memory: u32) -> Guest {
        Guest { memory, ..self }
    }

    /// With an empty disk of so many bytes, `/dev/vda`, with ext4.
    pub fn disk(self, bytes: u64) -> Guest {
        let guest = Guest { disk: Some(bytes), ..self };
        // The checksum is asked for by name, which no file of a module says.
        ["virtio_pci", "virtio_blk", "crc32c_generic", "ext4"].into_iter().fold(guest, Guest::module)
    }

    /// Another emulator.
    pub fn with_qemu(self, qemu: &str) -> Guest {
        Guest { qemu: qemu.into(), ..self }
    }

    /// Boots, runs the script, and shuts down; or returns why not. On a busy machine the emulated kernel may panic before
    /// any program has run, for example in `psi_task_switch`, or stand still with both processors busy; then it is booted once
    /// more, and the test says so with the kernel's own words.
    pub fn run(self, script: &str, deadline: Duration) -> Result<Done, Fault> {
        let initramfs = self.pack(script);
        match self.boot(&initramfs, deadline) {
            Err(fault) if fault.is_before_init() || fault.stood_still() => {
                super::note(&format!("a guest was started once more after {}", fault.in_short()));
                self.boot(&initramfs, deadline)
            }
            done => done,
        }
    }

    fn boot(&self, initramfs: &[u8], deadline: Duration) -> Result<Done, Fault> {
        let place = tempfile::tempdir().expect("a directory");
        fs::write(place.path().join("initramfs"), initramfs).expect("room for the initramfs");
        if let Some(bytes) = self.disk {
            make_disk(&place.path().join(DISK), bytes);
        }
        let began = Instant::now();
        let silent = |what| Fault { what, console: String::new() };
        let mut emulator = Emulator::start(self.command(place.path()))
            .map_err(|error| silent(format!("cannot start `{}`: {error}", self.qemu.display())))?;
        let status = emulator.wait(deadline);
        let console = emulator.console();
        let Some(status) = status else {
            let what = format!("{STOOD_STILL} {deadline:?}");
            return Err(Fault { what, console });
        };
        let took = began.elapsed();
        match unpacked(place.path()) {
            Some((code, output)) => Ok(Done { code, output, console, took, files: place }),
            None => {
                let words = fs::read_to_string(place.path().join("stderr")).unwrap_or_default();
                let what = format!("the guest ended without a result: {status}: {}", words.trim());
                Err(Fault { what, console })
            }
        }
    }

    fn pack(&self, script: &str) -> Vec<u8> {
        let mut archive = self.contents.clone();
        archive.add(Path::new("busybox"), &fs::read(busybox()).expect("busybox"));
        archive.add(Path::new("init"), include_bytes!("init.sh"));
        archive.add(Path::new("guest/guest-init"), include_bytes!("guest-init.sh"));
        archive.add(Path::new("guest/guest-script"), script.as_bytes());
        let mut order = String::new();
        for module in contents::modules(&prepared("modules"), &self.modules) {
            let name = module.file_name().expect("a file").to_string_lossy().into_owned();
            archive.add(&Path::new("guest/guest-modules").join(&name), &fs::read(&module).expect("a module"));
            order += &format!("{name}\n");
        }
        archive.add(Path::new("guest/guest-modules/order"), order.as_bytes());
        archive.finish()
    }

    fn command(&self, place: &Path) -> Command {
        let mut command = Command::new(&self.qemu);
        // The first serial line is the console, the second one brings the result.
        let result = format!("file:{}", place.join("result.tar").display());
        command.args(["-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none"]);
        command.args(["-accel", "tcg", "-cpu", "max", "-smp", "2", "-no-reboot"]);
        command.args(["-m", &self.memory.to_string()]);
        command.args(["-serial", "mon:stdio", "-serial", &result]);
        command.arg("-kernel").arg(kernel()).arg("-initrd").arg(place.join("initramfs"));
        if self.disk.is_some() {
            let disk = place.join(DISK);
            command.args(["-drive", &format!("file={},format=raw,if=virtio,cache=unsafe", disk.display())]);
        }
        // A panic ends the machine at once. Emulation pays for mitigations without any benefit. The kernel's
        // check of its timer panics if the emulator does not get its CPU.
        command.args(["-append", "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check"]);
        let stderr = fs::File::create(place.join("stderr")).expect("a file for what the emulator says");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
        command
    }
}

/// A file with a filesystem in it.
fn make_disk(path: &Path, bytes: u64) {
    fs::File::create(path).and_then(|file| file.set_len(bytes)).expect("room for a disk");
    let made = Command::new("mkfs.ext4").arg("-q").arg(path).status();
    assert!(made.is_ok_and(|status| status.success()), "mkfs.ext4 {}", path.display());
}

/// The exit code and the output, if the archive with them is complete.
fn unpacked(place: &Path) -> Option<(i32, String)> {
    let archive = fs::File::open(place.join("result.tar")).ok()?;
    tar::Archive::new(archive).unpack(place).ok()?;
    let code = fs::read_to_string(place.join("guest-code")).ok()?.trim().parse().ok()?;
    let output = fs::read(place.join("guest-output")).ok()?;
    Some((code, String::from_utf8_lossy(&output).into_owned()))
}

/// The emulator's process, which is killed when this is dropped.
struct Emulator {
    process: Child,
    console: Arc<Mutex<Vec<u8>>>,
    closed: mpsc::Receiver<()>,
}

impl Emulator {
    fn start(mut command: Command) -> std::io::Result<Emulator> {
        // SAFETY: prctl and setpriority are single system calls without memory, which are allowed after a fork.
        unsafe {
            command.pre_exec(|| {
                // Programs in the guest have deadlines, so that other tests must not slow it down. Only root may ask for this.
                libc::setpriority(libc::PRIO_PROCESS, 0, -10);
                match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            })
        };
        let mut process = command.spawn()?;
        let mut stdout = process.stdout.take().expect("a pipe");
        let console = Arc::new(Mutex::new(Vec::new()));
        let (tell, closed) = mpsc::channel();
        let shared = Arc::clone(&console);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = stdout.read(&mut buffer) {
                shared.lock().expect("no panic").extend_from_slice(&buffer[..length]);
            }
            // After a deadline the receiver is gone.
            let _ = tell.send(());
        });
        Ok(Emulator { process, console, closed })
    }

    /// How it ended; `None` if it had to be killed.
    fn wait(&mut self, deadline: Duration) -> Option<ExitStatus> {
        let in_time = self.closed.recv_timeout(deadline).is_ok();
        if !in_time {
            self.ask_where_it_is();
            self.process.kill().expect("our own child");
        }
        let status = self.process.wait().expect("our own child");
        in_time.then_some(status)
    }

    /// Has the kernel print what its processors do and which tasks wait: a break on the console and a letter.
    fn ask_where_it_is(&mut self) {
        let Some(mut console) = self.process.stdin.take() else { return };
        for letter in ["9", "l", "w"] {
            let asked = console.write_all(b"\x01b").and_then(|()| console.flush());
            std::thread::sleep(Duration::from_millis(200));
            let _ = asked.and_then(|()| console.write_all(letter.as_bytes())).and_then(|()| console.flush());
            std::thread::sleep(Duration::from_millis(800));
        }
    }

    fn console(&self) -> String {
        let bytes = self.console.lock().expect("no panic");
        String::from_utf8_lossy(&bytes).replace('\r', "")
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

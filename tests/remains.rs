//! "Gone" for real: processes, mounts and cgroups that disappear one after the other, and unrelated ones that
//! must not count.
//!
//! Needs root for mounts and cgroups.

use std::ffi::CString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use dunnage::sys::clock;
use dunnage::sys::remains::{self, Kind, NotGone, Remains, Tokens};
use dunnage::units::Stamp;

use crate::support::{Need, lacks};

/// What an end may take to be noticed. Other programs only add to it, so one of several attempts is below.
const NOTICED: i64 = 30_000_000;
const ATTEMPTS: usize = 10;

/// How long something stays before it disappears.
const STAY: Duration = Duration::from_millis(120);

fn token(test: &str) -> String {
    format!("dunnage-remains-test-{test}-{}", std::process::id())
}

fn tokens(token: &str) -> Tokens {
    Tokens::new([token]).unwrap()
}

fn in_seconds(seconds: u64) -> Stamp {
    Stamp(clock::now().0 + seconds * 1_000_000_000)
}

/// A process with `mark` as its name in its command line, which lasts for `seconds`.
fn process(mark: &str, seconds: &str) -> Child {
    Command::new("sleep").arg0(mark).arg(seconds).stdin(Stdio::null()).spawn().unwrap()
}

/// Does `end` after a while, in another thread; returns the stamps before and after it.
fn later(end: impl FnOnce() + Send + 'static) -> thread::JoinHandle<(Stamp, Stamp)> {
    thread::spawn(move || {
        thread::sleep(STAY);
        let before = clock::now();
        end();
        (before, clock::now())
    })
}

/// How long after an end, between these stamps, it was noticed: never before.
fn lateness(at: Stamp, (before, after): (Stamp, Stamp)) -> i64 {
    assert!(at >= before, "never before the end");
    at.0 as i64 - after.0 as i64
}

/// The least lateness of several attempts is that of the watcher.
fn assert_soon(attempt: impl Fn() -> i64) {
    let mut all = Vec::new();
    while all.len() < ATTEMPTS && !all.iter().any(|late| *late <= NOTICED) {
        all.push(attempt());
    }
    assert!(all.iter().any(|late| *late <= NOTICED), "noticed after {all:?} ns");
}

struct Mount(PathBuf);

impl Mount {
    fn tmpfs(at: &Path) -> Mount {
        fs::create_dir_all(at).unwrap();
        let target = CString::new(at.to_str().unwrap()).unwrap();
        // SAFETY: all strings live through the call; tmpfs needs no data.
        let status =
            unsafe { libc::mount(c"none".as_ptr(), target.as_ptr(), c"tmpfs".as_ptr(), 0, std::ptr::null()) };
        assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
        Mount(at.to_path_buf())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let target = CString::new(self.0.to_str().unwrap()).unwrap();
        // SAFETY: the string lives through the call.
        unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
    }
}

/// A cgroup in each writable hierarchy; removed when dropped.
struct Cgroups(Vec<PathBuf>);

impl Cgroups {
    fn new(name: &str) -> Cgroups {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let roots = mounts.lines().filter(|line| line.contains(" - cgroup"));
        let paths = roots.filter_map(|line| Some(Path::new(line.split(' ').nth(4)?).join(name)));
        Cgroups(paths.filter(|path| fs::create_dir(path).is_ok()).collect())
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        for path in &self.0 {
            let _ = fs::remove_dir(path);
        }
    }
}

#[test]
fn nothing_left_is_gone_at_the_return() {
    let remains = Remains::new();
    let tokens = tokens(&token("nothing"));
    let mut looks: Vec<i64> = (0..20)
        .map(|_| {
            let returned = clock::now();
            let gone = remains.watch(&tokens, returned, in_seconds(5)).unwrap();
            assert_eq!((gone.at, gone.waited_for), (returned, vec![]));
            gone.look.0
        })
        .collect();
    looks.sort_unstable();
    eprintln!("a look takes {} us (median of 20)", looks[10] / 1000);
}

#[test]
fn a_process_is_waited_for_and_a_similar_one_is_not() {
    assert_soon(|| {
        let mark = token("process");
        let mut similar = process(&mark[..mark.len() - 1].replace("process", "proces"), "30");
        let began = clock::now();
        let mut ours = process(&mark, "0.12");
        let watcher = thread::spawn(move || Remains::new().watch(&tokens(&mark), began, in_seconds(10)));
        ours.wait().unwrap();
        let reaped = clock::now();
        let gone = watcher.join().unwrap().unwrap();
        assert!(gone.at.0 >= began.0 + 120_000_000, "it lives for 120 ms");
        assert_eq!(gone.waited_for.len(), 1, "{:?}", gone.waited_for);
        assert!(similar.try_wait().unwrap().is_none(), "the similar one was neither waited for nor touched");
        similar.kill().unwrap();
        similar.wait().unwrap();
        gone.at.0 as i64 - reaped.0 as i64
    });
}

#[test]
fn a_mount_is_waited_for() {
    if lacks("a_mount_is_waited_for", Need::Root) {
        return;
    }
    let mark = token("mount");
    let directory = tempfile::tempdir().unwrap();
    let _foreign = Mount::tmpfs(&directory.path().join("dunnage-remains-test-mount-foreign"));
    assert_soon(|| {
        let ours = Mount::tmpfs(&directory.path().join(&mark));
        let end = later(move || drop(ours));
        let gone = Remains::new().watch(&tokens(&mark), clock::now(), in_seconds(10)).unwrap();
        let waited: Vec<Kind> = gone.waited_for.iter().map(|item| item.kind).collect();
        assert_eq!(waited, [Kind::Mount]);
        lateness(gone.at, end.join().unwrap())
    });
}

#[test]
fn cgroups_of_every_hierarchy_are_waited_for() {
    const TEST: &str = "cgroups_of_every_hierarchy_are_waited_for";
    if lacks(TEST, Need::Root) || lacks(TEST, Need::Cgroup) {
        return;
    }
    let mark = token("cgroup");
    let foreign = Cgroups::new(&token("cgrou"));
    assert_soon(|| {
        let mut ours = Cgroups::new(&format!("{mark}.scope"));
        let count = ours.0.len();
        assert!(count > 0, "no hierarchy has the group");
        let last = Cgroups(ours.0.split_off(count - 1));
        let end = later(move || {
            drop(ours);
            thread::sleep(Duration::from_millis(40));
        });
        let very_end = thread::spawn(move || {
            end.join().unwrap();
            let before = clock::now();
            drop(last);
            (before, clock::now())
        });
        let gone = Remains::new().watch(&tokens(&mark), clock::now(), in_seconds(10)).unwrap();
        assert_eq!(gone.waited_for.len(), count, "{:?}", gone.waited_for);
        assert!(foreign.0.iter().all(|path| path.is_dir()));
        lateness(gone.at, very_end.join().unwrap())
    });
}

#[test]
fn a_process_in_the_cgroup_needs_no_token() {
    const TEST: &str = "a_process_in_the_cgroup_needs_no_token";
    if lacks(TEST, Need::Root) || lacks(TEST, Need::Cgroup) {
        return;
    }
    let mark = token("member");
    assert_soon(|| {
        let group = Cgroups::new(&mark);
        let mut member = process("nothing", "0.12");
        let pid = member.id();
        let joined: Vec<PathBuf> = group
            .0
            .iter()
            .filter(|path| fs::write(path.join("cgroup.procs"), pid.to_string()).is_ok())
            .cloned()
            .collect();
        let exact = joined.first().cloned().expect("no hierarchy has the process");
        let tokens = tokens(&mark);
        let end = thread::spawn(move || {
            member.wait().unwrap();
            let before = clock::now();
            drop(group);
            (before, clock::now())
        });
        let gone = Remains::new().watch(&tokens, clock::now(), in_seconds(10)).unwrap();
        let waited: Vec<_> =
            gone.waited_for.iter().map(|item| (item.kind, item.name.split(':').next().unwrap())).collect();
        assert!(waited.contains(&(Kind::Process, &*pid.to_string())), "{waited:?}");
        assert!(waited.contains(&(Kind::Cgroup, exact.to_str().unwrap())), "{waited:?}");
        lateness(gone.at, end.join().unwrap())
    });
}

#[test]
fn what_outlives_the_deadline_is_named() {
    let mark = token("deadline");
    let mut ours = [process(&mark, "60"), process(&mark, "60.5")];
    let tokens = tokens(&mark);
    let watched = || {
        let begin = clock::now();
        let deadline = Stamp(begin.0 + 100_000_000);
        let error = Remains::new().watch(&tokens, begin, deadline).unwrap_err();
        let end = clock::now();
        assert!(end >= deadline);
        (error, (end.0 - deadline.0) as i64)
    };
    assert_soon(|| watched().1);
    let (error, _) = watched();
    let NotGone::StillThere(items) = &error else { panic!("{error}") };
    assert_eq!(items.len(), 2, "{error}");
    assert!(ours.iter().all(|one| error.to_string().contains(&format!("{}: {mark}", one.id()))), "{error}");
    assert_eq!(remains::find(&tokens).unwrap().len(), 2);
    assert!(ours.iter_mut().all(|one| one.try_wait().unwrap().is_none()), "looking touches nothing");
    for one in &mut ours {
        one.kill().unwrap();
        one.wait().unwrap();
    }
    assert_eq!(remains::find(&tokens).unwrap(), []);
}

#[test]
fn our_own_command_line_does_not_count() {
    let mut bytes = fs::read("/proc/self/cmdline").unwrap();
    bytes.truncate(bytes.iter().position(|&byte| byte == 0).unwrap());
    let program = PathBuf::from(String::from_utf8(bytes).unwrap());
    // Its directory may have characters that are in no token.
    let tokens = tokens(program.file_name().unwrap().to_str().unwrap());
    let found = remains::find(&tokens).unwrap();
    let us = format!("{}: ", std::process::id());
    assert!(!found.iter().any(|item| item.name.starts_with(&us)), "{found:?}");
}

//! Ends services started by dunnage: first by SIGTERM, then by killing them with everything that they
//! started.
//!
//! A path in the run's own directory is in their command lines. That alone proves nothing: an editor may have a file of it open, and
//! anyone may write it into a command line. So they must also be processes of dunnage's own user, and execute one of the programs
//! that a service consists of.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::process::geteuid;

use crate::sys::process::{self, Held};
use crate::units::Nanos;

/// How long one may take to end after SIGTERM: a docker daemon stops its containers meanwhile.
const ENDS: Nanos = Nanos::from_millis(10_000);

/// What services start and leave running, or what may be at work for them.
const HELPERS: [&str; 18] = [
    "containerd",
    "containerd-shim",
    "containerd-shim-runc-v1",
    "containerd-shim-runc-v2",
    "docker-proxy",
    "docker-init",
    "runc",
    "crun",
    "youki",
    "runsc",
    "conmon",
    "catatonit",
    "fuse-overlayfs",
    "netavark",
    "aardvark-dns",
    "slirp4netns",
    "pasta",
    "rootlessport",
];
/// What runs a program that is a script, or starts one with its output in a file.
const SHELLS: [&str; 4] = ["sh", "dash", "bash", "busybox"];

/// Ends the programs with these names, one name after the other, and then everything else that works on this path.
pub(super) fn end(path: &str, names: &[&str]) {
    let find = |names: &[&str]| {
        let found = process::held(&|words| words.iter().any(|word| names_path(word, path)));
        let own = found.into_iter().filter(|one| one.user == geteuid().as_raw());
        own.filter(|one| names.iter().any(|name| executes(one, name))).collect::<Vec<_>>()
    };
    for name in names {
        let held = find(&[name]);
        held.iter().for_each(|one| one.signal(libc::SIGTERM));
        for one in &held {
            process::await_end(&one.held, ENDS);
        }
    }
    process::kill_families(&|| find(&[names, &HELPERS[..]].concat()));
}

/// Whether a word of a command line names this path or one below it: alone, as the value of an option, in a list, or in a URL.
fn names_path(word: &[u8], path: &str) -> bool {
    let path = path.as_bytes();
    let begins =
        |before: &[u8]| before.last().is_none_or(|last| b"=,:".contains(last)) || before.ends_with(b"://");
    let ends = |after: &[u8]| after.first().is_none_or(|next| b"/,:".contains(next));
    let mut places = word.windows(path.len()).enumerate().filter(|(_, window)| *window == path);
    places.any(|(at, _)| begins(&word[..at]) && ends(&word[at + path.len()..]))
}

/// Whether a process executes a program with this name, itself, as a script, or in a moment: a shell that prepares its output.
fn executes(one: &Held, name: &str) -> bool {
    let called = |word: &OsStr| Path::new(word).file_name() == Some(OsStr::new(name));
    let word = |at: usize| one.words.get(at).is_some_and(|word| called(OsStr::from_bytes(word)));
    // One that was replaced meanwhile, as by an update, is marked so.
    let executable = one.process.executable.as_deref().unwrap_or(Path::new("")).to_string_lossy();
    let executable = executable.trim_end_matches(" (deleted)");
    let is_shell = SHELLS.iter().any(|shell| executable.ends_with(&format!("/{shell}")));
    called(OsStr::new(executable)) || is_shell && (word(1) || word(4))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};

    use super::*;

    #[test]
    fn a_path_is_named_as_a_whole() {
        let names = |word: &str| names_path(word.as_bytes(), "/s/runs/a/d3");
        for word in
            ["/s/runs/a/d3", "--root=/s/runs/a/d3/root", "unix:///s/runs/a/d3/docker.sock", "/s/runs/a/d3,rw"]
        {
            assert!(names(word), "{word}");
        }
        assert!(names("lowerdir=/l:/s/runs/a/d3/l,upperdir=/u"));
        for word in [
            "/s/runs/a/d31",
            "/s/runs/a/d31/root",
            "/backup/s/runs/a/d3",
            "x/s/runs/a/d3",
            "/s/runs/a/d3-old",
        ] {
            assert!(!names(word), "{word}");
        }
    }

    /// A program of this name, which is a script that waits.
    fn started(place: &Path, name: &str, words: &[&str], user: u32) -> Child {
        let program = place.join(name);
        // Never written again while a shell reads it.
        if !program.exists() {
            std::fs::write(&program, "#!/bin/sh\nsleep 60\n").unwrap();
            std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        }
        let mut command = Command::new("/bin/sh");
        command.arg(&program).args(words).stdin(Stdio::null()).process_group(0);
        if geteuid().is_root() {
            command.uid(user);
        }
        command.spawn().unwrap()
    }

    fn is_there(child: &mut Child) -> bool {
        child.try_wait().unwrap().is_none()
    }

    #[test]
    fn what_works_on_another_path_or_belongs_to_another_user_is_not_ended() {
        let place = tempfile::tempdir().unwrap();
        std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let [own, similar, stranger] = [geteuid().as_raw(), geteuid().as_raw(), 64_321];
        let at = |name: &str| place.path().join(name).display().to_string();
        std::fs::write(at("d3.log"), "").unwrap();
        let mut ours = started(place.path(), "dockerd", &["--data-root", &at("d3/root")], own);
        let mut helper = started(place.path(), "conmon", &["-b", &at("d3/c")], own);
        let mut others = [
            started(place.path(), "dockerd", &["--data-root", &at("d31/root")], similar),
            started(place.path(), "editor", &[&at("d3/root/file")], own),
        ];
        let mut of_stranger = started(place.path(), "dockerd", &["--data-root", &at("d3/root")], stranger);
        end(&at("d3"), &["dockerd"]);
        let ended = [&mut ours, &mut helper].map(|child| !is_there(child));
        let stays = others.each_mut().map(is_there);
        let stranger_stays = is_there(&mut of_stranger) || !geteuid().is_root();
        for child in [ours, helper, of_stranger].iter().chain(&others) {
            // The script's own child.
            let group = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        assert_eq!((ended, stays, stranger_stays), ([true, true], [true, true], true));
        others.iter_mut().for_each(|child| drop(child.wait()));
    }
}

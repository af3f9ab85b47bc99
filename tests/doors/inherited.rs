//! What dunnage's caller has open, and the keys of its session, which are not for the programs that dunnage starts, some of them as
//! another user.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::sync::Arc;

use crate::dunnage::{Dunnage, finished};
use crate::rootless::user::{Ids, User};
use crate::support::{Need, lacks};
use ::dunnage::sys::identity::Identity;
use ::dunnage::sys::spawn::{self, Program};
use ::dunnage::units::Nanos;

#[test]
fn keys_of_the_session_stay_with_it() {
    let test = "keys_of_the_session_stay_with_it";
    let Some(user) = User::ordinary(test, 'k', Ids::Own) else { return };
    let name = format!("dunnage-test-{}", std::process::id());
    let described = std::ffi::CString::new(name.clone()).unwrap();
    // SAFETY: system calls with strings that live longer; this process has one test.
    let key = unsafe {
        libc::syscall(libc::SYS_keyctl, libc::KEYCTL_JOIN_SESSION_KEYRING, 0);
        let [kind, payload] = [c"user".as_ptr(), c"secret".as_ptr()];
        libc::syscall(
            libc::SYS_add_key,
            kind,
            described.as_ptr(),
            payload,
            6usize,
            libc::KEY_SPEC_SESSION_KEYRING,
        )
    };
    if key < 0 {
        crate::support::skip(test, Need::Kernel, "keys cannot be added");
        return;
    }
    let keys = || fs::read_to_string("/proc/keys").unwrap();
    assert!(keys().contains(&name), "{}", keys());
    let identity = Identity {
        user: user.number,
        group: user.number,
        groups: vec![user.number],
        limits: Vec::new(),
        directory: "/".into(),
        mask: 0o022,
    };
    let program = Program::new(Path::new("/bin/cat"), ["/proc/keys"]).unwrap();
    let child = spawn::start(&program.with_identity(&Arc::new(identity))).unwrap();
    let said = child.wait(Nanos::from_millis(10_000), None).unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(!said.contains(&name) && !said.is_empty(), "{said}");
    assert!(keys().contains(&name), "dunnage has lost its own keys");
}

#[test]
fn descriptors_of_the_caller_are_closed_in_what_dunnage_starts() {
    let test = "descriptors_of_the_caller_are_closed_in_what_dunnage_starts";
    if lacks(test, Need::Root) || lacks(test, Need::Crun) {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let (program, seen) = (place.path().join("crun"), place.path().join("seen"));
    let crun = ::dunnage::subject::on_path("crun").unwrap();
    let script = format!(
        "#!/bin/sh\n/usr/bin/readlink /proc/$$/fd/* >> {}\nexec {} \"$@\"\n",
        seen.display(),
        crun.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let dunnage = Dunnage::new().without_engines();
    let secret = place.path().join("secret");
    let file = File::create(&secret).unwrap();
    let mut command = dunnage.command(&format!("check start -s crun:bin={}", program.display()));
    let descriptor = file.as_raw_fd();
    // SAFETY: the closure makes one system call.
    unsafe {
        command.pre_exec(move || {
            libc::dup2(descriptor, 9);
            Ok(())
        });
    }
    let ran = finished(command.output().unwrap());
    assert_eq!(ran.code, 0, "{ran}");
    let seen = fs::read_to_string(&seen).unwrap();
    assert!(!seen.contains(&*secret.to_string_lossy()) && seen.contains("pipe:"), "{seen}");
}

//! A guest that does not boot is reported with its console's output, and never waited for without a limit.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::guest::cpio::Archive;
use crate::support::guest::{Fault, Guest};
use crate::support::{Need, lacks};

/// Long enough for any boot; a test that reaches it has failed.
const AMPLE: Duration = Duration::from_secs(120);

fn fault(guest: Guest, script: &str, deadline: Duration) -> Fault {
    match guest.run(script, deadline) {
        Err(fault) => fault,
        Ok(done) => panic!("a guest that cannot come up came up: {done}"),
    }
}

#[test]
fn an_emulator_that_is_missing_is_told() {
    if lacks("an_emulator_that_is_missing_is_told", Need::Guest) {
        return;
    }
    let told = fault(Guest::new().with_qemu("/nowhere/qemu"), "true", AMPLE).to_string();
    assert!(told.contains("cannot start `/nowhere/qemu`: No such file"), "{told}");
}

#[test]
fn a_kernel_that_is_none_is_told_in_the_emulators_words() {
    if lacks("a_kernel_that_is_none_is_told_in_the_emulators_words", Need::Guest) {
        return;
    }
    let place = tempfile::tempdir().expect("a directory");
    let garbage = place.path().join("garbage");
    fs::write(&garbage, b"not a kernel\n".repeat(1000)).expect("a file");
    let fault = fault(Guest::new().with_kernel(&garbage), "true", AMPLE);
    assert!(fault.what.contains("without a result"), "{fault}");
    assert!(fault.what.contains("kernel"), "{fault}");
}

/// It has a header, so the emulator starts it; what happens then is undefined.
#[test]
fn a_kernel_that_is_cut_ends_within_the_deadline() {
    if lacks("a_kernel_that_is_cut_ends_within_the_deadline", Need::Guest) {
        return;
    }
    let place = tempfile::tempdir().expect("a directory");
    let cut = place.path().join("cut");
    let mut bytes = fs::read(crate::support::guest::kernel()).expect("the kernel");
    bytes.truncate(bytes.len() / 2);
    fs::write(&cut, bytes).expect("a file");
    let (began, deadline) = (Instant::now(), Duration::from_secs(10));
    let fault = fault(Guest::new().with_kernel(&cut), "true", deadline);
    assert!(fault.what.contains("did not end within") || fault.what.contains("without a result"), "{fault}");
    assert!(began.elapsed() < deadline + Duration::from_secs(30), "{:?}", began.elapsed());
}

#[test]
fn an_initramfs_without_init_panics_and_the_panic_is_shown() {
    if lacks("an_initramfs_without_init_panics_and_the_panic_is_shown", Need::Guest) {
        return;
    }
    let mut archive = Archive::default();
    archive.add(Path::new("nothing/of/use"), b"");
    let fault = fault(Guest::new().with_initramfs(archive.finish()), "true", AMPLE);
    assert!(fault.what.contains("without a result"), "{fault}");
    assert!(fault.to_string().contains("Kernel panic"), "{fault}");
}

#[test]
fn a_script_that_sleeps_for_ever_is_ended_and_its_last_words_are_shown() {
    if lacks("a_script_that_sleeps_for_ever_is_ended_and_its_last_words_are_shown", Need::Guest) {
        return;
    }
    // A separate init, so that the deadline need not include the work of the usual one.
    let init = b"#!/busybox sh\necho these are my last words\nexec /busybox sleep 1000000\n";
    let mut archive = Archive::default();
    archive.add(Path::new("init"), init);
    archive.add(Path::new("busybox"), &fs::read(crate::support::guest::busybox()).expect("busybox"));
    let fault = fault(Guest::new().with_initramfs(archive.finish()), "true", Duration::from_secs(40));
    assert!(fault.what.contains("did not end within 40s"), "{fault}");
    assert!(fault.to_string().ends_with("the console's last lines:\nthese are my last words"), "{fault}");
}

#[test]
fn a_script_that_fails_hands_back_its_code_its_words_and_its_files() {
    if lacks("a_script_that_fails_hands_back_its_code_its_words_and_its_files", Need::Guest) {
        return;
    }
    let script =
        "cat /given; echo to standard error >&2; mkdir deep; head -c 3000000 /dev/urandom > deep/file
sha256sum deep/file; cat /proc/self/cgroup; cat /proc/$$/status | grep -e PPid -e CapEff; exit 7";
    let guest = Guest::new().content("/given", b"what was given\n");
    let done = guest.run(script, AMPLE).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(done.code, 7, "{done}");
    // Without these words on the console, a panic of the script's kernel would be taken for one of its boot.
    assert!(done.console.contains("guest: init has begun"), "{done}");
    for words in ["what was given\n", "to standard error\n", "\n0::/user.slice/", "PPid:\t1\n"] {
        assert!(done.output.contains(words), "`{words}`: {done}");
    }
    let file = fs::read(done.files().join("deep/file")).expect("the file that the script made");
    let hash = <sha2::Sha256 as sha2::Digest>::digest(&file);
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(done.output.contains(&hash), "3 MB arrived changed: {done}");
}

//! The guest itself: what its script leaves comes back, and one that does not come up is reported with its console's output and
//! never waited for without a limit.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::guest::{Fault, Guest};
use crate::support::{Need, lacks};

/// Long enough for any boot; a test that reaches it has failed.
const AMPLE: Duration = Duration::from_secs(120);

/// What a guest does whose emulator is this shell script. `$RESULT` is the file to which the second serial line goes.
fn played(place: &Path, script: &str, deadline: Duration) -> Result<String, Fault> {
    let emulator = place.join("emulator");
    let text = format!(
        "#!/bin/sh\nfor word; do case $word in file:*) RESULT=${{word#file:}};; esac; done\ncd {}\n{script}\n",
        place.display()
    );
    fs::write(&emulator, text).expect("a script");
    fs::set_permissions(&emulator, fs::Permissions::from_mode(0o755)).expect("our file");
    let guest = Guest::new().with_qemu(&emulator.to_string_lossy());
    guest.run("true", deadline).map(|done| done.output)
}

#[test]
fn what_does_not_come_up_is_reported_with_its_console_and_a_panic_is_tried_once_more() {
    if lacks("what_does_not_come_up_is_reported_with_its_console_and_a_panic_is_tried_once_more", Need::Guest)
    {
        return;
    }
    let place = tempfile::tempdir().expect("a directory");
    let fault = |script: &str, deadline| match played(place.path(), script, deadline) {
        Err(fault) => fault.to_string(),
        Ok(output) => panic!("`{script}` came up: {output}"),
    };
    let told =
        Guest::new().with_qemu("/nowhere/qemu").run("true", AMPLE).err().expect("no emulator").to_string();
    assert!(told.contains("cannot start `/nowhere/qemu`: No such file"), "{told}");
    let told = fault("echo could not load the kernel >&2; exit 1", AMPLE);
    assert!(told.contains("without a result") && told.contains("could not load the kernel"), "{told}");
    assert!(told.ends_with("the console stayed silent"), "{told}");
    let began = Instant::now();
    let told = fault("echo these are my last words; exec sleep 1000", Duration::from_secs(2));
    assert!(told.contains("did not end within 2s") && began.elapsed() < AMPLE, "{told}");
    assert!(told.ends_with("the console's last lines:\nthese are my last words"), "{told}");

    const PANIC: &str = "echo boot >> boots; echo Kernel panic - not syncing";
    let boots = || fs::read_to_string(place.path().join("boots")).expect("it booted").lines().count();
    let told = fault(PANIC, AMPLE);
    assert!(told.contains("without a result") && told.contains("Kernel panic"), "{told}");
    assert_eq!(boots(), 2);
    // After the first program has run, a panic is the script's.
    let told = fault(&format!("echo guest: init has begun; {PANIC}"), AMPLE);
    assert!(told.contains("Kernel panic"), "{told}");
    assert_eq!(boots(), 3);
    let result = "mkdir out; echo 0 > guest-code; echo fine > guest-output; tar -cf $RESULT out guest-code guest-output";
    let second = format!("[ -e panicked ] || {{ touch panicked; {PANIC}; exit; }}\n{result}");
    assert_eq!(played(place.path(), &second, AMPLE).ok().as_deref(), Some("fine\n"));
    assert_eq!(boots(), 4);
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

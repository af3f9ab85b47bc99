//! Where containerd or a runtime is not available, a message says so with a remedy, and the others are
//! measured.

use tempfile::TempDir;

use crate::containerd::{script, turn};
use crate::dunnage::{Dunnage, Ran};
use crate::left;
use crate::support::{Need, lacks};

fn unavailable(dunnage: &Dunnage, subject: &str) -> Ran {
    let ran = dunnage.run(&format!("run start -s bare -s {subject} --rounds 1 -o DIR"));
    assert_eq!(ran.code, 6, "{ran}");
    let alone = dunnage.run(&format!("check start -s {subject}"));
    assert_eq!(alone.code, 4, "{alone}");
    ran
}

#[test]
fn a_socket_that_is_not_there_is_named() {
    let _turn = turn();
    let place = TempDir::new().expect("a directory");
    // Never asked for its version: the socket is tried first.
    let ctr = script(place.path(), "ctr", "exit 1");
    let subject = format!("containerd:host=/run/dunnage-nowhere.sock,bin={}", ctr.display());
    let ran = unavailable(&Dunnage::new(), &subject);
    assert!(
        ran.stderr.contains("containerd does not answer: `/run/dunnage-nowhere.sock`: No such file"),
        "{ran}"
    );
    assert!(ran.stderr.contains("systemctl start containerd"), "{ran}");
}

/// A daemon that is older than the snapshotter, or that started without what it needs.
#[test]
fn a_snapshotter_that_does_not_serve_is_named() {
    const TEST: &str = "a_snapshotter_that_does_not_serve_is_named";
    if lacks(TEST, Need::Containerd) {
        return;
    }
    let _turn = turn();
    let dunnage = Dunnage::new();
    let ran = dunnage.run("check start --set prestate=primed -s containerd:snapshotter=erofs");
    let told = ran.to_string();
    let is_refused = ["no snapshotter `erofs`, which came with containerd 2.1", "`erofs` does not serve"];
    let plugins = left::containerd::asked(left::containerd::sockets()[0], &["plugins", "ls"]);
    let serves = |line: &str| {
        line.starts_with("io.containerd.snapshotter")
            && line.contains(" erofs ")
            && line.trim().ends_with("ok")
    };
    let is_served = plugins.lines().any(serves);
    assert_eq!(ran.code, if is_served { 0 } else { 4 }, "{ran}{plugins}");
    assert!(is_served || is_refused.iter().any(|words| told.contains(words)), "{ran}");
    assert_eq!(dunnage.run("sweep").code, 0);
}

#[test]
fn programs_that_are_not_installed_are_named() {
    let _turn = turn();
    let empty = TempDir::new().expect("a directory");
    let dunnage = Dunnage::new().with("PATH", &empty.path().display().to_string());
    for (subject, reason, remedy) in [
        ("containerd", "`ctr` is not installed", "install the package `containerd`"),
        ("youki", "not installed", "install a release of youki"),
        ("runsc", "not installed", "install a release of gVisor"),
    ] {
        let _ = std::fs::remove_dir_all(dunnage.directory());
        let ran = unavailable(&dunnage, subject);
        let told = format!("not available: {subject}: {reason}");
        // If it is installed, the path above only hides it.
        let remedy = if ran.stderr.contains("in `$PATH`, but in ") { "add it: " } else { remedy };
        assert!(ran.stderr.contains(&told) && ran.stderr.contains(remedy), "{ran}");
    }
}

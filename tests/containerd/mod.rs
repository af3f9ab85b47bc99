//! containerd, youki and gVisor's runsc for real: what they are asked for is found inside, what they lack is
//! reported, and no run of them leaves anything, however it ends. In containerd only dunnage's namespace is
//! touched; docker's containers are in another one of the same daemon.

mod life;
mod runtimes;
mod unavailable;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::dunnage::{Dunnage, Ran};
use crate::left;
use ::dunnage::record::{self, Recorded};

/// Tests take turns: a sweep of one removes the image of all, and removes less while another one runs.
fn turn() -> fs::File {
    crate::support::turn("containerd")
}

/// The record of a run that left nothing.
fn recorded(dunnage: &Dunnage, ran: &Ran) -> Recorded {
    let recorded = record::load(&dunnage.directory()).expect("a run directory");
    assert_eq!(left::of_run(&recorded.run), Vec::<String>::new(), "{ran}");
    assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new(), "{ran}");
    recorded
}

/// A run that left nothing, once more where `ctr` lost a program's output: it ends its copying when the program has ended, also if
/// that has not begun on a busy machine.
fn complete(dunnage: &Dunnage, arguments: &str) -> (Ran, Recorded) {
    for _ in 0..3 {
        let ran = dunnage.run(arguments);
        let run = recorded(dunnage, &ran);
        let lost = |row: &_| format!("{row:?}").contains("the probe wrote nothing to standard output");
        if !run.failures.iter().any(lost) {
            return (ran, run);
        }
        crate::support::note("`ctr` lost output, and the run was done once more");
        fs::remove_dir_all(dunnage.directory()).expect("a run directory");
    }
    panic!("each of three runs lost output");
}

fn script(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our file");
    path
}

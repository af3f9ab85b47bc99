//! Where state is kept if `$DUNNAGE_STATE` is not set: root's in `/var/lib/dunnage`, a user's in their data directory. In a mount
//! namespace with empty directories, so that nothing of this machine is touched.

use std::process::Command;

use crate::dunnage::{Ran, finished};
use crate::support::{Need, lacks};

/// Runs a script as root where `/var/lib` and `/mnt` are empty; `dunnage` is then `/mnt/dunnage`, and `/mnt/home` belongs to the
/// user 65534.
fn in_empty_places(script: &str) -> Ran {
    let prepared = "mount -t tmpfs -o mode=755 tmpfs /var/lib && mount -t tmpfs -o mode=755 tmpfs /mnt && cp \"$0\" /mnt/dunnage && \
                    install -d -o 65534 -g 65534 /mnt/home && cd /mnt/home || exit 9\n";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &format!("{prepared}{script}"), env!("CARGO_BIN_EXE_dunnage")]);
    for variable in ["DUNNAGE_STATE", "XDG_DATA_HOME", "HOME"] {
        command.env_remove(variable);
    }
    finished(command.output().expect("unshare is there"))
}

/// What a run of the scripted subject leaves there: the unpacked image.
const RUN: &str =
    "/mnt/dunnage run start -s a=fake --set prestate=idle --rounds 1 --no-html -o run >/dev/null || exit 8";
const USER: &str = "setpriv --reuid 65534 --regid 65534 --clear-groups";

/// The directories called `dunnage` that have something in them.
const FIND: &str =
    "\nfind /var/lib /mnt -mindepth 1 -name dunnage -type d -not -empty -not -path '*/rootfs/*' | sort";

#[test]
fn root_keeps_its_state_in_var_lib() {
    if lacks("root_keeps_its_state_in_var_lib", Need::Root) {
        return;
    }
    let ran = in_empty_places(&format!("export HOME=/mnt/home; {RUN}{FIND}"));
    assert!(ran.code == 0 && ran.stdout == "/var/lib/dunnage\n", "{ran}");
}

#[test]
fn an_ordinary_user_keeps_state_in_their_data_directory() {
    if lacks("an_ordinary_user_keeps_state_in_their_data_directory", Need::Root) {
        return;
    }
    let as_user = |environment: &str| {
        in_empty_places(&format!("{USER} env {environment} sh -c '{RUN}' || exit $?{FIND}"))
    };
    let ran = as_user("HOME=/mnt/home");
    assert!(ran.code == 0 && ran.stdout == "/mnt/home/.local/share/dunnage\n", "{ran}");
    let ran = as_user("HOME=/mnt/home XDG_DATA_HOME=/mnt/home/data");
    assert!(ran.code == 0 && ran.stdout == "/mnt/home/data/dunnage\n", "{ran}");
    let ran = as_user("NOTHING=1");
    assert!(ran.code == 8 && ran.stderr.contains("hint: set `$DUNNAGE_STATE`"), "{ran}");
}

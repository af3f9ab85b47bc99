//! Ways of running containers in containers that many machines refuse, where they are allowed: with all capabilities, pure cgroup v2 and
//! AppArmor. Minutes under emulation, where a start takes seconds.

use ::dunnage::experiment::nested::{STORED, names};
use ::dunnage::names::Fact;
use ::dunnage::record::{self, Recorded};

use super::*;

/// Programs of both engines, with what they call.
const PROGRAMS: [&str; 14] = [
    "dockerd",
    "docker",
    "containerd",
    "containerd-shim-runc-v2",
    "runc",
    "podman",
    "conmon",
    "crun",
    "fuse-overlayfs",
    "iptables",
    "ip6tables",
    "mount",
    "umount",
    "sysctl",
];
/// Files that they look for; libraries that are loaded by name.
const FILES: [&str; 6] = [
    "/usr/lib/podman/netavark",
    "/lib/x86_64-linux-gnu/libgcc_s.so.1",
    "/etc/ld.so.cache",
    "/etc/containers/policy.json",
    "/etc/containers/registries.conf",
    "/usr/share/containers/seccomp.json",
];
const EXTENSIONS: &str = "/usr/lib/x86_64-linux-gnu/xtables";
const MODULES: [&str; 12] = [
    "fuse",
    "tun",
    "nf_tables",
    "nft_compat",
    "nft_chain_nat",
    "xt_MASQUERADE",
    "xt_addrtype",
    "xt_conntrack",
    "xt_comment",
    "xt_mark",
    "xt_nat",
    "br_netfilter",
];
/// A machine as engines expect it.
const MACHINE: &str = "
for own in bin sbin lib lib64; do mkdir -p /usr/$own /$own; cp -a /$own/. /usr/$own/; done
mkdir -p /disk /var/tmp /var/lib/docker /var/lib/containers
mount -t ext4 /dev/vda /disk || exit
mkdir /disk/docker /disk/containers /disk/state
mount --bind /disk/docker /var/lib/docker
mount --bind /disk/containers /var/lib/containers
mount -t securityfs securityfs /sys/kernel/security
export DUNNAGE_STATE=/disk/state
";
/// The daemon, which has a minute and a half.
const DAEMON: &str = "
dockerd > /out/daemon.log 2>&1 &
until docker info > /out/info 2>&1; do sleep 1; [ $((n=n+1)) -gt 90 ] && tail -5 /out/daemon.log && exit 1; done
";

/// What was found out about these ways of a subject.
fn ran(subject: &str, ways: &[&str], begin: &str) -> (Recorded, Done) {
    let own = Path::new(env!("CARGO_BIN_EXE_dunnage"));
    let guest = Guest::new().file(own, "/usr/local/bin/dunnage").memory(4096).disk(8 << 30).with_apparmor();
    let guest = PROGRAMS.into_iter().fold(guest, Guest::program);
    let guest = MODULES.into_iter().fold(guest, Guest::module);
    let extensions = fs::read_dir(EXTENSIONS).into_iter().flatten().flatten().map(|entry| entry.path());
    let guest = FILES
        .map(Into::into)
        .into_iter()
        .chain(extensions)
        .fold(guest, |guest, path: std::path::PathBuf| guest.file(&path, &path.to_string_lossy()));
    let ways: String = ways.iter().map(|way| format!(" --set way={way}")).collect();
    let script = format!(
        "{MACHINE}{begin}dunnage run nested -s {subject}{ways} --rounds 1 --no-html -o run; code=$?\ndunnage report run --full; exit $code"
    );
    let done = guest.run(&script, Duration::from_secs(580)).unwrap_or_else(|fault| panic!("{fault}"));
    println!("{done}");
    assert_eq!(done.code, 0, "{done}");
    (record::load(&done.files().join("run")).expect("a run"), done)
}

fn fact<'a>(recorded: &'a Recorded, way: &str, name: Fact) -> &'a str {
    let cell =
        recorded.plan.cells.iter().position(|cell| cell.setting.get("way") == Some(way)).expect("a way");
    recorded.facts(cell, name).next().flatten().unwrap_or_default()
}

fn counter(recorded: &Recorded, way: &str, name: ::dunnage::names::Counter) -> i64 {
    let cell =
        recorded.plan.cells.iter().position(|cell| cell.setting.get("way") == Some(way)).expect("a way");
    let sample = recorded.series[cell].samples.iter().flatten().next().expect("a sample");
    sample.counter(name).unwrap_or_else(|| panic!("{way} has no {}", name.text()))
}

#[test]
fn a_privileged_daemon_runs_containers_on_version_2() {
    if lacks("a_privileged_daemon_runs_containers_on_version_2", Need::Guest) {
        return;
    }
    let (recorded, done) =
        ran("docker", &["privileged", "privileged-own-socket", "socket", "relaxed-network"], DAEMON);
    let of = |way, name| fact(&recorded, way, name);
    for way in ["privileged-own-socket", "relaxed-network"] {
        assert_eq!(of(way, names::PLACE), "inside", "{way}: {}: {done}", of(way, names::REFUSED));
        assert!(of(way, names::OPENS).contains("core_pattern"), "{way}: {done}");
    }
    // The client of the published way looks for a daemon elsewhere.
    let refused = of("privileged", names::REFUSED);
    assert!(refused.contains("docker:2375"), "{refused}");
    assert!(of("privileged", names::REMEDY).contains("unset DOCKER_HOST"), "{done}");
    assert_eq!(of("socket", names::PLACE), "sibling");
    assert!(of("socket", names::PROFILE).starts_with("docker-default"), "{done}");
    assert_eq!(of("relaxed-network", names::PROFILE), "unconfined");
}

#[test]
fn an_engine_without_a_daemon_runs_containers_on_version_2() {
    if lacks("an_engine_without_a_daemon_runs_containers_on_version_2", Need::Guest) {
        return;
    }
    let (recorded, done) =
        ran("podman", &["privileged", "fuse", "fuse-own-proc", "copies-own-proc", "daemon-inside"], "");
    let of = |way, name| fact(&recorded, way, name);
    let reached = |way: &str| counter(&recorded, way, names::REACHED);
    // What is synced inside does not come to the disk where syncs are off, and does where they are not.
    assert!(reached("fuse-own-proc") < STORED as i64 / 2, "{done}");
    assert!(reached("copies-own-proc") > STORED as i64 * 9 / 10, "{done}");
    // As published, labels are off, but AppArmor is not.
    assert!(of("fuse", names::REMEDY).contains("AppArmor"), "{done}");
    for way in ["privileged", "fuse-own-proc", "copies-own-proc", "daemon-inside"] {
        assert_eq!(of(way, names::PLACE), "inside", "{way}: {}: {done}", of(way, names::REFUSED));
    }
}

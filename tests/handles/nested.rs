//! Containers in containers on real engines: what is inside is proven, what is a sibling is called so, and what fails says what helps.

use ::dunnage::experiment::nested::names;
use ::dunnage::record::{self, Recorded};

use super::*;

/// A fact of a way.
pub fn fact<'a>(recorded: &'a Recorded, way: &str, name: ::dunnage::names::Fact) -> Option<&'a str> {
    let cell =
        recorded.plan.cells.iter().position(|cell| cell.setting.get("way") == Some(way)).expect("a way");
    recorded.facts(cell, name).next().flatten()
}

#[test]
fn a_build_inside_works_if_a_step_of_it_has_run_inside() {
    const TEST: &str = "a_build_inside_works_if_a_step_of_it_has_run_inside";
    let built = |subject: &str, ways: &str, way| {
        let dunnage = Dunnage::new();
        let recorded = ran(&dunnage, subject, &[&*format!("{way} --set does=build{ways}")]);
        let all = (0..recorded.plan.cells.len()).map(|cell| {
            let built = recorded.facts(cell, names::BUILT).flatten().next().unwrap_or_default();
            (recorded.plan.cells[cell].setting.get("does").unwrap_or_default().to_owned(), built.to_owned())
        });
        all.collect::<Vec<_>>()
    };
    if !lacks(TEST, Need::Podman) && !lacks(TEST, Need::Root) {
        let own = |does: &str, built: &str| (does.to_owned(), built.to_owned());
        assert_eq!(built("podman", "", "copies-own-proc"), [own("build", "yes")]);
        // Without what a start needs, there is no build either: both ask for a new /proc.
        assert_eq!(built("podman", "", "copies"), [own("build", "")]);
    }
    if !lacks(TEST, Need::Docker) && !lacks(TEST, Need::Root) {
        let all = built("docker", " --set does=buildkit", "relaxed-network");
        let of =
            |does: &str| all.iter().find(|(own, _)| own == does).map(|(_, built)| &**built).unwrap_or("");
        assert_eq!(of("build"), "yes", "{all:?}");
        // A client may have come without its plugin.
        let kit = of("buildkit");
        assert!(kit == "yes" || kit.contains("buildx"), "{all:?}");
        let [(_, socket)] = &built("docker", "", "socket")[..] else { panic!("one cell") };
        assert!(socket.starts_with("no: unsupported: the daemon outside builds"), "{socket}");
    }
}

pub fn ran(dunnage: &Dunnage, subject: &str, ways: &[&str]) -> Recorded {
    let ways: Vec<String> = ways.iter().map(|way| format!("--set way={way}")).collect();
    let ran = dunnage.run(&format!("run nested -s {subject} {} --rounds 1 --no-html -o DIR", ways.join(" ")));
    assert_eq!(ran.code, 0, "{ran}");
    let recorded = record::load(&dunnage.directory()).unwrap_or_else(|why| panic!("{why}: {ran}"));
    assert_eq!(left::of_run(&recorded.environment.run), Vec::<String>::new());
    recorded
}

#[test]
fn a_masked_proc_is_named_as_what_keeps_containers_from_containers() {
    const TEST: &str = "a_masked_proc_is_named_as_what_keeps_containers_from_containers";
    if lacks(TEST, Need::Podman) || lacks(TEST, Need::Root) {
        return;
    }
    // Where there is no such device, one way less is asked for.
    let has_fuse = ["/dev/fuse", "/usr/bin/fuse-overlayfs"].iter().all(|path| Path::new(path).exists());
    let ways =
        [&["copies", "copies-own-proc", "user-inside"][..], if has_fuse { &["fuse-own-proc"] } else { &[] }]
            .concat();
    let recorded = ran(&Dunnage::new(), "podman", &ways);
    if has_fuse {
        let why = fact(&recorded, "fuse-own-proc", names::REFUSED);
        assert_eq!(fact(&recorded, "fuse-own-proc", names::PLACE), Some("inside"), "{why:?}");
    }
    let of = |way, name| fact(&recorded, way, name).unwrap_or_default();
    let refused = of("copies", names::REFUSED);
    assert!(refused.starts_with("permission: ") && refused.contains("proc"), "{refused}");
    assert!(of("copies", names::REMEDY).contains("--volume /proc:/proc"));
    assert_eq!(fact(&recorded, "copies", names::PLACE), None);
    assert_eq!(of("copies-own-proc", names::PLACE), "inside", "{}", of("copies-own-proc", names::REFUSED));
    assert_eq!(of("copies-own-proc", names::DRIVER), "vfs");
    // Masked as it is, nothing of the host can be opened.
    assert_eq!(of("copies-own-proc", names::OPENS), "");
    // As an ordinary user inside too, in a namespace of its own; files are the user's.
    assert_eq!(of("user-inside", names::PLACE), "inside", "{}", of("user-inside", names::REFUSED));
    assert_eq!(of("user-inside", names::CAPABILITIES).trim_start_matches('0'), "");
    assert_eq!(fact(&recorded, "user-inside", names::UNWRITTEN), None);
}

#[test]
fn an_outer_container_that_dies_is_a_failure_and_no_answer() {
    const TEST: &str = "an_outer_container_that_dies_is_a_failure_and_no_answer";
    if lacks(TEST, Need::Podman) || lacks(TEST, Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let mut command =
        dunnage.command("run nested -s podman --set way=copies-own-proc --rounds 1 --no-html -o DIR");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    // The outer one is that with the archive in it.
    let outer = || {
        let id = std::fs::read_dir(dunnage.state().join("journal")).ok()?.flatten().next()?.file_name();
        let id = id.to_string_lossy().strip_suffix(".jsonl")?.to_owned();
        let format = "--format={{.ID}} {{.Mounts}}";
        let all = said("podman", &["ps", "--filter", &format!("label=dunnage.run={id}"), format]);
        all.lines().find(|line| line.contains("/image.tar"))?.split(' ').next().map(str::to_owned)
    };
    // That of the trial is tried once more: rounds begin when there is a plan. Before anything runs in it, its end is that of its start.
    until("a plan", || dunnage.directory().join("plan.json").exists());
    let podman =
        |words: &[&str]| std::process::Command::new("podman").args(words).output().expect("it starts");
    until("an outer container in which something runs", || {
        outer().is_some_and(|id| {
            let runs = podman(&["top", &id, "pid"]).stdout.split(|byte| *byte == b'\n').count();
            runs > 3 && podman(&["kill", "--signal", "KILL", &id]).status.success()
        })
    });
    let ran = child.wait_with_output().expect("it ends");
    let recorded = record::load(&dunnage.directory()).expect("a run");
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    let [failed] = &recorded.failures[..] else { panic!("{:?}: {told}", recorded.failures) };
    let cause = format!("{:?}", failed.cause);
    assert!(cause.contains("the outer container ended"), "{cause}");
    assert_eq!(fact(&recorded, "copies-own-proc", names::REFUSED), None);
    assert!(!ran.status.success(), "{told}");
    assert_eq!(left::of_run(&recorded.environment.run), Vec::<String>::new());
}

#[test]
fn a_daemon_inside_is_told_from_one_outside() {
    const TEST: &str = "a_daemon_inside_is_told_from_one_outside";
    if lacks(TEST, Need::Docker) || lacks(TEST, Need::Root) {
        return;
    }
    let recorded = ran(&Dunnage::new(), "docker", &["socket", "relaxed", "relaxed-network", "service-tls"]);
    let of = |way, name| fact(&recorded, way, name).unwrap_or_default();
    assert_eq!(of("socket", names::PLACE), "sibling", "{}", of("socket", names::REFUSED));
    assert_eq!(of("socket", names::CGROUP), "not the outer's");
    assert!(of("relaxed", names::REMEDY).contains("NET_ADMIN"), "{}", of("relaxed", names::REFUSED));
    assert_eq!(of("relaxed-network", names::PLACE), "inside", "{}", of("relaxed-network", names::REFUSED));
    assert_eq!(of("relaxed-network", names::CGROUP), "below the outer's");
    assert_eq!(of("relaxed-network", names::FILTER), "0");
    // One that is reached at a port, with certificates; here without the program that makes them.
    let (place, refused) = (fact(&recorded, "service-tls", names::PLACE), of("service-tls", names::REFUSED));
    assert!(place == Some("inside") || refused.contains("openssl"), "{place:?} {refused}");
}

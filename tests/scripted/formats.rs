//! Do the documents of formats for other programs name every field that the program writes, and no other?
//!
//! A document's fields are the names in its code spans; those that are values, or names of other things, are listed here.
//! Deliberately absent: `dunnage advise cpu`, which watches a container (`tests/advise.rs`).

use std::fs;

use dunnage::document::shown;
use dunnage::plan::Prediction;
use dunnage::plan::prediction::Written;
use dunnage::report::Look;
use dunnage::stats::Ruling;
use serde_json::Value;

use crate::documented::{compare, compare_with};
use crate::dunnage::Dunnage;
use crate::report::{factors, pictures, report, scripted};
use crate::scripted::compare::planted;

/// A document that others refer to for some of their fields.
const REFERENCE: &str = include_str!("../../docs/reference-json.md");
const COMPARE: &str = include_str!("../../docs/compare-json.md");

fn json(dunnage: &Dunnage, arguments: &str) -> Value {
    let ran = dunnage.run(arguments);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{arguments}: {error}: {ran}"))
}

#[test]
fn reference_json() {
    let written = [json(&Dunnage::new(), "reference --format json")];
    compare(
        "reference-json.md",
        REFERENCE,
        &written,
        &[],
        "derived guess max mean median min negative null shown",
    );
}

#[test]
fn list_json() {
    let empty = Dunnage::new().with("PATH", "/nowhere");
    let written = [json(&Dunnage::new(), "list --format json"), json(&empty, "list --format json")];
    compare("list-json.md", include_str!("../../docs/list-json.md"), &written, &["facts"], "");
}

#[test]
fn doctor_json() {
    let dunnage = Dunnage::new().with("PATH", "/nowhere");
    let written = [json(&dunnage, "doctor --format json")];
    let others = "note null ok privileges problem storage subjects warning";
    compare("doctor-json.md", include_str!("../../docs/doctor-json.md"), &written, &[], others);
}

#[test]
fn advise_probes_json() {
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run exec -s a=fake:time=10ms --rounds 14 --seed 7 --no-html -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    let written = [json(&dunnage, "advise probes DIR --format json")];
    let text = include_str!("../../docs/advise-json.md");
    let (_, section) = text.split_once("## `advise probes`").expect("a section");
    compare("advise-json.md", section, &written, &[], "exec");
}

#[test]
fn history_json() {
    let dunnage = Dunnage::new();
    for day in 1..=12 {
        let time = if day > 6 { 3 } else { 2 };
        let ran = dunnage.run(&format!(
            "run start -s a=fake:time={time}ms --set prestate=idle --rounds 8 --seed {day} --tag day={day} --no-html -o DIR/{day:02}"
        ));
        assert_eq!(ran.code, 0, "{ran}");
        let path = dunnage.directory().join(format!("{day:02}/env.json"));
        let mut environment: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        environment["started"] = format!("2026-10-{day:02}T12:00:00Z").into();
        environment["machine"]["kernel"] = if day > 6 { "7" } else { "6" }.into();
        fs::write(&path, environment.to_string()).unwrap();
    }
    let written = [json(&dunnage, "history DIR --format json")];
    let texts = [include_str!("../../docs/history-json.md"), COMPARE];
    let others = "better blocks faster less more null same slower worse";
    compare_with("history-json.md", texts, &written, &[], others);
}

#[test]
fn compare_json() {
    let shown =
        |comparison| serde_json::from_str(&shown(&comparison, "json", &Look::default()).unwrap()).unwrap();
    let slower = |label: &str, _: &str, _: usize| if label == "docker" { 1.1 } else { 1.0 };
    let slightly = |label: &str, _: &str, _: usize| if label == "docker" { 1.015 } else { 1.0 };
    let everything = |_: &str, _: &str, _: usize| 1.3;
    let wild = |_: &str, _: &str, round: usize| if round.is_multiple_of(2) { 1.0 } else { 3.0 };
    use planted::{plain, run};
    let mut written: Vec<Value> = vec![
        shown(planted::compared(&[run(1, 30, plain)], &[run(2, 30, slower)])),
        shown(planted::compared(&[run(1, 30, plain)], &[run(2, 30, slightly)])),
        shown(planted::compared(&[run(1, 30, plain)], &[run(2, 30, everything)])),
        shown(planted::compared(&[run(1, 30, wild)], &[run(2, 30, wild)])),
        shown(planted::compared(&[run(1, 4, plain)], &[run(2, 4, plain)])),
    ];
    let dunnage = Dunnage::new();
    for (name, more) in [("old", ""), ("new", " --tag k=v")] {
        let ran = dunnage.run(&format!(
            "run start -s a=fake -s b=fake:fail=5 --rounds 12 --seed 7{more} --no-html -o DIR/{name}"
        ));
        assert!([0, 6].contains(&ran.code), "{ran}");
    }
    let path = dunnage.directory().join("new/env.json");
    let mut environment: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    environment["machine"]["kernel"] = "7".into();
    fs::write(&path, environment.to_string()).unwrap();
    written.push(json(&dunnage, "compare DIR/old DIR/new --format json"));
    // Their fields are their names.
    let rulings = [Ruling::ControlsTooWide(1.0), Ruling::Unsteady(1.0)];
    written.extend(rulings.map(|ruling| serde_json::to_value(ruling).unwrap()));
    let others = "bare context faster floor instance instrument less machine mixed more neither null other programs runs \
                  same slower treatment worse";
    compare("compare-json.md", COMPARE, &written, &["tags"], others);
}

#[test]
fn report_json() {
    let shown = |run| -> Value {
        serde_json::from_str(&shown(&report(&run), "json", &Look::default()).unwrap()).unwrap()
    };
    let mut predicted = scripted::run(scripted::plan(scripted::full_ladder()[..5].to_vec(), 20));
    let prediction = Written::parse("start.returned: bare < floor < crun").unwrap();
    predicted.plan.predictions = vec![Prediction::of(&prediction, &["start"]).unwrap()];
    let mut written =
        vec![shown(pictures::everything()), shown(scripted::run(factors::factorial())), shown(predicted)];
    let dunnage = Dunnage::new();
    for arguments in [
        "start -s a=fake:noise=1 -s c=fake:noise=1,spike=11 -s d=fake:fail=3 --set prestate=idle --rounds 30 --tag k=v -o DIR/spikes",
        "start -s a=fake:time=1ms,noise=10 -s b=fake:time=1.3ms,noise=10 --precision 20% --set prestate=idle -o DIR/precise",
        "start -s a=fake -s b=fake --rounds 3 -o DIR/few",
        "dns -s a=fake --rounds 3 -o DIR/dns",
        "disk -s a=fake --rounds 3 -o DIR/disk",
    ] {
        let ran = dunnage.run(&format!("run {arguments} --seed 7 --no-html"));
        assert!([0, 6].contains(&ran.code), "{ran}");
    }
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripted/import/hyperfine-1.15.json");
    let ran = dunnage.run(&format!("import {file} -o DIR/imported"));
    assert_eq!(ran.code, 0, "{ran}");
    for run in ["spikes", "precise", "few", "dns", "disk", "imported"] {
        written.push(json(&dunnage, &format!("report DIR/{run} --format json --reference --job 2s")));
    }
    let free = ["tags", "machine", "unavailable"];
    let texts = [include_str!("../../docs/report-json.md"), REFERENCE];
    let others = "blocks bytes cgroup choice context cost count equalised faster held interaction launch less more neither null \
                  open others otherwise overlay s same several skipped slower start step table threshold twin undecided worse";
    compare_with("report-json.md", texts, &written, &free, others);
}

/// The files of run directories, of which each line of `samples.jsonl` is a value of its own.
#[test]
fn run_directory() {
    let dunnage = Dunnage::new();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripted/import/hyperfine-1.15.json");
    for arguments in [
        "run start -s a=fake:noise=1 -s b=fake:fail=3 -s crun:bin=/nowhere --seed 7 --rounds 12 --tag k=v --no-html -o DIR/some",
        "run start -s a=fake:time=1ms,noise=10 -s b=fake:time=1.3ms,noise=10 --precision 20% --seed 7 --no-html -o DIR/precise",
        "run disk -s a=fake --seed 7 --rounds 3 --no-html -o DIR/settings",
        &format!("import {file} -o DIR/imported"),
    ] {
        let ran = dunnage.run(arguments);
        assert!([0, 6].contains(&ran.code), "{ran}");
    }
    let read = |run: &str, name: &str| fs::read_to_string(dunnage.directory().join(run).join(name)).unwrap();
    let mut written = vec![serde_json::from_str(&read("settings", "plan.json")).unwrap()];
    for run in ["some", "precise", "imported"] {
        let read = |name: &str| read(run, name);
        for text in [&read("env.json"), &read("plan.json")]
            .into_iter()
            .map(String::as_str)
            .chain(read("samples.jsonl").lines())
        {
            written.push(serde_json::from_str(text).unwrap());
        }
    }
    let text = include_str!("../../docs/run-directory.md");
    let (files, _) = text.split_once("## A pack").expect("a section");
    // Facts about machines, stamps and treatments of real subjects, and fields that only these have.
    // Which of these a round has depends on the machine.
    let of_machines = "available_memory busy containers cpu_pressure disturbed frequency io_pressure load no_cpu_accounting steal";
    written.push(of_machines.split(' ').map(|name| (name.to_owned(), Value::Null)).collect());
    let others = "architecture artefacts attached bare began blocks boot_time capabilities cgroup cgroup_mode cgroup_ns \
                  cgroup_v1_controllers cgroup_v2_controllers client clock_source containerd cpu cpu_cores cpu_share \
                  cpu_sockets cpu_threads cpu_usable crash create created daemon disk_kind disk_model distribution \
                  distributions engine env environment equalised exit factors filter floor helpers html hybrid hypervisor inherited \
                  inside interfaces ipc issues json jsonl kernel kernel_command_line kernel_version levels lifecycle linux \
                  listener looks made main make maker memory_bytes missing mitigation_ mnt monitor mtu name net network nice \
                  no_new_privs none nvme offloads ordinary own path permission pid pinned plan predictions \
                  primitives private profile quotas removed report resolver resume role root root_durability samples seccomp \
                  security_modules series shim skipped state_filesystem stop storage_ storage_state threads timeout twin uid umask \
                  undo undone unknown unsupported user uts v1 v2 virtio volatile waited way write";
    let free = ["tags", "machine", "notes", "facts", "subjects", "unavailable"];
    compare("run-directory.md", files, &written, &free, others);
}

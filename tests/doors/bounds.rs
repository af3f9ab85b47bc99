//! What others wrote takes no more memory than it really holds, and nothing of theirs can hold dunnage up.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::dunnage::{Dunnage, Ran};
use crate::support::{Need, lacks};

/// Address space of the program in these tests, in bytes: half of what the smallest of the attacks took.
const LIMIT: &str = "prlimit --as=900000000 -- timeout 60";

fn limited(dunnage: &Dunnage, arguments: &str) -> Ran {
    dunnage.through(&format!("{LIMIT} {}", env!("CARGO_BIN_EXE_dunnage")), arguments)
}

/// A short run to be changed.
fn run() -> Dunnage {
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run start -s a=fake -s b=fake --rounds 6 --seed 7 --no-html -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    dunnage
}

/// A pack with this plan, which `dunnage pack` would not make.
fn packed(path: &Path, run: &Path, plan: &Value, samples: &str) {
    let files = [
        ("env.json", fs::read(run.join("env.json")).unwrap()),
        ("plan.json", serde_json::to_vec(plan).unwrap()),
        ("samples.jsonl", samples.as_bytes().to_vec()),
    ];
    let listed = files.iter().map(
        |(name, bytes)| json!({"name": name, "bytes": bytes.len(), "sha256": format!("{:x}", Sha256::digest(bytes))}),
    );
    let manifest = json!({"format": "dunnage-pack", "version": 1, "dunnage": "0.1.0", "run": "x",
        "files": listed.collect::<Vec<_>>(), "removed": {}});
    let out = fs::File::create(path).unwrap();
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(out, flate2::Compression::best()));
    let mut add = |name: &str, bytes: &[u8]| {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, bytes).unwrap();
    };
    add("pack.json", &serde_json::to_vec(&manifest).unwrap());
    files.iter().for_each(|(name, bytes)| add(name, bytes));
    tar.into_inner().unwrap().finish().unwrap();
}

/// Every verb that reads a pack ends in little memory.
#[track_caller]
fn is_harmless(dunnage: &Dunnage, path: &Path) {
    assert!(fs::metadata(path).unwrap().len() < 40_000);
    let pack = path.display();
    let unpacked = format!("unpack {pack} -o {pack}-unpacked");
    for verb in [format!("report {pack} --format md"), format!("compare {pack} {pack}"), unpacked] {
        let ran = limited(dunnage, &verb);
        assert!(matches!(ran.code, 0 | 1 | 4), "{verb}: {ran}");
        assert!(!ran.stderr.contains("memory allocation"), "{verb}: {ran}");
    }
}

#[test]
fn a_small_pack_takes_little_memory() {
    let dunnage = run();
    let directory = dunnage.directory();
    let plan: Value = serde_json::from_slice(&fs::read(directory.join("plan.json")).unwrap()).unwrap();
    let samples = fs::read_to_string(directory.join("samples.jsonl")).unwrap();
    let head = samples.lines().next().unwrap();
    let cells = |count: usize, subjects: usize| -> Value {
        let cell = |at: usize| {
            let mut cell = plan["cells"][0].clone();
            cell["subject"] = (at % subjects).into();
            cell
        };
        (0..count).map(cell).collect::<Vec<_>>().into()
    };
    let mut bare = plan.clone();
    (bare["comparisons"], bare["verdicts"]) = (json!([]), json!([]));

    // Rounds that were not measured.
    let mut rounds = bare.clone();
    (rounds["rounds"], rounds["warmups"], rounds["cells"]) = (999_990.into(), 10.into(), cells(20, 3));
    let path = directory.with_file_name("rounds");
    packed(&path, &directory, &rounds, &samples);
    is_harmless(&dunnage, &path);

    // Rounds that only began.
    let mut begun = bare.clone();
    (begun["rounds"], begun["warmups"], begun["cells"]) = (3_990.into(), 10.into(), cells(5_000, 3));
    let begins: String = (0..4_000).map(|round| format!("{{\"begin\":{round},\"at\":1}}\n")).collect();
    let path = directory.with_file_name("begun");
    packed(&path, &directory, &begun, &format!("{head}\n{begins}"));
    is_harmless(&dunnage, &path);

    // Many comparisons of many settings.
    let mut compared = plan.clone();
    let subject = |at: usize| {
        let mut subject = plan["subjects"][0].clone();
        subject["label"] = format!("s{at}").into();
        subject
    };
    compared["subjects"] = (0..200).map(subject).collect::<Vec<_>>().into();
    compared["cells"] = cells(5_000, 200);
    let comparison = |at: usize| json!({"experiment": "start", "subject": 1 + at % 199, "against": 0, "relation": "baseline"});
    compared["comparisons"] = (0..20_000).map(comparison).collect::<Vec<_>>().into();
    let each = plan["verdicts"][0]["controls"].as_u64().unwrap() / 2;
    compared["verdicts"] = json!([{"experiment": "start", "asked": 20_000 * 25 * each, "controls": 0}]);
    let path = directory.with_file_name("compared");
    packed(&path, &directory, &compared, &samples);
    is_harmless(&dunnage, &path);
    let ran = dunnage.run(&format!("report {}", path.display()));
    assert!(ran.stderr.contains("verdicts, more than dunnage can give"), "{ran}");
}

/// A long run that was interrupted at once is still shown.
#[test]
fn a_run_with_room_for_many_rounds_is_shown_as_far_as_it_went() {
    let dunnage = run();
    let directory = dunnage.directory();
    let path = directory.join("plan.json");
    let mut plan: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    plan["rounds"] = 900_000.into();
    fs::write(&path, plan.to_string()).unwrap();
    let ran = limited(&dunnage, "report DIR --full");
    assert!(ran.code == 0 && ran.stdout.contains("900000"), "{ran}");
}

#[test]
fn a_plan_file_is_a_small_regular_file() {
    let dunnage = Dunnage::new();
    let pipe = dunnage.directory().with_file_name("pipe.toml");
    dunnage::sys::filesystem::make_node(&pipe, libc::S_IFIFO | 0o666, (0, 0)).unwrap();
    let large = dunnage.directory().with_file_name("large.toml");
    fs::File::create(&large).unwrap().set_len(8 << 30).unwrap();
    for path in [Path::new("/dev/zero"), &pipe, &large] {
        let began = Instant::now();
        let ran = limited(&dunnage, &format!("plan --plan {}", path.display()));
        assert!(ran.code == 2 && began.elapsed() < Duration::from_secs(20), "{ran}");
    }
    for verb in ["report", "import", "unpack", "compare DIR", "history"] {
        let began = Instant::now();
        let ran = limited(&dunnage, &format!("{verb} {}", pipe.display()));
        assert!(matches!(ran.code, 1 | 2) && began.elapsed() < Duration::from_secs(20), "{verb}: {ran}");
    }
}

#[test]
fn a_long_message_of_a_container_is_refused() {
    if lacks("a_long_message_of_a_container_is_refused", Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let script = dunnage.directory().with_file_name("long");
    let text = format!(
        "#!/bin/sh\nfor one in {}/runs/*/message; do truncate -s 3G $one; done\n",
        dunnage.state().display()
    );
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let ran = limited(&dunnage, &format!("check command -s bare --cmd {}", script.display()));
    assert!(ran.code == 1 && ran.stdout.contains("it is longer than"), "{ran}");
}

#[test]
fn a_loud_engine_is_quoted_briefly_and_without_controls() {
    let dunnage = Dunnage::new();
    let bin = dunnage.directory().with_file_name("loud");
    fs::create_dir(&bin).unwrap();
    let path = bin.join("podman");
    let mut file = fs::File::create(&path).unwrap();
    write!(file, "#!/bin/sh\nhead -c 30000000 /dev/zero | tr '\\0' e >&2\nprintf '\u{202e}\u{1b}[31mevil\u{2028}' >&2\nexit 1\n").unwrap();
    drop(file);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let quiet = bin.join("runc");
    fs::write(&quiet, "#!/bin/sh\nprintf 'error \u{202e}\u{1b}[31mevil\u{2028}' >&2\nexit 1\n").unwrap();
    fs::set_permissions(&quiet, fs::Permissions::from_mode(0o755)).unwrap();
    let dunnage = dunnage.with("PATH", &format!("{}:/usr/bin:/bin", bin.display()));
    let began = Instant::now();
    for verb in ["check start -s podman -s runc", "run start -s podman -s runc -o DIR", "doctor"] {
        let ran = dunnage.run(verb);
        let all = ran.to_string();
        let longest = all.lines().map(str::len).max().unwrap_or_default();
        assert!(longest < 2000, "{verb} has a line of {longest} bytes");
        assert!(!all.contains(['\u{202e}', '\u{1b}', '\u{2028}']), "{ran}");
    }
    assert!(began.elapsed() < Duration::from_secs(120), "{:?}", began.elapsed());
}

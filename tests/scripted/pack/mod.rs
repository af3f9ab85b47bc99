//! A run in one file: it gives the same verdicts, contains nothing private, and a file from outside cannot
//! harm the user who unpacks it.

use crate::dunnage;
mod planted;

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use dunnage::{Dunnage, finished};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

const RUN: &str = "run start -s a=fake -s b=fake:time=22ms --rounds 12 --seed 7 --tag commit=1a2b3c -o DIR";

/// A directory with a run and its pack.
fn packed(dunnage: &Dunnage, options: &str) -> PathBuf {
    let ran = dunnage.run(RUN);
    assert_eq!(ran.code, 0, "{ran}");
    let ran = dunnage.run(&format!("pack DIR -o DIR.dunnage {options}"));
    assert_eq!(ran.code, 0, "{ran}");
    dunnage.directory().with_extension("dunnage")
}

/// The content of the archive, as text.
fn inside(pack: &Path) -> String {
    let mut text = String::new();
    GzDecoder::new(fs::File::open(pack).unwrap()).read_to_string(&mut text).unwrap();
    text
}

/// A report without the parts that a pack removes.
fn comparable(dunnage: &Dunnage, place: &str) -> serde_json::Value {
    let ran = dunnage.run(&format!("report {place} --format json"));
    assert_eq!(ran.code, 0, "{ran}");
    let mut report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let all = report.as_object_mut().unwrap();
    for private in ["command", "host", "machine", "programs", "unavailable"] {
        assert!(all.remove(private).is_some(), "{private}");
    }
    without_hosts(&mut report);
    report
}

/// Each finding names its host.
fn without_hosts(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Array(all) => all.iter_mut().for_each(without_hosts),
        serde_json::Value::Object(all) => {
            all.remove("host");
            all.values_mut().for_each(without_hosts);
        }
        _ => {}
    }
}

#[test]
fn a_pack_gives_the_report_that_the_run_gives() {
    let dunnage = Dunnage::new();
    packed(&dunnage, "");
    let own = comparable(&dunnage, "DIR");
    assert_eq!(own, comparable(&dunnage, "DIR.dunnage"));
    let ran = dunnage.run("unpack DIR.dunnage -o DIR.again");
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(own, comparable(&dunnage, "DIR.again"));
    // Every sample too, not only the results.
    let rows = |place: &str| {
        let table = dunnage.run(&format!("report {place} --format csv")).stdout;
        let host = |line: &str| line.splitn(3, ',').last().map(str::to_owned);
        table.lines().map(|line| host(line).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(rows("DIR"), rows("DIR.dunnage"));
    // Clean content does not change: the same run gives the same bytes.
    let ran = dunnage.run("pack DIR.again -o DIR.twice");
    assert_eq!(ran.code, 0, "{ran}");
    let files = |pack: &str| inside(&dunnage.directory().with_extension(pack)).split_off(1536);
    assert_eq!(files("dunnage"), files("twice"));
}

#[test]
fn nothing_private_is_in_it() {
    let dunnage = Dunnage::new()
        .with("SUDO_USER", "mathilda")
        .with("HOME", "/srv/homes/mathilda")
        .with("DEPLOY_TOKEN", "sesame-open-wide");
    let ran = dunnage.run(
        "run start -s mathilda=fake -s b=fake:time=22ms --rounds 6 --seed 7 --tag owner=mathilda --tag team=tulips --tag \
         via=sesame-open-wide -o DIR",
    );
    assert_eq!(ran.code, 0, "{ran}");
    let ran = dunnage.run("pack DIR -o DIR.dunnage --private tulips --drop-tag via --dry-run");
    assert!(ran.stderr.contains("    tag via=sesame-open-wide\n"), "{ran}");
    let ran = dunnage.run("pack DIR -o DIR.dunnage --private tulips --drop-tag via");
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.stderr.contains("mathilda → subject1") && !ran.stderr.contains("--tag via="), "{ran}");
    let text = inside(&dunnage.directory().with_extension("dunnage"));
    let place = dunnage.directory().parent().unwrap().display().to_string();
    for private in ["mathilda", "tulips", "sesame", place.as_str()] {
        assert!(!text.contains(private), "{private}");
    }
    assert!(text.contains("\"owner\": \"tag1\"") && text.contains("\"team\": \"tag2\""));
    let ran = dunnage.run("report DIR.dunnage");
    assert!(ran.code == 0 && ran.stdout.contains("subject1"), "{ran}");
}

/// Changes a file of JSON.
fn change(path: &Path, make: impl FnOnce(&mut serde_json::Value)) {
    let mut value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    make(&mut value);
    fs::write(path, value.to_string()).unwrap();
}

/// Private values are also removed from the words of engines and from predictions.
#[test]
fn images_dropped_tags_and_predictions_tell_nothing_elsewhere() {
    let dunnage = Dunnage::new();
    assert_eq!(dunnage.run(RUN).code, 0);
    let spec = "docker:image=\"reg.acme.example:5000/team/payroll:2\"";
    change(&dunnage.directory().join("plan.json"), |plan| {
        let second = &mut plan["subjects"][1];
        assert_eq!(second["label"], "b");
        (second["label"], second["subject"]) = (spec.into(), spec.into());
        plan["predictions"] = serde_json::json!([format!("start.returned[prestate=idle]: a < {spec}")]);
    });
    change(&dunnage.directory().join("env.json"), |environment| {
        let facts = environment["subjects"].as_object_mut().unwrap().remove("b").unwrap();
        environment["subjects"][spec] = facts;
        environment["command"] = serde_json::json!([
            "/x/dunnage",
            "run",
            "start",
            "-o/srv/acme/first",
            "--tag",
            "via=acme-merger",
            "--tag=via=acme-merger",
            format!("-s{spec}")
        ]);
        environment["tags"]["via"] = "acme-merger".into();
    });
    let samples = dunnage.directory().join("samples.jsonl");
    let text = fs::read_to_string(&samples).unwrap();
    let words =
        "lookup reg.acme.example: no such host, and no 'reg.acme.example:5000/team/payroll:2' locally";
    let failed = format!(
        "{{\"cell\":1,\"round\":0,\"position\":0,\"started\":1,\"failed\":{{\"class\":\"environment\",\"reason\":\"pull access \
         denied for team/payroll\",\"words\":\"{words}\",\"took\":1}}}}\n"
    );
    fs::write(&samples, text + &failed).unwrap();
    let ran = dunnage.run("pack DIR -o DIR.dunnage --drop-tag via");
    assert_eq!(ran.code, 0, "{ran}");
    let text = inside(&dunnage.directory().with_extension("dunnage"));
    let found = text.lines().find(|line| line.contains("acme") || line.contains("payroll"));
    assert_eq!(found, None);
    // The prediction still names a subject of the run.
    let ran = dunnage.run("report DIR.dunnage");
    assert!(ran.code == 0 && ran.stdout.contains("a < docker:image=image1"), "{ran}");
    assert!(!ran.stdout.contains("was not measured"), "{ran}");
}

/// Imported commands are labels, and may contain the same secrets as dunnage's own commands.
#[test]
fn an_import_is_packed_without_the_secrets_of_its_commands() {
    let dunnage = Dunnage::new();
    let file = dunnage.directory().with_file_name("bench.json");
    let command = "curl --token hunter22 -o /srv/acme/x https://acme.example/x";
    let result = serde_json::json!({
        "command": command, "mean": 5.0, "times": [0.1, 0.2], "exit_codes": [0, 0], "parameters": {"token": "hunter22"}
    });
    fs::write(&file, serde_json::json!({"results": [result]}).to_string()).unwrap();
    assert_eq!(dunnage.run(&format!("import {} -o DIR", file.display())).code, 0);
    let ran = dunnage.run("pack DIR -o DIR.dunnage");
    assert_eq!(ran.code, 0, "{ran}");
    let text = inside(&dunnage.directory().with_extension("dunnage"));
    let found = text.lines().find(|line| line.contains("acme") || line.contains("hunter22"));
    assert_eq!(found, None);
    let ran = dunnage.run("report DIR.dunnage");
    assert!(ran.code == 0 && ran.stdout.contains("curl --token value"), "{ran}");
}

/// Two texts that become the same would make an unreadable pack.
#[test]
fn a_pack_that_could_not_be_read_is_not_written() {
    let dunnage = Dunnage::new().with("SUDO_USER", "mathilda");
    assert_eq!(
        dunnage.run(&RUN.replace("a=fake", "mathilda=fake").replace("b=fake", "subject1=fake")).code,
        0
    );
    let ran = dunnage.run("pack DIR -o DIR.dunnage");
    assert!(ran.code == 1 && ran.stderr.contains("have the same label"), "{ran}");
    assert!(!dunnage.directory().with_extension("dunnage").exists());
    let ran = dunnage.run("pack DIR -o DIR.dunnage --private subject1");
    assert_eq!(ran.code, 0, "{ran}");
}

#[test]
fn what_is_left_is_found_and_refused() {
    let dunnage = Dunnage::new();
    packed(&dunnage, "");
    // The name of a counter is not one of the texts that are cleaned.
    let samples = dunnage.directory().join("samples.jsonl");
    let text = fs::read_to_string(&samples).unwrap().replacen("\"first\":", "\"mathilda\":", 1);
    fs::write(&samples, text).unwrap();
    let ran = dunnage.run("pack DIR -o DIR.new --private mathilda");
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stderr.contains("`samples.jsonl`, line") && !ran.stderr.contains("hold mathilda"), "{ran}");
    assert!(!dunnage.directory().with_extension("new").exists());
}

/// The names of fields and values in the files of a pack.
fn words_of_the_format(pack: &Path) -> BTreeSet<String> {
    let text = inside(pack);
    let is_word = |text: &str| text.len() > 1 && text.bytes().all(|c| c.is_ascii_lowercase() || c == b'_');
    let names = text.split('"').skip(1).step_by(2).filter(|text| is_word(text));
    names.map(str::to_owned).collect()
}

#[test]
fn a_user_may_be_called_like_any_word_of_the_format() {
    let dunnage = planted::run();
    let ran = dunnage.run("pack DIR -o DIR.dunnage");
    assert_eq!(ran.code, 0, "{ran}");
    let words = words_of_the_format(&dunnage.directory().with_extension("dunnage"));
    assert!(words.len() > 100, "{words:?}");
    for word in words {
        let mut command = dunnage.command("pack DIR -o DIR.dunnage --force");
        let ran = finished(command.env("SUDO_USER", &word).output().expect("it starts"));
        assert_eq!(ran.code, 0, "{word}: {ran}");
    }
}

/// The user may have put another file there; its name is part of the archive.
#[test]
fn an_artefact_with_a_private_name_is_refused() {
    let dunnage = Dunnage::new().with("SUDO_USER", "mathilda");
    assert_eq!(dunnage.run(RUN).code, 0);
    let artefacts = dunnage.directory().join("artefacts");
    fs::create_dir(&artefacts).unwrap();
    fs::write(artefacts.join("0-0-mathilda"), "a trace").unwrap();
    let ran = dunnage.run("pack DIR -o DIR.dunnage");
    assert!(ran.code == 1 && ran.stderr.contains("the name or a directory of the host"), "{ran}");
    assert!(!dunnage.directory().with_extension("dunnage").exists());
    fs::rename(artefacts.join("0-0-mathilda"), artefacts.join("0-0-trace")).unwrap();
    let ran = dunnage.run("pack DIR -o DIR.dunnage");
    assert_eq!(ran.code, 0, "{ran}");
}

#[test]
fn nothing_is_overwritten_without_being_told() {
    let dunnage = Dunnage::new();
    let pack = packed(&dunnage, "");
    let before = fs::read(&pack).unwrap();
    let ran = dunnage.run("pack DIR -o DIR.dunnage --private shift");
    assert!(ran.code == 2 && ran.stderr.contains("--force"), "{ran}");
    let ran = dunnage.run("pack DIR -o DIR.dunnage --drop-tag commit --dry-run");
    assert!(ran.code == 0 && ran.stderr.contains("nothing was written"), "{ran}");
    assert_eq!(before, fs::read(&pack).unwrap());
    let ran = dunnage.run("pack DIR -o DIR.dunnage --drop-tag commit --force");
    assert_eq!(ran.code, 0, "{ran}");
    assert_ne!(before, fs::read(&pack).unwrap());
    let ran = dunnage.run("unpack DIR.dunnage -o DIR");
    assert!(ran.code == 2 && ran.stderr.contains("not empty"), "{ran}");
    // A link represents everything that is not a regular file: a device, a pipe.
    let link = dunnage.directory().with_file_name("link.dunnage");
    std::os::unix::fs::symlink("nowhere", &link).expect("a link");
    let ran = dunnage.run(&format!("pack DIR -o {} --force", link.display()));
    assert!(ran.code == 2 && ran.stderr.contains("is not a regular file"), "{ran}");
    assert!(link.is_symlink(), "it stays");
    let ran = dunnage.run("pack DIR -o DIR/samples.jsonl --force");
    assert!(ran.code == 2 && ran.stderr.contains("is part of a run"), "{ran}");
    let ran = dunnage.run("compare DIR DIR.dunnage -o DIR.dunnage");
    assert!(ran.code == 2 && ran.stderr.contains("is part of a run"), "{ran}");
    let ran = dunnage.run("report DIR.dunnage --format json -o DIR.dunnage");
    assert!(ran.code == 2 && ran.stderr.contains("is part of a run"), "{ran}");
}

#[test]
fn a_damaged_run_is_packed_as_damaged_as_it_is() {
    let dunnage = Dunnage::new();
    assert_eq!(dunnage.run(RUN).code, 0);
    let samples = dunnage.directory().join("samples.jsonl");
    let mut text = fs::read_to_string(&samples).unwrap();
    text.insert_str(text.find('\n').unwrap() + 1, "from mathilda\n\n{\"cell\":99,\"round\":0}\n");
    text.push_str("{\"cell\":0,\"rou");
    fs::write(&samples, text).unwrap();
    let ran = dunnage.run("pack DIR -o DIR.dunnage");
    assert_eq!(ran.code, 0, "{ran}");
    assert!(!inside(&dunnage.directory().with_extension("dunnage")).contains("mathilda"));
    let own = comparable(&dunnage, "DIR");
    assert!(own.to_string().contains("could not be read"), "{own}");
    assert_eq!(own, comparable(&dunnage, "DIR.dunnage"));
}

/// An entry of an archive from outside.
struct Entry {
    name: String,
    kind: tar::EntryType,
    bytes: Vec<u8>,
}

fn file(name: &str, bytes: &[u8]) -> Entry {
    Entry { name: name.into(), kind: tar::EntryType::Regular, bytes: bytes.to_owned() }
}

fn archive(entries: &[Entry]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::best());
    for entry in entries {
        let mut header = tar::Header::new_gnu();
        // Written past the checks of the library, which would refuse some of these names.
        header.as_gnu_mut().unwrap().name[..entry.name.len()].copy_from_slice(entry.name.as_bytes());
        header.set_size(entry.bytes.len() as u64);
        header.set_entry_type(entry.kind);
        header.set_cksum();
        out.write_all(header.as_bytes()).unwrap();
        out.write_all(&entry.bytes).unwrap();
        out.write_all(&vec![0; (512 - entry.bytes.len() % 512) % 512]).unwrap();
    }
    out.write_all(&[0; 1024]).unwrap();
    out.finish().unwrap()
}

fn manifest(version: u32, files: &[(&str, &[u8])]) -> Entry {
    let sum =
        |bytes: &[u8]| Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let files: Vec<_> = files
        .iter()
        .map(|(name, bytes)| serde_json::json!({"name": name, "bytes": bytes.len(), "sha256": sum(bytes)}))
        .collect();
    let text = serde_json::json!({
        "format": "dunnage-pack", "version": version, "dunnage": "0", "run": "x", "files": files, "removed": {}
    });
    file("pack.json", text.to_string().as_bytes())
}

/// The content of a pack of this run, for manipulation.
fn parts(dunnage: &Dunnage) -> [Vec<u8>; 3] {
    assert_eq!(dunnage.run(RUN).code, 0);
    ["env.json", "plan.json", "samples.jsonl"].map(|name| fs::read(dunnage.directory().join(name)).unwrap())
}

#[test]
fn a_strangers_archive_is_refused_and_leaves_nothing() {
    let dunnage = Dunnage::new();
    let [environment, plan, samples] = parts(&dunnage);
    let whole: [(&str, &[u8]); 3] =
        [("env.json", &environment), ("plan.json", &plan), ("samples.jsonl", &samples)];
    let good = || {
        vec![
            manifest(1, &whole),
            file("env.json", &environment),
            file("plan.json", &plan),
            file("samples.jsonl", &samples),
        ]
    };
    let with = |at: usize, entry: Entry| {
        let mut all = good();
        all.insert(at, entry);
        archive(&all)
    };
    let special = |kind, name: &str| Entry { name: name.into(), kind, bytes: Vec::new() };
    use tar::EntryType;
    let cut = archive(&good());
    let mut flipped = cut.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x55;
    let mut other = good();
    other[2] = file("plan.json", &environment);
    let mut bomb = good();
    bomb[0] = manifest(1, &[whole[0], whole[1], ("samples.jsonl", &vec![b'\n'; 64 << 20])]);
    bomb[3] = file("samples.jsonl", &vec![b'\n'; 64 << 20]);
    let behind = |bytes: &[u8]| [cut.as_slice(), bytes].concat();
    let mut inner = Vec::new();
    GzDecoder::new(cut.as_slice()).read_to_end(&mut inner).unwrap();
    inner.extend(b"more");
    let mut longer_archive = GzEncoder::new(Vec::new(), Compression::best());
    longer_archive.write_all(&inner).unwrap();
    let mut longer = good();
    longer[1] = file("env.json", &[environment.as_slice(), b" "].concat());
    let cases: [(&str, Vec<u8>); 20] = [
        ("does not list", with(1, file("../escaped", b"x"))),
        ("does not list", with(1, file("/tmp/escaped", b"x"))),
        ("does not list", with(2, file("pilot/../../escaped", b"x"))),
        ("not a regular file", with(1, special(EntryType::Symlink, "env.json"))),
        ("not a regular file", with(1, special(EntryType::Link, "env.json"))),
        ("not a regular file", with(1, special(EntryType::Char, "env.json"))),
        ("not a regular file", with(4, special(EntryType::Fifo, "x"))),
        ("not a regular file", with(1, special(EntryType::Directory, "pilot/"))),
        ("not a regular file", with(1, special(EntryType::GNULongName, "././@LongLink"))),
        ("twice", with(2, file("env.json", &environment))),
        ("does not list", with(4, file("more", b"x"))),
        ("is truncated", cut[..cut.len() / 2].to_owned()),
        ("damaged", flipped),
        ("digest does not match", archive(&other[..])),
        ("times its size", archive(&bomb)),
        ("instead of the listed", archive(&longer)),
        ("after the end of the pack", behind(b"\0")),
        ("after the end of the pack", behind(&cut)),
        ("after the end of the archive", longer_archive.finish().unwrap()),
        ("version 2", archive(&[manifest(2, &[])])),
    ];
    for (expected, bytes) in cases {
        let pack = dunnage.directory().with_extension("dunnage");
        fs::write(&pack, bytes).unwrap();
        for verb in ["unpack DIR.dunnage -o DIR.new", "report DIR.dunnage"] {
            let ran = dunnage.run(verb);
            assert_eq!(ran.code, 1, "{expected}: {ran}");
            let said = if expected == "digest does not match" { "bytes" } else { expected };
            assert!(ran.stderr.contains(said) || ran.stderr.contains("damaged"), "{expected}: {ran}");
        }
        let beside: Vec<_> =
            fs::read_dir(pack.parent().unwrap()).unwrap().map(|one| one.unwrap().file_name()).collect();
        assert!(
            beside.iter().all(|name| ["run", "run.dunnage", "state"].iter().any(|own| name == own)),
            "{beside:?}"
        );
    }
    assert!(!Path::new("/tmp/escaped").exists());
    // The same files, unchanged, are accepted.
    fs::write(dunnage.directory().with_extension("dunnage"), archive(&good())).unwrap();
    let ran = dunnage.run("report DIR.dunnage");
    assert_eq!(ran.code, 0, "{ran}");
}

#[test]
fn what_is_no_pack_is_said_so() {
    let dunnage = Dunnage::new();
    let file = dunnage.directory().with_extension("txt");
    fs::write(&file, "no pack").unwrap();
    for verb in ["report DIR.txt", "unpack DIR.txt -o DIR.new"] {
        let ran = dunnage.run(verb);
        assert!(ran.code == 1 && ran.stderr.contains("neither a run directory nor a pack"), "{ran}");
    }
    let ran = dunnage.run("unpack DIR.nothing");
    assert!(ran.code == 1 && ran.stderr.contains("cannot read"), "{ran}");
    let ran = dunnage.run("pack DIR.nothing");
    assert!(ran.code == 1 && ran.stderr.contains("is not a run directory\n\nhint: "), "{ran}");
}

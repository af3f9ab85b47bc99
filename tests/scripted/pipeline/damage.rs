//! A damaged run directory gives its readable part, or one clear error.

use std::fs;

use dunnage::record;
use dunnage::verdict::analyse;

use crate::dunnage::{Dunnage, Ran};

fn measured() -> Dunnage {
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run start -s a=fake --rounds 20 --seed 7 -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    dunnage
}

/// Rewrites a file of the run.
fn damage(dunnage: &Dunnage, file: &str, change: impl Fn(String) -> String) {
    let path = dunnage.directory().join(file);
    let text = fs::read_to_string(&path).expect("a file of the run");
    fs::write(&path, change(text)).expect("the file is ours");
}

/// One line with the error on standard error; with a hint if something can be done.
fn refused(ran: &Ran, words: &str, hint: Option<&str>) {
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{ran}");
    assert!(ran.stderr.starts_with("error: ") && ran.stderr.matches("error: ").count() == 1, "{ran}");
    assert!(ran.stderr.contains(words), "{ran}");
    match hint {
        Some(hint) => assert!(ran.stderr.contains(&format!("\n\nhint: {hint}")), "{ran}"),
        None => assert!(!ran.stderr.contains("panicked"), "{ran}"),
    }
}

#[test]
fn what_stands_before_a_cut_is_readable() {
    let dunnage = measured();
    damage(&dunnage, "samples.jsonl", |text| text[..text.len() / 2 + 3].to_owned());
    let recorded = record::load(&dunnage.directory()).expect("a run directory");
    assert!(recorded.cut && recorded.damaged == 0);
    let mut rows = 0;
    record::rows(&dunnage.directory(), &mut |_| {
        rows += 1;
        Ok(())
    })
    .expect("rows");
    let text = fs::read_to_string(dunnage.directory().join("samples.jsonl")).expect("samples");
    assert_eq!(rows, text.matches("\n{\"cell\"").count() - usize::from(is_cut_sample(&text)));
    let report = dunnage.run("report DIR");
    assert_eq!(report.code, 0, "{report}");
}

fn is_cut_sample(text: &str) -> bool {
    text.rsplit('\n').next().is_some_and(|last| last.starts_with("{\"cell\""))
}

#[test]
fn a_damaged_line_in_the_middle_is_counted_and_the_rest_read() {
    let dunnage = measured();
    damage(&dunnage, "samples.jsonl", |text| text.replacen("{\"cell\":1,\"round\":7", "{\"ce\0\u{7f}", 1));
    let recorded = record::load(&dunnage.directory()).expect("a run directory");
    assert_eq!((recorded.damaged, recorded.cut, recorded.complete_rounds()), (1, false, 20));
    let warnings = analyse(&recorded).warnings;
    let told = warnings.iter().any(|one| one.seen == "1 line of the samples could not be read");
    assert!(told, "{warnings:?}");
    assert_eq!(dunnage.run("report DIR").code, 0);
}

/// A pipe may have no writer, and what is read into memory must have a length.
#[test]
fn only_regular_files_of_some_length_are_read() {
    let within = format!("timeout 20 {}", env!("CARGO_BIN_EXE_dunnage"));
    for file in ["samples.jsonl", "plan.json", "env.json"] {
        let dunnage = measured();
        let path = dunnage.directory().join(file);
        fs::remove_file(&path).expect("the file is ours");
        let made = std::process::Command::new("mkfifo").arg(&path).status().expect("coreutils");
        assert!(made.success());
        for verb in ["report DIR", "resume DIR", "pack DIR", "compare DIR DIR", "history DIR DIR"] {
            refused(&dunnage.through(&within, verb), &format!("{file}` is not a regular file"), None);
        }
        fs::remove_file(&path).expect("the file is ours");
        let large = fs::File::create(&path).and_then(|file| file.set_len(9 << 30));
        if large.is_ok() {
            refused(&dunnage.run("report DIR"), "has 9663676416 bytes, more than", None);
        }
    }
}

#[test]
fn a_newer_format_is_refused() {
    let dunnage = measured();
    damage(&dunnage, "samples.jsonl", |text| text.replacen("\"version\":2", "\"version\":99", 1));
    let ran = dunnage.run("report DIR");
    refused(&ran, "has format version 99, but this dunnage reads 2", Some("use the dunnage that wrote it"));
    let dunnage = measured();
    damage(&dunnage, "plan.json", |text| text.replacen("\"version\": 2", "\"version\": 99", 1));
    let ran = dunnage.run("report DIR");
    refused(&ran, "the plan has format version 99", Some("use the dunnage that wrote it"));
}

#[test]
fn a_broken_plan_is_one_error_that_says_where() {
    let dunnage = measured();
    damage(&dunnage, "plan.json", |text| text[..text.len() / 2].to_owned());
    refused(&dunnage.run("report DIR"), "plan.json` is damaged: EOF", Some("copy it again"));
    refused(&dunnage.run("resume DIR"), "plan.json` is damaged: EOF", None);
    let dunnage = measured();
    damage(&dunnage, "plan.json", |text| text.replace("\"subject\": 1", "\"subject\": 77"));
    refused(&dunnage.run("report DIR"), "the plan names subject 77 of 2", None);
    let dunnage = measured();
    damage(&dunnage, "plan.json", |text| text.replace("prestate=idle", "prestate=drunk"));
    refused(&dunnage.run("report DIR"), "`prestate=drunk` is not a setting of `start`", None);
}

#[test]
fn a_plan_with_impossible_numbers_is_refused() {
    for (from, to) in [
        ("\"rounds\": 20", "\"rounds\": 999999999999"),
        ("\"warmups\": 1", "\"warmups\": 18446744073709551615"),
    ] {
        let dunnage = measured();
        damage(&dunnage, "plan.json", |text| text.replace(from, to));
        refused(&dunnage.run("report DIR"), "plan.json", None);
    }
}

#[test]
fn missing_files_are_named() {
    for file in ["env.json", "plan.json", "samples.jsonl"] {
        let dunnage = measured();
        fs::remove_file(dunnage.directory().join(file)).expect("it is there");
        let named = format!("is not complete: it has no `{file}`");
        refused(&dunnage.run("report DIR"), &named, Some("copy the whole run directory again"));
    }
}

#[test]
fn what_is_no_run_directory_is_refused() {
    let dunnage = Dunnage::new();
    refused(
        &dunnage.run("report DIR"),
        "is not a run directory",
        Some("use a directory that `dunnage run` wrote"),
    );
    fs::create_dir(dunnage.directory()).expect("a directory");
    refused(
        &dunnage.run("report DIR"),
        "is not a run directory",
        Some("use a directory that `dunnage run` wrote"),
    );
}

#[test]
fn samples_of_something_else_are_refused() {
    let dunnage = measured();
    fs::write(dunnage.directory().join("samples.jsonl"), "hello\n").expect("the file is ours");
    refused(&dunnage.run("report DIR"), "does not start like a file of samples", None);
    fs::write(dunnage.directory().join("samples.jsonl"), "").expect("the file is ours");
    refused(&dunnage.run("report DIR"), "does not start like a file of samples", None);
}

#[test]
fn a_run_without_samples_has_no_pictures_and_says_so() {
    let dunnage = measured();
    damage(&dunnage, "samples.jsonl", |text| text.lines().take(1).map(|line| format!("{line}\n")).collect());
    let pictures = dunnage.directory().with_extension("pictures");
    for format in ["svg", "png"] {
        let ran = dunnage.run(&format!("report DIR --format {format} -o DIR.pictures"));
        assert_eq!((ran.code, ran.stdout.as_str()), (4, ""), "{ran}");
        assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains("nothing to draw"), "{ran}");
        assert!(ran.stderr.contains("\n\nhint: "), "{ran}");
        assert!(!pictures.exists(), "{format}");
    }
    // The other formats report it in their own way, with the same code.
    for format in ["terminal", "md", "json", "html", "csv"] {
        let ran = dunnage.run(&format!("report DIR --format {format}"));
        assert!(ran.code == 4 && !ran.stdout.is_empty(), "{format}: {ran}");
    }
}

#[test]
fn what_has_no_place_in_a_format_is_refused() {
    let dunnage = measured();
    for format in ["csv", "gobench", "openmetrics", "bmf", "github-benchmark", "svg", "png"] {
        for extra in ["--reference", "--job 2s"] {
            let ran = dunnage.run(&format!("report DIR --format {format} -o DIR.out {extra}"));
            assert!(
                ran.code == 2 && ran.stderr.contains("only the measurements of the run"),
                "{format} {extra}: {ran}"
            );
            assert!(!dunnage.directory().with_extension("out").exists());
        }
    }
}

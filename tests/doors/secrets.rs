//! Values of `--env` are secret: they reach the command, and nothing that another user or a reader of the results sees.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::dunnage::{Dunnage, Ran, finished};
use crate::support::{Need, lacks};

const SECRET: &str = "hunter-of-whales-1851";

fn run(dunnage: &Dunnage, words: &str, more: &[&str]) -> Ran {
    finished(dunnage.command(words).args(more).output().unwrap())
}

/// Every file below a directory with its text, unpacked if it is a pack.
fn texts(directory: &Path) -> Vec<(std::path::PathBuf, String)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(texts(&path));
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let mut text = String::new();
        if flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).is_err() {
            text = String::from_utf8_lossy(&bytes).into_owned();
        }
        all.push((path, text));
    }
    all
}

#[test]
fn a_value_is_in_no_result_and_is_compared_without_being_shown() {
    if lacks("a_value_is_in_no_result_and_is_compared_without_being_shown", Need::Root) {
        return;
    }
    let dunnage = Dunnage::new().with("LENT", SECRET);
    let place = dunnage.directory().parent().unwrap().to_owned();
    // Without the value itself, which would be hidden as a word of the command by packs alone.
    let cmd = "case $LENT$TOKEN in hunter-of-wh?les-1851?*) ;; *) exit 1;; esac";
    let words = "run command -s bare -s twin=bare --rounds 6 --shell --env LENT --events json -o OUT";
    for (out, value) in [("one", SECRET), ("same", SECRET), ("other", "else")] {
        let token = format!("TOKEN={value}");
        let ran = run(&dunnage, &words.replace("OUT", out), &["--cmd", cmd, "--env", &token]);
        assert_eq!(ran.code, 0, "the command has the values: {ran}");
        assert!(!ran.to_string().contains(SECRET) && ran.to_string().contains("env=LENT TOKEN"), "{ran}");
    }
    // A command that fails shows its environment.
    let failing = ["--cmd", "echo TOKEN=$TOKEN >&2; exit 3", "--set", &format!("env=TOKEN={SECRET}")];
    for verb in ["run", "check"] {
        let ran = run(&dunnage, &format!("{verb} command -s bare --shell"), &failing);
        let all = ran.to_string();
        assert!(ran.code != 0 && all.contains("TOKEN=[value of TOKEN]") && !all.contains(SECRET), "{ran}");
    }
    for format in ["terminal", "md", "html", "json", "csv", "openmetrics", "gobench"] {
        let ran = dunnage.run(&format!("report one --format {format} -o one-{format}"));
        assert_eq!(ran.code, 0, "{ran}");
    }
    let ran = run(&dunnage, "pack one -o one.dunnage", &[]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(!ran.to_string().contains(SECRET), "{ran}");
    let ran = run(
        &dunnage,
        "plan command -s bare --rounds 6 --env LENT --write p.toml --cmd true",
        &["--env", &format!("TOKEN={SECRET}")],
    );
    assert_eq!(ran.code, 0, "{ran}");
    assert!(!ran.to_string().contains(SECRET), "{ran}");
    assert!(fs::read_to_string(place.join("p.toml")).unwrap().contains("env = [\"LENT TOKEN\"]"));
    let mut private = 0;
    for (path, text) in texts(&place) {
        if !text.contains(SECRET) {
            continue;
        }
        private += 1;
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert!(path.ends_with("resume.json") && mode == 0o600, "{} {mode:o}", path.display());
    }
    assert_eq!(private, 3);
    // As in a pack, or when the reader is another user.
    fs::create_dir(place.join("copied")).unwrap();
    for file in ["env.json", "plan.json", "samples.jsonl"] {
        fs::copy(place.join("one").join(file), place.join("copied").join(file)).unwrap();
    }
    for (one, other, told) in [
        ("one", "same", "the values of `LENT`, `TOKEN` are equal"),
        ("one", "other", "the values of `LENT`, `TOKEN` differ"),
        ("one", "copied", "it is not known whether `LENT`, `TOKEN` had the same values"),
    ] {
        let ran = dunnage.run(&format!("compare {one} {other} --format json"));
        let all = ran.to_string();
        assert!(all.contains(told) && !all.contains(SECRET), "{ran}");
    }
}

#[test]
fn a_variable_is_taken_from_the_environment_or_refused_without_its_value() {
    if lacks("a_variable_is_taken_from_the_environment_or_refused_without_its_value", Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let words = "run command --cmd true -s bare --rounds 2 -o DIR";
    for (more, told) in [
        (vec!["--env", "LENT"], "the environment has no variable `LENT`"),
        (vec!["--env", "=hunter-of-whales-1851"], "`--env` takes NAME=VALUE or NAME"),
        (vec!["--set", "env=A=hunter-of-whales-1851", "--set", "env=A=2"], "could not be told apart"),
        (vec!["--set", "env=A='hunter-of-whales-1851"], "quote is not closed"),
    ] {
        let ran = run(&dunnage, words, &more);
        assert!(ran.code == 2 && ran.stderr.contains(told) && !ran.to_string().contains(SECRET), "{ran}");
    }
}

/// No process of the machine has the value among its arguments while a command runs with it.
#[test]
fn a_value_is_in_no_argument_of_any_process() {
    let test = "a_value_is_in_no_argument_of_any_process";
    if lacks(test, Need::Root) {
        return;
    }
    let mut subjects = vec!["bare"];
    subjects.extend((!lacks(test, Need::Crun)).then_some("crun"));
    subjects.extend((!lacks(test, Need::Docker)).then_some("docker"));
    for subject in subjects {
        let secret = format!("{SECRET}-{subject}-{}", std::process::id());
        let dunnage = Dunnage::new().with("TOKEN", &secret);
        let tool = dunnage.directory().with_file_name("tool");
        fs::copy(env!("CARGO_BIN_EXE_dunnage"), &tool).unwrap();
        let tool = tool.display().to_string();
        let mut command = dunnage.command(&format!(
            "run command -s {subject} --rounds 3 --env TOKEN --mount {tool}:{tool}:ro -o DIR"
        ));
        let command = command.args(["--cmd", &format!("{tool} probe stay")]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let line = format!("{tool}\0probe\0stay\0");
        let deadline = Instant::now() + Duration::from_secs(60);
        let (pid, environment) = loop {
            assert!(Instant::now() < deadline, "the command did not begin in {subject}");
            std::thread::sleep(Duration::from_millis(20));
            let all = lines();
            let own = all.iter().find(|(_, arguments)| *arguments == line);
            let seen = own.and_then(|(pid, _)| Some((*pid, fs::read(format!("/proc/{pid}/environ")).ok()?)));
            let bearing: Vec<_> = all.iter().filter(|(_, line)| line.contains(&secret)).collect();
            assert!(bearing.is_empty(), "{subject}: {bearing:?}");
            if let Some((pid, bytes)) = seen.filter(|(_, bytes)| !bytes.is_empty()) {
                break (pid, String::from_utf8_lossy(&bytes).into_owned());
            }
        };
        assert!(environment.contains(&format!("TOKEN={secret}")), "{subject}: {environment}");
        // Without its command, whose end would have to be waited for, nothing can be measured.
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(4), "{subject}");
    }
}

/// Every process with its arguments.
fn lines() -> Vec<(i32, String)> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let line = |one: fs::DirEntry| {
        let arguments = fs::read(one.path().join("cmdline")).ok()?;
        Some((one.file_name().to_str()?.parse().ok()?, String::from_utf8_lossy(&arguments).into_owned()))
    };
    all.filter_map(line).collect()
}

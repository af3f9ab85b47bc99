//! Arbitrary commands in arbitrary images, on real subjects: the same file everywhere, failures with their
//! words, and nothing left behind. The images hold one program, dunnage itself, and are imported here, so no
//! registry is needed.
//!
//! Deliberately absent: how long anything takes.

use crate::left;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::dunnage::{Dunnage, Ran, finished};
use crate::support::{Need, at_hand, lacks};

/// An image of one engine whose only program is `/bin/tool`.
struct Image {
    engine: &'static str,
    name: String,
}

impl Image {
    fn import(engine: &'static str, test: &str) -> Image {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("bin")).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_dunnage"), root.path().join("bin/tool")).unwrap();
        // A link, which must not be followed on the host.
        std::os::unix::fs::symlink("/bin/tool", root.path().join("tool")).unwrap();
        let mut tar = tar::Builder::new(Vec::new());
        tar.follow_symlinks(false);
        tar.append_dir_all(".", root.path()).unwrap();
        let name = format!("dunnage-test-{}-{}", test.replace('_', "-"), std::process::id());
        let mut import = Command::new(engine)
            .args(["import", "-", &name])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        import.stdin.take().unwrap().write_all(&tar.into_inner().unwrap()).unwrap();
        assert!(import.wait().unwrap().success(), "{engine} import");
        Image { engine, name }
    }

    fn of(&self, subject: &str) -> String {
        format!("{subject}:image={}", self.name)
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let removed = Command::new(self.engine).args(["rmi", &self.name]).output();
        assert!(removed.is_ok_and(|output| output.status.success()), "{} rmi {}", self.engine, self.name);
    }
}

fn check(dunnage: &Dunnage, subjects: &[String], cmd: &str, more: &str) -> Ran {
    let subjects: Vec<_> = subjects.iter().map(|subject| format!("-s {subject}")).collect();
    let mut command = dunnage.command(&format!("check command {} {more}", subjects.join(" ")));
    finished(command.args(["--cmd", cmd]).output().unwrap())
}

/// The reported hashes of the executed files.
fn sums(ran: &Ran) -> Vec<&str> {
    ran.stdout.split_whitespace().filter_map(|word| word.strip_prefix("program_sha256=")).collect()
}

fn nothing_is_left(dunnage: &Dunnage, image: &Image) {
    assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new());
    let listed =
        left::said(image.engine, &["ps", "--all", "--filter", &format!("ancestor={}", image.name), "-q"]);
    assert_eq!(listed.trim(), "");
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(dunnage.state().to_str().unwrap()), "{mounts}");
}

fn the_same_file(test: &str, engine: &'static str, need: Need) {
    if lacks(test, need) || lacks(test, Need::Root) {
        return;
    }
    let image = Image::import(engine, test);
    let mut subjects = vec![image.of("bare"), image.of("floor"), image.of(engine)];
    let runtimes = at_hand(test, &[(Need::Crun, "crun"), (Need::Runc, "runc")]);
    subjects.extend(runtimes.iter().map(|runtime| image.of(runtime)));
    let dunnage = Dunnage::new();
    // The second time through a mount of the file's directory, which is in no image.
    let directory = Path::new(env!("CARGO_BIN_EXE_dunnage")).parent().unwrap().display().to_string();
    let mount = format!("--mount {directory}:/in:ro");
    for (cmd, more) in [("tool probe start", "--mode run --mode exec"), ("/in/dunnage probe start", &mount)] {
        let subjects = if more.contains("exec") { &subjects[..] } else { &subjects[..3] };
        let ran = check(&dunnage, subjects, cmd, more);
        assert_eq!(ran.code, 0, "{ran}");
        let sums = sums(&ran);
        assert!(sums.len() >= subjects.len() && sums.iter().all(|sum| *sum == sums[0]), "{ran}");
    }
    nothing_is_left(&dunnage, &image);
}

#[test]
fn docker_and_all_without_an_engine_execute_the_same_file() {
    the_same_file("docker_and_all_without_an_engine_execute_the_same_file", "docker", Need::Docker);
}

#[test]
fn podman_and_all_without_an_engine_execute_the_same_file() {
    the_same_file("podman_and_all_without_an_engine_execute_the_same_file", "podman", Need::Podman);
}

#[test]
fn failures_have_their_words_and_leave_nothing() {
    let test = "failures_have_their_words_and_leave_nothing";
    if lacks(test, Need::Docker) || lacks(test, Need::Root) {
        return;
    }
    let image = Image::import("docker", test);
    let subjects = ["bare", "docker"].map(|subject| image.of(subject));
    let dunnage = Dunnage::new();
    let cases = [
        ("tool mesure", "", "ended with exit code 2: error: unrecognized subcommand"),
        ("nosuch", "", "`nosuch` does not exist inside"),
        ("/bin", "--workdir /nosuch", "cannot change to the directory `/nosuch`"),
        ("tool probe stay", "--timeout 3", "did not end"),
    ];
    for (cmd, more, words) in cases {
        let ran = check(&dunnage, &subjects, cmd, more);
        let told = ran.stdout.lines().filter(|line| line.starts_with("failed") && line.contains(words));
        assert_eq!(told.count(), subjects.len(), "{cmd} {more}: {ran}");
        nothing_is_left(&dunnage, &image);
    }
    let ran = check(&dunnage, &["floor:image=dunnage-test-nowhere".into()], "tool", "");
    assert!(ran.stdout.contains("docker pull dunnage-test-nowhere"), "{ran}");
}

#[test]
fn an_interrupted_command_leaves_nothing() {
    let test = "an_interrupted_command_leaves_nothing";
    if lacks(test, Need::Docker) || lacks(test, Need::Root) {
        return;
    }
    let image = Image::import("docker", test);
    for subject in ["docker", "bare"] {
        let dunnage = Dunnage::new();
        let words = format!("run command -s {} --rounds 9 -o DIR", image.of(subject));
        let mut command = dunnage.command(&words);
        command.args([
            "--cmd",
            "tool probe stay",
            "--env",
            &format!("DUNNAGE_TEST={subject}-{}", image.name),
        ]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while !runs_with(&format!("DUNNAGE_TEST={subject}-{}", image.name)) {
            assert!(Instant::now() < deadline, "the command did not begin in {subject}");
            std::thread::sleep(Duration::from_millis(50));
        }
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(5), "{subject}");
        nothing_is_left(&dunnage, &image);
    }
}

/// Whether a process was started with this variable.
fn runs_with(variable: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let environments = processes.filter_map(|one| std::fs::read(one.path().join("environ")).ok());
    environments.into_iter().any(|all| all.split(|byte| *byte == 0).any(|one| one == variable.as_bytes()))
}

#[test]
fn a_command_that_writes_to_its_root_does_not_write_to_the_cache() {
    let test = "a_command_that_writes_to_its_root_does_not_write_to_the_cache";
    if lacks(test, Need::Docker) || lacks(test, Need::Root) {
        return;
    }
    let image = Image::import("docker", test);
    let dunnage = Dunnage::new();
    // It makes its state directory, in its own root.
    let subjects = ["bare", "floor"].map(|subject| image.of(subject));
    let ran = check(&dunnage, &subjects, "tool list plans", "--env DUNNAGE_STATE=/written");
    assert_eq!(ran.code, 0, "{ran}");
    let ran = check(&dunnage, &subjects, "tool check start -s fake", "--env DUNNAGE_STATE=/written");
    assert_eq!(ran.code, 0, "{ran}");
    let images = fs::read_dir(dunnage.state().join("images")).unwrap().flatten();
    let exports: Vec<_> =
        images.filter(|one| one.file_name().to_string_lossy().starts_with("export-")).collect();
    assert_eq!(exports.len(), 1);
    assert!(!exports[0].path().join("rootfs/written").exists());
}

/// The baseline of an image starts like the container: libc's start is part of both or of neither.
#[test]
fn a_launch_in_an_image_starts_libc_only_where_it_is_asked_to() {
    let test = "a_launch_in_an_image_starts_libc_only_where_it_is_asked_to";
    if lacks(test, Need::Docker) || lacks(test, Need::Root) {
        return;
    }
    let image = Image::import("docker", test);
    let dunnage = Dunnage::new();
    let subjects = ["bare", "docker"].map(|subject| format!("-s {}", image.of(subject))).join(" ");
    let ran = dunnage.run(&format!("run start {subjects} --set libc=no --set libc=yes --rounds 2 -o DIR"));
    assert_eq!(ran.code, 0, "{ran}");
    let with: Vec<_> = values(&dunnage, "DIR", "libc_start").into_iter().map(|(of, _)| of).collect();
    assert!(with.iter().all(|of| of.contains("libc=yes")), "{with:?}");
    assert!(["bare", "docker"].iter().all(|name| with.iter().any(|of| of.contains(name))), "{with:?}");
    assert!(values(&dunnage, "DIR", "probe_work").iter().any(|(of, _)| !of.contains("libc=yes")));
    nothing_is_left(&dunnage, &image);
}

/// The program writes to a directory that must be empty, so that another launch in the same root fails.
const WRITES_ONCE: &str = "tool run start -s fake --rounds 1 -o /written";

#[test]
fn every_launch_begins_from_the_same_root() {
    let test = "every_launch_begins_from_the_same_root";
    if lacks(test, Need::Docker) || lacks(test, Need::Root) {
        return;
    }
    let image = Image::import("docker", test);
    let dunnage = Dunnage::new();
    let ready = at_hand(test, &[(Need::Crun, "crun"), (Need::Runc, "runc"), (Need::Youki, "youki")]);
    let subjects = ["bare", "floor", "docker"].into_iter().chain(ready);
    let subjects: String = subjects.map(|name| format!(" -s {}", image.of(name))).collect();
    let words = format!("run command{subjects} --rounds 2 --env DUNNAGE_STATE=/state -o DIR");
    let ran = finished(dunnage.command(&words).args(["--cmd", WRITES_ONCE]).output().unwrap());
    assert_eq!(ran.code, 0, "{ran}");
    let samples = fs::read_to_string(dunnage.directory().join("samples.jsonl")).unwrap();
    assert!(samples.contains("returned") && !samples.contains("\"failed\""), "{samples}");
    nothing_is_left(&dunnage, &image);
}

/// The values of a metric by subject and setting, as in the csv, without missing ones.
pub fn values(dunnage: &Dunnage, directory: &str, metric: &str) -> Vec<(String, f64)> {
    let csv = dunnage.run(&format!("report {directory} --format csv")).stdout;
    let mut rows = csv::Reader::from_reader(csv.as_bytes());
    let names = rows.headers().unwrap().clone();
    let rows: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
    let field = |row: &csv::StringRecord, name: &str| {
        row[names.iter().position(|own| own == name).unwrap()].to_owned()
    };
    let own = rows.iter().filter(|row| field(row, "metric") == metric && !field(row, "value").is_empty());
    own.map(|row| (field(row, "setting") + " " + &field(row, "label"), field(row, "value").parse().unwrap()))
        .collect()
}

#[test]
fn output_comes_out_whole_by_every_way_and_none_where_it_is_discarded() {
    let test = "output_comes_out_whole_by_every_way_and_none_where_it_is_discarded";
    if lacks(test, Need::Docker) || lacks(test, Need::Root) {
        return;
    }
    let image = Image::import("docker", test);
    let dunnage = Dunnage::new();
    let subjects = ["bare", "floor", "docker", "docker:client=api,log=none"].map(|name| {
        let joint = if name.contains(':') { "," } else { ":" };
        format!(" -s {name}{joint}image={}", image.name)
    });
    let words = format!(
        "run command{} --rounds 1 --mode run --mode exec --set output=through --set output=discard -o DIR",
        subjects.concat()
    );
    let ran = finished(dunnage.command(&words).args(["--cmd", "tool completions bash"]).output().unwrap());
    assert_eq!(ran.code, 0, "{ran}");
    let found = values(&dunnage, "DIR", "output");
    // Each setting of each subject, and of each twin; once to warm up, once to count.
    let length = Command::new(env!("CARGO_BIN_EXE_dunnage")).args(["completions", "bash"]).output().unwrap();
    let (through, discarded): (Vec<_>, Vec<_>) =
        found.iter().partition(|(named, _)| named.contains("output=through"));
    assert!(through.len() >= 8 && through.len() == discarded.len(), "{found:?}");
    assert!(through.iter().all(|(_, bytes)| *bytes == length.stdout.len() as f64), "{found:?}");
    assert!(discarded.iter().all(|(_, bytes)| *bytes == 0.0), "{found:?}");
    nothing_is_left(&dunnage, &image);
}

/// Two processes that hold 32 MB each at the same time: the second one has read everything but the pipe's
/// content while the first one still holds what it writes.
const TWO_THAT_HOLD: &str =
    "head -c 32000000 /dev/zero | tail -c 32000000 | tail -c 32000000 | tail -c 1 >/dev/null";

#[test]
fn the_memory_of_all_processes_of_a_container_counts_together() {
    let test = "the_memory_of_all_processes_of_a_container_counts_together";
    if lacks(test, Need::Crun) || lacks(test, Need::Cgroup) || lacks(test, Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let places = ["/bin", "/lib", "/lib64", "/usr"].iter().filter(|place| Path::new(place).exists());
    let mounts: String = places.map(|place| format!(" --mount {place}:{place}:ro")).collect();
    let ready = at_hand(test, &[(Need::Docker, "docker"), (Need::Podman, "podman")]);
    let contained: Vec<_> = ["floor", "crun"].into_iter().chain(ready).collect();
    let subjects: String = contained.iter().map(|name| format!(" -s {name}")).collect();
    let words = format!("run command -s bare{subjects} --rounds 1 --shell{mounts} -o DIR");
    let ran = finished(dunnage.command(&words).args(["--cmd", TWO_THAT_HOLD]).output().unwrap());
    assert_eq!(ran.code, 0, "{ran}");
    let of = |metric: &str, label: &str| -> Vec<f64> {
        let all = values(&dunnage, "DIR", metric).into_iter();
        all.filter(|(named, _)| named.ends_with(&format!(" {label}"))).map(|(_, bytes)| bytes).collect()
    };
    for label in &contained {
        let [whole, one] = ["peak_memory", "largest_process"].map(|metric| of(metric, label));
        assert!(!whole.is_empty() && whole.iter().all(|bytes| *bytes >= 60e6), "{label} {whole:?}: {ran}");
        let is_one = one.iter().all(|bytes| (30e6..60e6).contains(bytes));
        assert!(one.len() == whole.len() && is_one, "{label} {one:?}: {ran}");
    }
    // On the host it shares its cgroup: no value, and the reason.
    assert_eq!(of("peak_memory", "bare"), [0.0; 0]);
    let one = of("largest_process", "bare");
    assert!(!one.is_empty() && one.iter().all(|bytes| (30e6..60e6).contains(bytes)), "{one:?}: {ran}");
    let samples = fs::read_to_string(dunnage.directory().join("samples.jsonl")).unwrap();
    assert!(samples.contains("shares its cgroup with other processes"), "{samples}");
    assert!(!ran.stdout.contains("peak_memory is missing"), "{ran}");
    assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new());
}

#[test]
fn two_images_are_given_the_same_and_differ_in_one_key() {
    let test = "two_images_are_given_the_same_and_differ_in_one_key";
    if lacks(test, Need::Docker) || lacks(test, Need::Crun) || lacks(test, Need::Root) {
        return;
    }
    let image = Image::import("docker", test);
    let dunnage = Dunnage::new();
    let all = ["floor", "crun", "docker", "docker:client=api"];
    let named: String = all.iter().map(|name| format!(" -s {name}")).collect();
    for (directory, more, laid_in) in
        [("DIR", format!(" -s {}", image.of("docker")), true), ("DIR-2", String::new(), false)]
    {
        let ran = dunnage.run(&format!(
            "run start{named}{more} --no-vary --set prestate=primed --rounds 1 -o {directory}"
        ));
        assert_eq!(ran.code, 0, "{ran}");
        let place = if laid_in { dunnage.directory() } else { dunnage.directory().with_file_name("run-2") };
        let samples = fs::read_to_string(place.join("samples.jsonl")).unwrap();
        assert!(
            samples.lines().filter(|line| line.contains("\"returned\"")).count() >= all.len(),
            "{samples}"
        );
        let mut treatments = samples.lines().filter(|line| line.contains("\"facts\""));
        assert!(treatments.all(|line| line.contains("\"probe\":\"laid in\"") == laid_in), "{samples}");
    }
    let plan =
        fs::read_to_string(dunnage.directory().join("plan.json")).unwrap().replace(char::is_whitespace, "");
    assert!(plan.contains("\"relation\":\"onekey\",\"key\":\"image\""), "{plan}");
    nothing_is_left(&dunnage, &image);
}

#[test]
fn a_command_is_tried_first_and_left_out_where_it_fails() {
    let test = "a_command_is_tried_first_and_left_out_where_it_fails";
    if lacks(test, Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    // The image `small` does not have this program; the host does.
    let ran = dunnage.run("run command -s bare -s floor --rounds 1 --cmd true -o DIR");
    assert_eq!(ran.code, 6, "{ran}");
    assert!(ran.stderr.contains("not available: floor: environment: `true` does not exist inside"), "{ran}");
    assert!(!values(&dunnage, "DIR", "returned").is_empty());
    let ran = dunnage.run("run command -s bare -s floor --rounds 40 --cmd nosuch -o DIR-2");
    assert_eq!(ran.code, 4, "{ran}");
    assert!(ran.stderr.contains("nothing can be measured") && !ran.stderr.contains("40 rounds"), "{ran}");
    let planned = dunnage.run("plan command -s bare --cmd true").stdout;
    let planned = planned.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(planned.contains("assuming that the command takes 1.00 s; `run` tries it once"), "{planned}");
    assert_eq!(dunnage.left_in_state(), Vec::<PathBuf>::new());
}

/// Time wasted by a runtime, on the way of the output, and by the command itself: each is found, and
/// attributed correctly. A sleep takes as long as it says, or longer; all other bounds are far away.
#[test]
fn wasted_time_is_found_where_it_is_wasted() {
    let test = "wasted_time_is_found_where_it_is_wasted";
    if lacks(test, Need::Crun) || lacks(test, Need::Root) {
        return;
    }
    let dunnage = Dunnage::new();
    let script = |name: &str, lines: &str| {
        let path = dunnage.state().with_file_name(name);
        fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        path.display().to_string()
    };
    let starting = script("starting", "[ \"$1\" = run ] && sleep 1\nexec crun \"$@\"");
    let late = "IFS= read -r first && sleep 1 && printf '%s\\n' \"$first\"; cat";
    let passing = script("passing", &format!("crun \"$@\" | {{ {late}; }}"));
    let directory = Path::new(env!("CARGO_BIN_EXE_dunnage")).parent().unwrap().display().to_string();
    let words = format!(
        "run command -s crun -s starting=crun:bin={starting} -s passing=crun:bin={passing} --rounds 2 \
         --mount {directory}:/in:ro --set output=through --set output=discard -o DIR"
    );
    let ran = finished(dunnage.command(&words).args(["--cmd", "/in/dunnage list metrics"]).output().unwrap());
    assert_eq!(ran.code, 0, "{ran}");
    let own = |directory: &str, metric: &str, setting: &str, label: &str| {
        let own = values(&dunnage, directory, metric).into_iter();
        let own = own.filter(|(named, _)| named.contains(setting) && named.ends_with(&format!(" {label}")));
        own.map(|(_, value)| value).collect::<Vec<_>>()
    };
    let least_in = |directory: &str, metric: &str, setting: &str, label: &str| {
        own(directory, metric, setting, label).into_iter().fold(f64::INFINITY, f64::min)
    };
    let least = |metric: &str, output: &str, label: &str| least_in("DIR", metric, output, label);
    for output in ["output=through", "output=discard"] {
        assert!(least("start", output, "starting") > 1.0, "{ran}");
        assert!(least("start", output, "crun") < 0.7 && least("start", output, "passing") < 0.7, "{ran}");
        assert!(least("beyond_start", output, "starting") < 0.7, "{ran}");
    }
    assert!(least("returned", "output=through", "passing") > 1.0, "{ran}");
    // A difference between two containers, of which one may start late on a busy machine.
    let beyond = own("DIR", "beyond_start", "output=through", "passing");
    assert!(beyond.iter().any(|seconds| *seconds > 0.7), "{beyond:?} {ran}");
    assert!(least("beyond_start", "output=discard", "passing") < 0.7, "{ran}");
    let words = format!(
        "run command -s bare -s crun --rounds 2 --mount {directory}:{directory}:ro --sweep ms=100,900 -o DIR-2"
    );
    let cmd = format!(r#"{directory}/dunnage probe work - '{{"spin":{{"millis":{{ms}}}}}}'"#);
    let ran = finished(dunnage.command(&words).args(["--cmd", &cmd]).output().unwrap());
    assert_eq!(ran.code, 0, "{ran}");
    for label in ["bare", "crun"] {
        let [short, long] = ["ms=100", "ms=900"].map(|setting| least_in("DIR-2", "command", setting, label));
        assert!(
            short > 0.1 && long > 0.9 && long - short > 0.4 && long - short < 2.0,
            "{short} {long}: {ran}"
        );
    }
}

#[test]
fn the_report_splits_what_a_subject_takes_more() {
    let dunnage = Dunnage::new();
    let words =
        "run command -s a=fake:time=1ms -s b=fake:time=9ms --rounds 12 --seed 7 -o DIR --sweep n=1,2,3";
    let ran = finished(dunnage.command(words).args(["--cmd", "work -n {n}"]).output().unwrap());
    assert_eq!(ran.code, 0, "{ran}");
    let report = dunnage.run("report DIR --format json");
    for expected in ["\"overhead\"", "\"fixed-and-proportional\"", "unexplained rest", "sweep=n=3"] {
        assert!(report.stdout.contains(expected), "{expected}: {report}");
    }
}

#[test]
fn a_command_is_needed_and_belongs_to_its_experiment() {
    let dunnage = Dunnage::new();
    for (words, expected) in [
        ("run command -s fake", "needs a command"),
        ("run start -s fake --cmd true", "for the experiment `command`"),
        ("run command -s fake --cmd true --mode walk", "`mode` takes run, exec"),
        ("run command -s fake --cmd true --mount a:b", "HOST:INSIDE"),
        ("run command -s fake --cmd true --sweep n=1", "write `{n}` into the command"),
        ("run command -s fake --cmd {n} --sweep n=", "name at least one value"),
        ("run command -s fake --cmd {n} --sweep n=1,1", "`1` is named twice"),
        ("run command -s fake --cmd {n} --sweep n=1 --sweep n=2", "`--sweep n=1,2`"),
        ("run command -s fake --cmd true --mode run --mode run", "`mode=run` is given twice"),
        ("run start -s fake --set prestate=idle --set prestate=idle", "`prestate=idle` is given twice"),
        ("run command -s fake --cmd true --mount /nosuch:/in", "`/nosuch`: it does not exist on the host"),
    ] {
        let ran = dunnage.run(words);
        assert!(ran.code == 2 && ran.stderr.contains(expected), "{words}: {ran}");
    }
}

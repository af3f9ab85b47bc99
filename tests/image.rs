//! The image with real engines and runtimes: each loads it under the same name and with the digests that
//! dunnage computed, and starts the program inside.
//!
//! The executable inside is a small stand-in that reports what it sees. It ends in bytes that are unique to
//! each test, so that no two tests, also from different checkouts, share an image.
//!
//! Deliberately absent: the probe (it has tests of its own) and measurements.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use dunnage::image::bundle::Bundle;
use dunnage::image::{Image, spec};
use dunnage::subject::{Access, Mount};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::{Need, lacks, skip, turn};

const STAND_IN: &str = r#"
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static void list(const char *path) {
    struct dirent *entry;
    DIR *directory = opendir(path);
    printf("%s:", path);
    while (directory && (entry = readdir(directory)))
        if (entry->d_name[0] != '.') printf(" %s", entry->d_name);
    puts("");
}
int main(int argc, char **argv) {
    char line[4096];
    printf("args:");
    for (int i = 0; i < argc; i++) printf(" %s", argv[i]);
    puts("");
    list("/");
    list("/sys/class/net");
    gethostname(line, sizeof line);
    printf("host: %s\n", line);
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, "Cap", 3) || !strncmp(line, "NoNew", 5) || !strncmp(line, "Seccomp:", 8))
            fputs(line, stdout);
    return 0;
}
"#;

/// Docker's 14 default capabilities as the kernel prints the set.
const DOCKER_CAPABILITIES: &str = "00000000a80425fb";

fn command(argv: &[&str]) -> Command {
    let mut command = Command::new(argv[0]);
    command.args(&argv[1..]).stdin(Stdio::null());
    command
}

/// Standard output of a command that must succeed.
fn output(argv: &[&str]) -> String {
    checked(argv, command(argv).output().unwrap())
}

fn checked(argv: &[&str], output: Output) -> String {
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "`{}`: {}: {complaint}", argv.join(" "), output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// Runs these commands when it goes out of scope, in every case, and ignores their results: after a failure
/// there may be nothing to remove.
struct Undo(Vec<Vec<String>>);

impl Undo {
    fn new(commands: &[&[&str]]) -> Undo {
        Undo(commands.iter().map(|argv| argv.iter().map(|word| (*word).to_owned()).collect()).collect())
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        for argv in &self.0 {
            let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
            let _ = command(&argv).output();
        }
    }
}

/// The compiled stand-in, which the first test that needs it makes for all.
fn stand_in(test: &str) -> Option<PathBuf> {
    let _turn = turn("stand-in");
    let sum = Sha256::digest(STAND_IN).iter().take(8).map(|byte| format!("{byte:02x}")).collect::<String>();
    let binary = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("stand-in-{sum}"));
    if binary.exists() {
        return Some(binary);
    }
    if lacks(test, Need::Cc) {
        return None;
    }
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let [source, made] = ["stand-in.c", "stand-in"].map(|name| place.path().join(name));
    fs::write(&source, STAND_IN).unwrap();
    let argv = ["cc", "-static", "-Os", "-s", source.to_str().unwrap(), "-o", made.to_str().unwrap()];
    let compiled = command(&argv).output().unwrap();
    if String::from_utf8_lossy(&compiled.stderr).contains("cannot find -lc") {
        skip(test, Need::Cc, "there is no static libc");
        return None;
    }
    checked(&argv, compiled);
    // Complete or not there, also after a kill.
    fs::rename(&made, &binary).unwrap();
    Some(binary)
}

/// A directory, a stand-in executable and a name for one test alone.
struct Scene {
    directory: tempfile::TempDir,
    executable: Vec<u8>,
    name: String,
}

impl Scene {
    /// `None` if nothing can be compiled here; the skip is reported then.
    fn new(test: &str) -> Option<Scene> {
        let directory = tempfile::tempdir().unwrap();
        let stand_in = stand_in(test)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
        let own = format!("{}-{now:x}", std::process::id());
        let mut executable = fs::read(stand_in).unwrap();
        executable.extend_from_slice(own.as_bytes());
        Some(Scene { directory, executable, name: format!("dunnage-image-test-{own}") })
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn write_archive(&self, image: &Image<'_>) -> String {
        let path = self.path().join("small.tar");
        let mut file = fs::File::create(&path).unwrap();
        image.write_archive(&mut file, &|| true).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

/// The digests of the configuration, which docker and podman call the image's id, and of the manifest, which
/// containerd shows.
fn digests(archive: &str) -> [String; 2] {
    let read = |path: &str| -> Value {
        serde_json::from_str(&output(&["tar", "--extract", "--to-stdout", "--file", archive, path])).unwrap()
    };
    let (docker, index) = (read("manifest.json"), read("index.json"));
    let config = docker[0]["Config"].as_str().unwrap().trim_start_matches("blobs/").replace('/', ":");
    [config, index["manifests"][0]["digest"].as_str().unwrap().to_owned()]
}

/// The stand-in's report under this heading, its words sorted.
fn said<'a>(text: &'a str, heading: &str) -> Vec<&'a str> {
    let line = text.lines().find_map(|line| line.strip_prefix(heading));
    let line = line.unwrap_or_else(|| panic!("no `{heading}` in: {text}"));
    let mut words: Vec<&str> = line.split_whitespace().collect();
    words.sort();
    words
}

fn assert_args(text: &str) {
    assert_eq!(text.lines().next(), Some("args: /dunnage probe one two"), "{text}");
}

#[test]
fn docker_loads_and_starts_the_image() {
    let test = "docker_loads_and_starts_the_image";
    if lacks(test, Need::Docker) {
        return;
    }
    let Some(scene) = Scene::new(test) else { return };
    let image = Image::small(&scene.executable);
    let reference = image.reference.as_str();
    let _undo = Undo::new(&[&["docker", "rm", "-f", &scene.name], &["docker", "rmi", "-f", reference]]);

    // Through a pipe, as the program itself loads it: without a file.
    let argv = ["docker", "load"];
    let mut load = Command::new(argv[0])
        .arg(argv[1])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    image.write_archive(&mut load.stdin.take().unwrap(), &|| true).unwrap();
    let loaded = checked(&argv, load.wait_with_output().unwrap());
    assert_eq!(loaded.trim(), format!("Loaded image: {reference}"));

    let format = "{{.Id}} {{json .RepoTags}} {{index .Config.Labels \"dunnage.digest\"}}";
    let facts = output(&["docker", "image", "inspect", "--format", format, reference]);
    // A docker that keeps images in containerd names them by their manifest.
    let ids = digests(&scene.write_archive(&image))
        .map(|id| format!("{id} [\"{reference}\"] {}", image.executable_digest));
    assert!(ids.contains(&facts.trim().to_owned()), "{facts}");

    let argv = ["docker", "run", "--rm", "--name", &scene.name, "--network", "none", reference, "one", "two"];
    let text = output(&argv);
    assert_args(&text);
    assert_eq!(said(&text, "/:"), ["dev", "dunnage", "etc", "proc", "sys"]);
}

#[test]
fn podman_loads_and_starts_the_image() {
    let test = "podman_loads_and_starts_the_image";
    if lacks(test, Need::Podman) {
        return;
    }
    let Some(scene) = Scene::new(test) else { return };
    let image = Image::small(&scene.executable);
    let reference = image.reference.as_str();
    let _undo = Undo::new(&[&["podman", "rm", "-f", &scene.name], &["podman", "rmi", "-f", reference]]);

    let archive = scene.write_archive(&image);
    let [config, manifest] = digests(&archive);
    let loaded = output(&["podman", "load", "-i", &archive]);
    assert_eq!(loaded.trim(), format!("Loaded image: {reference}"));
    let format = "{{.Id}} {{.Digest}} {{json .RepoTags}} {{index .Config.Labels \"dunnage.digest\"}}";
    let facts = output(&["podman", "image", "inspect", "--format", format, reference]);
    let config = config.trim_start_matches("sha256:");
    let expected = format!("{config} {manifest} [\"{reference}\"] {}", image.executable_digest);
    assert_eq!(facts.trim(), expected);

    // podman's own limits exceed what a process without CAP_SYS_RESOURCE may set.
    let limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"];
    let argv = ["podman", "run", "--rm", "--name", &scene.name, "--network", "none"];
    let argv = [&argv[..], &limits[..], &[reference, "one", "two"][..]].concat();
    let text = output(&argv);
    assert_args(&text);
    assert!(said(&text, "/:").contains(&"dunnage"), "{text}");
}

/// A private containerd: one that belongs to docker or Kubernetes must not be filled by a test.
struct Containerd {
    child: Child,
    socket: String,
    namespace: String,
}

impl Containerd {
    /// Returns once it serves.
    fn start(scene: &Scene) -> Containerd {
        let place = scene.path().to_str().unwrap();
        let socket = format!("{place}/containerd.sock");
        let config = format!(
            "version = 2\nroot = \"{place}/root\"\nstate = \"{place}/state\"\n\
             disabled_plugins = [\"io.containerd.grpc.v1.cri\", \"io.containerd.internal.v1.opt\"]\n\
             [grpc]\naddress = \"{socket}\"\n"
        );
        let path = format!("{place}/containerd.toml");
        fs::write(&path, config).unwrap();
        let mut child = Command::new("containerd")
            .args(["--config", &path])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let containerd = Containerd { child, socket, namespace: scene.name.clone() };
        let booted = log.by_ref().any(|line| line.unwrap().contains("successfully booted"));
        assert!(booted, "containerd ended before it served");
        // Without a reader, containerd would block once the pipe is full.
        std::thread::spawn(move || log.for_each(drop));
        containerd
    }

    fn ctr(&self, arguments: &[&str]) -> Vec<String> {
        let argv = ["ctr", "--address", &self.socket, "--namespace", &self.namespace];
        argv.iter().chain(arguments).map(|word| (*word).to_owned()).collect()
    }

    fn output(&self, arguments: &[&str]) -> String {
        let argv = self.ctr(arguments);
        output(&argv.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

impl Drop for Containerd {
    fn drop(&mut self) {
        drop(Undo(vec![self.ctr(&["task", "rm", "-f", "box"]), self.ctr(&["container", "rm", "box"])]));
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The runtime removes what is the container's and leaves the namespace's directory.
        let _ = fs::remove_dir(Path::new("/run/containerd/runc").join(&self.namespace));
        for cgroup in cgroups(&format!("/{}", self.namespace)) {
            let _ = fs::remove_dir(cgroup);
        }
    }
}

/// The directories of this cgroup in every hierarchy that has it.
fn cgroups(path: &str) -> Vec<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    let hierarchies = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let all = hierarchies.chain([root.to_owned()]);
    all.map(|hierarchy| hierarchy.join(&path[1..])).filter(|cgroup| cgroup.exists()).collect()
}

#[test]
fn containerd_imports_and_starts_the_image() {
    let test = "containerd_imports_and_starts_the_image";
    if lacks(test, Need::Root) || lacks(test, Need::Runc) {
        return;
    }
    // This one is private, so no running one is needed.
    for program in ["containerd", "ctr"] {
        if let Err(error) = command(&[program, "--version"]).output() {
            return skip(test, Need::Containerd, &format!("{program}: {error}"));
        }
    }
    let Some(scene) = Scene::new(test) else { return };
    let image = Image::small(&scene.executable);
    let reference = image.reference.as_str();
    let containerd = Containerd::start(&scene);

    let archive = scene.write_archive(&image);
    containerd.output(&["images", "import", &archive]);
    let listed = containerd.output(&["images", "ls", &format!("name=={reference}")]);
    assert!(listed.contains(&digests(&archive)[1]), "{listed}");
    let text = containerd.output(&["run", "--rm", reference, "box"]);
    assert_eq!(text.lines().next(), Some("args: /dunnage probe"), "{text}");
    // ctr replaces the entry point by its arguments, where docker and podman append them.
    let text = containerd.output(&["run", "--rm", reference, "box", "/dunnage", "probe", "one", "two"]);
    assert_args(&text);
    assert_eq!(said(&text, "/:"), ["dev", "dunnage", "proc", "run", "sys"]);
}

/// Starts the bundle and checks that the treatment is in force, and that nothing stays behind.
fn runtime_starts_the_bundle(test: &str, need: Need) {
    if lacks(test, Need::Root) || lacks(test, need) {
        return;
    }
    let runtime = need.name();
    let Some(scene) = Scene::new(test) else { return };
    let image = Image::small(&scene.executable);
    let root = unpacked(&image, &scene.path().join("state"));
    let cgroup = format!("/{}", scene.name);
    let mut config = spec::like_docker(&["one".to_owned(), "two".to_owned()], "inside", &cgroup);
    config["linux"]["seccomp"] = json!({ "defaultAction": "SCMP_ACT_ALLOW" });
    let etc = Mount { host: "/etc".into(), inside: "/run/etc".into(), access: Access::ReadOnly };
    spec::add_bind(&mut config, &etc);

    let text = starts_without_trace(&scene, runtime, &config, &root);
    assert_args(&text);
    assert_eq!(said(&text, "/:"), ["dev", "dunnage", "proc", "run", "sys"]);
    assert_eq!(said(&text, "/sys/class/net:"), ["lo"]);
    assert_eq!(said(&text, "host:"), ["inside"]);
    for set in ["CapPrm:", "CapEff:", "CapBnd:"] {
        assert_eq!(said(&text, set), [DOCKER_CAPABILITIES], "{set}");
    }
    for set in ["CapInh:", "CapAmb:"] {
        assert_eq!(said(&text, set), ["0000000000000000"], "{set}");
    }
    assert_eq!(said(&text, "NoNewPrivs:"), ["1"]);

    spec::add_user_namespace(&mut config, (100_000, 100_000), 1000);
    open_to_all(scene.path());
    let text = starts_without_trace(&scene, runtime, &config, &root);
    assert_args(&text);
    assert_eq!(said(&text, "CapEff:"), [DOCKER_CAPABILITIES]);
}

/// Starts the bundle as an ordinary user, in a user namespace with one id.
fn runtime_starts_the_bundle_for_nobody(test: &str, need: Need) {
    const NOBODY: u32 = 65_534;
    const OUTSIDE: usize = NOBODY as usize;
    let as_nobody = |argv: &[&str]| {
        let mut command = command(argv);
        command.uid(NOBODY).gid(NOBODY).current_dir("/");
        command
    };
    if lacks(test, Need::Root) || lacks(test, need) {
        return;
    }
    if !as_nobody(&["unshare", "--user", "true"]).status().expect("unshare is there").success() {
        return skip(test, Need::Userns, "an ordinary user may not make a user namespace");
    }
    let runtime = need.name();
    let Some(scene) = Scene::new(test) else { return };
    open_to_all(scene.path());
    let image = Image::small(&scene.executable);
    let root = unpacked(&image, scene.path());
    let mut shared = spec::like_docker(&["one".to_owned(), "two".to_owned()], "inside", "");
    shared["linux"].as_object_mut().unwrap().remove("cgroupsPath");
    let mut own = shared.clone();
    spec::share_namespace(&mut shared, "network");
    for config in [&mut shared, &mut own] {
        spec::add_user_namespace(config, (OUTSIDE, OUTSIDE), 1);
    }
    let state = scene.path().join("runtime");
    fs::create_dir(&state).unwrap();
    chown(&state, Some(NOBODY), Some(NOBODY)).unwrap();

    let start = |network: &str, config: &Value| {
        let bundle = Bundle::write(&scene.path().join(network), &root, config).unwrap();
        let directory = bundle.directory().to_str().unwrap();
        let state = state.to_str().unwrap();
        let argv = [runtime, "--root", state, "run", "--bundle", directory, &scene.name];
        let text = checked(&argv, as_nobody(&argv).output().unwrap());
        assert_args(&text);
        text
    };
    assert_eq!(said(&start("own-network", &own), "/sys/class/net:"), ["lo"]);
    start("host-network", &shared);
}

fn unpacked(image: &Image<'_>, state: &Path) -> PathBuf {
    image.unpack(state, &|| (), &|| true).unwrap()
}

/// Users other than its owner must be able to enter the directory.
fn open_to_all(directory: &Path) {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Two starts in sequence: the second one would find what the first one left.
fn starts_without_trace(scene: &Scene, runtime: &str, config: &Value, image: &Path) -> String {
    let bundle = Bundle::write(&scene.path().join("bundle"), image, config).unwrap();
    let ready = output(&["find", bundle.root().to_str().unwrap(), "-printf", "%p %m %n %T@\n"]);
    let state = scene.path().join("runtime");
    let own = [runtime, "--root", state.to_str().unwrap()];
    let _undo = Undo::new(&[&[&own[..], &["delete", "--force", &scene.name]].concat()]);
    let directory = bundle.directory().to_str().unwrap();
    let argv = [&own[..], &["run", "--bundle", directory, &scene.name]].concat();
    let text = output(&argv);
    output(&argv);
    assert_eq!(output(&["find", bundle.root().to_str().unwrap(), "-printf", "%p %m %n %T@\n"]), ready);
    let cgroup = config["linux"]["cgroupsPath"].as_str().unwrap();
    assert_eq!(cgroups(cgroup), Vec::<PathBuf>::new());
    fs::remove_dir_all(directory).unwrap();
    assert_eq!(fs::read_dir(image).unwrap().count(), 1);
    text
}

#[test]
fn runc_starts_the_bundle() {
    runtime_starts_the_bundle("runc_starts_the_bundle", Need::Runc);
}

#[test]
fn crun_starts_the_bundle() {
    runtime_starts_the_bundle("crun_starts_the_bundle", Need::Crun);
}

#[test]
fn runc_starts_the_bundle_for_nobody() {
    runtime_starts_the_bundle_for_nobody("runc_starts_the_bundle_for_nobody", Need::Runc);
}

#[test]
fn crun_starts_the_bundle_for_nobody() {
    runtime_starts_the_bundle_for_nobody("crun_starts_the_bundle_for_nobody", Need::Crun);
}

/// A reader that is not the library that wrote it.
#[test]
fn gnu_tar_reads_the_archive() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("small.tar");
    let mut file = fs::File::create(&path).unwrap();
    Image::small(b"x").write_archive(&mut file, &|| true).unwrap();
    let listing = output(&["tar", "--utc", "--numeric-owner", "-tvf", path.to_str().unwrap()]);
    assert_eq!(listing.lines().count(), 8, "{listing}");
    for line in listing.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mode = if line.ends_with('/') { "drwxr-xr-x" } else { "-rw-r--r--" };
        assert_eq!((words[0], words[1], words[3], words[4]), (mode, "0/0", "1970-01-01", "00:00"), "{line}");
    }
}

//! Root writes results into a directory of another user, who has planted links there.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::dunnage::{Dunnage, Ran};
use crate::support::{Need, lacks};

/// A user who has no account.
const STRANGER: u32 = 54_321;
const RUN: &str = "run start -s a=fake -s b=fake --rounds 6 --seed 7";

/// A directory of the stranger's, and a file of root's that must keep its content.
struct Ground {
    theirs: TempDir,
    victim: PathBuf,
    dunnage: Dunnage,
}

impl Ground {
    fn new(test: &str) -> Option<Ground> {
        if lacks(test, Need::Root) {
            return None;
        }
        let theirs = tempfile::Builder::new().prefix("dunnage-theirs-").tempdir_in("/var/tmp").unwrap();
        lchown(theirs.path(), Some(STRANGER), Some(STRANGER)).unwrap();
        let dunnage = Dunnage::new();
        let victim = dunnage.directory().with_file_name("victim");
        fs::write(&victim, "root's").unwrap();
        Some(Ground { theirs, victim, dunnage })
    }

    /// A directory that the stranger makes.
    fn directory(&self, name: &str) -> PathBuf {
        let path = self.theirs.path().join(name);
        fs::create_dir(&path).unwrap();
        lchown(&path, Some(STRANGER), Some(STRANGER)).unwrap();
        path
    }

    /// A link that the stranger plants.
    fn link(&self, path: &Path, target: &Path) {
        symlink(target, path).unwrap();
        lchown(path, Some(STRANGER), Some(STRANGER)).unwrap();
    }

    fn run(&self, arguments: &str) -> Ran {
        self.dunnage.run(&arguments.replace("THEIRS", &self.theirs.path().display().to_string()))
    }

    #[track_caller]
    fn is_intact(&self, ran: &Ran) {
        assert_eq!(fs::read_to_string(&self.victim).unwrap(), "root's", "{ran}");
        assert!(!self.made().exists(), "made through a link: {ran}");
    }

    /// The target of links that lead to a file that root would make.
    fn made(&self) -> PathBuf {
        self.victim.with_file_name("made")
    }
}

#[track_caller]
fn refused(ran: &Ran, why: &str) {
    assert!(ran.code != 0 && ran.stderr.contains(why) && ran.stderr.contains("hint: "), "{ran}");
}

#[test]
fn a_run_is_not_written_into_another_users_directory() {
    let Some(ground) = Ground::new("a_run_is_not_written_into_another_users_directory") else { return };
    let ready = ground.directory("ready");
    refused(&ground.run(&format!("{RUN} -o THEIRS/ready")), "belongs to user 54321");
    // Links that appear after the directory was found to be empty are simulated by those of a pilot's directory.
    ground.directory("ready/pilot");
    ground.link(&ready.join("pilot/env.json"), &ground.victim);
    ground.link(&ready.join("pilot/plan.json"), &ground.made());
    let ran =
        ground.run(&format!("{RUN} --no-html -o THEIRS/ready/pilot").replace("--rounds 6", "--precision 5%"));
    assert_ne!(ran.code, 0, "{ran}");
    ground.is_intact(&ran);
    let open = ground.dunnage.directory();
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    refused(&ground.run(&format!("{RUN} -o DIR")), "other users can write to");
    ground.link(&ground.theirs.path().join("elsewhere"), open.parent().unwrap());
    refused(&ground.run(&format!("{RUN} -o THEIRS/elsewhere/new")), "symbolic link");
    assert!(!open.with_file_name("new").exists());
}

#[test]
fn a_run_goes_into_a_new_directory_anywhere_and_through_ones_own_link() {
    let Some(ground) = Ground::new("a_run_goes_into_a_new_directory_anywhere_and_through_ones_own_link")
    else {
        return;
    };
    let ran = ground.run(&format!("{RUN} -o THEIRS/new"));
    assert_eq!(ran.code, 0, "{ran}");
    let facts = fs::metadata(ground.theirs.path().join("new")).unwrap();
    assert_eq!((facts.uid(), facts.mode() & 0o022), (0, 0));
    let real = ground.dunnage.directory();
    fs::create_dir(&real).unwrap();
    symlink(&real, real.with_file_name("own")).unwrap();
    let ran = ground.run(&format!("{RUN} -o own"));
    assert_eq!(ran.code, 0, "{ran}");
    assert!(real.join("report.html").exists());
    let shown = ground.run("report own -o DIR.md --format md");
    assert_eq!(shown.code, 0, "{shown}");
}

#[test]
fn no_output_goes_through_another_users_link() {
    let Some(ground) = Ground::new("no_output_goes_through_another_users_link") else { return };
    let ran = ground.run(&format!("{RUN} --no-html -o DIR"));
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(ground.run("pack DIR -o DIR.pack").code, 0);
    let pictures = ground.directory("pictures");
    let places = [("old", &ground.victim), ("new", &ground.made())];
    for (name, target) in places {
        ground.link(&ground.theirs.path().join(name), target);
    }
    ground.link(&ground.theirs.path().join("up"), ground.victim.parent().unwrap());
    let verbs = [
        "report DIR --format md -o PLACE",
        "report DIR --format csv -o PLACE",
        "compare DIR DIR --format md -o PLACE",
        "history DIR DIR --format md -o PLACE",
        "pack DIR --force -o PLACE",
        "plan start -s a=fake -s b=fake --write PLACE",
        "unpack DIR.pack -o PLACE",
        "run start -s a=fake -s b=fake --rounds 6 -o PLACE",
    ];
    for verb in verbs {
        for place in ["THEIRS/old", "THEIRS/new", "THEIRS/up/made", "THEIRS/up/victim"] {
            let ran = ground.run(&verb.replace("PLACE", place));
            assert_ne!(ran.code, 0, "{verb} {place}: {ran}");
            ground.is_intact(&ran);
        }
    }
    // Pictures have known names in a directory.
    let drawn = ground.run("report DIR --format svg -o DIR-drawn");
    assert_eq!(drawn.code, 0, "{drawn}");
    let directory = ground.dunnage.directory().with_file_name("run-drawn");
    let name = fs::read_dir(directory).unwrap().next().unwrap().unwrap().file_name();
    ground.link(&pictures.join(&name), &ground.victim);
    let ran = ground.run("report DIR --format svg -o THEIRS/pictures");
    assert_ne!(ran.code, 0, "{ran}");
    ground.is_intact(&ran);
    fs::remove_file(pictures.join(&name)).unwrap();
    assert_eq!(ground.run("report DIR --format svg -o THEIRS/pictures").code, 0);
    // A file of theirs is replaced, not written to, and gives no rights away.
    let file = ground.theirs.path().join("file");
    fs::write(&file, "theirs").unwrap();
    lchown(&file, Some(STRANGER), None).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(ground.run("report DIR --format md -o THEIRS/file").code, 0);
    let facts = fs::metadata(&file).unwrap();
    assert_eq!((facts.uid(), facts.mode() & 0o022), (0, 0));
}

#[test]
fn a_page_of_a_directory_that_was_exchanged_overwrites_nothing() {
    let Some(ground) = Ground::new("a_page_of_a_directory_that_was_exchanged_overwrites_nothing") else {
        return;
    };
    let ran = ground.run(&format!("{RUN} --no-html -o THEIRS/run"));
    assert_eq!(ran.code, 0, "{ran}");
    // The owner of the directory above puts one with the same files and a planted link in its place.
    let (run, own) = (ground.theirs.path().join("run"), ground.directory("copy"));
    for file in ["env.json", "plan.json", "samples.jsonl"] {
        fs::copy(run.join(file), own.join(file)).unwrap();
    }
    fs::rename(&run, ground.theirs.path().join("away")).unwrap();
    fs::rename(&own, &run).unwrap();
    ground.link(&run.join("report.html"), &ground.victim);
    let ran = ground.run("resume THEIRS/run");
    ground.is_intact(&ran);
    // What it holds can still be looked at.
    assert_eq!(ground.run("report THEIRS/run").code, 0);
}

#[test]
fn a_pipe_of_another_user_does_not_hold_up_a_report() {
    let Some(ground) = Ground::new("a_pipe_of_another_user_does_not_hold_up_a_report") else { return };
    assert_eq!(ground.run(&format!("{RUN} --no-html -o DIR")).code, 0);
    let pipe = ground.theirs.path().join("pipe");
    dunnage::sys::filesystem::make_node(&pipe, libc::S_IFIFO | 0o666, (0, 0)).unwrap();
    lchown(&pipe, Some(STRANGER), None).unwrap();
    let arguments = format!("report DIR --format md -o {}", pipe.display());
    let mut child = ground.dunnage.command(&arguments).stderr(std::process::Stdio::null()).spawn().unwrap();
    let ended = (0..200).find_map(|_| {
        std::thread::sleep(Duration::from_millis(50));
        child.try_wait().unwrap()
    });
    if ended.is_none() {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(ended.is_some_and(|status| !status.success()), "{ended:?}");
}

#[test]
fn a_pack_of_their_run_holds_nothing_that_a_link_of_theirs_leads_to() {
    let test = "a_pack_of_their_run_holds_nothing_that_a_link_of_theirs_leads_to";
    let Some(ground) = Ground::new(test) else { return };
    let secret = ground.victim.with_file_name("secret");
    fs::create_dir(&secret).unwrap();
    fs::write(secret.join("0-0-trace"), "only for root").unwrap();
    let ran = ground.run(&format!("{RUN} -o THEIRS/run"));
    assert_eq!(ran.code, 0, "{ran}");
    let theirs = ground.theirs.path().join("run");
    ground.link(&theirs.join("artefacts"), &secret);
    let refused = ground.run("pack THEIRS/run -o DIR.pack");
    assert!(refused.code == 1 && refused.stderr.contains("belongs to user 54321"), "{refused}");
    // The same of a single file; a link of root's own is followed.
    fs::remove_file(theirs.join("artefacts")).unwrap();
    fs::rename(theirs.join("plan.json"), secret.join("plan.json")).unwrap();
    ground.link(&theirs.join("plan.json"), &secret.join("plan.json"));
    for verb in ["report THEIRS/run", "pack THEIRS/run -o DIR.pack", "compare THEIRS/run THEIRS/run"] {
        let refused = ground.run(verb);
        assert!(refused.code == 1 && refused.stderr.contains("belongs to user 54321"), "{refused}");
    }
    fs::remove_file(theirs.join("plan.json")).unwrap();
    symlink(secret.join("plan.json"), theirs.join("plan.json")).unwrap();
    let ran = ground.run("report THEIRS/run");
    assert_eq!(ran.code, 0, "{ran}");
}

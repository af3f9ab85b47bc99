//! Clears leftovers of killed runs. It removes only what is in an abandoned journal or has dunnage's label, and nothing of a
//! run that is still alive.

use std::path::Path;

use anyhow::Result;

use crate::resource::journal::{self, Abandoned};
use crate::resource::{self, Found, Goes, Kind, Look, Record, Scope, orphan};
use crate::subject::{self, Broom, Place, context};
use crate::sys::remains::{self, Tokens};
use crate::sys::signals::Interrupts;

/// Removes what is in abandoned journals and returns a line about each thing. A journal whose things cannot all be removed
/// now, for example because a daemon is down, is kept for the next time.
pub fn abandoned(place: &Place) -> Result<Vec<String>> {
    let kinds = [resource::KINDS, subject::resources::KINDS].concat();
    clear_all(place, &kinds)
}

fn clear_all(place: &Place, kinds: &[&Kind]) -> Result<Vec<String>> {
    let mut told = Vec::new();
    for dead in journal::abandoned(&resource::journals(&place.state))? {
        told.extend(clear(place, kinds, dead)?);
    }
    for run in orphan::runs(&place.state) {
        let what = format!("what run {run} left, whose journal is lost");
        match orphan::remove(place, &run) {
            Ok(Found::Yes) => told.push(format!("removed {what}")),
            Ok(Found::No) => {}
            Err(why) => told.push(format!("could not remove {what}: {why}")),
        }
    }
    Ok(told)
}

/// What is in abandoned journals and still exists.
fn would_clear(place: &Place) -> Result<Vec<String>> {
    let kinds = [resource::KINDS, subject::resources::KINDS].concat();
    let mut told = Vec::new();
    for dead in journal::abandoned(&resource::journals(&place.state))? {
        let run = dead.run();
        let is_there = |record: &&Record| {
            let look = resource::kind_of(&kinds, record).map(|kind| kind.look);
            look.is_some_and(|look| !matches!(look(record, &Scope { place, run: &run }), Ok(Look::Gone)))
        };
        let there = dead.left.iter().filter(is_there);
        told.extend(
            there.map(|record| format!("would remove {} of run {run}", resource::shown(&kinds, record))),
        );
    }
    let lost = orphan::runs(&place.state).into_iter();
    told.extend(lost.map(|run| format!("would remove what run {run} left, whose journal is lost")));
    Ok(told)
}

/// How many containers of a run are removed at once: an engine's client waits most of the time.
const AT_ONCE: usize = 4;

fn clear(place: &Place, kinds: &[&Kind], dead: Abandoned) -> Result<Vec<String>> {
    let run = dead.run();
    let mut told = Vec::new();
    let mut stuck: Vec<(String, Vec<&Record>)> = Vec::new();
    let scope = Scope { place, run: &run };
    let goes_first =
        |record: &&Record| resource::kind_of(kinds, record).is_some_and(|kind| kind.goes == Goes::First);
    let (first, rest): (Vec<&Record>, Vec<&Record>) = dead.left.iter().partition(goes_first);
    let mut remove = |record, done| match done {
        Ok(Found::Yes) => told.push(format!("removed {} of run {run}", resource::shown(kinds, record))),
        Ok(Found::No) => {}
        Err(why) => match stuck.iter_mut().find(|(other, _)| *other == why) {
            Some((_, records)) => records.push(record),
            None => stuck.push((why, vec![record])),
        },
    };
    for record in first {
        remove(record, resource::undo(kinds, record, &scope));
    }
    wait_for_survivors(&run);
    for alike in rest.chunk_by(|one, next| one.kind == next.kind) {
        // A mount may be in another one.
        let at_once =
            if alike.iter().all(|one| one.kind == subject::resources::CONTAINERS) { AT_ONCE } else { 1 };
        for some in alike.chunks(at_once) {
            let done = std::thread::scope(|threads| {
                let scope = &scope;
                let undo = |record| threads.spawn(move || resource::undo(kinds, record, scope));
                let under_way: Vec<_> = some.iter().copied().map(undo).collect();
                under_way
                    .into_iter()
                    .map(|one| one.join().expect("a removal does not panic"))
                    .collect::<Vec<_>>()
            });
            some.iter().zip(done).for_each(|(record, done)| remove(record, done));
        }
    }
    told.extend(stuck.iter().map(|(why, records)| could_not_remove(kinds, &run, why, records)));
    // The run's directory belongs to the run by its path, so everything prepared in it goes too.
    if resource::is_word(&run) {
        let _ = resource::remove_tree(&resource::workspace(&place.state, &run));
    }
    if stuck.is_empty() {
        dead.finish()?;
    } else {
        told.push(format!(
            "hint: fix the cause, then run `dunnage sweep`; if the engine is gone for good, delete `{}`",
            dead.path.display()
        ));
    }
    Ok(told)
}

/// Waits for clients and monitors that outlived the run. They are recognised by the run's id in container names and in the
/// files that it gave to engines. Until they end, more things can appear or disappear. One that does not end is left to the
/// kind that removes its container.
fn wait_for_survivors(run: &str) {
    if let Ok(tokens) = Tokens::new([format!("dunnage-{run}-"), format!("runs/{run}/")]) {
        let interrupts = Interrupts::install().ok();
        let go_on = || interrupts.as_ref().is_none_or(|interrupts| !interrupts.asked());
        let _ = remains::outlive_processes(&tokens, &go_on);
    }
}

/// One line for all things with the same reason, naming the first: a daemon that is down keeps all of its things.
fn could_not_remove(kinds: &[&Kind], run: &str, why: &str, records: &[&Record]) -> String {
    let first = records.first().map_or(String::new(), |record| resource::shown(kinds, record));
    let more = match records.len() {
        0 | 1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    format!("could not remove {first}{more} of run {run}: {why}")
}

/// Removes everything in the broom's scope: leftovers of killed runs, what each kind of subject finds of them, and, if no
/// other dunnage is running, images and the unpacked image. Returns a line about each thing.
pub fn everything(place: &Place, mut broom: Broom) -> Result<Vec<String>> {
    let mut told = match (broom.containers, broom.dry) {
        (false, _) => Vec::new(),
        (true, true) => would_clear(place)?,
        (true, false) => abandoned(place)?,
    };
    // Runs with another state directory use the same images in engines.
    let mut user = broom.shared.then(|| user_of_images(&place.state, broom)).flatten();
    broom.shared &= user.is_none();
    // Topmost layer first, because a layer must go before the one that it depends on.
    for kind in subject::KINDS.iter().rev() {
        told.extend((kind.sweep)(place, broom));
    }
    if broom.shared {
        user = user_of_images(&place.state, broom);
    }
    if let Some(why) = user {
        told.push(format!("kept the images, because {why}, then run `dunnage sweep` again"));
    }
    if !broom.shared {
        return Ok(told);
    }
    let images = place.state.join("images");
    if images.exists() {
        let remove = || resource::remove_tree(&images);
        told.extend(broom.take(format!("`{}`", images.display()), remove));
    }
    if broom.dry {
        return Ok(told);
    }
    // Only if they are empty: other content may not be dunnage's.
    for name in ["runs", "journal"] {
        let _ = std::fs::remove_dir(place.state.join(name));
    }
    Ok(told)
}

/// What may still use the images, and how to end that: another dunnage, or the rest of a run. A dry run expects that it could
/// remove the rest of a killed run.
fn user_of_images(state: &Path, broom: Broom) -> Option<String> {
    if let Some(pid) = resource::another_dunnage() {
        return Some(format!("another dunnage is running as process {pid}: wait for its end or stop it"));
    }
    let entries = std::fs::read_dir(resource::journals(state)).into_iter().flatten().flatten();
    let mut runs = entries.filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_owned()));
    let run = runs.find(|run| !broom.dry || context::may_be_alive(state, run))?;
    Some(format!("run {run} is alive or has left something: wait for its end, or remove the rest"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::Keeps;

    #[test]
    fn what_stays_for_one_reason_is_told_in_one_line() {
        let kinds = subject::resources::KINDS;
        let container = |name: &str| subject::resources::container(&"docker", name);
        let [one, other] = ["dunnage-1", "dunnage-2"].map(container);
        let told = could_not_remove(kinds, "ab", "the daemon is away", &[&one]);
        assert_eq!(told, "could not remove `dunnage-1` (docker) of run ab: the daemon is away");
        let told = could_not_remove(kinds, "ab", "the daemon is away", &[&one, &other]);
        assert_eq!(told, "could not remove `dunnage-1` (docker) and 1 more of run ab: the daemon is away");
    }

    /// A kind that neither the journal nor the sweep knows: a file.
    static FILE: Kind = Kind {
        name: "file",
        goes: Goes::AfterClients,
        keeps: Keeps::Process,
        shown: |record| format!("the file `{}`", record.id),
        look: |record, scope| {
            let path = Path::new(&record.id);
            Ok(match (scope.holds(path), path.exists()) {
                (false, _) => Look::Foreign("it is elsewhere".into()),
                (true, false) => Look::Gone,
                (true, true) => Look::Ours,
            })
        },
        undo: |record, _| resource::unless_gone(std::fs::remove_file(&record.id)),
    };

    #[test]
    fn a_kind_in_the_registry_is_swept_and_one_that_is_not_stays() {
        let state = tempfile::tempdir().unwrap();
        let path = |name: &str| state.path().join(name);
        let place = Place {
            state: state.path().to_owned(),
            id: String::new(),
            executable: path("x"),
            rootfs: path("y"),
            reference: String::new(),
            digest: String::new(),
        };
        let journal = journal::Journal::begin(&path("journal"), "ab").unwrap();
        std::fs::create_dir_all(path("runs/ab")).unwrap();
        std::fs::write(path("foreign"), "").unwrap();
        let files = ["runs/ab/there", "runs/ab/not-made", "foreign"].map(&path);
        std::fs::write(&files[0], "").unwrap();
        for file in &files {
            let _ = journal
                .note(Record::new(&FILE, file.to_string_lossy()).with("colour", "red"), Keeps::Process)
                .unwrap();
        }
        drop(journal);
        let unknown = clear_all(&place, &[]).unwrap();
        let [cause, hint] = &unknown[..] else { panic!("{unknown:?}") };
        assert!(
            cause.ends_with("and 2 more of run ab: this version of dunnage does not know the kind `file`")
        );
        assert!(hint.ends_with(&format!("delete `{}`", path("journal/ab.jsonl").display())), "{hint}");
        // The run's own directory was removed with its content, so the file is made again.
        std::fs::create_dir_all(path("runs/ab")).unwrap();
        std::fs::write(&files[0], "").unwrap();
        let told = clear_all(&place, &[&FILE]).unwrap();
        let wrong = format!("could not remove the file `{}` of run ab: it is elsewhere", files[2].display());
        let removed = format!("removed the file `{}` of run ab", files[0].display());
        // The file that never existed must not be reported as removed.
        assert_eq!(told, [removed, wrong, hint.clone()]);
        assert_eq!((files[0].exists(), files[2].exists()), (false, true));
    }
}

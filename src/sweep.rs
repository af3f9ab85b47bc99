//! Clears what killed runs left. Only what is in an abandoned journal or carries our label is
//! touched, and nothing of a run that is still alive.

use std::path::Path;

use anyhow::Result;

use crate::outcome::FailureClass;
use crate::subject::{self, Company, Place, Spec, stage};
use crate::sys::journal::{self, Abandoned, Resource};
use crate::sys::remains::{self, Tokens};
use crate::sys::{clock, process};
use crate::units::Stamp;

/// How long the clients of a killed run may take to end by themselves. What they make is only
/// complete, and what they remove only gone, when they have.
const SURVIVORS: u64 = 10_000_000_000;

/// Removes what is in abandoned journals and says what that was. A journal with something in it
/// that cannot be removed now (a daemon that is away) stays for the next time.
pub fn abandoned(place: &Place) -> Result<Vec<String>> {
    let mut told = Vec::new();
    for dead in journal::abandoned(&stage::journals(&place.state))? {
        told.extend(clear(place, dead)?);
    }
    Ok(told)
}

fn clear(place: &Place, dead: Abandoned) -> Result<Vec<String>> {
    let run = dead.run();
    let mut told = Vec::new();
    let mut stuck: Vec<(String, Vec<&Resource>)> = Vec::new();
    // A service ends by itself only when it is told to, unlike the clients of the run.
    for resource in &dead.left {
        if let Resource::Service { program, argument } = resource
            && is_of_run(&place.state, &run, argument)
        {
            process::kill_clients(program, argument);
        }
    }
    wait_for_survivors(&run);
    for resource in &dead.left {
        match remove(place, &run, resource) {
            Ok(()) => told.push(format!("removed {} of run {run}", named(resource))),
            Err(why) => match stuck.iter_mut().find(|(other, _)| *other == why) {
                Some((_, resources)) => resources.push(resource),
                None => stuck.push((why, vec![resource])),
            },
        }
    }
    told.extend(stuck.iter().map(|(why, resources)| could_not_remove(&run, why, resources)));
    // The run's own directory is ours by its place; whatever was prepared there is gone with it.
    if is_word(&run) {
        let _ = std::fs::remove_dir_all(place.state.join("runs").join(&run));
    }
    if stuck.is_empty() {
        dead.finish()?;
    }
    Ok(told)
}

/// Waits for clients and monitors that outlived the run: container names and the files that it
/// gave to engines bear its id. One that does not end is the business of whoever removes its
/// container.
fn wait_for_survivors(run: &str) {
    let deadline = Stamp(clock::now().0 + SURVIVORS);
    if let Ok(tokens) = Tokens::new([format!("dunnage-{run}-"), format!("runs/{run}/")]) {
        let _ = remains::outlive_processes(&tokens, deadline);
    }
}

fn is_word(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric())
}

/// Whether a service listens where this run kept its things, and so is ours.
fn is_of_run(state: &Path, run: &str, argument: &str) -> bool {
    let directory = state.join("runs").join(run);
    is_word(run)
        && argument.strip_prefix("unix://").is_some_and(|path| Path::new(path).starts_with(directory))
}

fn named(resource: &Resource) -> String {
    match resource {
        Resource::Service { program, argument } => format!("the service `{} {argument}`", program.display()),
        Resource::Directory(path) => format!("`{}`", path.display()),
        Resource::Container { subject, name } => format!("`{name}` ({subject})"),
    }
}

/// Of several the first: a daemon that is away keeps all that it has, for one reason.
fn could_not_remove(run: &str, why: &str, resources: &[&Resource]) -> String {
    let first = resources.first().map_or(String::new(), |resource| named(resource));
    let more = match resources.len() {
        0 | 1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    format!("could not remove {first}{more} of run {run}: {why}")
}

fn remove(place: &Place, run: &str, resource: &Resource) -> Result<(), String> {
    match resource {
        // It was killed before everything else.
        Resource::Service { argument, .. } if is_of_run(&place.state, run, argument) => Ok(()),
        Resource::Service { .. } => Err("it does not listen where the run kept its things".into()),
        Resource::Directory(path) => remove_directory(&place.state, path),
        Resource::Container { subject, name } => {
            if !name.starts_with("dunnage-") {
                return Err("its name is not one of ours".into());
            }
            let spec = Spec::parse(subject).map_err(|error| error.to_string())?;
            let kind = subject::kind_of(&spec).map_err(|error| error.to_string())?;
            let built = (kind.build)(&spec, place).map_err(|why| why.reason)?;
            for client in built.facts().components.iter().take(1) {
                process::kill_clients(&client.path, name);
            }
            match built.remove(name) {
                Err(failure) if failure.class != FailureClass::Unsupported => Err(failure.to_string()),
                _ => Ok(()),
            }
        }
    }
}

/// A journal is a file that others could have written to: only what lies in our own state
/// directory is removed.
fn remove_directory(state: &Path, path: &Path) -> Result<(), String> {
    let inside = path.starts_with(state) && !path.components().any(|part| part.as_os_str() == "..");
    if !inside || path == state {
        return Err(format!("it does not lie in `{}`", state.display()));
    }
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.to_string()),
        _ => Ok(()),
    }
}

/// Removes everything of ours: what killed runs left, what each kind of subject finds of runs that are
/// no longer alive, images, and the unpacked image. Says what that was.
pub fn everything(place: &Place) -> Result<Vec<String>> {
    let mut told = abandoned(place)?;
    // Runs that keep their journals elsewhere use the same images in engines.
    let alone = living_runs(&place.state).is_empty() && !another_dunnage();
    let company = if alone { Company::Alone } else { Company::Others };
    // The farthest from the kernel first: what is above goes before what it stands on.
    for kind in subject::KINDS.iter().rev() {
        told.extend((kind.sweep)(place, company));
    }
    if company == Company::Others {
        told.push("left the images, since another dunnage is running".into());
        return Ok(told);
    }
    let images = place.state.join("images");
    if images.exists() && std::fs::remove_dir_all(&images).is_ok() {
        told.push(format!("removed `{}`", images.display()));
    }
    // Only while they are empty: what is in them is not known to be ours to remove.
    for name in ["runs", "journal"] {
        let _ = std::fs::remove_dir(place.state.join(name));
    }
    Ok(told)
}

/// Runs whose journals are there and locked by somebody.
fn living_runs(state: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(stage::journals(state)).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_owned())).collect()
}

fn another_dunnage() -> bool {
    let own = std::process::id() as i32;
    process::named(&["dunnage"]).iter().any(|other| other.pid != own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_for_one_reason_is_told_in_one_line() {
        let container = |name: &str| Resource::Container { subject: "docker".into(), name: name.into() };
        let [one, other] = ["dunnage-1", "dunnage-2"].map(container);
        let told = could_not_remove("ab", "the daemon is away", &[&one]);
        assert_eq!(told, "could not remove `dunnage-1` (docker) of run ab: the daemon is away");
        let told = could_not_remove("ab", "the daemon is away", &[&one, &other]);
        assert_eq!(told, "could not remove `dunnage-1` (docker) and 1 more of run ab: the daemon is away");
    }
}

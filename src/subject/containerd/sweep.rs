//! Removes what killed runs left in containerd: labelled containers; then, if no run is alive, unlabelled
//! things in dunnage's namespace with dunnage's names, labelled images, and the namespace itself once it is
//! empty. What other programs put into the namespace stays, and the namespace with it.

use serde_json::Value;

use super::super::engine::{RUN_LABEL, STATE_LABEL};
use super::super::{Broom, Place, Unavailable, context, on_path};
use super::ctr::{Ctr, NAMESPACE};
use super::{SOCKETS, address};
use crate::image::archive::IMAGE_LABEL;
use crate::image::{EXECUTABLE, is_ours};
use crate::outcome::Failure;
use crate::resource::{self, Found};
use crate::sys::clock;
use crate::units::Stamp;

/// How long garbage collection may take, in nanoseconds.
const COLLECTED_WITHIN: u64 = 2_000_000_000;
const SNAPSHOTTERS: [&str; 3] = ["overlayfs", "native", "erofs"];
/// The runtime's state directory, which has one directory for each namespace.
const RUNTIME_STATE: &str = "/run/containerd/runc";

/// Sweeps every containerd on a usual socket.
pub fn sweep(place: &Place, broom: Broom) -> Vec<String> {
    let Some(program) = on_path("ctr") else { return Vec::new() };
    let own = address(None).ok();
    let mut addresses: Vec<_> = own.into_iter().chain(SOCKETS.map(str::to_owned)).collect();
    addresses.sort();
    addresses.dedup();
    let mut told = Vec::new();
    for address in addresses.iter().filter_map(|socket| address(Some(socket)).ok()) {
        let ctr = Ctr::new(program.clone(), &address);
        told.extend(
            one(&ctr, place, broom)
                .unwrap_or_else(|why| vec![format!("cannot sweep containerd: {}", why.reason)]),
        );
    }
    told
}

fn one(ctr: &Ctr, place: &Place, broom: Broom) -> Result<Vec<String>, Unavailable> {
    if !ctr.lines(&["namespaces", "ls", "--quiet"])?.iter().any(|name| name == NAMESPACE) {
        return Ok(Vec::new());
    }
    let mut told = Vec::new();
    let mut staying = Vec::new();
    for container in ctr.lines(&["containers", "ls", "--quiet"])? {
        match run_of(ctr, &container, place) {
            // One of dunnage's names is not enough; a user may have chosen the same one.
            None => staying.push(container),
            Some(run) if context::may_be_alive(&place.state, &run) => staying.push(container),
            Some(_) if broom.containers => {
                let what = format!("container `{container}` from containerd");
                told.extend(broom.take(what, || removed(ctr, &container)));
            }
            Some(_) => staying.push(container),
        }
    }
    if !broom.shared {
        return Ok(told);
    }
    if staying.is_empty() {
        told.extend(loose_ends(ctr, broom)?);
    }
    told.extend(images(ctr, broom)?);
    if broom.dry {
        return Ok(told);
    }
    match remove_namespace(ctr, staying.is_empty()) {
        Ok(_) => {
            told.push(format!("removed namespace `{NAMESPACE}` from containerd"));
            // Only while it is empty: what is in it may not be dunnage's.
            let _ = std::fs::remove_dir(format!("{RUNTIME_STATE}/{NAMESPACE}"));
        }
        Err(why) => {
            let holds =
                if staying.is_empty() { why.reason } else { format!("it holds `{}`", staying.join("`, `")) };
            told.push(format!("namespace `{NAMESPACE}` stays in containerd: {holds}"));
        }
    }
    Ok(told)
}

/// Removes the namespace. What was just deleted from it may still have to be garbage collected.
fn remove_namespace(ctr: &Ctr, may_be_empty_soon: bool) -> Result<String, Unavailable> {
    let deadline = Stamp(clock::now().0 + COLLECTED_WITHIN);
    loop {
        match ctr.insist(&["namespaces", "remove", NAMESPACE]) {
            Err(why) if may_be_empty_soon && why.reason.contains("must be empty") => {
                if clock::now() > deadline {
                    return Err(why);
                }
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
            done => return done,
        }
    }
}

/// The run of a container that this state directory's dunnage made, by its name, its labels and its program.
fn run_of(ctr: &Ctr, container: &str, place: &Place) -> Option<String> {
    let info: Value = serde_json::from_str(&ctr.ask(&["containers", "info", container]).ok()?).ok()?;
    let run = info["Labels"][RUN_LABEL].as_str()?;
    let is_ours = !place.id.is_empty()
        && info["Labels"][STATE_LABEL] == place.id
        && info["Spec"]["process"]["args"][0] == EXECUTABLE
        && resource::is_name_of(run, container);
    is_ours.then(|| run.to_owned())
}

/// Removes a container with its snapshot, for every snapshotter.
fn removed(ctr: &Ctr, name: &str) -> Result<Found, Failure> {
    let all = snapshotters(ctr)?.into_iter().map(|snapshotter| ctr.remove(name, Some(snapshotter)));
    all.collect::<Result<Vec<_>, _>>().map(|all| Found::when(all.contains(&Found::Yes)))
}

/// The snapshotters that dunnage uses and this daemon has.
fn snapshotters(ctr: &Ctr) -> Result<Vec<&'static str>, Unavailable> {
    let known = ctr.snapshotters()?;
    let serves = |name: &&str| known.iter().any(|(own, state)| own == name && state == "ok");
    Ok(SNAPSHOTTERS.into_iter().filter(serves).collect())
}

/// What a client leaves that was killed before its container was recorded: the snapshot, and the lease that
/// keeps it. Only if the namespace has no container that they could belong to.
fn loose_ends(ctr: &Ctr, broom: Broom) -> Result<Vec<String>, Unavailable> {
    let mut told = Vec::new();
    for snapshotter in snapshotters(ctr)? {
        let listed = ctr.lines(&["snapshots", "--snapshotter", snapshotter, "ls"]).unwrap_or_default();
        let keys = listed.iter().filter_map(|line| line.split_whitespace().next());
        for key in keys.filter(|key| key.starts_with("dunnage-")) {
            let removed = broom.take(format!("snapshot `{key}` from containerd"), || {
                Ok::<_, Failure>(ctr.remove(key, Some(snapshotter)).unwrap_or(Found::No))
            });
            told.extend(removed);
        }
    }
    for lease in ctr.lines(&["leases", "ls", "--quiet"])? {
        let what = format!("lease `{lease}` from containerd");
        told.extend(broom.take(what, || ctr.removed(&["leases", "delete", &lease])));
    }
    Ok(told)
}

/// Removes labelled images, and waits until what only they referred to is garbage collected.
fn images(ctr: &Ctr, broom: Broom) -> Result<Vec<String>, Unavailable> {
    let (label, value) = IMAGE_LABEL;
    let filter = format!("labels.\"{label}\"=={value}");
    let all = ctr.lines(&["images", "ls", "--quiet", &filter])?.into_iter();
    let removed = all.filter(|image| is_ours(image)).filter_map(|image| {
        let what = format!("image `{image}` from containerd");
        broom.take(what, || ctr.removed(&["images", "delete", "--sync", &image]))
    });
    Ok(removed.collect())
}

//! What `resume` needs of a run and no other verb reads: the values of variables, and the proof that this user began the run on
//! this machine. A plan names programs and commands, and they are started only if no other user can have written it.
//!
//! The proof is a digest of plan and values with a key that only the state directory has. It holds for a run directory that was
//! moved or restored from a backup, and for none that was unpacked or that another user made.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{MOST_TEXT, PLAN, Present, Recorded, Writer, part_of, read, source};
use crate::exit::usage;
use crate::report::text::in_shell;
use crate::sys::directory::{Access, Directory};
use crate::variables::Variables;

/// Its file in the run directory, which is not part of packs.
pub const FILE: &str = "resume.json";
/// The key's file in the state directory.
const KEY: &str = "key";

type Key = [u8; 32];

/// The file's content.
#[derive(Serialize, Deserialize)]
struct Content {
    proof: String,
    variables: Variables,
}

/// The proof for a plan and values, hexadecimal.
fn proof(key: &Key, plan: &[u8], variables: &Variables) -> Result<String> {
    let variables = Sha256::digest(serde_json::to_vec(variables)?);
    // The parts are of fixed length, so that no other plan and values give the same text.
    let all = Sha256::new().chain_update(key).chain_update(Sha256::digest(plan)).chain_update(variables);
    Ok(format!("{:x}", all.finalize()))
}

/// Lets a run that was just begun be resumed by its user, who alone can read the values of its variables.
pub fn allow(writer: &Writer, state: &Path, variables: &Variables) -> Result<()> {
    let (place, mut plan) = (writer.place(), Vec::new());
    let context = || format!("cannot write `{}`", place.path().join(FILE).display());
    place
        .open_own(PLAN, Access::Reading)
        .and_then(|mut file| file.read_to_end(&mut plan))
        .with_context(context)?;
    let key = key(state).with_context(|| format!("cannot keep a key in `{}`", state.display()))?;
    let content = Content { proof: proof(&key, &plan, variables)?, variables: variables.clone() };
    let content = serde_json::to_vec(&content)?;
    place.create(FILE, 0o600).and_then(|mut file| file.write_all(&content)).with_context(context)
}

/// The key of a state directory, made when it is first needed.
fn key(state: &Path) -> io::Result<Key> {
    match known_key(state) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        known => return known,
    }
    let mut key = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut key)?;
    let mut part = part_of(&state.join(KEY))?;
    part.make_private()?;
    part.file().write_all(&key)?;
    match part.persist(Present::Keep) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => known_key(state),
        made => made.map(|()| key),
    }
}

fn known_key(state: &Path) -> io::Result<Key> {
    let mut key = [0; 32];
    Directory::open(state)?.open_own(KEY, Access::Reading)?.read_exact(&mut key)?;
    Ok(key)
}

/// Reads a run whose programs this user may start again, with the values of its variables. All others are refused.
pub fn load(directory: &Path, state: &Path) -> Result<(Recorded, Variables)> {
    let source = source::directory(directory)?;
    let content = content_of(directory).map_err(|why| refused(directory, &why.to_string()))?;
    let known = known_key(state).ok().map(|key| proof(&key, &source.plan, &content.variables)).transpose()?;
    if known.as_deref() != Some(content.proof.as_str()) {
        return Err(refused(
            directory,
            &format!("its plan was not made with the state directory `{}`", state.display()),
        ));
    }
    Ok((read(&source)?, content.variables))
}

fn refused(directory: &Path, why: &str) -> anyhow::Error {
    let (shown, typed) = (directory.display(), in_shell([directory.to_string_lossy()]));
    usage(format!(
        "cannot resume `{shown}`: {why}; only a run that you began on this machine may start the programs that it names\n\nhint: \
         look at it with `dunnage report {typed}`, or start a new run"
    ))
}

/// The values of a run's variables; none if this user may not read them, as those of a pack.
pub fn variables(run: &Path) -> Option<Variables> {
    content_of(run).ok().map(|content| content.variables)
}

fn content_of(directory: &Path) -> io::Result<Content> {
    let place = Directory::open(directory)?;
    place.check()?;
    let mut text = Vec::new();
    let file = match place.open_own(FILE, Access::Reading) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(io::Error::new(error.kind(), format!("it has no `{FILE}`")));
        }
        opened => opened?,
    };
    file.take(MOST_TEXT).read_to_end(&mut text)?;
    serde_json::from_slice(&text).map_err(|_| io::Error::other(format!("its `{FILE}` is damaged")))
}

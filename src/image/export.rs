//! The root of an image not made by dunnage, on disk: an engine's export, one tar, unpacked for subjects that
//! need no engine.
//!
//! The directory is content-addressed, `<state>/images/export-<id of the image>/rootfs`, with the image's
//! configuration next to it in `image.json`. It is a cache that all runs share and none changes: programs run
//! in a copy or on an overlay. An export has the files as a container would find them, so there are no layers
//! to merge and no whiteouts.
//!
//! Deliberately absent: engines (a subject asks one for the tar), and `fsync`: a root whose number of entries
//! or bytes differs from the recorded one is made again.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, lchown};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use tar::{Archive, Entry, EntryType};

use super::layered::GoOn;
use super::rootfs::{absolute, cached, make_directory, make_private};
use crate::sys::{descriptors, filesystem, raw};

/// The image's configuration for programs that run in it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Config {
    /// Its id in the engine that held it, in hexadecimal.
    pub id: String,
    /// `NAME=value`.
    pub environment: Vec<String>,
    /// The working directory of programs; the root if not set.
    pub directory: String,
    /// The user that programs run as; empty for root.
    pub user: String,
    /// A value of Go's `GOARCH`.
    pub architecture: String,
}

/// An unpacked image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// The absolute path of the root directory, which must not be changed.
    pub root: PathBuf,
    /// The image's configuration.
    pub config: Config,
}

/// The content of `image.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Written {
    config: Config,
    content: Content,
    lost: Vec<String>,
}

/// The counted content of a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Content {
    entries: u64,
    bytes: u64,
}

impl Config {
    /// Whether its programs run as root.
    pub fn is_root(&self) -> bool {
        let (user, group) = self.user.split_once(':').unwrap_or((&self.user, ""));
        ["", "0", "root"].contains(&user) && ["", "0", "root"].contains(&group)
    }

    /// Whether its programs run on this machine.
    pub fn is_for_this_machine(&self) -> bool {
        self.architecture.is_empty() || self.architecture == super::archive::architecture()
    }
}

/// The name of its directory among the images.
fn name_of(id: &str) -> Result<String> {
    let hexadecimal = id.len() >= 12 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    ensure!(hexadecimal, "`{id}` is not the id of an image");
    Ok(format!("export-{id}"))
}

/// The image in this directory, if it is complete.
fn whole(place: &Path) -> Option<Export> {
    let written: Written = serde_json::from_slice(&fs::read(place.join("image.json")).ok()?).ok()?;
    let root = place.join("rootfs");
    (content(&root).ok()? == written.content).then_some(Export { root, config: written.config })
}

/// The image with this id, if it is unpacked and complete under the directory `state`.
pub fn find(state: &Path, id: &str) -> Result<Option<Export>> {
    Ok(whole(&absolute(state)?.join("images").join(name_of(id)?)))
}

/// Unpacks the tar of an exported image, unless that has been done already, and reports what could not be
/// kept.
pub fn unpack(state: &Path, config: &Config, tar: &Path, go_on: GoOn<'_>) -> Result<(Export, Vec<String>)> {
    let mut lost = Vec::new();
    let place = cached(state, &name_of(&config.id)?, &|place| whole(place).is_some(), go_on, |fresh| {
        lost = write(fresh, config, tar, go_on)?;
        Ok(())
    })?;
    Ok((Export { root: place.join("rootfs"), config: config.clone() }, lost))
}

fn write(place: &Path, config: &Config, tar: &Path, go_on: GoOn<'_>) -> Result<Vec<String>> {
    make_private(place)?;
    let root = place.join("rootfs");
    make_directory(&root)?;
    let file = File::open(tar).with_context(|| format!("cannot read `{}`", tar.display()))?;
    let lost = descriptors::apart(|| fill(&root, io::BufReader::with_capacity(1 << 20, file), go_on))?;
    let lost = lost.into_iter().map(|(what, count)| format!("{count} × {what}")).collect();
    let content = content(&root).with_context(|| format!("cannot list `{}`", root.display()))?;
    let written = Written { config: config.clone(), content, lost };
    let path = place.join("image.json");
    fs::write(&path, serde_json::to_vec(&written)?)
        .with_context(|| format!("cannot write `{}`", path.display()))?;
    Ok(written.lost)
}

fn content(root: &Path) -> io::Result<Content> {
    let mut all = Content::default();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let facts = entry.metadata()?;
            all.entries += 1;
            if facts.is_dir() {
                open.push(entry.path());
            } else if facts.is_file() {
                all.bytes += facts.len() / facts.nlink().max(1);
            }
        }
    }
    Ok(all)
}

/// Fills a root, and reports what could not be kept, with counts.
fn fill(root: &Path, tar: impl Read, go_on: GoOn<'_>) -> Result<BTreeMap<String, usize>> {
    let mut archive = Archive::new(tar);
    archive.set_preserve_permissions(true);
    // All files of an ordinary user's image belong to that user, who is root inside.
    archive.set_preserve_ownerships(raw::user_and_group().0 == 0);
    archive.set_overwrite(false);
    let mut lost = BTreeMap::new();
    let mut put = |mut entry| {
        let name = entry_name(&entry);
        put(root, &name, &mut entry, &mut lost).with_context(|| format!("cannot unpack `{}`", name.display()))
    };
    let mut directories = Vec::new();
    for entry in archive.entries().context("this is not a tar")? {
        ensure!(go_on(), "interrupted");
        let entry = entry.context("the tar is damaged")?;
        match entry.header().entry_type().is_dir() {
            true => directories.push(entry),
            false => put(entry)?,
        }
    }
    // After everything in them and deepest first, since a mode may make a directory inaccessible.
    directories.into_iter().rev().try_for_each(put)?;
    Ok(lost)
}

fn entry_name(entry: &Entry<'_, impl Read>) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(&entry.path_bytes()))
}

/// Unpacks one entry. Nothing can escape from the root: neither `..` nor a link that an earlier entry has
/// made.
fn put(
    root: &Path,
    name: &Path,
    entry: &mut Entry<'_, impl Read>,
    lost: &mut BTreeMap<String, usize>,
) -> Result<()> {
    let mut lose = |what: String| *lost.entry(what).or_default() += 1;
    let kind = entry.header().entry_type();
    let extended = extended_attributes(entry)?;
    ensure!(entry.unpack_in(root)?, "its path is outside the image");
    if kind.is_hard_link() || kind.is_pax_global_extensions() {
        return Ok(());
    }
    let path = root.join(name.strip_prefix("/").unwrap_or(name));
    let header = entry.header();
    if raw::user_and_group().0 != 0 && (header.uid()?, header.gid()?) != (0, 0) {
        lose("an owner other than root, which only root can set".to_owned());
    }
    let node = match kind {
        EntryType::Char => Some(libc::S_IFCHR),
        EntryType::Block => Some(libc::S_IFBLK),
        EntryType::Fifo => Some(libc::S_IFIFO),
        _ => None,
    };
    if let Some(kind) = node {
        // The library makes plain files instead of nodes.
        let facts = path.metadata()?;
        fs::remove_file(&path)?;
        // Empty in archives that do not have device numbers.
        let part = |number: io::Result<Option<u32>>| number.ok().flatten().unwrap_or(0);
        let device = (part(header.device_major()), part(header.device_minor()));
        match filesystem::make_node(&path, kind | facts.mode() & 0o7777, device) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                lose("a device node, which only root can make".to_owned());
                return Ok(());
            }
            made => made?,
        }
        lchown(&path, Some(facts.uid()), Some(facts.gid()))?;
        fs::set_permissions(&path, facts.permissions())?;
    }
    if kind.is_dir() {
        filesystem::set_modified(&path, header.mtime()?)?;
    }
    for (name, value) in extended {
        if let Err(error) = filesystem::set_attribute(&path, &name, &value) {
            lose(format!("the attribute `{name}` ({error})"));
        }
    }
    Ok(())
}

/// Extended attributes, as written by GNU tar and Go's library.
fn extended_attributes(entry: &mut Entry<'_, impl Read>) -> Result<Vec<(String, Vec<u8>)>> {
    let Some(records) = entry.pax_extensions()? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for record in records {
        let record = record?;
        if let Some(name) = record.key().ok().and_then(|key| key.strip_prefix("SCHILY.xattr.")) {
            found.push((name.to_owned(), record.value_bytes().to_vec()));
        }
    }
    Ok(found)
}

/// The longest chain of links.
const LINKS: usize = 40;

/// A path inside a root, with every link resolved as for a process in that root: relative to it, and never
/// outside it. Missing parts are kept unchanged.
pub fn resolve(root: &Path, inside: &Path) -> io::Result<PathBuf> {
    let mut done = PathBuf::new();
    let mut ahead: Vec<PathBuf> = vec![inside.to_owned()];
    let mut links = 0;
    while let Some(next) = ahead.pop() {
        let mut parts = next.components();
        let Some(part) = parts.next() else { continue };
        ahead.push(parts.as_path().to_owned());
        match part {
            Component::RootDir => done.clear(),
            Component::ParentDir => drop(done.pop()),
            Component::CurDir | Component::Prefix(_) => {}
            Component::Normal(name) => match fs::read_link(root.join(&done).join(name)) {
                Ok(target) => {
                    links += 1;
                    if links > LINKS {
                        return Err(io::Error::from_raw_os_error(libc::ELOOP));
                    }
                    ahead.push(target);
                }
                Err(_) => done.push(name),
            },
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests;

//! The root of somebody else's image on disk: what an engine exports as one tar, unpacked for subjects
//! that need no engine.
//!
//! The directory is content-addressed, `<state>/images/export-<id of the image>/rootfs`, with what the
//! image says of itself beside it in `image.json`. It is a cache, shared by all runs and altered by none:
//! what runs in it runs in a copy or under an overlay. An export holds the files as a container would
//! find them, so there are no layers to merge and no whiteouts.
//!
//! Deliberately absent: engines (a subject asks one for the tar), and `fsync`: a root whose count of
//! entries or bytes is not the one written down is made again.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, lchown, symlink};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use tar::{Archive, Entry, EntryType};

use super::layered::GoOn;
use super::rootfs::{lock, make_directories, make_directory, remove};
use crate::sys::{filesystem, raw};

/// What an image says about the programs that run in it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Config {
    /// Its id in the engine that held it, hexadecimal.
    pub id: String,
    /// `NAME=value`.
    pub environment: Vec<String>,
    /// Where programs start; the root where it says nothing.
    pub directory: String,
    /// As whom programs run; empty for root.
    pub user: String,
    /// In the words of Go's `GOARCH`.
    pub architecture: String,
}

/// An image unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    root: PathBuf,
    /// What the image says of itself.
    pub config: Config,
}

/// What stands in `image.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Written {
    config: Config,
    content: Content,
    lost: Vec<String>,
}

/// What is in a root, as far as it is counted.
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

impl Export {
    /// The absolute path of the root directory. Leave it as it is.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

fn place_of(state: &Path, id: &str) -> Result<PathBuf> {
    let hexadecimal = id.len() >= 12 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    ensure!(hexadecimal, "`{id}` is not the id of an image");
    let state =
        std::path::absolute(state).with_context(|| format!("cannot make `{}` absolute", state.display()))?;
    Ok(state.join("images").join(format!("export-{id}")))
}

/// The image with this id, if it lies unpacked and whole under the directory `state`.
pub fn find(state: &Path, id: &str) -> Result<Option<Export>> {
    let place = place_of(state, id)?;
    let whole = || -> Option<Export> {
        let written: Written = serde_json::from_slice(&fs::read(place.join("image.json")).ok()?).ok()?;
        let root = place.join("rootfs");
        (content(&root).ok()? == written.content && written.config.id == id)
            .then_some(Export { root, config: written.config })
    };
    Ok(whole())
}

/// Unpacks the tar of an exported image, and says what of it could not be kept. It is made beside its
/// place and renamed; what a failed call has made is removed. One that is there already is used.
pub fn unpack(state: &Path, config: &Config, tar: &Path, go_on: GoOn<'_>) -> Result<(Export, Vec<String>)> {
    let place = place_of(state, &config.id)?;
    let images = place.parent().expect("it lies in a directory of images").to_owned();
    make_directories(&images)?;
    let _lock = lock(&images)?;
    if let Some(there) = find(state, &config.id)? {
        return Ok((there, Vec::new()));
    }
    let fresh = place.with_extension("new");
    remove(&fresh)?;
    remove(&place)?;
    let lost = write(&fresh, config, tar, go_on).inspect_err(|_| {
        let _ = remove(&fresh);
    })?;
    fs::rename(&fresh, &place)
        .with_context(|| format!("cannot rename `{}` to `{}`", fresh.display(), place.display()))?;
    Ok((Export { root: place.join("rootfs"), config: config.clone() }, lost))
}

fn write(place: &Path, config: &Config, tar: &Path, go_on: GoOn<'_>) -> Result<Vec<String>> {
    make_directory(place)?;
    let root = place.join("rootfs");
    make_directory(&root)?;
    let file = File::open(tar).with_context(|| format!("cannot read `{}`", tar.display()))?;
    let mut unpacking = Unpacking { root: &root, directories: Vec::new(), lost: BTreeMap::new() };
    unpacking.all(io::BufReader::with_capacity(1 << 20, file), go_on)?;
    let lost = unpacking.lost.into_iter().map(|(what, count)| format!("{count} × {what}")).collect();
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

/// A directory's owner, mode and time, which are set when nothing more is written into it.
struct Directory {
    path: PathBuf,
    attributes: Attributes,
}

#[derive(Debug, Clone, Copy)]
struct Attributes {
    owner: (u32, u32),
    mode: u32,
    modified: u64,
}

struct Unpacking<'a> {
    root: &'a Path,
    directories: Vec<Directory>,
    /// What could not be kept, and how often.
    lost: BTreeMap<String, usize>,
}

impl Unpacking<'_> {
    fn all(&mut self, tar: impl Read, go_on: GoOn<'_>) -> Result<()> {
        let mut archive = Archive::new(tar);
        for entry in archive.entries().context("this is not a tar")? {
            ensure!(go_on(), "interrupted");
            let mut entry = entry.context("the tar is damaged")?;
            let name = entry.path_bytes().into_owned();
            let name = Path::new(OsStr::from_bytes(&name)).to_owned();
            self.one(&mut entry, &name).with_context(|| format!("cannot unpack `{}`", name.display()))?;
        }
        // The deepest first, since a mode may close the way.
        for directory in std::mem::take(&mut self.directories).iter().rev() {
            self.dress(&directory.path, directory.attributes)
                .with_context(|| format!("cannot unpack `{}`", directory.path.display()))?;
        }
        Ok(())
    }

    fn one(&mut self, entry: &mut Entry<'_, impl Read>, name: &Path) -> Result<()> {
        let kind = entry.header().entry_type();
        if kind.is_pax_global_extensions() {
            return Ok(());
        }
        let extended = extended_attributes(entry)?;
        let header = entry.header();
        let number = |value: io::Result<u64>| value.ok().and_then(|value| u32::try_from(value).ok());
        let attributes = Attributes {
            owner: (number(header.uid()).unwrap_or(0), number(header.gid()).unwrap_or(0)),
            mode: header.mode()? & 0o7777,
            modified: header.mtime().unwrap_or(0),
        };
        // Left empty by those who write no device.
        let part = |number: io::Result<Option<u32>>| number.ok().flatten().unwrap_or(0);
        let device = (part(header.device_major()), part(header.device_minor()));
        let Some(path) = self.place(name)? else {
            // The root itself.
            self.directories.push(Directory { path: self.root.to_owned(), attributes });
            return Ok(());
        };
        let target = || -> Result<PathBuf> {
            let bytes = entry.link_name_bytes().context("a link to nothing")?;
            Ok(PathBuf::from(OsStr::from_bytes(&bytes)))
        };
        match kind {
            EntryType::Directory => {
                if !fs::symlink_metadata(&path).is_ok_and(|facts| facts.is_dir()) {
                    make_directory(&path)?;
                }
                self.directories.push(Directory { path: path.clone(), attributes });
            }
            EntryType::Symlink => {
                symlink(target()?, &path)?;
                self.own(&path, attributes.owner)?;
            }
            EntryType::Link => {
                let target = self.place(&target()?)?.context("a link to the root")?;
                fs::hard_link(target, &path)?;
                return Ok(());
            }
            EntryType::Char | EntryType::Block | EntryType::Fifo => {
                let of_kind = match kind {
                    EntryType::Char => libc::S_IFCHR,
                    EntryType::Block => libc::S_IFBLK,
                    _ => libc::S_IFIFO,
                };
                match filesystem::make_node(&path, of_kind | attributes.mode, device) {
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                        self.lose("a device node that only root may make");
                        return Ok(());
                    }
                    made => made?,
                }
                self.own(&path, attributes.owner)?;
                fs::set_permissions(&path, Permissions::from_mode(attributes.mode))?;
            }
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
                io::copy(entry, &mut file)?;
                drop(file);
                self.dress(&path, attributes)?;
            }
            other => bail!("an entry of the unknown kind {other:?}"),
        }
        for (name, value) in extended {
            if let Err(error) = filesystem::set_attribute(&path, &name, &value) {
                self.lose(&format!("the attribute `{name}` ({error})"));
            }
        }
        Ok(())
    }

    /// Where an entry goes; none for the root. Nothing leads out of it: neither `..` nor a link that an
    /// earlier entry has made.
    fn place(&self, name: &Path) -> Result<Option<PathBuf>> {
        let mut path = self.root.to_owned();
        let mut parts =
            name.components().filter(|part| !matches!(part, Component::CurDir | Component::RootDir));
        let mut next = parts.next();
        if next.is_none() {
            return Ok(None);
        }
        while let Some(part) = next {
            let Component::Normal(part) = part else { bail!("its name leads out of the image") };
            path.push(part);
            next = parts.next();
            if next.is_some() {
                match fs::symlink_metadata(&path) {
                    Ok(facts) => ensure!(facts.is_dir(), "`{}` is no directory", path.display()),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => make_directory(&path)?,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(Some(path))
    }

    fn lose(&mut self, what: &str) {
        *self.lost.entry(what.to_owned()).or_default() += 1;
    }

    /// Files of an ordinary user's image are all the user's own, who is root inside.
    fn own(&mut self, path: &Path, (user, group): (u32, u32)) -> Result<()> {
        if raw::user_and_group().0 != 0 {
            if (user, group) != (0, 0) {
                self.lose("an owner other than root, which only root may set");
            }
            return Ok(());
        }
        Ok(lchown(path, Some(user), Some(group))?)
    }

    fn dress(&mut self, path: &Path, attributes: Attributes) -> Result<()> {
        self.own(path, attributes.owner)?;
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(attributes.modified);
        File::open(path).and_then(|file| file.set_modified(time))?;
        // The last, since a change of owner takes the bits for another identity away.
        Ok(fs::set_permissions(path, Permissions::from_mode(attributes.mode))?)
    }
}

/// Extended attributes, as GNU tar and Go's write them.
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

/// How many links may lead on to one another.
const LINKS: usize = 40;

/// A path inside a root, with every link on the way followed as a process in that root would: relative to
/// it, and never out of it. What is not there is kept as it is.
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

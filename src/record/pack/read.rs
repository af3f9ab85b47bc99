//! Takes a pack apart without trusting it: whoever sent it may have made anything. Only plain files with the
//! names that a run has are taken, in their order and each once, with the lengths and sums that the first entry
//! announces; so nothing can lead outside, be a link or a device, or overwrite another. What it unpacks to is
//! counted while it is unpacked.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use flate2::bufread::GzDecoder;
use sha2::{Digest, Sha256};
use tar::Archive;

use super::super::{ENVIRONMENT, PILOT, PLAN, SAMPLES};
use super::{FORMAT_NAME, Listed, MANIFEST, Manifest, VERSION};
use crate::outcome::Artefact;

/// The largest run that a plan allows, twenty million samples of some 400 bytes each.
const MOST_BYTES: u64 = 8 << 30;
/// Samples shrink to a tenth or less; the most that this compression can do at all is a thousandth.
const MOST_TIMES: u64 = 200;
/// Below this the proportion says nothing.
const SMALL: u64 = 1 << 20;
/// Environment, plan and first entry are read into memory.
const MOST_TEXT: u64 = 64 << 20;

/// A run out of a pack: two small files, and the samples in a file that has no name anymore.
pub struct Unpacked {
    /// What `env.json` holds.
    pub environment: Vec<u8>,
    /// What `plan.json` holds.
    pub plan: Vec<u8>,
    /// `samples.jsonl`.
    pub samples: File,
}

/// Unpacks into a directory, which must be empty or not there yet. What is not complete in the end is not there.
pub fn unpack(path: &Path, directory: &Path) -> Result<()> {
    super::super::check_empty(directory)?;
    let name = directory.file_name().with_context(|| format!("`{}` is no name", directory.display()))?;
    let part = directory.with_file_name(format!(".{}.{}.part", name.display(), std::process::id()));
    let context = |path: &Path| format!("cannot make `{}`", path.display());
    if let Some(above) = directory.parent().filter(|above| !above.as_os_str().is_empty()) {
        fs::create_dir_all(above).with_context(|| context(above))?;
    }
    fs::create_dir(&part).with_context(|| context(&part))?;
    let part = Part(part);
    walk(path, &mut |name, bytes| {
        // Names come from a list of ours; the only directory among them is the pilot's.
        let place = part.0.join(name);
        if let Some(above) = place.parent() {
            fs::create_dir_all(above).with_context(|| context(above))?;
        }
        let mut file =
            OpenOptions::new().write(true).create_new(true).open(&place).with_context(|| context(&place))?;
        io::copy(bytes, &mut file).with_context(|| format!("cannot unpack into `{}`", place.display()))?;
        Ok(())
    })?;
    // An empty directory with the name may be there; anything else makes this fail.
    fs::rename(&part.0, directory)
        .with_context(|| format!("cannot call what was unpacked `{}`", directory.display()))
}

/// A directory that is removed unless it was renamed.
struct Part(PathBuf);

impl Drop for Part {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The run in a pack, for reading only.
pub fn unpacked(path: &Path) -> Result<Unpacked> {
    let (mut environment, mut plan) = (Vec::new(), Vec::new());
    let mut samples = nameless().context("cannot make a file to unpack into; is there room in `$TMPDIR`?")?;
    walk(path, &mut |name, bytes| {
        let context = || format!("cannot unpack `{name}`");
        match name {
            ENVIRONMENT => bytes.read_to_end(&mut environment).map(drop).with_context(context),
            PLAN => bytes.read_to_end(&mut plan).map(drop).with_context(context),
            SAMPLES => io::copy(bytes, &mut samples).map(drop).with_context(context),
            _ => io::copy(bytes, &mut io::sink()).map(drop).with_context(context),
        }
    })?;
    samples.flush().and_then(|()| samples.rewind()).context("cannot read what was unpacked")?;
    Ok(Unpacked { environment, plan, samples })
}

/// A file without a name: it vanishes with us, however we end.
fn nameless() -> io::Result<File> {
    for attempt in 0..100 {
        let path = std::env::temp_dir().join(format!(".dunnage-{}-{attempt}", std::process::id()));
        match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
            Ok(file) => return fs::remove_file(&path).map(|()| file),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Gives each file of a pack to `take`, in their order, and checks all of them.
pub(super) fn walk(path: &Path, take: &mut dyn FnMut(&str, &mut dyn Read) -> Result<()>) -> Result<()> {
    let whole = || format!("cannot unpack `{}`", path.display());
    let file = File::open(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    check_begins_as_gzip(&file, path)?;
    let packed = Counted { inner: BufReader::with_capacity(1 << 16, file), bytes: 0 };
    let mut archive = Archive::new(Bounded { inner: GzDecoder::new(packed), bytes: 0 });
    let mut manifest: Option<Manifest> = None;
    let mut taken = 0;
    // Raw, so that extensions of the archive's form count as entries too, and are refused.
    for entry in archive.entries().with_context(whole)?.raw(true) {
        let mut entry = entry.with_context(whole)?;
        let name = name_of(&entry).with_context(whole)?;
        let Some(manifest) = &manifest else {
            manifest = Some(first(&name, &mut entry).with_context(whole)?);
            continue;
        };
        let Some(listed) = manifest.files.get(taken).filter(|listed| listed.name == name) else {
            let known = manifest.files.iter().any(|listed| listed.name == name);
            let what = if known { "twice or out of its order" } else { "and does not announce it" };
            return Err(anyhow::anyhow!("it holds `{}` {what}", shown(&name))).with_context(whole);
        };
        taken += 1;
        // One byte more than announced is enough to see that there are more.
        let mut announced = entry.take(listed.bytes.saturating_add(1));
        let mut summed = Summed { inner: &mut announced, sum: Sha256::new(), bytes: 0 };
        take(&name, &mut summed).with_context(whole)?;
        summed.check(listed).with_context(whole)?;
    }
    let Some(manifest) = manifest else {
        return Err(anyhow::anyhow!("it is empty")).with_context(whole);
    };
    if let Some(listed) = manifest.files.get(taken) {
        return Err(anyhow::anyhow!("it was cut: `{}` is missing", listed.name)).with_context(whole);
    }
    check_ends(archive.into_inner()).with_context(whole)
}

/// Behind the last entry an archive has zeros and nothing else, and behind the archive a pack has nothing. The sum at the
/// very end of the compressed file is checked when that is reached.
fn check_ends<R: BufRead>(mut archive: Bounded<R>) -> Result<()> {
    let mut bytes = [0; 8192];
    loop {
        match archive.read(&mut bytes)? {
            0 => break,
            count if bytes[..count].iter().all(|byte| *byte == 0) => {}
            _ => bail!("something follows the end of the archive"),
        }
    }
    if !archive.inner.into_inner().fill_buf()?.is_empty() {
        bail!("something follows the end of the pack");
    }
    Ok(())
}

fn check_begins_as_gzip(file: &File, path: &Path) -> Result<()> {
    use std::os::unix::fs::FileExt;
    let mut start = [0; 2];
    let read = file.read_at(&mut start, 0).with_context(|| format!("cannot read `{}`", path.display()))?;
    if read == 2 && start == [0x1f, 0x8b] {
        return Ok(());
    }
    bail!(
        "`{}` is neither a run directory nor a pack\n\nhint: a run directory is what `dunnage run` wrote, a pack is what `dunnage pack` made of one",
        path.display()
    )
}

/// The name of an entry, which must be a plain file.
fn name_of<R: Read>(entry: &tar::Entry<'_, R>) -> Result<String> {
    let header = entry.header();
    let name = String::from_utf8_lossy(&header.path_bytes()).into_owned();
    let kind = header.entry_type();
    if kind.is_file() {
        let leads_outside = name.starts_with('/') || name.split('/').any(|part| part == "..");
        if leads_outside {
            bail!("`{}` would lie outside of the run", shown(&name));
        }
        return Ok(name);
    }
    let what = if kind.is_symlink() || kind.is_hard_link() {
        "a link"
    } else if kind.is_dir() {
        "a directory"
    } else if kind.is_block_special() || kind.is_character_special() || kind.is_fifo() {
        "a device or a pipe"
    } else {
        "no plain file"
    };
    bail!("`{}` is {what}, and a pack holds plain files only", shown(&name))
}

/// What the first entry announces, after checking that a reader can live with it.
fn first(name: &str, entry: &mut dyn Read) -> Result<Manifest> {
    #[derive(serde::Deserialize)]
    struct Head {
        format: String,
        version: u32,
    }
    if name != MANIFEST {
        bail!("it begins with `{}`, and a pack begins with `{MANIFEST}`", shown(name));
    }
    let mut bytes = Vec::new();
    entry.take(MOST_TEXT).read_to_end(&mut bytes)?;
    // The version first: a newer one may say everything else in another way.
    let damaged = || format!("`{MANIFEST}` is damaged");
    let head: Head = serde_json::from_slice(&bytes).with_context(damaged)?;
    if head.format != FORMAT_NAME {
        bail!("`{MANIFEST}` is not that of a pack");
    }
    if head.version > VERSION {
        bail!(
            "it has format version {}, and this dunnage reads up to {VERSION}\n\nhint: use the dunnage that packed it, or a newer one",
            head.version
        );
    }
    let manifest: Manifest = serde_json::from_slice(&bytes).with_context(damaged)?;
    let names: Vec<&str> = manifest.files.iter().map(|listed| listed.name.as_str()).collect();
    let rest = after_a_run(&names, "").and_then(|rest| match rest {
        [] => Some(rest),
        pilot => after_a_run(pilot, &format!("{PILOT}/")),
    });
    if rest.is_none_or(|rest| !rest.is_empty()) {
        bail!("it does not announce the files of a run, and no others");
    }
    let is_text = |listed: &&Listed| [ENVIRONMENT, PLAN].iter().any(|name| listed.name.ends_with(name));
    let texts = manifest.files.iter().filter(is_text);
    if texts.map(|listed| listed.bytes).any(|bytes| bytes > MOST_TEXT) {
        bail!("environment or plan have more than {} MiB", MOST_TEXT >> 20);
    }
    Ok(manifest)
}

/// What follows in a list on the three files of a run and the files of its samples, each of these once.
fn after_a_run<'a>(names: &'a [&'a str], prefix: &str) -> Option<&'a [&'a str]> {
    let own = |index: usize| names.get(index)?.strip_prefix(prefix);
    let is_a_run =
        [ENVIRONMENT, PLAN, SAMPLES].into_iter().enumerate().all(|(at, name)| own(at) == Some(name));
    let mut end = 3;
    while is_a_run && own(end).is_some_and(Artefact::is_path) && names[end - 1] != names[end] {
        end += 1;
    }
    let in_order = || names[3..end].is_sorted();
    (is_a_run && in_order()).then(|| &names[end..])
}

/// A name from outside, without what could control a terminal and not endless.
fn shown(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).take(100).collect()
}

/// Counts what passes.
struct Counted<R> {
    inner: R,
    bytes: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(bytes)?;
        self.bytes += count as u64;
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.bytes += count as u64;
        self.inner.consume(count);
    }
}

/// Ends with an error when too much comes out of what went in.
struct Bounded<R> {
    inner: GzDecoder<Counted<R>>,
    bytes: u64,
}

impl<R: BufRead> Read for Bounded<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let cut = |error: io::Error| match error.kind() {
            io::ErrorKind::UnexpectedEof => io::Error::other("it was cut"),
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                io::Error::other(format!("it is damaged ({error})"))
            }
            _ => error,
        };
        let count = self.inner.read(bytes).map_err(cut)?;
        self.bytes += count as u64;
        if self.bytes > MOST_BYTES {
            return Err(io::Error::other(format!("it unpacks to more than {} GiB", MOST_BYTES >> 30)));
        }
        let packed = self.inner.get_ref().bytes;
        if self.bytes > SMALL + packed * MOST_TIMES {
            return Err(io::Error::other(format!("it unpacks to more than {MOST_TIMES} times its size")));
        }
        Ok(count)
    }
}

/// Sums up what passes.
struct Summed<'a> {
    inner: &'a mut dyn Read,
    sum: Sha256,
    bytes: u64,
}

impl Read for Summed<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(bytes)?;
        self.sum.update(&bytes[..count]);
        self.bytes += count as u64;
        Ok(count)
    }
}

impl Summed<'_> {
    fn check(self, listed: &Listed) -> Result<()> {
        if self.bytes != listed.bytes {
            bail!(
                "`{}` has {} bytes, and {} were announced: it is damaged or cut",
                listed.name,
                self.bytes,
                listed.bytes
            );
        }
        if hexadecimal(&self.sum.finalize()) != listed.sha256 {
            bail!("`{}` is damaged: it is not what was packed", listed.name);
        }
        Ok(())
    }
}

/// A sum as it stands in files.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

//! Unpacks a pack without trusting it. It accepts only regular files with the names of a run's files, in their order and each
//! once, with the lengths and digests from the first entry. So nothing can be outside of the directory, be a link or a device,
//! or overwrite another file. The unpacked size is limited.

use std::fs::{self, File, Permissions};
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use flate2::bufread::GzDecoder;
use tar::{Archive, EntryType};

use super::super::{ENVIRONMENT, MOST_BYTES, MOST_TEXT, PILOT, PLAN, SAMPLES, regular};
use super::{FORMAT_NAME, Listed, MANIFEST, Manifest, VERSION};
use crate::image::Summed;
use crate::outcome::Artefact;
use crate::report::text::clean;
use crate::sys::directory::Directory;

/// Samples shrink to a tenth or less; this compression can reach at most a thousandth.
const MOST_TIMES: u64 = 200;
/// For smaller packs the ratio means nothing.
const SMALL: u64 = 1 << 20;

/// Unpacks into a new or empty directory, which appears only when it is complete.
pub fn unpack(path: &Path, directory: &Path) -> Result<()> {
    super::super::check_empty(directory, "")?;
    let context = |path: &Path| format!("cannot create `{}`", path.display());
    let above = directory.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let inside = Directory::make(above).with_context(|| context(above))?;
    let part = tempfile::Builder::new()
        .prefix(".dunnage-")
        .permissions(Permissions::from_mode(0o755))
        .tempdir_in(inside.at(""))
        .with_context(|| context(directory))?;
    // Entered by descriptor, because the directory above may be another user's.
    let own = Directory::own(part.path()).with_context(|| context(directory))?;
    walk(path, &mut |name, bytes| {
        // Names were checked against a list; subdirectories are those of the pilot and of samples' files.
        let names: Vec<&str> = name.split('/').collect();
        let (file, above) = names.split_last().context("a name is not empty")?;
        let below = above.iter().try_fold(None::<Directory>, |place, name| {
            place.as_ref().unwrap_or(&own).own_inside(name).map(Some)
        });
        let below = below.with_context(|| context(directory))?;
        let made = below.as_ref().unwrap_or(&own).create(file, 0o644);
        let mut made = made.with_context(|| context(&directory.join(name)))?;
        io::copy(bytes, &mut made)
            .with_context(|| format!("cannot unpack into `{}`", directory.display()))?;
        Ok(())
    })?;
    // An empty directory of this name may exist; anything else makes this fail.
    let name = directory.file_name().with_context(|| context(directory))?;
    fs::rename(part.path(), inside.at(name))
        .with_context(|| format!("cannot rename the unpacked directory to `{}`", directory.display()))
}

/// The run in a pack, read only: environment and plan, and the samples in a temporary file without a name.
pub fn unpacked(path: &Path) -> Result<([Vec<u8>; 2], File)> {
    let (mut environment, mut plan) = (Vec::new(), Vec::new());
    let mut samples =
        tempfile::tempfile().context("cannot create a temporary file; check the free space in `$TMPDIR`")?;
    walk(path, &mut |name, bytes| {
        let context = || format!("cannot unpack `{name}`");
        match name {
            ENVIRONMENT => bytes.read_to_end(&mut environment).map(drop).with_context(context),
            PLAN => bytes.read_to_end(&mut plan).map(drop).with_context(context),
            SAMPLES => io::copy(bytes, &mut samples).map(drop).with_context(context),
            _ => io::copy(bytes, &mut io::sink()).map(drop).with_context(context),
        }
    })?;
    samples.rewind().context("cannot read the unpacked samples")?;
    Ok(([environment, plan], samples))
}

/// Receives each file of a pack.
type Take<'a> = &'a mut dyn FnMut(&str, &mut dyn Read) -> Result<()>;

/// Passes each file of a pack to `take`, in order, and checks all of them.
pub(super) fn walk(path: &Path, take: Take<'_>) -> Result<()> {
    let file = regular(path, MOST_BYTES)?;
    let mut start = [0; 2];
    if !matches!(file.read_at(&mut start, 0), Ok(2)) || start != [0x1f, 0x8b] {
        bail!(
            "`{}` is neither a run directory nor a pack\n\nhint: use a directory written by `dunnage run`, or a file written by `dunnage pack`",
            path.display()
        );
    }
    let context = || format!("cannot unpack `{}`", path.display());
    let packed = file.metadata().with_context(context)?.len();
    let most = MOST_BYTES.min(SMALL + packed * MOST_TIMES);
    let mut unpacked = GzDecoder::new(BufReader::with_capacity(1 << 16, file)).take(most + 1);
    let walked = entries(&mut unpacked, take).and_then(|()| check_ends(&mut unpacked));
    if unpacked.limit() == 0 {
        let most = format!("more than {} GiB or {MOST_TIMES} times its size", MOST_BYTES >> 30);
        return Err(anyhow!("it unpacks to {most}")).with_context(context);
    }
    walked.map_err(damage).with_context(context)
}

/// Explains an error of the decompression.
fn damage(error: anyhow::Error) -> anyhow::Error {
    let kinds = error.chain().filter_map(|cause| Some(cause.downcast_ref::<io::Error>()?.kind()));
    match kinds.last() {
        Some(io::ErrorKind::UnexpectedEof) => anyhow!("it is truncated"),
        Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => anyhow!("it is damaged ({error})"),
        _ => error,
    }
}

fn entries(unpacked: &mut impl Read, take: Take<'_>) -> Result<()> {
    let mut manifest: Option<Manifest> = None;
    let mut taken = 0;
    // Raw, so that extension headers also count as entries and are refused.
    for entry in Archive::new(unpacked).entries()?.raw(true) {
        let mut entry = entry?;
        let name = clean(&String::from_utf8_lossy(&entry.path_bytes()));
        if entry.header().entry_type() != EntryType::Regular {
            bail!("`{name}` is not a regular file, and a pack may contain only those");
        }
        let Some(manifest) = &manifest else {
            manifest = Some(first(&name, &mut entry)?);
            continue;
        };
        let Some(listed) = manifest.files.get(taken).filter(|listed| listed.name == name) else {
            let known = manifest.files.iter().any(|listed| listed.name == name);
            bail!(
                "it contains `{name}` {}",
                if known { "twice or out of order" } else { "but does not list it" }
            );
        };
        taken += 1;
        // One byte more than listed is enough to detect a longer file.
        let mut summed = Summed::new(entry.take(listed.bytes.saturating_add(1)));
        take(&name, &mut summed)?;
        let Listed { bytes, sha256, .. } = Listed::of(&name, summed);
        if bytes != listed.bytes {
            bail!(
                "`{name}` has {bytes} bytes instead of the listed {}: it is damaged or truncated",
                listed.bytes
            );
        }
        if sha256 != listed.sha256 {
            bail!("`{name}` is damaged: its digest does not match");
        }
    }
    let manifest = manifest.context("it is empty")?;
    match manifest.files.get(taken) {
        Some(listed) => bail!("it is truncated: `{}` is missing", listed.name),
        None => Ok(()),
    }
}

/// After the last entry, an archive has only zeros, and after the archive, a pack has nothing. Reading to the end also checks the
/// checksum of the compressed file.
fn check_ends(unpacked: &mut io::Take<GzDecoder<BufReader<File>>>) -> Result<()> {
    let mut bytes = [0; 8192];
    loop {
        match unpacked.read(&mut bytes)? {
            0 => break,
            count if bytes[..count].iter().all(|byte| *byte == 0) => {}
            _ => bail!("there is data after the end of the archive"),
        }
    }
    if !unpacked.get_mut().get_mut().fill_buf()?.is_empty() {
        bail!("there is data after the end of the pack");
    }
    Ok(())
}

/// The manifest in the first entry, after checking it.
fn first(name: &str, entry: &mut dyn Read) -> Result<Manifest> {
    #[derive(serde::Deserialize)]
    struct Head {
        format: String,
        version: u32,
    }
    if name != MANIFEST {
        bail!("it begins with `{name}`, but a pack begins with `{MANIFEST}`");
    }
    let mut bytes = Vec::new();
    entry.take(MOST_TEXT).read_to_end(&mut bytes)?;
    // The version first, because the rest may differ in a newer one.
    let damaged = || format!("`{MANIFEST}` is damaged");
    let head: Head = serde_json::from_slice(&bytes).with_context(damaged)?;
    if head.format != FORMAT_NAME {
        bail!("`{MANIFEST}` is not the manifest of a pack");
    }
    if head.version > VERSION {
        bail!(
            "it has format version {}, but this dunnage reads only up to {VERSION}\n\nhint: use the dunnage that packed it, or a newer one",
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
        bail!("it does not list exactly the files of a run");
    }
    let is_text = |listed: &&Listed| [ENVIRONMENT, PLAN].iter().any(|name| listed.name.ends_with(name));
    let texts = manifest.files.iter().filter(is_text);
    if texts.map(|listed| listed.bytes).any(|bytes| bytes > MOST_TEXT) {
        bail!("environment or plan are larger than {} MiB", MOST_TEXT >> 20);
    }
    Ok(manifest)
}

/// The rest of a list after the three files of a run and the files of its samples, each listed once.
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

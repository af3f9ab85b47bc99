//! Makes a pack of a run directory: cleans it once to know what will be in it, and a second time into the
//! archive; then reads the archive back, and only what passes the search for private words gets its name. The
//! same run gives the same bytes.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use dunnage_analysis::record::Place;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use super::super::{ENVIRONMENT, Environment, PILOT, PLAN, SAMPLES, Source, reader, source};
use super::clean::{self, Head};
use super::label::names_of_image;
use super::proof::Proof;
use super::read::{hexadecimal, walk};
use super::samples;
use super::vocabulary::vocabulary;
use super::words::{Kind, Known, Replaced, Secret, Words};
use super::{FORMAT_NAME, Listed, MANIFEST, Manifest, VERSION};
use crate::host::private::Private;
use crate::outcome::Artefact;
use crate::plan::Plan;

/// What a person asks for.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The words of this machine.
    pub machine: Private,
    /// Words of the person's own.
    pub words: Vec<String>,
    /// Tags that stay at home.
    pub dropped: Vec<String>,
}

/// What a pack will hold, for whoever is to decide whether it may be written.
pub struct Contents {
    /// The environment as it will stand in the pack.
    pub environment: Environment,
    /// The plan likewise.
    pub plan: Plan,
    /// The files with their bytes.
    pub files: Vec<(String, u64)>,
    /// What was taken out.
    pub replaced: Vec<Replaced>,
    /// Private by its form, and kept since the run says it anyway.
    pub spared: Vec<Secret>,
    parts: Vec<Part>,
    listed: Vec<Listed>,
    secrets: Vec<Secret>,
    /// The words before the first sample, so that the second time gives what the first gave.
    words: Words,
}

/// A run directory within the run: itself, or its pilot.
struct Part {
    prefix: String,
    source: Source,
    head: Head,
    /// The files of its samples, by name.
    artefacts: Vec<PathBuf>,
}

/// Looks through a run directory; nothing is written.
pub fn look(directory: &Path, options: &Options) -> Result<Contents> {
    let mut sources = vec![(String::new(), source::open(directory)?)];
    let pilot = directory.join(PILOT);
    if pilot.is_dir() {
        sources.push((format!("{PILOT}/"), source::directory(&pilot)?));
    }
    let mut words = Words::new(known(&sources, options)?);
    let mut parts = Vec::new();
    let mut first = None;
    for (prefix, source) in sources {
        let (head, environment, plan) = clean::head(&source, &mut words, &options.dropped)?;
        first.get_or_insert((environment, plan));
        let artefacts = artefacts(&source)?;
        parts.push(Part { prefix, source, head, artefacts });
    }
    let (environment, plan) = first.context("a run has a part")?;
    let before_samples = words.clone();
    let listed = listed(&parts, &mut words)?;
    Ok(Contents {
        environment,
        plan,
        files: listed.iter().map(|one| (one.name.clone(), one.bytes)).collect(),
        replaced: words.replaced(),
        spared: words.spared().to_vec(),
        secrets: words.secrets().to_vec(),
        parts,
        listed,
        words: before_samples,
    })
}

/// The files of samples in a run directory, by name. They are taken as they are: the search for private words decides
/// whether they may leave.
fn artefacts(source: &Source) -> Result<Vec<PathBuf>> {
    let Place::Directory(directory) = &source.place else { return Ok(Vec::new()) };
    let directory = directory.join(Artefact::DIRECTORY);
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let context = || format!("cannot look into `{}`", directory.display());
    let mut all = Vec::new();
    for file in fs::read_dir(&directory).with_context(context)? {
        let file = file.with_context(context)?;
        let is_ours = Artefact::is_path(&format!("{}/{}", Artefact::DIRECTORY, file.file_name().display()));
        if is_ours && file.file_type().with_context(context)?.is_file() {
            all.push(file.path());
        }
    }
    all.sort();
    Ok(all)
}

/// What the run and the person know of what is private and what is not.
fn known(sources: &[(String, Source)], options: &Options) -> Result<Known> {
    let mut known = Known {
        machine: options.machine.clone(),
        words: options.words.clone(),
        vocabulary: vocabulary(),
        ..Known::default()
    };
    for (_, source) in sources {
        let (environment, plan) = reader::head(source)?;
        let host = environment.host.as_str();
        known.names.extend([host, host.split('.').next().unwrap_or_default()].map(str::to_owned));
        for spec in plan.subjects.iter().map(|entry| &entry.spec) {
            known.names.extend(spec.get("image").into_iter().flat_map(names_of_image));
            known.names.extend(spec.get("rootless").map(str::to_owned));
        }
        let kept = environment.tags.iter().filter(|(key, _)| !options.dropped.contains(key));
        for (key, value) in kept {
            known.public += &format!("{key} {value}\n");
        }
        for name in clean::PUBLIC {
            known.public += environment.machine.get(name).map_or("", String::as_str);
            known.public.push('\n');
        }
        // Many distributions call the first user as themselves.
        let distribution = environment.machine.get("distribution").cloned().unwrap_or_default();
        known.vocabulary += &format!(" {}", distribution.to_lowercase());
    }
    Ok(known)
}

fn listed(parts: &[Part], words: &mut Words) -> Result<Vec<Listed>> {
    let mut all = Vec::new();
    for Part { prefix, source, head, artefacts } in parts {
        let small = |name: &str, bytes: &[u8]| Listed {
            name: format!("{prefix}{name}"),
            bytes: bytes.len() as u64,
            sha256: hexadecimal(&Sha256::digest(bytes)),
        };
        all.push(small(ENVIRONMENT, &head.environment));
        all.push(small(PLAN, &head.plan));
        let mut summed = Summed { sum: Sha256::new(), bytes: 0 };
        samples::samples(source, words, &mut summed)?;
        let sha256 = hexadecimal(&summed.sum.finalize());
        all.push(Listed { name: format!("{prefix}{SAMPLES}"), bytes: summed.bytes, sha256 });
        for path in artefacts {
            let mut file = File::open(path).with_context(|| format!("cannot read `{}`", path.display()))?;
            let mut summed = Summed { sum: Sha256::new(), bytes: 0 };
            io::copy(&mut file, &mut summed).with_context(|| format!("cannot read `{}`", path.display()))?;
            let name = path.file_name().map(|name| name.display().to_string()).unwrap_or_default();
            let name = format!("{prefix}{}/{name}", Artefact::DIRECTORY);
            all.push(Listed { name, bytes: summed.bytes, sha256: hexadecimal(&summed.sum.finalize()) });
        }
    }
    Ok(all)
}

/// Counts and sums up what is written to it.
struct Summed {
    sum: Sha256,
    bytes: u64,
}

impl Write for Summed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.sum.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a file that is there already may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Present {
    /// It stays, and there is no pack.
    Keep,
    /// It is replaced once the pack is complete.
    Replace,
}

/// Writes the pack and gives its size. It gets its name when it is complete and has passed the search.
pub fn write(contents: &Contents, path: &Path, present: Present) -> Result<u64> {
    let name = path.file_name().with_context(|| format!("`{}` is no name of a file", path.display()))?;
    let part = Unnamed(path.with_file_name(format!(".{}.{}.part", name.display(), std::process::id())));
    let context = || format!("cannot write `{}`", path.display());
    let file = File::options().write(true).create_new(true).open(&part.0).with_context(context)?;
    archive(contents, BufWriter::new(file)).with_context(context)?;
    prove(&part.0, &contents.secrets)?;
    let size = part.0.metadata().with_context(context)?.len();
    match present {
        Present::Replace => fs::rename(&part.0, path).with_context(context)?,
        // A link is not made over a file that has come meanwhile; not every filesystem has links.
        Present::Keep => match fs::hard_link(&part.0, path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                fs::rename(&part.0, path).with_context(context)?
            }
            linked => linked.with_context(context)?,
        },
    }
    Ok(size)
}

/// A file that is removed unless it was renamed.
struct Unnamed(PathBuf);

impl Drop for Unnamed {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn archive(contents: &Contents, out: impl Write) -> Result<()> {
    let mut removed: BTreeMap<String, usize> = BTreeMap::new();
    for one in &contents.replaced {
        let name = Kind::ALL.iter().find(|(kind, _)| *kind == one.kind).map_or("", |(_, name)| name);
        *removed.entry(name.to_owned()).or_default() += 1;
    }
    let manifest = Manifest {
        format: FORMAT_NAME.into(),
        version: VERSION,
        dunnage: env!("CARGO_PKG_VERSION").into(),
        run: contents.environment.run.clone(),
        files: contents.listed.clone(),
        removed,
    };
    let mut manifest = serde_json::to_vec_pretty(&manifest)?;
    manifest.push(b'\n');
    let mut out = GzEncoder::new(out, Compression::default());
    entry(&mut out, MANIFEST, manifest.len() as u64, |out| Ok(out.write_all(&manifest)?))?;
    let mut words = contents.words.clone();
    let mut listed = contents.listed.as_slice();
    for part in &contents.parts {
        let [environment, plan, rows, rest @ ..] = listed else { bail!("a run has three files") };
        let (artefacts, rest) = rest.split_at(part.artefacts.len());
        listed = rest;
        let Head { environment: first, plan: second, .. } = &part.head;
        entry(&mut out, &environment.name, environment.bytes, |out| Ok(out.write_all(first)?))?;
        entry(&mut out, &plan.name, plan.bytes, |out| Ok(out.write_all(second)?))?;
        entry(&mut out, &rows.name, rows.bytes, |out| samples::samples(&part.source, &mut words, out))?;
        for (path, one) in part.artefacts.iter().zip(artefacts) {
            // Not more than was listed, should it have grown.
            let mut file = File::open(path)?.take(one.bytes);
            entry(&mut out, &one.name, one.bytes, |out| Ok(io::copy(&mut file, out).map(drop)?))?;
        }
    }
    // Two empty blocks end an archive.
    out.write_all(&[0; 1024])?;
    out.finish()?.flush()?;
    Ok(())
}

/// One file of the archive: a header that tells nothing but name and length, the file, and zeros up to the next
/// block of 512.
fn entry(
    out: &mut dyn Write,
    name: &str,
    bytes: u64,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_path(name)?;
    header.set_size(bytes);
    header.set_mode(0o644);
    header.set_entry_type(tar::EntryType::Regular);
    header.set_cksum();
    out.write_all(header.as_bytes())?;
    write(out)?;
    out.write_all(&vec![0; (512 - bytes % 512) as usize % 512])?;
    Ok(())
}

/// Reads the pack back and searches all of it.
fn prove(path: &Path, secrets: &[Secret]) -> Result<()> {
    let proof = Proof::new(secrets);
    walk(path, &mut |name, bytes| {
        let mut lines = io::BufReader::with_capacity(1 << 20, bytes);
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            if io::BufRead::read_until(&mut lines, b'\n', &mut line)? == 0 {
                break;
            }
            proof.check(name, number, &line)?;
        }
        Ok(())
    })
}

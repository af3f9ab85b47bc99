//! Makes a pack from a run directory: writes the cleaned files into a temporary file, so that the user can review them, puts
//! them into an archive, and reads that back. Only an archive that passes the search for private words gets its name. The same
//! run gives the same bytes.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use dunnage_analysis::record::Place;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::super::{
    ENVIRONMENT, Environment, MOST_BYTES, PILOT, PLAN, Present, SAMPLES, Source, part_of, plan_file, pretty,
    reader, regular, source,
};
use super::clean::Cleaner;
use super::label::names_of_image;
use super::proof::Proof;
use super::read::walk;
use super::vocabulary::vocabulary;
use super::words::{Replaced, Secret, Words};
use super::{FORMAT_NAME, Listed, MANIFEST, Manifest, VERSION};
use super::{head, samples};
use crate::host::private::Private;
use crate::image::Summed;
use crate::outcome::Artefact;
use crate::plan::Plan;
use crate::sys::directory::Directory;

/// The user's options.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The words of this machine.
    pub machine: Private,
    /// Additional private words.
    pub words: Vec<String>,
    /// Tags to leave out.
    pub dropped: Vec<String>,
}

/// The content of a pack, for the user to review before it is written.
pub struct Contents {
    /// The environment in the pack.
    pub environment: Environment,
    /// The plan in the pack.
    pub plan: Plan,
    /// The files, in order.
    pub files: Vec<Listed>,
    /// The removed texts.
    pub replaced: Vec<Replaced>,
    /// Words that would be private, but are kept because the run itself uses them.
    pub spared: Vec<Secret>,
    secrets: Vec<Secret>,
    /// All files, concatenated.
    cleaned: File,
}

/// Prepares the content from a run directory, without writing the pack.
pub fn look(directory: &Path, options: &Options) -> Result<Contents> {
    let mut sources = vec![(String::new(), source::open(directory)?)];
    let pilot = directory.join(PILOT);
    if pilot.is_dir() {
        sources.push((format!("{PILOT}/"), source::directory(&pilot)?));
    }
    let mut cleaner = Cleaner::new(words(&sources, options)?);
    let mut cleaned =
        tempfile::tempfile().context("cannot create a temporary file; check the free space in `$TMPDIR`")?;
    let mut files = Vec::new();
    let mut add = |name: String, write: &mut dyn FnMut(&mut dyn Write) -> Result<()>| -> Result<()> {
        let mut out = Summed::new(BufWriter::with_capacity(1 << 20, &mut cleaned));
        write(&mut out).and_then(|()| Ok(out.flush()?)).with_context(|| format!("cannot clean `{name}`"))?;
        files.push(Listed::of(&name, out));
        Ok(())
    };
    let mut first = None;
    for (prefix, source) in &sources {
        let (environment, plan) = head::head(source, &mut cleaner, &options.dropped)?;
        add(format!("{prefix}{ENVIRONMENT}"), &mut |out| pretty(&environment, out))?;
        add(format!("{prefix}{PLAN}"), &mut |out| pretty(&plan_file::to_wire(&plan), out))?;
        add(format!("{prefix}{SAMPLES}"), &mut |out| samples::samples(source, &mut cleaner, out))?;
        for path in artefacts(source)? {
            let name = path.file_name().map(|name| name.display().to_string()).unwrap_or_default();
            let name = format!("{prefix}{}/{name}", Artefact::DIRECTORY);
            add(name, &mut |out| Ok(io::copy(&mut regular(&path, MOST_BYTES)?, out).map(drop)?))?;
        }
        first.get_or_insert((environment, plan));
    }
    let (environment, plan) = first.context("there is at least one run")?;
    let Cleaner { mut words, names, .. } = cleaner;
    words.spare(&names, &options.words);
    Ok(Contents {
        environment,
        plan,
        files,
        replaced: words.replaced(),
        spared: words.spared,
        secrets: words.secrets,
        cleaned,
    })
}

/// The files of samples in a run directory, by name. They are packed unchanged; the search for private words decides whether that
/// is allowed.
fn artefacts(source: &Source) -> Result<Vec<PathBuf>> {
    let Place::Directory(directory) = &source.place else { return Ok(Vec::new()) };
    let directory = directory.join(Artefact::DIRECTORY);
    let context = || format!("cannot read `{}`", directory.display());
    // A link of another user could lead to what only this user may read.
    let opened = match Directory::open(&directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened.with_context(context)?,
    };
    let mut all = Vec::new();
    for file in fs::read_dir(opened.at(".")).with_context(context)? {
        let file = file.with_context(context)?;
        let is_ours = Artefact::is_path(&format!("{}/{}", Artefact::DIRECTORY, file.file_name().display()));
        if is_ours && file.file_type().with_context(context)?.is_file() {
            all.push(directory.join(file.file_name()));
        }
    }
    all.sort();
    Ok(all)
}

/// The private and public words from the run and the user.
fn words(sources: &[(String, Source)], options: &Options) -> Result<Words> {
    let (mut machine, mut vocabulary, mut public) = (options.machine.clone(), vocabulary(), String::new());
    let mut format = Cleaner::new(Words::new(&Private::default(), &[], "", ""));
    for (_, source) in sources {
        let (environment, plan) = reader::head(source)?;
        format.json(&environment)?;
        format.json(&plan)?;
        let host = environment.host.as_str();
        let names = [host, host.split('.').next().unwrap_or_default()].into_iter();
        machine.names.extend(names.filter(|name| !name.is_empty()).map(str::to_owned));
        for spec in plan.subjects.iter().map(|entry| &entry.spec) {
            machine.names.extend(spec.get("image").into_iter().flat_map(names_of_image));
            machine.names.extend(spec.get("rootless").map(str::to_owned));
        }
        let kept = environment.tags.iter().filter(|(key, _)| !options.dropped.contains(key));
        kept.for_each(|(key, value)| public += &format!("{key} {value}\n"));
        let told = head::PUBLIC.split_whitespace().filter_map(|name| environment.machine.get(name));
        told.for_each(|fact| public += &format!("{fact}\n"));
        // Many distributions give the first user the name of the distribution.
        let distribution = environment.machine.get("distribution").cloned().unwrap_or_default();
        vocabulary += &format!(" {}", distribution.to_lowercase());
    }
    vocabulary.extend(format.names.iter().flat_map(|name| [" ", name]));
    Ok(Words::new(&machine, &options.words, &vocabulary, &public))
}

/// Writes the pack and returns its size. The file gets its name when it is complete and has passed the search.
pub fn write(contents: Contents, path: &Path, present: Present) -> Result<u64> {
    let context = || format!("cannot write `{}`", path.display());
    let mut part = part_of(path).with_context(context)?;
    archive(&contents, &contents.cleaned, BufWriter::new(part.file())).with_context(context)?;
    prove(part.path(), &contents.secrets)?;
    let size = part.path().metadata().with_context(context)?.len();
    part.persist(present).with_context(context)?;
    Ok(size)
}

fn archive(contents: &Contents, mut cleaned: &File, out: impl Write) -> Result<()> {
    let mut removed: BTreeMap<String, usize> = BTreeMap::new();
    for one in &contents.replaced {
        *removed.entry(one.kind.name().to_owned()).or_default() += 1;
    }
    let manifest = Manifest {
        format: FORMAT_NAME.into(),
        version: VERSION,
        dunnage: env!("CARGO_PKG_VERSION").into(),
        run: contents.environment.run.clone(),
        files: contents.files.clone(),
        removed,
    };
    let mut first = Vec::new();
    pretty(&manifest, &mut first)?;
    let mut archive = tar::Builder::new(GzEncoder::new(out, Compression::default()));
    // A header with only name and length.
    let header = |bytes: u64| {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes);
        header.set_mode(0o644);
        header
    };
    archive.append_data(&mut header(first.len() as u64), MANIFEST, first.as_slice())?;
    cleaned.rewind()?;
    for Listed { name, bytes, .. } in &contents.files {
        archive.append_data(&mut header(*bytes), name, cleaned.take(*bytes))?;
    }
    archive.into_inner()?.finish()?.flush()?;
    Ok(())
}

/// Reads the pack back and searches all of it.
fn prove(path: &Path, secrets: &[Secret]) -> Result<()> {
    let proof = Proof::new(secrets);
    walk(path, &mut |name, bytes| {
        // The user may have named an artefact.
        proof.check(name, 0, name.as_bytes())?;
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

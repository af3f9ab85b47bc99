//! An image with any number of layers and files of any size, and the probe alone in the last one: as an
//! archive for engines, or as a root on disk.
//!
//! Content is xoshiro256++ from a fixed seed, one stream per file, so no filesystem or registry can compress
//! or share it. Large content is never in memory: layers are generated while they are written, and once
//! before that for their digests. Deliberately absent: symbolic links and whiteouts.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use tar::Builder;

use super::archive::{self, Blob, IMAGE_LABEL, directory_header, file_header};
use super::{Digest, EXECUTABLE, MODE, Summed, rootfs};
use crate::stats::Rng;
use crate::sys::filesystem;

/// The name of images with requested layers.
pub const LAYERS: &str = "layers";

/// This registry does not exist: an engine without the image fails instead of pulling something, and a full
/// name keeps podman and containerd from prepending `localhost/` or `docker.io/`.
const REGISTRY: &str = "dunnage.local";
/// The seed of everything random in images.
pub(super) const SEED: u64 = 0xfa7;

#[derive(Debug)]
pub(super) struct File {
    pub path: String,
    pub size: u64,
    pub stream: u64,
}

/// The image with one executable, which it borrows.
#[derive(Debug)]
pub struct Image<'a> {
    /// Its own name.
    pub name: &'static str,
    executable: &'a [u8],
    /// The digest of the executable alone, which is also in a label.
    pub executable_digest: Digest,
    pub(super) layers: Vec<Vec<File>>,
    digest: Digest,
    /// The image's reference in every engine once it is loaded.
    pub reference: String,
}

/// Called before every file; `false` ends the work with an error.
pub type GoOn<'a> = &'a (dyn Fn() -> bool + Sync);

/// Whether a file has these bytes, which takes a fraction of the time of hashing it.
fn has_content(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let (mut file, mut piece, mut rest) = (fs::File::open(path)?, vec![0; 1 << 16], bytes);
    loop {
        let count = file.read(&mut piece)?;
        match rest.split_at_checked(count) {
            Some((begin, after)) if count > 0 && begin == &piece[..count] => rest = after,
            _ => return Ok(count == 0 && rest.is_empty()),
        }
    }
}

fn stop_unless(go_on: GoOn<'_>) -> io::Result<()> {
    if go_on() { Ok(()) } else { Err(io::Error::new(io::ErrorKind::Interrupted, "interrupted")) }
}

impl<'a> Image<'a> {
    /// The image `small`: the executable, a static one of this architecture, and nothing else.
    pub fn small(executable: &'a [u8]) -> Image<'a> {
        Image::new(IMAGE_LABEL.1, None, executable, Vec::new())
    }

    /// An image of this name with these layers, lowest first, and the executable above; generates nothing
    /// yet. Without a tag it gets the beginning of a digest of its content, so that different content is a
    /// different image.
    pub(super) fn new(
        name: &'static str,
        tag: Option<&str>,
        executable: &'a [u8],
        layers: Vec<Vec<File>>,
    ) -> Image<'a> {
        let executable_digest = Digest::of(executable);
        let mut list = format!("{executable_digest} {SEED}\n");
        for (number, layer) in layers.iter().enumerate() {
            for file in layer {
                list += &format!("{number} {} {} {}\n", file.path, file.size, file.stream);
            }
        }
        let digest = Digest::of(list.as_bytes());
        let tag = tag.map_or_else(|| digest.short(), str::to_owned);
        let reference = format!("{REGISTRY}/{name}:{tag}");
        Image { name, executable, executable_digest, layers, digest, reference }
    }

    /// An image with files of these paths and sizes in each of its layers, lowest first, with this tag in
    /// engines.
    pub fn of_layers(executable: &'a [u8], tag: &str, layers: &[Vec<(String, u64)>]) -> Image<'a> {
        let mut streams = 0..;
        let mut file = |(path, size): &(String, u64)| File {
            path: path.clone(),
            size: *size,
            stream: streams.next().expect("there is always another number"),
        };
        let layers = layers.iter().map(|layer| layer.iter().map(&mut file).collect()).collect();
        Image::new(LAYERS, Some(tag), executable, layers)
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files().map(|file| file.size).sum::<u64>() + self.executable.len() as u64
    }

    /// The number of files, including the executable.
    pub fn file_count(&self) -> usize {
        self.files().count() + 1
    }

    /// The number of layers, including the executable's.
    pub fn layer_count(&self) -> usize {
        self.layers.len() + 1
    }

    pub(super) fn files(&self) -> impl Iterator<Item = &File> {
        self.layers.iter().flatten()
    }

    /// Writes the archive that engines load. Generates everything twice, once for the digests.
    pub fn write_archive(&self, out: &mut dyn Write, go_on: GoOn<'_>) -> io::Result<()> {
        let mut blobs = Vec::new();
        for number in 0..self.layer_count() {
            let mut sum = Summed::new(io::sink());
            self.write_layer(number, &mut sum, go_on)?;
            let (digest, size) = sum.end();
            blobs.push(Blob { digest, size });
        }
        let names = [self.name, &self.reference];
        archive::write(out, names, self.executable_digest, &blobs, &mut |number, out| {
            self.write_layer(number, out, go_on)
        })
    }

    /// The uncompressed tar of one layer.
    pub(super) fn write_layer(&self, number: usize, out: &mut dyn Write, go_on: GoOn<'_>) -> io::Result<()> {
        let files = self.layers.get(number).map_or(&[][..], Vec::as_slice);
        let mut layer = Builder::new(out);
        for directory in directories_of(files) {
            layer.append(&directory_header(&format!("{directory}/")), io::empty())?;
        }
        for file in files {
            stop_unless(go_on)?;
            layer.append(&file_header(&file.path, file.size as usize, 0o644), file.content())?;
        }
        if number == self.layers.len() {
            let path = EXECUTABLE.trim_start_matches('/');
            layer.append(&file_header(path, self.executable.len(), MODE), self.executable)?;
        }
        layer.finish()
    }

    /// Makes sure that the image is unpacked under the directory `state`, and returns the directory of its
    /// root. Use it below an overlay, since it must not change. `making` is called before anything is made.
    pub fn unpack(&self, state: &Path, making: &dyn Fn(), go_on: GoOn<'_>) -> Result<PathBuf> {
        let name = format!("{}-{}", self.name, self.digest.hex());
        let is_whole = |place: &Path| self.is_whole(&place.join("rootfs")).unwrap_or(false);
        let place = rootfs::cached(state, &name, &is_whole, go_on, |fresh| {
            if !self.layers.is_empty() {
                self.check_space(fresh.parent().expect("it is in a directory of images"))?;
            }
            making();
            self.write_root(fresh, go_on)
        })?;
        Ok(place.join("rootfs"))
    }

    /// Fails if less than twice the image's size, or number of files, is free.
    pub fn check_space(&self, directory: &Path) -> Result<()> {
        let left = filesystem::left(directory)
            .with_context(|| format!("cannot find out the free space of `{}`", directory.display()))?;
        let needed = 2 * self.bytes();
        ensure!(
            left.bytes >= needed,
            "no space left for the image {}: it needs {} MB (twice its size), and `{}` has {} MB",
            self.name,
            needed.div_ceil(1_000_000),
            directory.display(),
            left.bytes / 1_000_000
        );
        let files = 2
            * (self.file_count() + self.layers.iter().map(|layer| directories_of(layer).len()).sum::<usize>())
                as u64;
        ensure!(
            left.files.is_none_or(|left| left >= files),
            "no space left for the image {}: it needs {files} free inodes, and `{}` has fewer",
            self.name,
            directory.display()
        );
        Ok(())
    }

    /// Whether every file exists with its size, and the executable with its content and mode. The content of
    /// 10,000 files is not read again. An error here will occur again when the root is made anew.
    fn is_whole(&self, root: &Path) -> io::Result<bool> {
        let there = |file: &File| {
            let facts = fs::symlink_metadata(root.join(&file.path));
            facts.is_ok_and(|facts| facts.is_file() && facts.len() == file.size)
        };
        let mode = |facts: &fs::Metadata| facts.permissions().mode() & 0o7777;
        let path = rootfs::inside(root, EXECUTABLE);
        let facts = fs::symlink_metadata(&path)?;
        let is_alone = || Ok::<_, io::Error>(fs::read_dir(root)?.count() == 1);
        Ok(facts.is_file()
            && mode(&facts) == MODE
            && mode(&fs::symlink_metadata(root)?) == MODE
            && (!self.layers.is_empty() || is_alone()?)
            && has_content(&path, self.executable)?
            && self.files().all(there))
    }

    /// Unpacks it as the directory `rootfs` of a place that does not exist yet.
    pub fn write_root(&self, place: &Path, go_on: GoOn<'_>) -> Result<()> {
        let root = place.join("rootfs");
        rootfs::make_private(place)?;
        rootfs::make_directory(&root)?;
        for layer in &self.layers {
            write_files(layer, &root, go_on)?;
        }
        rootfs::write_executable(&rootfs::inside(&root, EXECUTABLE), self.executable)
    }

    /// Unpacks each layer as a directory of its own in a place that does not exist yet, and returns their
    /// paths, lowest first. Their names are short, since the options of one mount name all of them.
    pub fn write_layers(&self, place: &Path, go_on: GoOn<'_>) -> Result<Vec<PathBuf>> {
        rootfs::make_private(place)?;
        let write = |number: usize| {
            let root = place.join(number.to_string());
            rootfs::make_directory(&root)?;
            match self.layers.get(number) {
                Some(layer) => write_files(layer, &root, go_on)?,
                None => rootfs::write_executable(&rootfs::inside(&root, EXECUTABLE), self.executable)?,
            }
            Ok(root)
        };
        (0..self.layer_count()).map(write).collect()
    }
}

/// Writes the files of a layer with their directories.
fn write_files(layer: &[File], root: &Path, go_on: GoOn<'_>) -> Result<()> {
    for directory in directories_of(layer) {
        let path = root.join(directory);
        if !path.is_dir() {
            rootfs::make_directory(&path)?;
        }
    }
    for file in layer {
        let path = root.join(&file.path);
        let write = || -> io::Result<()> {
            stop_unless(go_on)?;
            // An upper layer may replace a file of a lower one.
            let mut out = fs::File::create(&path)?;
            io::copy(&mut file.content(), &mut out)?;
            out.set_permissions(fs::Permissions::from_mode(0o644))
        };
        write().with_context(|| format!("cannot write {} bytes to `{}`", file.size, path.display()))?;
    }
    Ok(())
}

impl File {
    fn content(&self) -> Content {
        Content { random: Rng::for_stream(SEED, self.stream), left: self.size as usize }
    }
}

/// The bytes of a file, generated while they are read.
struct Content {
    random: Rng,
    left: usize,
}

impl Read for Content {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        // Whole words, except that the last one of a file may be cut.
        let length = self.left.min(bytes.len() / 8 * 8);
        debug_assert!(length > 0 || self.left == 0, "room for a word");
        for piece in bytes[..length].chunks_mut(8) {
            piece.copy_from_slice(&self.random.next_u64().to_le_bytes()[..piece.len()]);
        }
        self.left -= length;
        Ok(length)
    }
}

/// The directories of these files, parents before children.
pub(super) fn directories_of(files: &[File]) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for file in files {
        let mut path = file.path.as_str();
        while let Some((directory, _)) = path.rsplit_once('/') {
            found.insert(directory);
            path = directory;
        }
    }
    found
}

//! An image of any number of layers, with files of any sizes, the probe alone in the last one: an archive for engines, or a
//! root on disk.
//!
//! Content is xoshiro256++ from a fixed seed, one stream a file, so no filesystem or registry can
//! compress or share it. Nothing large is ever in memory: layers are made while they are written, a first time for
//! their digests. Deliberately absent: symbolic links and whiteouts.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use sha2::{Digest as _, Sha256};

use super::archive::{self, BLOCK, Blob, directory_header, file_header};
use super::rootfs::{self, Unpacked};
use super::{Digest, EXECUTABLE, MODE};
use crate::stats::Rng;
use crate::sys::filesystem;

/// The name of images whose layers somebody asked for.
pub const LAYERS: &str = "layers";

/// No such registry exists.
const REGISTRY: &str = "dunnage.local";
/// Everything random in images follows from it.
pub(super) const SEED: u64 = 0xfa7;

#[derive(Debug)]
pub(super) struct File {
    pub path: String,
    pub size: u64,
    pub stream: u64,
}

/// The image around one executable, which it borrows.
#[derive(Debug)]
pub struct LayeredImage<'a> {
    name: &'static str,
    executable: &'a [u8],
    executable_digest: Digest,
    pub(super) layers: Vec<Vec<File>>,
    digest: Digest,
    reference: String,
}

/// Asked before every file; false ends the work with an error.
pub type GoOn<'a> = &'a dyn Fn() -> bool;

fn stop_unless(go_on: GoOn<'_>) -> io::Result<()> {
    if go_on() { Ok(()) } else { Err(io::Error::new(io::ErrorKind::Interrupted, "interrupted")) }
}

impl<'a> LayeredImage<'a> {
    /// An image of this name with these layers, the lowest first, and the executable above; makes none of it. Without a
    /// tag it gets the beginning of a digest of all that it holds, so that another content is another image.
    pub(super) fn new(
        name: &'static str,
        tag: Option<&str>,
        executable: &'a [u8],
        layers: Vec<Vec<File>>,
    ) -> LayeredImage<'a> {
        let executable_digest = Digest::of(executable);
        let mut list = Sha256::new();
        list.update(format!("{executable_digest} {SEED}\n"));
        for (number, file) in
            layers.iter().enumerate().flat_map(|(at, layer)| layer.iter().map(move |file| (at, file)))
        {
            list.update(format!("{number} {} {} {}\n", file.path, file.size, file.stream));
        }
        let digest = Digest::of_sum(list);
        let tag = tag.map_or_else(|| digest.short(), str::to_owned);
        let reference = format!("{REGISTRY}/{name}:{tag}");
        LayeredImage { name, executable, executable_digest, layers, digest, reference }
    }

    /// An image with files of these paths and sizes in each of its layers, the lowest first, in engines under this tag.
    pub fn of_layers(executable: &'a [u8], tag: &str, layers: &[Vec<(String, u64)>]) -> LayeredImage<'a> {
        let mut streams = 0..;
        let mut file = |(path, size): &(String, u64)| File {
            path: path.clone(),
            size: *size,
            stream: streams.next().expect("there is always another number"),
        };
        let layers = layers.iter().map(|layer| layer.iter().map(&mut file).collect()).collect();
        LayeredImage::new(LAYERS, Some(tag), executable, layers)
    }

    /// The name by which every engine knows the image once it is loaded.
    pub fn reference(&self) -> &str {
        &self.reference
    }

    /// Bytes in all files.
    pub fn bytes(&self) -> u64 {
        self.files().map(|file| file.size).sum::<u64>() + self.executable.len() as u64
    }

    /// Files, the executable among them.
    pub fn file_count(&self) -> usize {
        self.files().count() + 1
    }

    /// Layers, the executable's among them.
    pub fn layer_count(&self) -> usize {
        self.layers.len() + 1
    }

    pub(super) fn files(&self) -> impl Iterator<Item = &File> {
        self.layers.iter().flatten()
    }

    /// Writes the archive that engines load. Makes everything twice, once for the digests.
    pub fn write_archive(&self, out: &mut dyn Write, go_on: GoOn<'_>) -> io::Result<()> {
        let mut blobs = Vec::new();
        for number in 0..self.layer_count() {
            let mut sum = Sum { hasher: Sha256::new(), bytes: 0 };
            self.write_layer(number, &mut sum, go_on)?;
            blobs.push(Blob { digest: Digest::of_sum(sum.hasher), size: sum.bytes });
        }
        let description = archive::describe(self.name, self.executable_digest, &blobs);
        archive::write(out, &description, &self.reference, &blobs, &mut |number, out| {
            self.write_layer(number, out, go_on)
        })
    }

    /// The uncompressed tar of one layer.
    pub(super) fn write_layer(&self, number: usize, out: &mut dyn Write, go_on: GoOn<'_>) -> io::Result<()> {
        let files = self.layers.get(number).map_or(&[][..], Vec::as_slice);
        for directory in directories_of(files) {
            out.write_all(directory_header(&format!("{directory}/")).as_bytes())?;
        }
        for file in files {
            stop_unless(go_on)?;
            out.write_all(file_header(&file.path, file.size as usize, 0o644).as_bytes())?;
            file.write_content(out)?;
            pad(out, file.size)?;
        }
        if number == self.layers.len() {
            let path = EXECUTABLE.trim_start_matches('/');
            out.write_all(file_header(path, self.executable.len(), MODE).as_bytes())?;
            out.write_all(self.executable)?;
            pad(out, self.executable.len() as u64)?;
        }
        out.write_all(&[0; 2 * BLOCK])
    }

    /// Makes sure that the image lies unpacked under the directory `state`, and says where. It is made
    /// beside its place and renamed; what a failed call has made is removed. `making` is called before
    /// anything is made.
    pub fn unpack(&self, state: &Path, making: &dyn Fn(), go_on: GoOn<'_>) -> Result<Unpacked> {
        let state = std::path::absolute(state)
            .with_context(|| format!("cannot make `{}` absolute", state.display()))?;
        let images = state.join("images");
        let place = images.join(format!("{}-{}", self.name, self.digest.hex()));
        let unpacked = Unpacked::at(place.join("rootfs"));
        if self.is_whole(&unpacked) {
            return Ok(unpacked);
        }
        rootfs::make_directories(&images)?;
        let _lock = rootfs::lock(&images)?;
        if self.is_whole(&unpacked) {
            return Ok(unpacked);
        }
        let fresh = images.join(format!("{}-{}.new", self.name, self.digest.hex()));
        rootfs::remove(&fresh)?;
        rootfs::remove(&place)?;
        self.check_space(&images)?;
        making();
        self.write_root(&fresh, go_on).inspect_err(|_| {
            let _ = rootfs::remove(&fresh);
        })?;
        fs::rename(&fresh, &place)
            .with_context(|| format!("cannot rename `{}` to `{}`", fresh.display(), place.display()))?;
        Ok(unpacked)
    }

    /// Refuses to begin where less than twice the image's size, or number of files, is left.
    pub fn check_space(&self, directory: &Path) -> Result<()> {
        let left = filesystem::left(directory).with_context(|| {
            format!("cannot tell what is left of the disk under `{}`", directory.display())
        })?;
        let needed = 2 * self.bytes();
        ensure!(
            left.bytes >= needed,
            "the image {} needs {} MB free (twice its size), and `{}` has {} MB: no space left",
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
            "the image {} needs room for {files} files, and `{}` has less: no space left",
            self.name,
            directory.display()
        );
        Ok(())
    }

    /// Every file is there with its size, and the executable with its content. The content of 10,000
    /// files is not read again.
    fn is_whole(&self, unpacked: &Unpacked) -> bool {
        let there = |file: &File| {
            let facts = fs::symlink_metadata(unpacked.root().join(&file.path));
            facts.is_ok_and(|facts| facts.is_file() && facts.len() == file.size)
        };
        let executable = || Digest::of_reader(&mut fs::File::open(unpacked.executable())?);
        executable().is_ok_and(|digest: Digest| digest == self.executable_digest) && self.files().all(there)
    }

    /// Unpacks it as the directory `rootfs` of a place that is not there yet.
    pub fn write_root(&self, place: &Path, go_on: GoOn<'_>) -> Result<()> {
        let root = place.join("rootfs");
        rootfs::make_directory(place)?;
        rootfs::make_directory(&root)?;
        for layer in &self.layers {
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
                    file.write_content(&mut out)?;
                    out.set_permissions(fs::Permissions::from_mode(0o644))
                };
                write()
                    .with_context(|| format!("cannot write {} bytes to `{}`", file.size, path.display()))?;
            }
        }
        rootfs::write_executable(&rootfs::inside(&root, EXECUTABLE), self.executable)
    }
}

impl File {
    fn write_content(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut random = Rng::for_stream(SEED, self.stream);
        let mut piece = [0u8; 16384];
        let mut left = self.size as usize;
        while left > 0 {
            let length = left.min(piece.len());
            for word in piece[..length.next_multiple_of(8)].chunks_exact_mut(8) {
                word.copy_from_slice(&random.next_u64().to_le_bytes());
            }
            out.write_all(&piece[..length])?;
            left -= length;
        }
        Ok(())
    }
}

fn pad(out: &mut dyn Write, size: u64) -> io::Result<()> {
    let rest = size as usize % BLOCK;
    if rest == 0 { Ok(()) } else { out.write_all(&[0; BLOCK][rest..]) }
}

/// Counts and hashes what is written.
struct Sum {
    hasher: Sha256,
    bytes: u64,
}

impl Write for Sum {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The directories that these files lie in, a parent before its children.
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

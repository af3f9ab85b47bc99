//! The image `fat`: thirteen layers, 10,000 files, some 440 MB, for whoever asks what an image's size
//! and depth cost. The probe is the same executable as in `small`, alone in the last layer.
//!
//! The recipe. Sizes follow the files below `/usr` of a Debian 12 machine: of 10,000, so many are up to
//! 1 KiB, 4 KiB, 16 KiB, 64 KiB, 256 KiB, 1 MiB, 8 MiB and 32 MiB as there, evenly spread in between.
//! They lie in 1,200 directories, each new one below a random earlier one, at most seven deep. Twelve
//! layers share them, the lowest with two fifths of the files, as a distribution below an application.
//! Content is xoshiro256++ from a fixed seed, one stream a file, so no filesystem or registry can
//! compress or share it. Everything follows from the seed; the reference names a digest of the list of
//! files and of the executable, so that another recipe is another image.
//!
//! Nothing of that size is ever in memory: layers are made while they are written, a first time for
//! their digests. Deliberately absent: symbolic links, whiteouts, and files that an upper layer replaces.

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

/// The value of the label of all our images.
pub const NAME: &str = "fat";

const REPOSITORY: &str = "dunnage.local/fat";
const SEED: u64 = 0xfa7;
const DIRECTORIES: usize = 1200;
const DEEPEST: usize = 7;
/// How many files have more bytes than the size before and at most this many.
const SIZES: [(u64, usize); 8] = [
    (1 << 10, 3072),
    (4 << 10, 3650),
    (16 << 10, 1923),
    (64 << 10, 955),
    (256 << 10, 301),
    (1 << 20, 68),
    (8 << 20, 22),
    (32 << 20, 9),
];
/// Percent of the files in each layer, the lowest first.
const SHARES: [usize; 12] = [40, 12, 9, 8, 7, 6, 5, 4, 3, 3, 2, 1];
const TOPS: [&str; 8] = ["etc", "opt", "srv", "usr/bin", "usr/lib", "usr/sbin", "usr/share", "var/lib"];

#[derive(Debug)]
struct File {
    path: String,
    size: u64,
    stream: u64,
}

/// The image around one executable, which it borrows.
#[derive(Debug)]
pub struct FatImage<'a> {
    executable: &'a [u8],
    executable_digest: Digest,
    layers: Vec<Vec<File>>,
    digest: Digest,
    reference: String,
}

/// Asked before every file; false ends the work with an error.
pub type GoOn<'a> = &'a dyn Fn() -> bool;

fn stop_unless(go_on: GoOn<'_>) -> io::Result<()> {
    if go_on() { Ok(()) } else { Err(io::Error::new(io::ErrorKind::Interrupted, "interrupted")) }
}

impl<'a> FatImage<'a> {
    /// Lists what the image consists of; makes none of it.
    pub fn new(executable: &'a [u8]) -> FatImage<'a> {
        let executable_digest = Digest::of(executable);
        let layers = layers();
        let mut list = Sha256::new();
        list.update(format!("{executable_digest} {SEED}\n"));
        for (number, file) in
            layers.iter().enumerate().flat_map(|(at, layer)| layer.iter().map(move |file| (at, file)))
        {
            list.update(format!("{number} {} {} {}\n", file.path, file.size, file.stream));
        }
        let digest = Digest::of_sum(list);
        let reference = format!("{REPOSITORY}:{}", digest.short());
        FatImage { executable, executable_digest, layers, digest, reference }
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

    fn files(&self) -> impl Iterator<Item = &File> {
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
        let description = archive::describe(NAME, self.executable_digest, &blobs);
        archive::write(out, &description, &self.reference, &blobs, &mut |number, out| {
            self.write_layer(number, out, go_on)
        })
    }

    /// The uncompressed tar of one layer.
    fn write_layer(&self, number: usize, out: &mut dyn Write, go_on: GoOn<'_>) -> io::Result<()> {
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
        let place = images.join(format!("{NAME}-{}", self.digest.hex()));
        let unpacked = Unpacked::at(place.join("rootfs"));
        if self.is_whole(&unpacked) {
            return Ok(unpacked);
        }
        rootfs::make_directories(&images)?;
        let _lock = rootfs::lock(&images)?;
        if self.is_whole(&unpacked) {
            return Ok(unpacked);
        }
        let fresh = images.join(format!("{NAME}-{}.new", self.digest.hex()));
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
            "the image {NAME} needs {} MB free (twice its size), and `{}` has {} MB: no space left",
            needed.div_ceil(1_000_000),
            directory.display(),
            left.bytes / 1_000_000
        );
        let files = 2 * (self.file_count() + DIRECTORIES) as u64;
        ensure!(
            left.files.is_none_or(|left| left >= files),
            "the image {NAME} needs room for {files} files, and `{}` has less: no space left",
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

    fn write_root(&self, place: &Path, go_on: GoOn<'_>) -> Result<()> {
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
                    let mut out = fs::File::create_new(&path)?;
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

fn below(random: &mut Rng, bound: u64) -> u64 {
    random.next_u64() % bound
}

/// The recipe's files, layer by layer.
fn layers() -> Vec<Vec<File>> {
    let mut random = Rng::for_stream(SEED, u64::MAX);
    let mut directories: Vec<String> = TOPS.map(str::to_owned).to_vec();
    while directories.len() < DIRECTORIES {
        let parent = &directories[below(&mut random, directories.len() as u64) as usize];
        if parent.split('/').count() < DEEPEST {
            directories.push(format!("{parent}/d{:03x}", directories.len()));
        }
    }
    let mut sizes = Vec::new();
    let mut smallest = 1;
    for (largest, count) in SIZES {
        sizes.extend((0..count).map(|_| smallest + below(&mut random, largest - smallest + 1)));
        smallest = largest + 1;
    }
    random.shuffle(&mut sizes);
    let mut files = sizes.into_iter().enumerate().map(|(number, size)| {
        let directory = &directories[below(&mut random, DIRECTORIES as u64) as usize];
        File { path: format!("{directory}/f{number:04x}"), size, stream: number as u64 }
    });
    let total: usize = SIZES.iter().map(|(_, count)| count).sum();
    let share = |percent: usize| total * percent / 100;
    SHARES.map(|percent| files.by_ref().take(share(percent)).collect()).into_iter().collect()
}

/// The directories that these files lie in, a parent before its children.
fn directories_of(files: &[File]) -> BTreeSet<&str> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_as_fat_as_promised_and_always_the_same() {
        let image = FatImage::new(b"x");
        assert_eq!((image.file_count(), image.layer_count()), (10_001, 13));
        assert!((400_000_000..500_000_000).contains(&image.bytes()), "{}", image.bytes());
        assert_eq!(image.reference(), FatImage::new(b"x").reference());
        assert_ne!(image.reference(), FatImage::new(b"y").reference());
        let paths: BTreeSet<_> = image.files().map(|file| &file.path).collect();
        assert_eq!(paths.len(), 10_000);
        let directories =
            image.layers.iter().flat_map(|layer| directories_of(layer)).collect::<BTreeSet<_>>();
        assert!(directories.len() > 1000 && paths.iter().all(|path| !directories.contains(path.as_str())));
    }

    #[test]
    fn a_layer_is_a_tar_with_each_file_under_its_directories() {
        let image = FatImage::new(b"the executable");
        let mut layer = Vec::new();
        image.write_layer(11, &mut layer, &|| true).unwrap();
        let mut seen = BTreeSet::from([String::new()]);
        let mut sizes = Vec::new();
        for entry in tar::Archive::new(&layer[..]).entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().to_str().unwrap().trim_end_matches('/').to_owned();
            let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
            assert!(seen.contains(parent), "{path} comes before its directory");
            if entry.header().entry_type().is_file() {
                sizes.push(io::copy(&mut entry, &mut io::sink()).unwrap());
            }
            seen.insert(path);
        }
        assert_eq!(sizes, image.layers[11].iter().map(|file| file.size).collect::<Vec<_>>());
        let mut last = Vec::new();
        image.write_layer(12, &mut last, &|| true).unwrap();
        let last: Vec<_> = tar::Archive::new(&last[..])
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().into_owned())
            .collect();
        assert_eq!(last, [Path::new("dunnage")]);
    }

    #[test]
    fn whoever_wants_to_stop_is_heard_and_nothing_is_left() {
        let state = tempfile::tempdir().unwrap();
        let error = FatImage::new(b"x").unpack(state.path(), &|| (), &|| false).unwrap_err();
        assert!(format!("{error:#}").contains("interrupted"), "{error:#}");
        assert_eq!(fs::read_dir(state.path().join("images")).unwrap().count(), 0);
        let error = FatImage::new(b"x").write_archive(&mut io::sink(), &|| false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
    }
}

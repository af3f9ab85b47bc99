//! The image `fat`: thirteen layers, 10,000 files, about 440 MB, to measure what an image's size and depth
//! cost. The probe is the same executable as in `small`, alone in the last layer.
//!
//! The recipe. Sizes are distributed like those of the files below `/usr` of a Debian 12 machine: of 10,000,
//! as many are up to 1 KiB, 4 KiB, 16 KiB, 64 KiB, 256 KiB, 1 MiB, 8 MiB and 32 MiB as there, evenly spread
//! within each range. They are in 1,200 directories, each new one below a random earlier one, at most seven
//! deep. They are spread over twelve layers, two fifths of them in the lowest, like a distribution below an
//! application. Everything follows from the seed; the reference has a digest of the list of files and of the
//! executable, so that a different recipe is a different image.
//!
//! Deliberately absent: files that an upper layer replaces.

use super::layered::{File, Image, SEED};
use crate::stats::Rng;

/// The value of the label of images made here.
pub const NAME: &str = "fat";

const DIRECTORIES: usize = 1200;
const DEEPEST: usize = 7;
/// The number of files with more bytes than the previous size and at most this many.
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
/// Percent of the files in each layer, lowest first.
const SHARES: [usize; 12] = [40, 12, 9, 8, 7, 6, 5, 4, 3, 3, 2, 1];
const TOPS: [&str; 8] = ["etc", "opt", "srv", "usr/bin", "usr/lib", "usr/sbin", "usr/share", "var/lib"];

/// The image with this executable; lists its content without generating it.
pub fn image(executable: &[u8]) -> Image<'_> {
    Image::new(NAME, None, executable, layers())
}

/// Whether this value of the key `image` means it.
pub(crate) fn is_named(image: Option<&str>) -> bool {
    image == Some(NAME)
}

/// The message before the image is made, which is not part of any sample.
pub(crate) fn announcement(image: &Image<'_>, place: &str) -> String {
    let megabytes = image.bytes().div_ceil(1_000_000);
    format!("making the image {NAME}, {megabytes} MB, for {place}, where it stays until `dunnage sweep`")
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::io;

    use super::super::layered::directories_of;
    use std::path::Path;

    #[test]
    fn it_is_as_fat_as_promised_and_always_the_same() {
        let image = super::image(b"x");
        assert_eq!((image.file_count(), image.layer_count()), (10_001, 13));
        assert!((400_000_000..500_000_000).contains(&image.bytes()), "{}", image.bytes());
        assert_eq!(image.reference, super::image(b"x").reference);
        assert_ne!(image.reference, super::image(b"y").reference);
        let paths: BTreeSet<_> = image.files().map(|file| &file.path).collect();
        assert_eq!(paths.len(), 10_000);
        let directories =
            image.layers.iter().flat_map(|layer| directories_of(layer)).collect::<BTreeSet<_>>();
        assert!(directories.len() > 1000 && paths.iter().all(|path| !directories.contains(path.as_str())));
    }

    #[test]
    fn a_layer_is_a_tar_with_each_file_under_its_directories() {
        let image = super::image(b"the executable");
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
        let error = super::image(b"x").unpack(state.path(), &|| (), &|| false).unwrap_err();
        assert!(format!("{error:#}").contains("interrupted"), "{error:#}");
        assert_eq!(fs::read_dir(state.path().join("images")).unwrap().count(), 0);
        let error = super::image(b"x").write_archive(&mut io::sink(), &|| false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
    }
}

//! The image `small` as one tar archive that `docker load`, `podman load` and `ctr images import`
//! all take: an OCI layout, and beside it docker's `manifest.json` over the same blobs.
//!
//! The single layer holds the executable and nothing else. The engines make the mount points
//! that they need (`/proc`, `/dev`, `/etc/hosts` …) in the container's own layer.
//!
//! Deliberately absent: compression (the layer is loaded from this machine onto this machine), a
//! creation date, and a second copy of the executable: the layer is put together while it is
//! written.

use std::io::{self, Read, Write};

use serde::Serialize;
use tar::{Builder, EntryType, Header};

use super::{Digest, ENTRYPOINT, EXECUTABLE, MODE, PATH_VARIABLE, wire};

pub(super) const BLOCK: usize = 512;

/// The registry and name of the image. No such registry exists: an engine that lacks the image
/// fails instead of fetching something, and a full name keeps podman and containerd from putting
/// `localhost/` or `docker.io/` in front of it.
const REPOSITORY: &str = "dunnage.local/small";

/// The label that all our images carry, with its value for this one.
pub const IMAGE_LABEL: (&str, &str) = ("dunnage.image", "small");

/// The label that holds the digest of the executable inside.
pub const DIGEST_LABEL: &str = "dunnage.digest";

/// The image `small` around one executable, which it borrows.
pub struct SmallImage<'a> {
    executable: &'a [u8],
    executable_digest: Digest,
    layer_header: Header,
    layer: Blob,
    description: Description,
    reference: String,
}

impl<'a> SmallImage<'a> {
    /// Describes the image around `executable`, a static ELF executable of this architecture.
    /// Reads the bytes twice, for the digests of the executable and of the layer.
    pub fn new(executable: &'a [u8]) -> SmallImage<'a> {
        let executable_digest = Digest::of(executable);
        let layer_header = file_header(EXECUTABLE.trim_start_matches('/'), executable.len(), MODE);
        let layer_digest = Digest::of_reader(&mut layer(&layer_header, executable))
            .expect("reading from memory does not fail");
        let layer = Blob { digest: layer_digest, size: layer_size(executable) as u64 };
        let description = describe(IMAGE_LABEL.1, executable_digest, &[layer]);
        let reference = format!("{REPOSITORY}:{}", description.config_digest.short());
        SmallImage { executable, executable_digest, layer_header, layer, description, reference }
    }

    /// The executable that the image is made of.
    pub fn executable(&self) -> &'a [u8] {
        self.executable
    }

    /// The digest of the executable alone, also in the label [`DIGEST_LABEL`].
    pub fn executable_digest(&self) -> Digest {
        self.executable_digest
    }

    /// The digest of the image's configuration: what docker and podman call the image's ID.
    /// (A docker that keeps its images in containerd shows [`manifest_digest`] instead.)
    ///
    /// [`manifest_digest`]: SmallImage::manifest_digest
    pub fn config_digest(&self) -> Digest {
        self.description.config_digest
    }

    /// The digest of the OCI manifest: what containerd shows as the image's target.
    pub fn manifest_digest(&self) -> Digest {
        self.description.manifest_digest
    }

    /// The name by which every engine knows the image once it is loaded. The tag is the beginning
    /// of [`config_digest`](SmallImage::config_digest), so two executables never share a name, and
    /// an engine's short image ID equals the tag.
    pub fn reference(&self) -> &str {
        &self.reference
    }

    /// Writes the archive. The bytes depend on the executable and the architecture only.
    pub fn write_archive(&self, mut out: &mut impl Write) -> io::Result<()> {
        write(&mut out, &self.description, &self.reference, &[self.layer], &mut |_, out| {
            io::copy(&mut layer(&self.layer_header, self.executable), out).map(drop)
        })
    }
}

/// An uncompressed layer.
#[derive(Clone, Copy)]
pub(super) struct Blob {
    pub digest: Digest,
    pub size: u64,
}

/// What an image says of itself.
pub(super) struct Description {
    pub config: Vec<u8>,
    pub config_digest: Digest,
    pub manifest: Vec<u8>,
    pub manifest_digest: Digest,
}

/// The description of the image of this name, around an executable, of these layers.
pub(super) fn describe(name: &'static str, executable: Digest, layers: &[Blob]) -> Description {
    let config = config_json(name, executable, layers);
    let config_digest = Digest::of(&config);
    let layer = |one: &Blob| wire::Descriptor::new(wire::LAYER_TYPE, one.digest, one.size as usize);
    let manifest = to_json(&wire::Manifest {
        schema_version: 2,
        media_type: wire::MANIFEST_TYPE,
        config: wire::Descriptor::new(wire::CONFIG_TYPE, config_digest, config.len()),
        layers: layers.iter().map(layer).collect(),
    });
    Description { manifest_digest: Digest::of(&manifest), config_digest, config, manifest }
}

/// Writes an archive; `write_layer` writes the layer with this number, of just its size.
pub(super) fn write(
    out: &mut dyn Write,
    image: &Description,
    reference: &str,
    layers: &[Blob],
    write_layer: &mut dyn FnMut(usize, &mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let layout = to_json(&wire::Layout { image_layout_version: "1.0.0" });
    let index = to_json(&wire::Index {
        schema_version: 2,
        media_type: wire::INDEX_TYPE,
        manifests: [wire::IndexEntry {
            descriptor: wire::Descriptor::new(
                wire::MANIFEST_TYPE,
                image.manifest_digest,
                image.manifest.len(),
            ),
            platform: wire::Platform { architecture: architecture(), os: "linux" },
            annotations: wire::Annotations { containerd_name: reference, ref_name: reference },
        }],
    });
    let docker_manifest = to_json(&[wire::DockerManifest {
        config: blob_path(image.config_digest),
        repo_tags: [reference],
        layers: layers.iter().map(|layer| blob_path(layer.digest)).collect(),
    }]);

    let mut archive = Builder::new(out);
    // What names the image comes first, so that a reader that streams knows it early.
    append_file(&mut archive, "oci-layout", &layout)?;
    append_file(&mut archive, "index.json", &index)?;
    append_file(&mut archive, "manifest.json", &docker_manifest)?;
    append_directory(&mut archive, "blobs/")?;
    append_directory(&mut archive, "blobs/sha256/")?;
    append_file(&mut archive, &blob_path(image.manifest_digest), &image.manifest)?;
    append_file(&mut archive, &blob_path(image.config_digest), &image.config)?;
    for (number, layer) in layers.iter().enumerate() {
        // A layer is a tar itself, so it fills whole blocks.
        let out = archive.get_mut();
        out.write_all(file_header(&blob_path(layer.digest), layer.size as usize, 0o644).as_bytes())?;
        write_layer(number, out)?;
    }
    archive.into_inner()?.flush()
}

/// The uncompressed layer: a tar of its own with one entry.
fn layer<'a>(header: &'a Header, executable: &'a [u8]) -> impl Read + 'a {
    let zeros = layer_size(executable) - BLOCK - executable.len();
    header.as_bytes().as_slice().chain(executable).chain(io::repeat(0).take(zeros as u64))
}

/// Header, content up to a full block, and the two empty blocks that end a tar.
fn layer_size(executable: &[u8]) -> usize {
    BLOCK + executable.len().next_multiple_of(BLOCK) + 2 * BLOCK
}

fn config_json(name: &'static str, executable: Digest, layers: &[Blob]) -> Vec<u8> {
    let history = || wire::History { created: EPOCH, created_by: "dunnage" };
    to_json(&wire::Config {
        created: EPOCH,
        architecture: architecture(),
        os: "linux",
        config: wire::Execution {
            env: [PATH_VARIABLE],
            entrypoint: ENTRYPOINT,
            labels: wire::Labels { digest: executable.to_string(), image: name },
        },
        rootfs: wire::RootFs {
            kind: "layers",
            diff_ids: layers.iter().map(|layer| layer.digest.to_string()).collect(),
        },
        history: layers.iter().map(|_| history()).collect(),
    })
}

const EPOCH: &str = "1970-01-01T00:00:00Z";

/// This machine's architecture under the name that OCI took from Go's `GOARCH`.
pub(super) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        "powerpc64" if cfg!(target_endian = "little") => "ppc64le",
        "powerpc64" => "ppc64",
        "loongarch64" => "loong64",
        same @ ("arm" | "riscv64" | "s390x") => same,
        unknown => unknown,
    }
}

fn blob_path(digest: Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

fn append_file(archive: &mut Builder<impl Write>, path: &str, content: &[u8]) -> io::Result<()> {
    archive.append(&file_header(path, content.len(), 0o644), content)
}

fn append_directory(archive: &mut Builder<impl Write>, path: &str) -> io::Result<()> {
    archive.append(&directory_header(path), io::empty())
}

/// The path ends with a slash.
pub(super) fn directory_header(path: &str) -> Header {
    header(path, 0, MODE, EntryType::Directory)
}

pub(super) fn file_header(path: &str, size: usize, mode: u32) -> Header {
    header(path, size, mode, EntryType::Regular)
}

/// A header in which nothing comes from the machine: owner root, modified at the epoch.
fn header(path: &str, size: usize, mode: u32, kind: EntryType) -> Header {
    let mut header = Header::new_ustar();
    header.set_path(path).expect("our paths are short, relative and plain");
    header.set_entry_type(kind);
    header.set_size(size as u64);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_cksum();
    header
}

fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain structs of strings and numbers serialise")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn archive(executable: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        SmallImage::new(executable).write_archive(&mut bytes).unwrap();
        bytes
    }

    /// path → (kind, mode, owner, modified, content)
    type Entries = BTreeMap<String, (EntryType, u32, (u64, u64), u64, Vec<u8>)>;

    fn entries(archive: &[u8]) -> Entries {
        let mut archive = tar::Archive::new(archive);
        let read = |entry: io::Result<tar::Entry<'_, &[u8]>>| {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            let header = entry.header();
            let path = entry.path().unwrap().to_str().unwrap().to_owned();
            let owner = (header.uid().unwrap(), header.gid().unwrap());
            let facts = (header.mode().unwrap(), owner, header.mtime().unwrap());
            (path, (header.entry_type(), facts.0, facts.1, facts.2, content))
        };
        archive.entries().unwrap().map(read).collect()
    }

    fn json(entries: &Entries, path: &str) -> Value {
        serde_json::from_slice(&entries[path].4).unwrap()
    }

    #[test]
    fn the_layer_holds_the_executable_and_nothing_else() {
        let executable = b"not really an executable";
        let image = SmallImage::new(executable);
        let layer = &entries(&archive(executable))[&blob_path(image.layer.digest)].4;
        let expected = (EntryType::Regular, 0o755, (0, 0), 0, executable.to_vec());
        assert_eq!(entries(layer), BTreeMap::from([("dunnage".to_owned(), expected)]));
    }

    #[test]
    fn the_archive_holds_two_manifests_over_the_same_blobs() {
        let image = SmallImage::new(b"x");
        let entries = entries(&archive(b"x"));
        let mut paths = vec![
            "oci-layout".to_owned(),
            "index.json".to_owned(),
            "manifest.json".to_owned(),
            "blobs/".to_owned(),
            "blobs/sha256/".to_owned(),
            blob_path(image.manifest_digest()),
            blob_path(image.config_digest()),
            blob_path(image.layer.digest),
        ];
        paths.sort();
        assert_eq!(entries.keys().cloned().collect::<Vec<_>>(), paths);
        for (path, (kind, mode, owner, modified, content)) in &entries {
            let directory = path.ends_with('/');
            assert_eq!(*kind == EntryType::Directory, directory, "{path}");
            assert_eq!(*mode, if directory { 0o755 } else { 0o644 }, "{path}");
            assert_eq!((*owner, *modified), ((0, 0), 0), "{path}");
            if let (false, Some(digest)) = (directory, path.strip_prefix("blobs/sha256/")) {
                assert_eq!(Digest::of(content).hex(), digest);
            }
        }
        let docker = &json(&entries, "manifest.json")[0];
        let index = &json(&entries, "index.json")["manifests"][0];
        let manifest = json(&entries, &blob_path(image.manifest_digest()));
        assert_eq!(index["digest"], image.manifest_digest().to_string());
        assert_eq!(index["size"], image.description.manifest.len());
        assert_eq!(manifest["config"]["digest"], image.config_digest().to_string());
        assert_eq!(manifest["layers"][0]["size"], 512 + 512 + 1024);
        assert_eq!(docker["Config"], blob_path(image.config_digest()));
        assert_eq!(docker["Layers"][0], blob_path(image.layer.digest));
        assert_eq!(docker["RepoTags"][0], image.reference());
    }

    #[test]
    fn the_configuration_names_entry_point_labels_and_epoch_only() {
        let image = SmallImage::new(b"x");
        let expected = format!(
            r#"{{"created":"1970-01-01T00:00:00Z","architecture":"{}","os":"linux","config":{{"Env":["{PATH_VARIABLE}"],"Entrypoint":["/dunnage","probe"],"Labels":{{"dunnage.digest":"{}","dunnage.image":"small"}}}},"rootfs":{{"type":"layers","diff_ids":["{}"]}},"history":[{{"created":"1970-01-01T00:00:00Z","created_by":"dunnage"}}]}}"#,
            architecture(),
            Digest::of(b"x"),
            image.layer.digest,
        );
        assert_eq!(String::from_utf8_lossy(&image.description.config), expected);
        assert_eq!(image.reference(), format!("dunnage.local/small:{}", image.config_digest().short()));
    }

    #[test]
    fn the_wire_labels_are_the_public_ones() {
        let labels = wire::Labels { digest: String::new(), image: IMAGE_LABEL.1 };
        let labels = serde_json::to_value(labels).unwrap();
        assert_eq!(labels[IMAGE_LABEL.0], IMAGE_LABEL.1);
        assert_eq!(labels[DIGEST_LABEL], "");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn same_bytes_same_archive_and_full_blocks(executable in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let first = archive(&executable);
            prop_assert_eq!(&first, &archive(&executable));
            prop_assert_eq!(first.len() % BLOCK, 0);
            let image = SmallImage::new(&executable);
            let entries = entries(&first);
            prop_assert_eq!(Digest::of(&entries[&blob_path(image.layer.digest)].4), image.layer.digest);
        }
    }
}

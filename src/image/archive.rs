//! dunnage's images as one tar archive that `docker load`, `podman load` and `ctr images import` all accept:
//! an OCI layout, and docker's `manifest.json` for the same blobs.
//!
//! Deliberately absent: compression (an image is loaded on the machine where it is made), a creation date,
//! and a second copy of the layers' content: layers are generated while they are written.

use std::io::{self, Write};

use serde_json::{Value, json};
use tar::{Builder, EntryType, Header};

use super::{Digest, ENTRYPOINT, MODE, PATH_VARIABLE};

/// The label of all dunnage's images, with its value for `small`.
pub const IMAGE_LABEL: (&str, &str) = ("dunnage.image", "small");

/// The label with the digest of the executable inside.
const DIGEST_LABEL: &str = "dunnage.digest";

const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar";

const EPOCH: &str = "1970-01-01T00:00:00Z";

/// An uncompressed layer.
#[derive(Clone, Copy)]
pub(super) struct Blob {
    pub digest: Digest,
    pub size: u64,
}

/// Writes an archive of an image with the executable of this digest; `write_layer` writes the layer with this
/// number, of exactly its size.
pub(super) fn write(
    out: &mut dyn Write,
    [name, reference]: [&str; 2],
    executable: Digest,
    layers: &[Blob],
    write_layer: &mut dyn FnMut(usize, &mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let history = layers.iter().map(|_| json!({ "created": EPOCH, "created_by": "dunnage" }));
    let config = bytes(&json!({
        "created": EPOCH,
        "architecture": architecture(),
        "os": "linux",
        "config": {
            "Env": [PATH_VARIABLE],
            "Entrypoint": ENTRYPOINT,
            "Labels": { DIGEST_LABEL: executable.to_string(), IMAGE_LABEL.0: name },
        },
        "rootfs": {
            "type": "layers",
            "diff_ids": layers.iter().map(|layer| layer.digest.to_string()).collect::<Vec<_>>(),
        },
        "history": history.collect::<Vec<_>>(),
    }));
    let own_layers = layers.iter().map(|layer| descriptor(LAYER_TYPE, layer));
    let manifest = bytes(&json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": descriptor(CONFIG_TYPE, &blob(&config)),
        "layers": own_layers.collect::<Vec<_>>(),
    }));
    let mut entry = descriptor(MANIFEST_TYPE, &blob(&manifest));
    entry["platform"] = json!({ "architecture": architecture(), "os": "linux" });
    // containerd reads its own key, podman the one of the specification.
    entry["annotations"] =
        json!({ "io.containerd.image.name": reference, "org.opencontainers.image.ref.name": reference });
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [entry] });
    let docker_manifest = json!([{
        "Config": blob_path(Digest::of(&config)),
        "RepoTags": [reference],
        "Layers": layers.iter().map(|layer| blob_path(layer.digest)).collect::<Vec<_>>(),
    }]);

    let mut archive = Builder::new(out);
    // The parts that name the image come first, so that a streaming reader knows it early.
    append_file(&mut archive, "oci-layout", &bytes(&json!({ "imageLayoutVersion": "1.0.0" })))?;
    append_file(&mut archive, "index.json", &bytes(&index))?;
    append_file(&mut archive, "manifest.json", &bytes(&docker_manifest))?;
    archive.append(&directory_header("blobs/"), io::empty())?;
    archive.append(&directory_header("blobs/sha256/"), io::empty())?;
    append_file(&mut archive, &blob_path(Digest::of(&manifest)), &manifest)?;
    append_file(&mut archive, &blob_path(Digest::of(&config)), &config)?;
    for (number, layer) in layers.iter().enumerate() {
        // A layer is a tar itself, so it fills whole blocks.
        let out = archive.get_mut();
        out.write_all(file_header(&blob_path(layer.digest), layer.size as usize, 0o644).as_bytes())?;
        write_layer(number, out)?;
    }
    archive.into_inner()?.flush()
}

fn blob(bytes: &[u8]) -> Blob {
    Blob { digest: Digest::of(bytes), size: bytes.len() as u64 }
}

fn descriptor(media_type: &str, blob: &Blob) -> Value {
    json!({ "mediaType": media_type, "digest": blob.digest.to_string(), "size": blob.size })
}

fn bytes(document: &Value) -> Vec<u8> {
    document.to_string().into_bytes()
}

/// This machine's architecture, as a value of Go's `GOARCH`, which OCI uses.
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

/// The path ends with a slash.
pub(super) fn directory_header(path: &str) -> Header {
    header(path, 0, MODE, EntryType::Directory)
}

pub(super) fn file_header(path: &str, size: usize, mode: u32) -> Header {
    header(path, size, mode, EntryType::Regular)
}

/// A header without anything from the machine: owner root, modified at the epoch.
fn header(path: &str, size: usize, mode: u32, kind: EntryType) -> Header {
    let mut header = Header::new_ustar();
    header.set_path(path).expect("dunnage's paths are short, relative and plain");
    header.set_entry_type(kind);
    header.set_size(size as u64);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_cksum();
    header
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read;

    use proptest::prelude::*;

    use super::super::Image;
    use super::*;

    fn archive(executable: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        Image::small(executable).write_archive(&mut bytes, &|| true).unwrap();
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

    /// The only blob that another document names here.
    fn named(document: &Value) -> String {
        let digest = document["digest"].as_str().unwrap();
        format!("blobs/{}", digest.replace(':', "/"))
    }

    #[test]
    fn the_archive_holds_two_manifests_over_the_same_blobs() {
        let executable = b"not really an executable";
        let image = Image::small(executable);
        let entries = entries(&archive(executable));
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
        let manifest = json(&entries, &named(index));
        let (config, layer) = (named(&manifest["config"]), named(&manifest["layers"][0]));
        let mut paths = vec!["oci-layout", "index.json", "manifest.json", "blobs/", "blobs/sha256/"];
        let named = named(index);
        paths.extend([&named[..], &config, &layer]);
        paths.sort();
        assert_eq!(entries.keys().collect::<Vec<_>>(), paths);
        assert_eq!(index["size"], entries[&named].4.len());
        assert_eq!(manifest["layers"][0]["size"], 512 + 512 + 1024);
        assert_eq!((&docker["Config"], &docker["Layers"][0]), (&json!(config), &json!(layer)));
        assert_eq!(docker["RepoTags"][0], image.reference);
        let expected = (EntryType::Regular, 0o755, (0, 0), 0, executable.to_vec());
        assert_eq!(
            super::tests::entries(&entries[&layer].4),
            BTreeMap::from([("dunnage".to_owned(), expected)])
        );
        let config = json(&entries, &config);
        assert_eq!(
            config["config"],
            json!({
                "Env": [PATH_VARIABLE],
                "Entrypoint": ["/dunnage", "probe"],
                "Labels": { "dunnage.digest": Digest::of(executable).to_string(), "dunnage.image": "small" },
            })
        );
        assert_eq!((&config["created"], &config["os"]), (&json!(EPOCH), &json!("linux")));
        assert_eq!(config["rootfs"]["diff_ids"], json!([manifest["layers"][0]["digest"]]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn same_bytes_same_archive_and_full_blocks(executable in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let first = archive(&executable);
            prop_assert_eq!(&first, &archive(&executable));
            prop_assert_eq!(first.len() % 512, 0);
        }
    }
}

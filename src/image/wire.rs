//! The documents of the OCI image specification 1.0 and of docker's archive, as far as our
//! images need them. Structs and not free-form values, because the order of fields decides the
//! digests.
//!
//! Deliberately absent: reading them, and a use outside `archive.rs`.

use serde::Serialize;

use super::Digest;

pub const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
pub const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
pub const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
pub const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Layout {
    pub image_layout_version: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Index<'a> {
    pub schema_version: u8,
    pub media_type: &'static str,
    pub manifests: [IndexEntry<'a>; 1],
}

#[derive(Serialize)]
pub struct IndexEntry<'a> {
    #[serde(flatten)]
    pub descriptor: Descriptor,
    pub platform: Platform,
    pub annotations: Annotations<'a>,
}

#[derive(Serialize)]
pub struct Platform {
    pub architecture: &'static str,
    pub os: &'static str,
}

/// containerd reads its own key, podman the one of the specification.
#[derive(Serialize)]
pub struct Annotations<'a> {
    #[serde(rename = "io.containerd.image.name")]
    pub containerd_name: &'a str,
    #[serde(rename = "org.opencontainers.image.ref.name")]
    pub ref_name: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    media_type: &'static str,
    digest: String,
    size: usize,
}

impl Descriptor {
    pub fn new(media_type: &'static str, digest: Digest, size: usize) -> Descriptor {
        Descriptor { media_type, digest: digest.to_string(), size }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    pub schema_version: u8,
    pub media_type: &'static str,
    pub config: Descriptor,
    pub layers: Vec<Descriptor>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct DockerManifest<'a> {
    pub config: String,
    pub repo_tags: [&'a str; 1],
    pub layers: Vec<String>,
}

#[derive(Serialize)]
pub struct Config {
    pub created: &'static str,
    pub architecture: &'static str,
    pub os: &'static str,
    pub config: Execution,
    pub rootfs: RootFs,
    pub history: Vec<History>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Execution {
    pub env: [&'static str; 1],
    pub entrypoint: [&'static str; 2],
    pub labels: Labels,
}

#[derive(Serialize)]
pub struct Labels {
    #[serde(rename = "dunnage.digest")]
    pub digest: String,
    #[serde(rename = "dunnage.image")]
    pub image: &'static str,
}

#[derive(Serialize)]
pub struct RootFs {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub diff_ids: Vec<String>,
}

#[derive(Serialize)]
pub struct History {
    pub created: &'static str,
    pub created_by: &'static str,
}

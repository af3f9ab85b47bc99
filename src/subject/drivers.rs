//! Storage drivers: what each makes of a container's root as the probe reads it back, and which version of an
//! engine dropped it. How an engine gets a driver is in the engine's own file.

use super::{Description, Spec, Unavailable};
use crate::probe::message::Inside;

/// A storage driver of an engine.
#[derive(Debug, PartialEq, Eq)]
pub struct Storage {
    /// The engine.
    engine: &'static str,
    /// Its name, as the value of the key `storage`.
    pub name: &'static str,
    root: Root,
    /// The first version without it, major and minor.
    dropped: Option<(u32, u32)>,
}

/// What the root of a container is.
#[derive(Debug, PartialEq, Eq)]
enum Root {
    /// A mount of one of these types.
    Of(&'static [&'static str]),
    /// The kernel's overlay, with its upper directory below one of this name.
    OverlayBelow(&'static str),
    /// A plain directory or disk: anything but a union of layers.
    Plain,
}

/// The types of a root that is a union of layers.
const UNIONS: [&str; 4] = ["overlay", "fuse.fuse-overlayfs", "fuse", "aufs"];
/// The types that fuse-overlayfs has.
const FUSE: Root = Root::Of(&["fuse.fuse-overlayfs", "fuse"]);

const fn of(engine: &'static str, name: &'static str, root: Root) -> Storage {
    Storage { engine, name, root, dropped: None }
}

const fn dropped(name: &'static str, root: Root, version: (u32, u32)) -> Storage {
    Storage { dropped: Some(version), ..of("docker", name, root) }
}

/// The name of the containerd image store.
pub const CONTAINERD: &str = "containerd";

static ALL: [Storage; 12] = [
    of("docker", "overlay2", Root::OverlayBelow("/overlay2/")),
    of("docker", "fuse-overlayfs", FUSE),
    of("docker", "vfs", Root::Plain),
    of("docker", "btrfs", Root::Of(&["btrfs"])),
    of("docker", "zfs", Root::Of(&["zfs"])),
    of("docker", CONTAINERD, Root::OverlayBelow("/io.containerd.snapshotter.v1.overlayfs/")),
    // The versions are those of Docker's list of deprecated features.
    dropped("overlay", Root::OverlayBelow("/overlay/"), (24, 0)),
    dropped("aufs", Root::Of(&["aufs"]), (24, 0)),
    dropped("devicemapper", Root::Plain, (25, 0)),
    of("podman", "overlay", Root::OverlayBelow("/overlay/")),
    of("podman", "fuse-overlayfs", FUSE),
    of("podman", "vfs", Root::Plain),
];

impl Storage {
    /// The driver that a specification asks for.
    pub fn of(spec: &Spec) -> Option<&'static Storage> {
        Storage::named(&spec.name, spec.get("storage")?)
    }

    /// The driver of an engine with this name.
    pub(super) fn named(engine: &str, name: &str) -> Option<&'static Storage> {
        ALL.iter().find(|one| one.engine == engine && one.name == name)
    }

    /// Refuses a version of the engine that no longer has it.
    pub(super) fn check_version(&self, version: Option<(u32, u32)>) -> Result<(), Unavailable> {
        match (self.dropped, version) {
            (Some((major, minor)), Some(own)) if own >= (major, minor) => Err(Unavailable::because(format!(
                "{} dropped the storage driver `{}` in version {major}.{minor}, and this is {}.{}",
                self.engine, self.name, own.0, own.1
            ))),
            (None, Some((major, minor))) if self.name == CONTAINERD && major < 24 => {
                Err(Unavailable::because(format!(
                    "the containerd image store needs docker 24 or newer, and this is {major}.{minor}"
                )))
            }
            _ => Ok(()),
        }
    }

    /// What is wrong with the root that the probe found.
    pub(super) fn fault(&self, inside: &Inside) -> Option<String> {
        let Some((found, options)) = inside.root() else {
            return Some("its root is not among its mounts".into());
        };
        let asked = format!("the storage driver {} was asked for and its root is ", self.name);
        match self.root {
            Root::Of(types) if !types.contains(&found.as_str()) => {
                Some(format!("{asked}on `{found}`, not on {}", types.join(" or ")))
            }
            Root::OverlayBelow(_) if found != "overlay" => {
                Some(format!("{asked}on `{found}`, not on overlay"))
            }
            Root::OverlayBelow(place) => {
                // Engines shorten the paths of many layers to relative ones, which name no directory.
                let upper = options.split(',').find_map(|option| option.strip_prefix("upperdir="));
                let upper = upper.filter(|path| path.starts_with('/') && !path.contains(place))?;
                Some(format!("{asked}below `{upper}`"))
            }
            Root::Plain if UNIONS.contains(&found.as_str()) => Some(format!("{asked}on `{found}`")),
            _ => None,
        }
    }

    /// Where it keeps images, in words.
    pub(super) fn kept_by(&self) -> &'static str {
        if self.name == CONTAINERD { "containerd image store" } else { "graph driver" }
    }
}

/// Whether a subject keeps each layer as a copy of all below it, as recorded about it.
pub fn copies_every_layer(about: &Description) -> bool {
    let notes = about.facts.notes.iter();
    let names = ["storage driver", "snapshotter"];
    notes
        .filter(|(name, _)| names.contains(name))
        .any(|(_, driver)| ["vfs", "native"].contains(&driver.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn storage(text: &str) -> &'static Storage {
        Storage::of(&Spec::parse(text).unwrap()).unwrap()
    }

    fn root(kind: &str, options: &str) -> Inside {
        Inside { mounts: vec![format!("1 0 0:5 / / rw - {kind} {kind} rw,{options}")], ..Inside::default() }
    }

    #[test]
    fn every_declared_driver_is_known() {
        for (kind, name) in
            [(&super::super::kinds::DOCKER, "docker"), (&super::super::kinds::PODMAN, "podman")]
        {
            let key = kind.keys.iter().find(|key| key.name == "storage").unwrap();
            let super::super::Values::OneOf(words) = key.values else { panic!("a choice") };
            assert_eq!(words.len(), ALL.iter().filter(|one| one.engine == name).count());
            let is_known = |word: &&str| storage(&format!("{name}:storage={word}")).name == *word;
            assert!(words.iter().all(is_known));
        }
        assert_eq!(Storage::of(&Spec::plain("docker")), None);
    }

    #[test]
    fn the_root_tells_the_driver() {
        let overlay = |place: &str| root("overlay", &format!("lowerdir=/a,upperdir=/var/lib/{place}/1/diff"));
        let contained = overlay("c/io.containerd.snapshotter.v1.overlayfs/snapshots");
        let good = [
            ("docker:storage=overlay2", overlay("docker/overlay2")),
            ("docker:storage=overlay2", root("overlay", "lowerdir=l/A:l/B,upperdir=1/diff")),
            ("docker:storage=overlay", overlay("docker/overlay")),
            ("docker:storage=containerd", contained),
            ("docker:storage=vfs", root("ext4", "data=ordered")),
            ("docker:storage=btrfs", root("btrfs", "subvol=/1")),
            ("docker:storage=fuse-overlayfs", root("fuse.fuse-overlayfs", "user_id=0")),
            ("podman:storage=overlay", overlay("containers/storage/overlay")),
        ];
        for (text, inside) in &good {
            assert_eq!(storage(text).fault(inside), None, "{text}");
        }
        let bad = [
            ("docker:storage=overlay2", overlay("docker/overlay"), "below `/var/lib/docker/overlay/1/diff`"),
            ("docker:storage=containerd", overlay("docker/overlay2"), "/overlay2/"),
            ("docker:storage=vfs", overlay("docker/overlay2"), "on `overlay`"),
            ("podman:storage=vfs", root("fuse.fuse-overlayfs", "user_id=0"), "on `fuse.fuse-overlayfs`"),
            ("podman:storage=overlay", root("fuse.fuse-overlayfs", "user_id=0"), "not on overlay"),
            ("podman:storage=fuse-overlayfs", overlay("s/overlay"), "on `overlay`, not on fuse"),
            ("docker:storage=btrfs", root("ext4", "x"), "on `ext4`, not on btrfs"),
        ];
        for (text, inside, words) in &bad {
            let fault = storage(text).fault(inside).unwrap_or_else(|| panic!("{text} passed"));
            assert!(fault.contains(words), "{fault}");
        }
    }

    #[test]
    fn a_dropped_driver_names_the_version() {
        let refused =
            |text: &str, version| storage(text).check_version(Some(version)).map_err(|why| why.reason);
        for (text, last, first) in [
            ("docker:storage=aufs", (23, 0), (24, 0)),
            ("docker:storage=overlay", (20, 10), (24, 0)),
            ("docker:storage=devicemapper", (24, 0), (25, 0)),
        ] {
            assert_eq!(refused(text, last), Ok(()));
            let reason = refused(text, first).unwrap_err();
            assert!(reason.contains(&format!("in version {}.{}", first.0, first.1)), "{reason}");
        }
        assert!(refused("docker:storage=containerd", (23, 0)).unwrap_err().contains("docker 24 or newer"));
        assert_eq!(refused("docker:storage=containerd", (24, 0)), Ok(()));
        assert_eq!(refused("docker:storage=overlay2", (29, 1)), Ok(()));
    }
}

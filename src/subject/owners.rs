//! Who the users inside a container are outside, and how the files of its image came to belong to them.
//!
//! The second is decided by what is on the disk: an overlay whose layers are mounted with mapped ids does not show it.
//! Deliberately absent: images whose files do not belong to root.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::storage;
use crate::host::mounts;

/// How users inside must be mapped to users outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserMap {
    /// With this line of ids inside, ids outside, and their number.
    Has(String),
    /// Root inside is not root outside.
    Moved,
    /// Root inside is root outside.
    Same,
}

impl UserMap {
    /// What is wrong with the mapping that the probe found.
    pub(super) fn fault(&self, found: &[String]) -> Option<String> {
        let outside = |line: &String| {
            line.strip_prefix("0 ").and_then(|line| line.split(' ').next()).map(str::to_owned)
        };
        match self {
            UserMap::Has(line) => (!found.contains(line))
                .then(|| format!("its user mapping is {found:?} and must have the line `{line}`")),
            UserMap::Moved => found.iter().find_map(outside).is_none_or(|root| root == "0").then(|| {
                format!("its user mapping is {found:?}, in which root inside is not another user outside")
            }),
            UserMap::Same => (found.iter().find_map(outside).as_deref() != Some("0"))
                .then(|| format!("its user mapping is {found:?}, in which root inside is not root outside")),
        }
    }
}

/// How the files of an image came to belong to the users inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owners {
    /// Root inside is root outside.
    None,
    /// They were given to these users when the image was unpacked.
    Unpacked,
    /// They were given to these users in a layer that the engine made.
    Chowned,
    /// They still belong to others, and their owners are mapped when they are read.
    Idmapped,
    /// It is not to be seen.
    Unknown,
}

impl Owners {
    /// The word that is recorded.
    pub fn word(self) -> &'static str {
        match self {
            Owners::None => "none",
            Owners::Unpacked => "unpacked",
            Owners::Chowned => "chowned",
            Owners::Idmapped => "idmapped",
            Owners::Unknown => "unknown",
        }
    }

    /// By a file of the image that belongs to root there, in the container with this first process.
    pub fn of(first_process: i32, file: &Path) -> Owners {
        Owners::seen(first_process, file).unwrap_or(Owners::Unknown)
    }

    fn seen(first_process: i32, file: &Path) -> Option<Owners> {
        let process = Path::new("/proc").join(first_process.to_string());
        let root = root_outside(&fs::read_to_string(process.join("uid_map")).ok()?)?;
        let within = |place: &Path| place.join(file.strip_prefix("/").unwrap_or(file));
        let owner = |place: &Path| fs::symlink_metadata(within(place)).ok().map(|facts| facts.uid());
        if root == 0 || owner(&process.join("root")) != Some(root) {
            return Some(if root == 0 { Owners::None } else { Owners::Unknown });
        }
        let table = mounts::parse(&fs::read_to_string(process.join("mountinfo")).ok()?);
        let mount = table.iter().rfind(|mount| mount.point == Path::new("/"))?;
        if mount.options.iter().any(|option| option == "idmapped") {
            return Some(Owners::Idmapped);
        }
        let layers = storage::layers(first_process, Path::new("/")).ok()?;
        Owners::by(root, &layers.iter().filter_map(|layer| owner(layer)).collect::<Vec<_>>())
    }

    /// By root's id outside, and the file's owner in every layer that has it, the topmost first.
    fn by(root: u32, owners: &[u32]) -> Option<Owners> {
        Some(match (owners.first()? == &root, owners.last()? == &root) {
            (true, true) => Owners::Unpacked,
            (true, false) => Owners::Chowned,
            (false, _) => Owners::Idmapped,
        })
    }
}

/// The id outside of root inside, by the text of an `uid_map`.
fn root_outside(map: &str) -> Option<u32> {
    let mut lines = map.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines.find(|fields| fields.first() == Some(&"0"))?.get(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_mapped_as_asked() {
        let fault = |asked: &UserMap, lines: &[&str]| {
            asked.fault(&lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>())
        };
        let keeps = UserMap::Has("1000 0 1".to_owned());
        assert_eq!(fault(&keeps, &["0 1 1000", "1000 0 1"]), None);
        assert!(fault(&keeps, &["0 1000 1"]).unwrap().contains("must have the line `1000 0 1`"));
        assert_eq!(fault(&UserMap::Moved, &["0 100000 65536"]), None);
        for lines in [&["0 0 4294967295"][..], &["1000 0 1"], &[]] {
            assert!(fault(&UserMap::Moved, lines).unwrap().contains("root inside is not another user"));
        }
        assert_eq!(fault(&UserMap::Same, &["0 0 4294967295"]), None);
        for lines in [&["0 100000 65536"][..], &["1000 0 1"], &[]] {
            assert!(fault(&UserMap::Same, lines).unwrap().contains("root inside is not root outside"));
        }
    }

    #[test]
    fn the_owner_of_a_file_in_each_layer_tells_how_it_came_to_it() {
        let by = |owners: &[u32]| Owners::by(100_000, owners);
        assert_eq!(by(&[100_000]), Some(Owners::Unpacked));
        assert_eq!(by(&[100_000, 0]), Some(Owners::Chowned));
        assert_eq!(by(&[0]), Some(Owners::Idmapped));
        assert_eq!(by(&[]), None);
        assert_eq!(root_outside("         0     100000      65536\n"), Some(100_000));
        assert_eq!(root_outside("1000 0 1\n0 1 1000\n"), Some(1));
    }

    #[test]
    fn a_process_without_a_container_has_files_of_the_same_owners() {
        let owners = Owners::of(std::process::id() as i32, Path::new("/proc/self/exe"));
        assert!([Owners::None, Owners::Unknown].contains(&owners));
        assert_eq!(Owners::of(0, Path::new("/")).word(), "unknown");
    }
}

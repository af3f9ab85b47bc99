//! Access control lists of directories, as the extended attribute that the kernel keeps them in: they give a right to one user
//! where a mode gives it to all.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::io::Errno;

use super::filesystem::{attribute, set_attribute};

/// The extended attribute with a file's access control list.
const ACL: &str = "system.posix_acl_access";

/// As long as an extended attribute can be.
const LONGEST: usize = 1 << 16;

/// The extended attribute with the list that what is made in a directory gets.
const DEFAULT: &str = "system.posix_acl_default";

/// Takes both lists from a directory: it may have inherited them.
pub fn clear(directory: &Path) -> io::Result<()> {
    for name in [DEFAULT, ACL] {
        match rustix::fs::removexattr(directory, name) {
            // Where a filesystem has no lists there is none to take.
            Ok(()) | Err(Errno::NODATA | Errno::NOTSUP) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Whether a directory's lists give nothing to single users but to pass through it, as [`List::let_pass`] does.
pub fn only_lets_pass(directory: &Path) -> bool {
    let list = followed(directory, ACL).map(|bytes| List::parse(&bytes));
    let lets_pass = |(tag, rights, _): &(u16, u16, u32)| match *tag {
        List::OWNER | List::GROUP | List::MASK | List::OTHER => true,
        List::USER => *rights == List::PASS,
        _ => false,
    };
    let is_fine = match list {
        Ok(list) => list.is_some_and(|List(entries)| entries.iter().all(lets_pass)),
        Err(_) => true,
    };
    is_fine && followed(directory, DEFAULT).is_err()
}

/// Whether a file has one.
pub fn is_there(file: &Path) -> bool {
    followed(file, ACL).is_ok()
}

/// The attribute of what a link leads to, as those in `/proc` to open files do.
fn followed(path: &Path, name: &str) -> rustix::io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(LONGEST);
    rustix::fs::getxattr(path, name, rustix::buffer::spare_capacity(&mut bytes))?;
    Ok(bytes)
}

/// Changes a directory's access control list, if `how` says that it changed something.
pub fn change(directory: &Path, how: impl FnOnce(&mut List) -> bool) -> io::Result<()> {
    let mut list = match attribute(directory, ACL) {
        Ok(bytes) => List::parse(&bytes)
            .ok_or_else(|| io::Error::other("its access control list is of an unknown version"))?,
        Err(error) if error.raw_os_error() == Some(Errno::NODATA.raw_os_error()) => {
            List::of_mode(std::fs::symlink_metadata(directory)?.mode())
        }
        Err(error) => return Err(error),
    };
    match how(&mut list) {
        true => set_attribute(directory, ACL, &list.bytes()),
        false => Ok(()),
    }
}

/// An access control list: tag, rights and id of each entry, as in the kernel's `posix_acl_xattr.h`.
#[derive(Debug, PartialEq, Eq)]
pub struct List(Vec<(u16, u16, u32)>);

impl List {
    const VERSION: u32 = 2;
    const OWNER: u16 = 0x01;
    const USER: u16 = 0x02;
    const GROUP: u16 = 0x04;
    const MASK: u16 = 0x10;
    const OTHER: u16 = 0x20;
    const NO_ID: u32 = u32::MAX;
    const PASS: u16 = 1;
    const ALL: u16 = 7;

    fn of_mode(mode: u32) -> List {
        let rights = |shift: u32| (mode >> shift & 7) as u16;
        let entry = |tag, shift| (tag, rights(shift), List::NO_ID);
        List(vec![entry(List::OWNER, 6), entry(List::GROUP, 3), entry(List::OTHER, 0)])
    }

    fn parse(bytes: &[u8]) -> Option<List> {
        let (version, entries) = bytes.split_first_chunk::<4>()?;
        if u32::from_le_bytes(*version) != List::VERSION {
            return None;
        }
        let parse = |entry: &[u8]| match *entry {
            [a, b, c, d, e, f, g, h] => {
                (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]), u32::from_le_bytes([e, f, g, h]))
            }
            _ => unreachable!("chunks are of eight bytes"),
        };
        Some(List(entries.chunks_exact(8).map(parse).collect()))
    }

    /// Lets a user pass; whether this changed the list.
    pub fn let_pass(&mut self, user: u32) -> bool {
        self.allow(List::USER, user)
    }

    /// Lets the directory's group pass; whether this changed the list.
    pub fn let_group_pass(&mut self) -> bool {
        self.allow(List::GROUP, List::NO_ID)
    }

    /// Gives a user all of the owner's rights, and all others none.
    pub fn give_all(&mut self, user: u32) -> bool {
        self.0.retain(|(tag, ..)| *tag == List::OWNER);
        self.0.extend([(List::GROUP, 0, List::NO_ID), (List::OTHER, 0, List::NO_ID)]);
        self.0.extend([(List::USER, List::ALL, user), (List::MASK, List::ALL, List::NO_ID)]);
        self.0.sort_unstable_by_key(|(tag, _, id)| (*tag, *id));
        true
    }

    /// Adds `x` to an entry; whether this changed the list.
    fn allow(&mut self, tag: u16, id: u32) -> bool {
        let before = self.0.clone();
        let add = |all: &mut Vec<(u16, u16, u32)>, tag, id| match all
            .iter_mut()
            .find(|entry| (entry.0, entry.2) == (tag, id))
        {
            Some(entry) => entry.1 |= List::PASS,
            None => all.push((tag, List::PASS, id)),
        };
        add(&mut self.0, tag, id);
        // A list with single users has a mask for them and the group.
        let has = |all: &[(u16, u16, u32)], tag| all.iter().any(|entry| entry.0 == tag);
        if has(&self.0, List::USER) && !has(&self.0, List::MASK) {
            let group = self.0.iter().find(|entry| entry.0 == List::GROUP).map_or(0, |entry| entry.1);
            self.0.push((List::MASK, group, List::NO_ID));
        }
        if has(&self.0, List::MASK) {
            add(&mut self.0, List::MASK, List::NO_ID);
        }
        self.0.sort_unstable_by_key(|(tag, _, id)| (*tag, *id));
        self.0 != before
    }

    fn bytes(&self) -> Vec<u8> {
        let entry = |(tag, rights, id): &(u16, u16, u32)| {
            [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat()
        };
        std::iter::once(List::VERSION.to_le_bytes().to_vec())
            .chain(self.0.iter().map(entry))
            .flatten()
            .collect()
    }
}

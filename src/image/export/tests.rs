//! Tars made here and unpacked: what is kept, what is reported as lost, what is refused.
use std::os::unix::fs::symlink;

use tar::{Builder, Header};

use super::*;

const ID: &str = "0123456789abcdef";

fn header(kind: EntryType, mode: u32, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(1_000_000);
    header.set_uid(0);
    header.set_gid(0);
    header
}

fn config() -> Config {
    Config { id: ID.into(), ..Config::default() }
}

/// Unpacks a tar that `fill` wrote, under a state directory.
fn unpacked(
    state: &Path,
    fill: impl FnOnce(&mut Builder<File>) -> io::Result<()>,
) -> Result<(Export, Vec<String>)> {
    let path = state.join("export.tar");
    let mut tar = Builder::new(File::create(&path).unwrap());
    fill(&mut tar).unwrap();
    tar.finish().unwrap();
    unpack(state, &config(), &path, &|| true)
}

#[test]
fn files_links_modes_times_and_long_names_are_kept() {
    let state = tempfile::tempdir().unwrap();
    let long = format!("usr/{}/{}", "d".repeat(150), "f".repeat(120));
    let (export, lost) = unpacked(state.path(), |tar| {
        tar.append_data(&mut header(EntryType::Directory, 0o750, 0), "usr/", io::empty())?;
        tar.append_data(&mut header(EntryType::Regular, 0o4755, 3), "usr/set", &b"abc"[..])?;
        tar.append_link(&mut header(EntryType::Link, 0o4755, 0), "usr/same", "usr/set")?;
        tar.append_link(&mut header(EntryType::Symlink, 0o777, 0), "bin", "/usr")?;
        tar.append_data(&mut header(EntryType::Fifo, 0o600, 0), "usr/pipe", io::empty())?;
        tar.append_data(&mut header(EntryType::Regular, 0o400, 1), &long, &b"x"[..])
    })
    .unwrap();
    let facts = |name: &str| fs::symlink_metadata(export.root.join(name)).unwrap();
    assert_eq!(lost, Vec::<String>::new());
    assert_eq!((facts("usr/set").mode() & 0o7777, facts("usr/set").mtime()), (0o4755, 1_000_000));
    assert_eq!(facts("usr/set").ino(), facts("usr/same").ino());
    assert_eq!((facts("usr").mode() & 0o7777, facts("usr").mtime()), (0o750, 1_000_000));
    assert_eq!(fs::read_link(export.root.join("bin")).unwrap(), Path::new("/usr"));
    assert_eq!(facts("usr/pipe").mode() & libc::S_IFMT, libc::S_IFIFO);
    assert_eq!(facts(&long).len(), 1);
    assert_eq!(find(state.path(), ID).unwrap(), Some(export));
}

#[test]
fn attributes_are_set_or_told() {
    let state = tempfile::tempdir().unwrap();
    let (export, lost) = unpacked(state.path(), |tar| {
        let value: &[u8] = b"\x00\x01";
        tar.append_pax_extensions([("SCHILY.xattr.user.mark", value)])?;
        tar.append_data(&mut header(EntryType::Regular, 0o644, 1), "file", &b"x"[..])
    })
    .unwrap();
    match filesystem::attribute(&export.root.join("file"), "user.mark") {
        Ok(value) => assert_eq!((value, lost.len()), (b"\x00\x01".to_vec(), 0)),
        // Not every filesystem supports them.
        Err(_) => assert!(lost[0].contains("user.mark"), "{lost:?}"),
    }
}

#[test]
fn nothing_leads_out_of_the_root() {
    let outside = tempfile::tempdir().unwrap();
    for name in ["link/file", "../file"] {
        let state = tempfile::tempdir().unwrap();
        let refused = unpacked(state.path(), |tar| {
            let mut link = header(EntryType::Symlink, 0o777, 0);
            tar.append_link(&mut link, "link", outside.path())?;
            // The library refuses to write such names itself.
            let mut file = header(EntryType::Regular, 0o644, 1);
            file.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            file.set_cksum();
            tar.append(&file, &b"x"[..])
        });
        let why = format!("{:#}", refused.unwrap_err());
        assert!(why.contains(name), "{why}");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
        assert_eq!(fs::read_dir(state.path().join("images")).unwrap().count(), 0);
    }
}

#[test]
fn a_damaged_root_is_made_again_and_a_whole_one_used() {
    let state = tempfile::tempdir().unwrap();
    let fill = |tar: &mut Builder<File>| {
        tar.append_data(&mut header(EntryType::Regular, 0o644, 1), "file", &b"x"[..])
    };
    let (export, _) = unpacked(state.path(), fill).unwrap();
    let inode = || fs::metadata(export.root.join("file")).unwrap().ino();
    let first = inode();
    unpacked(state.path(), fill).unwrap();
    assert_eq!(inode(), first);
    fs::write(export.root.join("more"), b"").unwrap();
    assert_eq!(find(state.path(), ID).unwrap(), None);
    unpacked(state.path(), fill).unwrap();
    assert!(!export.root.join("more").exists());
    assert!(unpack(state.path(), &config(), Path::new("/nonexistent"), &|| false).is_ok(), "it is complete");
    assert!(find(state.path(), "../../etc").is_err());
}

#[test]
fn links_are_followed_inside_and_never_out() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("run/deep")).unwrap();
    fs::create_dir(root.path().join("var")).unwrap();
    symlink("/run", root.path().join("var/run")).unwrap();
    symlink("../../../..", root.path().join("run/out")).unwrap();
    symlink("loop", root.path().join("loop")).unwrap();
    let at = |path: &str| resolve(root.path(), Path::new(path)).ok();
    assert_eq!(at("/var/run/deep/file"), Some("run/deep/file".into()));
    assert_eq!(at("/run/out/etc"), Some("etc".into()));
    assert_eq!(at("/../../x"), Some("x".into()));
    assert_eq!(at("/loop/x"), None);
}

#[test]
fn root_is_root_under_all_its_names() {
    for (user, root) in [("", true), ("0", true), ("root:0", true), ("1000", false), ("0:100", false)] {
        assert_eq!(Config { user: user.into(), ..Config::default() }.is_root(), root, "{user}");
    }
}

//! Mounts with the newer calls that replace `mount`: a filesystem is configured (`fsopen`, `fsconfig`),
//! becomes a detached mount (`fsmount`, `open_tree`), and is attached (`move_mount`).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::super::raw;
use super::super::steps::{Argument, Asked, Step, here, number, text};
use super::pieces::Mounts;

const OPEN_TREE_NAMESPACE: u32 = 1 << 1;
const SET_FLAG: u32 = 0;
const SET_STRING: u32 = 1;
const CREATE: u32 = 6;
const CLOSE_ON_EXEC: u32 = 1;
const FROM_EMPTY_PATH: u32 = 4;
const STRICTATIME: u64 = 0x20;
/// Flags of `mount` with the same values as attributes of a mount.
const ATTRIBUTES: libc::c_ulong = libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;

impl Mounts {
    /// Why this kernel cannot mount this way.
    pub fn lacking(self) -> Option<&'static str> {
        let path = c"".as_ptr() as usize;
        let call = |number, flags: u32| {
            // SAFETY: the descriptor is not valid, so each call is refused before it does anything.
            unsafe { raw::syscall(number, [usize::MAX, path, flags as usize, 0, 0, 0]) }
        };
        let known_flags = OPEN_TREE_NAMESPACE | libc::AT_EMPTY_PATH as u32;
        match self {
            Mounts::Mount => None,
            Mounts::Fsmount => (call(libc::SYS_mount_setattr, 0) == Err(libc::ENOSYS))
                .then_some("this kernel has no `mount_setattr`, which needs Linux 5.12"),
            // An unknown flag is refused before anything else is checked.
            Mounts::OpenTree => {
                matches!(call(libc::SYS_open_tree, known_flags), Err(libc::EINVAL | libc::ENOSYS))
                    .then_some("this kernel has no `OPEN_TREE_NAMESPACE`, which needs Linux 7.0")
            }
        }
    }
}

/// The calls that do the same as a `mount`; any other step unchanged.
pub(super) fn by_descriptor(step: Step) -> Vec<Step> {
    let Some(asked) = step.mounts() else { return vec![step] };
    let (flags, recursive) =
        (asked.flags, if asked.flags & libc::MS_REC > 0 { libc::AT_RECURSIVE } else { 0 });
    if flags & libc::MS_PRIVATE > 0 || flags & libc::MS_REMOUNT > 0 {
        let words = [flags & ATTRIBUTES, 0, flags & libc::MS_PRIVATE, 0];
        let size = size_of_val(&words);
        let arguments =
            [here(), text(asked.target), number(recursive), Argument::Words(Box::new(words)), number(size)];
        return vec![step.instead(libc::SYS_mount_setattr, arguments)];
    }
    let mut steps = match asked.kind {
        Some(_) => detached(&step, asked),
        None => {
            let clone = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | recursive as u32;
            let arguments = [here(), text(asked.source), number(clone)];
            vec![step.instead(libc::SYS_open_tree, arguments).opening()]
        }
    };
    let place = [number(0usize), text(""), here(), text(asked.target), number(FROM_EMPTY_PATH)];
    steps.extend([step.instead(libc::SYS_move_mount, place).on_descriptor(), Step::close()]);
    steps
}

/// The mount of a new filesystem, detached.
fn detached(step: &Step, asked: Asked<'_>) -> Vec<Step> {
    let configure = |command: u32, key: &OsStr, value: Option<&OsStr>| {
        let given = |text_of: Option<&OsStr>| text_of.map_or(Argument::Number(0), text);
        let key = Some(key).filter(|key| !key.is_empty());
        let arguments = [number(0usize), number(command), given(key), given(value), number(0usize)];
        step.instead(libc::SYS_fsconfig, arguments).on_descriptor()
    };
    let kind = text(asked.kind.unwrap_or_default());
    let mut steps = vec![step.instead(libc::SYS_fsopen, [kind, number(CLOSE_ON_EXEC)]).opening()];
    steps.push(configure(SET_STRING, OsStr::new("source"), Some(asked.source)));
    if asked.flags & libc::MS_RDONLY > 0 {
        steps.push(configure(SET_FLAG, OsStr::new("ro"), None));
    }
    for option in options(asked.options.unwrap_or_default()) {
        let mut parts = option.splitn(2, |byte| *byte == b'=').map(OsStr::from_bytes);
        let (key, value) = (parts.next().unwrap_or_default(), parts.next());
        steps.push(configure(if value.is_some() { SET_STRING } else { SET_FLAG }, key, value));
    }
    let strict = if asked.flags & libc::MS_STRICTATIME > 0 { STRICTATIME } else { 0 };
    let attributes = number(asked.flags & ATTRIBUTES | strict);
    let mount = [number(0usize), number(CLOSE_ON_EXEC), attributes];
    steps.push(configure(CREATE, OsStr::new(""), None));
    steps.push(step.instead(libc::SYS_fsmount, mount).trading());
    steps
}

/// Options of `mount`, split at commas that are not escaped with a backslash.
fn options(all: &OsStr) -> Vec<&[u8]> {
    let bytes = all.as_bytes();
    let is_end = |at: &usize| bytes[*at] == b',' && (*at == 0 || bytes[*at - 1] != b'\\');
    let ends = (0..bytes.len()).filter(is_end).chain([bytes.len()]);
    let mut begin = 0;
    let parts = ends.map(|end| &bytes[std::mem::replace(&mut begin, end + 1)..end]);
    parts.filter(|part| !part.is_empty()).collect()
}

/// A mount namespace that starts with this mount as its root and none of the host's: nothing is copied, so
/// nothing has to be unmounted.
pub(super) fn namespace_of(mount: Step) -> [Vec<Step>; 2] {
    let flags = OPEN_TREE_NAMESPACE | libc::OPEN_TREE_CLOEXEC | libc::AT_RECURSIVE as u32;
    let tree = |from, path: &OsStr, more: i32| {
        mount.instead(libc::SYS_open_tree, [from, text(path), number(flags | more as u32)])
    };
    let (made, tree) = match mount.mounts() {
        Some(asked @ Asked { kind: Some(_), .. }) => {
            (detached(&mount, asked), tree(number(0usize), OsStr::new(""), libc::AT_EMPTY_PATH).trading())
        }
        asked => {
            let source = asked.map_or(OsStr::new("/"), |asked| asked.source);
            (Vec::new(), tree(here(), source, 0).opening())
        }
    };
    let enter = [number(0usize), number(libc::CLONE_NEWNS)];
    [made, vec![tree, mount.instead(libc::SYS_setns, enter).on_descriptor(), Step::close()]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_parted_where_a_filesystem_parts_them() {
        let of = |all: &str| options(OsStr::new(all)).iter().map(|one| one.to_vec()).collect::<Vec<_>>();
        assert_eq!(of("mode=755,size=1k"), [b"mode=755".to_vec(), b"size=1k".to_vec()]);
        assert_eq!(
            of(r"lowerdir=/a\,b:/c,index=off"),
            [br"lowerdir=/a\,b:/c".to_vec(), b"index=off".to_vec()]
        );
        assert!(of("").is_empty());
    }

    #[test]
    fn a_mount_becomes_the_calls_that_do_the_same_and_another_step_stays() {
        let place = std::path::Path::new("/t");
        let count = |step: Step| by_descriptor(step).len();
        let options = Some(OsStr::new("mode=755,noswap"));
        // fsopen, source, mode, noswap, create, fsmount, move_mount, close.
        assert_eq!(count(Step::mount("m", ("tmpfs", place), Some("tmpfs"), 0, options)), 8);
        assert_eq!(count(Step::mount("m", ("/s", place), None, libc::MS_BIND, None)), 3);
        let remount = libc::MS_BIND | libc::MS_REMOUNT | libc::MS_RDONLY;
        assert_eq!(count(Step::mount("m", ("", place), None, remount, None)), 1);
        assert_eq!(count(Step::close()), 1);
        assert_eq!(Mounts::Mount.lacking(), None);
    }
}

//! Orders about files: what is written, read and changed inside a container (`crate::files`). Paths are absolute.
//!
//! | order | results |
//! | --- | --- |
//! | `write PATH BYTES COUNT BLOCK synced\|direct\|cached plain\|uring` | `took`, `cpu`, `bytes`, distribution `block` |
//! | `read PATH COUNT BLOCK direct\|cached plain\|uring` | `took`, `cpu`, `bytes`, `wrong`, distribution `block` |
//! | `forget PATH COUNT` | `resident`, `pages` |
//! | `append PATH COUNT SIZE NANOS` | `appends`, `took`, `cpu`, distribution `append` |
//! | `random PATH read\|write COUNT SIZE synced\|direct\|cached plain\|uring DEPTH NANOS` | `operations`, `took`, `cpu`, distribution `random` |
//! | `each open\|modify\|chmod PATH COUNT` | `took`, `cpu`, distribution `each` |
//! | `modify FILE` | `took`, `cpu`, `opened` |
//! | `append-to FILE BYTES`, `truncate FILE BYTES` | `took`, `cpu` |
//! | `open FILE`, `delete FILE`, `rename FILE NEW`, `chmod FILE`, `chown FILE`, `stat FILE` | `took`, `cpu` |
//! | `touch FILE` | `exists`, `size`, `extents`, `delayed`; note `extents` where they are not known |
//! | `prepare PATH NAME:BYTES…` | |
//! | `clear PATH` | `removed`, `left` |
//!
//! Times are in nanoseconds; each is said at the function of the same name in `crate::files`. `write`, `append` and
//! `prepare` make the directory PATH if only it is missing. A count or a time of zero is no limit. `random` takes the
//! option `seed=N`, which chooses the places. An operation that the subject does not support is refused.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use super::{Report, Words};
use crate::files::{self, Class, Direction, Files, How, Io, Moved, Scattered, Single};
use crate::load::Limit;
use crate::outcome::{Failure, FailureClass};
use crate::sys::place::{self, Unsafe};
use crate::units::Nanos;

/// An order: from its words to its results.
type Order = fn(Words<'_>, &mut Report<'_, '_>) -> Result<(), Failure>;

static ORDERS: &[(&str, Order)] = &[
    ("write", write),
    ("read", read),
    ("forget", forget),
    ("append", append),
    ("random", random),
    ("each", each),
    ("open", |words, report| single(report, files::open(path(words, 1)?)?)),
    ("modify", modify),
    ("append-to", |words, report| single(report, files::append_to(path(words, 1)?, number(words, 2)?)?)),
    ("truncate", |words, report| single(report, files::truncate(path(words, 1)?, number(words, 2)?)?)),
    ("delete", |words, report| single(report, files::delete(path(words, 1)?)?)),
    ("rename", |words, report| single(report, files::rename(path(words, 1)?, path(words, 2)?)?)),
    ("chmod", |words, report| single(report, files::chmod(path(words, 1)?)?)),
    ("chown", |words, report| single(report, files::chown(path(words, 1)?)?)),
    ("stat", |words, report| single(report, files::stat(path(words, 1)?)?)),
    ("touch", touch),
    ("prepare", prepare),
    ("clear", clear),
];

const CLASSES: [(&str, Class); 3] =
    [("synced", Class::Synced), ("direct", Class::Direct), ("cached", Class::Cached)];

/// Carries out an order.
pub fn work(words: Words, report: &mut Report<'_, '_>) {
    let Some((_, order)) = ORDERS.iter().find(|(own, _)| *own == text(words, 0)) else {
        let names: Vec<_> = ORDERS.iter().map(|(name, _)| format!("`{name}`")).collect();
        return report.refuse(&format!("`files` needs one of {}", names.join(", ")));
    };
    match order(words, report) {
        Ok(()) => {}
        Err(failure) if failure.class == FailureClass::Unsupported => report.refuse(&failure.reason),
        Err(failure) => report.fail(&failure),
    }
}

fn text<'a>(words: Words<'a>, index: usize) -> &'a str {
    words.get(index).and_then(|word| word.to_str().ok()).unwrap_or_default()
}

fn malformed(wanted: &str, word: &str) -> Failure {
    Failure::new(FailureClass::Unsupported, format!("an order of `files` needs {wanted}, not `{word}`"))
}

/// The path at this index: absolute, not up again, and one that no other user can lead elsewhere. So what is timed afterwards can
/// be the calls with paths of any program.
fn path<'a>(words: Words<'a>, index: usize) -> Result<&'a Path, Failure> {
    let word = words.get(index).unwrap_or_default().to_bytes();
    let path = Path::new(OsStr::from_bytes(word));
    let is_plain = path.components().skip(1).all(|part| matches!(part, Component::Normal(_)));
    if !(path.is_absolute() && is_plain && path.file_name().is_some()) {
        return Err(malformed("an absolute path", &path.to_string_lossy()));
    }
    match place::is_safe(path) {
        Err(Unsafe::Io { error, .. }) if error.kind() == io::ErrorKind::NotADirectory => Ok(path),
        Err(why) => Err(Failure::environment(format!("cannot work in `{}`: {why}", path.display()))),
        Ok(()) => Ok(path),
    }
}

fn number(words: Words<'_>, index: usize) -> Result<u64, Failure> {
    words.number(index).ok_or_else(|| malformed("a number", text(words, index)))
}

/// The word at this index among these.
fn one_of<T: Copy>(words: Words<'_>, index: usize, all: &[(&str, T)]) -> Result<T, Failure> {
    let found = all.iter().find(|(name, _)| *name == text(words, index)).map(|(_, value)| *value);
    let names: Vec<_> = all.iter().map(|(name, _)| *name).collect();
    found.ok_or_else(|| malformed(&names.join(" or "), text(words, index)))
}

fn calls(words: Words<'_>, index: usize) -> Result<Io, Failure> {
    one_of(words, index, &[("plain", Io::Plain), ("uring", Io::Uring)])
}

/// The size of blocks, the class and the calls, which begin at this index.
fn how(words: Words<'_>, index: usize) -> Result<How, Failure> {
    let class = one_of(words, index + 1, &CLASSES)?;
    Ok(How { block: number(words, index)?, class, io: calls(words, index + 2)? })
}

fn limit(words: Words<'_>, count: usize, time: usize) -> Result<Limit, Failure> {
    let (count, nanos) = (number(words, count)?, number(words, time)?);
    match i64::try_from(nanos) {
        Ok(nanos) if count > 0 || nanos > 0 => Ok(Limit { count, time: Nanos(nanos) }),
        _ => Err(malformed("a count or a time above zero", text(words, time))),
    }
}

fn single(report: &mut Report<'_, '_>, done: Single) -> Result<(), Failure> {
    report.result("took", done.took.0);
    report.result("cpu", done.cpu.0);
    Ok(())
}

fn moved(report: &mut Report<'_, '_>, done: &Moved) -> Result<(), Failure> {
    report.result("bytes", done.bytes as i64);
    report.distribution("block", &done.block);
    single(report, Single { took: done.took, cpu: done.cpu })
}

fn write(words: Words<'_>, report: &mut Report<'_, '_>) -> Result<(), Failure> {
    let files = Files { bytes: number(words, 2)?, count: number(words, 3)? };
    moved(report, &files::write(path(words, 1)?, files, how(words, 4)?)?)
}

fn read(words: Words<'_>, report: &mut Report<'_, '_>) -> Result<(), Failure> {
    let done = files::read(path(words, 1)?, number(words, 2)?, how(words, 3)?)?;
    report.result("wrong", done.wrong as i64);
    moved(report, &done)
}

fn forget(words: Words<'_>, report: &mut Report<'_, '_>) -> Result<(), Failure> {
    let done = files::forget(path(words, 1)?, number(words, 2)?)?;
    report.result("resident", done.resident as i64);
    report.result("pages", done.pages as i64);
    Ok(())
}

fn append(words: Words<'_>, report: &mut Report<'_, '_>) -> Result<(), Failure> {
    let done = files::append(path(words, 1)?, number(words, 3)?, limit(words, 2, 4)?)?;
    report.result("appends", done.count as i64);
    report.distribution("append", &done.append);
    single(report, Single { took: done.took, cpu: done.cpu })
}

fn random(words: Words<'_>, report: &mut Report<'_, '_>) -> Result<(), Failure> {
    let depth = number(words, 7)?;
    let seed = words.from(9).iter().find_map(|word| word.to_str().ok()?.strip_prefix("seed=")?.parse().ok());
    let asked = Scattered {
        direction: one_of(words, 2, &[("read", Direction::Read), ("write", Direction::Write)])?,
        size: number(words, 4)?,
        class: one_of(words, 5, &CLASSES)?,
        io: calls(words, 6)?,
        depth: u32::try_from(depth).map_err(|_| malformed("a depth", text(words, 7)))?,
        limit: limit(words, 3, 8)?,
        seed: seed.unwrap_or_default(),
    };
    let done = files::random(path(words, 1)?, asked)?;
    report.result("operations", done.operations as i64);
    report.distribution("random", &done.random);
    single(report, Single { took: done.took, cpu: done.cpu })
}

/// An operation on one file.
type Operation = fn(&Path) -> Result<Single, Failure>;

fn each(words: Words<'_>, report: &mut Report<'_, '_>) -> Result<(), Failure> {
    let modify: Operation = |path| Ok(files::modify(path)?.all);
    let all: [(&str, Operation); 3] = [("open", files::open), ("modify", modify), ("chmod", files::chmod)];
    let done = files::each(path(words, 2)?, number(words, 3)?, one_of(words, 1, &all)?)?;
    report.distribution("each", &done.each);
    single(report, done.all)
}

fn modify(words: Words<'_>, report: &mut Report<'_, '_>) -> Result<(), Failure> {
    let done = files::modify(path(words, 1)?)?;
    report.result("opened", done.opened.0);
    single(report, done.all)
}

fn touch(words: Words<'_>, report: &mut Report<'_, '_>) -> Result<(), Failure> {
    let found = files::touch(path(words, 1)?)?;
    report.result("exists", found.is_some().into());
    let Some(found) = found else { return Ok(()) };
    report.result("size", found.size as i64);
    match found.extents {
        Ok(extents) => {
            report.result("extents", extents.all as i64);
            report.result("delayed", extents.delayed as i64);
        }
        Err(why) => report.note("extents", why),
    }
    Ok(())
}

fn prepare(words: Words<'_>, _: &mut Report<'_, '_>) -> Result<(), Failure> {
    let files = (2..2 + words.from(2).len()).map(|index| {
        let word = text(words, index);
        let parsed =
            word.rsplit_once(':').and_then(|(name, bytes)| Some((Path::new(name), bytes.parse().ok()?)));
        parsed.ok_or_else(|| malformed("NAME:BYTES", word))
    });
    files::prepare(path(words, 1)?, &files.collect::<Result<Vec<_>, _>>()?)
}

fn clear(words: Words<'_>, report: &mut Report<'_, '_>) -> Result<(), Failure> {
    let done = files::clear(path(words, 1)?)?;
    report.result("removed", done.removed as i64);
    report.result("left", done.left as i64);
    Ok(())
}

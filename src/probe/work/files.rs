//! Orders about files: what is written, read and changed inside a container (`crate::files`).

use std::io;
use std::path::{Component, Path};

use dunnage_orders::files::{
    Action, Append, Appends, Change, Clear, Cleared, Each, EachTime, Forget, Forgotten, Modified, Modify,
    Moved, Operation, Prepare, Random, Read, Scatter, Single, Touch, Touched, Write,
};

use super::{ending, unsupported};
use crate::files;
use crate::outcome::Failure;
use crate::sys::place::{self, Unsafe};

/// A path that may be used: absolute, not up again, and one that no other user can lead elsewhere. So what is timed afterwards can
/// be the calls with paths of any program.
fn safe(path: &Path) -> Result<&Path, Failure> {
    let is_plain = path.components().skip(1).all(|part| matches!(part, Component::Normal(_)));
    if !(path.is_absolute() && is_plain && path.file_name().is_some()) {
        return Err(unsupported(format!("`{}` is not an absolute path", path.display())));
    }
    match place::is_safe(path) {
        Err(Unsafe::Io { error, .. }) if error.kind() == io::ErrorKind::NotADirectory => Ok(path),
        Err(why) => Err(Failure::environment(format!("cannot work in `{}`: {why}", path.display()))),
        Ok(()) => Ok(path),
    }
}

pub fn write(order: &Write) -> Result<Moved, Failure> {
    files::write(safe(&order.path)?, order.files, order.how)
}

pub fn read(order: &Read) -> Result<Moved, Failure> {
    files::read(safe(&order.path)?, order.count, order.how)
}

pub fn forget(order: &Forget) -> Result<Forgotten, Failure> {
    files::forget(safe(&order.path)?, order.count)
}

pub fn append(order: &Append) -> Result<Appends, Failure> {
    files::append(safe(&order.path)?, order.size, ending(order.limit)?)
}

pub fn scatter(order: &Scatter) -> Result<Random, Failure> {
    ending(order.asked.limit)?;
    files::random(safe(&order.path)?, order.asked)
}

pub fn each(order: &Each) -> Result<EachTime, Failure> {
    let operation = match order.operation {
        Operation::Open => files::open,
        Operation::Modify => |path: &Path| Ok(files::modify(path)?.all),
        Operation::Chmod => files::chmod,
    };
    files::each(safe(&order.path)?, order.count, operation)
}

pub fn change(order: &Change) -> Result<Single, Failure> {
    let file = safe(&order.file)?;
    match &order.action {
        Action::Open => files::open(file),
        Action::Append(bytes) => files::append_to(file, *bytes),
        Action::Truncate(bytes) => files::truncate(file, *bytes),
        Action::Delete => files::delete(file),
        Action::Rename(new) => files::rename(file, safe(new)?),
        Action::Chmod => files::chmod(file),
        Action::Chown => files::chown(file),
        Action::Stat => files::stat(file),
    }
}

pub fn modify(order: &Modify) -> Result<Modified, Failure> {
    files::modify(safe(&order.file)?)
}

pub fn touch(order: &Touch) -> Result<Option<Touched>, Failure> {
    files::touch(safe(&order.file)?)
}

pub fn prepare(order: &Prepare) -> Result<(), Failure> {
    files::prepare(safe(&order.path)?, &order.files)
}

pub fn clear(order: &Clear) -> Result<Cleared, Failure> {
    files::clear(safe(&order.path)?)
}

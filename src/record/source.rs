//! Finds the three files of a run in a run directory or a pack. The reader gets two small texts and one open file in both
//! cases.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use dunnage_analysis::record::{Place, Samples, Source};

use super::{ENVIRONMENT, MOST_BYTES, MOST_TEXT, PLAN, SAMPLES, pack, regular};

/// Samples in an open file.
struct OnDisk(File);

impl Samples for OnDisk {
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<usize> {
        self.0.read_at(bytes, at)
    }
}

/// The files of a run directory or of a pack.
pub fn open(path: &Path) -> Result<Source> {
    if !path.is_file() {
        return directory(path);
    }
    let ([environment, plan], samples) = pack::unpacked(path)?;
    Ok(Source { environment, plan, samples: Box::new(OnDisk(samples)), place: Place::Pack(path.to_owned()) })
}

/// The files of a run directory.
pub fn directory(path: &Path) -> Result<Source> {
    let known = [ENVIRONMENT, PLAN, SAMPLES].map(|file| path.join(file).try_exists());
    if let Some(Err(error)) = known.iter().find(|one| one.is_err()) {
        bail!("cannot read `{}`: {error}", path.display());
    }
    let shown = path.display();
    let any = known.iter().flatten().any(|exists| *exists);
    match [ENVIRONMENT, PLAN, SAMPLES].into_iter().zip(known).find(|(_, known)| !matches!(known, Ok(true))) {
        Some((file, _)) if any => bail!(
            "`{shown}` is not complete: it has no `{file}`\n\nhint: copy the whole run directory again; `dunnage pack` makes one file of it"
        ),
        Some(_) => bail!(
            "`{shown}` is not a run directory\n\nhint: use a directory that `dunnage run` wrote; its last lines name it"
        ),
        None => {}
    }
    let read = |name: &str| {
        let (mut bytes, path) = (Vec::new(), path.join(name));
        let done = regular(&path, MOST_TEXT)?.read_to_end(&mut bytes);
        done.with_context(|| format!("cannot read `{}`", path.display())).map(|_| bytes)
    };
    Ok(Source {
        environment: read(ENVIRONMENT)?,
        plan: read(PLAN)?,
        samples: Box::new(OnDisk(regular(&path.join(SAMPLES), MOST_BYTES)?)),
        place: Place::Directory(path.to_owned()),
    })
}

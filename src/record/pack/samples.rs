//! The samples of a run without private content, line by line. Unreadable lines are replaced by another unreadable line, so that
//! a report counts them as before.

use std::io::{BufReader, Write};

use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::clean::Cleaner;
use dunnage_analysis::record::source::{ReadAt, Source, read_line};
use dunnage_analysis::record::wire::{Begin, Header, RoundContext, SampleLine, Stop, Treatment};
use dunnage_analysis::record::{SAMPLES, reader};

/// Writes the samples without private content, line by line.
pub fn samples(source: &Source, cleaner: &mut Cleaner, out: &mut dyn Write) -> Result<()> {
    let unread = || format!("cannot read {}", source.name(SAMPLES));
    reader::begin(source)?;
    let mut lines = BufReader::with_capacity(1 << 20, ReadAt::new(&*source.samples, 0));
    let mut line = Vec::new();
    loop {
        if read_line(&mut lines, &mut line).with_context(unread)? == 0 {
            return Ok(());
        }
        if line.last() != Some(&b'\n') {
            // An unfinished last line, which a reader skips and reports.
            out.write_all(b"{")?;
        } else if line == b"\n" {
            out.write_all(b"\n")?;
        } else {
            let cleaned = KINDS.iter().find(|(start, _)| line.starts_with(start));
            let cleaned = cleaned.and_then(|(_, again)| again(&line, cleaner).ok());
            out.write_all(cleaned.unwrap_or(b"{\"damaged\":true}"))?;
            out.write_all(b"\n")?;
        }
    }
}

type Again = for<'a> fn(&[u8], &'a mut Cleaner) -> serde_json::Result<&'a [u8]>;

/// The kinds of lines, by their beginning.
const KINDS: [(&[u8], Again); 6] = [
    (b"{\"cell\"", again::<SampleLine>),
    (b"{\"begin\"", again::<Begin>),
    (b"{\"end\"", again::<RoundContext>),
    (b"{\"treatment\"", again::<Treatment>),
    (b"{\"stop\"", again::<Stop>),
    (b"{\"format\"", again::<Header>),
];

fn again<'a, T: DeserializeOwned + Serialize>(
    line: &[u8],
    cleaner: &'a mut Cleaner,
) -> serde_json::Result<&'a [u8]> {
    cleaner.json(&serde_json::from_slice::<T>(line)?)
}

//! The samples of a run one by one, whole, for what needs more of them than the values of their metrics.

use std::borrow::Cow;
use std::io::BufReader;

use anyhow::{Context, Result};

use super::source::{ReadAt, Source, each_line};
use super::wire::{Begin, SAMPLES, SampleLine};
use crate::outcome::Outcome;

/// One sample with its position in the run, as written and as read.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<'a> {
    /// The cell's index in the plan.
    pub cell: usize,
    /// The round, warm-ups first, from 0.
    pub round: usize,
    /// Its place in the order of the round, from 0.
    pub position: usize,
    /// The cell before it.
    pub predecessor: Option<usize>,
    /// When it began, nanoseconds since 1970; set by the writer.
    pub started: u64,
    /// What happened to it.
    pub outcome: Cow<'a, Outcome>,
}

/// Passes every sample of a run to `visit`, in the order of the file, including warm-ups, without
/// those of abandoned attempts at a round.
pub fn rows(source: &Source, visit: &mut dyn FnMut(&Row<'_>) -> Result<()>) -> Result<()> {
    let context = || format!("cannot read {}", source.name(SAMPLES));
    let lines = || BufReader::with_capacity(1 << 20, ReadAt::new(&*source.samples, 0));
    let mut attempts: std::collections::HashMap<usize, usize> = std::collections::HashMap::new();
    each_line(lines(), &mut |line| {
        if line.starts_with(b"{\"begin\"")
            && let Ok(begin) = serde_json::from_slice::<Begin>(line)
        {
            *attempts.entry(begin.begin).or_default() += 1;
        }
        Ok(())
    })
    .with_context(context)?;
    each_line(lines(), &mut |line| {
        if line.starts_with(b"{\"begin\"")
            && let Ok(begin) = serde_json::from_slice::<Begin>(line)
        {
            attempts.entry(begin.begin).and_modify(|left| *left -= 1);
        }
        if !line.starts_with(b"{\"cell\"") {
            return Ok(());
        }
        let Ok(line) = serde_json::from_slice::<SampleLine>(line) else { return Ok(()) };
        if attempts.get(&line.round).is_some_and(|later| *later > 0) {
            return Ok(());
        }
        let (cell, round, position, predecessor, started) =
            (line.cell, line.round, line.position, line.predecessor, line.started);
        match line.outcome() {
            Some(outcome) => {
                visit(&Row { cell, round, position, predecessor, started, outcome: Cow::Owned(outcome) })
            }
            None => Ok(()),
        }
    })
}

//! `dunnage compare`: old runs against new ones.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::show::{self, Output, show};
use crate::cli::Compare;
use crate::compare::{self, Comparison, Experiment, Line, Run, sentence};
use crate::exit::{self, usage};
use crate::record::{self, Recorded};
use crate::report::text::listed;
use crate::units::{counted, parse_percent};
use crate::verdict::{self, Quality};

/// Runs the verb.
pub fn run(options: &Compare) -> Result<i32> {
    show::known::<Comparison>(&options.format)?;
    let fail_on = options.fail_on.as_deref().map(fail_on).transpose()?;
    let [old, new] = sides(options)?.map(loaded);
    let [(old, own), (new, others)] = [old?, new?];
    let own = [own, others].concat();
    let Some(comparison) = compare::compare(&runs_of(&old), &runs_of(&new)) else {
        bail!(
            "the old and the new side share no cell\n\nhint: a cell is an experiment, a setting and a subject's label; \
             `dunnage report` of each shows what it has"
        );
    };
    let place = options.runs.first().map_or(Path::new("."), PathBuf::as_path);
    let output = Output { file: options.output.as_deref(), runs: &own, extent: options.extent.into() };
    show(&comparison, &options.format, place, output)?;
    outcome(&comparison, fail_on)
}

/// The exit code: a regression where one was asked about, nothing where no cell has values.
fn outcome(comparison: &Comparison, fail_on: Option<f64>) -> Result<i32> {
    if !comparison.has_values() {
        return Ok(exit::NOTHING);
    }
    let Some(least) = fail_on else { return Ok(exit::FINE) };
    let told = |lines: Vec<(&Experiment, &Line)>| {
        listed(lines.iter().map(|(one, line)| sentence(one, &[line])), "; ")
    };
    let failing = comparison.failing(least);
    if !failing.is_empty() {
        super::tell(&format!("a regression: {}", told(failing)));
        return Ok(exit::REGRESSION);
    }
    let open = comparison.unanswered();
    if !open.is_empty() {
        bail!("`--fail-on` cannot be answered: {}", told(open));
    }
    let (open, all) = comparison.left_open();
    super::tell(&format!("no regression was shown; {open} of {} leave one open", counted(all, "verdict")));
    Ok(exit::FINE)
}

/// The share from which on slower is a regression: what `--fail-on` takes is `slower`, or `slower=5%`.
fn fail_on(text: &str) -> Result<f64> {
    let share = match text.split_once('=') {
        None if text == "slower" => Some(0.0),
        Some(("slower", share)) => parse_percent(share),
        _ => None,
    };
    share.ok_or_else(|| {
        usage(format!(
            "`--fail-on {text}` is not possible\n\nhint: the form is `--fail-on slower` or `--fail-on slower=5%`"
        ))
    })
}

/// What was named for each side: run directories, packs, and directories that hold them.
fn sides(options: &Compare) -> Result<[&[PathBuf]; 2]> {
    const HINT: &str =
        "hint: `dunnage compare OLD NEW`, or with several on a side `dunnage compare OLD… -- NEW…`";
    match (options.runs.as_slice(), options.new.as_slice()) {
        (two @ [_, _], []) => Ok([&two[..1], &two[1..]]),
        (old, new) if !old.is_empty() && !new.is_empty() => Ok([old, new]),
        (several, []) if several.len() > 2 => {
            Err(usage(format!("{} runs, and which are the new ones?\n\n{HINT}", several.len())))
        }
        _ => Err(usage(format!("two sides are needed, old and new\n\n{HINT}"))),
    }
}

/// A run itself, or the runs and packs that a directory holds, in the order of their names.
fn runs_in(path: &Path) -> Result<Vec<PathBuf>> {
    let is_run = |path: &Path| record::files(path).iter().any(|file| file.exists());
    if is_run(path) || !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let context = || format!("cannot read `{}`", path.display());
    let entries = std::fs::read_dir(path).with_context(context)?;
    let mut all: Vec<PathBuf> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()
        .with_context(context)?;
    let is_pack =
        |path: &Path| path.is_file() && path.extension().is_some_and(|own| own == record::pack::ENDING);
    all.retain(|path| is_run(path) || is_pack(path));
    // Of a run and its pack the run itself goes first, and counts.
    all.sort_by_key(|path| (is_pack(path), path.clone()));
    // What holds no run is told as what it is not.
    Ok(if all.is_empty() { vec![path.to_owned()] } else { all })
}

/// A run with its place, as it was read and judged.
pub(super) type Loaded = (String, Recorded, Quality);

/// Reads and judges what was named, and says where all of it lies. A directory that is no run stands for the runs in it, of
/// which those that cannot be read are told and left out.
pub(super) fn loaded(named: &[PathBuf]) -> Result<(Vec<Loaded>, Vec<PathBuf>)> {
    let (mut all, mut places) = (Vec::new(), Vec::new());
    for path in named {
        let own = runs_in(path)?;
        let (good, mut bad): (Vec<_>, Vec<_>) = own.iter().map(|one| load(one)).partition(Result::is_ok);
        if good.is_empty() {
            bad.drain(..).next().transpose()?;
        }
        for error in bad.into_iter().filter_map(Result::err) {
            let text = listed(error.chain(), ": ");
            super::tell(&format!("left out: {}", text.split("\n\n").next().unwrap_or_default()));
        }
        all.extend(good.into_iter().flatten());
        places.extend(own);
    }
    Ok((all, places))
}

fn load(path: &Path) -> Result<Loaded> {
    let recorded = record::open(path)?;
    let quality = verdict::quality(&recorded);
    Ok((path.display().to_string(), recorded, quality))
}

/// The runs as they are compared.
pub(super) fn runs_of(loaded: &[Loaded]) -> Vec<Run<'_>> {
    loaded.iter().map(|(place, recorded, quality)| Run { recorded, quality, place }).collect()
}

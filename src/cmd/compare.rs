//! `dunnage compare`: compares old runs with new ones.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::show::{self, Output, show};
use crate::cli::Compare;
use crate::compare::{self, Comparison, Experiment, FailedRounds, Line, Run, sentence};
use crate::exit::{self, usage};
use crate::record::{self, Recorded, resumable};
use crate::report::text::{listed, quoted};
use crate::units::{counted, parse_percent};
use crate::variables::{self, Variables};
use crate::verdict::{self, Quality};

/// Runs the verb.
pub fn run(options: &Compare) -> Result<i32> {
    show::known::<Comparison>(&options.format)?;
    let fail_on = options.fail_on.as_deref().map(fail_on).transpose()?;
    let [old, new] = sides(options)?.map(loaded);
    let [(old, own), (new, others)] = [old?, new?];
    let own = [own, others].concat();
    let Some(mut comparison) = compare::compare(&runs_of(&old), &runs_of(&new)) else {
        bail!(
            "the old and the new side have no cell in common\n\nhint: a cell is an experiment, a setting and a subject's label; \
             `dunnage report` shows those of each run"
        );
    };
    comparison.notices.extend(on_variables(&old, &new));
    let place = options.runs.first().map_or(Path::new("."), PathBuf::as_path);
    let output = Output { file: options.output.as_deref(), runs: &own, extent: options.extent.into() };
    show(&comparison, &options.format, place, output)?;
    outcome(&comparison, fail_on)
}

/// The exit code: 3 for a regression if `--fail-on` was given, 4 if no cell has values.
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
        super::tell(&format!("regression: {}", told(failing)));
        tell_uncorrected(comparison);
        return Ok(exit::REGRESSION);
    }
    let failures = |is_meant: fn(&FailedRounds) -> bool| {
        let meant = comparison.failures().filter(|(.., failed)| is_meant(failed));
        listed(meant.map(|(one, line, failed)| compare::failures(one, line, failed)), "; ")
    };
    let more_often = failures(|failed| failed.verdict.is_worse());
    if !more_often.is_empty() {
        super::tell(&format!("regression: {more_often}"));
        return Ok(exit::REGRESSION);
    }
    let too_often = failures(|failed| failed.too_many);
    if !too_often.is_empty() {
        bail!("cannot decide `--fail-on`: {too_often}");
    }
    let open = comparison.unanswered();
    if !open.is_empty() {
        bail!("cannot decide `--fail-on`: {}", told(open));
    }
    let told = match comparison.left_open() {
        (0, 1) => ": its verdict is decided".to_owned(),
        (0, all) => format!(": all {all} verdicts are decided"),
        (open, all) => format!(", but {open} of {} may hide one", counted(all, "verdict")),
    };
    super::tell(&format!("no regression found{told}"));
    tell_uncorrected(comparison);
    Ok(exit::FINE)
}

/// Whether variables of the command have the same values on both sides. The values themselves are not shown.
fn on_variables(old: &[Loaded], new: &[Loaded]) -> Vec<String> {
    let named = |(_, run, _): &Loaded| {
        let cells = run.plan.cells.iter();
        cells.filter_map(|cell| cell.setting.get(variables::KEY)).collect::<BTreeSet<_>>()
    };
    let all: Vec<(BTreeSet<&str>, Option<Variables>)> =
        old.iter().chain(new).map(|run| (named(run), resumable::variables(Path::new(&run.0)))).collect();
    let names: BTreeSet<&str> = all.iter().flat_map(|(names, _)| names).copied().collect();
    let told = |names: &str| {
        let own = all.iter().filter(|(known, _)| known.contains(names));
        let values: Vec<_> =
            own.map(|(_, known)| known.as_ref().and_then(|known| known.named(names))).collect();
        let shown = quoted(names.split(' '));
        if values.len() < 2 {
            None
        } else if values.contains(&None) {
            Some(format!(
                "it is not known whether {shown} had the same values: only the user who measured can compare them, and no pack has them"
            ))
        } else if values.iter().any(|one| *one != values[0]) {
            Some(format!("not comparable: the values of {shown} differ, so a change may come from that"))
        } else {
            Some(format!("the values of {shown} are equal"))
        }
    };
    names.into_iter().filter_map(told).collect()
}

/// Reports that the verdict includes changes of the machine.
fn tell_uncorrected(comparison: &Comparison) {
    if comparison.is_uncorrected() {
        super::tell(
            "not corrected for changes of the machine, since neither `bare` nor `floor` is in all runs: add them with `-s`",
        );
    }
}

/// The smallest share that counts as a regression, from `slower` or `slower=5%`.
fn fail_on(text: &str) -> Result<f64> {
    let share = match text.split_once('=') {
        None if text == "slower" => Some(0.0),
        Some(("slower", share)) => parse_percent(share),
        _ => None,
    };
    share.ok_or_else(|| {
        usage(format!(
            "invalid value `--fail-on {text}`\n\nhint: use `--fail-on slower` or `--fail-on slower=5%`"
        ))
    })
}

/// The paths given for each side: run directories, packs, and directories that contain them.
fn sides(options: &Compare) -> Result<[&[PathBuf]; 2]> {
    const HINT: &str =
        "hint: use `dunnage compare OLD NEW`, or `dunnage compare OLD… -- NEW…` for several runs on a side";
    match (options.runs.as_slice(), options.new.as_slice()) {
        (two @ [_, _], []) => Ok([&two[..1], &two[1..]]),
        (old, new) if !old.is_empty() && !new.is_empty() => Ok([old, new]),
        (several, []) if several.len() > 2 => {
            Err(usage(format!("cannot tell which of the {} runs are the new ones\n\n{HINT}", several.len())))
        }
        _ => Err(usage(format!("`compare` needs an old and a new side\n\n{HINT}"))),
    }
}

/// A run itself, or the runs and packs in a directory, ordered by name.
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
    // A run comes before its pack, so that the run itself is the one that counts.
    all.sort_by_key(|path| (is_pack(path), path.clone()));
    // Opening a directory without runs gives the right error.
    Ok(if all.is_empty() { vec![path.to_owned()] } else { all })
}

/// A run with its path, read and judged.
pub(super) type Loaded = (String, Recorded, Quality);

/// Reads and judges the named runs, and returns their paths. In a directory of runs, those that cannot be read are reported
/// and left out.
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

/// The runs in the form that `compare` takes.
pub(super) fn runs_of(loaded: &[Loaded]) -> Vec<Run<'_>> {
    loaded.iter().map(|(place, recorded, quality)| Run { recorded, quality, place }).collect()
}

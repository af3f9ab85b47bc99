//! Are dunnage's operations on files as fast as fio's? Both work in the same directory on a disk, through `bare`.
//! fio's times have milliseconds for a whole file, and nanoseconds for a sync.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use dunnage::orders::files::{
    Append, Class, Clear, Files, Forget, How, Io, Limit, Modify, Prepare, Read, Write,
};
use dunnage::subject::{Container, on_path};
use dunnage::units::Nanos;
use serde_json::Value;
use tempfile::TempDir;

use crate::bench::Bench;
use crate::network::{asked, said, serving};
use crate::sides::take_turns;
use crate::table::{Row, Target};

const NO_FIO: &str = "`fio` is not installed";
/// Bytes of the file, and of each block.
const BYTES: u64 = 100 << 20;
const BLOCK: u64 = 1 << 20;
/// Appends of a round, of 4 KiB each.
const APPENDS: u64 = 300;
/// Bytes of a smaller file.
const SMALLER: u64 = 10 << 20;
/// A copy within 20 %.
const COPIES: Target = Target::Ratio(0.8, 1.2);
/// Throughput within 5 %, the median of a sync within 10 %.
const THROUGHPUT: Target = Target::Ratio(0.95, 1.05);
const LATENCY: Target = Target::Ratio(0.9, 1.1);

/// Seconds for a whole file: written and synced, written past the page cache and synced, and read past it.
pub fn throughput(bench: &mut Bench, rounds: usize) -> Result<Vec<Row>> {
    let rows = [
        ("100 MiB written and synced / fio", "write", Class::Synced, "0"),
        ("100 MiB written with O_DIRECT / fio", "write", Class::Direct, "1"),
        ("100 MiB read with O_DIRECT / fio", "read", Class::Direct, "1"),
    ];
    on_path("fio").context(NO_FIO)?;
    with_place(bench, |bench, probe, place| {
        rows.iter()
            .map(|(name, verb, class, is_direct)| {
                if *verb == "read" {
                    asked(bench, probe, write(place, Class::Synced))?;
                }
                let pairs = {
                    let probe = &mut *probe;
                    take_turns(
                        bench,
                        rounds,
                        Box::new(|bench| {
                            bench.fall_silent();
                            let mut fio = fio(place, verb, BLOCK, BYTES);
                            fio.args([format!("--direct={is_direct}"), "--end_fsync=1".to_owned()]);
                            seconds_of(&said(&mut fio)?, verb)
                        }),
                        Box::new(|bench| {
                            let (path, count, how) = (place.to_owned(), 1, how(*class));
                            let moved = match *verb {
                                "read" => asked(bench, probe, Read { path, count, how })?,
                                _ => asked(bench, probe, write(place, *class))?,
                            };
                            ensure!(moved.bytes == BYTES);
                            if *verb == "write" {
                                asked(bench, probe, Clear { path: place.to_owned() })?;
                            }
                            Ok(moved.took.seconds())
                        }),
                    )?
                };
                Ok(Row::of_pairs(name, bench, &pairs, &THROUGHPUT))
            })
            .collect()
    })
}

/// The median of appending 4 KiB until they are durable. fio has the medians of the write and of its sync, which are added.
pub fn syncs(bench: &mut Bench, rounds: usize) -> Result<Vec<Row>> {
    on_path("fio").context(NO_FIO)?;
    let pairs = with_place(bench, |bench, probe, place| {
        take_turns(
            bench,
            rounds,
            Box::new(|bench| {
                bench.fall_silent();
                let mut fio = fio(place, "write", 4096, 4096 * APPENDS);
                median_of(&said(fio.arg("--fdatasync=1"))?)
            }),
            Box::new(|bench| {
                let limit = Limit { count: APPENDS, time: Nanos(0) };
                let done = asked(bench, probe, Append { path: place.to_owned(), size: 4096, limit })?;
                asked(bench, probe, Clear { path: place.to_owned() })?;
                Ok(done.append.quantile(0.5).context("no append")? as f64 / 1e9)
            }),
        )
    })?;
    Ok(vec![Row::of_pairs("append and fdatasync, median / fio", bench, &pairs, &LATENCY)])
}

/// What each further byte of a file costs that an overlay copies up, against `cp --reflink=never` and a sync of the copy: the
/// difference of two sizes, none of which is in the page cache.
pub fn copy_up(bench: &mut Bench, rounds: usize) -> Result<Vec<Row>> {
    let pairs = with_place(bench, |bench, probe, place| {
        let files = vec![("0".into(), SMALLER), ("1".into(), BYTES)];
        asked(bench, probe, Prepare { path: place.join("lower"), files })?;
        let probe = std::cell::RefCell::new(probe);
        let forget = |bench: &mut Bench| -> Result<()> {
            let order = Forget { path: place.join("lower"), count: 2 };
            let stayed = asked(bench, &mut probe.borrow_mut(), order)?.resident;
            ensure!(stayed == 0, "files stayed in the page cache");
            Ok(())
        };
        take_turns(
            bench,
            rounds,
            Box::new(|bench| {
                forget(bench)?;
                let copy = |number: &str| -> Result<f64> {
                    let (from, to) = (place.join("lower").join(number), place.join("copy"));
                    let began = Instant::now();
                    said(Command::new("cp").arg("--reflink=never").args([&from, &to]))?;
                    File::open(&to)?.sync_all()?;
                    let took = began.elapsed().as_secs_f64();
                    std::fs::remove_file(&to)?;
                    Ok(took)
                };
                Ok(copy("1")? - copy("0")?)
            }),
            Box::new(|bench| {
                let overlay = Overlay::mount(place)?;
                forget(bench)?;
                let mut modify = |number: u64| -> Result<i64> {
                    let order = Modify { file: place.join("merged").join(number.to_string()) };
                    Ok(asked(bench, &mut probe.borrow_mut(), order)?.all.took.0)
                };
                let took = modify(1)? - modify(0)?;
                drop(overlay);
                Ok(took as f64 / 1e9)
            }),
        )
    })?;
    Ok(vec![Row::of_pairs("90 MiB more copied up / cp and fsync", bench, &pairs, &COPIES)])
}

/// An overlay over the directory `lower` of a place, without what is written to it afterwards.
struct Overlay<'a>(&'a Path);

impl Overlay<'_> {
    fn mount(place: &Path) -> Result<Overlay<'_>> {
        let [lower, upper, work, merged] = ["lower", "upper", "work", "merged"].map(|name| place.join(name));
        for directory in [&upper, &work, &merged] {
            std::fs::create_dir(directory)?;
        }
        let options =
            format!("lowerdir={},upperdir={},workdir={}", lower.display(), upper.display(), work.display());
        said(Command::new("mount").args(["-t", "overlay", "overlay", "-o", &options]).arg(&merged))?;
        Ok(Overlay(place))
    }
}

impl Drop for Overlay<'_> {
    fn drop(&mut self) {
        let _ = said(Command::new("umount").arg(self.0.join("merged")));
        for directory in ["upper", "work", "merged"] {
            let _ = std::fs::remove_dir_all(self.0.join(directory));
        }
    }
}

/// Calls `use_it` with a probe on the host, and a directory on a disk.
fn with_place<T>(
    bench: &mut Bench,
    use_it: impl FnOnce(&mut Bench, &mut Container<'_>, &Path) -> Result<T>,
) -> Result<T> {
    let place: TempDir = tempfile::Builder::new().prefix("dunnage-bench-").tempdir_in("/var/tmp")?;
    let bare = bench.subject("bare")?;
    let run = &bench.another_run()?;
    let mut probe = serving(bare.as_ref(), run)?;
    use_it(bench, &mut probe, place.path())
}

fn how(class: Class) -> How {
    How { class, io: Io::Plain, block: BLOCK }
}

/// Writes a file there.
fn write(place: &Path, class: Class) -> Write {
    Write { path: place.to_owned(), files: Files { count: 1, bytes: BYTES }, how: how(class) }
}

/// fio with one file: a new one that it removes when it writes, dunnage's when it reads.
fn fio(place: &Path, verb: &str, block: u64, bytes: u64) -> Command {
    let mut fio = Command::new("fio");
    let name = if verb == "read" { "0" } else { "fio" };
    fio.args(["--name=one", "--ioengine=psync", "--fallocate=none", "--output-format=json"]);
    fio.args([format!("--rw={verb}"), format!("--bs={block}"), format!("--size={bytes}")]);
    fio.arg(format!("--filename={}", place.join(name).display()));
    fio.args((verb == "write").then_some("--unlink=1"));
    fio
}

fn job(text: &str) -> Result<Value> {
    // Warnings come before it.
    let json = text.find('{').map_or(text, |begin| &text[begin..]);
    let mut all: Value = serde_json::from_str(json).with_context(|| format!("fio says `{}`", text.trim()))?;
    Ok(all["jobs"][0].take())
}

/// fio's seconds for all bytes.
fn seconds_of(text: &str, verb: &str) -> Result<f64> {
    let job = job(text)?;
    ensure!(job[verb]["io_bytes"].as_u64() == Some(BYTES), "fio moved {}", job[verb]["io_bytes"]);
    Ok(job[verb]["runtime"].as_f64().context("fio reports no time")? / 1e3)
}

/// fio's median of a write plus that of its sync.
fn median_of(text: &str) -> Result<f64> {
    let job = job(text)?;
    let median = |kind: &Value| kind["percentile"]["50.000000"].as_f64().context("fio reports no median");
    Ok((median(&job["write"]["clat_ns"])? + median(&job["sync"]["lat_ns"])?) / 1e9)
}

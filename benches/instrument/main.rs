//! How much does the instrument itself add? Each benchmark compares what dunnage measures, or needs, with a
//! yardstick that does only the same work, both in one interleaved run.
//!
//! `cargo xtask bench` runs them. Nothing fails because of a timing: a missed target is a line of the table,
//! to be judged by someone who knows what else the machine did.
//!
//! Deliberately absent: a harness that repeats until a number looks stable, and stored baselines. Only ratios
//! of the same minutes on the same machine are reported.

mod advise;
mod api;
mod bare;
mod bench;
mod c;
mod command;
mod cpu;
mod disk;
mod floor;
mod http;
mod hyperfine;
mod million;
mod network;
mod restarts;
mod sides;
mod syscall;
mod table;
mod throttle;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::bench::Bench;
use crate::table::Row;

/// A comparison of the instrument with a yardstick.
struct Benchmark {
    name: &'static str,
    question: &'static str,
    rounds: usize,
    run: fn(&mut Bench, usize) -> Result<Vec<Row>>,
}

static ALL: [Benchmark; 27] = [
    Benchmark {
        name: "bare",
        question: "the subject `bare` against a C loop of posix_spawn and waitpid of the same probe",
        rounds: 300,
        run: bare::whole,
    },
    Benchmark {
        name: "true",
        question: "the subject `bare` against hyperfine -N on a static C program that does nothing",
        rounds: 200,
        run: bare::against_true,
    },
    Benchmark {
        name: "entry",
        question: "the probe's first stamp against that of an executable without libc",
        rounds: 300,
        run: bare::entry,
    },
    Benchmark {
        name: "identity",
        question: "a probe that is started as a user against the same probe by posix_spawn",
        rounds: 300,
        run: bare::identity,
    },
    Benchmark {
        name: "floor",
        question: "the subject `floor` against a C program with the same steps",
        rounds: 150,
        run: floor::against_c,
    },
    Benchmark {
        name: "floor-crun",
        question: "the subject `floor` against `crun run` of the same root",
        rounds: 60,
        run: floor::against_crun,
    },
    Benchmark {
        name: "crun",
        question: "the subject `crun` against hyperfine on the same bundle",
        rounds: 40,
        run: |bench, rounds| hyperfine::runtime(bench, rounds, "crun"),
    },
    Benchmark {
        name: "runc",
        question: "the subject `runc` against hyperfine on the same bundle",
        rounds: 40,
        run: |bench, rounds| hyperfine::runtime(bench, rounds, "runc"),
    },
    Benchmark {
        name: "docker",
        question: "the subject `docker` against hyperfine with the same arguments",
        rounds: 20,
        run: |bench, rounds| hyperfine::engine(bench, rounds, "docker"),
    },
    Benchmark {
        name: "podman",
        question: "the subject `podman` against hyperfine with the same arguments",
        rounds: 20,
        run: |bench, rounds| hyperfine::engine(bench, rounds, "podman"),
    },
    Benchmark {
        name: "exec-docker",
        question: "entering a container of `docker` against hyperfine on the same `docker exec`",
        rounds: 20,
        run: |bench, rounds| hyperfine::exec(bench, rounds, "docker"),
    },
    Benchmark {
        name: "exec-podman",
        question: "entering a container of `podman` against hyperfine on the same `podman exec`",
        rounds: 20,
        run: |bench, rounds| hyperfine::exec(bench, rounds, "podman"),
    },
    Benchmark {
        name: "command",
        question: "a program of 300 ms on the host and in `docker run --rm` against hyperfine -N",
        rounds: 20,
        run: command::against_hyperfine,
    },
    Benchmark {
        name: "api",
        question: "create, start, wait and remove over docker's API against the same requests by curl",
        rounds: 20,
        run: api::against_curl,
    },
    Benchmark {
        name: "advise",
        question: "the throttled share that `advise cpu` predicts against what the kernel counts under that limit",
        rounds: 2,
        run: advise::come_true,
    },
    Benchmark {
        name: "throttle",
        question: "CPU time under a quota against the model: windows of 10 s on `bare`, `floor` and `docker`",
        rounds: 1,
        run: throttle::against_the_model,
    },
    Benchmark {
        name: "syscall",
        question: "getppid by the experiment `syscall` against a C loop, on the host and in docker",
        rounds: 30,
        run: syscall::against_c,
    },
    Benchmark {
        name: "cpu",
        question: "`cpu` on three subjects, and with 0 % and 3 % more work planted: its verdicts for 1 %, and how soon",
        rounds: 40,
        run: cpu::decided,
    },
    Benchmark {
        name: "trips",
        question: "round trips over TCP and UDP on the loopback interface against sockperf ping-pong --full-rtt",
        rounds: 20,
        run: network::trips,
    },
    Benchmark {
        name: "streams",
        question: "bytes per second over one TCP stream on the loopback interface against iperf3",
        rounds: 20,
        run: network::streams,
    },
    Benchmark {
        name: "http",
        question: "requests over HTTP in a closed loop against wrk, on the same server of dunnage's",
        rounds: 20,
        run: http::against_wrk,
    },
    Benchmark {
        name: "disk",
        question: "100 MiB in blocks of 1 MiB written durably, and read with O_DIRECT, against fio",
        rounds: 20,
        run: disk::throughput,
    },
    Benchmark {
        name: "fsync",
        question: "the median of appending 4 KiB with fdatasync against fio",
        rounds: 20,
        run: disk::syncs,
    },
    Benchmark {
        name: "copy-up",
        question: "what an overlay takes to copy a changed file, by its size, against cp --reflink=never and fsync",
        rounds: 20,
        run: disk::copy_up,
    },
    Benchmark {
        name: "million",
        question: "1,000,000 samples to verdicts: time and memory of `dunnage report`",
        rounds: 5,
        run: million::run,
    },
    Benchmark {
        name: "compare",
        question: "two runs of 1,000,000 samples each: time and memory of `dunnage compare`",
        rounds: 5,
        run: million::compared,
    },
    Benchmark {
        name: "restarts",
        question: "runs of equal subjects, each with a new docker daemon: in how many pairs `compare` sees a difference",
        rounds: 12,
        run: restarts::equal,
    },
];

/// The command line.
struct Asked {
    benchmarks: Vec<&'static Benchmark>,
    rounds: Option<usize>,
    seed: Option<u64>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["help" | "--help" | "-h"] => {
            println!("{}", help());
            Ok(())
        }
        [million::INSIDE, directory] => million::inside(directory),
        _ => asked(&arguments).and_then(run),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn help() -> String {
    let mut text = "\
usage: cargo xtask bench [NAME…] [--rounds N] [--seed N]

Compare dunnage with yardsticks in one interleaved run: in every round each side takes its turn in
a shuffled order, and each timed launch follows an untimed one of the same thing. Print, as soon as
they are known, medians, the median of the paired ratios with its exact 95 % interval, and whether
the target is reached. No timing is a failure. Without names all benchmarks run, for about a quarter
of an hour. Needs root.

"
    .to_owned();
    for one in &ALL {
        text.push_str(&format!("  {:<11} {} ({} rounds)\n", one.name, one.question, one.rounds));
    }
    text.push_str("\nexamples: cargo xtask bench\n          cargo xtask bench bare floor --rounds 50");
    text
}

fn asked(arguments: &[String]) -> Result<Asked> {
    let mut asked = Asked { benchmarks: Vec::new(), rounds: None, seed: None };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut number = || -> Result<u64> {
            let value = arguments.next().with_context(|| format!("`{argument}` needs a number"))?;
            value.parse().ok().filter(|&number| number > 0).with_context(|| {
                format!("`{argument} {value}` is not possible\n\nhint: give a number above zero")
            })
        };
        match argument.as_str() {
            "--rounds" => asked.rounds = Some(usize::try_from(number()?)?),
            "--seed" => asked.seed = Some(number()?),
            name => match ALL.iter().find(|one| one.name == name) {
                Some(one) => asked.benchmarks.push(one),
                None => bail!("there is no benchmark `{name}`\n\n{}", help()),
            },
        }
    }
    if asked.benchmarks.is_empty() {
        asked.benchmarks = ALL.iter().collect();
    }
    Ok(asked)
}

fn run(asked: Asked) -> Result<()> {
    let mut bench = Bench::begin(asked.seed)?;
    println!("{}", table::line(&table::TITLES));
    for one in &asked.benchmarks {
        let rounds = asked.rounds.unwrap_or(one.rounds);
        eprintln!("bench: {}: {} ({rounds} rounds)", one.name, one.question);
        let rows = match (one.run)(&mut bench, rounds) {
            Ok(own) => own,
            Err(_) if bench.interrupted => {
                eprintln!("bench: interrupted");
                break;
            }
            Err(error) => vec![Row::not_measured(one.name, &format!("{error:#}"))],
        };
        // What comes later may take long, or never end.
        rows.iter().for_each(|row| println!("{}", table::line(&row.cells)));
    }
    println!("{}", bench.described());
    Ok(())
}

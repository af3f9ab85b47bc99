//! What a scripted subject reports of its work, by kind: in the types of the probe's answers, from the
//! scripted time, so that a planted effect is in every pass.

use dunnage_orders::Order;
use dunnage_orders::work::{Command, Done, Mode};

use crate::outcome::Distribution;
use crate::stats::Rng;

/// The scripted answer to an order whose work takes `time` seconds; none for a kind without a script.
pub fn done(order: &Order, time: f64, rng: &mut Rng) -> Option<Done> {
    Some(match order {
        Order::Cpu(order) => cpu(order.passes, time, rng),
        Order::Command(order) => command(order, time),
        Order::Script(script) => {
            let word = |at: usize| script.words.get(at).map_or("", String::as_str);
            match script.kind.as_str() {
                "trips" => trips(word(0), time, rng),
                "streams" => streams(word(0), time, rng),
                "requests" => requests(word(0), time, rng),
                "names" => names(word(0), time, rng),
                "disk" => files(word(0), time, rng),
                "layers" => layers(word(0), word(1), time, rng),
                "owners" => owners(word(0), time, rng),
                _ => return None,
            }
        }
        _ => return None,
    })
}

/// Passes that are slower than the scripted time by chance, never faster. Several at once are a little slower
/// than one alone. The fixed work is as long as a pass and uses CPU time only.
fn cpu(count: usize, time: f64, rng: &mut Rng) -> Done {
    let results =
        [("wrong", 0), ("empty", 100), ("threads", 2)].map(|(name, value)| (name.to_owned(), value));
    let mut done = Done { results: results.to_vec(), ..Done::default() };
    for (width, threads, factor) in [("one", 1, 1.0), ("all", 2, 1.02)] {
        let whole = (time * factor * (1.0 + 0.0005 * rng.standard_normal().abs()) * 1e9) as i64;
        done.results.push((format!("fixed_{width}"), whole));
        done.results.push((format!("fixed_{width}_cpu"), whole * threads));
    }
    for kind in ["integer", "floating", "hashing", "memory", "chase"] {
        for (width, factor) in [("one", 1.0), ("all", 1.02)] {
            let mut pass =
                || (time * factor * (1.0 + 0.0005 * rng.standard_normal().abs()) * 1e9) as i64 + 100;
            let wall: Vec<_> = (0..count).map(|_| pass()).collect();
            done.series.push((format!("{kind}_{width}_waited"), vec![0; count]));
            done.series.push((format!("{kind}_{width}"), wall));
        }
    }
    done
}

/// The report of a command that used a small part of it, mostly in user mode.
fn command(order: &Command, time: f64) -> Done {
    if order.words.is_empty() {
        return Done::default();
    }
    let program = ("program".to_owned(), "/script".to_owned());
    if order.mode == Mode::Identify {
        let notes = vec![program, ("program_sha256".to_owned(), "0".repeat(64))];
        return Done { notes, ..Done::default() };
    }
    let part = |share: f64| (time * share * 1e9) as i64;
    let results = [
        ("command", part(0.04)),
        ("user", part(0.03)),
        ("system", part(0.005)),
        ("most_memory", 2 << 20),
        ("own_memory", 1 << 19),
        ("status", 0),
        ("left_running", 0),
    ];
    Done {
        results: results.map(|(name, value)| (name.to_owned(), value)).to_vec(),
        notes: vec![program],
        ..Done::default()
    }
}

/// Bytes both ways at a gigabyte a second; a path other than `inside` is half as fast.
fn streams(path: &str, time: f64, rng: &mut Rng) -> Done {
    let factor = if path == "inside" { 1.0 } else { 2.0 };
    let took = (time * 1e12 * factor * (1.0 + 0.05 * rng.standard_normal().abs())) as i64;
    let results = [
        ("up_bytes", 1_000_000_000),
        ("up_took", took),
        ("down_bytes", 1_000_000_000),
        ("down_took", took),
        ("client_cpu", took),
        ("server_cpu", took),
        ("helper_cpu", 0),
    ];
    Done {
        results: results.map(|(name, value)| (name.to_owned(), value)).to_vec(),
        notes: [("way", "none"), ("mtu", "eth0 1500,veth 1500"), ("offloads", "eth0 tso gso,veth gso")]
            .map(|(name, fact)| (name.to_owned(), fact.to_owned()))
            .to_vec(),
        ..Done::default()
    }
}

/// Names of a thousandth of the scripted time; a resolver between takes as long again.
fn names(need: &str, time: f64, rng: &mut Rng) -> Done {
    let factor = if need == "names" { 2.0 } else { 1.0 };
    let name = || (time * 1e6 * factor * (1.0 + 0.05 * rng.standard_normal().abs())) as u64;
    let names: Vec<u64> = std::iter::repeat_with(name).take(200).collect();
    let results = [("names", 199), ("warm_up", 0), ("queries", 200), ("helper_cpu", 0)];
    Done {
        results: results.map(|(name, value)| (name.to_owned(), value)).to_vec(),
        distributions: vec![("name".to_owned(), Distribution::of(names))],
        notes: [("resolver", "192.0.2.1"), ("helpers", "none")]
            .map(|(name, fact)| (name.to_owned(), fact.to_owned()))
            .to_vec(),
        ..Done::default()
    }
}

/// Requests of a thousandth of the scripted time; a path other than `inside` doubles it. A file takes as long again,
/// and hashing ten times as long.
fn requests(path: &str, time: f64, rng: &mut Rng) -> Done {
    let factor = if path == "inside" { 1.0 } else { 2.0 };
    let mut request = || (time * 1e6 * factor * (1.0 + 0.05 * rng.standard_normal().abs())) as u64;
    let requests: Vec<u64> = std::iter::repeat_with(&mut request).take(200).collect();
    let took = requests.iter().sum::<u64>() as i64;
    let base = (time * 1e6 * 200.0) as i64;
    let results = [
        ("requests", 200),
        ("took", took),
        ("file_requests", 200),
        ("file_took", took + base),
        ("hashing_requests", 20),
        ("hashing_took", took / 10 + base),
        ("client_cpu", took / 3),
        ("server_cpu", took / 4),
        ("helper_cpu", 0),
    ];
    let failed = ["refused", "closed", "timeout", "malformed", "status", "body"].map(|name| (name, 0));
    Done {
        results: results.into_iter().chain(failed).map(|(name, value)| (name.to_owned(), value)).collect(),
        distributions: vec![("latency".to_owned(), Distribution::of(requests))],
        notes: vec![("way".to_owned(), "none".to_owned())],
        ..Done::default()
    }
}

/// Round trips of a thousandth of the scripted time; a path other than `inside` doubles it.
fn trips(path: &str, time: f64, rng: &mut Rng) -> Done {
    let factor = if path == "inside" { 1.0 } else { 2.0 };
    let trip = || (time * 1e6 * factor * (1.0 + 0.05 * rng.standard_normal().abs())) as u64;
    let trips: Vec<u64> = std::iter::repeat_with(trip).take(200).collect();
    let connect = Distribution::of(trips.iter().map(|trip| trip * 3));
    let results = [
        ("trips", 0),
        ("took", 0),
        ("client_cpu", 0),
        ("server_cpu", 0),
        ("helper_cpu", 0),
        ("connections", 100),
        ("connections_took", 0),
    ];
    Done {
        results: results.map(|(name, value)| (name.to_owned(), value)).to_vec(),
        distributions: vec![("trip".to_owned(), Distribution::of(trips)), ("connect".to_owned(), connect)],
        notes: vec![("way".to_owned(), "none".to_owned())],
        ..Done::default()
    }
}

/// A gigabyte in the scripted time, and small records in a millionth of it; the container's root doubles both, and
/// memory takes a tenth. Nothing of a volume arrives at the device.
fn files(place: &str, time: f64, rng: &mut Rng) -> Done {
    let factor = match place {
        "root" => 2.0,
        "tmpfs" => 0.1,
        _ => 1.0,
    };
    let mut nanos =
        |share: f64| (time * 1e9 * factor * share * (1.0 + 0.02 * rng.standard_normal().abs())) as i64;
    let appends: Vec<u64> = std::iter::repeat_with(|| nanos(1e-3) as u64).take(100).collect();
    let bytes = 100_000_000;
    let results = [
        ("write_took", nanos(0.1)),
        ("write_cpu", nanos(0.05)),
        ("write_bytes", bytes),
        ("device_bytes", if place == "volume" { 0 } else { bytes }),
        ("others_bytes", 0),
        ("read_took", nanos(0.05)),
        ("read_again_took", nanos(0.01)),
        ("read_bytes", bytes),
        ("appends", 100),
        ("flushes", 100),
        ("random_writes", 1000),
        ("random_write_took", nanos(0.1)),
    ];
    let device = if place == "tmpfs" { "none" } else { "vda" };
    let notes = [("device", device), ("filesystem", "ext4"), ("mount", "overlay")];
    Done {
        results: results.map(|(name, value)| (name.to_owned(), value)).to_vec(),
        distributions: vec![
            ("append".to_owned(), Distribution::of(appends.iter().copied())),
            ("random_read".to_owned(), Distribution::of(appends)),
        ],
        notes: notes.map(|(name, fact)| (name.to_owned(), fact.to_owned())).to_vec(),
        ..Done::default()
    }
}

/// Changes of files of an image, which copy a gigabyte in a thousand times the scripted time, and openings that each layer
/// above a file makes a tenth longer; in a mount nothing is copied.
fn layers(place: &str, count: &str, time: f64, rng: &mut Rng) -> Done {
    let count = count.parse().unwrap_or(0u32);
    let is_mount = place == "bind";
    let above = if place == "first" { count.saturating_sub(2) } else { 0 };
    let mut nanos = |share: f64| (time * 1e11 * share * (1.0 + 0.003 * rng.standard_normal().abs())) as i64;
    let size: i64 = 100_000_000;
    let mut changed = |share: f64| nanos(1e-3 + if is_mount { 0.0 } else { share });
    let mut results =
        vec![("size".to_owned(), size), ("copied_bytes".to_owned(), if is_mount { 0 } else { size })];
    for (name, share) in [("modify", 1.0), ("modify_25", 0.25), ("modify_4", 0.04), ("modify_1", 0.01)] {
        results.push((name.to_owned(), changed(share)));
    }
    for name in ["chmod", "chown", "append", "rename"] {
        results.push((name.to_owned(), changed(0.1)));
    }
    results.push(("modify_many".to_owned(), changed(1.0)));
    for (name, share) in
        [("new", 1.0), ("read", 0.5), ("read_again", 0.1), ("truncate", 0.1), ("delete", 1e-3)]
    {
        results.push((name.to_owned(), nanos(share)));
    }
    results.extend([("device_bytes".to_owned(), size), ("others_bytes".to_owned(), 0)]);
    let opened = 1e-5 * (1.0 + 0.1 * f64::from(above));
    let mut many = |share: f64| Distribution::of(std::iter::repeat_with(|| nanos(share) as u64).take(100));
    let distributions = [("open", many(opened)), ("open_again", many(1e-5)), ("modify_small", many(2e-3))]
        .map(|(name, values)| (name.to_owned(), values));
    let (mount, options) = if is_mount { ("ext4", None) } else { ("overlay", Some(("metacopy", "off"))) };
    let notes = [("device", "vda"), ("filesystem", "ext4"), ("mount", mount)].into_iter().chain(options);
    Done {
        results,
        distributions: distributions.to_vec(),
        notes: notes.map(|(name, fact)| (name.to_owned(), fact.to_owned())).collect(),
        ..Done::default()
    }
}

/// Containers that take the scripted time; the first one on an image takes a tenth of a millisecond more for each of
/// its files, which it makes anew.
fn owners(files: &str, time: f64, rng: &mut Rng) -> Done {
    const OF_A_FILE: f64 = 1e-4;
    let files: u32 = files.parse().unwrap_or(0);
    let mut nanos = |seconds: f64| (seconds * 1e9 * (1.0 + 0.02 * rng.standard_normal().abs())) as i64;
    let results = [
        ("image_took", nanos(time)),
        ("first_took", nanos(time + OF_A_FILE * f64::from(files))),
        ("second_took", nanos(time)),
        ("third_took", nanos(time)),
        ("removal_took", nanos(time)),
        ("made_files", i64::from(files)),
        ("made_bytes", i64::from(files) * 1024),
    ];
    Done {
        results: results.map(|(name, value)| (name.to_owned(), value)).to_vec(),
        notes: vec![("owners".to_owned(), "chowned".to_owned())],
        ..Done::default()
    }
}

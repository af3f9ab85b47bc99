//! Orders in words, so that tests can list many of them, and answers by names of their fields.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use dunnage::orders::Order;
use dunnage::orders::files::{
    Action, Append, Change, Class, Clear, Direction, Each, Files, Forget, How, Io, Limit, Modify, Operation,
    Prepare, Read, Scatter, Scattered, Touch, Write,
};
use dunnage::outcome::{Distribution, Failure};
use dunnage::subject::Container;
use dunnage::units::Nanos;
use serde_json::Value;

/// The order in these words, in which `PLACE` is this directory: `write PATH BYTES COUNT BLOCK CLASS CALLS`, `read PATH COUNT BLOCK
/// CLASS CALLS`, `forget PATH COUNT`, `append PATH COUNT SIZE NANOS`, `random PATH DIRECTION COUNT SIZE CLASS CALLS DEPTH NANOS SEED`, `each OPERATION PATH
/// COUNT`, `prepare PATH NAME:BYTES…`, `clear PATH`, `modify FILE`, `touch FILE`, `append-to FILE BYTES`, `truncate FILE BYTES`,
/// `rename FILE NEW`, and `open`, `delete`, `chmod`, `chown`, `stat` of a file.
pub fn about_files(order: &str, place: &Path) -> Order {
    let all: Vec<String> =
        order.split(' ').map(|word| word.replace("PLACE", &place.to_string_lossy())).collect();
    let word = |at: usize| all[at].as_str();
    let number = |at: usize| all[at].parse::<u64>().unwrap_or_else(|_| panic!("{order}: `{}`", all[at]));
    let limit = |count: usize, time: usize| Limit { count: number(count), time: Nanos(number(time) as i64) };
    let how = |at: usize| How { block: number(at), class: class(word(at + 1)), io: io(word(at + 2)) };
    let path = PathBuf::from(word(1));
    let change = |action| Change { file: path.clone(), action }.into();
    match word(0) {
        "write" => Write { path, files: Files { bytes: number(2), count: number(3) }, how: how(4) }.into(),
        "read" => Read { path, count: number(2), how: how(3) }.into(),
        "forget" => Forget { path, count: number(2) }.into(),
        "append" => Append { path, size: number(3), limit: limit(2, 4) }.into(),
        "random" => {
            let asked = Scattered {
                direction: if word(2) == "read" { Direction::Read } else { Direction::Write },
                size: number(4),
                class: class(word(5)),
                io: io(word(6)),
                depth: number(7) as u32,
                limit: limit(3, 8),
                seed: if all.len() > 9 { number(9) } else { 0 },
            };
            Scatter { path, asked }.into()
        }
        "each" => {
            let operation = match word(1) {
                "open" => Operation::Open,
                "modify" => Operation::Modify,
                _ => Operation::Chmod,
            };
            Each { operation, path: word(2).into(), count: number(3) }.into()
        }
        "prepare" => {
            let file = |word: &String| {
                let (name, bytes) = word.rsplit_once(':').expect("NAME:BYTES");
                (PathBuf::from(name), bytes.parse().expect("a number"))
            };
            Prepare { path, files: all[2..].iter().map(file).collect() }.into()
        }
        "clear" => Clear { path }.into(),
        "modify" => Modify { file: path }.into(),
        "touch" => Touch { file: path }.into(),
        "append-to" => change(Action::Append(number(2))),
        "truncate" => change(Action::Truncate(number(2))),
        "rename" => change(Action::Rename(word(2).into())),
        "open" => change(Action::Open),
        "delete" => change(Action::Delete),
        "chmod" => change(Action::Chmod),
        "chown" => change(Action::Chown),
        "stat" => change(Action::Stat),
        other => panic!("there is no order `{other}`"),
    }
}

fn class(word: &str) -> Class {
    match word {
        "synced" => Class::Synced,
        "direct" => Class::Direct,
        "cached" => Class::Cached,
        other => panic!("there is no class `{other}`"),
    }
}

fn io(word: &str) -> Io {
    if word == "uring" { Io::Uring } else { Io::Plain }
}

/// The answer to an order of any kind that a container carries out.
pub fn answered(container: &mut Container<'_>, order: impl Into<Order>) -> Value {
    container.send(order, Nanos(0)).unwrap();
    container.answer::<Value>().unwrap().done
}

/// The field with this name at any depth.
pub fn field<'a>(answer: &'a Value, name: &str) -> &'a Value {
    fn found<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
        let fields = value.as_object()?;
        fields.get(name).or_else(|| fields.values().find_map(|own| found(own, name)))
    }
    found(answer, name).unwrap_or_else(|| panic!("no `{name}` in {answer}"))
}

/// The number with this name.
pub fn number(answer: &Value, name: &str) -> i64 {
    field(answer, name).as_i64().unwrap_or_else(|| panic!("`{name}` in {answer} should be a number"))
}

/// The distribution with this name.
pub fn distribution(answer: &Value, name: &str) -> Distribution {
    serde_json::from_value(field(answer, name).clone()).expect("a distribution")
}

/// The port of a server that was started.
pub fn port(container: &mut Container<'_>, order: dunnage::orders::network::Serve) -> SocketAddr {
    let address = order.address;
    let started = container.ask(order, Nanos(0)).unwrap().done;
    let port = started.port.expect("a port");
    let own = if address.ip().is_unspecified() { std::net::Ipv4Addr::LOCALHOST.into() } else { address.ip() };
    SocketAddr::new(own, port)
}

/// The failure of an order that cannot be carried out.
pub fn failure(container: &mut Container<'_>, order: impl Into<Order>) -> Failure {
    container.send(order, Nanos(0)).unwrap();
    match container.answer::<Value>() {
        Err(dunnage::outcome::Abort::Failed(failure)) => failure,
        other => panic!("{other:?}"),
    }
}

//! What experiments about the network share: the path between client and server, what each path needs of a
//! subject, and the reference of every path, which is the same exchange inside one network namespace.

pub mod dns;
pub mod http;
pub mod latency;
pub mod tables;
pub mod throughput;

use super::question::each;
use super::setting::{Controlled, Setting, SettingKey, fits};
use crate::names::{Counter, names};
use crate::outcome::Sample;
use crate::subject::spec::parse_duration;
use crate::subject::{Need, Path};
use crate::units::Nanos;
use names::TRIPS;

names! {
    Counter {
        TRIPS = "trips", TOOK = "took", WARM_UP = "warm_up", WRONG = "wrong", LOST = "lost", CLIENT_CPU = "client_cpu",
        SERVER_CPU = "server_cpu", HELPER_CPU = "helper_cpu",
    }
}

/// What all experiments whose samples share servers are called together.
pub const NAME: &str = "network";

/// The paths that are measured unless others are chosen.
const USUAL: [&str; 3] = ["inside", "bridge", "published"];

/// The key that every experiment about the network has.
const PATH: SettingKey = SettingKey::of("path", &USUAL).or(is_path).meaning(
    "where the client is: `inside` the server's network namespace (the host's loopback for subjects in the host's \
     network), the reference of every other path; `bridge`: on the host, to the container's own address; `published`: on \
     the host, to a port published at 127.0.0.1; `published-host`: the same at the host's own address; `published6`: the \
     same at ::1; `peer`: in another container on the same network",
);

/// What each path but the reference needs of a subject in addition.
static REQUIRES: [(&str, &str, Need); 5] = [
    ("path", "bridge", Path::Bridge.need()),
    ("path", "published", Path::Published.need()),
    ("path", "published-host", Path::PublishedHost.need()),
    ("path", "published6", Path::Published6.need()),
    ("path", "peer", Path::Peer.need()),
];

fn is_path(value: &str) -> Result<(), String> {
    let names = "inside, bridge, published, published-host, published6, peer";
    fits(value.parse::<Path>().is_ok(), names)
}

fn is_time(value: &str) -> Result<(), String> {
    let is_time = parse_duration(value).is_some_and(|seconds| (0.02..=60.0).contains(&seconds));
    fits(is_time, "a time from 20ms to 60s")
}

/// What a sample takes in addition: reading back which way the packets went, and orders.
const AROUND: Nanos = Nanos::from_millis(50);

/// How long the exchanges of a sample take.
pub fn time(setting: &Setting) -> Nanos {
    Nanos::from_seconds(setting.get("time").and_then(parse_duration).unwrap_or_default())
}

/// The path of a setting.
pub fn path(setting: &Setting) -> Path {
    setting.get("path").and_then(|name| name.parse().ok()).unwrap_or(Path::Inside)
}

/// The same exchange inside one network namespace.
fn inside(setting: &Setting) -> Option<Setting> {
    (path(setting) != Path::Inside).then(|| on(setting, Path::Inside))
}

/// The same exchange on another path.
fn on(setting: &Setting, path: Path) -> Setting {
    setting.with("path", path.name())
}

/// Behind a published port is the same address, so the difference is that of translation or of a proxy.
static CONTROLS: [Controlled; 1] = [Controlled { key: "path", value: "published", control: "bridge" }];

/// CPU time for each exchange, in seconds.
fn for_each(sample: &Sample, counter: Counter) -> Option<f64> {
    each(sample, counter, TRIPS)
}

#[cfg(test)]
mod tests {
    use strum::VariantArray;

    use super::*;

    #[test]
    fn every_path_is_a_value_with_what_it_needs() {
        for path in Path::VARIANTS {
            assert_eq!(PATH.take(path.name()), Ok(path.name()));
            let needs: Vec<_> = REQUIRES.iter().filter(|(_, name, _)| *name == path.name()).collect();
            match path {
                Path::Inside => assert!(needs.is_empty()),
                path => assert_eq!(needs, [&("path", path.name(), path.need())]),
            }
        }
        assert!(PATH.take("outside").is_err());
        let [one] = &CONTROLS;
        assert!([one.value, one.control].iter().all(|path| USUAL.contains(path)));
    }
}

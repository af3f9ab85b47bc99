//! Which way the packets of a connection really went, read back and not assumed: address translation from the
//! kernel's connection tracking, the process that holds the listening socket, the interfaces whose counters
//! moved, and the programs of an engine's network that used CPU time meanwhile.
//!
//! Deliberately absent: counters of firewall rules, which not every engine's rules have.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, SocketAddr};

use dunnage_analysis::launch::names::{HELPERS, INTERFACES, LISTENER, MTU, OFFLOADS, WAY};
use dunnage_analysis::names::Fact;

use super::helpers::Helping;
use super::{Path, Transport};
use crate::sys::conntrack::{self, Tracked};
use crate::sys::process::Process;
use crate::sys::{clock, process};
use crate::units::Nanos;

/// Interfaces by their network namespace.
pub(super) type Passed = BTreeMap<String, Vec<String>>;

/// Counters before or after packets are sent.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Packets in both directions, by namespace and interface.
    interfaces: BTreeMap<(String, String), u64>,
    /// CPU time of the helpers, by process id, with the name.
    helpers: BTreeMap<i32, (String, Nanos)>,
}

/// Which way packets went.
#[derive(Debug, Clone, PartialEq)]
pub struct Way {
    /// How addresses were translated: `dnat` or `snat` with the new address, `none`, or why it is not known.
    pub translation: Result<String, String>,
    /// The process on the host that holds the listening socket; none where none does.
    pub listener: Option<String>,
    /// The interfaces that at least half of the packets passed, of the host and of both ends. Numbers that the
    /// engine chooses are left out of their names.
    pub interfaces: Vec<String>,
    /// Their facts `mtu` and `offloads`, each with the interface's name and its value.
    pub links: Vec<(String, String)>,
    /// The helpers that used CPU time.
    pub helpers: Vec<String>,
    /// CPU time of all of them.
    pub helper_cpu: Nanos,
}

impl Counters {
    /// Of the network namespaces of these processes, and of the helpers.
    pub fn read(ends: &[i32], helping: Helping) -> Counters {
        let table = |pid: &i32| {
            let table = fs::read_to_string(format!("/proc/{pid}/net/dev")).ok()?;
            Some((namespace(*pid)?, table))
        };
        let tables = ends.iter().filter_map(table);
        let interfaces = tables.flat_map(|(namespace, table)| {
            let own = table.lines().filter_map(packets).collect::<Vec<_>>();
            own.into_iter().map(move |(name, packets)| ((namespace.clone(), name), packets))
        });
        let helper = |(name, one): (&str, Process)| {
            Some((one.pid, (name.to_owned(), clock::process_cpu(one.pid).ok()?)))
        };
        Counters {
            interfaces: interfaces.collect(),
            helpers: helping.on_the_way().filter_map(helper).collect(),
        }
    }

    /// The interfaces that at least half of so many packets passed since then.
    pub fn passed(&self, before: &Counters, packets: u64) -> Passed {
        let mut passed = Passed::new();
        for (key, now) in &self.interfaces {
            if now.saturating_sub(before.interfaces.get(key).copied().unwrap_or(0)) * 2 >= packets {
                let (namespace, name) = key.clone();
                passed.entry(namespace).or_default().push(name);
            }
        }
        passed
    }

    /// The helpers that used CPU time since then, and how much.
    pub fn helped(&self, before: &Counters) -> (Vec<String>, Nanos) {
        let used = |(pid, (name, now)): (&i32, &(String, Nanos))| {
            let before = before.helpers.get(pid).map_or(0, |(_, cpu)| cpu.0);
            (now.0 > before).then(|| (name.clone(), Nanos(now.0 - before)))
        };
        let (mut helpers, used): (Vec<String>, Vec<Nanos>) = self.helpers.iter().filter_map(used).unzip();
        helpers.sort_unstable();
        helpers.dedup();
        (helpers, used.into_iter().sum())
    }

    /// The way of a connection to this target on the host or in a container, past these interfaces, which is none of those that were
    /// tracked before.
    pub fn way(
        &self,
        (before, known): (&Counters, &[Tracked]),
        (target, transport): (SocketAddr, Transport),
        passed: &Passed,
    ) -> Way {
        let (helpers, helper_cpu) = self.helped(before);
        let mut interfaces: Vec<String> = passed.values().flatten().map(|name| plain(name)).collect();
        interfaces.sort_unstable();
        interfaces.dedup();
        Way {
            translation: conntrack::tracked()
                .map(|all| translation(&all, known, (target, transport)))
                .map_err(|error| error.to_string()),
            listener: listener(target, transport),
            interfaces,
            links: Vec::new(),
            helpers,
            helper_cpu,
        }
    }
}

impl Way {
    /// What about it does not fit the path that was asked for, if anything.
    pub fn fault(&self, path: Path) -> Option<String> {
        let passed = |name: &str| self.interfaces.iter().any(|own| own == name);
        let is_alone = self.interfaces.iter().all(|own| own == "lo");
        let shown = if self.interfaces.is_empty() { "none".to_owned() } else { self.interfaces.join(",") };
        match path {
            Path::Inside if !passed("lo") => {
                Some(format!("packets did not pass the loopback interface, but {shown}"))
            }
            // Other traffic on the host may pass loopback meanwhile.
            Path::Bridge | Path::Peer if is_alone => {
                Some(format!("packets did not pass a network interface of the container, but {shown}"))
            }
            Path::Bridge if self.translation.as_ref().is_ok_and(|text| text.starts_with("dnat")) => {
                Some(format!("the container's own address was translated ({})", self.facts()[0].1))
            }
            Path::Published | Path::PublishedHost | Path::Published6
                if self.listener.is_none() && self.translation.as_deref() == Ok("none") =>
            {
                Some("the published port is neither translated nor held by a process".to_owned())
            }
            _ => None,
        }
    }

    /// As it is recorded.
    pub fn facts(&self) -> [(Fact, String); 6] {
        let unknown = |why: &String| format!("unknown: {why}");
        [
            (WAY, self.translation.as_ref().map_or_else(unknown, String::clone)),
            (LISTENER, self.listener.clone().unwrap_or_else(|| "none".to_owned())),
            (INTERFACES, listed(&self.interfaces)),
            (MTU, self.of_links(MTU)),
            (OFFLOADS, self.of_links(OFFLOADS)),
            (HELPERS, listed(&self.helpers)),
        ]
    }

    fn of_links(&self, fact: Fact) -> String {
        let own = self.links.iter().filter(|(name, _)| name == fact.text());
        let mut all: Vec<String> = own
            .map(|(_, told)| {
                let (name, value) = told.split_once(' ').unwrap_or((told, ""));
                format!("{} {value}", plain(name))
            })
            .collect();
        all.sort_unstable();
        all.dedup();
        listed(&all)
    }
}

/// The network namespace of a process.
pub(super) fn namespace(process: i32) -> Option<String> {
    let link = fs::read_link(format!("/proc/{process}/ns/net")).ok()?;
    Some(link.to_string_lossy().into_owned())
}

/// Names as a fact.
pub(super) fn listed(all: &[String]) -> String {
    if all.is_empty() { "none".to_owned() } else { all.join(",") }
}

/// The name of an interface, and the packets that it received and sent, from a line of `/proc/net/dev`.
fn packets(line: &str) -> Option<(String, u64)> {
    let (name, numbers) = line.split_once(':')?;
    let numbers: Vec<u64> = numbers.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    Some((name.trim().to_owned(), numbers.get(1)? + numbers.get(9)?))
}

/// Without the digits that make the names of veth pairs and of an engine's bridges unique.
fn plain(interface: &str) -> String {
    let known = ["veth", "br-"].into_iter().find(|known| interface.starts_with(known));
    known.map_or(interface, |known| known.trim_end_matches('-')).to_owned()
}

/// How a connection to this target is translated; `none` if it is not, or is not tracked.
fn translation(all: &[Tracked], known: &[Tracked], (target, transport): (SocketAddr, Transport)) -> String {
    let number = match transport {
        Transport::Tcp => libc::IPPROTO_TCP,
        Transport::Udp => libc::IPPROTO_UDP,
    };
    let is_it = |one: &&Tracked| one.original.target == target && i32::from(one.original.protocol) == number;
    let own = all.iter().filter(is_it).find(|one| !known.contains(one));
    let Some(one) = own.or_else(|| all.iter().find(is_it)) else { return "none".to_owned() };
    let mut told = Vec::new();
    if one.reply.source != one.original.target {
        told.push(format!("dnat {}", one.reply.source));
    }
    if one.reply.target.ip() != one.original.source.ip() {
        told.push(format!("snat {}", one.reply.target.ip()));
    }
    if told.is_empty() { "none".to_owned() } else { told.join(" ") }
}

/// The sockets in the network namespace of this process that take what is sent to this address.
pub(super) fn sockets(process: i32, target: SocketAddr, transport: Transport) -> Vec<String> {
    let of = |version| {
        let table = fs::read_to_string(format!("/proc/{process}/net/{}{version}", transport.name()));
        let table = table.unwrap_or_default();
        let bound = table.lines().filter_map(|line| bound(line, target, transport));
        bound.map(|inode| format!("socket:[{inode}]")).collect::<Vec<_>>()
    };
    ["", "6"].into_iter().flat_map(of).collect()
}

/// The process on the host with a socket that takes what is sent to this address.
fn listener(target: SocketAddr, transport: Transport) -> Option<String> {
    let files = sockets(std::process::id() as i32, target, transport);
    if files.is_empty() {
        return None;
    }
    let holds = |path: &std::path::Path| files.iter().any(|file| path.as_os_str() == file.as_str());
    process::holding(&holds).find_map(process::read).map(|one| one.name)
}

/// The inode of a socket in a line of `/proc/net/tcp` or `udp`, if it takes what is sent there: it listens, or
/// is not connected.
fn bound(line: &str, target: SocketAddr, transport: Transport) -> Option<&str> {
    let state = if transport == Transport::Tcp { "0A" } else { "07" };
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (address, port) = fields.get(1)?.split_once(':')?;
    let is_any = address.bytes().all(|digit| digit == b'0');
    let is_it = is_any || address == hexadecimal(target.ip());
    let takes = u16::from_str_radix(port, 16) == Ok(target.port()) && fields.get(3) == Some(&state) && is_it;
    takes.then_some(*fields.get(9)?)
}

/// An address as the kernel prints it: words of four bytes as numbers of the machine.
fn hexadecimal(address: IpAddr) -> String {
    let bytes = match address {
        IpAddr::V4(own) => own.octets().to_vec(),
        IpAddr::V6(own) => own.octets().to_vec(),
    };
    let words = bytes.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
    words.map(|word| format!("{word:08X}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::conntrack::Tuple;

    fn way(translation: &str, listener: Option<&str>, interfaces: &[&str]) -> Way {
        Way {
            translation: Ok(translation.to_owned()),
            listener: listener.map(str::to_owned),
            interfaces: interfaces.iter().map(|name| (*name).to_owned()).collect(),
            links: Vec::new(),
            helpers: Vec::new(),
            helper_cpu: Nanos(0),
        }
    }

    #[test]
    fn a_way_that_is_not_the_path_is_a_fault() {
        let [none, dnat] = ["none", "dnat 172.17.0.2:7000"];
        for (path, way) in [
            (Path::Inside, way(none, None, &["lo"])),
            (Path::Bridge, way(none, None, &["docker0", "eth0", "veth"])),
            (Path::Peer, way(none, None, &["eth0", "lo"])),
            (Path::Published, way(none, Some("docker-proxy"), &["docker0", "eth0", "lo", "veth"])),
            (Path::PublishedHost, way(dnat, None, &["docker0", "eth0", "veth"])),
        ] {
            assert_eq!(way.fault(path), None, "{path:?}");
        }
        for (path, way) in [
            (Path::Inside, way(none, None, &["eth0"])),
            (Path::Bridge, way(none, None, &["lo"])),
            (Path::Bridge, way(none, None, &[])),
            (Path::Bridge, way(dnat, None, &["docker0"])),
            (Path::Peer, way(none, None, &["lo"])),
            (Path::Published, way(none, None, &["lo"])),
        ] {
            assert!(way.fault(path).is_some(), "{path:?} {way:?}");
        }
        let unknown = Way { translation: Err("refused".into()), ..way(none, None, &["lo"]) };
        assert_eq!(unknown.fault(Path::Published), None);
        assert_eq!(unknown.facts()[0], (WAY, "unknown: refused".to_owned()));
    }

    #[test]
    fn interfaces_that_are_alike_in_name_and_value_are_told_once() {
        let own = |(fact, told): (&str, &str)| (fact.to_owned(), told.to_owned());
        let read =
            [("mtu", "veth12ab 1500"), ("mtu", "veth00cd 1500"), ("mtu", "eth0 9000"), ("mtu", "eth0 1500")];
        let way = Way { links: read.map(own).to_vec(), ..way("none", None, &["eth0", "veth"]) };
        let facts = way.facts();
        assert_eq!(facts[3], (MTU, "eth0 1500,eth0 9000,veth 1500".to_owned()));
        assert_eq!(facts[4], (OFFLOADS, "none".to_owned()));
    }

    #[test]
    fn translations_are_read_from_both_directions() {
        let tuple = |source: &str, target: &str| Tuple {
            protocol: 6,
            source: source.parse().unwrap(),
            target: target.parse().unwrap(),
        };
        let tracked = |reply: Tuple| [Tracked { original: tuple("10.0.0.9:4000", "10.0.0.9:80"), reply }];
        let target = ("10.0.0.9:80".parse().unwrap(), Transport::Tcp);
        let told = |reply| translation(&tracked(reply), &[], target);
        assert_eq!(told(tuple("10.0.0.9:80", "10.0.0.9:4000")), "none");
        assert_eq!(told(tuple("172.17.0.2:7000", "10.0.0.9:4000")), "dnat 172.17.0.2:7000");
        let both = told(tuple("172.17.0.2:7000", "172.17.0.1:4000"));
        assert_eq!(both, "dnat 172.17.0.2:7000 snat 172.17.0.1");
        let other = "10.0.0.9:81".parse().unwrap();
        let elsewhere = tracked(tuple("1.1.1.1:1", "2.2.2.2:2"));
        assert_eq!(translation(&elsewhere, &[], (other, Transport::Tcp)), "none");
        // Another program had the port a minute ago.
        let [old] = tracked(tuple("10.0.0.9:80", "10.0.0.9:4000"));
        let [new] = tracked(tuple("172.17.0.2:7000", "10.0.0.9:4001"));
        assert_eq!(translation(&[old, new], &[old], target), "dnat 172.17.0.2:7000");
        assert_eq!(translation(&[old], &[old], target), "none");
    }

    #[test]
    fn listening_sockets_and_counters_are_found() {
        let line = "   0: 0100007F:1B58 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1";
        let at = |text: &str| text.parse().unwrap();
        assert_eq!(bound(line, at("127.0.0.1:7000"), Transport::Tcp), Some("4242"));
        assert_eq!(bound(line, at("127.0.0.1:7001"), Transport::Tcp), None);
        assert_eq!(bound(line, at("127.0.0.2:7000"), Transport::Tcp), None);
        assert_eq!(hexadecimal(at("[::1]:1").ip()), "00000000000000000000000001000000");
        let own = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let name = process::read(std::process::id() as i32).unwrap().name;
        assert_eq!(listener(own.local_addr().unwrap(), Transport::Tcp), Some(name));
        let read = packets("  eth0: 100 3 0 0 0 0 0 0 200 4 0 0 0 0 0 0");
        assert_eq!(read, Some(("eth0".to_owned(), 7)));
        assert_eq!(["veth12ab", "br-00ff", "docker0"].map(plain), ["veth", "br", "docker0"]);
    }
}

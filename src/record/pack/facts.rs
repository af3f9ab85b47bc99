//! The facts of a treatment in a pack: names of interfaces and addresses are replaced, the rest as any text.

use std::net::{IpAddr, SocketAddr};

use super::words::{Kind, Words};

/// A fact found inside: names of interfaces, the executed program, its output.
pub fn fact(name: &str, fact: &str, words: &mut Words) -> String {
    match name {
        // What programs said, and names of processes of others.
        "said" | "ended" | "grown" => words.given(Kind::Said, name, fact),
        "interfaces" => interfaces(fact, words),
        "mtu" | "offloads" => {
            let cleaned = |one: &str| match one.split_once(' ') {
                Some((name, value)) => format!("{} {}", interface(name, words), words.told(value)),
                None => words.told(one),
            };
            fact.split(',').map(cleaned).collect::<Vec<_>>().join(",")
        }
        "way" | "resolver" => {
            let is_address =
                |word: &str| word.parse::<SocketAddr>().is_ok() || word.parse::<IpAddr>().is_ok();
            let cleaned = |word| match is_address(word) {
                true => words.given(Kind::Value, "address", word),
                false => words.told(word),
            };
            fact.split(' ').map(cleaned).collect::<Vec<_>>().join(" ")
        }
        "network" => match fact.split_once(':') {
            Some((kind, all)) => format!("{kind}:{}", interfaces(all, words)),
            None => words.told(fact),
        },
        _ => words.told(fact),
    }
}

fn interfaces(all: &str, words: &mut Words) -> String {
    let cleaned: Vec<String> = all.split(',').map(|one| interface(one, words)).collect();
    cleaned.join(",")
}

/// Interfaces numbered by engines and the kernel keep their names.
fn interface(name: &str, words: &mut Words) -> String {
    const COUNTED: &str = "lo eth tap tun tunl gre gretap erspan sit ip6tnl ip6gre ip_vti ip6_vti docker podman cni bond veth br bridge port none";
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    if name.is_empty() || COUNTED.split(' ').any(|counted| counted == stem) {
        name.to_owned()
    } else {
        words.given(Kind::Value, "interface", name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::private::Private;

    #[test]
    fn interfaces_with_names_of_their_own_and_what_commands_said_are_replaced() {
        let mut own = Words::new(&Private::default(), &[], "", "");
        assert_eq!(fact("network", "private:lo,eth0,wg-acme", &mut own), "private:lo,eth0,interface1");
        assert_eq!(fact("interfaces", "docker0,lo,veth,wg-acme", &mut own), "docker0,lo,veth,interface1");
        assert_eq!(fact("mtu", "eth0 1500,wg-acme 1420", &mut own), "eth0 1500,interface1 1420");
        assert_eq!(fact("offloads", "lo rx tso,wg-acme none", &mut own), "lo rx tso,interface1 none");
        assert_eq!(fact("way", "dnat [fd00::2]:70 snat 10.0.0.1", &mut own), "dnat address1 snat address2");
        assert_eq!(fact("resolver", "10.89.0.1", &mut own), "address3");
        assert_eq!(fact("said", "anything", &mut own), "said1");
    }
}

//! The samples of a run without private content, line by line. Unreadable lines are replaced by another unreadable line, so that
//! a report counts them as before.

use std::io::{BufReader, Write};
use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, Result};
use serde::Serialize;

use super::clean::own;
use super::words::{Kind, Words};
use dunnage_analysis::record::source::{ReadAt, Source, read_line};
use dunnage_analysis::record::wire::{Begin, Header, Pairs, RoundContext, SampleLine, Stop, Treatment};
use dunnage_analysis::record::{SAMPLES, reader};

/// Writes the samples without private content, line by line.
pub fn samples(source: &Source, words: &mut Words, out: &mut dyn Write) -> Result<()> {
    let unread = || format!("cannot read {}", source.name(SAMPLES));
    reader::begin(source)?;
    let mut lines = BufReader::with_capacity(1 << 20, ReadAt::new(&*source.samples, 0));
    let (mut line, mut cleaned) = (Vec::new(), Vec::new());
    loop {
        if read_line(&mut lines, &mut line).with_context(unread)? == 0 {
            return Ok(());
        }
        cleaned.clear();
        if line.last() != Some(&b'\n') {
            // An unfinished last line, which a reader skips and reports.
            cleaned.extend(b"{");
        } else if line == b"\n" {
            cleaned.push(b'\n');
        } else {
            if clean_line(&line, words, &mut cleaned).is_none() {
                cleaned.clear();
                cleaned.extend(b"{\"damaged\":true}");
            }
            cleaned.push(b'\n');
        }
        out.write_all(&cleaned)?;
    }
}

fn clean_line(line: &[u8], words: &mut Words, out: &mut Vec<u8>) -> Option<()> {
    if line.starts_with(b"{\"cell\"") {
        let sample: SampleLine = serde_json::from_slice(line).ok()?;
        return put(out, &clean_sample(sample, words));
    }
    if line.starts_with(b"{\"begin\"") {
        return put(out, &serde_json::from_slice::<Begin>(line).ok()?);
    }
    if line.starts_with(b"{\"stop\"") {
        return put(out, &serde_json::from_slice::<Stop>(line).ok()?);
    }
    if line.starts_with(b"{\"end\"") {
        let mut end: RoundContext = serde_json::from_slice(line).ok()?;
        end.disturbed = end.disturbed.map(|why| words.told(&why));
        return put(out, &end);
    }
    if line.starts_with(b"{\"treatment\"") {
        let mut treatment: Treatment = serde_json::from_slice(line).ok()?;
        for (name, fact) in &mut treatment.facts.0 {
            *fact = clean_fact(name, fact, words);
        }
        names(&mut treatment.facts, words);
        return put(out, &treatment);
    }
    if line.starts_with(b"{\"format\"") {
        let mut header: Header = serde_json::from_slice(line).ok()?;
        header.host = words.host(&header.host);
        header.run = own(&header.run, words);
        return put(out, &header);
    }
    None
}

fn put(out: &mut Vec<u8>, line: &impl Serialize) -> Option<()> {
    serde_json::to_writer(out, line).ok()
}

fn clean_sample(mut sample: SampleLine, words: &mut Words) -> SampleLine {
    // A reason may quote the command, in which some words are private only because of their place.
    for (_, why) in &mut sample.missing.0 {
        *why = words.quoting(why);
    }
    sample.stamps.iter_mut().for_each(|all| names(all, words));
    names(&mut sample.counters, words);
    names(&mut sample.series, words);
    names(&mut sample.distributions, words);
    names(&mut sample.artefacts, words);
    names(&mut sample.given, words);
    names(&mut sample.missing, words);
    sample.skipped = sample.skipped.map(|why| words.quoting(&why));
    if let Some(failed) = &mut sample.failed {
        failed.reason = words.quoting(&failed.reason);
        failed.words = failed.words.take().map(|said| words.given(Kind::Said, "said", &said));
    }
    sample
}

/// Cleans the names of numbers, which the program and its probe choose.
fn names<T>(all: &mut Pairs<T>, words: &mut Words) {
    for (name, _) in &mut all.0 {
        if name.contains(['/', '@', ' ']) {
            *name = own(name, words).into();
        }
    }
}

/// A fact found inside: names of interfaces, the executed program, its output.
fn clean_fact(name: &str, fact: &str, words: &mut Words) -> String {
    match name {
        "said" => words.given(Kind::Said, "said", fact),
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
        assert_eq!(clean_fact("network", "private:lo,eth0,wg-acme", &mut own), "private:lo,eth0,interface1");
        assert_eq!(
            clean_fact("interfaces", "docker0,lo,veth,wg-acme", &mut own),
            "docker0,lo,veth,interface1"
        );
        assert_eq!(clean_fact("mtu", "eth0 1500,wg-acme 1420", &mut own), "eth0 1500,interface1 1420");
        assert_eq!(clean_fact("offloads", "lo rx tso,wg-acme none", &mut own), "lo rx tso,interface1 none");
        assert_eq!(
            clean_fact("way", "dnat [fd00::2]:70 snat 10.0.0.1", &mut own),
            "dnat address1 snat address2"
        );
        assert_eq!(clean_fact("resolver", "10.89.0.1", &mut own), "address3");
        assert_eq!(clean_fact("said", "anything", &mut own), "said1");
    }
}

//! Which subjects a quick run leaves out.

use dunnage_analysis::distinct;

use crate::plan::Entry;
use crate::subject::Layer;

/// Leaves out the least informative subject with its variants, and returns the labels: first variants in all but the first key
/// that is varied, then engines with a chosen runtime, then runtimes beyond two, engines beyond two (the first, which is nearest to the
/// kernel), the second runtime, the second engine, then the last but one, because a layer between two others only explains
/// them. When only `least` are left, the last variant.
pub(super) fn leave_out(entries: &mut Vec<Entry>, least: usize) -> Vec<String> {
    // Number of keys of the same subject that were varied before.
    let rank = |entry: &Entry| {
        let siblings =
            entries.iter().filter(|one| one.variant_of.is_some() && one.variant_of == entry.variant_of);
        distinct(siblings.map(|one| varied_key(one, entries)))
            .iter()
            .position(|key| *key == varied_key(entry, entries))
            .unwrap_or(0)
    };
    let originals: Vec<&Entry> = entries.iter().filter(|entry| entry.variant_of.is_none()).collect();
    let variants = || entries.iter().filter(|entry| entry.variant_of.is_some());
    let is_another = |index: usize| originals[..index].iter().any(|one| one.layer == originals[index].layer);
    let is_engine = |index: usize| originals[index].layer == Layer::Engine;
    let engines: Vec<usize> = (0..originals.len()).filter(|index| is_engine(*index)).collect();
    let others: Vec<usize> =
        (0..originals.len()).filter(|index| is_another(*index) && !is_engine(*index)).collect();
    let last = match variants().max_by_key(|entry| rank(entry)) {
        Some(of_later_key) if rank(of_later_key) > 0 => Some(of_later_key),
        _ if originals.len() <= least => variants().next_back(),
        _ => None
            .or_else(|| originals.iter().rposition(|entry| entry.spec.runtime.is_some()))
            .or_else(|| others.last().copied().filter(|_| others.len() > 1))
            .or_else(|| engines.first().copied().filter(|_| engines.len() > 2))
            .or_else(|| others.last().copied())
            .or_else(|| engines.last().copied().filter(|_| engines.len() > 1))
            .or_else(|| originals.len().checked_sub(2))
            .map(|index| originals[index]),
    };
    let Some(label) = last.map(|entry| entry.label.clone()) else { return Vec::new() };
    let goes = |entry: &mut Entry| entry.label == label || entry.variant_of.as_ref() == Some(&label);
    entries.extract_if(.., goes).map(|entry| entry.label).collect()
}

/// The key in which a variant differs from its original.
fn varied_key<'a>(entry: &'a Entry, entries: &[Entry]) -> Option<&'a str> {
    let original = entries.iter().find(|one| Some(&one.label) == entry.variant_of.as_ref())?;
    let mut keys = entry.spec.keys.iter().map(|(key, _)| key.as_str());
    keys.find(|key| entry.spec.get(key) != original.spec.get(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Ladder;
    use crate::subject::Spec;
    use crate::units::Nanos;

    #[test]
    fn a_minute_leaves_out_what_tells_the_least() {
        let entry = |text: &&str| {
            let spec = Spec::parse(text).unwrap();
            Entry {
                label: (*text).to_owned(),
                layer: crate::subject::kind_of(&spec).unwrap().layer,
                spec,
                ladder: Ladder::AsInstalled,
                twin_of: None,
                runtime: None,
                launch: Nanos(0),
                offers: Vec::new(),
                only_in: Vec::new(),
                variant_of: text.split_once(':').map(|(original, _)| original.to_owned()),
                inherited: Default::default(),
            }
        };
        let gone = |texts: &[&str], least: usize| {
            let mut entries: Vec<Entry> = texts.iter().map(entry).collect();
            let gone = std::iter::repeat_with(|| leave_out(&mut entries, least).join(" "));
            gone.take_while(|gone| !gone.is_empty()).collect::<Vec<_>>().join(", ")
        };
        let ladder = ["bare", "floor", "crun", "runc", "docker", "docker+crun", "podman"];
        let varied = [
            "floor:seccomp=off",
            "floor:pid=host",
            "floor:net=host",
            "docker:seccomp=off",
            "docker:pid=host",
        ];
        assert_eq!(
            gone(&[&ladder[..], &varied].concat(), 2),
            "floor:net=host, docker:pid=host, floor:pid=host, docker+crun, runc, podman, crun, floor floor:seccomp=off, \
             docker:seccomp=off"
        );
        // The engines that most people run stay longer than those nearer to the kernel, and than other runtimes.
        let all = ["bare", "floor", "crun", "runc", "youki", "containerd", "docker", "podman"];
        assert_eq!(gone(&all, 2), "youki, containerd, runc, podman, crun, floor");
        // Values of one key are of one rank, and where nothing is compared a subject with them is enough.
        let limited = [
            "floor",
            "docker",
            "podman",
            "floor:cpus=0.1",
            "docker:cpus=0.1",
            "docker:cpus=0.5",
            "podman:cpus=0.5",
        ];
        assert_eq!(
            gone(&limited, 1),
            "podman podman:cpus=0.5, floor floor:cpus=0.1, docker:cpus=0.5, docker:cpus=0.1"
        );
    }
}

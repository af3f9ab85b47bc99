//! Words that a pack must be able to contain, even if a machine or user has such a name, because the program itself writes them as
//! texts. Names of fields are not among them: `clean` collects those of the run.

use dunnage_analysis::record::wire::HEADER_FORMAT;
use dunnage_analysis::subject::inherited;

use super::head::PUBLIC;
use crate::plan::Relation;
use crate::subject::KINDS;

/// The words of the program.
pub fn vocabulary() -> String {
    let mut words: Vec<&str> = vec![HEADER_FORMAT, SAID, PUBLIC];
    words.extend(Relation::NAMES);
    words.extend(crate::experiment::names());
    for kind in KINDS {
        words.push(kind.name);
        words.extend(kind.keys.iter().map(|key| key.name));
    }
    for experiment in crate::experiment::ALL {
        words.push(experiment.name);
        words.extend(experiment.metrics.iter().map(|metric| metric.name));
        for key in experiment.all_keys() {
            words.push(key.name);
            words.extend(key.values);
        }
    }
    let inherited: Vec<String> = inherited::names().collect();
    words.extend(inherited.iter().map(String::as_str));
    words.join(" ")
}

/// Words that the program writes, other than the declared names of what samples hold.
const SAID: &str = "all as backend bare blocks burst chowned client connects daemon data driver engine \
    environment equalised execute floor graph idmapped installed json kernel kernel_command_line laid launch \
    lifecycle log maker manager measured mnt monitor namespace none one ordinary own pack pieces pilot pinned plan \
    port ports private published rootless samples server snapshotter socket step storage uid unknown unpacked uptime \
    user_mapping";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn words_stand_once() {
        let all: Vec<&str> = SAID.split(' ').collect();
        let distinct: BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(all.len(), distinct.len());
    }
}

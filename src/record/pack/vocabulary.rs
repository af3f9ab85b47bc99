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

/// Names of facts, stamps and counters, and words that the program writes.
const SAID: &str = "aligned all architecture as attached backend bare batches began bind blocks boot_time burst burst_periods burst_time bursts_done \
     bursts_waiting calls capabilities cgroup cgroup_ns chowned client client_cpu clone connect connections connections_took connects cpu cpus \
     create created daemon data directories down_bytes down_took driver drop empty engine engine_cpu enter environment equalised every exec \
     execed execute exit first first_took fixed_work floor forked gone graph helper_cpu helpers huge_pages idmapped image_took indirect_branch \
     installed interfaces ipc json kernel kernel_command_line laid launch length lifecycle limit listener load log look lost made main make maker \
     manager map measured metacopy mnt monitor mtu names namespace network no_new_privs none offloads one open ordinary overlay own pack period_cpu \
     periods pid pieces pilot pinned pivot plan port ports private processes published queries quota quota_burst quota_period ready removal_took \
     remove removed resolver returned root root_durability rootless samples seccomp seccomp_filters seccomp_instructions second_took server \
     server_cpu serving session set snapshotter socket spawn start step stop stopped storage store_bypass streams system third_took threads \
     throttled throttled_time trip trips turns uid umask undo undone unknown unpacked up_bytes up_took uptime usage user user_mapping uts vdso \
     waited warm_up warm_up_requests warm_up_took way window wrong";

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

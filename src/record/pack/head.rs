//! Environment and plan of a run without private content: what is left out as a whole, and the rest as its types declare.

use anyhow::{Context, Result};

use super::super::{Environment, Order, Source, plan_file, reader};
use super::clean::Cleaner;
use super::label::{Labels, label};
use super::words::Words;
use crate::plan::Plan;
use dunnage_analysis::record::kernel::shared_arguments;
use dunnage_analysis::subject::inherited::ENVIRONMENT as VARIABLES;

/// Facts about the machine that do not identify it.
pub(super) const PUBLIC: &str = "architecture boot_time capabilities cgroup_mode cgroup_v1_controllers \
    cgroup_v2_controllers clock_source cpu cpu_cores cpu_share cpu_sockets cpu_threads cpu_usable distribution disk_kind disk_model hypervisor inside \
    kernel kernel_version memory_bytes pressure security_modules state_filesystem";
const MITIGATION: &str = "mitigation_";

/// Cleans environment and plan.
pub fn head(source: &Source, cleaner: &mut Cleaner, dropped: &[String]) -> Result<(Environment, Plan)> {
    let (mut environment, mut plan) = reader::head(source)?;
    cleaner.labels = match &environment.origin {
        Some(origin) if origin.order == Order::Blocks => Labels::Commands,
        _ => Labels::Subjects,
    };
    leave_out(&mut environment, &mut plan, &mut cleaner.words, dropped);
    let context = "the run cannot be read without its private words\n\nhint: use `--private WORD` to give a word another placeholder";
    // Numbered in their own order and not in that of the command line, so that subjects of several packs have the same labels.
    for (subject, facts) in &environment.subjects {
        cleaner.json(facts)?;
        label(subject, cleaner.labels, &mut cleaner.words);
    }
    let environment = serde_json::from_slice(cleaner.json(&environment)?).context(context)?;
    // If two texts became the same, only the reader of the pack would notice.
    let plan = plan_file::read(cleaner.json(&plan)?).context(context)?;
    Ok((environment, plan))
}

/// Removes what is not in a pack in any form.
fn leave_out(run: &mut Environment, plan: &mut Plan, words: &mut Words, dropped: &[String]) {
    for key in dropped {
        if let Some(value) = run.tags.remove(key) {
            words.left_out(&format!("tag {key}={value}"));
        }
    }
    run.machine.retain(|name, value| keep_fact(name, value, words));
    // It contains paths; its request is in the plan.
    if !std::mem::take(&mut run.command).is_empty() {
        words.left_out("the command line of the run");
    }
    run.words.clear();
    if let Some(filter) = &mut run.filter {
        filter.profile = None;
    }
    for entry in &mut plan.subjects {
        if entry.inherited.remove(VARIABLES).is_some() {
            words.left_out("the names of variables in containers");
        }
    }
}

/// Whether a fact about the machine is in a pack; what identifies the machine in it is removed.
fn keep_fact(name: &str, value: &mut String, words: &mut Words) -> bool {
    match name {
        // Without the arguments that show the boot device and other software.
        "kernel_command_line" => {
            let shared = shared_arguments(value);
            if shared != *value {
                words.left_out(&format!("{name}: {value}"));
            }
            *value = shared;
        }
        "user" if value != "0" => "ordinary".clone_into(value),
        "user" => {}
        _ if name.starts_with(MITIGATION) || PUBLIC.split_whitespace().any(|public| public == name) => {}
        _ => {
            words.left_out(&format!("{name}: {value}"));
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::words::tests::annas as words;
    use super::*;

    #[test]
    fn of_the_machine_only_what_bears_on_the_numbers_stays() {
        let mut own = words();
        let line = "root=UUID=1-2 mitigations=off ip=10.0.0.1 isolcpus=1 -- --name anna";
        let mut kept = |name: &str, value: &str| {
            let mut value = value.to_owned();
            keep_fact(name, &mut value, &mut own).then_some(value)
        };
        assert_eq!(kept("kernel_command_line", line).as_deref(), Some("mitigations=off isolcpus=1"));
        assert_eq!(kept("user", "1204").as_deref(), Some("ordinary"));
        assert_eq!(kept("state_filesystem", "ext4").as_deref(), Some("ext4"));
        for private in ["serial_number", "storage_state"] {
            assert_eq!(kept(private, "123"), None);
        }
    }
}

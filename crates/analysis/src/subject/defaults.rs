//! What engines do for a container unless they are asked otherwise. Deliberately absent: what was asked, and what was found inside.

use super::kinds::ALL;
use super::spec::{Spec, Values};

/// Which defaults of other engines a subject does without: a network with a way out, or a system call filter.
pub fn lacks(spec: &Spec) -> Vec<&'static str> {
    let Some(kind) = ALL.into_iter().find(|kind| kind.name == spec.name) else { return Vec::new() };
    let key = |name: &str| kind.keys.iter().find(|key| key.name == name);
    let has_bridge =
        key("net").is_some_and(|key| matches!(key.values, Values::OneOf(all) if all.contains(&"bridge")));
    let net = spec.get("net").unwrap_or(if has_bridge { "bridge" } else { "none" });
    let filter = spec.get("seccomp").or_else(|| key("seccomp")?.default);
    [(net == "none", "network"), (filter == Some("off"), "filter")]
        .into_iter()
        .filter(|(is_so, _)| *is_so)
        .map(|(_, what)| what)
        .collect()
}

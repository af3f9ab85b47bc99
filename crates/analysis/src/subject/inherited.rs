//! What containers of a subject inherit from the process that starts them, as read back from inside: limits, CPUs,
//! umask, niceness, environment. Two subjects that were asked to differ in one key can differ here too, and
//! then no cause can be named.

use std::collections::{BTreeMap, BTreeSet};

use super::limits::RESOURCES;

/// The facts by name; none if they are not known.
pub type Inherited = BTreeMap<String, String>;

/// The fact with the names of all variables.
pub const ENVIRONMENT: &str = "environment";

/// The names of all facts.
pub fn names() -> impl Iterator<Item = String> {
    let limits = RESOURCES.iter().map(|name| format!("ulimit {name}"));
    let others = ["cpus allowed", "umask", "nice", "timer slack", "oom score adj", ENVIRONMENT];
    limits.chain(others.map(str::to_owned))
}

/// The names of the variables in the fact about them, without the numbers of their values, which mean something within one run only.
pub fn names_of_variables(environment: &str) -> String {
    let name = |word: &str| word.split_once('=').map_or(word, |(name, _)| name).to_owned();
    environment.split(' ').map(name).collect::<Vec<_>>().join(" ")
}

/// A fact that is not the same in two subjects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference<'a> {
    /// Its name.
    pub what: &'a str,
    /// Its value in the one.
    pub one: &'a str,
    /// Its value in the other.
    pub other: &'a str,
}

/// What keys bring about themselves: `ulimit=` changes a limit, and a key's own variables come with it. Names
/// that begin with the text belong to it.
const BROUGHT_ABOUT: [(&str, &str); 8] = [
    ("ulimit", "ulimit "),
    ("cpuset", "cpus allowed"),
    ("engine", ENVIRONMENT),
    ("runtime", ENVIRONMENT),
    ("image", ENVIRONMENT),
    ("rootless", ENVIRONMENT),
    ("tty", ENVIRONMENT),
    ("userns", ENVIRONMENT),
];

/// All differences between two subjects that differ in this key besides, except what the key itself brings about.
pub fn differences<'a>(key: &str, one: &'a Inherited, other: &'a Inherited) -> Vec<Difference<'a>> {
    if one.is_empty() || other.is_empty() {
        return Vec::new();
    }
    let is_its =
        |what: &str| BROUGHT_ABOUT.iter().any(|(cause, effect)| *cause == key && what.starts_with(effect));
    let value = |all: &'a Inherited, what: &str| all.get(what).map_or("unknown", String::as_str);
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let all =
        names.into_iter().map(|what| Difference { what, one: value(one, what), other: value(other, what) });
    all.filter(|differs| differs.one != differs.other && !is_its(differs.what)).collect()
}

/// The same in words, with both values; of the environment, the variables that differ.
pub fn shown(all: &[Difference<'_>]) -> String {
    let one = |differs: &Difference<'_>| match differs.what {
        ENVIRONMENT => format!("environment ({})", variables(differs)),
        what => format!("{what} ({} and {})", differs.one, differs.other),
    };
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Variables that only one has, and those with different values.
fn variables(differs: &Difference<'_>) -> String {
    let split = |text: &str| -> BTreeMap<String, String> {
        let pair = |word: &str| {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            (name.to_owned(), value.to_owned())
        };
        text.split(' ').filter(|word| !word.is_empty()).map(pair).collect()
    };
    let [one, other] = [differs.one, differs.other].map(split);
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let told = names.into_iter().filter_map(|name| match (one.get(name), other.get(name)) {
        (Some(own), Some(others)) if own == others => None,
        (Some(_), Some(_)) => Some(format!("another value of {name}")),
        (Some(_), None) => Some(format!("{name} only in the first")),
        _ => Some(format!("{name} only in the second")),
    });
    told.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(pairs: &[(&str, &str)]) -> Inherited {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn another_limit_is_a_difference_unless_the_key_asks_for_it() {
        let one = facts(&[("ulimit nofile", "1024"), ("umask", "0022")]);
        let other = facts(&[("ulimit nofile", "20000"), ("umask", "0022")]);
        let told = |key: &str| shown(&differences(key, &one, &other));
        assert_eq!(told("userns"), "ulimit nofile (1024 and 20000)");
        assert_eq!(told("ulimit"), "");
        assert_eq!(differences("userns", &one, &one), []);
        // An older run does not know them.
        assert_eq!(differences("userns", &one, &Inherited::new()), []);
    }

    #[test]
    fn variables_are_compared_by_name_and_by_the_number_of_their_value() {
        let one = facts(&[(ENVIRONMENT, "HOME=1 HOSTNAME PATH=1 TERM=1")]);
        let other = facts(&[(ENVIRONMENT, "HOSTNAME PATH=2 TERM=1 TOKEN=1")]);
        assert_eq!(
            shown(&differences("client", &one, &other)),
            "environment (HOME only in the first, another value of PATH, TOKEN only in the second)"
        );
        assert_eq!(differences("image", &one, &other), []);
    }
}

//! Which tests may run at the same time.
//!
//! The first rule whose beginning a test's name has applies to it. Names are `EXECUTABLE::MODULE::…::TEST`. A rule that no test
//! has is an error of the suite, so that a renamed module does not lose its rule.

/// What a test needs of the machine while it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Load {
    /// One processor.
    Computes,
    /// Little of a processor: it waits for engines, for the kernel or for a clock.
    Waits,
    /// The whole machine, because it compares times or counts what everything on the machine does. Only others of this kind that
    /// share something with it may run next to it.
    Alone,
}

/// What tests whose names begin in the same way need.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The beginning of their names.
    pub beginning: &'static str,
    /// What they need of the processors.
    pub load: Load,
    /// Things of which there is one on the machine, by any name, and which it needs for itself.
    pub owns: &'static [&'static str],
    /// Those that it shares with other tests, but not with one that needs them for itself.
    pub shares: &'static [&'static str],
}

impl Rule {
    /// Whether tests with these rules may run at the same time, apart from the processors.
    pub fn agrees_with(&self, other: &Rule) -> bool {
        let needs = |one: &Rule, thing| one.owns.contains(thing) || one.shares.contains(thing);
        !self.owns.iter().any(|thing| needs(other, thing))
            && !other.owns.iter().any(|thing| needs(self, thing))
            && (self.load != Load::Alone && other.load != Load::Alone || self.bears(other))
    }

    /// Whether both need the whole machine, and do not mind each other.
    fn bears(&self, other: &Rule) -> bool {
        self.load == other.load && self.shares.iter().any(|thing| other.shares.contains(thing))
    }
}

const fn rule(beginning: &'static str, load: Load) -> Rule {
    Rule { beginning, load, owns: &[], shares: &[] }
}

impl Rule {
    const fn owning(self, owns: &'static [&'static str]) -> Rule {
        Rule { owns, ..self }
    }

    const fn sharing(self, shares: &'static [&'static str]) -> Rule {
        Rule { shares, ..self }
    }
}

/// The rules. Tests start in this order, so what takes longest is first.
pub const RULES: &[Rule] = &[
    // What takes longest.
    rule("real::guest::everything", Load::Computes),
    rule("real::kill::", Load::Waits),
    rule("real::resources::nothing_is_left", Load::Waits),
    rule("real::stack::", Load::Waits),
    rule("real::machine::service::", Load::Waits),
    rule("real::machine::command::", Load::Waits),
    // CPU time of everything on the machine, against the kernel's own figures.
    rule("real::accounting::", Load::Alone),
    // Shares of a processor.
    rule("real::advise::a_container_of_", Load::Alone).sharing(&["shares of a processor"]),
    rule("real::machine::cpu::it_works", Load::Alone),
    // Times of the kernel's work, which other work makes longer.
    rule("real::machine::wasted::a_namespace_of_many", Load::Alone),
    rule("real::life::the_floor_lives", Load::Alone),
    // Files made on the whole disk.
    rule("real::owners::files_of_an_image", Load::Alone),
    // No other dunnage may run.
    rule("real::containerd::life::a_stopped_or_killed", Load::Alone),
    rule("real::containerd::life::what_others_keep", Load::Alone),
    // Output of a program that has ended at once, of which `ctr` loses some on a busy machine.
    rule("real::containerd::life::containerd_is_measured", Load::Alone),
    // One namespace of containerd's.
    rule("real::containerd::", Load::Waits).owning(&["containerd"]),
    // Cgroups with fixed names.
    rule("real::floor::", Load::Waits).owning(&["floor"]),
    // Half a gigabyte each: if all wrote at once, daemons would time out.
    rule("real::fat::", Load::Waits).owning(&["disk"]).sharing(&["page cache"]),
    rule("real::disk::", Load::Waits).sharing(&["page cache"]),
    rule("real::layers::", Load::Waits).sharing(&["page cache"]),
    rule("real::machine::cold::", Load::Waits).owning(&["page cache"]),
    // Helper processes of published ports, by their names.
    rule("real::handles::pairs::", Load::Waits).owning(&["ports"]),
    rule("real::handles::names::every_subject", Load::Waits).owning(&["ports"]),
    rule("real::handles::a_peer_on_the_host_reaches", Load::Waits).sharing(&["ports"]),
    rule("real::handles::published::the_ports", Load::Waits).sharing(&["ports"]),
    // A load whose client must not be what limits it.
    rule("real::handles::web::a_program", Load::Alone),
    // Their CPU time, which the kernel's rings of events may be too small for on a busy machine.
    rule("real::handles::published::published_ports", Load::Alone),
    rule("real::handles::watched::containers_that_start", Load::Alone),
    rule("real::handles::visits::what_is_left", Load::Alone),
    // Rules of the host's firewall.
    rule("real::handles::two_containers_of_podman", Load::Waits).owning(&["firewall"]),
    rule("real::handles::web::a_firewall", Load::Waits).owning(&["firewall"]).sharing(&["ports"]),
    rule("real::handles::", Load::Waits),
    rule("real::machine::", Load::Waits),
    // Everything else.
    rule("real::", Load::Waits),
    rule("", Load::Computes),
];

/// What cargo does while tests run: the lints, and building the tests that need no engine.
pub const CARGO: Rule = rule("cargo", Load::Computes).owning(&["cargo"]);

/// The position of a test's rule.
pub fn of(name: &str, rules: &[Rule]) -> usize {
    rules.iter().position(|rule| name.starts_with(rule.beginning)).unwrap_or(rules.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_with_the_beginning_applies_and_the_last_one_to_all() {
        let rules =
            [rule("real::a::b", Load::Alone), rule("real::a::", Load::Waits), rule("", Load::Computes)];
        assert_eq!(["real::a::bc", "real::a::c", "other"].map(|name| of(name, &rules)), [0, 1, 2]);
        assert_eq!(RULES.last().map(|rule| rule.beginning), Some(""));
    }

    #[test]
    fn what_one_needs_for_itself_another_cannot_share() {
        let plain = rule("", Load::Waits);
        let (owns, shares) = (plain.owning(&["a", "b"]), plain.sharing(&["b", "c"]));
        assert!(plain.agrees_with(&owns) && shares.agrees_with(&shares));
        assert!(!owns.agrees_with(&owns) && !owns.agrees_with(&shares) && !shares.agrees_with(&owns));
        assert!(shares.agrees_with(&plain.owning(&["a"])));
        let alone = rule("", Load::Alone);
        let [one, other] = [alone.sharing(&["a"]), alone.sharing(&["b"])];
        assert!(!alone.agrees_with(&plain) && !plain.agrees_with(&one) && !alone.agrees_with(&alone));
        assert!(one.agrees_with(&one) && !one.agrees_with(&other));
    }
}

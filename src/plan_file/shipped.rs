//! The plans that come with dunnage: files in `plans/`, each with a line in the list.

use super::{PlanFile, parse};

/// A plan that comes with dunnage.
#[derive(Debug)]
pub struct Shipped {
    /// Its name after `--plan`.
    pub name: &'static str,
    /// The plan file.
    pub text: &'static str,
}

/// All of them.
pub static ALL: &[Shipped] = &[
    Shipped { name: "ladder", text: include_str!("../../plans/ladder.toml") },
    Shipped { name: "factorial", text: include_str!("../../plans/factorial.toml") },
];

/// The plan with this name.
pub fn find(name: &str) -> Option<&'static Shipped> {
    ALL.iter().find(|one| one.name == name)
}

impl Shipped {
    /// The parsed plan.
    ///
    /// # Panics
    /// If a plan file in the repository is invalid, which a test in this module rules out.
    pub fn read(&self) -> PlanFile {
        parse(self.name, self.text).expect("shipped plans can be read")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_plans_can_be_read_and_say_what_they_are_for() {
        for one in ALL {
            let read = parse(one.name, one.text).unwrap_or_else(|error| panic!("{}: {error}", one.name));
            assert!(read.about.is_some_and(|about| !about.is_empty()), "{}", one.name);
            assert!(!read.subjects.is_empty() && !one.name.contains(['/', '.']), "{}", one.name);
        }
    }
}

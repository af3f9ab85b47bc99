//! A profile's answer to each call, one at a time: the definition that the compiler must meet.

use dunnage::sys::seccomp::{Abi, Condition, Profile, Rule, Test};

/// A profile that can be asked for answers.
#[derive(Clone, Debug)]
pub struct Meaning<'a> {
    profile: &'a Profile,
    numbered: [Option<Vec<Vec<&'a Rule>>>; 3],
}

impl<'a> Meaning<'a> {
    pub fn of(profile: &'a Profile) -> Meaning<'a> {
        Meaning { profile, numbered: Abi::ALL.map(|abi| profile.numbered(abi)) }
    }

    /// The answer to a call.
    pub fn verdict(&self, arch: u32, number: u32, arguments: &[u64; 6]) -> u32 {
        let Some(abi) = Abi::of(arch, number) else {
            return self.profile.foreign;
        };
        let Some(numbered) = &self.numbered[abi as usize] else {
            return self.profile.foreign;
        };
        let Some(rules) = numbered.get((number - abi.base()) as usize) else {
            return self.profile.newer;
        };
        let applies = |rule: &&&Rule| rule.conditions.iter().all(|one| holds(one, arguments, abi.wide()));
        rules.iter().find(applies).map_or(self.profile.default, |rule| rule.action)
    }
}

fn holds(condition: &Condition, arguments: &[u64; 6], wide: bool) -> bool {
    let kept = if wide { u64::MAX } else { 0xffff_ffff };
    let argument = arguments[usize::from(condition.argument)] & kept;
    match condition.test {
        Test::Equal(value) => argument == value & kept,
        Test::Other(value) => argument != value & kept,
        Test::AtLeast(value) => argument >= value & kept,
        Test::Below(value) => argument < value & kept,
        Test::MaskedEqual { mask, value } => argument & mask == value & kept,
    }
}

/// The built-in copy of Docker's default profile.
pub fn built_in() -> Profile {
    Profile::from_oci(&dunnage::sys::seccomp::built_in()).expect("a valid profile")
}

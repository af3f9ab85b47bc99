//! The profile and its compiler, without a kernel: the program that comes out is well formed and
//! means what the profile says.

use crate::interpret::{Call, LONGEST, check, run};
use crate::meaning::Meaning;
use dunnage::sys::seccomp::{
    ARCH_I386, ARCH_X86_64, Abi, Action, Condition, DOCKER_DEFAULT, Profile, Rule, Test, X32_BIT, compile,
};
use proptest::prelude::*;

const FOREIGN: u32 = 0xc000_00b7; // AUDIT_ARCH_AARCH64

fn call(arch: u32, number: u32, arguments: [u64; 6]) -> Call {
    Call { number, arch, instruction_pointer: 0, arguments }
}

/// Numbers in and around everything that the tables hold, and the ends of the number line.
fn numbers() -> impl Iterator<Item = u32> {
    let bases = [0, X32_BIT, 1 << 31, (1 << 31) | X32_BIT];
    let edges = [X32_BIT - 1, (1 << 31) - 1, u32::MAX, 0xbfff_ffff];
    bases.into_iter().flat_map(|base| base..base + 600).chain(edges)
}

#[test]
fn the_default_profile_compiles_to_a_well_formed_program() {
    let program = compile(&DOCKER_DEFAULT);
    check(&program).unwrap();
    assert!(program.len() <= LONGEST);
}

#[test]
fn the_program_means_what_the_profile_says() {
    let program = compile(&DOCKER_DEFAULT);
    let meaning = Meaning::of(&DOCKER_DEFAULT);
    for arch in [ARCH_X86_64, ARCH_I386, FOREIGN, 0] {
        for number in numbers() {
            for arguments in [[0; 6], [u64::MAX; 6], [1 << 32; 6], [0x0002_0000; 6]] {
                let expected = meaning.verdict(arch, number, &arguments);
                let verdict = run(&program, &call(arch, number, arguments)).unwrap();
                assert_eq!(verdict.action, expected, "{arch:#x} {number:#x} {arguments:x?}");
            }
        }
    }
}

#[test]
fn tables_answer_by_name_and_number() {
    for (abi, name, number) in [
        (Abi::X86_64, "read", 0),
        (Abi::X86_64, "futex_waitv", 449),
        (Abi::I386, "read", 3),
        (Abi::I386, "socketcall", 102),
        (Abi::X32, "read", X32_BIT),
        (Abi::X32, "pwritev2", X32_BIT + 547),
    ] {
        assert_eq!(abi.number(name), Some(number));
        assert_eq!(abi.name(number), Some(name));
    }
    assert_eq!(Abi::X86_64.number("socketcall"), None);
    assert_eq!(Abi::X86_64.number("no such call"), None);
    assert_eq!(Abi::X86_64.name(335), None);
    assert_eq!(Abi::X86_64.name(u32::MAX), None);
    assert_eq!(Abi::X32.name(0), None);
    // Every number of every ABI leads to a name that leads back.
    let mut known = 0;
    for abi in Abi::ALL {
        for number in abi.base()..abi.base() + 600 {
            if let Some(name) = abi.name(number) {
                assert_eq!(abi.number(name), Some(number), "{abi:?} {name}");
                known += 1;
            }
        }
    }
    assert_eq!(known, 362 + 440 + 351, "calls in the headers of Linux 6.1");
}

#[test]
fn no_call_has_rules_that_contradict_each_other() {
    // libseccomp and "the first rule that applies" agree as long as a call has either one rule
    // without conditions or only rules with conditions and the same action.
    let names = DOCKER_DEFAULT.rules.iter().flat_map(|rule| rule.names.split_whitespace());
    for name in names {
        let names_it = |rule: &&Rule| rule.names.split_whitespace().any(|other| other == name);
        let rules: Vec<_> = DOCKER_DEFAULT.rules.iter().filter(names_it).collect();
        let conditional = rules.iter().all(|rule| !rule.conditions.is_empty());
        assert!(rules.len() == 1 || conditional, "{name}");
        assert!(rules.iter().all(|rule| rule.action == rules[0].action), "{name}");
    }
}

#[test]
fn conditions_on_both_words_of_an_argument() {
    let conditions = [
        Condition { argument: 1, test: Test::Equal(0x1_0000_0002) },
        Condition { argument: 5, test: Test::MaskedEqual { mask: 0xf0_0000_00f0, value: 0x10_0000_0020 } },
    ];
    let rules = [Rule { names: "read", action: Action::Allow, conditions: &conditions }];
    let profile = Profile { rules: &rules, ..DOCKER_DEFAULT };
    let program = compile(&profile);
    let meaning = Meaning::of(&profile);
    check(&program).unwrap();
    let answer = |arch, number, second, sixth| {
        let arguments = [9, second, 9, 9, 9, sixth];
        let action = run(&program, &call(arch, number, arguments)).unwrap().action;
        assert_eq!(action, meaning.verdict(arch, number, &arguments));
        action
    };
    let denied = Action::Errno(1);
    assert_eq!(answer(ARCH_X86_64, 0, 0x1_0000_0002, 0x1f_1111_1f2f), Action::Allow);
    assert_eq!(answer(ARCH_X86_64, 0, 0x0_0000_0002, 0x1f_1111_1f2f), denied);
    assert_eq!(answer(ARCH_X86_64, 0, 0x1_0000_0003, 0x1f_1111_1f2f), denied);
    assert_eq!(answer(ARCH_X86_64, 0, 0x1_0000_0002, 0x2f_1111_1f2f), denied);
    assert_eq!(answer(ARCH_X86_64, 0, 0x1_0000_0002, 0x1f_1111_1f1f), denied);
    // The upper word does not count on i386 and x32.
    assert_eq!(answer(ARCH_I386, 3, 0x7_0000_0002, 0x20), Action::Allow);
    assert_eq!(answer(ARCH_X86_64, X32_BIT, 0x7_0000_0002, 0x20), Action::Allow);
    assert_eq!(answer(ARCH_I386, 3, 0x7_0000_0003, 0x20), denied);
}

#[test]
fn profiles_for_fewer_architectures() {
    for abis in [&[Abi::X86_64][..], &[Abi::I386], &[Abi::X32], &[Abi::X32, Abi::I386], &[]] {
        let profile = Profile { abis, ..DOCKER_DEFAULT };
        assert_same(&profile);
    }
    assert_same(&Profile { rules: &[], ..DOCKER_DEFAULT });
}

fn assert_same(profile: &Profile) {
    let program = compile(profile);
    let meaning = Meaning::of(&profile);
    check(&program).unwrap();
    for arch in [ARCH_X86_64, ARCH_I386, FOREIGN] {
        for number in numbers() {
            let expected = meaning.verdict(arch, number, &[0; 6]);
            let verdict = run(&program, &call(arch, number, [0; 6])).unwrap();
            assert_eq!(verdict.action, expected, "{arch:#x} {number:#x} {:?}", profile.abis);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..Default::default() })]

    /// Whatever the shape of the profile, jumps land where they should.
    #[test]
    fn any_choice_of_calls_compiles_to_its_meaning(
        allowed in proptest::collection::vec(any::<bool>(), 600),
        conditional in proptest::collection::vec(0u32..600, 0..80),
    ) {
        let names = |chosen: &dyn Fn(u32) -> bool| -> String {
            let numbers = (0..600).filter(|&number| chosen(number));
            let names: Vec<_> = numbers.filter_map(|number| Abi::I386.name(number)).collect();
            names.join(" ")
        };
        let some = names(&|number| conditional.contains(&number));
        let others = names(&|number| allowed[number as usize] && !conditional.contains(&number));
        let zero = [Condition { argument: 0, test: Test::Equal(0) }];
        let rules = [
            Rule { names: &some, action: Action::Errno(5), conditions: &zero },
            Rule { names: &others, action: Action::Allow, conditions: &[] },
        ];
        assert_same(&Profile { rules: &rules, ..DOCKER_DEFAULT });
    }
}

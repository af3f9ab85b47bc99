//! The profile and its compiler, without a kernel: the resulting program is well formed and means what the
//! profile says.

use crate::seccomp::interpret::{Call, LONGEST, check, run};
use crate::seccomp::meaning::{Meaning, built_in};
use dunnage::sys::seccomp::{ARCH_I386, ARCH_X86_64, Abi, Condition, Profile, Rule, Test, X32_BIT, compile};
use proptest::prelude::*;
use serde_json::{Value, json};

const FOREIGN: u32 = 0xc000_00b7; // AUDIT_ARCH_AARCH64

fn call(arch: u32, number: u32, arguments: [u64; 6]) -> Call {
    Call { number, arch, instruction_pointer: 0, arguments }
}

/// Numbers in and around everything in the tables, and the ends of the number line.
fn numbers() -> impl Iterator<Item = u32> {
    let bases = [0, X32_BIT, 1 << 31, (1 << 31) | X32_BIT];
    let edges = [X32_BIT - 1, (1 << 31) - 1, u32::MAX, 0xbfff_ffff];
    bases.into_iter().flat_map(|base| base..base + 600).chain(edges)
}

#[test]
fn the_default_profile_compiles_to_a_well_formed_program() {
    let program = compile(&built_in());
    check(&program).unwrap();
    assert!(program.len() <= LONGEST);
}

#[test]
fn the_program_means_what_the_profile_says() {
    let program = compile(&built_in());
    let profile = built_in();
    let meaning = Meaning::of(&profile);
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
    assert_eq!(Abi::X86_64.name(400), None);
    assert_eq!(Abi::X86_64.name(u32::MAX), None);
    assert_eq!(Abi::X32.name(0), None);
    // Every number of every ABI has a name, which has that number.
    let mut known = 0;
    for abi in Abi::ALL {
        for number in abi.base()..abi.base() + 600 {
            if let Some(name) = abi.name(number) {
                assert_eq!(abi.number(name), Some(number), "{abi:?} {name}");
                known += 1;
            }
        }
    }
    assert_eq!(known, 379 + 456 + 368, "calls in the headers of Linux 6.12, and four of 6.13");
}

#[test]
fn no_call_has_rules_that_contradict_each_other() {
    // libseccomp and "the first rule that applies" agree if a call has either one rule without conditions or
    // only rules with conditions and the same action.
    let profile = built_in();
    let names = profile.rules.iter().flat_map(|rule| rule.names.split_whitespace());
    for name in names {
        let names_it = |rule: &&Rule| rule.names.split_whitespace().any(|other| other == name);
        let rules: Vec<_> = profile.rules.iter().filter(names_it).collect();
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
    let rules =
        vec![Rule { names: "read".into(), action: libc::SECCOMP_RET_ALLOW, conditions: conditions.to_vec() }];
    let profile = Profile { rules, ..built_in() };
    let program = compile(&profile);
    let meaning = Meaning::of(&profile);
    check(&program).unwrap();
    let answer = |arch, number, second, sixth| {
        let arguments = [9, second, 9, 9, 9, sixth];
        let action = run(&program, &call(arch, number, arguments)).unwrap().action;
        assert_eq!(action, meaning.verdict(arch, number, &arguments));
        action
    };
    let denied = libc::SECCOMP_RET_ERRNO | 1;
    assert_eq!(answer(ARCH_X86_64, 0, 0x1_0000_0002, 0x1f_1111_1f2f), libc::SECCOMP_RET_ALLOW);
    assert_eq!(answer(ARCH_X86_64, 0, 0x0_0000_0002, 0x1f_1111_1f2f), denied);
    assert_eq!(answer(ARCH_X86_64, 0, 0x1_0000_0003, 0x1f_1111_1f2f), denied);
    assert_eq!(answer(ARCH_X86_64, 0, 0x1_0000_0002, 0x2f_1111_1f2f), denied);
    assert_eq!(answer(ARCH_X86_64, 0, 0x1_0000_0002, 0x1f_1111_1f1f), denied);
    // The upper word is ignored on i386 and x32.
    assert_eq!(answer(ARCH_I386, 3, 0x7_0000_0002, 0x20), libc::SECCOMP_RET_ALLOW);
    assert_eq!(answer(ARCH_X86_64, X32_BIT, 0x7_0000_0002, 0x20), libc::SECCOMP_RET_ALLOW);
    assert_eq!(answer(ARCH_I386, 3, 0x7_0000_0003, 0x20), denied);
}

/// Each kind of comparison that a bundle can ask for, at the limits of both words.
#[test]
fn conditions_of_every_kind_mean_what_the_bundle_says() {
    let values =
        [0, 1, 37, 38, 39, 40, 41, 0xffff_fffe, 0xffff_ffff, 1 << 32, (1 << 32) | 40, u64::MAX - 1, u64::MAX];
    for (op, holds) in [
        ("SCMP_CMP_EQ", (|one, other| one == other) as fn(u64, u64) -> bool),
        ("SCMP_CMP_NE", |one, other| one != other),
        ("SCMP_CMP_LT", |one, other| one < other),
        ("SCMP_CMP_LE", |one, other| one <= other),
        ("SCMP_CMP_GT", |one, other| one > other),
        ("SCMP_CMP_GE", |one, other| one >= other),
    ] {
        for value in values.into_iter().filter(|value| *value < u64::MAX) {
            let args = json!([{"index": 2, "value": value, "op": op}]);
            let profile = Profile::from_oci(&json!({
                "defaultAction": "SCMP_ACT_ERRNO",
                "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86"],
                "syscalls": [{"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": args}],
            }))
            .unwrap();
            let (program, meaning) = (compile(&profile), Meaning::of(&profile));
            check(&program).unwrap();
            for argument in values {
                let arguments = [7, 7, argument, 7, 7, 7];
                let action = |arch, number| {
                    let action = run(&program, &call(arch, number, arguments)).unwrap().action;
                    assert_eq!(
                        action,
                        meaning.verdict(arch, number, &arguments),
                        "{op} {value:#x} {argument:#x}"
                    );
                    action
                };
                let allowed = action(ARCH_X86_64, 0) == libc::SECCOMP_RET_ALLOW;
                assert_eq!(allowed, holds(argument, value), "{op} {value:#x} {argument:#x}");
                action(ARCH_I386, 3);
            }
        }
    }
}

#[test]
fn several_conditions_on_one_argument_are_alternatives_and_the_unknown_is_refused() {
    let profile =
        |rule: Value| Profile::from_oci(&json!({"defaultAction": "SCMP_ACT_KILL", "syscalls": [rule]}));
    let equal = |index: u64, value: u64| json!({"index": index, "value": value, "op": "SCMP_CMP_EQ"});
    let rule = |args: Vec<Value>| json!({"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": args});
    assert_eq!(profile(rule(vec![equal(0, 1), equal(0, 2)])).unwrap().rules.len(), 2);
    assert_eq!(profile(rule(vec![equal(0, 1), equal(1, 2)])).unwrap().rules.len(), 1);
    assert!(profile(rule(vec![equal(6, 1)])).is_err());
    assert!(profile(json!({"names": ["read"], "action": "SCMP_ACT_DANCE"})).is_err());
}

#[test]
fn profiles_for_fewer_architectures() {
    for abis in [&[Abi::X86_64][..], &[Abi::I386], &[Abi::X32], &[Abi::X32, Abi::I386], &[]] {
        let profile = Profile { abis: abis.to_vec(), ..built_in() };
        assert_same(&profile);
    }
    assert_same(&Profile { rules: Vec::new(), ..built_in() });
}

fn assert_same(profile: &Profile) {
    let program = compile(profile);
    let meaning = Meaning::of(profile);
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

    /// With every shape of profile, jumps have the right targets.
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
        let zero = vec![Condition { argument: 0, test: Test::Equal(0) }];
        let rules = vec![
            Rule { names: some, action: libc::SECCOMP_RET_ERRNO | 5, conditions: zero },
            Rule { names: others, action: libc::SECCOMP_RET_ALLOW, conditions: Vec::new() },
        ];
        assert_same(&Profile { rules, ..built_in() });
    }
}

//! dunnage's filter compared with docker's real one, call by call.

use crate::dunnage::Dunnage;
use crate::seccomp::docker::Container;
use crate::seccomp::interpret::{Call, check, run, run_all};
use crate::seccomp::meaning::{Meaning, built_in};
use crate::support::Need;
use dunnage::sys::seccomp::{ARCH_I386, ARCH_X86_64, Abi, Condition, Profile, Test, X32_BIT, compile};
use libc::sock_filter;
use serde_json::Value;
use std::collections::BTreeSet;

const ARCHES: [u32; 5] = [ARCH_X86_64, ARCH_I386, 0xc000_00b7, 0, u32::MAX];

/// The numbers to try: all existing ones, unchanged, with the x32 bit, with the sign bit, with both; the ends
/// of the number line; a thousand random ones.
fn numbers(random: &mut Random) -> Vec<u32> {
    let bases = [0, X32_BIT, 1 << 31, (1 << 31) | X32_BIT];
    let mut numbers: Vec<u32> = bases.into_iter().flat_map(|base| base..=base + 600).collect();
    numbers.extend(bases.iter().map(|base| base.wrapping_sub(1)));
    numbers.extend((0..32).map(|bit| 1 << bit));
    numbers.extend((1..600).map(|number: u32| number.wrapping_neg()));
    numbers.extend((0..1000).map(|_| random.next() as u32));
    numbers
}

/// First arguments that could make a difference: each bit alone and missing, every pair of bits within a
/// word, every known personality and small number; all these in the lower and in the upper word.
fn first_arguments() -> Vec<u64> {
    let personalities = [0u64, 0x8, 0x2_0000, 0x2_0008, 0xffff_ffff];
    let mut words: BTreeSet<u64> = (0..=600).collect();
    for one in 0..32 {
        words.insert(!(1 << one) & 0xffff_ffff);
        words.extend((0..32).map(|other| 1u64 << one | 1 << other));
    }
    for known in personalities {
        words.extend((0..32).map(|bit| known ^ (1 << bit)));
        words.insert(known);
    }
    words.insert(0x7e02_0000);
    let with_upper = |word: u64| [word, word << 32, word | 1 << 32, word | 0xffff_ffff << 32];
    words.into_iter().flat_map(with_upper).collect()
}

/// Calls `visit` with every call that is tried.
fn for_each_call(mut visit: impl FnMut(&Call)) {
    for_each_number(&mut visit);
    for_each_argument(&mut visit);
}

/// Every number in every architecture, each with a few random arguments.
fn for_each_number(visit: &mut impl FnMut(&Call)) {
    let mut random = Random(0x5ecc_0301);
    for arch in ARCHES {
        for number in numbers(&mut random) {
            let drawn: [[u64; 6]; 20] = std::array::from_fn(|_| random.arguments());
            for arguments in [[0; 6], [u64::MAX; 6]].into_iter().chain(drawn) {
                visit(&Call { arch, number, instruction_pointer: random.next(), arguments });
            }
        }
    }
}

/// Many arguments for the calls whose arguments are checked by this or another version of the profile, or by
/// libseccomp.
fn for_each_argument(visit: &mut impl FnMut(&Call)) {
    let names = "clone clone3 personality socket socketcall socketpair ipc ptrace unshare setns prctl \
                 ioctl arch_prctl modify_ldt keyctl mount bpf seccomp semtimedop shmat accept accept4 \
                 read";
    let mut random = Random(0x5ecc_0302);
    let firsts = first_arguments();
    for abi in Abi::ALL {
        for number in names.split_whitespace().filter_map(|name| abi.number(name)) {
            for &first in &firsts {
                let mut drawn = random.arguments();
                drawn[0] = first;
                for arguments in [[first, 0, 0, 0, 0, 0], [0, first, 0, 0, 0, 0], drawn] {
                    visit(&Call { arch: abi.arch(), number, instruction_pointer: 0, arguments });
                }
            }
        }
    }
}

/// The comparison would detect any missing or additional personality, and any bit missing from or added to
/// the mask of `clone`.
#[test]
fn the_arguments_tried_show_every_change_of_a_condition() {
    let profile = built_in();
    let shows = |change: &dyn Fn(&mut Condition), which: usize| {
        let mut changed = profile.clone();
        change(&mut changed.rules[which].conditions[0]);
        let (changed, original) = (Meaning::of(&changed), Meaning::of(&profile));
        let names = profile.rules[which].names.as_str();
        let mut shown = [false; 3];
        for_each_argument(&mut |call| {
            let abi = Abi::of(call.arch, call.number).unwrap();
            if !shown[abi as usize] && abi.number(names) == Some(call.number) {
                let verdict = |meaning: &Meaning| meaning.verdict(call.arch, call.number, &call.arguments);
                shown[abi as usize] = verdict(&changed) != verdict(&original);
            }
        });
        shown
    };
    for (which, rule) in profile.rules.iter().enumerate() {
        let Some(&Condition { test, .. }) = rule.conditions.first() else { continue };
        let bits: &[u32] =
            if rule.names == "clone" { &[0, 7, 17, 25, 26, 27, 28, 29, 30, 31] } else { &[0, 31] };
        for bit in bits {
            let flipped = |condition: &mut Condition| match &mut condition.test {
                Test::Equal(value) | Test::Other(value) | Test::AtLeast(value) | Test::Below(value) => {
                    *value ^= 1 << bit
                }
                Test::MaskedEqual { mask, .. } => *mask ^= 1 << bit,
            };
            assert_eq!(shows(&flipped, which), [true; 3], "{} {test:x?} bit {bit}", rule.names);
        }
        let upper = |condition: &mut Condition| match &mut condition.test {
            Test::Equal(value) | Test::Other(value) | Test::AtLeast(value) | Test::Below(value) => {
                *value |= 1 << 40
            }
            Test::MaskedEqual { mask, .. } => *mask |= 1 << 40,
        };
        assert!(shows(&upper, which)[Abi::X86_64 as usize], "{} {test:x?} upper word", rule.names);
    }
}

/// The differences between two filters over all calls that are tried, and the number of calls.
fn differences(ours: &[sock_filter], real: &[Vec<sock_filter>]) -> (Vec<Difference>, usize) {
    let (mut differences, mut tried) = (Vec::new(), 0);
    for_each_call(|call| {
        let ours = run(ours, call).expect("ours runs").action;
        let real = run_all(real, call).expect("the kernel's runs").action;
        tried += 1;
        if ours != real {
            differences.push(Difference { call: *call, ours, real });
        }
    });
    (differences, tried)
}

struct Difference {
    call: Call,
    ours: u32,
    real: u32,
}

impl Difference {
    fn describe(&self) -> String {
        let Call { arch, number, arguments, .. } = self.call;
        let name = Abi::of(arch, number).and_then(|abi| abi.name(number));
        let name = name.unwrap_or("no such call");
        let (ours, real) = (self.ours, self.real);
        format!("{arch:#x} {number:#x} ({name}) {arguments:x?}: ours {ours:?}, real {real:?}")
    }
}

#[test]
fn every_verdict_is_that_of_docker_with_runc() {
    let test = "every_verdict_is_that_of_docker_with_runc";
    let Some(container) = Container::start(test, Need::Docker, "runc") else {
        return;
    };
    let real = container.filters();
    let ours = compile(&profile(&container));
    for filter in &real {
        check(filter).unwrap();
    }
    report("runc", &ours, &real);
    let (differences, tried) = differences(&ours, &real);
    eprintln!("{tried} calls tried against runc, {} differ", differences.len());
    let listed: Vec<_> = differences.iter().take(50).map(Difference::describe).collect();
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), listed.join("\n"));
}

/// crun 1.8.1 gives numbers newer than the profile the default. That may be the only difference.
#[test]
fn crun_differs_only_on_calls_newer_than_the_profile() {
    let test = "crun_differs_only_on_calls_newer_than_the_profile";
    let Some(container) = Container::start(test, Need::DockerCrun, "crun") else {
        return;
    };
    let real = container.filters();
    let profile = profile(&container);
    let ours = compile(&profile);
    report("crun", &ours, &real);
    let newest = Abi::ALL.map(|abi| profile.numbered(abi).unwrap().len() as u32 - 1 + abi.base());
    let newer =
        |call: &Call| Abi::of(call.arch, call.number).is_some_and(|abi| call.number > newest[abi as usize]);
    let mut explained = 0;
    let mut unexplained = Vec::new();
    for_each_call(|call| {
        let ours = run(&ours, call).unwrap().action;
        let real = run_all(&real, call).unwrap().action;
        match ours == real {
            true => {}
            false if newer(call) && real == profile.default => explained += 1,
            false => unexplained.push(Difference { call: *call, ours, real }.describe()),
        }
    });
    eprintln!(
        "{explained} calls answered as by default instead of ENOSYS by crun, all newer than {newest:?}"
    );
    unexplained.truncate(50);
    assert!(unexplained.is_empty(), "{}", unexplained.join("\n"));
}

/// The profile that docker hands to its runtime is the one that dunnage gives to runtimes, and it is kept
/// with the run.
#[test]
fn the_profile_of_a_run_is_the_one_in_dockers_bundle() {
    let test = "the_profile_of_a_run_is_the_one_in_dockers_bundle";
    let Some(container) = Container::start(test, Need::Docker, "runc") else {
        return;
    };
    let config = container.config();
    let dunnage = Dunnage::new();
    let ran = dunnage.run("run start -s floor --rounds 1 --set prestate=idle --full -o DIR");
    assert_eq!(ran.code, 0, "{ran}");
    let environment = std::fs::read(dunnage.directory().join("env.json")).unwrap();
    let environment: Value = serde_json::from_slice(&environment).unwrap();
    let filter = &environment["filter"];
    let profile: Value = serde_json::from_str(filter["profile"].as_str().unwrap()).unwrap();
    assert_eq!(profile, config["linux"]["seccomp"], "{}", filter["origin"]);
    let origin = filter["origin"].as_str().unwrap();
    assert!(
        origin.starts_with("docker ") && ran.stdout.contains(&origin[.."docker 2".len()]),
        "{origin}\n{ran}"
    );
}

fn profile(container: &Container) -> Profile {
    Profile::from_oci(&container.config()["linux"]["seccomp"]).unwrap()
}

/// Prints lengths and the number of instructions for some calls; asserts only that dunnage's is not longer.
fn report(runtime: &str, ours: &[sock_filter], real: &[Vec<sock_filter>]) {
    let length: usize = real.iter().map(Vec::len).sum();
    eprintln!("instructions: ours {}, docker with {runtime} {length}", ours.len());
    assert!(ours.len() <= length);
    let clone = libc::SIGCHLD as u64;
    for (name, first) in [
        ("read", 0),
        ("write", 0),
        ("close", 0),
        ("getppid", 0),
        ("futex", 0),
        ("clock_gettime", 0),
        ("openat", 0),
        ("epoll_wait", 0),
        ("clone", clone),
        ("clone3", 0),
        ("personality", 0),
        ("mount", 0),
    ] {
        let number = Abi::X86_64.number(name).unwrap();
        let arguments = [first, 0, 0, 0, 0, 0];
        let call = Call { arch: ARCH_X86_64, number, instruction_pointer: 0, arguments };
        let ours = run(ours, &call).unwrap();
        let real = run_all(real, &call).unwrap();
        eprintln!(
            "  {name:>13}: executed ours {:3}, {runtime} {:3} ({:?})",
            ours.executed, real.executed, ours.action
        );
    }
}

/// A small random number generator (splitmix64), seeded so that a failure is reproducible.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Arguments with few or many bits, in one or both words.
    fn arguments(&mut self) -> [u64; 6] {
        std::array::from_fn(|_| {
            let shape = self.next();
            let value = self.next();
            let sparse = value & self.next() & self.next() & self.next();
            match shape % 4 {
                0 => value,
                1 => sparse,
                2 => sparse & 0xffff_ffff,
                _ => value & 0xffff_ffff,
            }
        })
    }
}

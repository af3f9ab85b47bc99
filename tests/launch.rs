//! The probe of a launch never starts libc: all code between the executable's entry and libc's own is
//! followed, branch by branch, and the probe's reports are checked there and after libc's start.
//!
//! Deliberately absent: how long any of it takes (`cargo xtask bench true bare`).

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Output};

use dunnage::probe::message::{Message, parse};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, Register};

use crate::support::{Need, lacks};

const DUNNAGE: &str = env!("CARGO_BIN_EXE_dunnage");

/// A 64-bit executable, parsed as far as needed to find code in it.
struct Elf(Vec<u8>);

impl Elf {
    fn number<const N: usize>(&self, at: usize) -> usize {
        let mut bytes = [0; 8];
        bytes[..N].copy_from_slice(&self.0[at..at + N]);
        u64::from_le_bytes(bytes) as usize
    }

    fn entry(&self) -> usize {
        self.number::<8>(24)
    }

    /// Type, file offset, address and size of each segment.
    fn segments(&self) -> Vec<[usize; 4]> {
        let one = |index| self.number::<8>(32) + index * self.number::<2>(54);
        let read = |at| {
            [
                self.number::<4>(at),
                self.number::<8>(at + 8),
                self.number::<8>(at + 16),
                self.number::<8>(at + 32),
            ]
        };
        (0..self.number::<2>(56)).map(|index| read(one(index))).collect()
    }

    /// What is loaded at this address, up to the segment's end.
    fn code(&self, address: usize) -> &[u8] {
        let holds =
            |[kind, _, start, size]: &[usize; 4]| *kind == 1 && (*start..start + size).contains(&address);
        let [_, at, start, size] = self.segments().into_iter().find(holds).expect("the address is loaded");
        &self.0[at + address - start..at + size]
    }

    /// Where the stub at the entry hands over to libc: its jump at the end. Symbols would tell, but the executable has none.
    fn handover(&self) -> usize {
        let mut decoder =
            Decoder::with_ip(64, self.code(self.entry()), self.entry() as u64, DecoderOptions::NONE);
        let stub: Vec<Instruction> = decoder.iter().take(9).collect();
        use Mnemonic::{Call, Jmp, Lea, Mov, Syscall};
        let expected = [Mov, Mov, Lea, Syscall, Mov, Mov, Call, Mov, Jmp];
        assert_eq!(stub.iter().map(Instruction::mnemonic).collect::<Vec<_>>(), expected, "the stub");
        stub[8].near_branch_target() as usize
    }

    /// The instructions that can be reached from one address without passing another one, and those of them
    /// that must not be there.
    fn reachable(&self, from: usize, border: usize) -> (BTreeSet<u64>, Vec<String>) {
        let (mut seen, mut faults) = (BTreeSet::new(), Vec::new());
        let mut waiting = vec![from as u64];
        while let Some(at) = waiting.pop() {
            if at == border as u64 && from != border || seen.len() > 20_000 || !seen.insert(at) {
                continue;
            }
            let one = Decoder::with_ip(64, self.code(at as usize), at, DecoderOptions::NONE).decode();
            let after = one.next_ip();
            match one.flow_control() {
                FlowControl::Next => waiting.push(after),
                FlowControl::Call if one.mnemonic() == Mnemonic::Syscall => waiting.push(after),
                FlowControl::UnconditionalBranch => waiting.push(one.near_branch_target()),
                FlowControl::ConditionalBranch | FlowControl::Call => {
                    waiting.extend([after, one.near_branch_target()]);
                }
                // After instructions that do not return.
                FlowControl::Interrupt if one.mnemonic() == Mnemonic::Int3 => {}
                FlowControl::Return | FlowControl::Exception => {}
                _ => faults.push(format!("{at:x}: `{:?}` has an unknown target", one.mnemonic())),
            }
            faults.extend(forbidden(&one).map(|what| format!("{at:x}: {what}")));
        }
        (seen, faults)
    }
}

fn forbidden(one: &Instruction) -> Option<&'static str> {
    match one.mnemonic() {
        Mnemonic::Cpuid => Some("`cpuid`, which hypervisors trap"),
        _ if one.is_invalid() => Some("no instruction"),
        _ if one.memory_segment() == Register::FS => Some("a thread's own memory, which libc makes"),
        _ => None,
    }
}

#[test]
fn nothing_between_the_entry_and_libcs_own_calls_out() {
    let elf = Elf(std::fs::read(DUNNAGE).unwrap());
    let kinds: Vec<usize> = elf.segments().iter().map(|[kind, ..]| *kind).collect();
    let (dynamic, interpreter) = (2, 3);
    assert!(!kinds.contains(&dynamic) && !kinds.contains(&interpreter), "{kinds:?}");
    let (entry, libc) = (elf.entry(), elf.handover());
    let (seen, faults) = elf.reachable(entry, libc);
    assert!(faults.is_empty(), "{faults:#?}");
    assert!((300..8000).contains(&seen.len()), "{} instructions", seen.len());
    // The same check of libc's start finds what it must not find above.
    let (_, faults) = elf.reachable(libc, libc);
    assert!(!faults.is_empty());
}

fn probe(words: &[&str]) -> Output {
    Command::new(DUNNAGE).arg("probe").args(words).output().unwrap()
}

fn said(words: &[&str]) -> Message {
    let output = probe(words);
    assert!(output.status.success() && output.stderr.is_empty(), "{words:?} {output:?}");
    parse(&output.stdout).unwrap()
}

#[test]
fn a_launch_says_the_same_with_and_without_libc() {
    let without = said(&["start"]);
    let with = said(&["main"]);
    assert_eq!(without.main, None);
    assert!(with.main.is_some_and(|main| with.entry <= main && main <= with.ready), "{with:?}");
    assert!(without.entry <= without.ready);
    assert_eq!(without.inside, with.inside);
    assert!(without.inside.root().is_some() && without.inside.namespaces.len() >= 7, "{without:?}");
    assert_eq!(said(&[]).inside, without.inside);
    let limits = said(&["start", "limits"]);
    assert_eq!(limits.main, None);
    assert_eq!(limits.inside, said(&["main", "limits"]).inside);
    let more = said(&["start", "limits,mounts"]);
    assert_eq!(
        (more.main, more.inside.root(), more.inside.limits()),
        (None, limits.inside.root(), limits.inside.limits())
    );
}

#[test]
fn what_is_inherited_is_read_without_libc_and_no_value_of_a_variable_is_said() {
    let run = |words: &[&str], token: &str| {
        let run =
            Command::new(DUNNAGE).args([&["probe"], words].concat()).env("PLANTED_TOKEN", token).output();
        let output = run.expect("dunnage");
        assert!(output.status.success(), "{output:?}");
        assert!(!String::from_utf8_lossy(&output.stdout).contains(token), "{output:?}");
        parse(&output.stdout).unwrap()
    };
    let one = run(&["start", "limits,inherited"], "hunter2");
    assert_eq!(one.main, None);
    let own = one.inside.inherited.expect("what it inherits");
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let fact =
        |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
    assert_eq!(format!("{:04o}", own.umask), fact("Umask:"));
    let facts = own.facts(&mut Default::default());
    assert_eq!(facts["cpus allowed"], fact("Cpus_allowed_list:"));
    assert_eq!(own.limit(7).unwrap().hard, dunnage::sys::limits::open_files());
    assert_eq!(own.limits.len(), 16);
    let hash = |token: &str| run(&["start", "inherited"], token).inside.inherited.unwrap().variables["PLANTED_TOKEN"];
    assert_eq!(hash("hunter2"), own.variables["PLANTED_TOKEN"]);
    assert_ne!(hash("hunter3"), own.variables["PLANTED_TOKEN"]);
    // After libc's start everything but the environment is read.
    let with = run(&["main", "inherited"], "hunter2").inside.inherited.unwrap();
    assert_eq!((with.limits, with.cpus, with.variables.len()), (own.limits, own.cpus, 0));
    // More variables than fit one by one.
    let many = (0..500).map(|at| (format!("PLANTED_{at}"), "x".repeat(20)));
    let run =
        Command::new(DUNNAGE).args(["probe", "start", "inherited"]).envs(many).output().expect("dunnage");
    let inside = parse(&run.stdout).unwrap().inside.inherited.unwrap();
    assert!(inside.variables.len() == 100 && inside.others.unwrap().0 >= 400, "{inside:?}");
}

#[test]
fn to_enter_looks_at_the_first_process() {
    let entered = said(&["enter"]);
    assert!(entered.main.is_none() && entered.inside.blocked_by_init.is_some(), "{entered:?}");
}

#[test]
fn a_launch_enters_a_root_without_libc_too() {
    if lacks("a_launch_enters_a_root_without_libc_too", Need::Root) {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let (proc, kept) = (root.path().join("proc"), root.path().join("kept"));
    for directory in [&proc, &kept] {
        fs::create_dir(directory).unwrap();
    }
    let [root, proc, kept] = [root.path(), &proc, &kept].map(|path| path.to_str().unwrap());
    // What is below is more mounts; this directory itself becomes read-only.
    let inside = ["inside", root, "/kept", "2", "/proc", proc, "rw", root, kept, "ro"];
    let words = |task: &[&'static str]| [&inside[..], task].concat();
    let without = said(&words(&["start"]));
    let with = said(&words(&["main"]));
    assert!(without.main.is_none() && with.main.is_some(), "{without:?} {with:?}");
    assert_eq!(without.inside.root(), with.inside.root());
    assert_ne!(without.inside.namespaces["mnt"], said(&["start"]).inside.namespaces["mnt"]);
    for task in [&[][..], &["start", "limits"], &["enter"]] {
        assert_eq!(said(&words(task)).main, None, "{task:?}");
    }
    // Tasks other than a launch run after libc's start.
    assert_eq!(probe(&words(&["none"])).status.code(), Some(0));
    assert_eq!(probe(&words(&["nonsense"])).status.code(), Some(2));
    for task in ["start", "main"] {
        let refused = |words: &[&str]| {
            let output = probe(words);
            assert!(output.status.code() == Some(4) && output.stdout.is_empty(), "{words:?} {output:?}");
            String::from_utf8(output.stderr).unwrap()
        };
        let cannot = |what: &str| format!("dunnage probe: cannot {what}`: error 2\n");
        let of_mount = refused(&["inside", root, "/", "1", "/nosuch", proc, "rw", task]);
        assert_eq!(of_mount, cannot("bind `/nosuch"));
        assert_eq!(
            refused(&["inside", root, "/nosuch", "0", task]),
            cannot("change to the directory `/nosuch")
        );
    }
    // Incomplete arguments are refused, and nothing is read beyond them.
    assert_eq!(probe(&["inside", root, "/", "9", "/proc"]).status.code(), Some(4));
}

#[test]
fn what_is_not_a_launch_goes_on_to_libc() {
    assert_eq!(probe(&["none"]).status.code(), Some(0));
    for unknown in [&["nonsense"][..], &["starts"], &["star"]] {
        assert_eq!(probe(unknown).status.code(), Some(2), "{unknown:?}");
    }
    let help = Command::new(DUNNAGE).arg("--help").output().unwrap();
    assert!(help.status.success() && String::from_utf8_lossy(&help.stdout).contains("Usage"));
}

#[test]
fn a_closed_output_is_an_error() {
    let script = format!("exec >&-; exec '{DUNNAGE}' probe start");
    assert_eq!(Command::new("/bin/sh").args(["-c", &script]).status().unwrap().code(), Some(3));
}

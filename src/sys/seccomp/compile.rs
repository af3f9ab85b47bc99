//! Compiles a profile into a seccomp filter in classic BPF. A pure function.
//!
//! The structure of the program, one architecture after the other, x86_64 first:
//!
//! ```text
//!         load arch
//!         is it x86_64? else ─► next
//!         load number                   ← 3 instructions to here for a native call
//!         bisection: number ≥ K?        ← one instruction a step
//!           …                              leaf: return, or load arguments and compare them
//!   next: is it i386? else return the foreign answer
//!         load number
//!         bisection …
//! ```
//!
//! - All numbers of an architecture form one line from 0 to 2³²-1, cut into ranges with the same answer. x32
//!   needs no test of its own: its numbers are the ranges from 2³⁰.
//! - The bisection halves *weight*, not length: a range weighs as much as the number of allowed calls in it.
//!   The long run of old calls from `read` is reached after two or three steps. x32, and calls that are
//!   denied or do not exist, weigh almost nothing and are deep in the tree.
//! - Code is generated from the end to the start. Every jump target exists before the jump, so distances are
//!   known at once; a `return` within reach is shared; a conditional jump that cannot reach its target in 8
//!   bits gets a long jump next to it.
//! - Before a leaf that reads arguments the program loads only arch and number, and only compares them with
//!   constants. So Linux (since 5.11) can determine at load time which calls are allowed with any arguments,
//!   and answers those from a bitmap without running a filter.

use super::profile::{Abi, Condition, Profile, Rule, Test, X32_BIT};
use libc::sock_filter;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const ALWAYS: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Offsets in `struct seccomp_data`; x86 is little-endian, the lower word comes first.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const fn lower_word(argument: u8) -> u32 {
    16 + 8 * argument as u32
}
const fn upper_word(argument: u8) -> u32 {
    lower_word(argument) + 4
}

/// Compiles a profile. This takes milliseconds: do it before the measured interval.
pub fn compile(profile: &Profile) -> Vec<sock_filter> {
    let mut arches: Vec<u32> = Vec::new();
    for arch in profile.abis.iter().map(|abi| abi.arch()) {
        if !arches.contains(&arch) {
            arches.push(arch);
        }
    }
    let mut code = Backwards::default();
    let mut other = None;
    for &arch in arches.iter().rev() {
        let section = emit_section(&mut code, profile, arch);
        let other_arch = other.unwrap_or_else(|| code.answer(profile.foreign));
        other = Some(code.branch(EQUAL, arch, section, other_arch));
    }
    if other.is_none() {
        code.answer(profile.foreign);
    }
    code.push(LOAD, ARCH);
    code.finish()
}

/// The answer for a range of numbers, which ends where the next one starts.
struct Range<'a> {
    start: u32,
    answer: Answer<'a>,
    weight: usize,
}

#[derive(Clone, PartialEq)]
enum Answer<'a> {
    Always(u32),
    /// The first rule that applies, else the default.
    Depends {
        rules: Vec<&'a Rule>,
        wide: bool,
    },
}

/// Splits the numbers of an architecture into ranges. The first starts at 0.
fn ranges(profile: &Profile, arch: u32) -> Vec<Range<'_>> {
    let mut ranges: Vec<Range> = Vec::new();
    let mut add = |start: u32, answer, weight: usize| match ranges.last_mut() {
        Some(last) if last.answer == answer => last.weight += weight,
        _ => ranges.push(Range { start, answer, weight: weight + 1 }),
    };
    // The x32 bit divides the line into four quarters, even ones without it and odd ones with it.
    for quarter in (0..4).map(|quarter| quarter * X32_BIT) {
        let abi = Abi::of(arch, quarter);
        let numbered = abi.and_then(|abi| Some((abi, profile.numbered(abi)?)));
        let Some((abi, numbered)) = numbered else {
            add(quarter, Answer::Always(profile.foreign), 0);
            continue;
        };
        let mut start = quarter;
        if quarter == abi.base() {
            for rules in numbered {
                let answer = answer(profile, abi, rules);
                let weighs = abi != Abi::X32 && answer != Answer::Always(profile.default);
                add(start, answer, usize::from(weighs));
                start += 1;
            }
        }
        add(start, Answer::Always(profile.newer), 0);
    }
    ranges
}

fn answer<'a>(profile: &Profile, abi: Abi, rules: Vec<&'a Rule>) -> Answer<'a> {
    match rules.first() {
        None => Answer::Always(profile.default),
        Some(rule) if rule.conditions.is_empty() => Answer::Always(rule.action),
        Some(_) => Answer::Depends { rules, wide: abi.wide() },
    }
}

fn emit_section(code: &mut Backwards, profile: &Profile, arch: u32) -> Label {
    let start = emit_bisection(code, profile, &ranges(profile, arch));
    code.follow(start);
    code.push(LOAD, NUMBER)
}

fn emit_bisection(code: &mut Backwards, profile: &Profile, ranges: &[Range]) -> Label {
    if let [only] = ranges {
        return emit_answer(code, profile, &only.answer);
    }
    let (below, from) = ranges.split_at(halfway(ranges));
    let pivot = from[0].start;
    // The side with less code comes last, next to the branch, so that the other one is within reach.
    if below.len() <= from.len() {
        let from = emit_bisection(code, profile, from);
        let below = emit_bisection(code, profile, below);
        code.branch(AT_LEAST, pivot, from, below)
    } else {
        let below = emit_bisection(code, profile, below);
        let from = emit_bisection(code, profile, from);
        code.branch(AT_LEAST, pivot, from, below)
    }
}

/// The cut that divides the weight most evenly: 1 to `ranges.len() - 1`.
fn halfway(ranges: &[Range]) -> usize {
    let whole: usize = ranges.iter().map(|range| range.weight).sum();
    let mut below = 0;
    let cuts = ranges[..ranges.len() - 1].iter().enumerate().map(|(index, range)| {
        below += range.weight;
        (below.abs_diff(whole - below), index + 1)
    });
    cuts.min().expect("at least two ranges").1
}

fn emit_answer(code: &mut Backwards, profile: &Profile, answer: &Answer) -> Label {
    match answer {
        Answer::Always(action) => code.answer(*action),
        Answer::Depends { rules, wide } => {
            let mut otherwise = code.answer(profile.default);
            for rule in rules.iter().rev() {
                let mut holds = code.answer(rule.action);
                for condition in rule.conditions.iter().rev() {
                    holds = emit_condition(code, condition, *wide, holds, otherwise);
                }
                otherwise = holds;
            }
            otherwise
        }
    }
}

fn emit_condition(
    code: &mut Backwards,
    condition: &Condition,
    wide: bool,
    holds: Label,
    fails: Label,
) -> Label {
    let (mask, value) = match condition.test {
        Test::Equal(value) => (u64::MAX, value),
        Test::MaskedEqual { mask, value } => (mask, value),
        Test::AtLeast(value) => return emit_at_least(code, condition.argument, value, wide, [holds, fails]),
        Test::Below(value) => return emit_at_least(code, condition.argument, value, wide, [fails, holds]),
        Test::Other(value) => {
            let equal = Condition { test: Test::Equal(value), ..*condition };
            return emit_condition(code, &equal, wide, fails, holds);
        }
    };
    let (lower, upper) = (lower_word(condition.argument), upper_word(condition.argument));
    let mut entry = emit_word(code, lower, mask as u32, value as u32, holds, fails);
    if wide {
        let (mask, value) = ((mask >> 32) as u32, (value >> 32) as u32);
        entry = emit_word(code, upper, mask, value, entry, fails);
    }
    entry
}

/// Compares an argument with a value; the upper word decides unless it is equal.
fn emit_at_least(code: &mut Backwards, argument: u8, value: u64, wide: bool, [yes, no]: [Label; 2]) -> Label {
    code.branch(AT_LEAST, value as u32, yes, no);
    let lower = code.push(LOAD, lower_word(argument));
    if !wide {
        return lower;
    }
    let upper = (value >> 32) as u32;
    let same = code.branch(EQUAL, upper, lower, no);
    if let Some(above) = upper.checked_add(1) {
        code.branch(AT_LEAST, above, yes, same);
    }
    code.push(LOAD, upper_word(argument))
}

/// Tests a word under a mask. A test that always holds needs no instruction.
fn emit_word(code: &mut Backwards, offset: u32, mask: u32, value: u32, holds: Label, fails: Label) -> Label {
    match (mask, value) {
        (0, 0) => return holds,
        (u32::MAX, _) => {
            code.branch(EQUAL, value, holds, fails);
        }
        (_, 0) => {
            code.branch(ANY_BIT, mask, fails, holds);
        }
        _ => {
            code.branch(EQUAL, value, holds, fails);
            code.push(AND, mask);
        }
    }
    code.push(LOAD, offset)
}

/// A place in a program that is generated from its end: the number of instructions from it to the end.
#[derive(Clone, Copy)]
struct Label(usize);

/// A program, last instruction first.
#[derive(Default)]
struct Backwards {
    reversed: Vec<sock_filter>,
    returns: Vec<(u32, Label)>,
}

impl Backwards {
    /// The reach of a conditional jump, minus the long jumps that may come in between.
    const REACH: usize = u8::MAX as usize - 2;

    fn here(&self) -> Label {
        Label(self.reversed.len())
    }

    fn distance(&self, to: Label) -> usize {
        self.reversed.len() - to.0
    }

    fn push(&mut self, code: u16, k: u32) -> Label {
        self.reversed.push(sock_filter { code, jt: 0, jf: 0, k });
        self.here()
    }

    /// A place that returns this answer: an existing one within reach, or a new one.
    fn answer(&mut self, action: u32) -> Label {
        let known = self.returns.iter().rev().find(|(known, _)| *known == action);
        if let Some(&(_, label)) = known
            && self.distance(label) < Self::REACH
        {
            return label;
        }
        let label = self.push(RETURN, action);
        self.returns.push((action, label));
        label
    }

    /// Makes the next instruction continue at the label.
    fn follow(&mut self, to: Label) {
        let distance = self.distance(to);
        if distance > 0 {
            self.push(ALWAYS, distance as u32);
        }
    }

    /// A place within reach of the next conditional jump that leads to the label.
    fn within_reach(&mut self, to: Label) -> Label {
        let distance = self.distance(to);
        if distance <= Self::REACH { to } else { self.push(ALWAYS, distance as u32) }
    }

    fn branch(&mut self, code: u16, k: u32, yes: Label, no: Label) -> Label {
        let yes = self.within_reach(yes);
        let no = self.within_reach(no);
        let reach = |to| u8::try_from(self.distance(to)).expect("within reach");
        let (jt, jf) = (reach(yes), reach(no));
        self.reversed.push(sock_filter { code, jt, jf, k });
        self.here()
    }

    fn finish(self) -> Vec<sock_filter> {
        let mut program = self.reversed;
        program.reverse();
        program
    }
}

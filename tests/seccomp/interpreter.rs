//! The interpreter on programs with known meaning.

use crate::seccomp::interpret::{Call, Fault, check, run, run_all};
use libc::sock_filter;

const fn op(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}

const fn jump(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

const LOAD: u16 = 0x20;
const RETURN: u16 = 0x06;
const RETURN_ACCUMULATOR: u16 = 0x16;
const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const EPERM: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;

fn call() -> Call {
    Call {
        number: 7,
        arch: 0xc000_003e,
        instruction_pointer: 0x1122_3344_5566_7788,
        arguments: [0x0102_0304_0506_0708, 1, 2, 3, 4, u64::MAX - 1],
    }
}

/// The accumulator after some instructions, returned as the action's number.
fn accumulator(instructions: &[sock_filter]) -> Result<u32, Fault> {
    let mut program = instructions.to_vec();
    program.push(op(RETURN_ACCUMULATOR, 0));
    run(&program, &call()).map(|verdict| verdict.action)
}

#[test]
fn loads_every_word_of_the_data() {
    let words = [
        7,
        0xc000_003e,
        0x5566_7788,
        0x1122_3344,
        0x0506_0708,
        0x0102_0304,
        1,
        0,
        2,
        0,
        3,
        0,
        4,
        0,
        0xffff_fffe,
        0xffff_ffff,
    ];
    for (index, word) in words.into_iter().enumerate() {
        // The upper half is the action, the lower half its data: they are compared separately, so that data
        // which an action does not use is checked too.
        let offset = 4 * index as u32;
        let program = [op(LOAD, offset), jump(0x15, word, 0, 1), op(RETURN, ALLOW), op(RETURN, EPERM)];
        assert_eq!(run(&program, &call()).unwrap().action, libc::SECCOMP_RET_ALLOW, "offset {offset}");
    }
}

#[test]
fn computes() {
    // Every result stays within the numbers of an unused action, so that it is preserved.
    let cases: &[(&[sock_filter], u32)] = &[
        (&[op(0x00, 0x0100_0005), op(0x04, 3)], 0x0100_0008),
        (&[op(0x00, 0x0100_0005), op(0x14, 6)], 0x00ff_ffff),
        (&[op(0x00, 0x0100_0005), op(0x24, 3)], 0x0300_000f),
        (&[op(0x00, 0x0200_0006), op(0x34, 2)], 0x0100_0003),
        (&[op(0x00, 0x0110_0005), op(0x54, 0x0100_0004)], 0x0100_0004),
        (&[op(0x00, 0x0100_0005), op(0x44, 0x0200_0002)], 0x0300_0007),
        (&[op(0x00, 0x0100_0005), op(0xa4, 0x0300_0001)], 0x0200_0004),
        (&[op(0x00, 0x0100_0005), op(0x64, 1)], 0x0200_000a),
        (&[op(0x00, 0x0200_000a), op(0x74, 1)], 0x0100_0005),
        (&[op(0x00, 0xff00_0000), op(0x84, 0)], 0x0100_0000),
        (&[op(0x01, 0x0100_0009), op(0x87, 0)], 0x0100_0009),
        (&[op(0x00, 0x0100_0009), op(0x07, 0), op(0x00, 0), op(0x0c, 0)], 0x0100_0009),
        (&[op(0x00, 0x0100_0009), op(0x02, 3), op(0x00, 0), op(0x60, 3)], 0x0100_0009),
        (&[op(0x01, 0x0100_0009), op(0x03, 15), op(0x61, 15), op(0x87, 0)], 0x0100_0009),
        (&[op(0x80, 0), op(0x64, 24)], 0x4000_0000),
        (&[op(0x81, 0), op(0x87, 0), op(0x64, 24)], 0x4000_0000),
    ];
    for (index, (instructions, expected)) in cases.iter().enumerate() {
        assert_eq!(accumulator(instructions), Ok(*expected), "case {index}");
    }
}

#[test]
fn branches_and_counts() {
    let program = [
        op(LOAD, 0),
        jump(0x25, 6, 0, 3), // number > 6
        jump(0x35, 8, 2, 0), // not ≥ 8
        op(0x05, 0),
        jump(0x45, 1, 1, 0), // number & 1
        op(RETURN, EPERM),
        op(RETURN, ALLOW),
    ];
    let verdict = run(&program, &call()).unwrap();
    assert_eq!((verdict.action, verdict.executed), (libc::SECCOMP_RET_ALLOW, 6));
    let verdict = run(&program, &Call { number: 6, ..call() }).unwrap();
    assert_eq!((verdict.action, verdict.executed), (libc::SECCOMP_RET_ERRNO | 1, 3));
    assert_eq!(check(&program), Ok(()));
}

#[test]
fn refuses_what_the_kernel_refuses() {
    let end = op(RETURN, ALLOW);
    let both: &[(&[sock_filter], Fault)] = &[
        (&[op(0x28, 0), end], Fault::Opcode { at: 0, code: 0x28 }),
        (&[op(0x94, 1), end], Fault::Opcode { at: 0, code: 0x94 }),
        (&[op(LOAD, 64), end], Fault::Load { at: 0, offset: 64 }),
        (&[op(LOAD, 2), end], Fault::Load { at: 0, offset: 2 }),
        (&[op(LOAD, u32::MAX - 3), end], Fault::Load { at: 0, offset: u32::MAX - 3 }),
        (&[op(0x05, 1), end], Fault::Jump { at: 0, to: 2 }),
        (&[jump(0x15, 0, 1, 1), end], Fault::Jump { at: 0, to: 2 }),
        (&[op(0x05, u32::MAX), end], Fault::Jump { at: 0, to: 1 << 32 }),
        (&[op(0x34, 0), end], Fault::Division { at: 0 }),
        (&[op(0x02, 16), end], Fault::Cell { at: 0, cell: 16 }),
    ];
    for (program, fault) in both {
        assert_eq!(check(program), Err(*fault));
        assert_eq!(run(program, &call()), Err(*fault));
    }
    assert_eq!(check(&[op(0x64, 32), end]), Err(Fault::Shift { at: 0, by: 32 }));
    assert_eq!(check(&[]), Err(Fault::Length(0)));
    assert_eq!(check(&vec![end; 4097]), Err(Fault::Length(4097)));
    assert_eq!(check(&[end, op(LOAD, 0)]), Err(Fault::NoReturn));
    // These are detected only while running.
    assert_eq!(accumulator(&[op(0x3c, 0)]), Err(Fault::Division { at: 0 }));
    assert_eq!(accumulator(&[op(0x60, 1)]), Err(Fault::Cell { at: 0, cell: 1 }));
    assert_eq!(run(&[op(LOAD, 0)], &call()), Err(Fault::Jump { at: 0, to: 1 }));
}

#[test]
fn the_strictest_of_stacked_filters_wins() {
    let answer = |word: u32| vec![op(RETURN, word)];
    let all = |words: &[u32]| {
        let programs: Vec<_> = words.iter().map(|&word| answer(word)).collect();
        run_all(&programs, &call()).unwrap()
    };
    assert_eq!(all(&[]).action, libc::SECCOMP_RET_ALLOW);
    assert_eq!(all(&[ALLOW, EPERM]).action, libc::SECCOMP_RET_ERRNO | 1);
    assert_eq!(all(&[EPERM, ALLOW]).action, libc::SECCOMP_RET_ERRNO | 1);
    // Among equal actions the newest filter's data is used.
    assert_eq!(all(&[EPERM, EPERM + 1]).action, libc::SECCOMP_RET_ERRNO | 2);
    assert_eq!(all(&[libc::SECCOMP_RET_KILL_THREAD, EPERM]).action, libc::SECCOMP_RET_KILL_THREAD);
    let kill = libc::SECCOMP_RET_KILL_PROCESS;
    assert_eq!(all(&[kill, libc::SECCOMP_RET_KILL_THREAD]).action, libc::SECCOMP_RET_KILL_PROCESS);
    assert_eq!(all(&[ALLOW, EPERM, ALLOW]).executed, 3);
}

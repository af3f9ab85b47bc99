//! Interprets classic BPF as the kernel does for seccomp, and checks programs as the kernel does before it
//! accepts them.
//!
//! Pure: nothing is loaded anywhere. It is used to compare filters call by call and to count the instructions
//! that a call costs. Deliberately absent: packet loads and the other instructions that the kernel refuses in
//! a seccomp filter.
//!
//! Source of the rules: `bpf_check_classic` (`net/core/filter.c`) and `seccomp_check_filter`
//! (`kernel/seccomp.c`). Words of the data have the layout of little-endian machines.

use libc::sock_filter;

/// The longest program that the kernel accepts, in instructions.
pub const LONGEST: usize = 4096;

const CELLS: usize = 16;
const DATA_BYTES: u32 = 64;

/// The data that a filter gets for a system call: `struct seccomp_data`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The number of the call.
    pub number: u32,
    /// The architecture, `AUDIT_ARCH_*`.
    pub arch: u32,
    /// Address of the calling instruction.
    pub instruction_pointer: u64,
    /// The arguments.
    pub arguments: [u64; 6],
}

impl Call {
    fn word(&self, offset: u32) -> Option<u32> {
        let half = |value: u64, upper: bool| {
            if upper { (value >> 32) as u32 } else { value as u32 }
        };
        let upper = offset & 4 != 0;
        match offset {
            0 => Some(self.number),
            4 => Some(self.arch),
            8 | 12 => Some(half(self.instruction_pointer, upper)),
            16..DATA_BYTES if offset.is_multiple_of(4) => {
                Some(half(self.arguments[(offset as usize - 16) / 8], upper))
            }
            _ => None,
        }
    }
}

/// The answer of a program and its cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The answer.
    pub action: u32,
    /// Instructions executed, including the final return.
    pub executed: u32,
}

/// Why a program is refused or cannot continue. `at` counts instructions from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Empty, or longer than [`LONGEST`].
    #[error("a program has 1 to {LONGEST} instructions, not {0}")]
    Length(usize),
    /// Not an instruction that seccomp accepts.
    #[error("instruction {at}: opcode {code:#06x} is not for seccomp filters")]
    Opcode {
        /// Its index.
        at: usize,
        /// Its opcode.
        code: u16,
    },
    /// A jump, or the end, leads out of the program.
    #[error("instruction {at} leads to {to}, behind the end of the program")]
    Jump {
        /// Its index.
        at: usize,
        /// Its target.
        to: usize,
    },
    /// A load from outside the data, or not from the start of a word.
    #[error("instruction {at} loads the word at {offset}, which the data do not have")]
    Load {
        /// Its index.
        at: usize,
        /// The offset in bytes.
        offset: u32,
    },
    /// A scratch cell that does not exist, or was read before it was written.
    #[error("instruction {at} uses scratch cell {cell}, which does not exist or holds nothing")]
    Cell {
        /// Its index.
        at: usize,
        /// The cell.
        cell: u32,
    },
    /// A division by zero. The kernel refuses a constant zero; for a zero in the index register
    /// the program returns 0, which kills the thread.
    #[error("instruction {at} divides by zero")]
    Division {
        /// Its index.
        at: usize,
    },
    /// A constant shift by more than 31.
    #[error("instruction {at} shifts by {by}")]
    Shift {
        /// Its index.
        at: usize,
        /// The number of bits.
        by: u32,
    },
    /// The last instruction is not a return.
    #[error("the last instruction is not a return")]
    NoReturn,
}

/// An instruction, decoded.
#[derive(Clone, Copy)]
enum Step {
    LoadData(u32),
    LoadLength,
    LoadConstant(u32),
    LoadCell(u32),
    IndexLength,
    IndexConstant(u32),
    IndexCell(u32),
    Store(u32),
    StoreIndex(u32),
    Arithmetic(Operator, Operand),
    Negate,
    Jump(u32),
    Branch(Comparison, Operand),
    ReturnConstant(u32),
    ReturnAccumulator,
    ToIndex,
    FromIndex,
}

#[derive(Clone, Copy)]
enum Operand {
    Constant(u32),
    Index,
}

#[derive(Clone, Copy, PartialEq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    And,
    Or,
    Xor,
    Left,
    Right,
}

#[derive(Clone, Copy)]
enum Comparison {
    Equal,
    Greater,
    GreaterOrEqual,
    AnyBit,
}

fn decode(at: usize, instruction: &sock_filter) -> Result<Step, Fault> {
    let sock_filter { code, k, .. } = *instruction;
    let operand = if code & 0x08 == 0 { Operand::Constant(k) } else { Operand::Index };
    let arithmetic = |operator| Step::Arithmetic(operator, operand);
    let branch = |comparison| Step::Branch(comparison, operand);
    Ok(match code {
        0x20 => Step::LoadData(k),
        0x80 => Step::LoadLength,
        0x00 => Step::LoadConstant(k),
        0x60 => Step::LoadCell(k),
        0x81 => Step::IndexLength,
        0x01 => Step::IndexConstant(k),
        0x61 => Step::IndexCell(k),
        0x02 => Step::Store(k),
        0x03 => Step::StoreIndex(k),
        0x04 | 0x0c => arithmetic(Operator::Add),
        0x14 | 0x1c => arithmetic(Operator::Subtract),
        0x24 | 0x2c => arithmetic(Operator::Multiply),
        0x34 | 0x3c => arithmetic(Operator::Divide),
        0x44 | 0x4c => arithmetic(Operator::Or),
        0x54 | 0x5c => arithmetic(Operator::And),
        0x64 | 0x6c => arithmetic(Operator::Left),
        0x74 | 0x7c => arithmetic(Operator::Right),
        0xa4 | 0xac => arithmetic(Operator::Xor),
        0x84 => Step::Negate,
        0x05 => Step::Jump(k),
        0x15 | 0x1d => branch(Comparison::Equal),
        0x25 | 0x2d => branch(Comparison::Greater),
        0x35 | 0x3d => branch(Comparison::GreaterOrEqual),
        0x45 | 0x4d => branch(Comparison::AnyBit),
        0x06 => Step::ReturnConstant(k),
        0x16 => Step::ReturnAccumulator,
        0x07 => Step::ToIndex,
        0x87 => Step::FromIndex,
        _ => return Err(Fault::Opcode { at, code }),
    })
}

/// Checks a program without running it, as the kernel does before it accepts one: every instruction is known,
/// every jump stays inside, every load is possible, and the last instruction returns, so that every path ends
/// (jumps only lead forward).
pub fn check(program: &[sock_filter]) -> Result<(), Fault> {
    if program.is_empty() || program.len() > LONGEST {
        return Err(Fault::Length(program.len()));
    }
    for (at, instruction) in program.iter().enumerate() {
        let inside = |distance: u32| {
            let to = at + 1 + distance as usize;
            if to < program.len() { Ok(()) } else { Err(Fault::Jump { at, to }) }
        };
        match decode(at, instruction)? {
            Step::LoadData(offset) => {
                Call::default().word(offset).ok_or(Fault::Load { at, offset })?;
            }
            Step::LoadCell(cell) | Step::IndexCell(cell) | Step::Store(cell) | Step::StoreIndex(cell)
                if cell as usize >= CELLS =>
            {
                return Err(Fault::Cell { at, cell });
            }
            Step::Arithmetic(Operator::Divide, Operand::Constant(0)) => {
                return Err(Fault::Division { at });
            }
            Step::Arithmetic(Operator::Left | Operator::Right, Operand::Constant(by)) if by > 31 => {
                return Err(Fault::Shift { at, by });
            }
            Step::Jump(distance) => inside(distance)?,
            Step::Branch(..) => {
                inside(instruction.jt.into())?;
                inside(instruction.jf.into())?;
            }
            _ => {}
        }
    }
    let last = program.len() - 1;
    match decode(last, &program[last])? {
        Step::ReturnConstant(_) | Step::ReturnAccumulator => Ok(()),
        _ => Err(Fault::NoReturn),
    }
}

/// Runs a program on one call.
pub fn run(program: &[sock_filter], call: &Call) -> Result<Verdict, Fault> {
    let (mut accumulator, mut index) = (0u32, 0u32);
    let mut cells = [None; CELLS];
    let (mut at, mut executed) = (0usize, 0u32);
    loop {
        let Some(instruction) = program.get(at) else {
            return Err(Fault::Jump { at: at.saturating_sub(1), to: at });
        };
        executed += 1;
        let mut next = at + 1;
        let value = |operand| match operand {
            Operand::Constant(value) => value,
            Operand::Index => index,
        };
        let recall = |cells: &[Option<u32>; CELLS], cell: u32| {
            cells.get(cell as usize).copied().flatten().ok_or(Fault::Cell { at, cell })
        };
        match decode(at, instruction)? {
            Step::LoadData(offset) => {
                accumulator = call.word(offset).ok_or(Fault::Load { at, offset })?;
            }
            Step::LoadLength => accumulator = DATA_BYTES,
            Step::LoadConstant(value) => accumulator = value,
            Step::LoadCell(cell) => accumulator = recall(&cells, cell)?,
            Step::IndexLength => index = DATA_BYTES,
            Step::IndexConstant(value) => index = value,
            Step::IndexCell(cell) => index = recall(&cells, cell)?,
            Step::Store(cell) => {
                *cells.get_mut(cell as usize).ok_or(Fault::Cell { at, cell })? = Some(accumulator);
            }
            Step::StoreIndex(cell) => {
                *cells.get_mut(cell as usize).ok_or(Fault::Cell { at, cell })? = Some(index);
            }
            Step::Arithmetic(operator, operand) => {
                accumulator = apply(operator, accumulator, value(operand)).ok_or(Fault::Division { at })?;
            }
            Step::Negate => accumulator = accumulator.wrapping_neg(),
            Step::Jump(distance) => next += distance as usize,
            Step::Branch(comparison, operand) => {
                let yes = compare(comparison, accumulator, value(operand));
                next += usize::from(if yes { instruction.jt } else { instruction.jf });
            }
            Step::ReturnConstant(word) => {
                return Ok(Verdict { action: action(word), executed });
            }
            Step::ReturnAccumulator => {
                return Ok(Verdict { action: action(accumulator), executed });
            }
            Step::ToIndex => index = accumulator,
            Step::FromIndex => accumulator = index,
        }
        if next >= program.len() {
            return Err(Fault::Jump { at, to: next });
        }
        at = next;
    }
}

/// Runs stacked filters, oldest first as the kernel numbers them, and chooses as the kernel does: the newest
/// runs first, and the strictest answer wins. Without a filter a call is allowed.
pub fn run_all(programs: &[Vec<sock_filter>], call: &Call) -> Result<Verdict, Fault> {
    let mut chosen = Verdict { action: libc::SECCOMP_RET_ALLOW, executed: 0 };
    for program in programs.iter().rev() {
        let verdict = run(program, call)?;
        if rank(verdict.action) < rank(chosen.action) {
            chosen.action = verdict.action;
        }
        chosen.executed += verdict.executed;
    }
    Ok(chosen)
}

const ACTION: u32 = 0xffff_0000;

/// The meaning of a word returned by a filter: only some actions have data.
fn action(word: u32) -> u32 {
    match word & ACTION {
        libc::SECCOMP_RET_ALLOW
        | libc::SECCOMP_RET_LOG
        | libc::SECCOMP_RET_USER_NOTIF
        | libc::SECCOMP_RET_KILL_THREAD
        | libc::SECCOMP_RET_KILL_PROCESS => word & ACTION,
        _ => word,
    }
}

/// The rank by which the kernel chooses among stacked filters: the lowest wins. It compares the action as a
/// signed number, which makes killing the process the strictest of all.
fn rank(action: u32) -> i32 {
    (action & ACTION).cast_signed()
}

fn apply(operator: Operator, left: u32, right: u32) -> Option<u32> {
    Some(match operator {
        Operator::Add => left.wrapping_add(right),
        Operator::Subtract => left.wrapping_sub(right),
        Operator::Multiply => left.wrapping_mul(right),
        Operator::Divide => return left.checked_div(right),
        Operator::And => left & right,
        Operator::Or => left | right,
        Operator::Xor => left ^ right,
        Operator::Left => left.wrapping_shl(right),
        Operator::Right => left.wrapping_shr(right),
    })
}

fn compare(comparison: Comparison, left: u32, right: u32) -> bool {
    match comparison {
        Comparison::Equal => left == right,
        Comparison::Greater => left > right,
        Comparison::GreaterOrEqual => left >= right,
        Comparison::AnyBit => left & right != 0,
    }
}

//! The only unsafe code and raw system calls of the program. Each file wraps one group of calls
//! into something that cannot be misused; nothing here knows of subjects or experiments.

pub mod audit;
pub mod clock;
pub mod filesystem;
pub mod journal;
pub mod limits;
pub mod process;
pub mod raw;
pub mod signals;
pub mod spawn;

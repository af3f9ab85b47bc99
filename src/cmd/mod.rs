//! One short file per verb.

/// Runs the command line and returns the exit code.
pub fn main() -> i32 {
    println!("{:?}", std::env::args().collect::<Vec<_>>());
    0
}

//! A subject that can be taken apart: launches with only some of its pieces, and single pieces. Deliberately
//! absent: which pieces to ask for, which experiments decide.

use super::{Launch, RunContext};
use crate::outcome::Abort;
pub use crate::sys::cgroup::Way;
pub use crate::sys::container::{ALL, Making, Mounts, PRIMITIVES, Piece, Pieces, Primitive, Timed};

/// A container made of pieces, each of which can be left out.
pub trait Apart {
    /// The pieces of an ordinary launch.
    fn whole(&self) -> Pieces;
    /// The pieces that no container here can do without: none for root, a user namespace for others.
    fn least(&self) -> Pieces;
    /// Prepares what launches made this way share. To be called before the first one, and before anything
    /// that must directly precede a launch.
    fn get_ready(&mut self, making: Making) -> Result<(), Abort>;
    /// Starts the probe once with exactly these pieces, made this way, in the same way as an ordinary launch
    /// with all of them, and checks that each piece is there, as far as the probe can see.
    fn launch_with(&mut self, making: Making, run: &RunContext) -> Result<Launch, Abort>;
    /// Does a single piece and undoes it.
    fn time(&mut self, primitive: Primitive, run: &RunContext) -> Result<Timed, Abort>;
}

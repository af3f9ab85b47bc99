//! A subject that can be taken apart: launches with some of its pieces only, and pieces done by
//! themselves. Deliberately absent: which pieces are worth asking for; experiments decide that.

use super::{Launch, RunContext};
use crate::outcome::Abort;
pub use crate::sys::cgroup::Way;
pub use crate::sys::container::{ALL, Making, Mounts, PRIMITIVES, Piece, Pieces, Primitive, Timed};

/// A container that is made of pieces, each of which can be left out.
pub trait Apart {
    /// The pieces of an ordinary launch.
    fn whole(&self) -> Pieces;
    /// What no container here can do without: nothing for root, a user namespace for others.
    fn least(&self) -> Pieces;
    /// Gets ready whatever launches that are made so share. To be called before the first one, and
    /// before whatever is to stand right before a launch.
    fn get_ready(&mut self, making: Making) -> Result<(), Abort>;
    /// Starts the probe once with these pieces and no others, made so, as an ordinary launch does it with all of
    /// them, and checks that each of them is there, as far as the probe can see from inside.
    fn launch_with(&mut self, making: Making, run: &RunContext) -> Result<Launch, Abort>;
    /// Does a piece by itself and undoes it.
    fn time(&mut self, primitive: Primitive, run: &RunContext) -> Result<Timed, Abort>;
}

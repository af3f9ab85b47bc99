//! Engines that misbehave: scripts in the place of the real ones.

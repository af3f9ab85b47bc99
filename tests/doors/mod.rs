//! Attacks of another user of the machine on a dunnage that runs as root, and what must still work next to them.

mod bounds;
mod planted;
mod resume;
mod secrets;
mod stack;

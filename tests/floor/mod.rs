//! The floor for real: containers made with system calls, from inside and from outside.

mod inside;
mod place;
mod primitive;
mod remains;

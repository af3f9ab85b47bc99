//! The floor for real: containers made by system calls, seen from inside and from outside.

mod inside;
mod place;
mod primitive;
mod remains;

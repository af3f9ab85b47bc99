//! What another user of the machine could try, and that it leads nowhere; and what looks like it and must go on working.

mod bounds;
mod channel;
mod inherited;
mod pause;
mod planted;
mod pretenders;
mod published;
mod resume;
mod secrets;
mod stack;
mod state;
mod sweep;
mod working;

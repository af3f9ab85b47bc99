//! What another user of the machine could try, and that it leads nowhere; and what looks like it and must go on working.

mod channel;
mod inherited;
mod published;
mod state;
mod working;

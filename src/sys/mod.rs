//! The only unsafe code and raw system calls of the program. Each file wraps one group of calls in a safe
//! interface; nothing here depends on subjects or experiments.

pub mod accounting;
mod acl;
pub mod affinity;
pub mod audit;
pub mod beneath;
mod birth;
pub mod block_device;
pub mod bridge;
pub mod cache;
pub mod calls;
pub mod cgroup;
pub mod child;
pub mod clock;
pub mod command;
pub mod conntrack;
pub mod container;
pub mod descriptors;
pub mod directory;
pub mod extents;
pub mod filesystem;
#[cfg(test)]
mod granted;
pub mod identity;
pub mod interface;
pub mod limits;
pub mod link;
pub(crate) mod loop_device;
pub(crate) mod network;
pub(crate) mod own_address;
pub mod own_time;
pub mod page_cache;
pub mod pages;
pub mod peer;
pub mod pidfd;
pub mod place;
pub mod process;
pub mod raw;
pub mod remains;
pub mod ring;
pub(crate) mod route;
pub mod seccomp;
pub mod signals;
pub mod socket;
pub mod spawn;
pub mod steps;
pub mod terminal;

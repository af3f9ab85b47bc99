//! Tests on real kernels, runtimes and engines. `cargo xtask test` runs each in a process of its own, because some look at what
//! their whole process leaves behind, and decides which may run at the same time (`xtask/src/suite/rules.rs`).

#[path = "support/documented.rs"]
mod documented;
#[path = "support/dunnage.rs"]
mod dunnage;
#[path = "support/left.rs"]
mod left;
#[path = "scripted/planted.rs"]
mod planted;
#[path = "support/proxy.rs"]
mod proxy;
#[path = "support/running.rs"]
mod running;
#[path = "support/server.rs"]
mod server;
#[path = "support/mod.rs"]
mod support;

mod accounting;
mod advise;
mod api;
mod containerd;
mod disk;
mod doctor;
mod doors;
mod drivers;
mod fat;
mod faults;
mod files;
mod floor;
mod guest;
mod handles;
mod image;
mod inherited;
mod kill;
mod launch;
mod layers;
mod life;
mod limits;
mod load;
mod machine;
mod owners;
mod primitives;
mod remains;
mod resources;
mod rootless;
mod seccomp;
mod stack;

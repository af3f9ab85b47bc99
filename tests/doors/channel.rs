//! The channel to the probe in a container, to which another user connects first.

use std::fs;
use std::io::Write;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::dunnage::Dunnage;
use crate::handles::{run_in, subject};
use crate::rootless::user::{Ids, User};
use ::dunnage::orders::work::Spin;
use ::dunnage::subject::{Container, ContainerRequest, Resident};
use ::dunnage::units::Nanos;

/// What the probe would say, with a user that no probe has.
const FORGED: &[u8] = b"dunnage-probe 2\nentry 10\nuid 54321\ngid 0\nseccomp 0\nno_new_privs 0\ncapabilities 7\nready 30\nend\n";

/// A process of the user that has connected and sent these bytes, and sends zeros after that if it is `cat /dev/zero`.
fn stranger(user: &User, socket: &Path, bytes: &'static [u8], program: &[&str]) -> Child {
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).uid(user.number).gid(user.number).stdin(Stdio::null()).stdout(Stdio::null());
    let socket = socket.to_owned();
    let connect = move || {
        let mut stream = UnixStream::connect(&socket)?;
        stream.write_all(bytes)?;
        // SAFETY: both are open descriptors of this child.
        unsafe { libc::dup2(stream.as_raw_fd(), 1) };
        let _ = stream.into_raw_fd();
        Ok(())
    };
    // SAFETY: the closure makes system calls, and allocates in a child of a thread that holds no lock of the allocator.
    unsafe { command.pre_exec(connect) };
    command.spawn().unwrap()
}

#[test]
fn the_probe_is_heard_and_those_who_came_before_it_are_not() {
    let test = "the_probe_is_heard_and_those_who_came_before_it_are_not";
    let Some(user) = User::ordinary(test, 'c', Ids::Own) else { return };
    for text in ["bare", "floor", "crun"] {
        let dunnage = Dunnage::new();
        let run = run_in(&dunnage.state());
        let subject = subject(text, &run);
        let request = ContainerRequest { program: Resident::Serves, ..ContainerRequest::default() };
        let mut container = Container::create(subject.as_ref(), &request, &run).unwrap();
        let socket = run.workspace().join(container.name()).join("channel/socket");
        // Even if the state directory were open to all.
        for directory in socket.ancestors().skip(1).take(6) {
            fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let forger = stranger(&user, &socket, FORGED, &["sleep", "60"]);
        let flood = stranger(&user, &socket, b"dunnage-probe 2\n", &["cat", "/dev/zero"]);
        let many = (0..20).map(|_| stranger(&user, &socket, FORGED, &["sleep", "60"]));
        let mut strangers: Vec<Child> = [forger, flood].into_iter().chain(many).collect();
        container.start().unwrap();
        let said = container.ready().map(|message| message.inside.uid);
        let answered = said.is_ok().then(|| container.ask(Spin { millis: 0 }, Nanos(0)).is_ok());
        for stranger in &mut strangers {
            stranger.kill().unwrap();
            stranger.wait().unwrap();
        }
        assert_eq!((said.map_err(|why| format!("{why:?}")), answered), (Ok(0), Some(true)), "{text}");
    }
}

//! Addresses of this host alone, on its loopback interface: containers reach the host there, others do not.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::link::Socket;
use super::steps::{Step, run_all};

/// Adds an address with this label, which begins with `lo:` and has at most 15 bytes.
///
/// # Errors
/// The kernel's: `EEXIST` if the host has it, `EPERM` without the right.
pub fn add(address: Ipv4Addr, label: &str) -> io::Result<()> {
    carry_out(|socket| socket.add_own_address(address, label))
}

/// Removes the address with this label.
///
/// # Errors
/// The kernel's: `EADDRNOTAVAIL` if there is none.
pub fn remove(address: Ipv4Addr, label: &str) -> io::Result<()> {
    carry_out(|socket| socket.remove_own_address(address, label))
}

fn carry_out(steps: impl FnOnce(Socket) -> [Step; 2]) -> io::Result<()> {
    let netlink = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let done = run_all(&steps(Socket(netlink.as_raw_fd()))).1;
    done.map(drop).map_err(|error| io::Error::from_raw_os_error(error.errno))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::network;
    use crate::sys::route::{self, Way};

    #[test]
    fn an_address_is_the_hosts_own_until_it_is_removed_by_its_label() {
        let address = Ipv4Addr::new(198, 19, 0, 1);
        let done = network::in_a_new_one(|| {
            add(address, "lo:mine")?;
            assert_eq!(route::to(address.into())?, Way::Own);
            let code = |done: io::Result<()>| done.unwrap_err().raw_os_error();
            assert_eq!(code(add(address, "lo:other")), Some(libc::EEXIST));
            assert_eq!(code(remove(address, "lo:other")), Some(libc::EADDRNOTAVAIL));
            remove(address, "lo:mine")?;
            assert_eq!(code(remove(address, "lo:mine")), Some(libc::EADDRNOTAVAIL));
            Ok::<_, io::Error>(())
        });
        match done {
            Ok(done) => done.unwrap(),
            // Only root may make a network namespace.
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EPERM)),
        }
    }
}

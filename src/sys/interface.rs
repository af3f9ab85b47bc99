//! The MTU and the offloads of network interfaces in the network namespace of the calling thread, by ioctl, which
//! any user may ask.
//!
//! Deliberately absent: changing them.

use std::io;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// Offloads by their names for `ethtool --offload`, and the commands of linux/ethtool.h that read them.
const OFFLOADS: [(&str, u32); 5] = [("rx", 0x14), ("tx", 0x16), ("tso", 0x1e), ("gso", 0x23), ("gro", 0x2b)];

/// `struct ifreq`.
#[repr(C)]
struct Request {
    name: [u8; libc::IFNAMSIZ],
    /// A number in the first four bytes, or a pointer.
    value: u64,
    rest: [u64; 2],
}

/// The facts `mtu` and `offloads`: the interface's name and its value, `none`, or why it cannot be read.
pub fn facts(interface: &str) -> [(&'static str, String); 2] {
    let told = |value: io::Result<String>| {
        let value = value.unwrap_or_else(|error| format!("unknown: {error}"));
        format!("{interface} {value}")
    };
    let mtu = ask(interface, libc::SIOCGIFMTU, None).map(|mtu| mtu.to_string());
    [("mtu", told(mtu)), ("offloads", told(offloads(interface)))]
}

/// Whether there is an interface of this name.
pub fn exists(interface: &str) -> bool {
    ask(interface, libc::SIOCGIFMTU, None).is_ok()
}

fn offloads(interface: &str) -> io::Result<String> {
    let mut on = Vec::new();
    for (name, command) in OFFLOADS {
        let mut data = [command, 0];
        ask(interface, libc::SIOCETHTOOL, Some(&mut data))?;
        on.extend((data[1] != 0).then_some(name));
    }
    Ok(if on.is_empty() { "none".to_owned() } else { on.join(" ") })
}

/// Asks for a number of the interface, or to fill a `struct ethtool_value`.
fn ask(interface: &str, call: libc::c_ulong, data: Option<&mut [u32; 2]>) -> io::Result<i32> {
    let value = data.map_or(0, |data| data.as_mut_ptr() as u64);
    let mut request = Request { name: [0; libc::IFNAMSIZ], value, rest: [0; 2] };
    let name = interface.as_bytes();
    let room = request.name.get_mut(..name.len()).ok_or(io::ErrorKind::InvalidInput)?;
    room.copy_from_slice(name);
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: the request has the size of a `struct ifreq`, and a pointer in it is to eight writable bytes.
    match unsafe { libc::ioctl(socket.as_raw_fd(), call, &raw mut request) } {
        0.. => Ok(request.value as i32),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_has_an_mtu_and_offloads() {
        let [(mtu, size), (offloads, on)] = facts("lo");
        assert_eq!([mtu, offloads], ["mtu", "offloads"]);
        let known = std::fs::read_to_string("/sys/class/net/lo/mtu").unwrap();
        assert_eq!(size, format!("lo {}", known.trim()));
        assert!(on.starts_with("lo ") && !on.contains("unknown"), "{on}");
        let [(_, none), (_, neither)] = facts("none-such");
        assert!(none.starts_with("none-such unknown: ") && neither.contains("No such device"), "{neither}");
        assert!(facts("a-name-that-is-too-long")[0].1.contains("unknown: "));
    }
}

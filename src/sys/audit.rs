//! Whether the kernel's audit is on, asked over netlink: audit(7) has no file that says it.

use std::time::Duration;

use rustix::io::Result;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

const AUDIT_GET: u16 = 1000;
const HEADER: usize = size_of::<libc::nlmsghdr>();

/// Whether system calls are audited; `None` where the kernel does not answer: without audit, without
/// CAP_AUDIT_CONTROL, or outside the initial namespaces.
pub fn is_on() -> Option<bool> {
    ask().ok().as_deref().and_then(enabled)
}

/// Sends the question and returns the first answer other than an acknowledgement.
fn ask() -> Result<Vec<u8>> {
    let kind = (AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC);
    let socket = socket_with(kind.0, kind.1, kind.2, Some(netlink::AUDIT))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(Duration::from_millis(100)))?;
    let mut question = Vec::with_capacity(HEADER);
    question.extend((HEADER as u32).to_ne_bytes());
    question.extend(AUDIT_GET.to_ne_bytes());
    question.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    question.extend([0; 8]);
    // Without a peer, a netlink socket sends to the kernel.
    send(&socket, &question, SendFlags::empty())?;
    let mut answer = vec![0u8; 4096];
    let (length, _) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
    answer.truncate(length);
    Ok(answer)
}

/// `struct audit_status` follows the header; its second word is `enabled` (0 off, 1 on, 2 locked).
fn enabled(answer: &[u8]) -> Option<bool> {
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let word = answer.get(HEADER + 4..HEADER + 8)?.try_into().ok()?;
    (kind == AUDIT_GET).then(|| u32::from_ne_bytes(word) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(kind: u16, words: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    }

    #[test]
    fn the_second_word_of_the_status_tells() {
        assert_eq!(enabled(&answer(AUDIT_GET, &[0, 1, 1, 42])), Some(true));
        assert_eq!(enabled(&answer(AUDIT_GET, &[0, 0, 1, 42])), Some(false));
        assert_eq!(enabled(&answer(2, &[0, 1])), None, "an error is not an answer");
        assert_eq!(enabled(&answer(AUDIT_GET, &[0])), None);
        assert_eq!(enabled(&[]), None);
    }
}

//! Is the kernel's audit on? Asked over netlink (audit(7) has no file that tells).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const AUDIT_GET: u16 = 1000;
const HEADER: usize = size_of::<libc::nlmsghdr>();

/// Whether system calls are audited; `None` where the kernel does not tell us: without audit,
/// without CAP_AUDIT_CONTROL, or outside the initial namespaces.
pub fn is_on() -> Option<bool> {
    ask().ok().as_deref().and_then(enabled)
}

/// Sends the question and returns the first answer that is no acknowledgement.
fn ask() -> io::Result<Vec<u8>> {
    // SAFETY: no pointers are passed.
    let fd =
        unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_AUDIT) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor and nobody else knows it.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let patience = libc::timeval { tv_sec: 0, tv_usec: 100_000 };
    // SAFETY: the option's value is a timeval of the size given, readable for the whole call.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVTIMEO,
            (&raw const patience).cast(),
            size_of::<libc::timeval>() as libc::socklen_t,
        );
    }
    let mut question = Vec::with_capacity(HEADER);
    question.extend((HEADER as u32).to_ne_bytes());
    question.extend(AUDIT_GET.to_ne_bytes());
    question.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    question.extend([0; 8]);
    // SAFETY: the message is readable for its whole length; a netlink socket without a peer sends to
    // the kernel.
    let sent = unsafe { libc::send(socket.as_raw_fd(), question.as_ptr().cast(), question.len(), 0) };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut answer = vec![0u8; 4096];
    // SAFETY: the buffer is writable for its whole length.
    let length = unsafe { libc::recv(socket.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0) };
    if length < 0 {
        return Err(io::Error::last_os_error());
    }
    answer.truncate(length as usize);
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
        assert_eq!(enabled(&answer(2, &[0, 1])), None, "an error is no answer");
        assert_eq!(enabled(&answer(AUDIT_GET, &[0])), None);
        assert_eq!(enabled(&[]), None);
    }
}

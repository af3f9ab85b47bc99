//! Which lines of `mountinfo` the probe passes on: the root's, for its filesystem and options, and
//! those of the files that engines lay over `/etc`, whose source names the container. All others
//! stay inside, since every byte of the message passes through the engine that is measured.

/// Whether a line of `/proc/self/mountinfo` is about the root or an engine's own file.
pub fn tells_the_root(line: &[u8], _kept: usize) -> bool {
    let mount_point = line.split(|&byte| byte == b' ').nth(4);
    matches!(mount_point, Some(b"/" | b"/etc/hostname" | b"/etc/hosts" | b"/etc/resolv.conf"))
}

#[cfg(test)]
mod tests {
    use super::tells_the_root;

    #[test]
    fn only_the_root_and_the_files_of_engines_are_passed_on() {
        let line = |point: &str| format!("36 35 98:0 /x {point} rw,noatime - ext4 /dev/root rw");
        assert!(tells_the_root(line("/").as_bytes(), 0));
        assert!(tells_the_root(line("/etc/hostname").as_bytes(), 0));
        assert!(!tells_the_root(line("/proc").as_bytes(), 0));
        assert!(!tells_the_root(b"", 0));
    }
}

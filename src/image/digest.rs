//! SHA-256 content digests in OCI's notation, also of a stream.
//!
//! Deliberately absent: other algorithms. All engines address images by SHA-256.

use std::fmt;
use std::io::{self, Read, Write};

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest. Printed as in OCI: `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    /// The digest of the rest of `reader`, read in small pieces.
    pub fn of_reader(reader: &mut impl Read) -> io::Result<Digest> {
        let mut summed = Summed::new(reader);
        io::copy(&mut summed, &mut io::sink())?;
        Ok(summed.end().0)
    }

    /// The 64 hexadecimal digits without the algorithm.
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The first 12 hexadecimal digits, as engines list images.
    pub fn short(&self) -> String {
        self.hex()[..12].to_owned()
    }
}

/// Counts and hashes the bytes that pass through it.
pub struct Summed<T> {
    inner: T,
    hasher: Sha256,
    bytes: u64,
}

impl<T> Summed<T> {
    /// Starts with no bytes.
    pub fn new(inner: T) -> Summed<T> {
        Summed { inner, hasher: Sha256::new(), bytes: 0 }
    }

    /// The digest and the number of the bytes that have passed.
    pub fn end(self) -> (Digest, u64) {
        (Digest(self.hasher.finalize().into()), self.bytes)
    }

    fn add(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
    }
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(bytes)?;
        self.add(&bytes[..count]);
        Ok(count)
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.add(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_oci_does() {
        let digest = Digest::of(b"abc");
        assert_eq!(
            digest.to_string(),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(digest.short(), "ba7816bf8f01");
    }

    #[test]
    fn pieces_and_the_whole_agree() {
        let bytes = vec![7; 100_000];
        let mut pieces = bytes[..33].chain(&bytes[33..]);
        assert_eq!(Digest::of_reader(&mut pieces).unwrap(), Digest::of(&bytes));
    }
}

//! Hashing: SHA-256 (FIPS 180-4) with ordinary instructions, over a buffer that stays in the L1 cache.

/// Bytes of the buffer, half of the smallest L1 cache still in production.
const BUFFER: usize = 16 * 1024;
/// The number of blocks of 64 bytes that a pass hashes as one message: the buffer, twice.
pub const STEPS: u64 = 2 * (BUFFER as u64 / 64);
/// The first eight bytes of the digest of a pass.
pub const RIGHT: u64 = 0xe867_6538_03f1_60ce;

/// The hashed bytes, without a pattern that a CPU could learn.
static BYTES: [u8; BUFFER] = filled();

const fn filled() -> [u8; BUFFER] {
    let mut bytes = [0; BUFFER];
    let (mut state, mut at) = (1u32, 0);
    while at < BUFFER {
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12345);
        bytes[at] = (state >> 16) as u8;
        at += 1;
    }
    bytes
}

/// Hashes this many blocks as one message, repeating the buffer.
#[inline(never)]
pub fn run(blocks: u64) -> u64 {
    let mut hash = FIRST;
    let bytes = core::hint::black_box(&BYTES);
    for block in bytes.chunks_exact(64).cycle().take(blocks as usize) {
        compress(&mut hash, block);
    }
    let mut last = [0u8; 64];
    last[0] = 0x80;
    last[56..].copy_from_slice(&(8 * 64 * blocks).to_be_bytes());
    compress(&mut hash, &last);
    u64::from(hash[0]) << 32 | u64::from(hash[1])
}

const FIRST: [u32; 8] =
    [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];

#[rustfmt::skip]
const ROUNDS: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

fn compress(hash: &mut [u32; 8], block: &[u8]) {
    let mut words = [0u32; 64];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    for at in 16..64 {
        let (early, late) = (words[at - 15], words[at - 2]);
        let low = early.rotate_right(7) ^ early.rotate_right(18) ^ (early >> 3);
        let high = late.rotate_right(17) ^ late.rotate_right(19) ^ (late >> 10);
        words[at] = words[at - 16].wrapping_add(low).wrapping_add(words[at - 7]).wrapping_add(high);
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *hash;
    for at in 0..64 {
        let high = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let one = h.wrapping_add(high).wrapping_add(choice).wrapping_add(ROUNDS[at]).wrapping_add(words[at]);
        let low = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let two = low.wrapping_add((a & b) ^ (a & c) ^ (b & c));
        (h, g, f, e) = (g, f, e, d.wrapping_add(one));
        (d, c, b, a) = (c, b, a, one.wrapping_add(two));
    }
    for (total, part) in hash.iter_mut().zip([a, b, c, d, e, f, g, h]) {
        *total = total.wrapping_add(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    /// Compared with another implementation of the standard.
    #[test]
    fn it_is_sha_256() {
        for blocks in [0, 1, STEPS * 3 / 100, STEPS] {
            let message: Vec<u8> = BYTES.iter().copied().cycle().take(64 * blocks as usize).collect();
            let digest = Sha256::digest(message);
            let first: [u8; 8] = digest[..8].try_into().unwrap();
            assert_eq!(run(blocks), u64::from_be_bytes(first), "{blocks}");
        }
        assert_eq!(run(STEPS), RIGHT);
    }
}

//! A keyed hash of a few integers, for maps that are looked into once a task. Keyed by the executor's seed: peers that
//! do not know it cannot choose names that collide.

use std::hash::{BuildHasher, Hasher};

#[derive(Clone, Copy, Debug)]
pub(super) struct Keyed(pub(super) u64);

#[derive(Debug)]
pub(super) struct Mixer(u64);

impl BuildHasher for Keyed {
    type Hasher = Mixer;

    fn build_hasher(&self) -> Mixer {
        Mixer(self.0 ^ 0x9E37_79B9_7F4A_7C15)
    }
}

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    /// Folds the 128-bit product, so that every bit of the input reaches every bit of the state.
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * u128::from(0xA076_1D64_78BD_642F_u64 | 1);
        self.0 = (product as u64) ^ ((product >> 64) as u64) ^ word.rotate_left(32);
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u16(&mut self, word: u16) {
        self.write_u64(u64::from(word));
    }

    fn finish(&self) -> u64 {
        let product = u128::from(self.0) * u128::from(0xE703_7ED1_A0B4_28DB_u64);
        (product as u64) ^ ((product >> 64) as u64)
    }
}

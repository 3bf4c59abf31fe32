//! The hello that both ends of a connection send.

use midflight_endpoint::Lane;

const MAGIC: [u8; 4] = *b"MFLK";
const VERSION: u8 = 1;
pub(super) const HELLO_BYTES: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) cluster: u64,
    pub(super) set: u16,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) lane: Lane,
    /// Chosen by the end that connects, repeated by the other.
    pub(super) generation: u64,
}

impl Hello {
    pub(super) fn encode(&self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&[VERSION, u8::from(self.lane == Lane::Bulk)]);
        bytes[6..8].copy_from_slice(&self.set.to_be_bytes());
        for (field, number) in bytes[8..].chunks_exact_mut(8).zip([self.cluster, self.from, self.to, self.generation]) {
            field.copy_from_slice(&number.to_be_bytes());
        }
        bytes
    }

    pub(super) fn decode(bytes: &[u8; HELLO_BYTES]) -> Option<Self> {
        let [m0, m1, m2, m3, version, lane, s0, s1, numbers @ ..] = bytes;
        let lane = [Lane::Prompt, Lane::Bulk].get(usize::from(*lane)).copied()?;
        if [*m0, *m1, *m2, *m3] != MAGIC || *version != VERSION {
            return None;
        }
        let (numbers, _) = numbers.as_chunks::<8>();
        let [cluster, from, to, generation] = [0, 1, 2, 3].map(|field| u64::from_be_bytes(numbers[field]));
        Some(Self { cluster, set: u16::from_be_bytes([*s0, *s1]), from, to, lane, generation })
    }

    /// The hello of the other end of the same connection.
    pub(super) fn answer(self) -> Self {
        Self { from: self.to, to: self.from, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_is_read_as_written_and_nothing_else_is_one() {
        for lane in [Lane::Prompt, Lane::Bulk] {
            let hello = Hello { cluster: 1 << 60, set: 513, from: 3, to: 4, lane, generation: 5 };
            assert_eq!(Hello::decode(&hello.encode()), Some(hello));
            for byte in 0..6 {
                let mut bytes = hello.encode();
                bytes[byte] ^= 0x80;
                assert_eq!(Hello::decode(&bytes), None, "byte {byte}");
            }
        }
    }
}

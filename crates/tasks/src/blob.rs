//! What a blob's id is good for. It is a secret of its maker and of those who were given its reference, and is never sent to an address:
//! whose that is now, nobody can be sure, because a process ends and another one gets its port. What is sent are names and proofs, each
//! of which only they can make, and from which nobody else learns the id. All are SipHash-2-4 under the id.

use midflight_wire::BlobRef;
use siphasher::sip::SipHasher24;
use std::hash::Hasher;

/// A blob's id.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BlobSecret(u64);

/// What a hash is made for. It is half of the key, so no hash can be taken for one of another kind.
enum Use {
    RequestName = 1,
    AnswerProof = 2,
    ArgumentName = 3,
    ArgumentProof = 4,
}

impl BlobSecret {
    /// The secret of who knows this id.
    #[must_use]
    pub fn new(id: u64) -> Self {
        Self(id)
    }

    /// The id, for a reference.
    #[must_use]
    pub fn id(self) -> u64 {
        self.0
    }

    /// By this name a blob or a pack is asked for, over TCP.
    #[must_use]
    pub fn request_name(self) -> u64 {
        self.hasher(Use::RequestName).finish()
    }

    /// Proves that the answer to a request with this random number comes from who serves the blob at this port, and has so many bytes.
    #[must_use]
    pub fn answer_proof(self, nonce: u64, port: u16, length: u32) -> u64 {
        let mut hasher = self.hasher(Use::AnswerProof);
        hasher.write(&nonce.to_be_bytes());
        hasher.write(&port.to_be_bytes());
        hasher.write(&length.to_be_bytes());
        hasher.finish()
    }

    fn hasher(self, what_for: Use) -> SipHasher24 {
        SipHasher24::new_with_keys(self.0, what_for as u64)
    }
}

/// By this name the argument at `blob` is sent along, in an ARGUMENT.
#[must_use]
pub fn argument_name(blob: &BlobRef) -> u64 {
    argument_hasher(blob, Use::ArgumentName).finish()
}

/// Proves that the argument at `blob` has these bytes.
#[must_use]
pub fn argument_proof(blob: &BlobRef, argument: &[u8]) -> u64 {
    let mut hasher = argument_hasher(blob, Use::ArgumentProof);
    hasher.write(argument);
    hasher.finish()
}

/// Of where it is. Both numbers have a fixed size, so what follows cannot be taken for them.
fn argument_hasher(blob: &BlobRef, what_for: Use) -> SipHasher24 {
    let mut hasher = BlobSecret(blob.id.get()).hasher(what_for);
    hasher.write(&blob.at.get().to_be_bytes());
    hasher.write(&blob.length.get().to_be_bytes());
    hasher
}

impl From<&BlobRef> for BlobSecret {
    fn from(blob: &BlobRef) -> Self {
        Self(blob.id.get())
    }
}

/// It must not get into a log.
impl std::fmt::Debug for BlobSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BlobSecret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn blob(id: u64, length: u32, at: u16) -> BlobRef {
        BlobRef { id: id.into(), length: length.into(), port: 80.into(), at: at.into() }
    }

    /// The hash is that of the format's page, of the bytes one after the other.
    #[test]
    fn t13_hashes_are_siphash_2_4_under_the_id_and_what_they_are_for() {
        let hash = |what_for: u64, bytes: &[u8]| SipHasher24::new_with_keys(7, what_for).hash(bytes);
        let secret = BlobSecret::new(7);
        assert_eq!(secret.request_name(), hash(1, b""));
        assert_eq!(secret.answer_proof(0x0102, 0x0304, 0x0506), hash(2, b"\0\0\0\0\0\0\x01\x02\x03\x04\0\0\x05\x06"));
        assert_eq!(argument_name(&blob(7, 20, 3)), hash(3, b"\0\x03\0\0\0\x14"));
        assert_eq!(argument_proof(&blob(7, 20, 3), b"argument"), hash(4, b"\0\x03\0\0\0\x14argument"));
    }

    #[test]
    fn t13_each_part_changes_a_hash() {
        let blobs = [blob(7, 20, 3), blob(8, 20, 3), blob(7, 21, 3), blob(7, 20, 4)];
        let names = blobs.iter().map(argument_name);
        let proofs = blobs.iter().flat_map(|blob| [argument_proof(blob, b"one"), argument_proof(blob, b"two")]);
        let answers = [(1, 2, 3), (4, 2, 3), (1, 4, 3), (1, 2, 4)];
        let of = |id| answers.map(|(nonce, port, length)| BlobSecret::new(id).answer_proof(nonce, port, length));
        let requests = [7, 8].map(|id| BlobSecret::new(id).request_name());
        let all: HashSet<u64> = names.chain(proofs).chain(of(7)).chain(of(8)).chain(requests).collect();
        assert_eq!(all.len(), 4 + 8 + 4 + 4 + 2);
    }

    #[test]
    fn a_secret_does_not_get_into_a_log() {
        assert_eq!(format!("{:?}", BlobSecret::new(123)), "BlobSecret");
    }
}

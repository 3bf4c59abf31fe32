//! What a blob's id is good for. It is a secret of its maker and of those who were given its reference, and is never sent to an address:
//! whose that is now, nobody can be sure, because a process ends and another one gets its port. What is sent are names and proofs, each
//! of which only they can make, and bytes that only they can read. `docs/internals/arguments.md` ("Names and proofs") says for what.

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce};
use midflight_wire::BlobRef;
use siphasher::sip::SipHasher24;
use std::hash::Hasher;

/// Bytes of the tag of an argument that is encrypted.
pub const TAG_BYTES: usize = 16;

/// A blob's id.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BlobSecret(u64);

/// What a hash is made for. It is the second half of the key, so no hash can be taken for one of another kind.
#[derive(Clone, Copy)]
enum Use {
    RequestName = 1,
    RequestProof = 2,
    AnswerProof = 3,
    ArgumentName = 4,
    ArgumentKey = 5,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Of the connection: the server's random number for it.
    pub challenge: u64,
    /// Requests before this one on the connection.
    pub earlier: u64,
    /// The request's own random number.
    pub nonce: u64,
    /// The first byte of a part, and how many there may be; of a whole blob 0.
    pub offset: u32,
    /// See `offset`.
    pub most: u32,
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
        self.hash(Use::RequestName, &[])
    }

    /// Proves that who asks knows the id.
    #[must_use]
    pub fn request_proof(self, asked: &Asked) -> u64 {
        let Asked { challenge, earlier, nonce, offset, most } = asked;
        let [challenge, earlier, nonce] = [challenge, earlier, nonce].map(|part| part.to_be_bytes());
        self.hash(Use::RequestProof, &[&challenge, &earlier, &nonce, &offset.to_be_bytes(), &most.to_be_bytes()])
    }

    /// Proves that the answer to a request with this random number comes from who serves the blob at this port, and has so many bytes.
    #[must_use]
    pub fn answer_proof(self, nonce: u64, port: u16, length: u32) -> u64 {
        self.hash(Use::AnswerProof, &[&nonce.to_be_bytes(), &port.to_be_bytes(), &length.to_be_bytes()])
    }

    /// Of parts with a fixed length, one after the other.
    fn hash(self, what_for: Use, parts: &[&[u8]]) -> u64 {
        let mut hasher = SipHasher24::new_with_keys(self.0, what_for as u64);
        parts.iter().for_each(|part| hasher.write(part));
        hasher.finish()
    }
}

/// By this name the argument at `blob` is sent along, in an ARGUMENT.
#[must_use]
pub fn argument_name(blob: &BlobRef) -> u64 {
    BlobSecret::from(blob).hash(Use::ArgumentName, &[&blob.at.get().to_be_bytes(), &blob.length.get().to_be_bytes()])
}

/// Encrypts the argument at `blob`; returns the tag that proves it. It may have references of other blobs, which are secrets, too.
///
/// # Panics
/// If it is longer than 256 GiB.
#[must_use]
pub fn seal_argument(blob: &BlobRef, argument: &mut [u8]) -> [u8; TAG_BYTES] {
    let (cipher, nonce) = argument_cipher(blob);
    let tag = cipher.encrypt_inout_detached(&nonce, &[], argument.into());
    tag.expect("an argument is shorter than what the cipher can take").into()
}

/// Decrypts it; `false` if it was sealed for another reference, or changed.
#[must_use]
pub fn open_argument(blob: &BlobRef, tag: &[u8; TAG_BYTES], argument: &mut [u8]) -> bool {
    let (cipher, nonce) = argument_cipher(blob);
    cipher.decrypt_inout_detached(&nonce, &[], argument.into(), &(*tag).into()).is_ok()
}

/// A place in a pack has one argument for ever, so no two have the same key and nonce.
fn argument_cipher(blob: &BlobRef) -> (ChaCha20Poly1305, Nonce) {
    let (secret, mut key, mut nonce) = (BlobSecret::from(blob), Key::default(), Nonce::default());
    for (number, part) in (0u8..).zip(key.chunks_exact_mut(8)) {
        part.copy_from_slice(&secret.hash(Use::ArgumentKey, &[&[number]]).to_be_bytes());
    }
    nonce[..2].copy_from_slice(&blob.at.get().to_be_bytes());
    nonce[2..6].copy_from_slice(&blob.length.get().to_be_bytes());
    (ChaCha20Poly1305::new(&key), nonce)
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

    const ASKED: Asked = Asked { challenge: 0x01, earlier: 0x02, nonce: 0x03, offset: 0x04, most: 0x05 };

    fn blob(id: u64, length: u32, at: u16) -> BlobRef {
        BlobRef { id: id.into(), length: length.into(), port: 80.into(), at: at.into() }
    }

    /// The hashes are those of the documented format, of the bytes one after the other.
    #[test]
    fn t13_hashes_are_siphash_2_4_under_the_id_and_what_they_are_for() {
        let hash = |what_for: u64, bytes: &[u8]| SipHasher24::new_with_keys(7, what_for).hash(bytes);
        let secret = BlobSecret::new(7);
        assert_eq!(secret.request_name(), hash(1, b""));
        let asked = b"\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\x04\0\0\0\x05";
        assert_eq!(secret.request_proof(&ASKED), hash(2, asked));
        assert_eq!(secret.answer_proof(0x0102, 0x0304, 0x0506), hash(3, b"\0\0\0\0\0\0\x01\x02\x03\x04\0\0\x05\x06"));
        assert_eq!(argument_name(&blob(7, 20, 3)), hash(4, b"\0\x03\0\0\0\x14"));
    }

    #[test]
    fn t13_each_part_changes_a_hash() {
        let names = [blob(7, 20, 3), blob(8, 20, 3), blob(7, 21, 3), blob(7, 20, 4)].map(|blob| argument_name(&blob));
        let asked = [
            ASKED,
            Asked { challenge: 9, ..ASKED },
            Asked { earlier: 9, ..ASKED },
            Asked { nonce: 9, ..ASKED },
            Asked { offset: 9, ..ASKED },
            Asked { most: 9, ..ASKED },
        ];
        let answers = [(1, 2, 3), (4, 2, 3), (1, 4, 3), (1, 2, 4)];
        let of = |id| {
            let secret = BlobSecret::new(id);
            let proofs = answers.map(|(nonce, port, length)| secret.answer_proof(nonce, port, length));
            proofs.into_iter().chain(asked.map(|asked| secret.request_proof(&asked))).chain([secret.request_name()])
        };
        let all: HashSet<u64> = names.into_iter().chain(of(7)).chain(of(8)).collect();
        assert_eq!(all.len(), 4 + 2 * (4 + 6 + 1));
    }

    #[test]
    fn t13_an_argument_is_read_by_who_has_its_reference_and_by_nobody_else() {
        let (whose, plain) = (blob(7, 20, 3), *b"twenty bytes of text");
        let mut sealed = plain;
        let tag = seal_argument(&whose, &mut sealed);
        assert!(sealed.iter().zip(plain).filter(|(one, other)| **one == *other).count() < 6, "{sealed:?}");
        for other in [blob(8, 20, 3), blob(7, 20, 4), blob(7, 21, 3)] {
            assert!(!open_argument(&other, &tag, &mut sealed.clone()), "{other:?}");
        }
        for place in 0..20 {
            let (mut changed, mut tag) = (sealed, tag);
            changed[place] ^= 1;
            assert!(!open_argument(&whose, &tag, &mut changed), "byte {place}");
            tag[place % TAG_BYTES] ^= 1;
            assert!(!open_argument(&whose, &tag, &mut sealed.clone()), "byte {place} of the tag");
        }
        assert!(!open_argument(&whose, &tag, &mut sealed.clone()[..19]), "shorter");
        assert!(open_argument(&whose, &tag, &mut sealed));
        assert_eq!(sealed, plain);
    }

    /// Where a pack has the same bytes twice, nobody sees that.
    #[test]
    fn t13_equal_arguments_do_not_look_equal() {
        let sealed = [blob(7, 20, 3), blob(7, 20, 5)].map(|blob| {
            let mut argument = [0; 20];
            (seal_argument(&blob, &mut argument), argument)
        });
        assert_ne!(sealed[0].0, sealed[1].0);
        assert_ne!(sealed[0].1, sealed[1].1);
    }

    #[test]
    fn a_secret_does_not_get_into_a_log() {
        assert_eq!(format!("{:?}", BlobSecret::new(123)), "BlobSecret");
    }
}

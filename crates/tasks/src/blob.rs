//! Names and proofs derived from a blob's id. The id is a secret of its owner and the holders of its reference. It is never
//! sent to the port that serves the blob, because another process may have taken over that port. `docs/internals/arguments.md`
//! ("Names and proofs") explains the protocol.

use midflight_wire::tasks::BlobRef;
use siphasher::sip::SipHasher24;
use std::hash::Hasher;
use std::net::{IpAddr, SocketAddr};

/// A blob's id.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BlobSecret(u64);

/// Purpose of a hash: the second half of the key, which separates the purposes.
#[derive(Clone, Copy)]
enum Use {
    RequestName = 1,
    RequestProof = 2,
    AnswerProof = 3,
}

/// Both ends of a connection, without address translation. A man in the middle has two connections, with other ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The party that serves blobs.
    pub server: SocketAddr,
    /// The party that requests blobs.
    pub client: SocketAddr,
}

impl Ends {
    /// 36 bytes: for each end the address (IPv4 mapped to IPv6) and the port.
    fn to_bytes(self) -> Vec<u8> {
        let bytes = |end: SocketAddr| {
            let ip = match end.ip().to_canonical() {
                IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                IpAddr::V6(ip) => ip,
            };
            [&ip.octets()[..], &end.port().to_be_bytes()].concat()
        };
        [bytes(self.server), bytes(self.client)].concat()
    }
}

/// The parameters of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Ends of the connection.
    pub ends: Ends,
    /// The server's random number for the connection.
    pub challenge: u64,
    /// Number of earlier requests on the connection.
    pub earlier: u64,
    /// Random number of the request.
    pub nonce: u64,
}

impl BlobSecret {
    /// Wraps an id.
    #[must_use]
    pub fn new(id: u64) -> Self {
        Self(id)
    }

    /// The id, for a reference.
    #[must_use]
    pub fn id(self) -> u64 {
        self.0
    }

    /// Name in a request.
    #[must_use]
    pub fn request_name(self) -> u64 {
        self.hash(Use::RequestName, &[])
    }

    /// Proves that the requesting party knows the id.
    #[must_use]
    pub fn request_proof(self, asked: &Asked) -> u64 {
        let Asked { ends, challenge, earlier, nonce } = asked;
        let [challenge, earlier, nonce] = [challenge, earlier, nonce].map(|part| part.to_be_bytes());
        self.hash(Use::RequestProof, &[&challenge, &earlier, &nonce, &ends.to_bytes()])
    }

    /// Proves that the response to a request with this nonce comes from the party that serves the blob, on this connection.
    #[must_use]
    pub fn answer_proof(self, nonce: u64, ends: Ends, length: u32) -> u64 {
        self.hash(Use::AnswerProof, &[&nonce.to_be_bytes(), &length.to_be_bytes(), &ends.to_bytes()])
    }

    /// The parts have fixed lengths, so their concatenation is unambiguous.
    fn hash(self, what_for: Use, parts: &[&[u8]]) -> u64 {
        let mut hasher = SipHasher24::new_with_keys(self.0, what_for as u64);
        parts.iter().for_each(|part| hasher.write(part));
        hasher.finish()
    }
}

impl From<&BlobRef> for BlobSecret {
    fn from(blob: &BlobRef) -> Self {
        Self(blob.id.get())
    }
}

/// Keeps the id out of logs.
impl std::fmt::Debug for BlobSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BlobSecret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn ends(server: &str, client: &str) -> Ends {
        let [server, client] = [server, client].map(|end| end.parse().unwrap());
        Ends { server, client }
    }

    fn asked() -> Asked {
        let ends = ends("10.0.0.1:258", "[2001:db8::7]:772");
        Asked { ends, challenge: 0x01, earlier: 0x02, nonce: 0x03 }
    }

    #[test]
    fn t13_hashes_are_siphash_2_4_under_the_id_and_what_they_are_for() {
        let hash = |what_for: u64, bytes: &[u8]| SipHasher24::new_with_keys(7, what_for).hash(bytes);
        let secret = BlobSecret::new(7);
        assert_eq!(secret.request_name(), hash(1, b""));
        let ends =
            b"\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\x01\x01\x02\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x07\x03\x04";
        let asked_for = b"\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03";
        assert_eq!(secret.request_proof(&asked()), hash(2, &[&asked_for[..], ends].concat()));
        let answered = [&b"\0\0\0\0\0\0\x01\x02\0\0\x05\x06"[..], ends].concat();
        assert_eq!(secret.answer_proof(0x0102, asked().ends, 0x0506), hash(3, &answered));
    }

    #[test]
    fn t13_each_part_changes_a_hash() {
        let (here, there) = (asked().ends, ends("10.0.0.9:1", "10.0.0.9:2"));
        let others = [
            Ends { server: there.server, ..here },
            Ends { client: there.client, ..here },
            Ends { server: here.client, client: here.server },
        ];
        let asked = [
            asked(),
            Asked { challenge: 9, ..asked() },
            Asked { earlier: 9, ..asked() },
            Asked { nonce: 9, ..asked() },
            Asked { ends: others[0], ..asked() },
            Asked { ends: others[1], ..asked() },
            Asked { ends: others[2], ..asked() },
        ];
        let [one, two, three] = others;
        let answers = [(1, here, 3), (4, here, 3), (1, here, 4), (1, one, 3), (1, two, 3), (1, three, 3)];
        let of = |id| {
            let secret = BlobSecret::new(id);
            let proofs = answers.map(|(nonce, ends, length)| secret.answer_proof(nonce, ends, length));
            proofs.into_iter().chain(asked.map(|asked| secret.request_proof(&asked))).chain([secret.request_name()])
        };
        let all: HashSet<u64> = of(7).chain(of(8)).collect();
        assert_eq!(all.len(), 2 * (6 + 7 + 1));
    }

    /// A socket on `[::]` reports IPv4 peers as mapped IPv6 addresses.
    #[test]
    fn t13_both_ends_of_a_connection_see_the_same() {
        let mapped = ends("[::ffff:10.0.0.1]:80", "[::ffff:10.0.0.2]:81");
        assert_eq!(mapped.to_bytes(), ends("10.0.0.1:80", "10.0.0.2:81").to_bytes());
    }

    #[test]
    fn a_secret_does_not_get_into_a_log() {
        assert_eq!(format!("{:?}", BlobSecret::new(123)), "BlobSecret");
    }
}

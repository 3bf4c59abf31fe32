//! Proofs between a client and the executors of its tasks. Both know the SUBMIT's token, but never send it to each other, because
//! another process may have taken over the port. They send proofs of single records: SipHash-2-4 under the token, which do not
//! help to forge others. `docs/internals/security.md` explains more.

use midflight_wire::tasks::{BlobRef, Completed, Completion, RunName};
use siphasher::sip::SipHasher24;
use std::hash::Hasher;
use zerocopy::IntoBytes;

/// The token of a SUBMIT: a secret of its client, the switch, and the executors with tasks of it (T13).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Token(u64);

/// Purpose of a hash: half of the key, which separates the purposes.
enum Use {
    Completion = 1,
    Acknowledgement = 2,
    Stop = 3,
    ResultId = 4,
}

impl Token {
    /// The token with this number, as in SUBMIT and ASSIGN.
    #[must_use]
    pub fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number, for a SUBMIT.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }

    /// The token that executors get from a switch with room for only 32 bits.
    #[must_use]
    pub fn lower_half(self) -> Self {
        Self(self.0 & u64::from(u32::MAX))
    }

    /// Proof of a completion from the executor with this public name. `result`: the bytes, or the unencrypted reference.
    #[must_use]
    pub fn completion_proof(self, executor: u64, completion: &Completion, result: &[u8]) -> u64 {
        let mut hasher = self.hasher(Use::Completion);
        hasher.write(&executor.to_be_bytes());
        hasher.write(Completion { proof: 0.into(), ..*completion }.as_bytes());
        hasher.write(result);
        hasher.finish()
    }

    /// Encrypts or decrypts the id of a result by reference, in the completion with this proof. With the id an attacker could
    /// serve other bytes and send the completion itself.
    #[must_use]
    pub fn hide(self, proof: u64, reference: &BlobRef) -> BlobRef {
        let mut hasher = self.hasher(Use::ResultId);
        hasher.write(&proof.to_be_bytes());
        BlobRef { id: (reference.id.get() ^ hasher.finish()).into(), ..*reference }
    }

    /// Proof of a client's acknowledgement.
    #[must_use]
    pub fn acknowledgement_proof(self, completed: &Completed) -> u64 {
        let mut hasher = self.hasher(Use::Acknowledgement);
        hasher.write(Completed { proof: 0.into(), ..*completed }.as_bytes());
        hasher.finish()
    }

    /// A task's record in STOP, with the proof of its client.
    #[must_use]
    pub fn run_name(self, submission: u32, index: u8) -> RunName {
        let mut hasher = self.hasher(Use::Stop);
        hasher.write(RunName::new(0, submission, index).as_bytes());
        RunName::new(hasher.finish(), submission, index)
    }

    fn hasher(self, what_for: Use) -> SipHasher24 {
        SipHasher24::new_with_keys(self.0, what_for as u64)
    }
}

/// Keeps the token out of logs.
impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_wire::tasks::{Packet, parse};
    use std::collections::HashSet;
    use zerocopy::FromBytes;

    const TOKEN: Token = Token(0x0001_0203_0405_0607);

    fn completion() -> Completion {
        Completion {
            proof: 0x6666.into(),
            ran_ns: 1.into(),
            submission: 2.into(),
            waited_us: 3.into(),
            held_us: 4.into(),
            result_length: 5.into(),
            index: 6,
            attempt: 7,
            status: 8,
            by_reference: 9,
            reserved: 10.into(),
        }
    }

    fn completed() -> Completed {
        Completed { proof: 0x6666.into(), submission: 2.into(), index: 3, attempt: 4, state: 5, reserved: 6 }
    }

    fn reference() -> BlobRef {
        BlobRef { id: 7.into(), length: 20.into(), port: 80.into(), reserved: 3.into() }
    }

    #[test]
    fn t13_proofs_are_siphash_2_4_of_the_record_under_the_token_and_what_they_are_for() {
        let hash = |what_for: u64, bytes: &[u8]| SipHasher24::new_with_keys(TOKEN.0, what_for).hash(bytes);
        let record = b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\x05\x06\x07\x08\x09\0\x0a";
        let said = [b"\0\0\0\0\0\0\x01\x02".as_slice(), record, b"value"].concat();
        assert_eq!(TOKEN.completion_proof(0x0102, &completion(), b"value"), hash(1, &said));
        let said = b"\0\0\0\0\0\0\0\0\0\0\0\x02\x03\x04\x05\x06";
        assert_eq!(TOKEN.acknowledgement_proof(&completed()), hash(2, said));
        let name = TOKEN.run_name(2, 3);
        assert_eq!(name, RunName::new(hash(3, b"\0\0\0\0\0\0\0\0\0\0\0\x02\x03\0\0\0"), 2, 3));
        let hidden = TOKEN.hide(0x0102, &reference());
        assert_eq!(hidden, BlobRef { id: (7 ^ hash(4, b"\0\0\0\0\0\0\x01\x02")).into(), ..reference() });
        assert_eq!(TOKEN.hide(0x0102, &hidden), reference());
    }

    /// No byte of an observed record can be changed.
    #[test]
    fn t13_each_byte_and_the_token_change_a_proof() {
        let mut proofs = HashSet::new();
        for token in [TOKEN, TOKEN.lower_half()] {
            for byte in 8..size_of::<Completion>() {
                let mut changed = completion();
                changed.as_mut_bytes()[byte] ^= 1;
                proofs.insert(token.completion_proof(1, &changed, b"value"));
            }
            proofs.insert(token.completion_proof(1, &completion(), b"value"));
            proofs.insert(token.completion_proof(2, &completion(), b"value"));
            proofs.insert(token.completion_proof(1, &completion(), b"valuf"));
            for byte in 8..size_of::<Completed>() {
                let mut changed = completed();
                changed.as_mut_bytes()[byte] ^= 1;
                proofs.insert(token.acknowledgement_proof(&changed));
            }
            proofs.insert(token.acknowledgement_proof(&completed()));
            // One record of each kind with equal bytes.
            let alike = Completed { index: 3, attempt: 0, state: 0, reserved: 0, ..completed() };
            proofs.insert(token.acknowledgement_proof(&alike));
            proofs.extend([(2, 3), (1, 3), (2, 2)].map(|(s, i)| token.run_name(s, i).proof.get()));
        }
        assert_eq!(proofs.len(), 2 * (28 + 3 + 8 + 1 + 1 + 3));
    }

    /// The packets that other implementations read and write.
    #[test]
    fn t13_the_golden_packets_are_proven_by_the_token_of_the_golden_submit() {
        let submit = golden(include_str!("../../wire/tests/golden/tasks/submit.hex"));
        let Ok(Packet::Submit(submit, ..)) = parse(&submit) else { panic!("SUBMIT") };
        let token = Token::new(submit.token.get());
        let complete = golden(include_str!("../../wire/tests/golden/tasks/complete.hex"));
        let Ok(Packet::Complete(fixed, mut completions)) = parse(&complete) else { panic!("COMPLETE") };
        let (first, result) = completions.next().unwrap();
        assert_eq!(first.proof.get(), token.completion_proof(fixed.executor.get(), first, result));
        let (second, hidden) = completions.next().unwrap();
        let shown = token.hide(second.proof.get(), &BlobRef::read_from_bytes(hidden).unwrap());
        assert_eq!((shown.id.get(), shown.length.get()), (0xB10B, 1_000_000));
        assert_eq!(second.proof.get(), token.completion_proof(fixed.executor.get(), second, shown.as_bytes()));
        let acknowledged = golden(include_str!("../../wire/tests/golden/tasks/complete_ack.hex"));
        let Ok(Packet::CompleteAck(_, records)) = parse(&acknowledged) else { panic!("COMPLETE_ACK") };
        assert!(records.iter().all(|one| one.proof.get() == token.acknowledgement_proof(one)));
        let stop = golden(include_str!("../../wire/tests/golden/tasks/stop.hex"));
        let Ok(Packet::Stop(_, [name])) = parse(&stop) else { panic!("STOP") };
        assert_eq!(*name, token.run_name(1, 0));
    }

    /// Bytes of a golden file: a comment line, then numbers.
    fn golden(text: &str) -> Vec<u8> {
        let (_, numbers) = text.split_once('\n').unwrap();
        numbers.split_whitespace().map(|number| u8::from_str_radix(number, 16).unwrap()).collect()
    }

    #[test]
    fn a_token_does_not_get_into_a_log() {
        assert_eq!(format!("{TOKEN:?}"), "Token");
    }
}

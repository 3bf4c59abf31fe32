//! The tokens of SUBMITs. A completion must carry the token of the task's SUBMIT. Only the switch, and the executors that
//! were assigned a task of that SUBMIT, know it (T13).

use siphasher::sip::SipHasher24;

/// Computes tokens from the client's secret, so that none has to be stored.
pub(super) struct Tokens {
    hasher: SipHasher24,
    /// Whether a switch has said that it keeps no record. Such a switch has room for only 32 bits of a token.
    halves: bool,
}

impl Tokens {
    pub(super) fn new(secret: u128) -> Self {
        Self { hasher: SipHasher24::new_with_key(&secret.to_be_bytes()), halves: false }
    }

    /// The token of the SUBMIT with this sequence.
    pub(super) fn of(&self, submission: u32) -> u64 {
        self.hasher.hash(&submission.to_be_bytes())
    }

    /// From now on accepts the lower half of a token too. At other switches that would only make guessing easier.
    pub(super) fn take_halves(&mut self) {
        self.halves = true;
    }

    /// Whether this is the token of that SUBMIT, or its lower half if a switch has no room for more.
    pub(super) fn is_of(&self, submission: u32, said: u64) -> bool {
        let token = self.of(submission);
        said == token || (self.halves && said == token & u64::from(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t13_tokens_are_siphash_2_4_of_the_sequence_under_the_secret() {
        // From the SipHash paper (Aumasson and Bernstein): its key, and its test vector for the four bytes 0 to 3.
        let tokens = Tokens::new(0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f);
        assert_eq!(tokens.of(0x0001_0203), 0xcf27_94e0_2771_87b7);
        assert_ne!(tokens.of(1), Tokens::new(1).of(1), "another secret, other tokens");
    }

    #[test]
    fn t13_a_token_is_of_one_submission_whole_or_its_lower_half() {
        let mut tokens = Tokens::new(7);
        let token = tokens.of(9);
        assert!(
            tokens.is_of(9, token) && !tokens.is_of(9, token & 0xFFFF_FFFF),
            "no switch has said that it needs halves"
        );
        tokens.take_halves();
        assert!(tokens.is_of(9, token) && tokens.is_of(9, token & 0xFFFF_FFFF));
        for foreign in [0, token ^ 1, token ^ 1 << 63, token >> 32, token << 32, tokens.of(10)] {
            assert!(!tokens.is_of(9, foreign), "{foreign:#x}");
        }
    }
}

//! The tokens of SUBMITs. A completion must prove that its sender knows the token, which only the switch and the executors with a
//! task of that SUBMIT do (T13).

use crate::proof::Token;
use siphasher::sip::SipHasher24;

/// Derives tokens from the client's secret, so that none is stored.
pub(super) struct Tokens {
    hasher: SipHasher24,
    /// Whether a switch keeps no record; it has room for 32 bits of a token.
    halves: bool,
}

impl Tokens {
    pub(super) fn new(secret: u128) -> Self {
        Self { hasher: SipHasher24::new_with_key(&secret.to_be_bytes()), halves: false }
    }

    pub(super) fn of(&self, submission: u32) -> Token {
        Token::new(self.hasher.hash(&submission.to_be_bytes()))
    }

    /// Accepts lower halves of tokens from now on. Elsewhere that would only help guessing.
    pub(super) fn take_halves(&mut self) {
        self.halves = true;
    }

    /// What executors may have as that SUBMIT's token.
    pub(super) fn known_of(&self, submission: u32) -> impl Iterator<Item = Token> {
        let token = self.of(submission);
        std::iter::once(token).chain(self.halves.then(|| token.lower_half()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t13_tokens_are_siphash_2_4_of_the_sequence_under_the_secret() {
        // Key and vector for the bytes 0 to 3 from the SipHash paper (Aumasson and Bernstein).
        let tokens = Tokens::new(0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f);
        assert_eq!(tokens.of(0x0001_0203).number(), 0xcf27_94e0_2771_87b7);
        assert_ne!(tokens.of(1), Tokens::new(1).of(1), "another secret, other tokens");
    }

    #[test]
    fn t13_executors_may_have_a_whole_token_and_its_lower_half_only_once_a_switch_has_said_so() {
        let mut tokens = Tokens::new(7);
        let token = tokens.of(9);
        assert_eq!(tokens.known_of(9).collect::<Vec<_>>(), [token]);
        tokens.take_halves();
        let half = Token::new(token.number() & 0xFFFF_FFFF);
        assert_eq!(tokens.known_of(9).collect::<Vec<_>>(), [token, half]);
    }
}

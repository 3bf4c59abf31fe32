//! Cookies: a sender that repeats one proves that it receives packets sent to its address (T13). The switch stores nothing.

use midflight_wire::Address;
use siphasher::sip::SipHasher24;

/// Makes and checks a switch's cookies.
#[derive(Clone, Debug)]
pub struct Cookies {
    hasher: SipHasher24,
    window_ns: u64,
}

impl Cookies {
    /// Cookies under this secret. A cookie is valid in its own interval of `window_ns` and in the next. A length of 0 counts as 1.
    #[must_use]
    pub fn new(secret: u128, window_ns: u64) -> Self {
        let (low, high) = (secret as u64, (secret >> 64) as u64);
        Self { hasher: SipHasher24::new_with_keys(low, high), window_ns: window_ns.max(1) }
    }

    /// The current cookie of an identity at an address; never 0, which means "none".
    #[must_use]
    pub fn give(&self, now_ns: u64, identity: u64, address: impl Into<Address>) -> u64 {
        self.of_window(now_ns / self.window_ns, identity, &address.into())
    }

    /// Whether this is the cookie of an identity at an address, of this interval or the previous one.
    #[must_use]
    pub fn takes(&self, now_ns: u64, identity: u64, address: impl Into<Address>, cookie: u64) -> bool {
        let (window, address) = (now_ns / self.window_ns, address.into());
        let mut valid = [Some(window), window.checked_sub(1)].into_iter().flatten();
        valid.any(|window| self.of_window(window, identity, &address) == cookie)
    }

    /// SipHash-2-4 of 32 bytes: the identity, lowest byte first; IP address and port as in a packet; the window, lowest byte first.
    fn of_window(&self, window: u64, identity: u64, address: &Address) -> u64 {
        let mut message = [0; 32];
        message[..8].copy_from_slice(&identity.to_le_bytes());
        message[8..24].copy_from_slice(&address.ip);
        message[24..26].copy_from_slice(&address.port.to_bytes());
        message[26..].copy_from_slice(&window.to_le_bytes()[..6]);
        self.hasher.hash(&message).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::Cookies;
    use midflight_wire::Address;
    use std::net::SocketAddr;

    /// The authors' test vector: SipHash-2-4 of the bytes 0 to 31 under the key of the bytes 0 to 15.
    const AUTHORS_VECTOR: [u8; 8] = [0xce, 0x7c, 0xf2, 0x72, 0x2f, 0x51, 0x27, 0x71];
    const SECRET: u128 = 0x0F0E_0D0C_0B0A_0908_0706_0504_0302_0100;

    #[test]
    fn t13_a_cookie_is_siphash_2_4_of_identity_address_and_window() {
        let address = Address { ip: std::array::from_fn(|i| 8 + i as u8), port: 0x1819.into(), reserved: 0.into() };
        let cookies = Cookies::new(SECRET, 1);
        assert_eq!(cookies.give(0x1F1E_1D1C_1B1A, 0x0706_0504_0302_0100, address), u64::from_le_bytes(AUTHORS_VECTOR));
    }

    #[test]
    fn t13_a_cookie_is_taken_for_its_window_and_the_next() {
        let cookies = Cookies::new(SECRET, 5);
        let (here, there) = (SocketAddr::from(([10, 0, 0, 1], 7000)), SocketAddr::from(([10, 0, 0, 1], 7001)));
        for given_ns in [0, 2, 5, 9] {
            let cookie = cookies.give(given_ns, 7, here);
            let end_ns = (given_ns / 5 + 2) * 5;
            assert!((given_ns..end_ns).all(|now_ns| cookies.takes(now_ns, 7, here, cookie)));
            assert!(!cookies.takes(end_ns, 7, here, cookie));
            assert!(!cookies.takes(given_ns, 8, here, cookie) && !cookies.takes(given_ns, 7, there, cookie));
        }
        assert!((0..20).all(|now_ns| !cookies.takes(now_ns, 7, here, 0)));
    }
}

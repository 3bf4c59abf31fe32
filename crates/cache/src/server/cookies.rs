//! Cookies of direct requests. By repeating its cookie, a client proves that it receives packets at its address.

use midflight_endpoint::Nanos;
use midflight_wire::Address;
use siphasher::sip::SipHasher24;
use std::net::SocketAddr;

#[derive(Debug)]
pub(super) struct Cookies {
    hasher: SipHasher24,
    interval: Nanos,
}

impl Cookies {
    pub(super) fn new(secret: u128, interval: Nanos) -> Self {
        Self { hasher: SipHasher24::new_with_keys(secret as u64, (secret >> 64) as u64), interval: interval.max(1) }
    }

    /// Never 0, which means "none".
    pub(super) fn give(&self, now: Nanos, address: SocketAddr) -> u64 {
        self.of(now / self.interval, address)
    }

    /// Whether the address got this cookie in this interval or the previous one.
    pub(super) fn takes(&self, now: Nanos, address: SocketAddr, cookie: u64) -> bool {
        let interval = now / self.interval;
        let mut valid = [Some(interval), interval.checked_sub(1)].into_iter().flatten();
        valid.any(|interval| self.of(interval, address) == cookie)
    }

    fn of(&self, interval: u64, address: SocketAddr) -> u64 {
        let address = Address::from(address);
        let mut message = [0; 26];
        message[..16].copy_from_slice(&address.ip);
        message[16..18].copy_from_slice(&address.port.to_bytes());
        message[18..].copy_from_slice(&interval.to_le_bytes());
        self.hasher.hash(&message).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_of_an_address_and_of_two_intervals() {
        let (cookies, here) = (Cookies::new(7, 100), SocketAddr::from(([10, 0, 0, 1], 7000)));
        let cookie = cookies.give(150, here);
        assert!(cookies.takes(100, here, cookie) && cookies.takes(299, here, cookie));
        assert!(!cookies.takes(300, here, cookie) && !cookies.takes(99, here, cookie));
        assert!(!cookies.takes(150, SocketAddr::from(([10, 0, 0, 1], 7001)), cookie));
        assert!(!Cookies::new(8, 100).takes(150, here, cookie));
    }
}

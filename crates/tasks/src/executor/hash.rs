//! A keyed hash for maps that are looked into once a task. The key is the executor's seed: peers that do not know it cannot
//! choose names that collide.

use siphasher::sip::SipHasher13;
use std::hash::BuildHasher;

#[derive(Clone, Copy, Debug)]
pub(super) struct Keyed(pub(super) u64);

impl BuildHasher for Keyed {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.0, 0)
    }
}

//! A keyed hash for maps used once per task. Its key comes from the executor's seed, so peers cannot choose colliding names.

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

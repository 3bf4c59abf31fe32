//! A keyed hash for maps that are used once per task. The key comes from the executor's seed: peers, which do not know it,
//! cannot choose names that collide.

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

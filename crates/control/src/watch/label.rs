//! Labels of clients and executors for users. Their identities are secrets: with one, another process could take their place.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

/// A random key of this process, so that no identity can be computed from a label.
static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The label of an identity, until this process ends: 16 hexadecimal digits.
#[must_use]
pub fn label(identity: u64) -> String {
    format!("{:016x}", KEY.hash_one(identity))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t14_a_label_tells_identities_apart_and_does_not_say_them() {
        let labels = [0, 7, u64::MAX].map(label);
        assert_eq!(labels, [0, 7, u64::MAX].map(label));
        assert!(labels[0] != labels[1] && labels[1] != labels[2]);
        assert!(labels.iter().all(|label| label.len() == 16) && labels[1] != format!("{:016x}", 7), "{labels:?}");
    }
}

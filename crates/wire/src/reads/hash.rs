//! The mapping of keys to key groups. It is frozen: two mappings of one set would write a key in one group and read it in another,
//! which stays stable.

use twox_hash::XxHash3_64;

/// What of a key is hashed: what stands in its first braces, if they are closed and not empty, else all of it. So a user can
/// put several keys into one group (Redis Cluster's hash tags).
#[must_use]
pub fn hashed_part(key: &[u8]) -> &[u8] {
    let inner = key.iter().position(|&byte| byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        rest.iter().position(|&byte| byte == b'}').map(|close| &rest[..close])
    });
    inner.filter(|inner| !inner.is_empty()).unwrap_or(key)
}

/// The hash of a key that requests carry: the high half of XXH3 with 64 bits and seed 0, of [`hashed_part`].
#[must_use]
pub fn key_hash(key: &[u8]) -> u32 {
    (XxHash3_64::oneshot(hashed_part(key)) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_tags_are_those_of_redis_cluster() {
        for (key, part) in [
            ("{user1000}.following", "user1000"),
            ("foo{}{bar}", "foo{}{bar}"),
            ("foo{{bar}}zap", "{bar"),
            ("foo{bar}{zap}", "bar"),
            ("foo{bar", "foo{bar"),
            ("", ""),
        ] {
            assert_eq!(hashed_part(key.as_bytes()), part.as_bytes(), "{key}");
        }
    }

    /// From the algorithm's own test vectors: it must never change.
    #[test]
    fn the_hash_is_xxh3() {
        assert_eq!(key_hash(b""), 0x2d06_8005, "XXH3_64bits of nothing is 2d06800538d394c2");
        assert_eq!(key_hash(b"a"), 0xe6c6_32b6, "of \"a\" e6c632b61e964e1f");
    }
}

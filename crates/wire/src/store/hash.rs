//! The mapping of keys to key groups. It must never change: a write would mark one group unstable while reads use another.

use twox_hash::XxHash3_64;

/// The hashed part of a key: the text between the first braces (Redis Cluster's hash tags), which lets users put keys into one
/// group; or the whole key if they are not closed or empty.
#[must_use]
pub fn hashed_part(key: &[u8]) -> &[u8] {
    let inner = key.iter().position(|&byte| byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        rest.iter().position(|&byte| byte == b'}').map(|close| &rest[..close])
    });
    inner.filter(|inner| !inner.is_empty()).unwrap_or(key)
}

/// Hash of a key in requests: the high 32 bits of XXH3-64, seed 0, of [`hashed_part`].
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

    /// Vectors of the algorithm itself.
    #[test]
    fn the_hash_is_xxh3() {
        assert_eq!(key_hash(b""), 0x2d06_8005, "XXH3_64bits of nothing is 2d06800538d394c2");
        assert_eq!(key_hash(b"a"), 0xe6c6_32b6, "of \"a\" e6c632b61e964e1f");
    }
}

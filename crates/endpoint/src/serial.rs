//! Serial numbers of 32 bits that wrap (RFC 1982).

/// Distance from `b` to `a`; negative if `a` is earlier.
#[must_use]
pub fn distance(a: u32, b: u32) -> i32 {
    a.wrapping_sub(b) as i32
}

/// Whether `a` is later than `b`.
#[must_use]
pub fn is_later(a: u32, b: u32) -> bool {
    distance(a, b) > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap() {
        assert!(is_later(1, 0) && is_later(0, u32::MAX) && is_later(5, u32::MAX - 5));
        assert!(!is_later(7, 7) && !is_later(u32::MAX, 0));
        assert_eq!((distance(3, u32::MAX), distance(u32::MAX, 3)), (4, -4));
    }

    #[test]
    fn half_of_all_numbers_ahead_is_behind() {
        assert!(is_later(0x7fff_ffff, 0));
        assert!(!is_later(0x8000_0000, 0) && !is_later(0, 0x8000_0000));
    }
}

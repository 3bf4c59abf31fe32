//! What the configurations of endpoints check alike.

use std::net::SocketAddr;

/// A number outside its range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is {value}: set it to {range}")]
pub struct OutOfRange {
    /// The field.
    pub name: &'static str,
    /// Its value.
    pub value: u64,
    /// The valid range.
    pub range: &'static str,
}

/// Checks a field.
///
/// # Errors
/// If the value is not valid.
pub fn in_range(name: &'static str, value: u64, is_valid: bool, range: &'static str) -> Result<(), OutOfRange> {
    if is_valid { Ok(()) } else { Err(OutOfRange { name, value, range }) }
}

/// Whether two addresses are the same. IPv4 may be written as an IPv4-mapped IPv6 address.
#[must_use]
pub fn is_same_address(a: SocketAddr, b: SocketAddr) -> bool {
    a.port() == b.port() && a.ip().to_canonical() == b.ip().to_canonical()
}

/// The first address that repeats an earlier one of the list.
#[must_use]
pub fn repeated_address(list: &[SocketAddr]) -> Option<SocketAddr> {
    let is_repeated = |&(i, &address): &(usize, _)| list[..i].iter().any(|&other| is_same_address(other, address));
    list.iter().enumerate().find(is_repeated).map(|(_, &address)| address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv4_address_is_recognised_in_its_mapped_form() {
        let [a, mapped, other, b]: [SocketAddr; 4] =
            ["10.0.0.1:1", "[::ffff:10.0.0.1]:1", "10.0.0.1:2", "10.0.0.2:1"].map(|text| text.parse().unwrap());
        assert!(is_same_address(a, mapped) && !is_same_address(a, other) && !is_same_address(a, b));
        assert_eq!(repeated_address(&[b, a, other, mapped]), Some(mapped));
        assert_eq!(repeated_address(&[b, a, other]), None);
    }
}

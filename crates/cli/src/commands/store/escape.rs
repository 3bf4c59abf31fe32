//! Escapes bytes that an argument cannot have (NUL), or that are hard to type in a shell.

/// Decodes what `escape_ascii` writes.
///
/// # Errors
/// If an escape is unknown or incomplete.
pub(super) fn decode(text: &[u8]) -> Result<Vec<u8>, String> {
    let wrong = || "write \\n, \\r, \\t, \\\\, or \\x and two hexadecimal digits for a byte".to_owned();
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text);
    loop {
        let (byte, behind) = match rest {
            [] => return Ok(bytes),
            [b'\\', b'x', high, low, behind @ ..] => (hexadecimal(*high, *low).ok_or_else(wrong)?, behind),
            [b'\\', b'n', behind @ ..] => (b'\n', behind),
            [b'\\', b'r', behind @ ..] => (b'\r', behind),
            [b'\\', b't', behind @ ..] => (b'\t', behind),
            [b'\\', same @ (b'\\' | b'\'' | b'"'), behind @ ..] => (*same, behind),
            [b'\\', ..] => return Err(wrong()),
            [byte, behind @ ..] => (*byte, behind),
        };
        bytes.push(byte);
        rest = behind;
    }
}

fn hexadecimal(high: u8, low: u8) -> Option<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_come_back_from_their_escape() {
        let all: Vec<u8> = (0..=u8::MAX).collect();
        assert_eq!(decode(all.escape_ascii().to_string().as_bytes()).unwrap(), all);
        assert_eq!(decode("größe\\x00".as_bytes()).unwrap(), "größe\0".as_bytes());
        for wrong in ["\\", "\\x1", "\\xg0", "\\0"] {
            assert!(decode(wrong.as_bytes()).unwrap_err().contains("\\x and two"), "{wrong}");
        }
    }
}

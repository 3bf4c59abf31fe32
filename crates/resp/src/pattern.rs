//! Patterns of keys, as in KEYS and SCAN.

/// Whether a key fits a pattern: `*` stands for any bytes, `?` for one, `[a-c]` for one of these, `[^a-c]` for another, and `\` makes
/// the next byte stand for itself. Takes at most the product of both lengths.
#[must_use]
pub fn fits(pattern: &[u8], key: &[u8]) -> bool {
    let (mut at, mut place) = (0, 0);
    // Behind the last `*`, and the first byte of the key that it does not stand for.
    let mut star: Option<(usize, usize)> = None;
    loop {
        if pattern.get(at) == Some(&b'*') {
            at += 1;
            star = Some((at, place));
            continue;
        }
        let Some(&byte) = key.get(place) else { return at == pattern.len() };
        match one(&pattern[at..], byte) {
            Some(length) => {
                at += length;
                place += 1;
            }
            None => {
                let Some((behind, first)) = star else { return false };
                star = Some((behind, first + 1));
                (at, place) = (behind, first + 1);
            }
        }
    }
}

/// The length of the pattern's first element, if it fits the byte.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match *pattern {
        [] => None,
        [b'?', ..] => Some(1),
        [b'[', ref class @ ..] => {
            let (has, length) = class_has(class, byte);
            has.then_some(1 + length)
        }
        [b'\\', next, ..] => (next == byte).then_some(2),
        [first, ..] => (first == byte).then_some(1),
    }
}

/// Whether a class, behind its `[`, has a byte, and its length. One that is not closed ends with the pattern.
fn class_has(class: &[u8], byte: u8) -> (bool, usize) {
    let is_negated = class.first() == Some(&b'^');
    let (mut at, mut has) = (usize::from(is_negated), false);
    loop {
        match class[at..] {
            [] => return (has != is_negated, at),
            [b']', ..] => return (has != is_negated, at + 1),
            [b'\\', next, ..] => {
                has |= next == byte;
                at += 2;
            }
            [first, b'-', last, ..] => {
                has |= (first.min(last)..=first.max(last)).contains(&byte);
                at += 3;
            }
            [first, ..] => {
                has |= first == byte;
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns_are_those_of_redis() {
        for (pattern, key, does) in [
            ("", "", true),
            ("*", "", true),
            ("*", "any", true),
            ("", "a", false),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h*llo", "heeeello", true),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hbllo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("h[a-c]llo", "hdllo", false),
            ("user:*:name", "user:1:2:name", true),
            ("user:*:name", "user:1:names", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b*", "xxbxxaxx", false),
            ("a\\*b", "a*b", true),
            ("a\\*b", "axb", false),
            ("[\\]]", "]", true),
            ("a[", "a", false),
            ("a[b", "ab", true),
            ("a\\", "a\\", true),
            ("**", "a", true),
        ] {
            assert_eq!(fits(pattern.as_bytes(), key.as_bytes()), does, "{pattern} and {key}");
        }
    }

    #[test]
    fn r7_no_pattern_takes_long() {
        let (pattern, key) = ("a*".repeat(500), "a".repeat(1_000));
        assert!(!fits((pattern + "b").as_bytes(), key.as_bytes()));
    }
}

//! Formats and parses masks, durations, lists and sets.

use std::time::Duration;

/// `AB` for the two lowest resources, `-` for none.
pub(super) fn mask(bits: u8) -> String {
    match bits {
        0 => "-".to_owned(),
        _ => (0..8u8).filter(|bit| bits >> bit & 1 == 1).map(|bit| char::from(b'A' + bit)).collect(),
    }
}

pub(super) fn parse_mask(text: &str) -> Result<u8, String> {
    if text == "-" {
        return Ok(0);
    }
    text.bytes().try_fold(0, |bits, letter| match letter {
        b'A'..=b'H' => Ok(bits | 1 << (letter - b'A')),
        _ => Err(format!("{text:?} is no mask: letters A to H, or -")),
    })
}

/// The set bits of a bitmap: `0-2, 5`.
pub(super) fn bits(bitmap: u32) -> String {
    ranges((0..32u32).filter(|bit| bitmap >> bit & 1 == 1))
}

/// Ascending numbers, with consecutive ones as a range: `0-2, 5`; `none` if there is none.
pub(super) fn ranges(numbers: impl Iterator<Item = u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let words: Vec<String> = runs
        .iter()
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
        .collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

/// `3` or `3-5`.
pub(super) fn parse_range(text: &str) -> Result<std::ops::RangeInclusive<u32>, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Ok(number(first)?..=number(last)?)
}

pub(super) fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| format!("{text:?} is no number that fits here"))
}

/// `5ns`, `10us`, `500ms`, `1s`.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let count = number(&text[..digits])?;
    match &text[digits..] {
        "ns" => Ok(Duration::from_nanos(count)),
        "us" => Ok(Duration::from_micros(count)),
        "ms" => Ok(Duration::from_millis(count)),
        "s" => Ok(Duration::from_secs(count)),
        _ => Err(format!("{text:?} is no duration: a number and ns, us, ms or s")),
    }
}

pub(super) fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

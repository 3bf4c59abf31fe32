//! Requests: an array of bulk strings, or a line of words ("inline").
//!
//! No library parses them: those for RESP also parse nested arrays, which no request has, by recursion, so that a request of a megabyte
//! would overflow the stack.

use bytes::{Buf, Bytes, BytesMut};

/// Bytes of a line of words, as in Redis.
const LINE_MAX: usize = 64 << 10;
/// Bytes of a line with a number.
const NUMBER_MAX: usize = 32;
/// Cost of an argument, in addition to its bytes.
const ARGUMENT_COST: usize = 64;

/// Why a connection has to end. Most texts are Redis' own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// More than 64 KiB without a line's end.
    #[error("too big inline request")]
    LongLine,
    /// More than 32 bytes where a number must be.
    #[error("too big count string")]
    LongNumber,
    /// A line with an open quote, or without a space behind a closing one.
    #[error("unbalanced quotes in request")]
    Quotes,
    /// The number of arguments is not a number, or too large.
    #[error("invalid multibulk length")]
    Count,
    /// An argument does not begin with `$`.
    #[error("expected '$', got '{}'", .0.escape_ascii())]
    NoBulk(u8),
    /// The length of an argument is not a number, or too large.
    #[error("invalid bulk length")]
    Length,
    /// All arguments together are too long.
    #[error("the request is too long")]
    LongRequest,
}

/// Parses what a client sends, in pieces of any size.
#[derive(Debug)]
pub struct Parser {
    buffer: BytesMut,
    /// How much of it has no line's end.
    scanned: usize,
    /// Of the request that has begun.
    arguments: Vec<Bytes>,
    /// How many of its arguments have not come.
    left: usize,
    /// Cost of those that have.
    cost: usize,
    cost_max: usize,
}

impl Parser {
    /// A parser for requests of at most this [`cost`].
    #[must_use]
    pub fn new(cost_max: usize) -> Self {
        Self { buffer: BytesMut::new(), scanned: 0, arguments: Vec::new(), left: 0, cost: 0, cost_max }
    }

    /// Where received bytes go.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// Bytes of what has come and is no whole request yet, with the buffer's spare room.
    #[must_use]
    pub fn held(&self) -> usize {
        self.cost + self.buffer.capacity()
    }

    /// The next request, with at least one argument; `None` until more has come.
    ///
    /// # Errors
    /// If it is invalid. The parser is then of no more use.
    pub fn next_request(&mut self) -> Result<Option<Vec<Bytes>>, ProtocolError> {
        loop {
            if self.left > 0 {
                let Some(argument) = self.argument()? else { return Ok(None) };
                self.arguments.push(argument);
                self.left -= 1;
                if self.left == 0 {
                    self.cost = 0;
                    return Ok(Some(std::mem::take(&mut self.arguments)));
                }
                continue;
            }
            let is_array = self.buffer.first() == Some(&b'*');
            let Some(end) = self.end_of_line(is_array)? else { return Ok(None) };
            let line = self.buffer.split_to(end);
            let line = without_end(&line);
            if let Some(count) = line.strip_prefix(b"*") {
                let count = integer(count).filter(|count| *count <= (self.cost_max / ARGUMENT_COST) as i64);
                // As in Redis, -1 and 0 are no request.
                self.left = usize::try_from(count.ok_or(ProtocolError::Count)?).unwrap_or(0);
            } else {
                let arguments = words(line).ok_or(ProtocolError::Quotes)?;
                if !arguments.is_empty() {
                    return Ok(Some(arguments));
                }
            }
        }
    }

    fn argument(&mut self) -> Result<Option<Bytes>, ProtocolError> {
        let Some(end) = self.end_of_line(true)? else { return Ok(None) };
        let [kind, digits @ ..] = without_end(&self.buffer[..end]) else { return Err(ProtocolError::NoBulk(b'\n')) };
        if *kind != b'$' {
            return Err(ProtocolError::NoBulk(*kind));
        }
        let length = integer(digits).and_then(|length| usize::try_from(length).ok());
        let length = length.filter(|length| *length <= self.cost_max).ok_or(ProtocolError::Length)?;
        let cost = self.cost + length + ARGUMENT_COST;
        if cost > self.cost_max {
            return Err(ProtocolError::LongRequest);
        }
        if self.buffer.len() < end + length + 2 {
            return Ok(None);
        }
        self.cost = cost;
        // A copy, because a part would keep the whole buffer.
        let argument = Bytes::copy_from_slice(&self.buffer[end..end + length]);
        self.buffer.advance(end + length + 2); // the line's end is not looked at, as in Redis
        Ok(Some(argument))
    }

    fn end_of_line(&mut self, is_number: bool) -> Result<Option<usize>, ProtocolError> {
        let (most, begin, error) = if is_number {
            (NUMBER_MAX, 0, ProtocolError::LongNumber)
        } else {
            (LINE_MAX, std::mem::take(&mut self.scanned), ProtocolError::LongLine)
        };
        let seen = &self.buffer[..self.buffer.len().min(most)];
        match seen[begin..].iter().position(|&byte| byte == b'\n') {
            Some(place) => Ok(Some(begin + place + 1)),
            None if seen.len() == most => Err(error),
            None => {
                self.scanned = if is_number { 0 } else { seen.len() };
                Ok(None)
            }
        }
    }
}

/// What a request takes of its connection's bound: bytes of its arguments, and some for each of them.
#[must_use]
pub fn cost(request: &[Bytes]) -> usize {
    request.iter().map(|argument| argument.len() + ARGUMENT_COST).sum()
}

fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A decimal number as Redis takes it: without `+`, and without zeros before it.
pub(crate) fn integer(digits: &[u8]) -> Option<i64> {
    let number: i64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (number.to_string().as_bytes() == digits).then_some(number)
}

/// Words of a line; `'` and `"` quote, and `\` escapes as in Redis. `None`: unbalanced quotes.
fn words(line: &[u8]) -> Option<Vec<Bytes>> {
    let mut words = Vec::new();
    let mut rest = line.trim_ascii_start();
    while !rest.is_empty() {
        let mut word = Vec::new();
        rest = loop {
            match rest {
                [quote @ (b'"' | b'\''), behind @ ..] => {
                    let behind = quoted(*quote, behind, &mut word)?;
                    if behind.first().is_some_and(|byte| !byte.is_ascii_whitespace()) {
                        return None;
                    }
                    break behind;
                }
                [byte, behind @ ..] if !byte.is_ascii_whitespace() => {
                    word.push(*byte);
                    rest = behind;
                }
                _ => break rest,
            }
        };
        words.push(Bytes::from(word));
        rest = rest.trim_ascii_start();
    }
    Some(words)
}

/// Appends what is quoted to `word`; returns what follows the closing quote.
fn quoted<'a>(quote: u8, mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [b'\\', b'x', high, low, behind @ ..]
                if quote == b'"' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                let digits = [*high, *low];
                word.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
                behind
            }
            [b'\\', escaped, behind @ ..] if quote == b'"' || *escaped == b'\'' => {
                word.push(match escaped {
                    b'n' if quote == b'"' => b'\n',
                    b'r' if quote == b'"' => b'\r',
                    b't' if quote == b'"' => b'\t',
                    b'b' if quote == b'"' => 8,
                    b'a' if quote == b'"' => 7,
                    other => *other,
                });
                behind
            }
            [byte, behind @ ..] if *byte == quote => return Some(behind),
            [byte, behind @ ..] => {
                word.push(*byte);
                behind
            }
            [] => return None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(bytes: &[u8], piece: usize) -> Result<Vec<Vec<Bytes>>, ProtocolError> {
        let mut parser = Parser::new(2_000);
        let mut requests = Vec::new();
        for piece in bytes.chunks(piece) {
            parser.buffer().extend_from_slice(piece);
            while let Some(request) = parser.next_request()? {
                requests.push(request);
            }
        }
        Ok(requests)
    }

    fn one(bytes: &[u8]) -> Result<Vec<Vec<Bytes>>, ProtocolError> {
        all(bytes, usize::MAX)
    }

    #[test]
    fn requests_are_arrays_and_lines() {
        let sent = b"*2\r\n$3\r\nGET\r\n$2\r\na\n\r\n\r\n*0\r\n*-1\r\nPING\r\n  set \"a\\x00b\\n\" 'it\\'s' c\"d e\" \n*1\r\n$0\r\n\r\n";
        let wanted: Vec<Vec<Bytes>> = vec![
            vec!["GET".into(), "a\n".into()],
            vec!["PING".into()],
            vec!["set".into(), "a\0b\n".into(), "it's".into(), "cd e".into()],
            vec!["".into()],
        ];
        for piece in [1, 2, 7, sent.len()] {
            assert_eq!(all(sent, piece), Ok(wanted.clone()), "in pieces of {piece}");
        }
    }

    #[test]
    fn what_is_no_request_is_named_as_by_redis() {
        use ProtocolError::{Count, Length, LongLine, LongNumber, LongRequest, NoBulk, Quotes};
        let long = [b"*2\r\n$1200\r\n", &[b'x'; 1_200][..], b"\r\n$1200\r\n"].concat();
        for (sent, error) in [
            (&b"*x\r\n"[..], Count),
            (b"*32\r\n", Count),
            (b"*+1\r\n", Count),
            (b"*1\r\n$01\r\n", Length),
            (&[b'*'; 40], LongNumber),
            (b"*99999999999999999999\r\n", Count),
            (b"*1\r\n+OK\r\n", NoBulk(b'+')),
            (b"*1\r\n\r\n", NoBulk(b'\n')),
            (b"*1\r\n*1\r\n", NoBulk(b'*')),
            (b"*1\r\n$-1\r\n", Length),
            (b"*1\r\n$9223372036854775807\r\n", Length),
            (b"*1\r\n$9223372036854775808\r\n", Length),
            (&long, LongRequest),
            (&[b'x'; LINE_MAX], LongLine),
            (b"set \"a\n", Quotes),
            (b"set \"a\"b\n", Quotes),
            (b"set a\"b\"c\n", Quotes),
        ] {
            assert_eq!(one(sent), Err(error), "{}", sent.escape_ascii());
        }
        assert_eq!(ProtocolError::NoBulk(7).to_string(), "expected '$', got '\\x07'");
    }

    proptest! {
        #[test]
        fn any_arguments_come_back_in_any_pieces(
            requests in prop::collection::vec(prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..8), 1..5),
            piece in 1_usize..50,
        ) {
            let mut sent = Vec::new();
            for request in &requests {
                sent.extend(format!("*{}\r\n", request.len()).bytes());
                for argument in request {
                    sent.extend(format!("${}\r\n", argument.len()).bytes());
                    sent.extend_from_slice(argument);
                    sent.extend(b"\r\n");
                }
            }
            let wanted: Vec<Vec<Bytes>> =
                requests.into_iter().map(|request| request.into_iter().map(Bytes::from).collect()).collect();
            prop_assert_eq!(all(&sent, piece), Ok(wanted));
        }

        #[test]
        fn any_bytes_are_parsed_alike_in_any_pieces(sent in prop::collection::vec(any::<u8>(), 0..200), piece in 1_usize..50) {
            prop_assert_eq!(all(&sent, piece), one(&sent));
        }
    }
}

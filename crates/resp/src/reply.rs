//! Replies, in versions 2 and 3 of the protocol.

use bytes::{BufMut, Bytes, BytesMut};

/// Version of the protocol, chosen by HELLO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// RESP2.
    #[default]
    Two,
    /// RESP3.
    Three,
}

/// The reply to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A short text without a line's end.
    Simple(&'static str),
    /// A failure: a code in capitals, and what happened. Line ends become spaces.
    Error(String),
    /// A number.
    Integer(i64),
    /// Any bytes.
    Bulk(Bytes),
    /// No value.
    Null,
    /// No array: the reply of a transaction that did not take place.
    NoArray,
    /// Several replies.
    Array(Vec<Reply>),
    /// Names and what they stand for.
    Map(Vec<(Reply, Reply)>),
}

impl Reply {
    /// What most writes say.
    pub const OK: Self = Self::Simple("OK");

    /// An error with the code that most have.
    pub fn error(what: impl std::fmt::Display) -> Self {
        Self::Error(format!("ERR {what}"))
    }

    /// A text as a bulk string.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Bulk(text.into().into())
    }

    /// Appends it as it is sent.
    pub fn write(&self, version: Version, out: &mut BytesMut) {
        match self {
            Self::Simple(text) => line(out, b'+', text),
            Self::Error(text) => line(out, b'-', text.replace(['\r', '\n'], " ")),
            Self::Integer(number) => line(out, b':', number),
            Self::Bulk(bytes) => {
                line(out, b'$', bytes.len());
                out.extend_from_slice(bytes);
                out.extend_from_slice(b"\r\n");
            }
            Self::Null => out.extend_from_slice(if version == Version::Two { b"$-1\r\n" } else { b"_\r\n" }),
            Self::NoArray => out.extend_from_slice(if version == Version::Two { b"*-1\r\n" } else { b"_\r\n" }),
            Self::Array(replies) => {
                line(out, b'*', replies.len());
                replies.iter().for_each(|reply| reply.write(version, out));
            }
            Self::Map(pairs) => {
                match version {
                    Version::Two => line(out, b'*', 2 * pairs.len()),
                    Version::Three => line(out, b'%', pairs.len()),
                }
                for (name, reply) in pairs {
                    name.write(version, out);
                    reply.write(version, out);
                }
            }
        }
    }
}

fn line(out: &mut BytesMut, kind: u8, content: impl std::fmt::Display) {
    use std::fmt::Write;
    out.put_u8(kind);
    let _ = write!(out, "{content}\r\n"); // it grows as needed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_written_in_both_versions() {
        let reply = Reply::Array(vec![
            Reply::OK,
            Reply::error("no\r\nline"),
            Reply::Integer(-1),
            Reply::text("a\r\n"),
            Reply::Null,
            Reply::NoArray,
            Reply::Map(vec![(Reply::text("proto"), Reply::Integer(3))]),
        ]);
        let written = |version| {
            let mut out = BytesMut::new();
            reply.write(version, &mut out);
            String::from_utf8(out.to_vec()).unwrap()
        };
        let same = "*7\r\n+OK\r\n-ERR no  line\r\n:-1\r\n$3\r\na\r\n\r\n";
        assert_eq!(written(Version::Two), format!("{same}$-1\r\n*-1\r\n*2\r\n$5\r\nproto\r\n:3\r\n"));
        assert_eq!(written(Version::Three), format!("{same}_\r\n_\r\n%1\r\n$5\r\nproto\r\n:3\r\n"));
    }
}

//! Both backend protocols byte for byte, each possible violation, and arbitrary bytes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use midflight_cache::backend::{Answer, At, BackendAddress, Dialect, Unsupported, Wrong};
use midflight_wire::cache::backend::{BackendRequest, VALUE_MAX, is_key};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const MEMCACHED: Dialect = Dialect::Memcached;
const REDIS: Dialect = Dialect::Redis { database: 0 };
const GET: BackendRequest<'_> = BackendRequest::Get { key: b"user:17" };
const SET: BackendRequest<'_> = set(0, 0);
const DELETE: BackendRequest<'_> = BackendRequest::Delete { key: b"user:17" };
const NOW: u64 = 1_800_000_000;

const fn set(flags: u32, expires_s: u32) -> BackendRequest<'static> {
    BackendRequest::Set { key: b"user:17", value: b"A\r\nB", flags, expires_s }
}

fn written(dialect: Dialect, request: &BackendRequest<'_>) -> String {
    let mut bytes = Vec::new();
    dialect.write(request, NOW, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn read<'a>(dialect: Dialect, request: &BackendRequest<'_>, said: &'a str) -> Result<Answer<'a>, Wrong> {
    let bytes = said.as_bytes();
    for length in 0..bytes.len() {
        match dialect.read(request, &bytes[..length]) {
            Ok(None) => {}
            Err(wrong) => return Err(wrong),
            Ok(Some(early)) => panic!("{length} bytes of {said:?} are {early:?}"),
        }
    }
    let (answer, length) = dialect.read(request, bytes)?.expect("a whole answer");
    assert_eq!(length, bytes.len(), "{said:?}");
    Ok(answer)
}

#[test]
fn requests_to_memcached() {
    assert_eq!(written(MEMCACHED, &GET), "get user:17\r\n");
    assert_eq!(written(MEMCACHED, &DELETE), "delete user:17\r\n");
    assert_eq!(written(MEMCACHED, &set(42, 60)), "set user:17 42 60 4\r\nA\r\nB\r\n");
}

/// memcached reads an expiry above 30 days as a date of at most 31 bits.
#[test]
fn a_long_expiry_is_a_date_for_memcached() {
    let month = 30 * 86_400;
    assert_eq!(written(MEMCACHED, &set(0, month)), format!("set user:17 0 {month} 4\r\nA\r\nB\r\n"));
    let date = NOW + u64::from(month) + 1;
    assert_eq!(written(MEMCACHED, &set(0, month + 1)), format!("set user:17 0 {date} 4\r\nA\r\nB\r\n"));
    assert_eq!(written(MEMCACHED, &set(0, u32::MAX)), format!("set user:17 0 {} 4\r\nA\r\nB\r\n", i32::MAX));
}

#[test]
fn requests_to_redis() {
    assert_eq!(written(REDIS, &GET), "*2\r\n$3\r\nGET\r\n$7\r\nuser:17\r\n");
    assert_eq!(written(REDIS, &DELETE), "*2\r\n$3\r\nDEL\r\n$7\r\nuser:17\r\n");
    assert_eq!(written(REDIS, &SET), "*3\r\n$3\r\nSET\r\n$7\r\nuser:17\r\n$4\r\nA\r\nB\r\n");
    let with_expiry = "*5\r\n$3\r\nSET\r\n$7\r\nuser:17\r\n$4\r\nA\r\nB\r\n$2\r\nEX\r\n$10\r\n4294967295\r\n";
    assert_eq!(written(REDIS, &set(0, u32::MAX)), with_expiry);
}

#[test]
fn redis_keeps_no_flags_and_says_so_before_anything_is_sent() {
    let mut bytes = Vec::new();
    assert_eq!(REDIS.write(&set(1, 0), NOW, &mut bytes), Err(Unsupported::Flags));
    assert!(bytes.is_empty());
}

#[test]
fn a_connection_begins_with_its_database() {
    let mut bytes = Vec::new();
    assert!(!MEMCACHED.write_greeting(&mut bytes) && !REDIS.write_greeting(&mut bytes) && bytes.is_empty());
    let third = Dialect::Redis { database: 3 };
    assert!(third.write_greeting(&mut bytes));
    assert_eq!(bytes, b"*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n");
    assert_eq!(third.read_greeting(b"+OK\r\n"), Ok(Some((Answer::Done, 5))));
    let refused = "ERR DB index is out of range";
    assert_eq!(third.read_greeting(format!("-{refused}\r\n").as_bytes()), Ok(Some((Answer::Refused(refused), 31))));
}

/// Keys are bytes. Every valid key must be readable; otherwise one key would break its agents' connections forever.
#[test]
fn n8_every_key_is_read_back() {
    for byte in (0..=u8::MAX).filter(|byte| is_key(&[*byte])) {
        for key in [vec![byte], vec![0xc2, byte], vec![b'a', byte, b'b']].into_iter().filter(|key| is_key(key)) {
            let answer = [b"VALUE ", &key[..], b" 0 1\r\nA\r\nEND\r\n"].concat();
            let request = BackendRequest::Get { key: &key };
            let expected = Ok(Some((Answer::Value { value: b"A", flags: 0 }, answer.len())));
            assert_eq!(MEMCACHED.read(&request, &answer), expected, "{key:?}");
            let other = BackendRequest::Get { key: b"other" };
            assert_eq!(MEMCACHED.read(&other, &answer), Err(Wrong::Garbage("another key")));
        }
    }
}

#[test]
fn answers_of_memcached() {
    let value = |value, flags| Ok(Answer::Value { value, flags });
    assert_eq!(read(MEMCACHED, &GET, "VALUE user:17 42 3\r\nAda\r\nEND\r\n"), value(b"Ada", 42));
    assert_eq!(read(MEMCACHED, &GET, "VALUE user:17 0 0\r\n\r\nEND\r\n"), value(b"", 0));
    assert_eq!(read(MEMCACHED, &GET, "VALUE user:17 0 7\r\n\r\nEND\r\n\r\nEND\r\n"), value(b"\r\nEND\r\n", 0));
    assert_eq!(read(MEMCACHED, &GET, "END\r\n"), Ok(Answer::Missing));
    assert_eq!(read(MEMCACHED, &SET, "STORED\r\n"), Ok(Answer::Done));
    assert_eq!(read(MEMCACHED, &SET, "NOT_STORED\r\n"), Ok(Answer::Refused("NOT_STORED")));
    assert_eq!(read(MEMCACHED, &DELETE, "DELETED\r\n"), Ok(Answer::Done));
    assert_eq!(read(MEMCACHED, &DELETE, "NOT_FOUND\r\n"), Ok(Answer::Missing));
    for request in [GET, SET, DELETE] {
        for refusal in ["ERROR", "SERVER_ERROR out of memory storing object", "CLIENT_ERROR bad data chunk"] {
            assert_eq!(read(MEMCACHED, &request, &format!("{refusal}\r\n")), Ok(Answer::Refused(refusal)));
        }
    }
}

#[test]
fn answers_of_redis() {
    let value = |value| Ok(Answer::Value { value, flags: 0 });
    assert_eq!(read(REDIS, &GET, "$3\r\nAda\r\n"), value(b"Ada"));
    assert_eq!(read(REDIS, &GET, "$0\r\n\r\n"), value(b""));
    assert_eq!(read(REDIS, &GET, "$4\r\n\r\n\r\n\r\n"), value(b"\r\n\r\n"));
    assert_eq!(read(REDIS, &GET, "$-1\r\n"), Ok(Answer::Missing));
    assert_eq!(read(REDIS, &SET, "+OK\r\n"), Ok(Answer::Done));
    assert_eq!(read(REDIS, &DELETE, ":1\r\n"), Ok(Answer::Done));
    assert_eq!(read(REDIS, &DELETE, ":0\r\n"), Ok(Answer::Missing));
    for request in [GET, SET, DELETE] {
        let refusal = "WRONGTYPE Operation against a key holding the wrong kind of value";
        assert_eq!(read(REDIS, &request, &format!("-{refusal}\r\n")), Ok(Answer::Refused(refusal)));
    }
}

#[test]
fn n8_what_memcached_must_not_send_is_garbage() {
    for said in [
        "VALUE user:18 0 3\r\nAda\r\nEND\r\n",
        "VALUE user:17 0 3\r\nAdams\r\nEND\r\n",
        "VALUE user:17 0 3\r\nAda\r\nVALUE user:18 0 0\r\n\r\nEND\r\n",
        "VALUE user:17 0\r\n",
        "VALUE user:17 0 3 9\r\nAda\r\nEND\r\n",
        "VALUE user:17 0 -1\r\n",
        "VALUE user:17 0 +3\r\nAda\r\nEND\r\n",
        "VALUE user:17 4294967296 3\r\nAda\r\nEND\r\n",
        "VALUE user:17 0 18446744073709551616\r\n",
        "STORED\r\n",
        "\r\n",
        "HTTP/1.1 400 Bad Request\r\n",
        "END\n\r\n",
    ] {
        assert!(matches!(read(MEMCACHED, &GET, said), Err(Wrong::Garbage(_))), "{said:?}");
    }
    for said in ["END\r\n", "DELETED\r\n", "VALUE user:17 0 3\r\nAda\r\nEND\r\n"] {
        assert!(matches!(read(MEMCACHED, &SET, said), Err(Wrong::Garbage(_))), "{said:?}");
    }
    for said in ["END\r\n", "STORED\r\n"] {
        assert!(matches!(read(MEMCACHED, &DELETE, said), Err(Wrong::Garbage(_))), "{said:?}");
    }
}

#[test]
fn n8_what_redis_must_not_send_is_garbage() {
    for said in [
        "$3\r\nAdams\r\n",
        "$-2\r\n",
        "$+3\r\nAda\r\n",
        "$\r\n",
        "$18446744073709551616\r\n",
        "*1\r\n$3\r\nAda\r\n",
        ":1\r\n",
        "+OK\r\n",
        "END\r\n",
        "\r\n",
    ] {
        assert!(matches!(read(REDIS, &GET, said), Err(Wrong::Garbage(_))), "{said:?}");
    }
    for said in [":1\r\n", "$-1\r\n", "+QUEUED\r\n"] {
        assert!(matches!(read(REDIS, &SET, said), Err(Wrong::Garbage(_))), "{said:?}");
    }
    for said in [":2\r\n", "+OK\r\n"] {
        assert!(matches!(read(REDIS, &DELETE, said), Err(Wrong::Garbage(_))), "{said:?}");
    }
}

/// Each is refused at its first line, before memory is allocated for the value, and however long the line is.
#[test]
fn n8_what_is_too_long_is_refused_before_it_has_come() {
    let (longest, longer) = (VALUE_MAX, VALUE_MAX + 1);
    assert_eq!(MEMCACHED.read(&GET, format!("VALUE user:17 0 {longest}\r\n").as_bytes()), Ok(None));
    assert_eq!(MEMCACHED.read(&GET, format!("VALUE user:17 0 {longer}\r\n").as_bytes()), Err(Wrong::TooLong));
    assert_eq!(REDIS.read(&GET, format!("${longest}\r\n").as_bytes()), Ok(None));
    assert_eq!(REDIS.read(&GET, format!("${longer}\r\n").as_bytes()), Err(Wrong::TooLong));
    for dialect in [MEMCACHED, REDIS] {
        assert_eq!(dialect.read(&GET, &[b'-'; 1_023]), Ok(None));
        assert!(matches!(dialect.read(&GET, &[b'-'; 1_024]), Err(Wrong::Garbage(_))));
    }
}

#[test]
fn n8_text_of_a_backend_that_is_no_text_is_garbage() {
    for said in [&b"-\xff\r\n"[..], b"-\x1b[2J\r\n", b"-a\rb\r\n"] {
        assert!(matches!(REDIS.read(&GET, said), Err(Wrong::Garbage(_))), "{said:?}");
    }
}

#[test]
fn where_a_backend_is_can_be_written_in_one_word() {
    let backend = |dialect, at| Ok(BackendAddress { dialect, at });
    let tcp = |place: &str| At::Tcp(place.into());
    let third = Dialect::Redis { database: 3 };
    for (text, is) in [
        ("memcached://127.0.0.1:11211", backend(MEMCACHED, tcp("127.0.0.1:11211"))),
        ("memcached://cache", backend(MEMCACHED, tcp("cache:11211"))),
        ("memcached://[::1]", backend(MEMCACHED, tcp("[::1]:11211"))),
        ("memcached:///run/x.sock", backend(MEMCACHED, At::Unix("/run/x.sock".into()))),
        ("redis://127.0.0.1", backend(REDIS, tcp("127.0.0.1:6379"))),
        ("redis://[::1]:6380/3", backend(third, tcp("[::1]:6380"))),
        ("redis://cache:6379/", backend(REDIS, tcp("cache:6379"))),
        ("redis+unix:///run/redis.sock", backend(REDIS, At::Unix("/run/redis.sock".into()))),
    ] {
        let read = text.parse::<BackendAddress>();
        assert_eq!(read, is, "{text}");
        assert_eq!(read.clone().unwrap().to_string().parse(), read, "{text}");
    }
}

#[test]
fn a_word_that_names_no_backend_is_refused_with_the_reason() {
    for (text, why) in [
        ("127.0.0.1:11211", "no ://"),
        ("http://127.0.0.1", "neither memcached nor Redis"),
        ("memcached://", "no host"),
        ("memcached:///", "no path"),
        ("memcached://::1", "brackets"),
        ("memcached://cache:0", "port"),
        ("memcached://cache:x", "port"),
        ("redis:///run/redis.sock", "redis+unix"),
        ("redis+unix://run/redis.sock", "begin with /"),
        ("redis://cache/one", "database"),
        ("redis://cache/+1", "database"),
        ("redis://:secret@cache", "passwords"),
    ] {
        let error = text.parse::<BackendAddress>().unwrap_err().to_string();
        assert!(error.contains(why) && error.contains("memcached://HOST:PORT"), "{text}: {error}");
    }
}

fn requests() -> impl Strategy<Value = BackendRequest<'static>> {
    prop::sample::select(vec![GET, SET, DELETE])
}

fn dialects() -> impl Strategy<Value = Dialect> {
    prop::sample::select(vec![MEMCACHED, REDIS])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(2026), ..ProptestConfig::default() })]

    #[test]
    fn n8_any_bytes_of_a_backend_are_an_answer_or_wrong(dialect in dialects(), request in requests(), bytes in vec(any::<u8>(), 0..2_000)) {
        if let Ok(Some((_, length))) = dialect.read(&request, &bytes) {
            prop_assert!(length <= bytes.len());
        }
    }

    /// A parsed response does not depend on what follows it.
    #[test]
    fn n8_an_answer_with_a_wrong_byte_is_an_answer_or_wrong(
        dialect in dialects(),
        request in requests(),
        which in 0..5_usize,
        at: prop::sample::Index,
        byte: u8,
        more in vec(any::<u8>(), 0..20),
    ) {
        let said = ["VALUE user:17 42 3\r\nAda\r\nEND\r\n", "$3\r\nAda\r\n", "STORED\r\n", ":1\r\n", "-ERR no\r\n"][which];
        let mut bytes = said.as_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let longer = [&bytes[..], &more].concat();
        if let Ok(Some(read)) = dialect.read(&request, &bytes) {
            prop_assert_eq!(dialect.read(&request, &longer), Ok(Some(read)));
        }
    }

    #[test]
    fn a_value_of_any_bytes_is_read_as_it_is(dialect in dialects(), value in vec(any::<u8>(), 0..3_000)) {
        let (head, behind) = match dialect {
            Dialect::Memcached => (format!("VALUE user:17 0 {}\r\n", value.len()), &b"\r\nEND\r\n"[..]),
            Dialect::Redis { .. } => (format!("${}\r\n", value.len()), &b"\r\n"[..]),
        };
        let bytes = [head.as_bytes(), &value, behind].concat();
        let is = Answer::Value { value: &value, flags: 0 };
        prop_assert_eq!(dialect.read(&GET, &bytes), Ok(Some((is, bytes.len()))));
    }
}

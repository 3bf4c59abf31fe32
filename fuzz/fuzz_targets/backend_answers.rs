//! Random bytes from memcached or Redis as the response to each request of an agent: a response, garbage, or incomplete. Bytes
//! that follow a response do not change it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use midflight_cache::backend::{Answer, Dialect};
use midflight_wire::cache::backend::{BackendRequest, VALUE_MAX};

fuzz_target!(|said: &[u8]| {
    let key = b"user:17";
    let set = BackendRequest::Set { key, value: b"Ada", flags: 0, expires_s: 0 };
    for dialect in [Dialect::Memcached, Dialect::Redis { database: 0 }] {
        for request in [BackendRequest::Get { key }, set, BackendRequest::Delete { key }] {
            if let Ok(Some((answer, length))) = dialect.read(&request, said) {
                assert_eq!(dialect.read(&request, &said[..length]), Ok(Some((answer, length))));
                assert_eq!(dialect.read(&request, &said[..length - 1]), Ok(None));
                assert!(matches!(answer, Answer::Value { value, .. } if value.len() <= VALUE_MAX) || length <= 1_024);
            }
        }
    }
});

//! Streams to an agent.

use crate::asker::{Asker, Stream, bytes_of, bytes_of_request, get, set};
use crate::scripted::{ScriptedBackend, Talk, answer, behaves};
use crate::{options, start, wait_for, wait_for_flag};
use midflight_host::cache::agent::AgentOptions;
use midflight_wire::cache::backend::{BackendAnswer, BackendRequest, VALUE_MAX};
use std::collections::BTreeMap;
use std::io::Write;
use std::net::Shutdown;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn keeps(kept: &Mutex<BTreeMap<String, Vec<u8>>>, talk: &mut Talk) {
    while let Some(line) = talk.line() {
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            ["get", key] => match kept.lock().unwrap().get(key) {
                Some(value) => talk.value(key, value),
                None => talk.say("END\r\n"),
            },
            ["set", key, _, _, length] => {
                let mut value = talk.bytes(length.parse::<usize>().unwrap() + 2);
                value.truncate(value.len() - 2);
                kept.lock().unwrap().insert(key.into(), value);
                talk.say("STORED\r\n");
            }
            ["delete", key] => match kept.lock().unwrap().remove(key) {
                Some(_) => talk.say("DELETED\r\n"),
                None => talk.say("NOT_FOUND\r\n"),
            },
            _ => panic!("{line:?}"),
        }
    }
}

fn backend() -> ScriptedBackend {
    let kept = Arc::new(Mutex::new(BTreeMap::new()));
    ScriptedBackend::start(move |_, talk| keeps(&kept, talk))
}

fn done() -> Vec<u8> {
    bytes_of(&BackendAnswer::Done)
}

fn missing() -> Vec<u8> {
    bytes_of(&BackendAnswer::Missing)
}

fn value(value: &[u8]) -> Vec<u8> {
    bytes_of(&BackendAnswer::Value { value, flags: 0 })
}

#[test]
fn values_of_all_lengths_are_set_read_and_deleted() {
    let backend = backend();
    let agent = start(AgentOptions { backend_timeout: Duration::from_secs(10), ..options(&backend.memcached()) });
    let mut stream = Stream::connect(agent.local_addr());
    for length in [0, 1, 1_080, 70_000, VALUE_MAX] {
        let bytes: Vec<u8> = (0..length).map(|at| (at * 31 % 251) as u8).collect();
        assert_eq!(stream.ask(&set("key", &bytes)), done());
        assert!(stream.ask(&get("key")) == value(&bytes), "{length} bytes");
    }
    assert_eq!(stream.ask(&BackendRequest::Delete { key: b"key" }), done());
    assert_eq!(stream.ask(&BackendRequest::Delete { key: b"key" }), missing());
    assert_eq!(stream.ask(&get("key")), missing());
    let counters = agent.report().counters;
    assert_eq!((counters.stream_gets, counters.stream_sets, counters.stream_deletes), (6, 5, 2));
    drop(stream);
    wait_for(&agent, "a stream that ends between two requests is no error", |_| agent.report().connections.open == 0);
    assert_eq!(agent.report().counters.stream_broken, 0);
}

#[test]
fn answers_come_in_the_order_of_requests() {
    let backend = backend();
    let agent = start(options(&backend.memcached()));
    let mut stream = Stream::connect(agent.local_addr());
    for number in 0..50 {
        stream.send(&set(&format!("k{number}"), format!("v{number}").as_bytes()));
        stream.send(&get(&format!("k{number}")));
    }
    for number in 0..50 {
        assert_eq!(stream.answer(), done());
        assert_eq!(stream.answer(), value(format!("v{number}").as_bytes()));
    }
}

#[test]
fn another_version_is_told_ours_and_the_stream_is_closed() {
    let backend = backend();
    let agent = start(options(&backend.memcached()));
    let mut stream = Stream::connect(agent.local_addr());
    let mut newer = bytes_of_request(&get("key"));
    newer[4] = 2;
    stream.tcp.write_all(&newer).unwrap();
    assert_eq!(stream.answer(), bytes_of(&BackendAnswer::OtherVersion { version: 1 }));
    assert!(stream.is_closed());
    wait_for(&agent, "it is counted", |counters| counters.other_version == 1);
}

#[test]
fn n8_a_stream_that_is_malformed_silent_late_or_broken_is_closed_and_counted() {
    let short = Duration::from_millis(100);
    let backend = backend();
    let timeouts = AgentOptions { request_timeout: short, idle_timeout: short, ..options(&backend.memcached()) };
    let agent = start(timeouts);
    let mut malformed = Stream::connect(agent.local_addr());
    malformed.tcp.write_all(b"get one\r\nget two\r\nget three\r\n").unwrap();
    assert!(malformed.is_closed());
    assert!(Stream::connect(agent.local_addr()).is_closed(), "silent");
    let mut late = Stream::connect(agent.local_addr());
    late.tcp.write_all(&bytes_of_request(&get("one"))[..22]).unwrap();
    assert!(late.is_closed());
    let mut idle = Stream::connect(agent.local_addr());
    assert_eq!(idle.ask(&get("one")), missing());
    assert!(idle.is_closed());
    let mut broken = Stream::connect(agent.local_addr());
    broken.tcp.write_all(&bytes_of_request(&get("one"))[..22]).unwrap();
    broken.tcp.shutdown(Shutdown::Write).unwrap();
    assert!(broken.is_closed());
    wait_for(&agent, "each once", |c| {
        [c.stream_malformed, c.stream_silent, c.stream_late, c.stream_idle, c.stream_broken] == [1; 5]
    });
}

#[test]
fn a_long_value_has_time_as_long_as_it_makes_progress() {
    let backend = backend();
    let agent = start(AgentOptions { request_timeout: Duration::from_millis(300), ..options(&backend.memcached()) });
    let mut stream = Stream::connect(agent.local_addr());
    let bytes = bytes_of_request(&set("key", &vec![b'x'; VALUE_MAX]));
    let begin = Instant::now();
    for part in bytes.chunks(300 << 10) {
        stream.tcp.write_all(part).unwrap();
        std::thread::sleep(Duration::from_millis(150));
    }
    assert_eq!(stream.answer(), done());
    assert!(begin.elapsed() > Duration::from_millis(500));
}

/// Fills the kernel's buffers by never reading.
#[test]
fn a_stream_that_does_not_read_is_closed() {
    let backend = backend();
    let agent = start(AgentOptions { progress_timeout: Duration::from_millis(200), ..options(&backend.memcached()) });
    let mut stream = Stream::connect(agent.local_addr());
    assert_eq!(stream.ask(&set("key", &vec![b'x'; VALUE_MAX])), done());
    for _ in 0..40 {
        // Fails once the agent has closed.
        let _ = stream.tcp.write_all(&bytes_of_request(&get("key")));
    }
    wait_for(&agent, "it is stalled", |counters| counters.stream_stalled == 1);
}

#[test]
fn t14_streams_beyond_the_bound_are_refused_in_words() {
    let backend = backend();
    let agent = start(AgentOptions { connections_max: 9, ..options(&backend.memcached()) });
    let mut streams: Vec<_> = (0..8).map(|_| Stream::connect(agent.local_addr())).collect();
    assert_eq!(streams[7].ask(&get("one")), missing());
    let mut ninth = Stream::connect(agent.local_addr());
    let refused = bytes_of(&BackendAnswer::Refused { why: "too many connections from this address" });
    assert_eq!(ninth.answer(), refused);
    assert!(ninth.is_closed());
    assert_eq!((agent.report().connections.refused, agent.report().connections.open), (1, 8));
}

/// Streams have their own backend connections and do not take the datagrams' slots, which the status reports.
#[test]
fn streams_do_not_wait_in_front_of_datagrams() {
    let is_told = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&is_told);
    let backend = ScriptedBackend::start(move |_, talk| {
        while let Some(line) = talk.line() {
            if line == "get slow" {
                wait_for_flag(&told);
                std::thread::sleep(Duration::from_millis(200));
            }
            answer(talk, &line);
        }
    });
    let agent = start(AgentOptions { slots: 1, stream_slots: 1, ..options(&backend.memcached()) });
    let mut streams: Vec<_> = (0..3).map(|_| Stream::connect(agent.local_addr())).collect();
    streams.iter_mut().for_each(|stream| stream.send(&get("slow")));
    let mut asker = Asker::new(agent.local_addr());
    assert_eq!(asker.get("one"), value(b"one"));
    is_told.store(true, Relaxed);
    let answers: Vec<_> = streams.iter_mut().map(Stream::answer).collect();
    let late = bytes_of(&BackendAnswer::Refused { why: "too many requests wait for the backend" });
    assert_eq!(answers.iter().filter(|answer| **answer == late).count(), 1, "the third one would wait 0.4 s");
    assert_eq!(answers.iter().filter(|answer| **answer == value(b"slow")).count(), 2);
    assert_eq!((agent.report().counters.stream_slots_taken, backend.connections()), (1, 2));
}

/// The client may have set the key elsewhere since; a late SET would restore the old value.
#[test]
fn a_request_whose_stream_has_ended_before_its_turn_is_not_carried_out() {
    let kept = Arc::new(Mutex::new(BTreeMap::from([("slow".to_owned(), b"1".to_vec())])));
    let of_backend = Arc::clone(&kept);
    let backend = ScriptedBackend::start(move |_, talk| {
        std::thread::sleep(Duration::from_millis(100));
        keeps(&of_backend, talk);
    });
    let options = options(&backend.memcached());
    let agent = start(AgentOptions { stream_slots: 1, backend_timeout: Duration::from_secs(10), ..options });
    let mut first = Stream::connect(agent.local_addr());
    first.send(&get("slow"));
    wait_for(&agent, "it has the slot", |counters| counters.stream_gets == 1);
    let mut leaves = Stream::connect(agent.local_addr());
    leaves.send(&set("key", b"late"));
    wait_for(&agent, "it waits", |counters| counters.stream_sets == 1);
    drop(leaves);
    assert_eq!(first.answer(), value(b"1"));
    wait_for(&agent, "it is not carried out", |counters| counters.stream_left == 1);
    assert_eq!(first.ask(&get("key")), missing());
    assert!(!kept.lock().unwrap().contains_key("key"));
}

/// An agent that ends first completes the answers in progress.
#[test]
fn a_long_value_that_is_being_read_is_not_cut_by_the_end() {
    let long = vec![b'x'; VALUE_MAX];
    let backend = ScriptedBackend::start(|_, talk| {
        while talk.line().is_some() {
            talk.value("long", vec![b'x'; VALUE_MAX]);
        }
    });
    let agent = start(AgentOptions { backend_timeout: Duration::from_secs(10), ..options(&backend.memcached()) });
    let mut stream = Stream::connect_narrowly(agent.local_addr());
    stream.send(&get("long"));
    // The agent has begun to write.
    assert_eq!(stream.tcp.peek(&mut [0]).unwrap(), 1);
    let ending = std::thread::spawn(move || {
        agent.finish();
        drop(agent);
    });
    std::thread::sleep(Duration::from_millis(50));
    assert!(stream.answer() == value(&long));
    ending.join().unwrap();
}

#[test]
fn redis_keeps_no_flags_and_the_agent_says_so() {
    let backend = ScriptedBackend::start(|_, talk| behaves(talk));
    let agent = start(options(&backend.redis()));
    let mut stream = Stream::connect(agent.local_addr());
    let with_flags = BackendRequest::Set { key: b"key", value: b"1", flags: 7, expires_s: 0 };
    assert_eq!(stream.refusal(&with_flags), "Redis keeps no flags: set values with flags 0, or use memcached");
    assert_eq!(agent.report().counters.backend_unsupported, 1);
}

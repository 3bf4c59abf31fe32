//! Misbehaving backends: each fault is counted by name, no client gets a wrong value, and the agent continues.

use crate::asker::{Asker, Back, Stream, bytes_of, get, set};
use crate::scripted::{ScriptedBackend, answer, behaves};
use crate::{PATIENCE, options, start, wait_for, wait_for_flag, wait_until};
use midflight_host::cache::agent::AgentOptions;
use midflight_wire::cache::backend::BackendAnswer;
use std::net::TcpListener;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn value(value: &[u8]) -> Vec<u8> {
    bytes_of(&BackendAnswer::Value { value, flags: 0 })
}

/// The late answer comes on the same connection, and must not be taken for that of the next request.
#[test]
fn a_backend_that_stalls_costs_one_request_and_its_late_answer_is_nobodys() {
    let (is_refused, has_answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (refused, answered) = (Arc::clone(&is_refused), Arc::clone(&has_answered));
    let backend = ScriptedBackend::start(move |number, talk| {
        if number > 0 {
            return behaves(talk);
        }
        while let Some(line) = talk.line() {
            wait_for_flag(&refused);
            answer(talk, &line);
            answered.store(true, Relaxed);
        }
    });
    let agent = start(AgentOptions { slots: 1, ..options(&backend.memcached()) });
    let mut asker = Asker::new(agent.local_addr());
    let begin = Instant::now();
    assert_eq!(asker.ask(&get("one")), Back::Refused);
    assert!(begin.elapsed() >= Duration::from_millis(300), "before the timeout: {:?}", begin.elapsed());
    is_refused.store(true, Relaxed);
    assert_eq!(asker.get("two"), value(b"two"));
    wait_for_flag(&has_answered);
    assert_eq!(asker.get("three"), value(b"three"));
    let report = agent.report();
    assert_eq!((report.counters.backend_timeouts, report.server.given_up, report.server.late_answers), (1, 1, 0));
    assert_eq!((report.counters.backend_garbage, backend.connections()), (0, 2));
}

/// Single bytes do not extend the timeout.
#[test]
fn a_backend_that_answers_byte_by_byte_is_not_waited_for() {
    let backend = ScriptedBackend::start(|_, talk| {
        if talk.line().is_some() {
            for byte in b"VALUE one 0 3\r\none\r\nEND\r\n" {
                talk.say([*byte]);
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    });
    let agent = start(options(&backend.memcached()));
    assert_eq!(Asker::new(agent.local_addr()).ask(&get("one")), Back::Refused);
    assert_eq!(agent.report().counters.backend_timeouts, 1);
}

#[test]
fn a_backend_that_closes_in_the_middle_of_an_answer_is_gone_for_that_request() {
    let backend = ScriptedBackend::start(|number, talk| {
        if number > 0 {
            return behaves(talk);
        }
        behaves_once(talk);
        talk.line();
        talk.say("VALUE two 0 3\r\ntw");
    });
    let agent = start(AgentOptions { slots: 1, ..options(&backend.memcached()) });
    let mut asker = Asker::new(agent.local_addr());
    assert_eq!(asker.get("one"), value(b"one"));
    assert_eq!(asker.ask(&get("two")), Back::Refused);
    assert_eq!(asker.get("two"), value(b"two"));
    let counters = agent.report().counters;
    assert_eq!((counters.backend_gone, counters.backend_closed_idle, counters.backend_connects), (1, 0, 2));
}

fn behaves_once(talk: &mut crate::scripted::Talk) {
    if let Some(line) = talk.line() {
        answer(talk, &line);
    }
}

#[test]
fn a_backend_that_closes_between_two_requests_is_connected_again() {
    let backend = ScriptedBackend::start(|_, talk| behaves_once(talk));
    let agent = start(AgentOptions { slots: 1, ..options(&backend.memcached()) });
    let mut asker = Asker::new(agent.local_addr());
    for number in 0..20 {
        let key = format!("k{number}");
        assert_eq!(asker.get(&key), value(key.as_bytes()));
    }
    let counters = agent.report().counters;
    assert_eq!((counters.values, counters.backend_gone, counters.backend_closed_idle), (20, 0, 19));
}

/// Each of these on a connection that has worked before, and as the first answer.
#[test]
fn n8_what_no_backend_may_send_is_refused_by_its_name() {
    for (said, is_redis) in [
        ("VALUE other 0 3\r\none\r\nEND\r\n", false),
        ("VALUE bad 0 2\r\none\r\nEND\r\n", false),
        ("VALUE bad 0 3\r\none\r\nEND\r\nEND\r\n", false),
        ("HTTP/1.1 400 Bad Request\r\n\r\n", false),
        ("STORED\r\n", false),
        ("+OK\r\n", true),
        ("$3\r\nlonger\r\n", true),
        ("$3\r\none\r\n$3\r\ntwo\r\n", true),
        ("*1\r\n$3\r\none\r\n", true),
    ] {
        let backend = ScriptedBackend::start(move |_, talk| {
            while let Some(line) = talk.line() {
                match (is_redis, line.as_str()) {
                    (false, "get bad") | (true, "bad") => talk.say(said),
                    (false, _) => answer(talk, &line),
                    (true, "good") => talk.say("$4\r\ngood\r\n"),
                    (true, _) => {}
                }
            }
        });
        let url = if is_redis { backend.redis() } else { backend.memcached() };
        let agent = start(AgentOptions { slots: 1, ..options(&url) });
        let mut asker = Asker::new(agent.local_addr());
        assert_eq!(asker.get("good"), value(b"good"), "{said:?}");
        assert_eq!(asker.ask(&get("bad")), Back::Refused, "{said:?}");
        assert!(agent.report().backend_is_gone.is_none(), "it has answered before");
        assert_eq!(asker.ask(&get("bad")), Back::Refused, "{said:?}, as the first answer");
        let report = agent.report();
        assert_eq!((report.counters.backend_garbage, report.counters.backend_connects), (2, 2), "{said:?}");
        assert!(report.backend_is_gone.is_some_and(|why| why.contains("the backend sends")), "{said:?}");
        wait_until("it is there again", || asker.ask(&get("good")) != Back::Refused, || said.into());
    }
}

/// Unexpected bytes would be taken for the next answer: Redis does not name keys.
#[test]
fn a_backend_that_speaks_unasked_gives_nobody_a_wrong_value() {
    let (said, has_spoken) = std::sync::mpsc::channel();
    let said = Mutex::new(said);
    let backend = ScriptedBackend::start(move |number, talk| {
        while let Some(line) = talk.line() {
            if line.starts_with("good") {
                talk.say("$4\r\ngood\r\n");
                if number == 0 {
                    std::thread::sleep(Duration::from_millis(30));
                    talk.say("$5\r\nwrong\r\n");
                    said.lock().unwrap().send(()).unwrap();
                }
            }
        }
    });
    let agent = start(AgentOptions { slots: 1, ..options(&backend.redis()) });
    let mut asker = Asker::new(agent.local_addr());
    assert_eq!(asker.get("good1"), value(b"good"));
    has_spoken.recv_timeout(PATIENCE).unwrap();
    assert_eq!(asker.get("good2"), value(b"good"));
    let counters = agent.report().counters;
    assert_eq!((counters.backend_spoke_unasked, counters.backend_garbage), (1, 0));
}

#[test]
fn a_value_that_is_too_long_is_refused_before_it_is_read() {
    let backend = ScriptedBackend::start(|_, talk| {
        while let Some(line) = talk.line() {
            match line.as_str() {
                "get long" => talk.say("VALUE long 0 1048577\r\n"),
                _ => answer(talk, &line),
            }
        }
    });
    let agent = start(AgentOptions { slots: 1, ..options(&backend.memcached()) });
    let mut asker = Asker::new(agent.local_addr());
    assert_eq!(asker.ask(&get("long")), Back::Refused);
    assert_eq!(asker.get("one"), value(b"one"));
    let mut stream = Stream::connect(agent.local_addr());
    assert_eq!(stream.refusal(&get("long")), "a value of more than 1 MiB");
    assert_eq!(stream.ask(&get("one")), value(b"one"));
    let report = agent.report();
    assert_eq!((report.counters.backend_too_long, report.counters.backend_gone), (2, 0));
    assert!(report.backend_is_gone.is_none());
}

#[test]
fn what_the_backend_refuses_is_refused_and_the_connection_is_kept() {
    let backend = ScriptedBackend::start(|_, talk| {
        while let Some(line) = talk.line() {
            match line.as_str() {
                "get bad" => talk.say("SERVER_ERROR out of memory writing get response\r\n"),
                _ => answer(talk, &line),
            }
        }
    });
    let agent = start(AgentOptions { slots: 1, ..options(&backend.memcached()) });
    let mut asker = Asker::new(agent.local_addr());
    assert_eq!(asker.ask(&get("bad")), Back::Refused);
    assert_eq!(asker.get("one"), value(b"one"));
    let counters = agent.report().counters;
    assert_eq!((counters.backend_refused, counters.backend_connects), (1, 1));
}

/// memcached reads the value of a refused SET as commands, and answers these too.
#[test]
fn after_a_set_that_was_refused_nothing_of_that_connection_is_believed() {
    let backend = ScriptedBackend::start(|_, talk| {
        while let Some(line) = talk.line() {
            if let Some(rest) = line.strip_prefix("set ") {
                let length: usize = rest.rsplit(' ').next().unwrap().parse().unwrap();
                talk.bytes(length + 2);
                talk.say("CLIENT_ERROR bad data chunk\r\n");
                std::thread::sleep(Duration::from_millis(20));
                talk.say("END\r\n");
            } else {
                answer(talk, &line);
            }
        }
    });
    let agent = start(AgentOptions { stream_slots: 1, ..options(&backend.memcached()) });
    let mut stream = Stream::connect(agent.local_addr());
    assert_eq!(stream.refusal(&set("one", b"get missing")), "the backend says CLIENT_ERROR bad data chunk");
    assert_eq!(stream.ask(&get("one")), value(b"one"));
    let counters = agent.report().counters;
    assert_eq!((counters.backend_refused, counters.backend_spoke_unasked, counters.backend_garbage), (1, 0, 0));
}

#[test]
fn an_agent_starts_before_its_backend_and_serves_when_that_is_there() {
    let place = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = place.local_addr().unwrap();
    drop(place);
    let agent = start(options(&format!("memcached://{address}")));
    assert!(agent.report().backend_is_gone.is_some_and(|why| why.contains("refused")));
    let mut asker = Asker::new(agent.local_addr());
    for _ in 0..100 {
        assert_eq!(asker.ask(&get("one")), Back::Refused);
    }
    let mut stream = Stream::connect(agent.local_addr());
    assert_eq!(stream.refusal(&get("one")), "the backend is not there");
    let counters = agent.report().counters;
    assert_eq!((counters.backend_gone, counters.backend_connects), (101, 0));
    assert!((1..=12).contains(&counters.backend_connect_failures), "{counters:?}");
    let _backend = ScriptedBackend::start_at(address, |_, talk| behaves(talk));
    wait_for(&agent, "it is there", |counters| counters.backend_connects > 0);
    wait_until("it is believed", || agent.report().backend_is_gone.is_none(), String::new);
    assert_eq!(asker.get("one"), value(b"one"));
    assert_eq!(stream.ask(&get("one")), value(b"one"));
}

/// It accepts and closes connections; the agent must not connect for every request.
#[test]
fn a_backend_that_closes_each_connection_is_asked_less_and_less() {
    let backend = ScriptedBackend::start(|_, talk| drop(talk.line()));
    let agent = start(options(&backend.memcached()));
    let mut asker = Asker::new(agent.local_addr());
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(1_500) {
        assert_eq!(asker.ask(&get("one")), Back::Refused);
    }
    // Attempts after 0.1, 0.3, 0.7 and 1.5 s, each followed by a request.
    assert!((2..=12).contains(&backend.connections()), "{}", backend.connections());
    assert!(agent.report().counters.backend_gone > 100);
}

#[test]
fn a_database_that_is_not_there_is_a_backend_that_is_gone() {
    let backend = ScriptedBackend::start(|_, talk| {
        while let Some(line) = talk.line() {
            if line == "17" {
                talk.say("-ERR DB index is out of range\r\n");
            }
        }
    });
    let agent = start(options(&format!("{}/17", backend.redis())));
    let why = agent.report().backend_is_gone.unwrap();
    assert_eq!(why, "it does not select the database: ERR DB index is out of range");
    assert_eq!(Asker::new(agent.local_addr()).ask(&get("one")), Back::Refused);
}

/// A listener that never accepts.
#[test]
fn a_backend_that_takes_no_connection_is_gone() {
    let backend = ScriptedBackend::start(|_, talk| talk.until_closed());
    // A connection counts only once its database is selected.
    let agent = start(options(&format!("{}/1", backend.redis())));
    assert_eq!(agent.report().backend_is_gone.as_deref(), Some("it does not take connections"));
    let counters = agent.report().counters;
    assert!((1..=2).contains(&counters.backend_connect_failures), "{counters:?}");
}

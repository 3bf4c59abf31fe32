//! `midflight agent` as a process, in front of a single-threaded backend.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{Running, assert_error, run, signal, wait_until};
use midflight_wire::cache::backend::{BackendAnswer, BackendRequest, parse_answer, write_request};
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// Answers `get` with the key, after the delay `takes`.
fn backend(listener: TcpListener, takes: Duration) {
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            std::thread::spawn(move || {
                let mut line = String::new();
                while stream.read_line(&mut line).is_ok_and(|length| length > 0) {
                    let key = line.trim_end().strip_prefix("get ").unwrap().to_owned();
                    std::thread::sleep(takes);
                    let answer = format!("VALUE {key} 0 {}\r\n{key}\r\nEND\r\n", key.len());
                    stream.get_mut().write_all(answer.as_bytes()).unwrap();
                    line.clear();
                }
            });
        }
    });
}

fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("memcached://{}", listener.local_addr().unwrap());
    (listener, url)
}

fn agent(backend: &str, more: &[&str]) -> Running {
    let arguments = ["agent", "--backend", backend, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"];
    Running::start(&[&arguments, more].concat())
}

fn send_get(agent: SocketAddr, key: &str) -> TcpStream {
    let mut stream = TcpStream::connect(agent).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut bytes = Vec::new();
    write_request(&BackendRequest::Get { key: key.as_bytes() }, &mut bytes);
    stream.write_all(&bytes).unwrap();
    stream
}

/// The value, or the reason why there is none.
fn answer(mut stream: TcpStream) -> Result<String, String> {
    let mut come = Vec::new();
    loop {
        match parse_answer(&come).unwrap().map(|(answer, _)| answer) {
            Some(BackendAnswer::Value { value, .. }) => return Ok(String::from_utf8(value.to_vec()).unwrap()),
            Some(BackendAnswer::Refused { why }) => return Err(why.to_owned()),
            Some(other) => panic!("{other:?}"),
            None => {}
        }
        let mut part = [0; 4_096];
        let length = stream.read(&mut part).unwrap();
        assert!(length > 0, "closed");
        come.extend_from_slice(&part[..length]);
    }
}

/// The body, and the load report in the header.
fn page(http: &str, path: &str, format: &str) -> (String, Option<String>) {
    let url = format!("http://{http}{path}");
    let mut response = ureq::get(url).header("endpoint-load-metrics-format", format).call().unwrap();
    let load = response.headers().get("endpoint-load-metrics").map(|load| load.to_str().unwrap().to_owned());
    (response.body_mut().read_to_string().unwrap(), load)
}

#[test]
fn an_agent_says_where_it_is_serves_and_ends_in_order() {
    let (listener, url) = listener();
    backend(listener, Duration::from_millis(300));
    let agent = agent(&url, &["--operator", "127.0.0.1:7700", "--senders", "127.0.0.1"]);
    let line = &agent.first_line;
    for part in [&url, " is there, ", "operator 127.0.0.1:7700", "status http://"] {
        assert!(line.contains(part), "no {part} in {line}");
    }
    assert_eq!(answer(send_get(agent.address(), "one")), Ok("one".into()));
    let (status, _) = page(&agent.http(), "/status", "");
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!((&status["counters"]["stream_gets"], &status["backend"]), (&1.into(), &url.into()));
    assert!(status["backend_is_gone"].is_null());
    assert_eq!(page(&agent.http(), "/healthz", "").0, "ok\n");
    let late = send_get(agent.address(), "two");
    wait_until("it has been asked", || {
        page(&agent.http(), "/metrics", "").0.contains("midflight_agent_events_total{name=\"stream_gets\"} 2")
    });
    signal(&agent.child, Signal::TERM);
    assert_eq!(answer(late), Ok("two".into()), "what it has begun is answered");
    assert_eq!(agent.end(), (Some(0), String::new()));
}

#[test]
fn an_agent_starts_before_its_backend_and_says_so() {
    let (listener, url) = listener();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let agent = agent(&url, &[]);
    for part in ["is not there yet (", "refused", "direct requests only"] {
        assert!(agent.first_line.contains(part), "no {part} in {}", agent.first_line);
    }
    assert_eq!(answer(send_get(agent.address(), "one")), Err("the backend is not there".into()));
    let http = agent.http();
    let load = page(&http, "/metrics", "").1.unwrap();
    assert!(load.starts_with("TEXT application_utilization=1, "), "{load}");
    backend(TcpListener::bind(address).unwrap(), Duration::ZERO);
    wait_until("the backend is found", || page(&http, "/metrics", "").0.contains("\nmidflight_agent_backend_up 1\n"));
    assert_eq!(answer(send_get(agent.address(), "one")), Ok("one".into()));
    let load = page(&http, "/metrics", "JSON").1.unwrap();
    let load: serde_json::Value = serde_json::from_str(load.strip_prefix("JSON ").unwrap()).unwrap();
    assert_eq!(
        (load["named_metrics"]["queue"].as_f64(), load["application_utilization"].as_f64()),
        (Some(0.0), Some(0.0))
    );
    signal(&agent.child, Signal::TERM);
    assert_eq!(agent.end().0, Some(0));
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    let backend = "memcached://127.0.0.1:1";
    let with = |more: &[&str]| run(&[&["agent", "--backend", backend, "--listen", "127.0.0.1:0"], more].concat());
    assert_error(&run(&["agent", "--listen", "127.0.0.1:0"]), 2, &["--backend"]);
    assert_error(&run(&["agent", "--backend", backend]), 2, &["--listen"]);
    assert_error(
        &run(&["agent", "--backend", "x", "--listen", "127.0.0.1:0"]),
        2,
        &["names no backend", "memcached://"],
    );
    assert_error(&run(&["agent", "--backend", backend, "--listen", "0.0.0.0:0"]), 2, &["--listen", "by its address"]);
    assert_error(&with(&["--senders", "127.0.0.1"]), 2, &["--operator"]);
    assert_error(&with(&["--slots", "0"]), 2, &["`slots` is 0", "1 to 65,536"]);
    assert_error(&with(&["--datagram-max", "1400"]), 2, &["`datagram_max` is 1400", "256 to 1232"]);
    assert_error(&with(&["--backend-timeout", "0s"]), 2, &["--backend-timeout"]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let _taken = TcpListener::bind(taken).unwrap();
    let said = run(&["agent", "--backend", backend, "--listen", &taken.to_string()]);
    assert_error(&said, 1, &[&taken.to_string(), "TCP", "another port"]);
}

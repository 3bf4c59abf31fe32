//! The server over loopback. Each source is an address of 127.0.0.0/8.

pub(crate) mod promtool;
mod watching;

use super::*;
use crate::cache::CacheStatus;
use crate::metrics::{ProgramStatus, Snapshot};
use crate::store::{SetStatus, StoreStatus};
use midflight_connections::testing::{PATIENCE, connect};
use midflight_dataplane::store::SetStats;
use promtool::assert_promtool_takes;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use zerocopy::FromZeros;

pub(super) const SOON: Duration = Duration::from_millis(50);

/// A limit so long that it closes no connection.
pub(super) fn patient() -> Limits {
    Limits { head_timeout: PATIENCE, request_timeout: PATIENCE, ..Limits::default() }
}

pub(super) struct Fixed(pub(super) Duration);

impl Source for Fixed {
    fn snapshot(&self) -> Box<dyn AnySnapshot> {
        Box::new(crate::tasks::status::tests::snapshot())
    }
    fn silent_for(&self) -> Duration {
        self.0
    }
}

fn serve(silent_ms: u64, limits: Limits) -> (tokio::runtime::Runtime, SocketAddr) {
    serve_source(Arc::new(Fixed(Duration::from_millis(silent_ms))), limits)
}

pub(super) fn serve_source(source: Arc<dyn Source>, limits: Limits) -> (tokio::runtime::Runtime, SocketAddr) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let server = runtime.block_on(async { Server::new(listener, limits) }).unwrap();
    let address = server.address();
    runtime.spawn(server.serve(source));
    (runtime, address)
}

pub(super) fn get_from(address: SocketAddr, path: &str) -> (u16, String) {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut response = agent.get(format!("http://{address}{path}")).call().unwrap();
    (response.status().as_u16(), response.body_mut().read_to_string().unwrap())
}

fn get(silent_ms: u64, path: &str) -> (u16, String) {
    let (_runtime, address) = serve(silent_ms, Limits::default());
    get_from(address, path)
}

pub(super) fn counts(address: SocketAddr) -> BTreeMap<String, u64> {
    let mut shell = serde_json::from_str::<crate::Snapshot>(&get_from(address, "/status").1).unwrap().shell;
    shell.retain(|name, count| name.starts_with("http_") && *count > 0);
    shell
}

pub(super) fn read_to_end(mut stream: &TcpStream) -> String {
    let mut bytes = Vec::new();
    // A connection that is closed with unread data is reset.
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8(bytes).unwrap()
}

/// The answer to `said` from source 1, and the counters after it.
fn talk(limits: Limits, said: &str) -> (String, BTreeMap<String, u64>) {
    let (_runtime, address) = serve(0, limits);
    let mut stream = connect(1, address);
    stream.write_all(said.as_bytes()).unwrap();
    (read_to_end(&stream), counts(address))
}

fn counted(name: &str) -> BTreeMap<String, u64> {
    BTreeMap::from([(name.to_owned(), 1)])
}

fn metrics_as(accept: &str) -> (String, String) {
    let (_runtime, address) = serve(0, Limits::default());
    let mut response = ureq::get(format!("http://{address}/metrics")).header("accept", accept).call().unwrap();
    let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
    (kind, response.body_mut().read_to_string().unwrap())
}

#[test]
fn metrics_are_classic_text_unless_openmetrics_are_asked_for() {
    let (kind, text) = metrics_as("*/*");
    assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8");
    assert!(
        text.contains("# TYPE midflight_tasks_submitted_total counter\nmidflight_tasks_submitted_total 10\n"),
        "{text}"
    );
    assert!(!text.contains("# EOF"), "{text}");
    let (kind, text) = metrics_as("application/openmetrics-text; version=1.0.0");
    assert_eq!(kind, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    assert!(text.contains("# TYPE midflight_tasks_submitted counter\nmidflight_tasks_submitted_total 10\n"), "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
}

fn snapshot_of<S: ProgramStatus>(program: S) -> Snapshot<S> {
    let Snapshot { version, listen, engine, epoch, uptime_ms, packets, drops, taken, shell, .. } =
        crate::tasks::status::tests::snapshot();
    Snapshot { version, listen, engine, epoch, uptime_ms, packets, drops, taken, program, shell }
}

#[test]
fn promtool_takes_the_metrics_of_every_switch() {
    assert_promtool_takes(&crate::tasks::status::tests::snapshot());
    let set = SetStatus::from(&SetStats::new_zeroed());
    assert_promtool_takes(&snapshot_of(StoreStatus { sets: vec![set] }));
    assert_promtool_takes(&snapshot_of(CacheStatus::new_zeroed()));
}

#[test]
fn health_follows_the_progress_of_the_data_path() {
    assert_eq!(get(1_000, "/healthz"), (200, "ok\n".into()));
    let (code, text) = get(1_500, "/healthz");
    assert_eq!((code, text.as_str()), (503, "the data path has made no progress for 1500 ms\n"));
}

#[test]
fn status_is_the_snapshot_as_json_with_the_servers_own_counts() {
    let (code, text) = get(0, "/status");
    assert_eq!(code, 200);
    let mut snapshot = serde_json::from_str::<crate::Snapshot>(&text).unwrap();
    assert_eq!(snapshot.shell.extract_if(.., |name, _| name.starts_with("http_")).count(), 13);
    assert_eq!(snapshot, crate::tasks::status::tests::snapshot());
}

#[test]
fn an_unknown_path_says_what_there_is() {
    let (code, text) = get(0, "/metric");
    assert_eq!((code, text.as_str()), (404, "there are /metrics, /healthz and /status\n"));
}

#[test]
fn a_taken_port_says_what_to_do() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let error = listen(taken.local_addr().unwrap()).unwrap_err().to_string();
    assert!(error.contains("in use") && error.ends_with("give another address with --http, or --http off"), "{error}");
}

#[test]
fn t14_a_connection_that_says_nothing_is_closed() {
    let (answer, counts) = talk(Limits { head_timeout: SOON, ..patient() }, "");
    assert_eq!((answer.as_str(), counts), ("", counted("http_head_late")));
}

#[test]
fn t14_a_head_that_trickles_in_is_closed() {
    let (_runtime, address) = serve(0, Limits { head_timeout: 4 * SOON, ..patient() });
    let mut stream = connect(1, address);
    stream.write_all(b"GET /healthz HTTP/1.1\r\nx: ").unwrap();
    while stream.write_all(b"x").is_ok() {
        std::thread::sleep(SOON / 10);
    }
    assert_eq!(counts(address), counted("http_head_late"));
}

#[test]
fn t14_a_request_that_takes_too_long_is_closed() {
    let (answer, counts) = talk(Limits { request_timeout: SOON, ..patient() }, "GET /healthz HTTP/1.1\r\n");
    assert_eq!((answer.as_str(), counts), ("", counted("http_late")));
}

#[test]
fn a_head_that_is_too_large_is_refused() {
    for head in [format!("x: {}", "x".repeat(8 << 10)), "x: x\r\n".repeat(2 << 10)] {
        let (answer, counts) = talk(patient(), &format!("GET /healthz HTTP/1.1\r\n{head}"));
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
        assert_eq!(counts, counted("http_head_too_large"));
    }
}

#[test]
fn what_is_not_http_is_refused() {
    let (answer, counts) = talk(patient(), "MB\x01\x01............\r\n");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert_eq!(counts, counted("http_malformed"));
}

#[test]
fn a_body_is_not_waited_for() {
    let (answer, counts) = talk(patient(), "GET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000000\r\n\r\nx");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("ok\n"), "{answer}");
    assert_eq!(counts, counted("http_served"));
}

#[test]
fn a_connection_carries_one_request() {
    let request = "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
    let (answer, counts) = talk(patient(), &request.repeat(3));
    assert_eq!((answer.matches("HTTP/1.1").count(), answer.matches("connection: close").count()), (1, 1), "{answer}");
    assert_eq!(counts, counted("http_served"));
}

#[test]
fn t14_a_source_that_takes_all_it_can_does_not_keep_health_from_others() {
    let (_runtime, address) = serve(0, patient());
    let idle: Vec<_> = (0..200).map(|_| connect(2, address)).collect();
    assert_eq!(get_from(address, "/healthz"), (200, "ok\n".into()));
    // On a slow machine the first ones have been silent for long before the last ones come.
    let (counts, of) = (counts(address), |counts: &BTreeMap<String, u64>, name| counts.get(name).copied().unwrap_or(0));
    assert_eq!(of(&counts, "http_refused") + of(&counts, "http_made_room"), 200 - 57);
    let refused = idle.iter().filter(|stream| stream.set_nonblocking(true).is_ok()).map(read_to_end);
    let refused: Vec<_> = refused.filter(|answer| !answer.is_empty()).collect();
    assert_eq!(refused.len() as u64, of(&counts, "http_refused"));
    let says_why = |answer: &String| answer.starts_with("HTTP/1.1 503 ") && answer.ends_with("from this address\n");
    assert!(refused.iter().all(says_why), "{refused:?}");
}

#[test]
fn t14_half_sent_requests_do_not_keep_health_from_their_own_address() {
    let (_runtime, address) = serve(0, patient());
    let half_sent = |_| {
        let mut stream = connect(1, address);
        stream.write_all(b"GET /healthz HTT").unwrap();
        stream
    };
    let _held: Vec<_> = (0..57).map(half_sent).collect();
    std::thread::sleep(Duration::from_millis(150));
    // These come from 127.0.0.1 too.
    assert_eq!(get_from(address, "/healthz"), (200, "ok\n".into()));
    assert!(counts(address)["http_made_room"] >= 1);
}

#[test]
fn t14_sources_that_fill_the_table_make_room_for_health() {
    let (_runtime, address) = serve(0, patient());
    let _idle: Vec<_> = (0..200).map(|n| connect(2 + n, address)).collect();
    assert_eq!(get_from(address, "/healthz"), (200, "ok\n".into()));
    assert_eq!(counts(address)["http_made_room"], 200 + 1 - 64);
}

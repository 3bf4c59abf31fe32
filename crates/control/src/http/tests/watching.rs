//! Tests of the page and of `/events`.

use super::super::*;
use super::{Fixed, SOON, counts, get_from, patient, read_to_end, serve_source};
use midflight_connections::testing::connect;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

#[derive(Default)]
struct Watched {
    looked: Arc<AtomicU64>,
}

struct Counting(Arc<AtomicU64>);

impl Observer for Counting {
    fn view(&mut self, viewers: u32) -> serde_json::Result<String> {
        Ok(format!("{{\"number\":{},\"viewers\":{viewers}}}", self.0.fetch_add(1, Relaxed) + 1))
    }
}

impl Source for Watched {
    fn snapshot(&self) -> Box<dyn AnySnapshot> {
        Fixed(Duration::ZERO).snapshot()
    }
    fn observer(self: Arc<Self>) -> Option<Box<dyn Observer>> {
        Some(Box::new(Counting(Arc::clone(&self.looked))))
    }
    fn silent_for(&self) -> Duration {
        Duration::ZERO
    }
}

fn serve(limits: Limits) -> (tokio::runtime::Runtime, SocketAddr, Arc<AtomicU64>) {
    let looked = Arc::new(AtomicU64::new(0));
    let (runtime, address) = serve_source(Arc::new(Watched { looked: Arc::clone(&looked) }), limits);
    (runtime, address, looked)
}

/// Returns the answer's head and a reader of the rest. `lines`: further lines of the request.
fn ask(source: u8, address: SocketAddr, path: &str, lines: &str) -> (String, BufReader<TcpStream>) {
    let mut stream = connect(source, address);
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\n{lines}\r\n").unwrap();
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap() > 0 {}
    (head.to_ascii_lowercase(), reader)
}

fn event(reader: &mut BufReader<TcpStream>) -> String {
    loop {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).unwrap() > 0, "the stream has ended");
        if let Some(data) = line.strip_prefix("data: ") {
            return data.trim_end().to_owned();
        }
    }
}

#[test]
fn the_page_and_all_that_it_refers_to_are_served() {
    let (_runtime, address, _) = serve(patient());
    let (code, page) = get_from(address, "/");
    assert_eq!(code, 200);
    let mut wanted: Vec<String> =
        page.split(['"']).filter(|part| part.starts_with("web/")).map(|part| format!("/{part}")).collect();
    let mut seen = 0;
    while let Some(path) = wanted.pop() {
        let (code, text) = get_from(address, &path);
        assert_eq!(code, 200, "{path}");
        let imports = text.split('"').filter(|part| part.starts_with("./") && part.ends_with(".js"));
        wanted.extend(imports.map(|part| format!("/web/{}", &part[2..])));
        seen += 1;
        assert!(seen < 100, "modules that import each other");
    }
    assert!(seen > 10, "{seen}");
    assert_eq!(get_from(address, "/web/../Cargo.toml").0, 404);
    assert_eq!(get_from(address, "/nothing").1, "there are /, /events, /metrics, /healthz and /status\n");
}

#[test]
fn a_browser_keeps_what_has_not_changed_and_runs_only_our_scripts() {
    let (_runtime, address, _) = serve(patient());
    let (head, _) = ask(1, address, "/", "");
    assert!(head.contains("content-security-policy: default-src 'none'; script-src 'self';"), "{head}");
    for part in
        ["x-content-type-options: nosniff", "referrer-policy: no-referrer", "cross-origin-resource-policy: same-origin"]
    {
        assert!(head.contains(part), "{head}");
    }
    let tag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
    for (known, status) in [(tag, "304"), (&*format!("\"x\", W/{tag}"), "304"), ("\"x\"", "200")] {
        let (head, _) = ask(1, address, "/", &format!("if-none-match: {known}\r\n"));
        assert!(head.starts_with(&format!("http/1.1 {status} ")), "{known}: {head}");
    }
}

#[test]
fn nothing_is_made_for_nobody_and_once_for_all() {
    let (_runtime, address, looked) = serve(patient());
    assert_eq!(get_from(address, "/status").0, 200);
    assert_eq!(looked.load(Relaxed), 0);
    let (head, mut first) = ask(1, address, "/events", "");
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    assert_eq!(event(&mut first), "{\"number\":1,\"viewers\":1}");
    let (_, mut second) = ask(2, address, "/events", "");
    for reader in [&mut first, &mut second] {
        while !event(reader).ends_with("\"viewers\":2}") {}
    }
    drop((first, second));
    // The server soon sees the ends of the connections; until then it may make another view.
    std::thread::sleep(PERIOD * 2);
    let after = looked.load(Relaxed);
    std::thread::sleep(PERIOD + PERIOD / 2);
    assert_eq!(looked.load(Relaxed), after, "nobody watches");
    let (_, mut third) = ask(1, address, "/events", "");
    assert!(event(&mut third).ends_with("\"viewers\":1}"));
}

fn why_refused((head, mut rest): (String, BufReader<TcpStream>)) -> String {
    assert!(head.starts_with("http/1.1 503 "), "{head}");
    let mut why = String::new();
    rest.read_line(&mut why).unwrap();
    why
}

#[test]
fn t14_viewers_are_bounded_and_stay_longer_than_a_request() {
    let (_runtime, address, _) = serve(Limits { request_timeout: 20 * SOON, ..patient() });
    let sources = 1..=u8::try_from(VIEWERS_MAX).unwrap();
    let mut viewers: Vec<_> = sources.map(|source| ask(source, address, "/events", "").1).collect();
    let refused = why_refused(ask(100, address, "/events", ""));
    assert_eq!(refused, "16 pages or `midflight top` watch already: close one\n");
    let counted = counts(address);
    assert_eq!((counted["http_viewers"], counted["http_viewers_refused"]), (VIEWERS_MAX as u64, 1));
    // The third comes after more than a second.
    let last = viewers.last_mut().unwrap();
    let events = [event(last), event(last), event(last)];
    assert!(events.iter().all(|event| event.contains("viewers")), "{events:?}");
    assert_eq!(counts(address).get("http_late"), None);
}

#[test]
fn t14_one_address_does_not_take_all_places_of_viewers() {
    let (_runtime, address, _) = serve(patient());
    let mut first: Vec<_> = (1..VIEWERS_MAX).map(|_| ask(1, address, "/events", "").1).collect();
    let refused = why_refused(ask(1, address, "/events", ""));
    assert_eq!(refused, "15 pages or `midflight top` watch already from this address: close one\n");
    let mut others: Vec<_> = (2..=4).map(|source| ask(source, address, "/events", "").1).collect();
    assert!(others.iter_mut().all(|other| event(other).contains("viewers")));
    // The first source fills the table: the two others evict its two youngest viewers.
    for gone in first.split_off(VIEWERS_MAX - 3) {
        assert!(read_to_end(gone.get_ref()).ends_with("0\r\n\r\n"), "the stream ends as it should");
    }
    assert!(first.iter_mut().all(|viewer| event(viewer).contains("viewers")));
    let counted = counts(address);
    let names = ["http_viewers", "http_viewers_refused", "http_viewers_made_room"];
    assert_eq!(names.map(|name| counted[name]), [18, 1, 2]);
}

#[test]
fn a_page_under_the_name_of_a_stranger_gets_nothing() {
    let (_runtime, address, looked) = serve(patient());
    for path in ["/", "/events", "/status", "/metrics", "/web/main.js"] {
        let mut stream = connect(1, address);
        write!(stream, "GET {path} HTTP/1.1\r\nhost: stranger.example:{}\r\n\r\n", address.port()).unwrap();
        let answer = read_to_end(&stream);
        assert!(answer.starts_with("HTTP/1.1 421 ") && answer.contains("http_names"), "{path}: {answer}");
    }
    let (head, _) = ask(1, address, "/events", "origin: http://stranger.example\r\n");
    assert!(head.starts_with("http/1.1 403 "), "{head}");
    assert_eq!((counts(address)["http_foreign"], looked.load(Relaxed)), (6, 0));
}

#[test]
fn what_has_no_page_has_no_events() {
    let (_runtime, address) = serve_source(Arc::new(Fixed(Duration::ZERO)), patient());
    for path in ["/", "/events", "/web/main.js"] {
        assert_eq!(get_from(address, path), (404, "there are /metrics, /healthz and /status\n".into()));
    }
}

//! `/metrics`, `/healthz` and `/status` of a switch, and the page with its `/events`. Runs on tokio, apart from the data path. A connection
//! carries one request and is bounded by [`Limits`].

mod exposition;
mod guard;
mod page;
mod viewer_table;
mod viewers;

pub use viewers::{PERIOD, VIEWERS_MAX};

use self::exposition::Exposition;
use self::viewers::Viewers;
use crate::load::{ASKED_FORMAT, HEADER};
use crate::metrics::{AnySnapshot, ShellCounters};
use crate::watch::Observer;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing::get};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use midflight_connections::{self as connections, ConnectionPlace, Connections};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// `/healthz` answers 503 after this long without progress of the data path's thread; normal is at least once per tick.
pub const HEALTHY_WITHIN: Duration = Duration::from_secs(1);

/// Age from which a connection without a whole request may be evicted for another one from its address. So a request over a slow link is
/// lost only if its address holds its share. Connections of a burst that is being accepted are younger.
const SILENT: Duration = Duration::from_millis(100);
const REFUSAL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-type: text/plain\r\n\r\n\
    too many connections from this address\n";

/// Bounds of the server. It reads only the head of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Concurrent connections. A single source address gets 8/9 of them (T14). Default 64.
    pub connections: usize,
    /// Time from the opening of the connection to the end of a request's head. Default 2 s.
    pub head_timeout: Duration,
    /// Bytes of a head. Default 8 KiB.
    pub head_bytes: usize,
    /// Time from the opening of the connection until its answer is read. A viewer of `/events` may stay longer while it reads: its
    /// connection ends when it leaves data unread for this time. Default 10 s.
    pub request_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            head_timeout: Duration::from_secs(2),
            head_bytes: 8 << 10,
            request_timeout: Duration::from_secs(10),
        }
    }
}

/// The process that the server shows.
pub trait Source: Send + Sync + 'static {
    /// A snapshot of it.
    fn snapshot(&self) -> Box<dyn AnySnapshot>;
    /// Makes views of it for viewers; `None`: it has no page.
    fn observer(self: Arc<Self>) -> Option<Box<dyn Observer>> {
        None
    }
    /// Host names, besides IP addresses and `localhost`, under which its page may be opened.
    fn host_names(&self) -> &[String] {
        &[]
    }
    /// Time since the data path's thread last made progress.
    fn silent_for(&self) -> Duration;
    /// Why it is not healthy, on one line.
    fn ailment(&self) -> Option<String> {
        let silent = self.silent_for();
        (silent > HEALTHY_WITHIN).then(|| format!("the data path has made no progress for {} ms", silent.as_millis()))
    }
}

/// The server cannot listen on the address.
#[derive(Debug, thiserror::Error)]
#[error("cannot serve HTTP on {address}: {error}; give another address with --http, or --http off")]
pub struct BindError {
    address: SocketAddr,
    error: std::io::Error,
}

/// A server that listens but does not serve yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    limits: Limits,
}

/// Listens on the address, which may need privileges.
///
/// # Errors
/// If the address is taken or is not this machine's.
pub fn listen(address: SocketAddr) -> Result<std::net::TcpListener, BindError> {
    connections::listen(address).map_err(|error| BindError { address, error })
}

impl Server {
    /// A server on the result of [`listen`]; call it within a tokio runtime.
    ///
    /// # Errors
    /// If the system cannot poll the socket.
    pub fn new(listener: std::net::TcpListener, limits: Limits) -> std::io::Result<Self> {
        let address = listener.local_addr()?;
        Ok(Self { listener: TcpListener::from_std(listener)?, address, limits })
    }

    /// Its address; the port is never 0.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves while it is polled.
    pub async fn serve(self, source: Arc<dyn Source>) {
        let Self { listener, limits, address } = self;
        let connections = Connections::evicting_silent(limits.connections, limits.request_timeout, SILENT);
        let has_page = Arc::clone(&source).observer().is_some();
        let served = Arc::new(Served {
            viewers: Viewers::new(Arc::clone(&source)),
            source,
            limits,
            connections: Arc::clone(&connections),
            counts: Counts::default(),
            is_on_loopback: address.ip().is_loopback(),
            has_page,
        });
        let serve = |stream, place| connection(stream, place, Arc::clone(&served));
        match connections.accept(&listener, REFUSAL, serve).await {}
    }
}

struct Served {
    source: Arc<dyn Source>,
    limits: Limits,
    connections: Arc<Connections>,
    counts: Counts,
    viewers: Arc<Viewers>,
    is_on_loopback: bool,
    has_page: bool,
}

struct Connection {
    served: Arc<Served>,
    place: Arc<ConnectionPlace>,
    /// Set for a viewer's connection, which stays open.
    watches: AtomicBool,
}

#[derive(Debug, Default)]
struct Counts {
    served: AtomicU64,
    head_late: AtomicU64,
    head_too_large: AtomicU64,
    malformed: AtomicU64,
    late: AtomicU64,
    broken: AtomicU64,
    foreign: AtomicU64,
}

impl Served {
    /// A snapshot that includes the server's own counters.
    fn snapshot(&self) -> Box<dyn AnySnapshot> {
        let mut snapshot = self.source.snapshot();
        snapshot.add_shell(self.counters());
        snapshot
    }

    fn counters(&self) -> ShellCounters {
        let (connections, counts) = (self.connections.counters(), &self.counts);
        let viewers = self.viewers.counts();
        let all = [
            ("http_served", counts.served.load(Relaxed)),
            ("http_refused", connections.refused),
            ("http_made_room", connections.made_room),
            ("http_accept_failed", connections.accept_failed),
            ("http_head_late", counts.head_late.load(Relaxed)),
            ("http_head_too_large", counts.head_too_large.load(Relaxed)),
            ("http_malformed", counts.malformed.load(Relaxed)),
            ("http_late", counts.late.load(Relaxed)),
            ("http_broken", counts.broken.load(Relaxed)),
            ("http_foreign", counts.foreign.load(Relaxed)),
            ("http_viewers", viewers.served.load(Relaxed)),
            ("http_viewers_refused", viewers.refused.load(Relaxed)),
            ("http_viewers_made_room", viewers.made_room.load(Relaxed)),
        ];
        all.map(|(name, count)| (name.to_owned(), count)).into()
    }
}

impl Counts {
    fn ended(&self, result: Result<hyper::Result<()>, tokio::time::error::Elapsed>) {
        let count = match result {
            Ok(Ok(())) => &self.served,
            Ok(Err(error)) if error.is_timeout() => &self.head_late,
            Ok(Err(error)) if error.is_parse_too_large() => &self.head_too_large,
            Ok(Err(error)) if error.is_parse() => &self.malformed,
            Ok(Err(_)) => &self.broken,
            Err(_elapsed) => &self.late,
        };
        count.fetch_add(1, Relaxed);
    }
}

/// Serves one connection, which keeps its place until then.
async fn connection(stream: TcpStream, place: ConnectionPlace, served: Arc<Served>) {
    let limits = &served.limits;
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .keep_alive(false)
        .header_read_timeout(limits.head_timeout)
        .max_header_size(limits.head_bytes);
    let connection =
        Arc::new(Connection { served: Arc::clone(&served), place: Arc::new(place), watches: AtomicBool::new(false) });
    let service = TowerToHyperService::new(router(Arc::clone(&connection)));
    let mut serving = pin!(http.serve_connection(TokioIo::new(stream), service));
    let ended = match timeout(limits.request_timeout, serving.as_mut()).await {
        // The kernel ends it if the viewer does not read (`Connections`).
        Err(_) if connection.watches.load(Relaxed) => Ok(serving.await),
        ended => ended,
    };
    // Before the stream is dropped: a test that sees the connection end must find it counted.
    served.counts.ended(ended);
}

fn router(connection: Arc<Connection>) -> Router {
    let (served, mut router) = (Arc::clone(&connection.served), Router::new());
    let mut paths = "there are /metrics, /healthz and /status\n";
    if served.has_page {
        paths = "there are /, /events, /metrics, /healthz and /status\n";
        router = router
            .route("/", get(async |asked: HeaderMap| page::file(page::PAGE, &asked)))
            .route("/web/{name}", get(async |Path(name): Path<String>, asked: HeaderMap| page::file(&name, &asked)))
            .route("/events", get(events));
    }
    if !served.is_on_loopback {
        // Prometheus uses any name that the network has for this machine.
        router = router.layer(middleware::from_fn_with_state(Arc::clone(&connection), guard));
    }
    router = router.route("/metrics", get(metrics)).route("/healthz", get(healthz)).route("/status", get(status));
    router = router.fallback(async move || (StatusCode::NOT_FOUND, paths));
    if served.is_on_loopback {
        router = router.layer(middleware::from_fn_with_state(Arc::clone(&connection), guard));
    }
    router.layer(middleware::from_fn_with_state(Arc::clone(&connection), heard)).with_state(connection)
}

/// Reports progress when the head is complete, so that the connection is not evicted as silent.
async fn heard(State(connection): State<Arc<Connection>>, request: Request, next: Next) -> Response {
    connection.place.progress();
    next.run(request).await
}

/// Refuses requests from foreign pages, and tells browsers to keep the answers to this page.
async fn guard(State(connection): State<Arc<Connection>>, request: Request, next: Next) -> Response {
    let served = &connection.served;
    let mut response = match guard::check(request.headers(), served.source.host_names()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => {
            served.counts.foreign.fetch_add(1, Relaxed);
            refusal.into_response()
        }
    };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    response
}

async fn events(State(connection): State<Arc<Connection>>) -> Response {
    connection.watches.store(true, Relaxed);
    let place = Arc::downgrade(&connection.place);
    connection.served.viewers.stream(connection.place.source(), move || {
        if let Some(place) = place.upgrade() {
            place.progress();
        }
    })
}

async fn metrics(State(connection): State<Arc<Connection>>, asked: HeaderMap) -> Response {
    let exposition = Exposition::preferred_by(&asked);
    let snapshot = connection.served.snapshot();
    let text = exposition.convert(snapshot.to_prometheus());
    // Caches must know that the answer depends on `Accept`.
    let kind = [(header::CONTENT_TYPE, exposition.content_type()), (header::VARY, "accept")];
    let mut response = (kind, text).into_response();
    let is_json = asked.get(ASKED_FORMAT).is_some_and(|format| format == "JSON");
    let load = snapshot.load().map(|load| if is_json { load.to_json() } else { load.to_text() });
    // Neither form has a character that a header may not have.
    if let Some(Ok(load)) = load.map(HeaderValue::try_from) {
        response.headers_mut().insert(HEADER, load);
    }
    response
}

async fn healthz(State(connection): State<Arc<Connection>>) -> Response {
    match connection.served.source.ailment() {
        None => "ok\n".into_response(),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, why + "\n").into_response(),
    }
}

async fn status(State(connection): State<Arc<Connection>>) -> Response {
    match connection.served.snapshot().to_json() {
        Ok(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

#[cfg(test)]
pub(crate) mod tests;

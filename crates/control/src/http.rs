//! `/metrics`, `/healthz` and `/status` of a switch. Runs on tokio, apart from the data path.

use crate::metrics::Snapshot;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::{Router, routing::get};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// Silence of the data path's thread after which `/healthz` answers 503. It turns at least once a tick.
pub const HEALTHY_WITHIN: Duration = Duration::from_secs(1);

/// What the server asks of a switch.
pub trait Source: Send + Sync + 'static {
    /// The switch now.
    fn snapshot(&self) -> Snapshot;
    /// Time since the data path's thread last made progress.
    fn silent_for(&self) -> Duration;
}

/// The address cannot be listened on.
#[derive(Debug)]
pub struct BindError {
    address: SocketAddr,
    error: std::io::Error,
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, error } = self;
        write!(f, "cannot serve HTTP on {address}: {error}; give another address with --http, or --http off")
    }
}

impl std::error::Error for BindError {}

/// A server that is bound, not yet served.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

/// Takes the address, which may need privileges; the server may come later.
///
/// # Errors
/// The address is taken or not this machine's.
pub fn listen(address: SocketAddr) -> Result<std::net::TcpListener, BindError> {
    std::net::TcpListener::bind(address).map_err(|error| BindError { address, error })
}

impl Server {
    /// A server on what [`listen`] gave; within a tokio runtime.
    ///
    /// # Errors
    /// Where the system refuses to wait for it.
    pub fn new(listener: std::net::TcpListener) -> std::io::Result<Self> {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Self { listener: TcpListener::from_std(listener)?, address })
    }

    /// The address that it got; its port is never 0.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is ready.
    ///
    /// # Errors
    /// The listener failed.
    pub async fn serve(
        self,
        source: Arc<dyn Source>,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> std::io::Result<()> {
        axum::serve(self.listener, router(source)).with_graceful_shutdown(stop).await
    }
}

fn router(source: Arc<dyn Source>) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthz))
        .route("/status", get(status))
        .fallback(async || (StatusCode::NOT_FOUND, "there are /metrics, /healthz and /status\n"))
        .with_state(source)
}

async fn metrics(State(source): State<Arc<dyn Source>>) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], source.snapshot().to_prometheus()).into_response()
}

async fn healthz(State(source): State<Arc<dyn Source>>) -> Response {
    let silent = source.silent_for();
    if silent <= HEALTHY_WITHIN {
        return "ok\n".into_response();
    }
    let text = format!("the data path has made no progress for {} ms\n", silent.as_millis());
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

async fn status(State(source): State<Arc<dyn Source>>) -> Response {
    Json(source.snapshot()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed(Duration);

    impl Source for Fixed {
        fn snapshot(&self) -> Snapshot {
            crate::metrics::tests::snapshot()
        }
        fn silent_for(&self) -> Duration {
            self.0
        }
    }

    /// Serves a switch that has been silent for `silent_ms`, and gets `path` from it.
    fn get(silent_ms: u64, path: &str) -> (u16, String) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let server = runtime.block_on(async { Server::new(listener) }).unwrap();
        let url = format!("http://{}{path}", server.address());
        runtime.spawn(server.serve(Arc::new(Fixed(Duration::from_millis(silent_ms))), std::future::pending()));
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let mut response = agent.get(&url).call().unwrap();
        (response.status().as_u16(), response.body_mut().read_to_string().unwrap())
    }

    #[test]
    fn metrics_are_openmetrics_text() {
        let (code, text) = get(0, "/metrics");
        assert_eq!(code, 200);
        assert!(text.contains("midflight_tasks_submitted_total 10\n") && text.ends_with("# EOF\n"), "{text}");
    }

    #[test]
    fn health_follows_the_progress_of_the_data_path() {
        assert_eq!(get(1_000, "/healthz"), (200, "ok\n".into()));
        let (code, text) = get(1_500, "/healthz");
        assert_eq!((code, text.as_str()), (503, "the data path has made no progress for 1500 ms\n"));
    }

    #[test]
    fn status_is_the_snapshot_as_json() {
        let (code, text) = get(0, "/status");
        assert_eq!(code, 200);
        assert_eq!(serde_json::from_str::<Snapshot>(&text).unwrap(), crate::metrics::tests::snapshot());
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
        assert!(
            error.contains("in use") && error.ends_with("give another address with --http, or --http off"),
            "{error}"
        );
    }
}

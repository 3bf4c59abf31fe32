//! The HTTP server of a process: `/metrics`, `/healthz` and `/status`.

use anyhow::{Context, Result};
use midflight_control::http::{Limits, Server, Source};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

/// A running server; dropping it ends it. The data path has a thread of its own.
#[derive(Debug)]
pub(crate) struct Http {
    address: SocketAddr,
    _runtime: tokio::runtime::Runtime,
}

impl Http {
    /// Serves what `source` says.
    pub(crate) fn serve(listener: TcpListener, source: Arc<dyn Source>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("mf-http")
            .enable_all()
            .build()
            .context("cannot start the HTTP server")?;
        let server = {
            let _within = runtime.enter();
            Server::new(listener, Limits::default())?
        };
        let address = server.address();
        runtime.spawn(server.serve(source));
        Ok(Self { address, _runtime: runtime })
    }

    /// Where it serves.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// For the first line that a process prints.
pub(crate) fn describe(http: Option<SocketAddr>) -> String {
    http.map_or_else(|| "off".into(), |address| format!("http://{address}"))
}

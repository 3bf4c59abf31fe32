//! The HTTP server of a process: `/metrics`, `/healthz` and `/status`.

use anyhow::{Context, Result};
use midflight_control::http::{Limits, Server, Source};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

/// Stops on drop. The data path has its own thread.
#[derive(Debug)]
pub(crate) struct Http {
    address: SocketAddr,
    _runtime: tokio::runtime::Runtime,
}

impl Http {
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

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// The HTTP server's part of the first line of output.
pub(crate) fn describe(http: Option<SocketAddr>) -> String {
    http.map_or_else(|| "off".into(), |address| format!("http://{address}"))
}

//! Bounds of blobs and of fetching them.

use std::path::PathBuf;
use std::time::Duration;

/// Bounds of blobs and of fetching them: make them by `default()`, then set fields.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlobOptions {
    /// Bytes in memory. Default 1 GiB.
    pub max_bytes: usize,
    /// Bytes in files: at executors, command outputs longer than 512 KiB, from their first byte; at clients, results. Default 16 GiB.
    pub max_file_bytes: u64,
    /// Directory of these unnamed files. Default: `$TMPDIR` or `/tmp`.
    pub directory: Option<PathBuf>,
    /// Connections at a time. A single source address gets at most 8/9 (T14). Default 512.
    pub max_connections: usize,
    /// Timeout for a connection's first request to begin, and for each request to arrive. Default 2 s.
    pub request_timeout: Duration,
    /// Idle timeout of a connection. Default 5 s.
    pub idle_timeout: Duration,
    /// Timeout at either end for 256 KiB of an answer or its rest, and of a fetch for its answer to begin. At most a day; default 10 s.
    pub progress_timeout: Duration,
    /// Time after which an executor drops an unfetched result. Default 10 minutes.
    pub result_ttl: Duration,
}

impl Default for BlobOptions {
    fn default() -> Self {
        Self {
            max_bytes: 1 << 30,
            max_file_bytes: 16 << 30,
            directory: None,
            max_connections: 512,
            request_timeout: Duration::from_secs(2),
            idle_timeout: Duration::from_secs(5),
            progress_timeout: Duration::from_secs(10),
            result_ttl: Duration::from_secs(600),
        }
    }
}

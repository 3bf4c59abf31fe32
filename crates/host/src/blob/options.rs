//! Bounds of what is kept for others to fetch.

use std::path::PathBuf;
use std::time::Duration;

/// Bounds of what is kept for others to fetch, and of fetching it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobOptions {
    /// Bytes kept in memory at once. Default 1 GiB.
    pub max_bytes: usize,
    /// Bytes kept in files at once: of an executor, outputs of commands that are longer than 512 KiB, also while they are
    /// written; of a client, results that are fetched into files. Default 16 GiB.
    pub max_file_bytes: u64,
    /// Where these files are. They have no names there. Default: that of temporary files, `$TMPDIR` or `/tmp`.
    pub directory: Option<PathBuf>,
    /// Connections served at once. A source address that is alone gets 8/9 of them (T14). Default 512.
    pub max_connections: usize,
    /// A connection begins its first request within this time, and ends each request within this time of its beginning.
    /// Default 2 s.
    pub request_timeout: Duration,
    /// A connection on which nothing more is asked for this long is closed. Default 5 s.
    pub idle_timeout: Duration,
    /// A connection on which 256 KiB of an answer, or what is left of it, take longer than this is closed, by either end.
    /// A fetch waits as long until its answer begins, also for a place. At most a day; default 10 s.
    pub progress_timeout: Duration,
    /// An executor drops a result that nobody has fetched or refused for this long. Default 10 minutes.
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

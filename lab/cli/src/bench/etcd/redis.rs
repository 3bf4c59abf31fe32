//! Clients of Redis: each has a TCP connection, without pipelining.

use super::load::{CLIENTS_OF_WORKER, Client, VALUE};
use anyhow::{Result, ensure};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(super) struct Connection(TcpStream);

pub(super) fn connect(server: SocketAddr) -> Result<Vec<Connection>> {
    let connect = |_| {
        let stream = std::net::TcpStream::connect(server)?;
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Connection(TcpStream::from_std(stream)?))
    };
    (0..CLIENTS_OF_WORKER).map(connect).collect()
}

fn bulk(bytes: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

impl Connection {
    async fn ask(&mut self, words: &[&[u8]], reply: &[u8]) -> Result<()> {
        let request =
            words.iter().fold(format!("*{}\r\n", words.len()).into_bytes(), |all, word| [all, bulk(word)].concat());
        self.0.write_all(&request).await?;
        let mut got = Vec::with_capacity(reply.len());
        while got.len() < reply.len() {
            let is_open = self.0.read_buf(&mut got).await? > 0;
            ensure!(is_open && reply.starts_with(&got), "Redis replied {:?}", String::from_utf8_lossy(&got));
        }
        Ok(())
    }
}

impl Client for Connection {
    async fn get(&mut self, key: String) -> Result<()> {
        self.ask(&[b"GET", key.as_bytes()], &bulk(VALUE)).await
    }

    async fn set(&mut self, key: String) -> Result<()> {
        self.ask(&[b"SET", key.as_bytes(), VALUE], b"+OK\r\n").await
    }
}

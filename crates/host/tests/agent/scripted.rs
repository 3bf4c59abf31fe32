//! A backend scripted by a test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

pub(crate) struct Talk {
    reader: BufReader<TcpStream>,
}

impl Talk {
    /// The next line, without its end; `None` if the agent has left.
    pub(crate) fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let length = self.reader.read_line(&mut line).unwrap_or(0);
        (length > 0).then(|| line.trim_end().to_owned())
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.reader.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Fails if the agent has left, as some tests want.
    pub(crate) fn say(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.reader.get_mut().write_all(bytes.as_ref());
    }

    /// Answers like memcached.
    pub(crate) fn value(&mut self, key: &str, value: impl AsRef<[u8]>) {
        let value = value.as_ref();
        self.say([format!("VALUE {key} 0 {}\r\n", value.len()).as_bytes(), value, b"\r\nEND\r\n"].concat());
    }

    pub(crate) fn until_closed(&mut self) {
        while self.line().is_some() {}
    }
}

pub(crate) struct ScriptedBackend {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    ends: Arc<AtomicBool>,
}

impl ScriptedBackend {
    /// Runs `script` on each connection; connections are numbered from 0.
    pub(crate) fn start(script: impl Fn(usize, &mut Talk) + Send + Sync + 'static) -> Self {
        Self::start_at(([127, 0, 0, 1], 0).into(), script)
    }

    pub(crate) fn start_at(address: SocketAddr, script: impl Fn(usize, &mut Talk) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        listener.set_nonblocking(true).unwrap();
        let (connections, ends) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let scripted = Self {
            address: listener.local_addr().unwrap(),
            connections: Arc::clone(&connections),
            ends: Arc::clone(&ends),
        };
        let script = Arc::new(script);
        std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                let Ok((stream, _)) = listener.accept() else {
                    std::thread::sleep(Duration::from_millis(1));
                    continue;
                };
                stream.set_nonblocking(false).unwrap();
                let (script, number) = (Arc::clone(&script), connections.fetch_add(1, Ordering::SeqCst));
                std::thread::spawn(move || script(number, &mut Talk { reader: BufReader::new(stream) }));
            }
        });
        scripted
    }

    pub(crate) fn memcached(&self) -> String {
        format!("memcached://{}", self.address)
    }

    pub(crate) fn redis(&self) -> String {
        format!("redis://{}", self.address)
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for ScriptedBackend {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

/// A correct backend: the key `missing` is missing; every other key has its name as its value.
pub(crate) fn behaves(talk: &mut Talk) {
    while let Some(line) = talk.line() {
        answer(talk, &line);
    }
}

pub(crate) fn answer(talk: &mut Talk, line: &str) {
    match line.strip_prefix("get ") {
        Some("missing") => talk.say("END\r\n"),
        Some(key) => talk.value(key, key),
        None => talk.say("ERROR\r\n"),
    }
}

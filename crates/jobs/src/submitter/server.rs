//! Connections of commands, one thread each. They read the store themselves; `submitter_loop` changes it.

use super::{Ask, Shared, Wish};
use crate::directory::StateDirectory;
use crate::kept::{Page, StoreError};
use crate::model::{COMMANDS_MAX, ITEMS_BYTES_MAX, JobSpec};
use crate::protocol::{
    Answer, CONNECTIONS_MAX, MESSAGE_MAX, PIECE_MAX, ProtocolError, Request, greet, receive, refuse, send,
};
use rustix::net::sockopt::socket_peercred;
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Time after which a [`Request::Wait`] is answered without a change.
const WAIT: Duration = Duration::from_secs(5);
const GREETED_WITHIN: Duration = Duration::from_secs(5);
const SILENCE_MAX: Duration = Duration::from_secs(600);
/// Page of jobs or ended commands in one answer; the command continues behind its last row.
const PAGE: Page = Page { rows: 1_000, bytes: MESSAGE_MAX / 2 };

pub(super) fn listen(directory: &StateDirectory, shared: Arc<Shared>, asks: mpsc::SyncSender<Ask>) -> io::Result<()> {
    let path = directory.socket();
    // The lock's holder is the only listener: a killed process left the socket.
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = midflight_files::listen(&path)?;
    let open = Arc::new(AtomicUsize::new(0));
    let accept = move || {
        for stream in listener.incoming() {
            if shared.stop.load(Ordering::Acquire) {
                return;
            }
            let Ok(mut stream) = stream else {
                std::thread::sleep(Duration::from_millis(10)); // no file descriptors left: do not keep a core busy
                continue;
            };
            if !is_ours(&stream) {
                tracing::warn!("a connection of another user was refused");
                continue;
            }
            let Some(counted) = Counted::one_of(&open) else {
                tracing::warn!("a connection was refused: there are {CONNECTIONS_MAX}");
                let _ = refuse(&mut stream); // does not block: the few bytes fit into the buffer; an error means that it was closed
                continue;
            };
            let (shared, asks) = (Arc::clone(&shared), asks.clone());
            let serve = move || {
                let _counted = counted;
                let mut peer = Peer { stream, shared: &shared, asks: &asks };
                if let Err(error) = peer.serve() {
                    tracing::debug!("a connection has ended: {error}");
                }
            };
            if let Err(error) = std::thread::Builder::new().name("mf-jobs-peer".into()).spawn(serve) {
                tracing::error!("cannot start a thread for a connection: {error}");
            }
        }
    };
    std::thread::Builder::new().name("mf-jobs".into()).spawn(accept).map(|_| ())
}

/// Counts a connection while it is open.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn one_of(open: &Arc<AtomicUsize>) -> Option<Self> {
        let one = Self(Arc::clone(open));
        (open.fetch_add(1, Ordering::Relaxed) < CONNECTIONS_MAX).then_some(one)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn is_ours(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid();
    socket_peercred(stream).is_ok_and(|peer| peer.uid == own || peer.uid.is_root())
}

struct Peer<'a> {
    stream: UnixStream,
    shared: &'a Shared,
    asks: &'a mpsc::SyncSender<Ask>,
}

impl Peer<'_> {
    fn serve(&mut self) -> Result<(), ProtocolError> {
        self.stream.set_read_timeout(Some(GREETED_WITHIN))?;
        self.stream.set_write_timeout(Some(SILENCE_MAX))?;
        greet(&mut self.stream)?;
        self.stream.set_read_timeout(Some(SILENCE_MAX))?;
        loop {
            let request = receive(&mut self.stream)?;
            let answer = self.answer(request)?;
            send(&mut self.stream, &answer)?;
        }
    }

    fn answer(&mut self, request: Request) -> Result<Answer, ProtocolError> {
        let store = &self.shared.store;
        let read = match request {
            Request::Submit { spec, switches } => return self.submit(spec, switches),
            Request::Items(_) | Request::End => return Err(ProtocolError::Malformed),
            Request::Output { job, place } => return self.output(job, place),
            Request::List { first } => store.jobs(first, PAGE).map(Answer::Jobs),
            Request::Show { job } => store.job(job).map(|row| match row {
                Some(row) => Answer::Jobs(vec![row]),
                None => no_job(job),
            }),
            Request::Ended { job, place } => store.ended_from(job, place, PAGE).map(Answer::Ended),
            Request::Wait { seen } => Ok(Answer::Changed(self.shared.wait(seen, WAIT))),
            Request::Status => Ok(Answer::Status(self.shared.status())),
            Request::Cancel(jobs) => return Ok(self.ask(Wish::Cancel(jobs))),
            Request::Remove(jobs) => return Ok(self.ask(Wish::Remove(jobs))),
        };
        Ok(read.unwrap_or_else(refused))
    }

    /// Returns when the change is on disk.
    fn ask(&self, wish: Wish) -> Answer {
        let (answer, answers) = mpsc::sync_channel(1);
        let ended = || Answer::Refused("the submitter is ending: run the command again".to_owned());
        if self.asks.send(Ask { wish, answer }).is_err() {
            return ended();
        }
        self.shared.wake();
        answers.recv().unwrap_or_else(|_| ended())
    }

    fn submit(&mut self, spec: Box<JobSpec>, switches: Vec<SocketAddr>) -> Result<Answer, ProtocolError> {
        let mut items = Vec::new();
        let mut bytes = 0;
        let mut is_complete = !spec.has_items;
        while !is_complete {
            match receive(&mut self.stream)? {
                Request::Items(more) => {
                    bytes += more.iter().map(|item| item.len() + size_of::<Vec<u8>>()).sum::<usize>();
                    items.extend(more);
                    if bytes > ITEMS_BYTES_MAX || items.len() > COMMANDS_MAX as usize {
                        return Err(ProtocolError::Malformed); // the command has checked these bounds
                    }
                }
                Request::End => is_complete = true,
                _ => return Err(ProtocolError::Malformed),
            }
        }
        Ok(self.ask(Wish::Submit { spec, items, switches }))
    }

    /// Returns the last answer.
    fn output(&mut self, job: u64, place: u32) -> Result<Answer, ProtocolError> {
        let store = &self.shared.store;
        let row = match store.ended(job, place) {
            Ok(row) => row,
            Err(error) => return Ok(refused(error)),
        };
        let Some(row) = row else { return Ok(Answer::EndOfOutput(None)) };
        if row.kept && row.stdout + row.stderr > 0 {
            let outputs = match store.outputs(job, place) {
                Ok(outputs) => outputs,
                Err(error) => return Ok(refused(error)),
            };
            let (stdout, stderr) = outputs.split_at(outputs.len().min(row.stdout as usize));
            for (stderr, output) in [(false, stdout), (true, stderr)] {
                for piece in output.chunks(PIECE_MAX) {
                    send(&mut self.stream, &Answer::Piece { stderr, bytes: piece.to_vec() })?;
                }
            }
        }
        Ok(Answer::EndOfOutput(Some(row)))
    }
}

fn refused(error: StoreError) -> Answer {
    Answer::Refused(error.to_string())
}

pub(super) fn no_job(job: u64) -> Answer {
    Answer::Refused(format!("there is no job {job}: `midflight job list` has all"))
}

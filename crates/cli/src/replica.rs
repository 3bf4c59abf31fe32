//! A replica in this process, with its HTTP server and operator's socket.

use crate::http::Http;
use crate::operator_socket::OperatorSocket;
use crate::options::buffers;
use anyhow::Result;
use midflight_control::ShellCounters;
use midflight_control::config::SocketConfig;
use midflight_control::http::Source;
use midflight_control::metrics::{AnySnapshot, named};
use midflight_control::store::{
    ReplicaAnswer, ReplicaName, ReplicaRequest, ReplicaStart, ReplicaStatus, SetTable, ToReplica, socket_path,
};
use midflight_control::watch::{Looking, Observer};
use midflight_host::store::backup;
use midflight_host::store::replica::{ReplicaOptions, ReplicaOrder, ReplicaProcess, ReplicaReport};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Which<'a> {
    pub set: &'a SetTable,
    pub id: u64,
    /// How to start without data.
    pub start: ReplicaStart,
    pub data: PathBuf,
    /// Acknowledged writes survive a power cut.
    pub fsync: bool,
    /// Listens for the other replicas; by default the replica itself does.
    pub links: Option<TcpListener>,
    pub socket: &'a SocketConfig,
    pub http: Option<SocketAddr>,
    /// Host names for its page, in addition to IP addresses and `localhost`.
    pub http_names: Vec<String>,
}

/// Stops on drop.
#[derive(Debug)]
pub(crate) struct RunningReplica {
    pub process: Arc<ReplicaProcess>,
    http: Option<Http>,
}

impl RunningReplica {
    /// Calls `on_failure` if it has to stop by itself.
    pub(crate) fn start(which: Which<'_>, on_failure: impl FnOnce() + Send + 'static) -> Result<Self> {
        let Which { set, id, start, data, fsync, links, socket, http, http_names } = which;
        let member = set.member(id).map_err(midflight_terminal::usage::error)?;
        let listener = http.map(midflight_control::http::listen).transpose()?;
        let path = socket_path(member.address);
        let operator = OperatorSocket::bind(Some(path), true, "midflight store members")?;
        let config = set.replica_config(id, start, rand::random());
        let options = ReplicaOptions {
            fsync,
            buffers: buffers(socket),
            busy_poll: socket.busy_poll,
            ..ReplicaOptions::new(config, member.address, member.links, data)
        };
        let process = Arc::new(ReplicaProcess::start_listening(options, links, on_failure)?);
        let (of_operator, name) = (Arc::downgrade(&process), set.name_of(id));
        operator.serve(move |asked| answer(&of_operator, name, asked))?;
        let source = Arc::new(Seen { process: Arc::clone(&process), set: set.number, http_names });
        let http = listener.map(|listener| Http::serve(listener, source)).transpose()?;
        Ok(Self { process, http })
    }

    pub(crate) fn http(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(Http::address)
    }
}

fn answer(process: &Weak<ReplicaProcess>, name: ReplicaName, asked: ToReplica) -> Result<ReplicaAnswer, String> {
    let request = asked.take(name)?;
    let process = process.upgrade().ok_or("the replica is ending")?;
    let order = match request {
        ReplicaRequest::Status => return Ok(ReplicaAnswer::Status(Box::new(status(&process, name.set)))),
        ReplicaRequest::Add(member) => ReplicaOrder::Add(member),
        ReplicaRequest::Remove(id) => ReplicaOrder::Remove(id),
        ReplicaRequest::Transfer(to) => ReplicaOrder::Transfer(to),
        ReplicaRequest::Flush => ReplicaOrder::Flush,
        ReplicaRequest::Backup(path) => {
            let backup = process.backup().map_err(|error| error.to_string())?;
            let written = backup::write(&backup, &path);
            return written.map(ReplicaAnswer::Keys).map_err(|error| format!("{}: {error}", path.display()));
        }
    };
    let done = if matches!(order, ReplicaOrder::Transfer(_)) { ReplicaAnswer::Done } else { ReplicaAnswer::Begun };
    process.order(order).map(|()| done).map_err(|error| error.to_string())
}

fn status(process: &ReplicaProcess, set: u16) -> ReplicaStatus {
    let ReplicaReport { status, counters, times, links, socket, direct } = process.report();
    let own = [
        ("direct_sent", direct.sent),
        ("direct_errors", direct.send_errors + direct.send_too_long),
        ("direct_dropped", direct.send_blocked),
    ];
    let own = named("", socket.by_name().into_iter().chain(own));
    let shell: ShellCounters = own.chain(named("links_", links.by_name())).collect();
    ReplicaStatus::new(set, &status, &counters, &times, shell)
}

struct Seen {
    process: Arc<ReplicaProcess>,
    set: u16,
    http_names: Vec<String>,
}

impl Source for Seen {
    fn snapshot(&self) -> Box<dyn AnySnapshot> {
        Box::new(status(&self.process, self.set))
    }

    fn observer(self: Arc<Self>) -> Option<Box<dyn Observer>> {
        Some(Box::new(Looking::new(move || Ok((status(&self.process, self.set), None::<()>)))))
    }

    fn host_names(&self) -> &[String] {
        &self.http_names
    }

    fn silent_for(&self) -> Duration {
        self.process.silent_for()
    }
}

//! etcd: three nodes with data on disk, and clients that speak gRPC.

use super::load::{CLIENTS_OF_WORKER, Client, PATIENCE, VALUE};
use crate::bench::turns::wait_for;
use crate::processes::Process;
use crate::store::cluster::Ground;
use anyhow::{Context, Result, ensure};
use midflight_terminal::files;
use std::fs::File;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use tempfile::TempDir;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

const NODES: usize = 3;
/// The others wait longer before they begin an election.
pub(super) const LEADER: usize = 0;
const ELECTION_TIMEOUTS_MS: [&str; NODES] = ["1000", "5000", "5000"];

/// Stopped on drop, and its files are removed.
pub(super) struct Etcd {
    clients: Vec<SocketAddr>,
    _nodes: Vec<Process>,
    _directory: TempDir,
}

impl Etcd {
    pub(super) fn start(ground: Ground<'_>, interrupted: &AtomicBool) -> Result<Self> {
        let directory = files::temporary("midflight-etcd-")?;
        let addresses = || (1..=NODES).map(|host| ground.free_tcp(host)).collect::<Result<Vec<_>>>();
        let (clients, peers) = (addresses()?, addresses()?);
        let members: Vec<_> = (1..).zip(&peers).map(|(id, peer)| format!("n{id}=http://{peer}")).collect();
        let mut nodes = Vec::new();
        for (id, (client, peer)) in (1..).zip(clients.iter().zip(&peers)) {
            let (client, peer) = (format!("http://{client}"), format!("http://{peer}"));
            let mut command = ground.command(id, "etcd");
            command.arg("--data-dir").arg(directory.path().join(format!("data-{id}")));
            command.args(["--name", &format!("n{id}"), "--logger", "zap", "--initial-cluster", &members.join(",")]);
            command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
            command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
            command.args(["--election-timeout", ELECTION_TIMEOUTS_MS[id - 1]]);
            let log = File::create(directory.path().join(format!("log-{id}")))?;
            nodes.push(Process::start(command.stderr(log))?);
        }
        let etcd = Self { clients, _nodes: nodes, _directory: directory };
        wait_for(ground, &etcd.clients, interrupted)?;
        Ok(etcd)
    }

    /// A worker's clients, which share a connection to a node.
    pub(super) fn connect(&self, node: usize) -> Result<Vec<Connection>> {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.clients[node]))?;
        let channel = endpoint.timeout(PATIENCE).tcp_nodelay(true).connect_lazy();
        Ok(vec![Connection(Grpc::new(channel)); CLIENTS_OF_WORKER])
    }
}

#[derive(Clone)]
pub(super) struct Connection(Grpc<Channel>);

const RANGE: &str = "/etcdserverpb.KV/Range";
const PUT: &str = "/etcdserverpb.KV/Put";

/// The parts of etcd's `RangeRequest` and `PutRequest` that are used here, which have the same numbers. A range without an end (field 2, the
/// value of a put) is one key. It is read linearizably unless field 7 is set. No crate for etcd is used, because they need `protoc`.
#[derive(Clone, PartialEq, prost::Message)]
struct Request {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// Of a range. That of a put has no pairs.
#[derive(Clone, PartialEq, prost::Message)]
struct Response {
    #[prost(message, repeated, tag = "2")]
    pairs: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct KeyValue {
    #[prost(bytes = "vec", tag = "5")]
    value: Vec<u8>,
}

impl Connection {
    async fn ask(&mut self, path: &'static str, request: Request) -> Result<Response> {
        self.0.ready().await.context("no connection to etcd")?;
        let codec = ProstCodec::<Request, Response>::default();
        let response = self.0.unary(tonic::Request::new(request), PathAndQuery::from_static(path), codec).await;
        Ok(response.context("an operation failed")?.into_inner())
    }
}

impl Client for Connection {
    async fn get(&mut self, key: String) -> Result<()> {
        let Response { pairs } = self.ask(RANGE, Request { key: key.into(), value: Vec::new() }).await?;
        ensure!(matches!(&pairs[..], [pair] if pair.value == VALUE), "etcd returned {pairs:?}");
        Ok(())
    }

    async fn set(&mut self, key: String) -> Result<()> {
        self.ask(PUT, Request { key: key.into(), value: VALUE.into() }).await.map(drop)
    }
}

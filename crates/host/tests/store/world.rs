//! A store: a switch and three replicas.

use midflight_dataplane::store::{NewSet, Outcome, Policy, ReplyCheck, SetOrder, StoreConfig, StoreProgram};
use midflight_endpoint::Nanos;
use midflight_host::store::StoreClient;
use midflight_host::store::replica::{ReplicaOptions, ReplicaProcess};
use midflight_host::{Switch, SwitchBuilder};
use midflight_store::replica::{Member, ReplicaConfig, Timing};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);
pub(super) const SET: u16 = 1;
const MS: Nanos = 1_000_000;
/// Longer than a busy machine delays a replica, so that elections and sessions end only by a test's actions.
const LEASE: Nanos = 1_000 * MS;

/// A port that was just free, for replicas that restart on it.
fn free_udp() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn free_tcp() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

fn member(id: u64, slot: u8) -> Member {
    Member { id, slot, address: free_udp(), links: free_tcp() }
}

pub(super) struct World {
    pub(super) switch: Switch<StoreProgram>,
    set: NewSet,
    pub(super) members: Vec<Member>,
    pub(super) replicas: Vec<Option<ReplicaProcess>>,
    pub(super) data: PathBuf,
    snapshot_after: usize,
}

impl World {
    pub(super) fn start(name: &str) -> Self {
        Self::with(name, 32 << 20)
    }

    pub(super) fn with(name: &str, snapshot_after: usize) -> Self {
        let data = std::env::temp_dir().join(format!("midflight-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&data);
        let members: Vec<_> = (1..=3).map(|id| member(id, id as u8 - 1)).collect();
        let replicas = members.iter().map(|member| member.address).collect();
        let switch = SwitchBuilder::<StoreProgram>::of(StoreConfig::default()).start().unwrap();
        let set = NewSet {
            number: SET,
            incarnation: rand::random(),
            lease_ns: LEASE,
            kgroup_bits: 12,
            reply_check: ReplyCheck::Strict,
            policy: Policy::LeaderAvoidance,
            replicas,
        };
        assert_eq!(switch.order(SetOrder::add(&set)).unwrap().outcome(), Outcome::Done);
        let mut world = Self { switch, set, members, replicas: vec![None, None, None], data, snapshot_after };
        (0..3).for_each(|i| world.start_replica(i));
        world
    }

    pub(super) fn options(&self, member: &Member, initial: Vec<Member>) -> ReplicaOptions {
        let mut config = ReplicaConfig::new(7, SET, member.id, initial, vec![self.switch.local_addr()], rand::random());
        config.founds = true;
        let (leader_lease, stagger) = (900 * MS, 100 * MS);
        config.timing = Timing { session_lease: LEASE, leader_lease, promise: LEASE, stagger, ..config.timing };
        config.snapshot_after = self.snapshot_after;
        ReplicaOptions::new(config, member.address, member.links, self.data.join(member.id.to_string()))
    }

    pub(super) fn start_replica(&mut self, i: usize) {
        let options = self.options(&self.members[i], self.members.clone());
        self.replicas[i] = Some(ReplicaProcess::start(options, || ()).unwrap());
    }

    pub(super) fn client(&self) -> StoreClient {
        StoreClient::builder().switch(self.switch.local_addr()).set(SET).connect().unwrap()
    }

    /// As an operator would.
    pub(super) fn change_reply_check(&self, reply_check: ReplyCheck) {
        let order = SetOrder::change(&NewSet { reply_check, ..self.set.clone() });
        assert_eq!(self.switch.order(order).unwrap().outcome(), Outcome::Done);
    }

    pub(super) fn leader(&self) -> usize {
        let mut leader = None;
        wait_until("a replica leads", || {
            let leads = |replica: &Option<ReplicaProcess>| {
                replica.as_ref().is_some_and(|replica| replica.report().status.session.is_some())
            };
            leader = self.replicas.iter().position(leads);
            leader.is_some()
        });
        leader.unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.replicas.clear();
        let _ = std::fs::remove_dir_all(&self.data);
    }
}

#[track_caller]
pub(super) fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < deadline, "still not so: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

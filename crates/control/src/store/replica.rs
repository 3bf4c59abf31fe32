//! A replica: its configuration from the table of its set, and its status.

use super::table::{SetTable, TimingTable, nanos};
use super::times::{TimesStatus, encode_times};
use crate::metrics::{ProcessStatus, ShellCounters, counter, counters, info, named, numbers};
use crate::watch::{Watched, grouped};
use midflight_store::replica::{Counters, Member, ReplicaConfig, ReplicaTimes, Role, StatusReport, Timing};
use prometheus_client::encoding::DescriptorEncoder;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

/// What a replica without data does at its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplicaStart {
    /// It refuses to start: it should have data.
    #[default]
    GoesOn,
    /// The set is new, and this is one of its first replicas.
    IsNew,
    /// The set exists and does not know the replica yet, which waits to be added.
    Joins,
}

impl SetTable {
    /// Its replicas, each with its slot.
    #[must_use]
    pub fn members(&self) -> Vec<Member> {
        let member = |(slot, replica): (usize, &super::ReplicaTable)| Member {
            id: replica.id,
            slot: slot as u8, // at most eight
            address: replica.address,
            links: replica.links,
        };
        self.replicas.iter().enumerate().map(member).collect()
    }

    /// The replica of this id.
    ///
    /// # Errors
    /// If there is none.
    pub fn member(&self, id: u64) -> Result<Member, String> {
        let found = self.members().into_iter().find(|member| member.id == id);
        let ids = || self.replicas.iter().map(|replica| replica.id.to_string()).collect::<Vec<_>>().join(", ");
        found.ok_or_else(|| format!("set {} has no replica {id} in the configuration, but {}", self.number, ids()))
    }

    /// The configuration of one of its replicas. `seed` is random.
    #[must_use]
    pub fn replica_config(&self, id: u64, start: ReplicaStart, seed: u64) -> ReplicaConfig {
        let members = self.members();
        let initial = if start == ReplicaStart::Joins { Vec::new() } else { members.clone() };
        ReplicaConfig {
            founds: start == ReplicaStart::IsNew,
            contacts: members,
            kgroup_bits: self.kgroup_bits,
            mode: self.reads,
            timing: (&self.timing).into(),
            store_bytes: self.bounds.store_bytes as usize,
            clients: self.bounds.clients as usize,
            client_idle: nanos(self.bounds.client_idle),
            waiting: self.bounds.waiting as usize,
            unsafe_bytes: self.bounds.unsafe_bytes as usize,
            snapshot_after: self.bounds.snapshot_after as usize,
            ..ReplicaConfig::new(self.cluster, self.number, id, initial, self.switches.clone(), seed)
        }
    }
}

impl From<&TimingTable> for Timing {
    fn from(table: &TimingTable) -> Self {
        Self {
            heartbeat: nanos(table.heartbeat),
            session_lease: nanos(table.session_lease),
            leader_lease: nanos(table.leader_lease),
            promise: nanos(table.promise),
            stagger: nanos(table.stagger),
            drift_ppm: table.drift_ppm.into(),
        }
    }
}

/// A replica at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaStatus {
    /// Version of the software.
    pub version: String,
    /// The replica set.
    pub set: u16,
    /// Its id.
    pub replica: u64,
    /// `leader`, `follower`, `learner`, `founder` (the set has not begun), `outside` (the set does not know it yet) or `removed`.
    pub role: String,
    /// How reads are served, by the name in configurations.
    pub reads: String,
    /// Raft's term.
    pub term: u64,
    /// The leader, if it knows one.
    pub leader: Option<u64>,
    /// The leader's: the current session, if it is active.
    pub session: Option<SessionStatus>,
    /// The leader's: earlier sessions that may be alive.
    pub sessions_in_doubt: u64,
    /// The leader's: whether it has its lease.
    pub has_lease: bool,
    /// The last index of its log.
    pub last_index: u64,
    /// The last index that it knows to be committed.
    pub committed: u64,
    /// The last index that it has applied.
    pub applied: u64,
    /// Keys in its store.
    pub keys: u64,
    /// Bytes of keys and values, including their overhead.
    pub store_bytes: u64,
    /// Bytes of log since the last snapshot.
    pub log_bytes: u64,
    /// Bytes that wait for its disk.
    pub unsafe_bytes: u64,
    /// Whether its disk is full: the reserve is left for deletes and elections.
    pub disk_full: bool,
    /// The leader's: whether a majority of the disks has room, so that it accepts all writes.
    pub has_room: bool,
    /// Client ids that may write.
    pub clients: u64,
    /// Reads that wait for an index or a quorum.
    pub reads_waiting: u64,
    /// The leader's: answers that wait for an index.
    pub answers_waiting: u64,
    /// The leader's: key groups that it knows to be unstable.
    pub kgroups_unstable: u64,
    /// The leader's: whether a change of members is in progress, for which a leaving member is still needed.
    pub is_changing: bool,
    /// The members.
    pub members: Vec<MemberStatus>,
    /// Histograms of times, by what they measure: `fsync`, `apply`, `read`, and the commands of writes.
    pub times: BTreeMap<String, TimesStatus>,
    /// Counters of its work, by name.
    pub counters: ShellCounters,
    /// Counters of socket, links and threads.
    pub shell: ShellCounters,
}

/// A session of a leader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStatus {
    /// Its SID: the term, and a counter in it.
    pub sid: u64,
    /// Its switch.
    pub switch: SocketAddr,
}

/// A member of a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberStatus {
    /// The member.
    #[serde(flatten)]
    pub member: Member,
    /// The last index up to which the leader knows its log to match.
    pub matched: u64,
}

impl ReplicaStatus {
    /// From a replica's report.
    #[must_use]
    pub fn new(set: u16, report: &StatusReport, done: &Counters, times: &ReplicaTimes, shell: ShellCounters) -> Self {
        let role = match report.role {
            Role::Leader => "leader",
            Role::Follower => "follower",
            Role::Learner => "learner",
            Role::Founder => "founder",
            Role::Outside => "outside",
            Role::Removed => "removed",
        };
        let member = |(member, matched): &(Member, u64)| MemberStatus { member: member.clone(), matched: *matched };
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            set,
            replica: report.id,
            role: role.into(),
            reads: report.mode.name().into(),
            term: report.term,
            leader: report.leader,
            session: report.session.map(|(sid, switch)| SessionStatus { sid, switch }),
            sessions_in_doubt: report.sessions_in_doubt as u64,
            has_lease: report.has_lease,
            last_index: report.last_index,
            committed: report.committed,
            applied: report.applied,
            keys: report.keys as u64,
            store_bytes: report.store_bytes as u64,
            log_bytes: report.log_bytes as u64,
            unsafe_bytes: report.unsafe_bytes as u64,
            disk_full: report.disk_full,
            has_room: report.has_room,
            clients: report.clients as u64,
            reads_waiting: report.reads_waiting as u64,
            answers_waiting: report.answers_waiting as u64,
            kgroups_unstable: report.kgroups_unstable as u64,
            is_changing: report.is_changing,
            members: report.members.iter().map(member).collect(),
            times: super::times::by_name(times),
            counters: named("", done.by_name()).collect(),
            shell,
        }
    }
}

impl ProcessStatus for ReplicaStatus {
    const PREFIX: &'static str = "midflight_replica";

    fn shell(&mut self) -> &mut ShellCounters {
        &mut self.shell
    }

    fn encode(&self, e: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let (replica, set) = (self.replica.to_string(), self.set.to_string());
        let labels = [
            ("version", self.version.as_str()),
            ("set", &set),
            ("replica", &replica),
            ("role", &self.role),
            ("reads", &self.reads),
        ];
        info(e, "about", "The replica", &labels)?;
        counters(e, "events", "What it has done, by name", "name", &self.counters)?;
        counters(e, "shell", "Counts of its socket, links and threads, by name", "name", &self.shell)?;
        counter(e, "term", "Raft's term", self.term)?;
        let refuses_writes = self.role == "leader" && !self.has_room;
        let all = [
            ("leads", "1 where it leads", u64::from(self.role == "leader")),
            ("session", "1 where it leads and has a session with a switch", u64::from(self.session.is_some())),
            ("sessions_in_doubt", "Earlier sessions that may be alive, of a leader", self.sessions_in_doubt),
            ("lease", "1 where it leads and has its lease", u64::from(self.has_lease)),
            ("log_index", "The last index of its log", self.last_index),
            ("committed_index", "What it knows to be committed", self.committed),
            ("applied_index", "What it has applied", self.applied),
            ("apply_lag", "Entries that are committed and not applied", self.committed.saturating_sub(self.applied)),
            ("keys", "Keys in its store", self.keys),
            ("store_bytes", "Bytes of keys and values, with what they cost beside", self.store_bytes),
            ("log_bytes", "Bytes of log since the last snapshot", self.log_bytes),
            ("unsafe_bytes", "Bytes that wait for its disk", self.unsafe_bytes),
            ("disk_full", "1 where its disk is full", u64::from(self.disk_full)),
            ("refuses_writes", "1 where it leads, and no majority of the disks has room", u64::from(refuses_writes)),
            ("clients", "Client ids that may write", self.clients),
            ("reads_waiting", "Reads that wait for an index or a quorum", self.reads_waiting),
            ("answers_waiting", "Answers that wait for an index, of a leader", self.answers_waiting),
            ("kgroups_unstable", "Key groups that are unstable, as far as a leader knows", self.kgroups_unstable),
        ];
        numbers(e, all)?;
        encode_times(e, &self.times)
    }
}

impl Watched for ReplicaStatus {
    fn program(&self) -> &'static str {
        "replica"
    }

    fn counts(&self) -> BTreeMap<String, u64> {
        let own =
            [("applied", self.applied), ("committed", self.committed)].map(|(name, count)| (name.to_owned(), count));
        grouped([("counters", &self.counters), ("shell", &self.shell)]).chain(own).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::AnySnapshot;
    use midflight_store::replica::Mode;

    fn status() -> ReplicaStatus {
        let set = SetTable::on_loopback(7, 3, 1, 7700);
        let report = StatusReport {
            id: 2,
            role: Role::Leader,
            mode: Mode::FollowerLease,
            term: 3,
            leader: Some(2),
            session: Some((3 << 32 | 1, set.switches[0])),
            sessions_in_doubt: 0,
            has_lease: true,
            last_index: 12,
            committed: 11,
            applied: 9,
            keys: 1,
            store_bytes: 100,
            log_bytes: 200,
            unsafe_bytes: 0,
            disk_full: true,
            has_room: false,
            clients: 1,
            reads_waiting: 0,
            answers_waiting: 1,
            kgroups_unstable: 3,
            is_changing: false,
            members: set.members().into_iter().map(|member| (member, 11)).collect(),
        };
        let done = Counters { reads_served: 5, ..Counters::default() };
        let mut times = ReplicaTimes::default();
        times.sync.add(3_000_000);
        times.write[1].add(5_000);
        ReplicaStatus::new(1, &report, &done, &times, ShellCounters::from([("links_broken".into(), 4)]))
    }

    #[test]
    fn metrics_say_what_the_status_says() {
        let text = status().to_prometheus();
        for line in [
            "midflight_replica_leads 1",
            "midflight_replica_apply_lag 2",
            "midflight_replica_kgroups_unstable 3",
            "midflight_replica_disk_full 1",
            "midflight_replica_refuses_writes 1",
            "midflight_replica_fsync_seconds_bucket{le=\"0.004096\"} 1",
            "midflight_replica_fsync_seconds_bucket{le=\"0.002048\"} 0",
            "midflight_replica_apply_seconds_count 0",
            "midflight_replica_operation_seconds_count{operation=\"put\"} 1",
            "midflight_replica_operation_seconds_sum{operation=\"put\"} 0.000005",
            "midflight_replica_events_total{name=\"reads_served\"} 5",
            "midflight_replica_shell_total{name=\"links_broken\"} 4",
            "midflight_replica_about_info{version=\"0.1.0\",set=\"1\",replica=\"2\",role=\"leader\",reads=\"follower-lease\"} 1",
        ] {
            assert!(text.lines().any(|l| l == line), "no line {line} in\n{text}");
        }
    }

    #[test]
    fn promtool_takes_the_metrics() {
        crate::http::tests::promtool::assert_promtool_takes(&status());
    }

    #[test]
    fn what_is_watched_are_all_counters_and_how_fast_entries_come() {
        let counts = status().counts();
        assert_eq!((counts["counters.reads_served"], counts["shell.links_broken"], counts["applied"]), (5, 4, 9));
    }

    #[test]
    fn a_set_of_the_configuration_makes_replicas_that_may_run() {
        let set = SetTable::on_loopback(7, 3, 2, 7700);
        assert_eq!(set.replica_config(2, ReplicaStart::GoesOn, 1).check(), Ok(()));
        assert_eq!(set.replica_config(2, ReplicaStart::Joins, 1).check(), Ok(()));
        assert_eq!(set.replica_config(2, ReplicaStart::GoesOn, 1).timing, Timing::default(), "the same defaults");
        let (ours, theirs) = (
            set.replica_config(2, ReplicaStart::GoesOn, 1),
            ReplicaConfig::new(7, 1, 2, set.members(), set.switches.clone(), 1),
        );
        assert_eq!(
            (ours.store_bytes, ours.clients, ours.client_idle, ours.waiting, ours.unsafe_bytes, ours.snapshot_after),
            (
                theirs.store_bytes,
                theirs.clients,
                theirs.client_idle,
                theirs.waiting,
                theirs.unsafe_bytes,
                theirs.snapshot_after
            ),
            "the same bounds"
        );
        assert_eq!(set.member(9).unwrap_err(), "set 1 has no replica 9 in the configuration, but 1, 2, 3");
    }
}

//! What a view of a store's switch adds: sessions, and each replica as the switch sees it.

use super::{Listed, rate};
use crate::store::{SetTable, StoreTable};
use midflight_dataplane::store::{Policy, ReplyCheck, Survey, SurveyedReplica, SurveyedSet};
use midflight_endpoint::{MS, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::net::SocketAddr;

/// Silence in heartbeats. A follower sends at every fifth, and the switch knows only when it sent the message that this answers: up to ten
/// heartbeats ago.
const SILENT_AFTER: u64 = 20;

/// The state of a replica, as its switch sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplicaState {
    /// Silent for twenty heartbeats, or never heard.
    Silent,
    /// Heard, but not a member: the leader does not name it.
    Out,
    /// In the session without reads (weight 0): it left reads unanswered, the leader does not hear it, it still learns, or only the leader
    /// serves reads.
    NoReads,
    /// Heard, but there is no session.
    Waits,
    /// In the session, and gets reads.
    Serves,
    /// The leader.
    Leads,
}

/// A replica.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplicaView {
    /// Its slot in the set.
    pub slot: u8,
    /// Its id; `None`: the switch's configuration has none at this address.
    pub replica: Option<u64>,
    /// Its address.
    pub address: String,
    /// Its state.
    pub state: ReplicaState,
    /// Age in milliseconds of the switch's message that it last answered; `None`: it was never heard.
    pub heard_ms: Option<u64>,
    /// Its share of reads, relative to the sum of all weights.
    pub weight: u16,
    /// The index up to which its log matches the leader's, as the leader reports.
    pub matched: u64,
    /// Entries by which it is behind the most advanced replica.
    pub lag: u64,
    /// Reads per second sent to it whose replies pass the switch; `None` in the first view.
    pub reads_per_s: Option<f64>,
    /// Their replies.
    pub replies_per_s: Option<f64>,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionView {
    /// Raft's term, in which the leader began it.
    pub term: u64,
    /// Counts sessions in the term.
    pub number: u64,
    /// Milliseconds to its end, if its leader sends nothing; `None`: it has ended.
    pub ends_in_ms: Option<u64>,
}

/// A replica set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetView {
    /// Its number.
    pub set: u16,
    /// The current or last session; `None`: there was none.
    pub session: Option<SessionView>,
    /// How a consistent replica is chosen for a read.
    pub policy: Policy,
    /// Which replies of followers pass.
    pub reply_check: ReplyCheck,
    /// Whether any replica may answer a read, because it checks itself whether it is up to date.
    pub any_replica: bool,
    /// Writes that neither their own answer nor a later one has completed.
    pub writes_under_way: u64,
    /// By slot.
    pub replicas: Vec<ReplicaView>,
}

/// The sets at one moment, and rates since the previous view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoreDetail {
    /// In the order of their places.
    pub sets: Listed<SetView>,
}

/// State between views.
#[derive(Debug)]
pub struct StoreWatch {
    sets: Vec<SetTable>,
    before: Option<(Nanos, HashMap<u16, SurveyedSet>)>,
}

impl StoreWatch {
    /// For a switch with this configuration.
    #[must_use]
    pub fn new(table: &StoreTable) -> Self {
        Self { sets: table.set.clone(), before: None }
    }

    /// The detail of this survey. `now` is its time.
    pub fn detail(&mut self, now: Nanos, survey: &Survey) -> StoreDetail {
        let sets = survey.sets.iter().map(|set| self.set(now, set)).collect();
        self.before = Some((now, survey.sets.iter().map(|set| (set.number, *set)).collect()));
        StoreDetail { sets: Listed::of(sets) }
    }

    fn set(&self, now: Nanos, set: &SurveyedSet) -> SetView {
        let table = self.sets.iter().find(|table| table.number == set.number);
        let is_active = now < set.lease_ends_ns;
        let session = (set.sid != 0).then(|| SessionView {
            term: set.sid >> 32,
            number: set.sid & 0xffff_ffff,
            ends_in_ms: is_active.then(|| (set.lease_ends_ns - now) / MS),
        });
        let before = self.before.as_ref().and_then(|(then, sets)| Some((*then, sets.get(&set.number)?)));
        let most = set.replicas.iter().map(|replica| replica.matched).max().unwrap_or(0);
        let replicas = set.replicas.iter().zip(0..).filter_map(|(replica, slot)| {
            let address = replica.address()?;
            let [reads_per_s, replies_per_s] = rates(now, set, usize::from(slot), before);
            Some(ReplicaView {
                slot,
                replica: table.and_then(|table| id(table, address)),
                address: address.to_string(),
                state: state(now, set, slot, replica, silent_after(table)),
                heard_ms: (replica.heard_ns != 0).then(|| now.saturating_sub(replica.heard_ns) / MS),
                weight: replica.weight,
                matched: replica.matched,
                lag: most - replica.matched,
                reads_per_s,
                replies_per_s,
            })
        });
        SetView {
            set: set.number,
            session,
            policy: set.policy(),
            reply_check: set.reply_check(),
            any_replica: set.is_any_replica(),
            writes_under_way: set.under_way,
            replicas: replicas.collect(),
        }
    }
}

fn id(table: &SetTable, address: SocketAddr) -> Option<u64> {
    table.replicas.iter().find(|replica| replica.address == address).map(|replica| replica.id)
}

fn silent_after(table: Option<&SetTable>) -> Nanos {
    let heartbeat =
        table.map(|table| table.timing.heartbeat).unwrap_or_else(|| crate::store::TimingTable::default().heartbeat);
    SILENT_AFTER * u64::try_from(heartbeat.as_nanos()).unwrap_or(Nanos::MAX / SILENT_AFTER)
}

fn state(now: Nanos, set: &SurveyedSet, slot: u8, replica: &SurveyedReplica, silent_after: Nanos) -> ReplicaState {
    let is_silent = replica.heard_ns == 0 || now.saturating_sub(replica.heard_ns) >= silent_after;
    match replica {
        _ if is_silent => ReplicaState::Silent,
        _ if now >= set.lease_ends_ns => ReplicaState::Waits,
        _ if slot == set.leader => ReplicaState::Leads,
        replica if !replica.is_taken() => ReplicaState::Out,
        replica if replica.weight == 0 => ReplicaState::NoReads,
        _ => ReplicaState::Serves,
    }
}

/// Counts restart with each session.
fn rates(now: Nanos, set: &SurveyedSet, slot: usize, before: Option<(Nanos, &SurveyedSet)>) -> [Option<f64>; 2] {
    let Some((then, before)) = before else { return [None; 2] };
    let seconds = (now.saturating_sub(then) as f64 / 1e9).max(1e-3);
    let (replica, base) = (&set.replicas[slot], &before.replicas[slot]);
    let base = if before.sid == set.sid { [base.sent, base.answered] } else { [0; 2] };
    // A survey during the beginning of a session may have the old number with new counts.
    let more = |now: u32, base: u32| Some(now.wrapping_sub(base)).filter(|more| *more < 1 << 31).unwrap_or(now);
    let more = [more(replica.sent, base[0]), more(replica.answered, base[1])];
    more.map(|more| Some(rate(more.into(), seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_endpoint::SECOND;

    const NOW: Nanos = 10 * SECOND;

    /// A set of three whose first replica leads, in a session of the fourth term.
    fn set(table: &SetTable) -> SurveyedSet {
        let mut set = SurveyedSet::default();
        (set.number, set.sid, set.leader) = (1, 4 << 32 | 2, 0);
        (set.lease_ns, set.lease_ends_ns) = (120 * MS, NOW + 100 * MS);
        for (replica, at) in set.replicas.iter_mut().zip(&table.replicas) {
            *replica = replica.at(at.address, true);
            (replica.heard_ns, replica.matched, replica.weight) = (NOW - 20 * MS, 90, 1);
        }
        set
    }

    fn watch() -> (StoreWatch, SetTable) {
        let table = SetTable::on_loopback(1, 3, 1, 7700);
        (StoreWatch::new(&StoreTable { set: vec![table.clone()], ..StoreTable::default() }), table)
    }

    fn states(view: &SetView) -> Vec<ReplicaState> {
        view.replicas.iter().map(|replica| replica.state).collect()
    }

    #[test]
    fn the_view_of_a_set_is_the_documented_one() {
        let (mut watch, table) = watch();
        let mut first = set(&table);
        (first.replicas[1].sent, first.replicas[1].answered) = (u32::MAX, 7);
        watch.detail(NOW, &Survey { sets: vec![first] });
        let mut next = first;
        next.lease_ends_ns += SECOND;
        next.replicas.iter_mut().for_each(|replica| replica.heard_ns += SECOND);
        (next.replicas[1].sent, next.replicas[1].answered, next.replicas[1].matched) = (99, 106, 88);
        (next.replicas[2].weight, next.under_way) = (0, 5);
        let detail = watch.detail(NOW + SECOND, &Survey { sets: vec![next] });
        let expected = serde_json::json!({"sets": {"more": 0, "shown": [{
        "set": 1, "session": {"term": 4, "number": 2, "ends_in_ms": 100}, "policy": "random", "reply_check": "strict",
        "any_replica": false, "writes_under_way": 5, "replicas": [
            {"slot": 0, "replica": 1, "address": "127.0.0.1:7710", "state": "leads", "heard_ms": 20, "weight": 1,
             "matched": 90, "lag": 0, "reads_per_s": 0.0, "replies_per_s": 0.0},
            {"slot": 1, "replica": 2, "address": "127.0.0.1:7720", "state": "serves", "heard_ms": 20, "weight": 1,
             "matched": 88, "lag": 2, "reads_per_s": 100.0, "replies_per_s": 99.0},
            {"slot": 2, "replica": 3, "address": "127.0.0.1:7730", "state": "no_reads", "heard_ms": 20, "weight": 0,
             "matched": 90, "lag": 0, "reads_per_s": 0.0, "replies_per_s": 0.0},
        ]}]}});
        assert_eq!(serde_json::to_value(&detail).unwrap(), expected);
    }

    #[test]
    fn a_replica_that_is_not_heard_is_silent_also_where_the_session_has_it() {
        let (mut watch, table) = watch();
        let mut dead = set(&table);
        dead.replicas[1].heard_ns = NOW - 400 * MS;
        dead.replicas[2] = dead.replicas[2].at(table.replicas[2].address, false);
        dead.replicas[2].weight = 0;
        let view = watch.detail(NOW, &Survey { sets: vec![dead] });
        assert_eq!(states(&view.sets.shown[0]), [ReplicaState::Leads, ReplicaState::Silent, ReplicaState::Out]);
    }

    #[test]
    fn r4_without_a_session_nobody_leads() {
        let (mut watch, table) = watch();
        let mut set = set(&table);
        set.lease_ends_ns = NOW;
        set.replicas[2].heard_ns = 0;
        let view = watch.detail(NOW, &Survey { sets: vec![set] });
        let view = &view.sets.shown[0];
        assert_eq!(states(view), [ReplicaState::Waits, ReplicaState::Waits, ReplicaState::Silent]);
        assert_eq!((view.session.as_ref().unwrap().ends_in_ms, view.replicas[2].heard_ms), (None, None));
    }

    #[test]
    fn counts_of_a_new_session_begin_anew() {
        let (mut watch, table) = watch();
        let mut before = set(&table);
        before.replicas[0].sent = 1_000;
        watch.detail(NOW, &Survey { sets: vec![before] });
        let mut after = set(&table);
        (after.sid, after.replicas[0].sent) = (5 << 32 | 1, 10);
        let view = watch.detail(NOW + SECOND / 2, &Survey { sets: vec![after] });
        assert_eq!(view.sets.shown[0].replicas[0].reads_per_s, Some(20.0));
    }
}

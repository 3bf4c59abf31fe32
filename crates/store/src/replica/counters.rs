/// Counts since the replica started, for metrics and tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// READs answered: with a value, or that the key does not exist.
    pub reads_served: u64,
    /// READs answered directly to the client; included in `reads_served`.
    pub reads_direct: u64,
    /// READs accepted as the leader of their session.
    pub reads_as_leader: u64,
    /// READs refused: the switch asks the leader, or the client repeats.
    pub reads_refused: u64,
    /// WRITEs received.
    pub writes: u64,
    /// WRITEs of another session than the current one.
    pub writes_of_other_sessions: u64,
    /// WRITEs that arrived after a later one of their key group.
    pub writes_reordered: u64,
    /// Entries applied.
    pub applied: u64,
    /// Key groups made stable after their last write was lost (REFRESH).
    pub refreshed: u64,
    /// Sessions started here.
    pub sessions: u64,
    /// Sessions that left their switch because clients could not reach it.
    pub sessions_moved: u64,
    /// Hand-overs to a replica that switches answer, as none answered this one.
    pub handed_over_to_reach: u64,
    /// Times that it became the leader.
    pub elections: u64,
    /// Hand-overs because its disk was slow or full.
    pub bad_disk_hand_overs: u64,
    /// Datagrams that are not packets, or not for a replica.
    pub malformed: u64,
    /// Packets of another set, or not from a switch of the set.
    pub foreign: u64,
    /// Answers of switches that are late or unsolicited.
    pub stray_answers: u64,
    /// Answers of switches with another session lease or number of key groups.
    pub unlike_switches: u64,
    /// Switches found, as a leader, to have had a leader of a later term.
    pub overtaken_switches: u64,
    /// WRITEs refused because no majority of the disks had room.
    pub writes_without_room: u64,
    /// Peer messages that are malformed, or not from a member.
    pub foreign_messages: u64,
    /// Peer messages that are invalid now: of another term's form, or against what is committed.
    pub unfit_messages: u64,
    /// Reports that reached a replica that does not lead, or from a non-member.
    pub loads_astray: u64,
    /// Lease requests refused: the follower lags, or this leader has no lease.
    pub leases_refused: u64,
    /// Leases and read indexes that came late, and requests for them to a replica that does not lead.
    pub grants_astray: u64,
    /// Messages to peers that were too long for a link.
    pub messages_too_long: u64,
    /// Messages of peers with other bounds, times or read mode.
    pub unlike_peers: u64,
    /// Messages of peers that lost their data or have another store, and messages before the set has begun.
    pub other_stores: u64,
    /// Heartbeats of leaders whose commit index is beyond this replica's log; their links were ended.
    pub contradictions: u64,
    /// Votes refused because of a promise.
    pub promised: u64,
    /// Requests dropped because a queue was full.
    pub overflowed: u64,
    /// Entries that cannot be decoded: a newer version wrote them.
    pub unknown_entries: u64,
    /// Snapshots written.
    pub snapshots: u64,
    /// Snapshots sent completely to replicas that were far behind.
    pub snapshots_sent: u64,
    /// Snapshots from a leader that were abandoned; Raft sends another one.
    pub transfers_refused: u64,
    /// Snapshots installed from a leader.
    pub restored: u64,
}

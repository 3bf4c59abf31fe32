//! What a replica has done, for metrics and tests.

/// Counts since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// READs answered with a value, or that there is none.
    pub reads_served: u64,
    /// Of these, answers that went to clients directly.
    pub reads_direct: u64,
    /// Of those served, as the leader, leader-only.
    pub reads_as_leader: u64,
    /// READs that this replica could not serve: the switch asks the leader, or the client repeats.
    pub reads_refused: u64,
    /// WRITEs that came.
    pub writes: u64,
    /// WRITEs of another session than the present one.
    pub writes_of_other_sessions: u64,
    /// WRITEs that came after a later one of their key group.
    pub writes_reordered: u64,
    /// Entries applied.
    pub applied: u64,
    /// Key groups made stable after their last write was lost.
    pub refreshed: u64,
    /// Sessions begun here.
    pub sessions: u64,
    /// Sessions that left their switch because clients did not reach it.
    pub sessions_moved: u64,
    /// Times that it gave leadership to a replica that switches answer, as none answered it.
    pub handed_over_to_reach: u64,
    /// Times that it became the leader.
    pub elections: u64,
    /// Times that it handed leadership over because its disk was slow, or full.
    pub bad_disk_hand_overs: u64,
    /// Datagrams that are no packet, or not for a replica.
    pub malformed: u64,
    /// Packets of another set, or of a sender that is no switch of it.
    pub foreign: u64,
    /// Answers of switches to questions that were not asked, or late ones.
    pub stray_answers: u64,
    /// Answers of switches that have another lease, or other key groups.
    pub unlike_switches: u64,
    /// Switches found to have had a leader of a later term, as a leader.
    pub overtaken_switches: u64,
    /// WRITEs refused because no majority of the disks had room.
    pub writes_without_room: u64,
    /// Messages of peers that are none, or of no member.
    pub foreign_messages: u64,
    /// Messages of peers that make no sense now: of another term's form, or against what is committed.
    pub unfit_messages: u64,
    /// Reports that came to a replica that does not lead, or from no member.
    pub loads_astray: u64,
    /// Leases that followers asked for in vain: they lag, or this replica has no lease as the leader.
    pub leases_refused: u64,
    /// Leases and read indexes that came late, or questions for one that came to who does not lead.
    pub grants_astray: u64,
    /// Messages to peers that are too long for a link.
    pub messages_too_long: u64,
    /// Messages of peers whose set has other bounds, times or another read mode.
    pub unlike_peers: u64,
    /// Messages of peers whose data is lost, or of another store; or that came before the set has begun.
    pub other_stores: u64,
    /// Heartbeats of leaders that count on more than this replica's log has: their links were ended.
    pub contradictions: u64,
    /// Votes refused because of a promise.
    pub promised: u64,
    /// Requests dropped because a queue was full.
    pub overflowed: u64,
    /// Entries that are no record: of a newer version.
    pub unknown_entries: u64,
    /// Snapshots written.
    pub snapshots: u64,
    /// Snapshots sent to the end, to replicas that were far behind.
    pub snapshots_sent: u64,
    /// Snapshots of a leader that were given up here: Raft sends another one.
    pub transfers_refused: u64,
    /// Snapshots taken from a leader.
    pub restored: u64,
}

midflight_endpoint::counters! {
    /// Counts since the replica started, for metrics and tests.
    pub struct Counters {
        /// READs answered: with a value, or that the key does not exist.
        pub reads_served,
        /// READs answered directly to the client; included in `reads_served`.
        pub reads_direct,
        /// READs accepted as the leader of their session.
        pub reads_as_leader,
        /// READs refused: the switch asks the leader, or the client repeats.
        pub reads_refused,
        /// WRITEs received.
        pub writes,
        /// WRITEs of another session than the current one.
        pub writes_of_other_sessions,
        /// WRITEs that arrived after a later one of their key group.
        pub writes_reordered,
        /// Entries applied.
        pub applied,
        /// Key groups made stable after their last write was lost (REFRESH).
        pub refreshed,
        /// Sessions started here.
        pub sessions,
        /// Sessions that left their switch because clients could not reach it.
        pub sessions_moved,
        /// Hand-overs to a replica that switches answer, as none answered this one.
        pub handed_over_to_reach,
        /// Times that it became the leader.
        pub elections,
        /// Hand-overs because its disk was slow or full.
        pub bad_disk_hand_overs,
        /// Datagrams that are not packets, or not for a replica.
        pub malformed,
        /// Packets of another set, or not from a switch of the set.
        pub foreign,
        /// Answers of switches that are late or unsolicited.
        pub stray_answers,
        /// Answers of switches with another session lease or number of key groups.
        pub unlike_switches,
        /// Switches found, as a leader, to have had a leader of a later term.
        pub overtaken_switches,
        /// WRITEs refused because no majority of the disks had room.
        pub writes_without_room,
        /// Peer messages that are malformed, or not from a member.
        pub foreign_messages,
        /// Peer messages that are invalid now: of another term's form, or against what is committed.
        pub unfit_messages,
        /// Reports that reached a replica that does not lead, or from a non-member.
        pub loads_astray,
        /// Lease requests refused: the follower lags, or this leader has no lease.
        pub leases_refused,
        /// Leases and read indexes that came late, and requests for them to a replica that does not lead.
        pub grants_astray,
        /// Messages to peers that were too long for a link.
        pub messages_too_long,
        /// Messages of peers with other bounds, times or read mode.
        pub unlike_peers,
        /// Messages of peers that lost their data or have another store, and messages before the set has begun.
        pub other_stores,
        /// Heartbeats of leaders whose commit index is beyond this replica's log; their links were ended.
        pub contradictions,
        /// Votes refused because of a promise.
        pub promised,
        /// Requests dropped because a queue was full.
        pub overflowed,
        /// Keys removed because they had expired.
        pub expired,
        /// Entries that cannot be decoded: a newer version wrote them.
        pub unknown_entries,
        /// Snapshots written.
        pub snapshots,
        /// Snapshots sent completely to replicas that were far behind.
        pub snapshots_sent,
        /// Snapshots from a leader that were abandoned; Raft sends another one.
        pub transfers_refused,
        /// Snapshots installed from a leader.
        pub restored,
    }
}

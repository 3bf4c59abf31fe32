//! The last write of each key group. Replies to READs carry its SEQ, so that the switch forwards a reply that shows a later write than
//! the READ expected. A reply may always repeat its READ's SEQ, so snapshots omit these numbers.

use super::entry::SessionName;
use super::writes::kgroup_of;

/// The largest SEQ applied in the current session, by key group.
pub(super) struct Seqs {
    kgroup_bits: u8,
    /// The session's SID; 0 if unknown.
    sid: u64,
    last: Vec<u64>,
}

impl Seqs {
    pub(super) fn new(kgroup_bits: u8) -> Self {
        Self { kgroup_bits, sid: 0, last: vec![0; 1 << kgroup_bits] }
    }

    /// Later entries belong to the last of these sessions, or to a later one. (If the last session is fenced, and so missing, the next
    /// session's entry precedes any write.)
    pub(super) fn begin(&mut self, sessions: &[SessionName]) {
        let sid = sessions.last().map_or(0, |session| session.sid);
        if sid != self.sid {
            self.sid = sid;
            self.last.fill(0);
        }
    }

    /// A leader proposes a session's writes between its entry and the next session's, so the SEQ belongs to the last session.
    pub(super) fn applied(&mut self, hash: u32, seq: u64) {
        let last = &mut self.last[kgroup_of(hash, self.kgroup_bits) as usize];
        *last = seq.max(*last);
    }

    pub(super) fn of_reply(&self, sid: u64, hash: u32, seq: u64) -> u64 {
        if sid != self.sid {
            return seq;
        }
        // A REFRESH raises a group's SEQ without an entry, so the READ's own may be larger.
        seq.max(self.last[kgroup_of(hash, self.kgroup_bits) as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: u32 = 0;
    const OTHER: u32 = 1 << 31;

    fn sessions(sids: &[u64]) -> Vec<SessionName> {
        let switch = "10.0.0.1:7700".parse().unwrap();
        sids.iter().map(|&sid| SessionName { sid, switch, incarnation: 9 }).collect()
    }

    #[test]
    fn r6_a_reply_has_the_seq_of_the_last_write_of_its_key_group() {
        let mut seqs = Seqs::new(1);
        seqs.begin(&sessions(&[7]));
        seqs.applied(ONE, 3);
        assert_eq!(seqs.of_reply(7, ONE, 1), 3, "a later write than the READ knew of");
        assert_eq!(seqs.of_reply(7, ONE, 4), 4, "a REFRESH has no entry");
        assert_eq!(seqs.of_reply(7, OTHER, 1), 1, "another key group");
    }

    #[test]
    fn r1_the_seq_of_another_session_is_not_said() {
        let mut seqs = Seqs::new(1);
        seqs.begin(&sessions(&[7]));
        seqs.applied(ONE, 3);
        assert_eq!(seqs.of_reply(8, ONE, 0), 0, "a READ of a session whose entry is not applied here");
        seqs.begin(&sessions(&[7, 8]));
        assert_eq!(seqs.of_reply(8, ONE, 0), 0, "forgotten with its session");
        seqs.applied(ONE, 1);
        assert_eq!(seqs.of_reply(7, ONE, 0), 0, "a late READ");
        seqs.begin(&[]);
        assert_eq!(seqs.of_reply(8, ONE, 0), 0, "a snapshot without sessions");
    }
}

//! Chooses the successor of a leader that hears no majority or that no switch answers.

use super::Replica;
use super::switches::is_silent;
use midflight_endpoint::Nanos;

impl Replica {
    /// The voter that `may` lead and has the longest known log, among those heard about as late as any other: a leader that hears none
    /// cannot tell which have failed since.
    pub(super) fn choose_successor(&self, may: impl Fn(u64) -> bool) -> Option<u64> {
        let learner = self.node.learner();
        let others = self.state.members.iter().map(|member| member.id);
        let others: Vec<u64> = others.filter(|&id| id != self.config.id && Some(id) != learner && may(id)).collect();
        let heard = |id: &u64| self.heard.get(id).copied().unwrap_or(0);
        let latest = others.iter().map(heard).max()?;
        let heard_late = others.iter().copied().filter(|id| !is_silent(latest, heard(id), &self.config.timing));
        heard_late.max_by_key(|&id| self.node.matched(id))
    }

    pub(super) fn take_reach(&mut self, now: Nanos, peer: u64, is_heard: bool) {
        let is_member = self.state.members.iter().any(|member| member.id == peer);
        match &mut self.sessions {
            Some(sessions) if is_member => sessions.note_reach(now, peer, is_heard),
            _ => self.counters.loads_astray += 1,
        }
    }

    /// If no switch answers this leader, hands over to a member that one answers. Without such a member the leader stays: elections would
    /// only fill the log.
    pub(super) fn hand_over_to_reach_a_switch(&mut self, now: Nanos) {
        let Some(sessions) = self.sessions.as_ref().filter(|_| !self.node.is_handing_over()) else { return };
        let since = self.node.leads_since().unwrap_or(now);
        let reaching: Vec<u64> = sessions.reach_better(now, since).filter(|&id| self.is_heard(now, id)).collect();
        if let Some(successor) = self.choose_successor(|id| reaching.contains(&id))
            && self.node.transfer(now, successor)
        {
            self.counters.handed_over_to_reach += 1;
        }
    }
}

use super::Log;
use raft::prelude::{Entry, Snapshot};
use raft::{Error, GetEntriesContext, RaftState, Storage, StorageError};

impl Storage for Log {
    fn initial_state(&self) -> raft::Result<RaftState> {
        Ok(RaftState::new(self.hard_state.clone(), self.conf_state.clone()))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _context: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        Self::entries(self, low, high, max_size.into()).map_err(Error::Store)
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        Self::term(self, index).map_err(Error::Store)
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(Self::first_index(self))
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(Self::last_index(self))
    }

    /// Refuses a snapshot whose members do not include `to`: a node must not take one.
    fn snapshot(&self, request_index: u64, to: u64) -> raft::Result<Snapshot> {
        let newest = self.snapshot.as_ref().filter(|snapshot| {
            let metadata = snapshot.get_metadata();
            let members = metadata.get_conf_state();
            let is_in = members.voters.contains(&to) || members.learners.contains(&to);
            metadata.index >= request_index && is_in
        });
        newest.cloned().ok_or(Error::Store(StorageError::SnapshotTemporarilyUnavailable))
    }
}

//! A copy of the data at one moment.

use super::item::NEVER;
use super::members::ChangeError;
use super::store::Shard;
use super::{Nanos, Replica};
use std::sync::Arc;

/// All data at one moment; see [`Replica::backup`]. It shares them with the replica, so only later changes cost memory.
#[derive(Debug)]
pub struct Backup {
    shards: Vec<Arc<Shard>>,
    time: u64,
}

/// A key of a [`Backup`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupItem<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// Milliseconds until it expires; `None`: it does not.
    pub expires_in: Option<u64>,
}

impl Backup {
    /// Everything, in no order.
    pub fn items(&self) -> impl Iterator<Item = BackupItem<'_>> {
        self.shards.iter().flat_map(|shard| shard.iter()).map(|item| BackupItem {
            key: item.key(),
            value: item.value(),
            expires_in: Some(item.expires()).filter(|at| *at != NEVER).map(|at| at.saturating_sub(self.time)),
        })
    }
}

impl Replica {
    /// All data, with every write that was acknowledged before.
    ///
    /// # Errors
    /// If this replica does not lead, or cannot be sure of it.
    pub fn backup(&self, now: Nanos) -> Result<Backup, ChangeError> {
        self.check_leads()?;
        if !self.node.has_lease(now) {
            return Err(ChangeError::NotLeader { leader: None });
        }
        Ok(Backup { shards: self.state.store.shards().to_vec(), time: self.store_time(now) })
    }
}

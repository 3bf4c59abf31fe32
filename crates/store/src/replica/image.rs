//! Snapshots: the state at one moment, in bounded parts.
//!
//! An image shares its data with the store, so only later changes cost memory. Parts are encoded on demand, for the disk and for each
//! peer.

use super::clients::{Client, Source};
use super::config::{Agreed, Member, ReplicaConfig};
use super::entry::SessionName;
use super::founding::Founders;
use super::item::{Item, NEVER};
use super::members;
use super::staged::Value;
use super::state::State;
use super::store::{Outcome, Shard, Store};
use crate::update;
use midflight_endpoint::mutants::planted;
use midflight_wire::store::{KEY_MAX, Status, VALUE_MAX};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

const VERSION: u8 = 2;
/// A part ends with the shard after this many bytes, or after twice as many. A value with more is cut.
const PART_BYTES: usize = 256 << 10;
const CLIENT_BYTES: usize = 64;

/// Why a snapshot cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// Another format.
    #[error("the snapshot has format {0}, this program reads format {VERSION}: use the program that wrote it")]
    Version(u8),
    /// Not a snapshot.
    #[error("the snapshot's bytes are not those of a snapshot")]
    Malformed,
    /// A set with other bounds.
    #[error(
        "`{name}` is {ours} in the configuration of this replica, and {theirs} in its set: it is frozen when the set is made, so write \
         {theirs}"
    )]
    Unlike {
        /// The setting.
        name: &'static str,
        /// Its value here.
        ours: u64,
        /// Its value when the set was created.
        theirs: u64,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Image {
    pub(super) index: u64,
    head: Arc<Head>,
    clients: Arc<[(u64, Client)]>,
    staged: Vec<(u64, Arc<Value>)>,
    shards: Vec<Arc<Shard>>,
}

/// The next part of an image.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    has_head: bool,
    client: usize,
    staged: usize,
    shard: usize,
    item: usize,
    /// Within a value.
    offset: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Head {
    version: u8,
    agreed: Agreed,
    time: u64,
    sessions: Vec<SessionName>,
    members: Vec<Member>,
    founders: Founders,
}

#[derive(Serialize, Deserialize)]
enum Part<'a> {
    Head(Head),
    Clients(Vec<FrozenClient>),
    #[serde(borrow)]
    Items(Vec<FrozenItem<'a>>),
    /// Parts of staged values, and when the last one came.
    Staged(Vec<(u64, update::Part<'a>)>),
}

#[derive(Serialize, Deserialize)]
struct FrozenItem<'a> {
    key: &'a [u8],
    revision: u64,
    expires: Option<u64>,
    value: &'a [u8],
    /// Whether more of the value follows, in the next item.
    is_cut: bool,
}

#[derive(Serialize, Deserialize)]
struct FrozenClient {
    id: u64,
    number: u64,
    used: u64,
    source: Source,
    status: u8,
    value: Vec<u8>,
}

impl FrozenClient {
    fn new(id: u64, client: &Client) -> Self {
        let Client { number, outcome, used, source } = client;
        Self {
            id,
            number: *number,
            used: *used,
            source: *source,
            status: outcome.status.into(),
            value: outcome.value.to_vec(),
        }
    }

    fn thaw(self) -> Result<(u64, Client), SnapshotError> {
        let status = Status::from_number(self.status).ok_or(SnapshotError::Malformed)?;
        let outcome = Outcome { status, value: self.value.into() };
        Ok((self.id, Client { number: self.number, outcome, used: self.used, source: self.source }))
    }
}

impl Image {
    pub(super) fn of(state: &State, agreed: Agreed, index: u64) -> Self {
        let most = if planted(162) { 2 } else { usize::MAX };
        let clients = state.clients.iter().take(most).map(|(&id, client)| (id, client.clone())).collect();
        let sessions = if planted(170) { Vec::new() } else { state.sessions.clone() };
        let most = if planted(181) { 3 } else { usize::MAX };
        let members = state.members.iter().take(most).cloned().collect();
        let most = if planted(155) { 0 } else { usize::MAX };
        let staged =
            state.store.staged.values().take(most).map(|(number, value)| (number, Arc::clone(value))).collect();
        let head = Arc::new(Head {
            version: VERSION,
            agreed,
            time: state.time,
            sessions,
            members,
            founders: state.founders.clone(),
        });
        Self { index, head, clients, staged, shards: state.store.shards().to_vec() }
    }

    /// The next part; `None` after the last one.
    pub(super) fn part(&self, cursor: &mut Cursor) -> Option<Vec<u8>> {
        self.part_of(cursor, PART_BYTES)
    }

    fn part_of(&self, cursor: &mut Cursor, bytes: usize) -> Option<Vec<u8>> {
        let part = if !std::mem::replace(&mut cursor.has_head, true) {
            Part::Head(Head::clone(&self.head))
        } else if cursor.client < self.clients.len() {
            self.clients(cursor, bytes)
        } else if cursor.staged < self.staged.len() {
            self.staged(cursor, bytes)
        } else {
            self.items(cursor, bytes)?
        };
        Some(postcard::to_allocvec(&part).expect("a part is plain data, and memory grows as needed"))
    }

    fn clients(&self, cursor: &mut Cursor, bytes: usize) -> Part<'_> {
        let (mut clients, mut length) = (Vec::new(), 0);
        for (id, client) in &self.clients[cursor.client..] {
            length += client.outcome.value.len() + CLIENT_BYTES;
            clients.push(FrozenClient::new(*id, client));
            if length >= bytes {
                break;
            }
        }
        cursor.client += clients.len();
        Part::Clients(clients)
    }

    fn staged(&self, cursor: &mut Cursor, bytes: usize) -> Part<'_> {
        let (mut parts, mut length) = (Vec::new(), 0);
        'all: while let Some((number, value)) = self.staged.get(cursor.staged) {
            for (&offset, bytes_of_part) in value.parts.range(cursor.offset..) {
                let part = update::Part { staged: *number, length: value.length, offset, bytes: bytes_of_part };
                parts.push((value.last, part));
                cursor.offset = offset + 1;
                length += bytes_of_part.len();
                if length >= bytes {
                    break 'all;
                }
            }
            (cursor.staged, cursor.offset) = (cursor.staged + 1, 0);
        }
        Part::Staged(parts)
    }

    fn items(&self, cursor: &mut Cursor, bytes: usize) -> Option<Part<'_>> {
        let (mut items, mut length) = (Vec::new(), 0);
        'all: while let Some(shard) = self.shards.get(cursor.shard) {
            for item in shard.iter().skip(cursor.item) {
                let rest = &item.value()[cursor.offset as usize..];
                let value = &rest[..rest.len().min(bytes)];
                let is_cut = value.len() < rest.len();
                let expires = Some(item.expires()).filter(|at| *at != NEVER);
                let revision = if planted(156) { 0 } else { item.revision() };
                items.push(FrozenItem { key: item.key(), revision, expires, value, is_cut });
                if is_cut {
                    cursor.offset += value.len() as u32;
                } else {
                    (cursor.item, cursor.offset) = (cursor.item + 1, 0);
                }
                length += item.key().len() + value.len();
                if is_cut || length >= 2 * bytes {
                    break 'all;
                }
            }
            (cursor.shard, cursor.item) = (cursor.shard + 1, 0);
            if length >= bytes {
                break;
            }
        }
        (!items.is_empty()).then_some(Part::Items(items))
    }

    /// Returns the data to the store, which frees it in small steps.
    pub(super) fn discard(self, store: &mut Store) {
        store.discard(self.shards);
    }
}

/// A state under reconstruction from a snapshot's parts.
#[derive(Debug)]
pub(super) struct Thawing {
    state: State,
    has_head: bool,
    /// Of a value that is cut.
    begun: Vec<u8>,
}

impl Thawing {
    pub(super) fn new(config: &ReplicaConfig) -> Self {
        Self { state: State::new(config), has_head: false, begun: Vec::new() }
    }

    /// Adds the next part.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn take(&mut self, config: &ReplicaConfig, bytes: &[u8]) -> Result<(), SnapshotError> {
        // The version follows the number of the part's kind and precedes everything that it may change.
        if let [0, version, ..] = bytes
            && !self.has_head
            && *version != VERSION
        {
            return Err(SnapshotError::Version(*version));
        }
        let (part, rest) = postcard::take_from_bytes::<Part<'_>>(bytes).map_err(|_| SnapshotError::Malformed)?;
        let is_head = matches!(part, Part::Head(_));
        if !rest.is_empty() || is_head == std::mem::replace(&mut self.has_head, true) {
            return Err(SnapshotError::Malformed);
        }
        match part {
            Part::Head(head) => self.take_head(config, head)?,
            Part::Clients(clients) => {
                for client in clients {
                    let (id, client) = client.thaw()?;
                    self.state.clients.restore(id, client);
                }
            }
            Part::Items(items) => items.iter().try_for_each(|item| self.restore(item))?,
            Part::Staged(parts) => {
                let staged = &mut self.state.store.staged;
                if !parts.iter().all(|(last, part)| staged.add(part, *last)) {
                    return Err(SnapshotError::Malformed);
                }
            }
        }
        let has_room = self.state.store.has_room() && self.state.clients.len() <= config.clients;
        if has_room { Ok(()) } else { Err(SnapshotError::Malformed) }
    }

    fn restore(&mut self, item: &FrozenItem<'_>) -> Result<(), SnapshotError> {
        if item.key.len() > KEY_MAX || self.begun.len() + item.value.len() > VALUE_MAX {
            return Err(SnapshotError::Malformed);
        }
        self.begun.extend_from_slice(item.value);
        if !item.is_cut {
            let value = std::mem::take(&mut self.begun);
            self.state.store.restore(Item::new(item.key, &value, item.revision, item.expires.unwrap_or(NEVER)));
        }
        Ok(())
    }

    fn take_head(&mut self, config: &ReplicaConfig, head: Head) -> Result<(), SnapshotError> {
        let ours = config.agreed();
        if let Some((name, ours, theirs)) = ours.differs_from(&head.agreed) {
            return Err(SnapshotError::Unlike { name, ours, theirs });
        }
        if !members::are_possible(&head.members) {
            return Err(SnapshotError::Malformed);
        }
        (self.state.members, self.state.sessions, self.state.time) = (head.members, head.sessions, head.time);
        self.state.founders = head.founders;
        Ok(())
    }

    /// Completes the state.
    ///
    /// # Errors
    /// If there was no part.
    pub(super) fn finish(self) -> Result<State, SnapshotError> {
        if self.has_head && self.begun.is_empty() { Ok(self.state) } else { Err(SnapshotError::Malformed) }
    }

    pub(super) fn discard(self, store: &mut Store) {
        store.replace(self.state.store);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replica::entry::{ClientWrite, Record, What};
    use crate::update::{Change, Expiry, Update};
    use proptest::prelude::*;

    fn config() -> ReplicaConfig {
        ReplicaConfig::new(1, 1, 1, Vec::new(), Vec::new(), 1)
    }

    fn thaw(parts: &[Vec<u8>]) -> Result<State, SnapshotError> {
        let mut thawing = Thawing::new(&config());
        for part in parts {
            thawing.take(&config(), part)?;
        }
        thawing.finish()
    }

    fn items(state: &State) -> impl Iterator<Item = (&[u8], &[u8], u64, u64)> {
        let items = state.store.shards().iter().flat_map(|shard| shard.iter());
        items.map(|item| (item.key(), item.value(), item.revision(), item.expires()))
    }

    #[test]
    fn bounds_that_are_not_the_sets_are_named() {
        let image = Image::of(&State::new(&config()), config().agreed(), 1);
        let mut other = config();
        other.store_bytes = 5;
        let error = Thawing::new(&other).take(&other, &image.part(&mut Cursor::default()).unwrap()).unwrap_err();
        assert_eq!(error, SnapshotError::Unlike { name: "store_bytes", ours: 5, theirs: 256 << 20 });
    }

    #[test]
    fn a_snapshot_of_another_version_is_refused() {
        let mut head = Image::of(&State::new(&config()), config().agreed(), 1).part(&mut Cursor::default()).unwrap();
        head[1] += 1;
        assert_eq!(thaw(&[head]).unwrap_err(), SnapshotError::Version(VERSION + 1));
    }

    #[test]
    fn r7_members_that_cannot_be_are_no_snapshot() {
        let mut state = State::new(&config());
        let at = "10.0.0.1:7000".parse().unwrap();
        state.members.push(Member { id: 1, slot: 8, address: at, links: at });
        let head = Image::of(&state, config().agreed(), 1).part(&mut Cursor::default()).unwrap();
        assert_eq!(thaw(&[head]).unwrap_err(), SnapshotError::Malformed);
    }

    #[test]
    fn parts_are_bounded() {
        let mut state = State::new(&config());
        for number in 0..3000u32 {
            state.clients.open(number.into(), 0, Source::of([1; 16]));
            state.clients.ran(number.into(), 1, 0, Outcome::done(vec![7; 1000]));
            state.store.apply(0, What::Put { key: &number.to_be_bytes(), value: &[1; 1000] }, 0);
        }
        let (image, mut cursor, mut parts) = (Image::of(&state, config().agreed(), 1), Cursor::default(), Vec::new());
        while let Some(part) = image.part(&mut cursor) {
            assert!(part.len() < 2 * PART_BYTES, "{} bytes", part.len());
            parts.push(part);
        }
        assert!(parts.len() > 20);
        assert!(items(&thaw(&parts).unwrap()).eq(items(&state)));
        parts.swap(0, 1);
        assert_eq!(thaw(&parts).unwrap_err(), SnapshotError::Malformed, "the head comes first");
    }

    proptest! {
        /// A snapshot is the state when it began, however slowly it is written, and whatever is applied in between.
        #[test]
        fn a_snapshot_is_the_state_when_it_began(
            keys in prop::collection::vec((0u8..20, prop::option::of((any::<u8>(), 0u64..4))), 0..60),
            later in prop::collection::vec((0u8..20, (any::<u8>(), 0u64..4)), 0..30),
            bytes in 1usize..200,
        ) {
            let mut state = State::new(&config());
            let session = SessionName { sid: 7, switch: "10.0.0.1:7700".parse().unwrap(), incarnation: 9 };
            (1..4).for_each(|index| drop(state.apply(index, Record::Open { time: 3, source: Source::of([1; 16]) })));
            state.apply(4, Record::Session(session));
            let write = |state: &mut State, number: usize, key: u8, value: Option<(u8, u64)>| {
                let (key, bytes) = ([key], value.map(|(value, _)| [value]));
                let what = match (&bytes, value) {
                    (Some(value), Some((_, after @ 1..))) => {
                        let change = Change::Set(&value[..]);
                        let update = Update { change, expiry: Expiry::After(after), ..Update::default() };
                        What::Update { key: &key, update }
                    }
                    (Some(value), _) => What::Put { key: &key, value },
                    (None, _) => What::Delete { key: &key },
                };
                let write = ClientWrite { client: 1, number: number as u64 + 1, time: number as u64, what };
                state.apply(number as u64 + 5, Record::Write(number as u64, write));
            };
            for (number, &(key, value)) in keys.iter().enumerate() {
                write(&mut state, number, key, value);
            }
            let (image, before) = (Image::of(&state, config().agreed(), 1), state.clone());
            let (mut later, mut cursor, mut parts) = (later.into_iter().enumerate(), Cursor::default(), Vec::new());
            while let Some(part) = image.part_of(&mut cursor, bytes) {
                parts.push(part);
                if let Some((number, (key, value))) = later.next() {
                    write(&mut state, keys.len() + number, key, Some(value));
                }
            }
            let thawed = thaw(&parts).unwrap();
            prop_assert!(items(&thawed).eq(items(&before)));
            prop_assert!(thawed.store.expiring().eq(before.store.expiring()));
            prop_assert_eq!((thawed.store.keys(), thawed.store.bytes()), (before.store.keys(), before.store.bytes()));
            prop_assert!(thawed.clients.iter().eq(before.clients.iter()));
            prop_assert_eq!((thawed.sessions, thawed.time), (before.sessions, before.time));
        }

        #[test]
        fn bytes_that_are_no_snapshot_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = thaw(&[bytes]);
        }
    }
}

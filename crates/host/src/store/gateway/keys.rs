//! Commands on all keys: SCAN, KEYS, DBSIZE, FLUSHDB.

use super::super::scan::of_part;
use super::super::{Cursor, Operation, answers};
use super::commands::{Commands, Outcome, failed, failed_in_part};
use super::options::syntax;
use crate::error::Error;
use bytes::Bytes;
use futures_util::future::ready;
use futures_util::stream::{StreamExt, TryStreamExt, iter};
use midflight_resp::{Call, Reply, Task, fits, number};
use midflight_wire::store::KGROUP_BITS_MAX;
use std::sync::Arc;

/// A SCAN asks for pages ahead, as most key groups of a small store are empty.
const PAGES_AHEAD: u64 = 1_024;
const PAGES_AT_ONCE: usize = 64;
/// The order of the keys of a group, if there are as many groups as possible.
const GROUP_MIN: u64 = 1 << (64 - KGROUP_BITS_MAX);
const COUNT: usize = 10;
const COUNT_MAX: usize = 10_000;
/// Parts of the order of keys that are scanned at the same time.
const PARTS: u64 = 32;
const PART: u64 = u64::MAX / PARTS + 1;
const REMOVED_AT_ONCE: usize = 16;
/// Bytes of keys that KEYS may find.
const KEYS_BYTES: usize = 4 << 20;

struct ScanOptions {
    pattern: Option<Bytes>,
    count: usize,
    /// Whether keys of this type exist here.
    has_type: bool,
}

impl ScanOptions {
    fn of(options: &[Bytes]) -> Result<Self, Reply> {
        let mut all = Self { pattern: None, count: COUNT, has_type: true };
        let (pairs, odd) = options.as_chunks::<2>();
        if !odd.is_empty() {
            return Err(syntax());
        }
        for [name, value] in pairs {
            match name.to_ascii_uppercase().as_slice() {
                b"MATCH" => all.pattern = Some(value.clone()),
                b"COUNT" => {
                    let count = usize::try_from(number(value)?).ok().filter(|count| *count > 0).ok_or_else(syntax)?;
                    all.count = count.min(COUNT_MAX);
                }
                b"TYPE" => all.has_type = value.eq_ignore_ascii_case(b"string"),
                _ => return Err(syntax()),
            }
        }
        Ok(all)
    }
}

pub(super) fn is_on_all_keys(call: &Call) -> bool {
    matches!(call.name(), "SCAN" | "KEYS" | "DBSIZE" | "FLUSHDB" | "FLUSHALL")
}

impl Commands {
    pub(super) fn on_all_keys(self: &Arc<Self>, call: &Call) -> Option<Result<Task, Reply>> {
        Some(match call.name() {
            "SCAN" => self.scan(call),
            "KEYS" => call.exactly().map(|[pattern]| {
                self.alone(false, |store| async move {
                    let keys = store.keys().await?;
                    let Some(keys) = keys else {
                        return Ok(Reply::error("the keys are more than 4 MiB: use SCAN"));
                    };
                    Ok(Reply::Array(keys.into_iter().filter(|key| fits(&pattern, key)).map(bulk).collect()))
                })
            }),
            "DBSIZE" => call.exactly().map(|[]| {
                let store = Arc::clone(self);
                Task::new([], false, async move {
                    match store.page(Cursor::default()).await {
                        Ok(page) => Reply::Integer(i64::try_from(page.all).unwrap_or(i64::MAX)),
                        Err(error) => failed(&error, false),
                    }
                })
            }),
            "FLUSHDB" | "FLUSHALL" => call
                .at_least()
                .map(|([], _)| self.alone(true, |store| async move { store.remove_all().await.map(|()| Reply::OK) })),
            _ => return None,
        })
    }

    /// A connection has one at a time, because their replies are long.
    fn alone<F>(self: &Arc<Self>, writes: bool, run: impl FnOnce(Arc<Self>) -> F + Send + 'static) -> Task
    where
        F: Future<Output = Outcome> + Send,
    {
        let store = Arc::clone(self);
        let failed = move |error| if writes { failed_in_part(&error) } else { failed(&error, false) };
        // No key of the store is empty.
        Task::new(vec![Bytes::new()], true, async move { run(store).await.unwrap_or_else(failed) })
    }

    /// Redis' cursor is a place in the order of keys, so it holds in any gateway, and for ever.
    fn scan(self: &Arc<Self>, call: &Call) -> Result<Task, Reply> {
        let ([cursor], options) = call.at_least()?;
        let cursor: Option<u64> = std::str::from_utf8(&cursor).ok().and_then(|text| text.parse().ok());
        let cursor = cursor.ok_or_else(|| Reply::error("invalid cursor"))?;
        let options = ScanOptions::of(options)?;
        Ok(self.alone(false, move |store| async move {
            let (mut found, next) = store.some_keys(Cursor::new(cursor, 0), options.count).await?;
            found.retain(|key| options.has_type && options.pattern.as_ref().is_none_or(|pattern| fits(pattern, key)));
            let cursor = Reply::text(next.map_or(0, |next| next.order()).to_string());
            Ok(Reply::Array(vec![cursor, Reply::Array(found.into_iter().map(bulk).collect())]))
        }))
    }

    /// At least `count` keys, if there are as many, and where to go on. Between two keys of one order there is no cursor of Redis.
    async fn some_keys(&self, from: Cursor, count: usize) -> Result<(Vec<Vec<u8>>, Option<Cursor>), Error> {
        let (mut found, mut next) = (Vec::new(), Some(from));
        // Of a key group; 0 until a whole one was seen.
        let mut width = 0;
        while let Some(from) = next.filter(|next| found.len() < count || next.skip() > 0) {
            let (step, ahead) = (width, if width == 0 { 1 } else { PAGES_AHEAD });
            let later = (1..ahead).map_while(|group| from.order().checked_add(group * step));
            let starts = std::iter::once(from).chain(later.map(|order| Cursor::new(order, 0)));
            let pages = iter(starts).map(|from| async move { (from, self.page(from).await) });
            let mut pages = std::pin::pin!(pages.buffered(PAGES_AT_ONCE));
            while let Some((from, page)) = pages.next().await {
                // The page before ended within its group, or it was enough.
                if next != Some(from) || found.len() >= count && from.skip() == 0 {
                    break;
                }
                let page = page?;
                found.extend(page.keys);
                next = page.next;
                if let Some(next) = page.next.filter(|next| next.skip() == 0 && from.skip() == 0) {
                    let seen = next.order() - from.order();
                    let is_group = seen.is_power_of_two() && seen >= GROUP_MIN && from.order().is_multiple_of(seen);
                    width = if is_group { seen } else { width };
                }
            }
        }
        Ok((found, next))
    }

    async fn page(&self, from: Cursor) -> Result<super::super::Page, Error> {
        self.answer(Operation::Scan { from }).await.map(answers::page)
    }

    /// All keys; `None` if they are too many.
    async fn keys(&self) -> Result<Option<Vec<Vec<u8>>>, Error> {
        let most = KEYS_BYTES / PARTS as usize;
        let parts = iter(0..PARTS).map(|part| self.keys_of(part * PART, part * PART + (PART - 1), most));
        let parts: Vec<Option<Vec<Vec<u8>>>> = parts.buffer_unordered(PARTS as usize).try_collect().await?;
        Ok(parts.into_iter().collect::<Option<Vec<_>>>().map(|parts| parts.concat()))
    }

    /// Key by key; those that are written in the meantime may stay.
    async fn remove_all(&self) -> Result<(), Error> {
        let parts = iter(0..PARTS).map(|part| async move {
            let last = part * PART + (PART - 1);
            let mut next = Some(Cursor::new(part * PART, 0));
            while let Some(from) = next {
                let (keys, after) = of_part(self.page(from).await?, last);
                let removed = iter(keys).map(|key| self.remove(key.into())).buffer_unordered(REMOVED_AT_ONCE);
                removed.try_for_each(|_| ready(Ok(()))).await?;
                next = after;
            }
            Ok(())
        });
        parts.buffer_unordered(PARTS as usize).try_collect().await
    }

    async fn keys_of(&self, first: u64, last: u64, most: usize) -> Result<Option<Vec<Vec<u8>>>, Error> {
        let (mut next, mut all, mut bytes) = (Some(Cursor::new(first, 0)), Vec::new(), 0);
        while let Some(from) = next {
            let (keys, after) = of_part(self.page(from).await?, last);
            bytes += keys.iter().map(Vec::len).sum::<usize>();
            if bytes > most {
                return Ok(None);
            }
            all.extend(keys);
            next = after;
        }
        Ok(Some(all))
    }
}

fn bulk(key: Vec<u8>) -> Reply {
    Reply::Bulk(key.into())
}

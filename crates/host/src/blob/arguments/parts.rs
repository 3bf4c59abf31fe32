//! The parts of packs that an executor has, the fetches in progress, and how much to fetch.

use midflight_wire::PACK_UNIT;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;
use std::ops::Range;

/// Bytes of parts kept, with [`PART_OVERHEAD`] for each.
pub(super) const KEPT_MAX: usize = 4 << 20;
/// Upper bound of the bytes that the indexes need per part.
pub(super) const PART_OVERHEAD: usize = 640;
/// Bytes to fetch: initial and largest.
const FIRST_WINDOW: u32 = 4 << 10;
pub(super) const LARGEST_WINDOW: u32 = 64 << 10;
/// Number of later fetches after which a part is judged useful or not. By then its neighbours have been requested.
const JUDGED_AFTER: usize = 4;
/// Number of clients whose windows are kept. Another client resets all windows.
pub(super) const WINDOWS_MAX: usize = 1_024;

/// Server and id of a pack.
pub(super) type Name = (SocketAddr, u64);

#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) kept: HashMap<Name, BTreeMap<u32, Part>>,
    /// Oldest first.
    pub(super) order: VecDeque<(Name, u32)>,
    pub(super) bytes: usize,
    pub(super) windows: HashMap<SocketAddr, Window>,
    coming: Vec<Coming>,
    fetches: u64,
    pub(super) waiting: usize,
}

#[derive(Debug)]
pub(super) struct Part {
    pub(super) bytes: Vec<u8>,
    /// Bytes of arguments requested, counting repetitions.
    used: usize,
    is_judged: bool,
}

#[derive(Debug)]
struct Coming {
    number: u64,
    name: Name,
    range: Range<u32>,
}

/// How much to fetch from one client's packs.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) bytes: u32,
    /// The latest parts, oldest first.
    recent: VecDeque<(Name, u32)>,
}

pub(super) enum Found {
    Here(Vec<u8>),
    /// The caller fetches at most `most` bytes; other threads may wait for the fetch under this number.
    Fetch {
        most: u32,
        number: Option<u64>,
    },
}

impl Found {
    /// A fetch of this argument alone that no thread waits for.
    pub(super) fn alone(range: &Range<u32>) -> Self {
        Self::Fetch { most: range.len() as u32, number: None }
    }
}

impl Default for Window {
    fn default() -> Self {
        Self { bytes: FIRST_WINDOW, recent: VecDeque::new() }
    }
}

impl Window {
    /// Grows if the part's arguments were needed, shrinks if other executors got them.
    fn judge(&mut self, part: &mut Part) {
        let length = part.bytes.len();
        if 2 * part.used >= length {
            self.bytes = self.bytes.max(2 * length as u32).min(LARGEST_WINDOW);
        } else if 8 * part.used <= length {
            self.bytes = self.bytes.min(length as u32 / 2);
        }
        part.is_judged = true;
    }
}

impl Part {
    fn cost(&self) -> usize {
        self.bytes.len() + PART_OVERHEAD
    }
}

impl Parts {
    pub(super) fn find(&mut self, name: Name, range: &Range<u32>) -> Option<Vec<u8>> {
        let (begin, part) = self.kept.get_mut(&name)?.range_mut(..=range.start).next_back()?;
        let argument = part.bytes.get((range.start - begin) as usize..(range.end - begin) as usize)?;
        part.used = part.used.saturating_add(padded(range));
        Some(argument.to_vec())
    }

    /// The number of a fetch in progress that includes this range.
    pub(super) fn coming_with(&self, name: Name, range: &Range<u32>) -> Option<u64> {
        let brings = |coming: &&Coming| {
            coming.name == name && coming.range.start <= range.start && coming.range.end >= range.end
        };
        self.coming.iter().find(brings).map(|coming| coming.number)
    }

    pub(super) fn is_coming(&self, number: u64) -> bool {
        self.coming.iter().any(|coming| coming.number == number)
    }

    pub(super) fn begin(&mut self, name: Name, range: &Range<u32>) -> Found {
        let window = self.windows.get(&name.0).map_or(FIRST_WINDOW, |window| window.bytes);
        let most = window.max(range.len() as u32);
        self.fetches += 1;
        let number = self.fetches;
        self.coming.push(Coming { number, name, range: range.start..range.start.saturating_add(most) });
        Found::Fetch { most, number: Some(number) }
    }

    /// Ends a fetch. Returns whether threads may be waiting for it.
    pub(super) fn has_come(&mut self, number: Option<u64>) -> bool {
        self.coming.retain(|coming| Some(coming.number) != number);
        self.waiting > 0
    }

    pub(super) fn insert(&mut self, name: Name, range: &Range<u32>, bytes: Vec<u8>) {
        let (begin, end) = (range.start, range.start.saturating_add(bytes.len() as u32));
        let parts = self.kept.entry(name).or_default();
        // A shorter part within the new one would hide it.
        let within: Vec<u32> = parts
            .range(begin..end)
            .filter(|(at, part)| *at + part.bytes.len() as u32 <= end)
            .map(|(at, _)| *at)
            .collect();
        let removed: usize = within.iter().filter_map(|at| parts.remove(at)).map(|part| part.cost()).sum();
        let part = Part { bytes, used: padded(range), is_judged: false };
        self.bytes = self.bytes - removed + part.cost();
        // Only a part fetched at the same time can begin here and be longer.
        if let Some(before) = parts.insert(begin, part) {
            self.bytes -= before.cost();
        }
        self.order.push_back((name, begin));
        self.note(name, begin);
        while self.bytes > KEPT_MAX || self.order.len() > KEPT_MAX / PART_OVERHEAD {
            self.remove_oldest();
        }
    }

    fn note(&mut self, name: Name, begin: u32) {
        if self.windows.len() >= WINDOWS_MAX && !self.windows.contains_key(&name.0) {
            self.windows.clear();
        }
        let window = self.windows.entry(name.0).or_default();
        window.recent.push_back((name, begin));
        if window.recent.len() <= JUDGED_AFTER {
            return;
        }
        let earlier = window.recent.pop_front();
        if let Some(part) = earlier.and_then(|(name, begin)| self.kept.get_mut(&name)?.get_mut(&begin)) {
            window.judge(part);
        }
    }

    fn remove_oldest(&mut self) {
        let Some((name, begin)) = self.order.pop_front() else { return };
        let Some(parts) = self.kept.get_mut(&name) else { return };
        if let Some(mut part) = parts.remove(&begin) {
            self.bytes -= part.cost();
            // Evicted before it was judged.
            if let Some(window) = self.windows.get_mut(&name.0).filter(|_| !part.is_judged) {
                window.judge(&mut part);
            }
        }
        if parts.is_empty() {
            self.kept.remove(&name);
        }
    }
}

/// Length with padding.
fn padded(range: &Range<u32>) -> usize {
    range.len().next_multiple_of(PACK_UNIT as usize)
}

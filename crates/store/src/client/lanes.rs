//! The lanes of a client. A client id allows one outstanding write (R3), so a client has several ids, one per lane.

#[derive(Clone, Default)]
struct Lane {
    /// `None` before it is opened and after it has expired.
    id: Option<u64>,
    number: u64,
    opening: Option<u64>,
    write: Option<u64>,
}

/// All lanes. An idle lane is in one of two stacks: with an id, or without.
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    free: Vec<usize>,
    closed: Vec<usize>,
}

impl Lanes {
    pub(super) fn new(count: usize) -> Self {
        Self { lanes: vec![Lane::default(); count], free: Vec::new(), closed: (0..count).rev().collect() }
    }

    /// Assigns a lane to a write, preferably one with an id. If none is free, `may_open` permits one without an id.
    pub(super) fn take(&mut self, write: u64, may_open: bool) -> Option<usize> {
        let lane = self.free.pop().or_else(|| if may_open { self.closed.pop() } else { None })?;
        self.lanes[lane].write = Some(write);
        Some(lane)
    }

    pub(super) fn has_room(&self, may_open: bool) -> bool {
        !self.free.is_empty() || (may_open && !self.closed.is_empty())
    }

    pub(super) fn id(&self, lane: usize) -> Option<u64> {
        self.lanes[lane].id
    }

    pub(super) fn next_number(&mut self, lane: usize) -> u64 {
        self.lanes[lane].number += 1;
        self.lanes[lane].number
    }

    pub(super) fn any_open(&self) -> bool {
        self.lanes.iter().any(|lane| lane.id.is_some())
    }

    pub(super) fn opening(&mut self, lane: usize, request: u64) {
        self.lanes[lane].opening = Some(request);
    }

    /// The opening has ended, perhaps without an id. Returns the write that occupies the lane.
    pub(super) fn opened(&mut self, lane: usize, id: Option<u64>) -> Option<u64> {
        self.lanes[lane] = Lane { id, number: 0, opening: None, write: self.lanes[lane].write };
        let write = self.lanes[lane].write;
        if write.is_none() {
            self.shelve(lane);
        }
        write
    }

    pub(super) fn expired(&mut self, lane: usize) {
        self.lanes[lane].id = None;
    }

    pub(super) fn release(&mut self, lane: usize) {
        self.lanes[lane].write = None;
        if self.lanes[lane].opening.is_none() {
            self.shelve(lane);
        }
    }

    fn shelve(&mut self, lane: usize) {
        if self.lanes[lane].id.is_some() { self.free.push(lane) } else { self.closed.push(lane) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r3_a_lane_has_one_write_at_a_time_and_its_numbers_count_up_under_each_id() {
        let mut lanes = Lanes::new(2);
        assert_eq!(lanes.take(10, false), None, "no id is open");
        let lane = lanes.take(10, true).unwrap();
        lanes.opening(lane, 1);
        assert_eq!(lanes.opened(lane, Some(77)), Some(10));
        assert_eq!((lanes.id(lane), lanes.next_number(lane)), (Some(77), 1));
        assert_eq!(lanes.take(11, false), None);
        lanes.release(lane);
        assert_eq!(lanes.take(11, true), Some(lane), "one with an id first");
        assert_eq!(lanes.next_number(lane), 2);
        lanes.expired(lane);
        lanes.release(lane);
        assert!(!lanes.any_open() && !lanes.has_room(false) && lanes.has_room(true));
        assert_eq!(lanes.take(12, true), Some(lane));
        lanes.opening(lane, 2);
        lanes.release(lane);
        assert_eq!(lanes.opened(lane, Some(99)), None, "its write has ended meanwhile");
        assert_eq!(lanes.take(13, false), Some(lane));
        assert_eq!(lanes.next_number(lane), 1);
    }
}

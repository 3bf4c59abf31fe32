use super::{Operation, PlaceInValue, ValuePiece};
use midflight_wire::store::piece_room;

/// A value that is read piece by piece. All pieces are of one revision: a newer one starts again. What was read when the first of them
/// came was the value then, as the key had this revision before and after.
pub(super) struct Reading {
    key: Vec<u8>,
    room: usize,
    /// 0: no piece has come.
    revision: u64,
    value: Vec<u8>,
    has: Vec<bool>,
    missing: usize,
    /// The next piece to ask for.
    next: usize,
}

impl Reading {
    pub(super) fn new(key: &[u8]) -> Self {
        let (key, room) = (key.to_vec(), piece_room(key));
        Self { key, room, revision: 0, value: Vec::new(), has: Vec::new(), missing: 1, next: 0 }
    }

    /// The next read, if another one can be under way.
    pub(super) fn next(&mut self) -> Option<Operation> {
        if self.revision == 0 && self.next > 0 || self.revision > 0 && self.next >= self.has.len() {
            return None;
        }
        let offset = self.next * self.room;
        self.next += 1;
        Some(Operation::Piece { place: PlaceInValue::new(&self.key, self.revision, offset as u32) })
    }

    /// Returns whether the value has changed since the pieces before.
    pub(super) fn add(&mut self, piece: &ValuePiece) -> bool {
        let has_changed = self.revision > 0 && piece.revision > self.revision;
        if piece.revision > self.revision {
            let pieces = piece.length.div_ceil(self.room).max(1);
            (self.revision, self.value) = (piece.revision, vec![0; piece.length]);
            (self.has, self.missing, self.next) = (vec![false; pieces], pieces, 0);
            // Mostly this is the first one.
            self.next = usize::from(piece.offset == 0);
        }
        let place = piece.offset / self.room;
        let is_of_this = piece.revision == self.revision && piece.length == self.value.len();
        if !is_of_this || self.has.get(place) != Some(&false) {
            return has_changed;
        }
        self.has[place] = true;
        self.missing -= 1;
        self.value[piece.offset..piece.offset + piece.bytes.len()].copy_from_slice(&piece.bytes);
        has_changed
    }

    /// Revision and value, once all is there.
    pub(super) fn whole(&mut self) -> Option<(u64, Vec<u8>)> {
        (self.missing == 0).then(|| (self.revision, std::mem::take(&mut self.value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(revision: u64, value: &[u8], place: usize, room: usize) -> ValuePiece {
        let offset = place * room;
        let bytes = value[offset..value.len().min(offset + room)].to_vec();
        ValuePiece { revision, length: value.len(), offset, bytes }
    }

    fn asked(operation: &Operation) -> (u64, u32) {
        let Operation::Piece { place } = operation else { panic!("{operation:?}") };
        let (revision, offset, key) = PlaceInValue::parse(place.as_bytes()).expect("a place");
        assert_eq!(key, b"key");
        (revision, offset)
    }

    #[test]
    fn r1_pieces_of_two_revisions_never_make_a_value() {
        let mut reading = Reading::new(b"key");
        let room = reading.room;
        let [old, new] = [b'o', b'n'].map(|byte| vec![byte; 2 * room + 5]);
        assert_eq!(asked(&reading.next().expect("the first")), (0, 0));
        assert!(reading.next().is_none(), "its revision must be known first");
        reading.add(&piece(7, &old, 0, room));
        let rest: Vec<_> = std::iter::from_fn(|| reading.next()).map(|operation| asked(&operation)).collect();
        assert_eq!(rest, [(7, room as u32), (7, 2 * room as u32)]);
        reading.add(&piece(7, &old, 1, room));
        reading.add(&piece(8, &new, 0, room));
        reading.add(&piece(7, &old, 2, room));
        assert_eq!(reading.whole(), None);
        let again: Vec<_> = std::iter::from_fn(|| reading.next()).map(|operation| asked(&operation)).collect();
        assert_eq!(again, [(8, room as u32), (8, 2 * room as u32)]);
        for place in [2, 0, 2, 1] {
            assert_eq!(reading.whole(), None, "before {place}");
            reading.add(&piece(8, &new, place, room));
        }
        assert_eq!(reading.whole(), Some((8, new)));
    }

    #[test]
    fn an_empty_value_is_one_piece() {
        let mut reading = Reading::new(b"key");
        reading.add(&piece(3, b"", 0, 1));
        assert_eq!(reading.whole(), Some((3, Vec::new())));
    }
}

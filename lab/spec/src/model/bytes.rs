//! Draws choices from fuzzing input.

/// The input that is left. When it runs out, each further byte is 0.
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl Bytes<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        u32::from(self.next()) % bound
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.next() as usize % from.len()]
    }

    pub(crate) fn word(&mut self) -> u32 {
        u32::from_be_bytes([self.next(), self.next(), self.next(), self.next()])
    }

    /// Mostly the next sequence after `last`; else the same, an older one, one ahead, or anything.
    pub(super) fn sequence(&mut self, last: u32) -> u32 {
        match self.next() {
            0..=191 => last.wrapping_add(1),
            192..=215 => last,
            216..=231 => last.wrapping_sub(self.below(80)),
            232..=247 => last.wrapping_add(self.below(80)),
            248..=251 => last.wrapping_add(0x7FFF_FFFF),
            _ => self.word(),
        }
    }

    /// Mostly the next counter after `last`; else the same, an older one, or one ahead.
    pub(super) fn counter(&mut self, last: u64) -> u64 {
        match self.next() {
            0..=223 => last.saturating_add(1),
            224..=239 => last,
            240..=247 => last.saturating_sub(self.below(8).into()),
            248..=254 => last.saturating_add(self.word().into()),
            255 => u64::MAX,
        }
    }

    /// Mostly few records, sometimes as many as fit, seldom more.
    pub(super) fn count(&mut self, most: u32) -> u32 {
        match self.next() {
            0..=127 => 1,
            128..=223 => 1 + self.below(4),
            224..=251 => 1 + self.below(most),
            _ => self.below(most + 8),
        }
    }
}

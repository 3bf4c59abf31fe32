//! Draws choices from fuzzing input.

/// The remaining input. After its end, each byte reads as 0.
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

    /// Mostly the next sequence after `last`; sometimes the same, an older one, a gap, or any.
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

    /// Mostly the next counter after `last`; sometimes the same, an older one, or a gap.
    pub(super) fn counter(&mut self, last: u64) -> u64 {
        match self.next() {
            0..=223 => last.saturating_add(1),
            224..=239 => last,
            240..=247 => last.saturating_sub(self.below(8).into()),
            248..=254 => last.saturating_add(self.word().into()),
            255 => u64::MAX,
        }
    }

    /// Mostly few records, sometimes as many as fit, rarely more.
    pub(super) fn count(&mut self, most: u32) -> u32 {
        match self.next() {
            0..=127 => 1,
            128..=223 => 1 + self.below(4),
            224..=251 => 1 + self.below(most),
            _ => self.below(most + 8),
        }
    }
}

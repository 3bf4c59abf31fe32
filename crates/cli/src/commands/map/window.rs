//! How many commands `map` has submitted at one time: more than may run, so that a slot which has ended one has the next one at once,
//! and not so many that their outputs need much memory.

/// Commands at the switch of this process, beside four for each slot: enough that no slot waits for the next one.
pub(super) const AHEAD: usize = 256;
/// Bytes of outputs that may come back in memory before any of them was written or put into a file.
const OUTPUTS: usize = 16 << 20;
/// Bytes that an output is assumed to have before the first one has come.
const ASSUMED: usize = 256 << 10;
/// The last output counts for one sixteenth of the mean.
const SMOOTH: usize = 16;

/// The number of commands that may be submitted and not ended, by the outputs that have come so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Commands where outputs are small.
    most: usize,
    /// Commands however large outputs are.
    least: usize,
    /// Commands that run at one time.
    jobs: usize,
    /// Mean bytes of the outputs in memory.
    mean: usize,
}

impl Window {
    /// A window of `most` commands, of which `jobs` run at one time. If the executor is `in_process`, outputs are in the memory of this
    /// process as soon as they are written, so large ones make the window smaller: down to a quarter more than `jobs`.
    pub(super) fn new(most: usize, jobs: usize, in_process: bool) -> Self {
        let least = if in_process { (jobs + jobs / 4 + 1).min(most) } else { most };
        Self { most, least, jobs, mean: ASSUMED }
    }

    /// An output has come, which has so many bytes in memory.
    pub(super) fn note(&mut self, in_memory: usize) {
        self.mean = (self.mean * (SMOOTH - 1) + in_memory) / SMOOTH;
    }

    /// Commands that may be submitted and not ended now.
    pub(super) fn size(self) -> usize {
        self.most.min((OUTPUTS / self.mean.max(1)).max(self.least))
    }

    /// So many commands are submitted together, because a packet for each one would cost more than the command: a quarter of those that
    /// wait at the switch, so that it never has none.
    pub(super) fn refill(self) -> usize {
        (self.size().saturating_sub(self.jobs) / 4).clamp(1, AHEAD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_outputs_of_this_process_make_it_smaller_and_no_slot_idle() {
        let mut window = Window::new(512, 64, true);
        assert_eq!(window.size(), 81, "until outputs are known");
        (0..100).for_each(|_| window.note(20_000));
        assert_eq!((window.size(), window.refill()), (512, 112), "they fit");
        (0..100).for_each(|_| window.note(400_000));
        assert_eq!((window.size(), window.refill()), (81, 4));
        (0..200).for_each(|_| window.note(0));
        assert_eq!(window.size(), 512);
        let mut far = Window::new(16_384, 64, false);
        (0..100).for_each(|_| far.note(400_000));
        assert_eq!(far.size(), 16_384, "they wait at their executors");
        let mut one = Window::new(1, 1, true);
        one.note(1 << 20);
        assert_eq!((one.size(), one.refill()), (1, 1));
    }
}

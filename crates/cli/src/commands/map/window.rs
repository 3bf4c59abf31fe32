//! Bounds the commands in flight: more than can run, so that a free slot gets its next one at once, but few enough that their outputs fit
//! in memory.

/// Commands that wait at an embedded switch in addition to four per slot, so that no slot becomes idle.
pub(super) const AHEAD: usize = 256;
/// Bytes of outputs that may arrive in memory before one is written or spilled.
const OUTPUTS: usize = 16 << 20;
/// Assumed size of an output before the first one arrives.
const ASSUMED: usize = 256 << 10;
/// The latest output's weight in the mean is 1/16.
const SMOOTH: usize = 16;

#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// Upper bound, for small outputs.
    most: usize,
    /// Lower bound, for large outputs.
    least: usize,
    /// Commands that run at a time.
    jobs: usize,
    /// Bytes of an output in memory.
    mean: usize,
}

impl Window {
    /// `jobs` of `most` commands run at a time. If the executor is `in_process`, outputs use this process's memory, so large ones shrink
    /// the window, down to 1.25 × `jobs`.
    pub(super) fn new(most: usize, jobs: usize, in_process: bool) -> Self {
        let least = if in_process { (jobs + jobs / 4 + 1).min(most) } else { most };
        Self { most, least, jobs, mean: ASSUMED }
    }

    pub(super) fn note(&mut self, in_memory: usize) {
        self.mean = (self.mean * (SMOOTH - 1) + in_memory) / SMOOTH;
    }

    pub(super) fn size(self) -> usize {
        self.most.min((OUTPUTS / self.mean.max(1)).max(self.least))
    }

    /// A batch, as a packet for each command would cost more than the command: a quarter of those that wait at the switch, so that its
    /// queue does not run empty.
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

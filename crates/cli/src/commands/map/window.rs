//! How many commands may be with the switch at one time.

/// Commands at the switch of this process, beside four for each slot: enough that no slot waits for the next one.
pub(super) const AHEAD: usize = 256;
/// Bytes of outputs that may come back in memory before any of them was written or put into a file.
const OUTPUTS: usize = 16 << 20;
/// Bytes of an output that are assumed before the first one.
const ASSUMED: usize = 256 << 10;
/// By how much the last output changes the mean: one sixteenth.
const SMOOTH: usize = 16;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    most: usize,
    /// Where the executor is in this process: its slots, with a few more commands so that none waits.
    least: usize,
    /// The room at which commands are submitted: a packet for each would cost more than it carries.
    jobs: usize,
    /// Bytes of an output in memory.
    mean: usize,
}

impl Window {
    /// Of at most so many commands, of which so many run. Outputs of an executor `in_process` are in this process's memory from
    /// their beginning, so large ones make the window smaller.
    pub(super) fn new(most: usize, jobs: usize, in_process: bool) -> Self {
        let least = if in_process { (jobs + jobs / 4 + 1).min(most) } else { most };
        Self { most, least, jobs, mean: ASSUMED }
    }

    /// Such an output has come.
    pub(super) fn note(&mut self, in_memory: usize) {
        self.mean = (self.mean * (SMOOTH - 1) + in_memory) / SMOOTH;
    }

    /// Commands at one time.
    pub(super) fn size(self) -> usize {
        self.most.min((OUTPUTS / self.mean.max(1)).max(self.least))
    }

    /// The room for commands at which those that wait are submitted: a quarter of what waits at the switch while as many run as may,
    /// so that no slot waits.
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

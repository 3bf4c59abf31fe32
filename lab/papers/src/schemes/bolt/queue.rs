//! The switch's queues, one per level.

use midflight_endpoint::Nanos;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Queued {
    pub(super) submitted: Nanos,
    pub(super) stored: Nanos,
    pub(super) duration_ns: Nanos,
    /// In the order of entry.
    pub(super) number: u32,
    pub(super) level: u8,
    pub(super) resources: u8,
}

pub(super) struct Queue {
    levels: Vec<Level>,
    tasks: usize,
    room: usize,
    pub(super) polls: u64,
    pub(super) noops: u64,
    pub(super) full: u64,
}

struct Level {
    tasks: VecDeque<Queued>,
    /// Tasks that require each set of resources.
    masks: Box<[u32; 256]>,
    /// The sets that occur.
    asked: Vec<u8>,
}

impl Queue {
    pub(super) fn new(levels: usize, room: usize) -> Self {
        let level = || Level { tasks: VecDeque::new(), masks: Box::new([0; 256]), asked: Vec::new() };
        Self { levels: (0..levels).map(|_| level()).collect(), tasks: 0, room, polls: 0, noops: 0, full: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tasks == 0
    }

    /// `false`: the queue is full.
    pub(super) fn put(&mut self, task: Queued) -> bool {
        let last = self.levels.len();
        let level = &mut self.levels[usize::from(task.level).clamp(1, last) - 1];
        if level.tasks.len() >= self.room {
            self.full += 1;
            return false;
        }
        let mask = usize::from(task.resources);
        if level.masks[mask] == 0 && !level.asked.contains(&task.resources) {
            level.asked.push(task.resources);
        }
        level.masks[mask] += 1;
        level.tasks.push_back(task);
        self.tasks += 1;
        true
    }

    /// Takes the first task of the highest level this executor may run. Also returns the extra passes: one per level before, and one per
    /// task skipped. Skipped tasks keep their order.
    pub(super) fn take(&mut self, resources: u8) -> (Option<Queued>, Nanos) {
        self.polls += 1;
        let mut passes = 0;
        for (index, level) in self.levels.iter_mut().enumerate() {
            passes += Nanos::from(index > 0);
            let runs = |mask: u8| mask & !resources == 0;
            if !level.asked.iter().any(|&mask| runs(mask) && level.masks[usize::from(mask)] > 0) {
                passes += level.tasks.len() as Nanos;
                continue;
            }
            let Some(at) = level.tasks.iter().position(|task| runs(task.resources)) else { continue };
            let Some(task) = level.tasks.remove(at) else { continue };
            level.masks[usize::from(task.resources)] -= 1;
            self.tasks -= 1;
            return (Some(task), passes + at as Nanos);
        }
        self.noops += 1;
        (None, passes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(number: u32, level: u8, resources: u8) -> Queued {
        Queued { number, level, resources, ..Queued::default() }
    }

    fn taken(queue: &mut Queue, resources: u8) -> (Option<u32>, Nanos) {
        let (task, passes) = queue.take(resources);
        (task.map(|task| task.number), passes)
    }

    #[test]
    fn t4_levels_are_looked_at_in_order_and_cost_a_pass_each() {
        let mut queue = Queue::new(4, 9);
        [task(1, 4, 0), task(2, 2, 0), task(3, 2, 0)].into_iter().for_each(|task| assert!(queue.put(task)));
        assert_eq!(taken(&mut queue, 0), (Some(2), 1));
        assert_eq!(taken(&mut queue, 0), (Some(3), 1));
        assert_eq!(taken(&mut queue, 0), (Some(1), 3));
        assert_eq!(taken(&mut queue, 0), (None, 3));
        assert_eq!((queue.polls, queue.noops, queue.is_empty()), (4, 1, true));
    }

    #[test]
    fn t5_a_search_passes_each_task_that_does_not_fit_and_leaves_their_order() {
        let mut queue = Queue::new(1, 9);
        [task(1, 1, 4), task(2, 1, 4), task(3, 1, 1), task(4, 1, 2)].into_iter().for_each(|t| assert!(queue.put(t)));
        assert_eq!(taken(&mut queue, 1), (Some(3), 2));
        assert_eq!(taken(&mut queue, 8), (None, 3), "none fits: as many passes as there are tasks");
        assert_eq!(taken(&mut queue, 7), (Some(1), 0));
        assert_eq!(taken(&mut queue, 7), (Some(2), 0));
        assert_eq!(taken(&mut queue, 2), (Some(4), 0));
    }

    #[test]
    fn t7_a_full_queue_says_so() {
        let mut queue = Queue::new(1, 2);
        (0..2).for_each(|number| assert!(queue.put(task(number, 1, 0))));
        assert!(!queue.put(task(0, 1, 0)));
        assert_eq!(queue.full, 1);
    }
}

//! Priorities: Google's twelve folded into four levels, and shares to draw from if a trace has none.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::Workload;

/// Number of levels; 1 is the highest.
pub const LEVELS: u8 = 4;

/// Share of the tasks with level 1, 2, 3 and 4, in thousandths, from Google's trace (Bolt, 5.6). They sum to 997 and are weights.
pub const LEVEL_SHARES: [u32; LEVELS as usize] = [12, 17, 646, 322];

/// Folds Google's priorities 0 to 11 (11 the most urgent) in threes: 9–11 is level 1, 0–2 level 4.
#[must_use]
pub fn fold_google_priority(priority: u64) -> Option<u8> {
    match priority {
        9..=11 => Some(1),
        6..=8 => Some(2),
        3..=5 => Some(3),
        0..=2 => Some(4),
        _ => None,
    }
}

impl Workload {
    /// Draws a priority from [`LEVEL_SHARES`] for every task without one; the same seed draws the same.
    pub fn draw_priorities(&mut self, seed: u64) {
        let mut random = Pcg64::seed_from_u64(seed);
        for task in self.jobs.iter_mut().flat_map(|job| &mut job.tasks) {
            if task.priority == 0 {
                task.priority = draw_level(&mut random);
            }
        }
    }

    /// As [`Self::draw_priorities`], with one draw per job, as in Google's trace: bursts are of one level, and the shares hold in the mean.
    pub fn draw_job_priorities(&mut self, seed: u64) {
        let mut random = Pcg64::seed_from_u64(seed);
        let total = LEVEL_SHARES.iter().sum();
        for job in &mut self.jobs {
            let level = level_at(random.random_range(0..total));
            job.tasks.iter_mut().filter(|task| task.priority == 0).for_each(|task| task.priority = level);
        }
    }

    /// Gives every task the same level: one FIFO queue.
    pub fn set_priorities(&mut self, level: u8) {
        for task in self.jobs.iter_mut().flat_map(|job| &mut job.tasks) {
            task.priority = level;
        }
    }
}

/// A level, drawn from [`LEVEL_SHARES`].
pub fn draw_level(random: &mut Pcg64) -> u8 {
    level_at(random.random_range(0..LEVEL_SHARES.iter().sum()))
}

fn level_at(mut point: u32) -> u8 {
    for (level, share) in (1..LEVELS).zip(LEVEL_SHARES) {
        if point < share {
            return level;
        }
        point -= share;
    }
    LEVELS
}

#[cfg(test)]
mod tests {
    use super::super::{Job, TaskSpec};
    use super::*;

    #[test]
    fn twelve_priorities_fold_three_by_three_into_four_levels() {
        let levels: Vec<Option<u8>> = (0..13).map(fold_google_priority).collect();
        let expected = [4, 4, 4, 3, 3, 3, 2, 2, 2, 1, 1, 1].map(Some);
        assert_eq!(levels[..12], expected);
        assert_eq!(levels[12], None);
    }

    #[test]
    fn drawn_priorities_have_the_shares_and_depend_on_the_seed_alone() {
        let job = Job { arrival_ns: 0, tasks: vec![TaskSpec { duration_ns: 1, priority: 0 }; 100_000] };
        let drawn = |seed| {
            let mut workload = Workload::new(vec![job.clone()]);
            workload.draw_priorities(seed);
            workload
        };
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
        let mut counts = [0u32; 4];
        for task in &drawn(1).jobs()[0].tasks {
            counts[usize::from(task.priority) - 1] += 1;
        }
        for (count, share) in counts.iter().zip(LEVEL_SHARES) {
            let got = f64::from(*count) / 100_000.0;
            let wanted = f64::from(share) / 997.0;
            assert!((got - wanted).abs() < 0.005, "{got} for {wanted}");
        }
    }

    #[test]
    fn drawn_by_job_a_jobs_tasks_have_one_level() {
        let job = Job { arrival_ns: 0, tasks: vec![TaskSpec { duration_ns: 1, priority: 0 }; 3] };
        let mut workload = Workload::new(vec![job; 20_000]);
        workload.draw_job_priorities(1);
        let levels: Vec<u8> = workload.jobs().iter().map(|job| job.tasks[0].priority).collect();
        let alike = |(job, level): (&Job, &u8)| job.tasks.iter().all(|task| task.priority == *level);
        assert!(workload.jobs().iter().zip(&levels).all(alike));
        let third = levels.iter().filter(|&&level| level == 3).count() as f64 / 20_000.0;
        assert!((third - 0.648).abs() < 0.01, "{third}");
    }

    #[test]
    fn a_priority_that_the_trace_gives_is_kept() {
        let job = Job { arrival_ns: 0, tasks: vec![TaskSpec { duration_ns: 1, priority: 2 }; 50] };
        let mut workload = Workload::new(vec![job]);
        workload.draw_priorities(7);
        assert!(workload.jobs()[0].tasks.iter().all(|task| task.priority == 2));
    }
}

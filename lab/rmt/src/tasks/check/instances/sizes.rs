//! The same instances in larger queues, to check whether the size matters.

use super::{Named, Program, kept, planted};
use crate::tasks::check::Instance;
use crate::tasks::safe;

/// How an instance grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// More entries than the controller grants: must change nothing.
    Entries,
    /// This many more places, and tasks to fill them: includes lengths that are no power of two.
    Places(u32),
    /// Twice as many entries and places.
    Double,
}

impl Growth {
    /// All kinds of growth.
    pub const ALL: [Self; 4] = [Self::Entries, Self::Places(1), Self::Places(2), Self::Double];
}

/// Larger forms of the short searches that break no rule.
#[must_use]
pub fn grown(growth: Growth) -> Vec<Named> {
    let small = |named: &Named| {
        matches!(named.program, Program::Safe(_)) && named.name != "kept" && named.name != "crossing-wide"
    };
    kept().iter().filter(|named| small(named)).map(|named| grow(named, growth)).collect()
}

/// The planted defects that break a rule, each in twice as many entries.
#[must_use]
pub fn planted_grown() -> Vec<Named> {
    let breaks = |named: &&Named| match named.program {
        Program::Planted(_, planted) => !planted.is_of_front() && planted.finds().is_some(),
        _ => false,
    };
    planted().iter().filter(breaks).map(|named| grow(named, Growth::Double)).collect()
}

fn grow(named: &Named, growth: Growth) -> Named {
    let (Program::Safe(config) | Program::Planted(config, _)) = named.program else {
        unreachable!("{} is not of the safe program alone", named.name)
    };
    let size = config.size;
    match growth {
        Growth::Entries => named.of_size(4 * size, 0),
        Growth::Places(more) => named.of_size(4 * size, more),
        Growth::Double => named.of_size(2 * size, size),
    }
}

impl Named {
    /// The same in queues of `size` entries. The controller grants `more` places than before at each level, however many entries there are.
    /// There are as many more tasks, so that full queues stay full, and as many more polls of the first executor.
    ///
    /// # Panics
    /// With a program other than the safe one alone.
    #[must_use]
    pub fn of_size(&self, size: u32, more: u32) -> Self {
        let (program, room) = match self.program {
            Program::Safe(config) => (Program::Safe(safe::Config { size, ..config }), config.size + more),
            Program::Planted(config, planted) if !planted.is_of_front() => {
                (Program::Planted(safe::Config { size, ..config }, planted), config.size + more)
            }
            _ => unreachable!("{} is not of the safe program alone", self.name),
        };
        let (mut jobs, mut executors) = (self.instance.jobs.clone(), self.instance.executors.clone());
        for level in self.filled(room - more) {
            let task = |job: &Vec<(u8, u8)>| job.iter().copied().find(|&(of, _)| of == level);
            if let Some((job, task)) = jobs.iter_mut().find_map(|job| task(job).map(|task| (job, task))) {
                job.extend(std::iter::repeat_n(task, more as usize));
            }
        }
        if let Some((_, polls)) = executors.first_mut() {
            *polls += more as u8;
        }
        // As far from the numbers' wrap as before, seen from the limit.
        let start = self.instance.start.wrapping_sub(more);
        let instance = Instance { start, jobs, executors, room: Some(room), ..self.instance.clone() };
        Self { program, instance, ..self.clone() }
    }

    /// Levels with as many tasks as places, or else that of the first task.
    fn filled(&self, room: u32) -> Vec<u8> {
        let all: Vec<u8> = self.instance.jobs.iter().flatten().map(|&(level, _)| level).collect();
        let number = |level: u8| all.iter().filter(|&&of| of == level).count();
        let filled: Vec<u8> = (1..=4).filter(|&level| number(level) >= room as usize).collect();
        if filled.is_empty() { all.first().copied().into_iter().collect() } else { filled }
    }
}

//! Counts the passes of an asic-engine program over a queue of some length, of which an executor may run a share. Runs only the program on
//! its machine: no wire, network or time, one packet after the other.

use super::{Cell, CellError, CellResult, Load, Program};
use midflight_rmt::tasks::published::Published;
use midflight_rmt::tasks::safe::Safe;
use midflight_rmt::tasks::{published, safe};
use midflight_rmt::{Machine, Packet, Target, To};
use rand::RngExt;
use rand_pcg::Pcg64;
use std::collections::VecDeque;

const BATCH: usize = 32;
/// Client and job; the programs ignore them.
const CLIENT: (u32, u16) = (0x0A00_0001, 7_700);
const JOB: (u32, u32) = (1, 1);
/// Resource that some tasks require.
const ASKED: u8 = 1;
/// An executor without the resource, and one that may run all tasks.
const SOME: u8 = 0;
const ALL: u8 = u8::MAX;

pub(super) fn run(cell: &Cell, program: Program) -> Result<CellResult, CellError> {
    let &Load::Queue { length, unfit, retrievals, emptied } = &cell.load else {
        return Err(CellError::Bad("load: not a queue".into()));
    };
    let mut bench = Bench { switch: Switch::build(program)?, random: super::jobs::stream(cell.seed, 0), unfit };
    let mut result = CellResult::default();
    let mut count = |name: &str, number: u64| {
        result.counters.insert(name.into(), number);
    };
    let length = u64::from(length);
    count("submit.tasks", length);
    count("submit.passes", bench.submit(length));
    let (tasks, passes) = bench.mixed(length, retrievals);
    count("mixed.tasks", tasks);
    count("mixed.passes", passes);
    bench.take(length);
    if emptied {
        bench.submit(length);
        let (tasks, passes) = bench.empty();
        count("emptied.tasks", tasks);
        count("emptied.passes", passes);
        bench.take(length - tasks);
    }
    bench.unfit = 1.0;
    bench.submit(length);
    count("vain.passes", bench.switch.retrieve(SOME).passes);
    bench.take(length);
    for level in 1..=4 {
        bench.switch.submit(level, &[0]);
        count(&format!("level{level}.passes"), bench.switch.retrieve(SOME).passes);
    }
    (result.submitted, result.started) = (length, tasks);
    Ok(result)
}

struct Bench {
    switch: Switch,
    random: Pcg64,
    /// Share of tasks that [`SOME`] may not run.
    unfit: f64,
}

impl Bench {
    /// Submits random tasks. Returns the passes.
    fn submit(&mut self, tasks: u64) -> u64 {
        let drawn: Vec<u8> = (0..tasks).map(|_| ASKED * u8::from(self.random.random_bool(self.unfit))).collect();
        drawn.chunks(BATCH).map(|batch| self.switch.submit(1, batch)).sum()
    }

    fn take(&mut self, tasks: u64) {
        for _ in 0..tasks {
            self.switch.retrieve(ALL);
        }
    }

    /// Retrieves until `retrievals` got a task, each from a freshly drawn queue: replaces the tasks that a search passed over. Returns the
    /// tasks and their passes.
    fn mixed(&mut self, length: u64, retrievals: u32) -> (u64, u64) {
        /// Maximum failed retrievals per successful one: a short queue often has none.
        const IN_VAIN: u64 = 1_000;
        let (mut tasks, mut passes) = (0, 0);
        for _ in 0..u64::from(retrievals) * IN_VAIN {
            if tasks == u64::from(retrievals) {
                break;
            }
            let end = self.switch.retrieve(SOME);
            // A search that gets a task has examined one more than it passed over.
            let over = if end.assigned { end.passes - 1 } else { length };
            tasks += u64::from(end.assigned);
            passes += if end.assigned { end.passes } else { 0 };
            self.take(over);
            self.submit(over + u64::from(end.assigned));
        }
        (tasks, passes)
    }

    /// One executor takes all it may run. Returns the tasks and their passes.
    fn empty(&mut self) -> (u64, u64) {
        let (mut tasks, mut passes) = (0, 0);
        loop {
            let end = self.switch.retrieve(SOME);
            if !end.assigned {
                return (tasks, passes);
            }
            tasks += 1;
            passes += end.passes;
        }
    }
}

struct End {
    assigned: bool,
    /// Includes the packets it caused.
    passes: u64,
}

struct Switch {
    program: Built,
    machine: Machine,
}

enum Built {
    Safe(Safe),
    Published(Published),
}

impl Switch {
    fn build(program: Program) -> Result<Self, CellError> {
        let (target, refused) = (&Target::TOFINO_1, |refusal| CellError::Bad(format!("scheme: {refusal}")));
        Ok(match program {
            Program::Safe => {
                let safe = Safe::build(safe::Config::LARGEST, target).map_err(refused)?;
                Self { machine: safe.machine(), program: Built::Safe(safe) }
            }
            Program::Published => {
                let published = Published::build(published::Config::BOLT, target).map_err(refused)?;
                Self { machine: published.machine(), program: Built::Published(published) }
            }
        })
    }

    /// Returns the passes.
    fn submit(&mut self, level: u8, resources: &[u8]) -> u64 {
        let packet = match &self.program {
            Built::Safe(program) => {
                let (attempt, argument_length, words) = (0, 0, Default::default());
                let task = |&resources| safe::Task { tid: 0, level, resources, attempt, argument_length, words };
                program.submit(CLIENT, JOB, 0, &resources.iter().map(task).collect::<Vec<_>>())
            }
            Built::Published(program) => {
                let words = vec![0; program.fields().tdesc.len()];
                let task = |&resources| published::Task { tid: 0, level, resources, words: words.clone() };
                program.submit(CLIENT.0, JOB, &resources.iter().map(task).collect::<Vec<_>>())
            }
        };
        self.run(packet).passes
    }

    fn retrieve(&mut self, resources: u8) -> End {
        let packet = match &self.program {
            Built::Safe(safe) => safe.retrieve(1, resources, 1),
            Built::Published(published) => published.retrieve(1, resources),
        };
        self.run(packet)
    }

    /// Runs a packet until nothing recirculates.
    fn run(&mut self, packet: Packet) -> End {
        let (mut inside, mut end) = (VecDeque::from([packet]), End { assigned: false, passes: 0 });
        while let Some(packet) = inside.pop_front() {
            end.passes += 1;
            for sent in self.machine.pass(packet) {
                end.assigned |= match &self.program {
                    Built::Safe(safe) => matches!(safe.answer(&sent), Some(safe::Answer::Assign { .. })),
                    Built::Published(published) => {
                        matches!(published.answer(&sent), Some(published::Answer::Assign { .. }))
                    }
                };
                if matches!(sent.to, To::Recirculated | To::Copied) {
                    inside.push_back(sent.packet);
                }
            }
        }
        end
    }
}

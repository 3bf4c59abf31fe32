//! Instances for the search for cycles: every executor asks for ever.

use super::{A, B, named, wants_a};
use crate::tasks::check::{Endless, Instance, Order, Way, endless};
use crate::tasks::safe::{self, Safe};
use crate::{Refusal, Target, Watch};

/// Steps before a cycle, and steps of the cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn(pub usize, pub usize);

impl Turn {
    fn of(way: Option<&Way>) -> Option<Self> {
        way.map(|way| Self(way.steps, way.turn))
    }
}

/// An instance, and the expected result of its search.
#[derive(Clone, Debug)]
pub struct Lasting {
    /// Name of the instance.
    pub name: &'static str,
    /// Its subject, in a few words.
    pub about: &'static str,
    /// The size of the program.
    pub config: safe::Config,
    /// The clients and executors.
    pub instance: Instance,
    /// Maximum number of passes until packets come to rest.
    pub passes: Option<usize>,
    /// A request that is never answered.
    pub request: Option<Turn>,
    /// Tasks that are never assigned.
    pub task: Option<Turn>,
}

impl Lasting {
    /// Searches the instance.
    ///
    /// # Errors
    /// If the program does not fit the switch.
    ///
    /// # Panics
    /// If a rule breaks: the other instances find that.
    pub fn search(&self, watch: &Watch) -> Result<Endless, Refusal> {
        let found = endless(Safe::build(self.config, &Target::TOFINO_1)?, &self.instance, watch);
        Ok(found.unwrap_or_else(|broken| panic!("{}: {broken:?}", self.name)))
    }

    /// Whether the result is as expected, if the search was complete.
    #[must_use]
    pub fn is_as_expected(&self, found: &Endless) -> bool {
        let Endless { passes, request, task, exhaustive, .. } = found;
        let found = (*passes, Turn::of(request.as_ref()), Turn::of(task.as_ref()));
        !exhaustive || found == (self.passes, self.request, self.task)
    }
}

/// All instances: in any order, and in the order of one recirculation port.
#[must_use]
pub fn lasting() -> Vec<Lasting> {
    let crossing = named("crossing-small").expect("an instance").instance;
    // Pointers are numbered from the start: from 0 they are easier to read.
    let crossing = Instance { start: 0, rules: None, ..crossing };
    let two = Instance {
        jobs: wants_a(&[2]),
        executors: vec![(B, 1), (B, 1), (A, 1)],
        order: Some(Order::Held),
        ..Instance::default()
    };
    let three = Instance { jobs: wants_a(&[3]), executors: vec![(B, 1), (B, 1), (B, 1), (A, 1)], ..two.clone() };
    let of = |name, about, levels, size, instance: &Instance, fifo| Lasting {
        name,
        about,
        config: safe::Config { levels, size, words: 1 },
        instance: Instance { fifo, ..instance.clone() },
        passes: None,
        request: None,
        task: None,
    };
    let finds = |lasting: Lasting, passes, request, task| Lasting {
        passes: Some(passes),
        request,
        task: Some(task),
        ..lasting
    };
    vec![
        finds(of("turns", "two search in vain, any order", 1, 2, &two, false), 4, Some(Turn(4, 4)), Turn(4, 4)),
        finds(
            of("turns-in-order", "the same, one recirculation port", 1, 2, &two, true),
            4,
            Some(Turn(4, 4)),
            Turn(4, 4),
        ),
        finds(
            of("turns-of-four", "three search in vain, four entries, any order", 1, 4, &three, false),
            8,
            Some(Turn(6, 5)),
            Turn(6, 5),
        ),
        finds(
            of("turns-of-four-in-order", "the same, one recirculation port", 1, 4, &three, true),
            8,
            Some(Turn(6, 5)),
            Turn(6, 5),
        ),
        finds(
            of("turns-crossing", "crossing-small, any order", 2, 2, &crossing, false),
            8,
            Some(Turn(8, 5)),
            Turn(8, 4),
        ),
        finds(
            of("turns-crossing-in-order", "the same, one recirculation port", 2, 2, &crossing, true),
            7,
            None,
            Turn(8, 5),
        ),
    ]
}

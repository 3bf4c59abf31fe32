//! What may be broken: the rules of the tasks protocol, and what the campaign holds beside them.

use std::fmt;

/// What a run must not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// No loss: an acknowledged task is queued, assigned or completed for as long as the switch lives.
    T1,
    /// One live attempt.
    T2,
    /// First in, first out, within a level and mask; requeued tasks before.
    T3,
    /// The highest level that has a task for the slot.
    T4,
    /// A task's mask is contained in its executor's.
    T5,
    /// No slot waits while a task that it may run is queued.
    T6,
    /// A full queue says exactly which tasks it did not take.
    T7,
    /// A repeated SUBMIT enqueues nothing twice and gets the same answer.
    T8,
    /// A switch's death costs nobody a task, and the caller sees one end, of its own task.
    T9,
    /// A silent slot's task is queued again when its lease runs out, and not before.
    T10,
    /// A bad packet changes nothing and is counted under its reason.
    T11,
    /// A packet costs a constant amount of work.
    T12,
    /// Who has neither cookie nor names of another changes nothing of the other's but waiting time.
    T13,
    /// No source keeps the others out, and what the dead leave is given up.
    T14,
    /// What is sent fits every path.
    T15,
    /// Once faults end all goes on within a stated time, and nobody is stuck.
    T16,
    /// Counters add up.
    Books,
    /// The core's structures agree (`mf_tasks_check`).
    Sound,
    /// After the last fault all heals: every task ends, every slot asks, nothing is kept that nobody wants.
    Heals,
}

impl Rule {
    /// Its name in reports, and in files that keep a trial.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::T1 => "T1",
            Self::T2 => "T2",
            Self::T3 => "T3",
            Self::T4 => "T4",
            Self::T5 => "T5",
            Self::T6 => "T6",
            Self::T7 => "T7",
            Self::T8 => "T8",
            Self::T9 => "T9",
            Self::T10 => "T10",
            Self::T11 => "T11",
            Self::T12 => "T12",
            Self::T13 => "T13",
            Self::T14 => "T14",
            Self::T15 => "T15",
            Self::T16 => "T16",
            Self::Books => "books",
            Self::Sound => "sound",
            Self::Heals => "heals",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A rule was broken, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Which.
    pub rule: Rule,
    /// What was seen, and what the rule wants.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.what)
    }
}

/// The rules hold so far, or one does not.
pub(super) type Checked<T = ()> = Result<T, Broken>;

/// `holds!(T3, condition, "what was seen")`: returns a [`Broken`] where the condition does not hold.
macro_rules! holds {
    ($rule:ident, $condition:expr, $($what:tt)+) => {
        if !$condition {
            return Err($crate::tasks::check::rules::Broken {
                rule: $crate::tasks::check::rules::Rule::$rule,
                what: format!($($what)+),
            });
        }
    };
}
pub(super) use holds;

//! The rules of the tasks protocol, and the campaign's additional ones.

use crate::check::Rule;

/// No loss: an acknowledged task is queued, assigned or completed for as long as the switch lives.
pub(super) const T1: Rule = Rule("T1");
/// One live attempt.
pub(super) const T2: Rule = Rule("T2");
/// FIFO within a level and mask; requeued tasks first.
pub(super) const T3: Rule = Rule("T3");
/// The highest level that has a task for the slot.
pub(super) const T4: Rule = Rule("T4");
/// A task's mask is contained in its executor's.
pub(super) const T5: Rule = Rule("T5");
/// No slot waits while a task that it may run is queued.
pub(super) const T6: Rule = Rule("T6");
/// A full queue names exactly the tasks that it refused.
pub(super) const T7: Rule = Rule("T7");
/// A repeated SUBMIT enqueues nothing twice and gets the same answer.
pub(super) const T8: Rule = Rule("T8");
/// No switch's death loses a task, and the caller sees one end, of its own task.
pub(super) const T9: Rule = Rule("T9");
/// A silent slot's task is queued again when its lease expires, and not before.
pub(super) const T10: Rule = Rule("T10");
/// A bad packet changes nothing and is counted under its reason.
pub(super) const T11: Rule = Rule("T11");
/// A packet costs a constant amount of work.
pub(super) const T12: Rule = Rule("T12");
/// A sender without another party's cookie and names changes nothing of that party's but its waiting time.
pub(super) const T13: Rule = Rule("T13");
/// No source keeps the others out, and records of dead parties expire.
pub(super) const T14: Rule = Rule("T14");
/// Every packet fits every path.
pub(super) const T15: Rule = Rule("T15");
/// Once faults end all tasks proceed within a stated time, and no party is stuck.
pub(super) const T16: Rule = Rule("T16");
/// A cancelled task is not assigned again, and its run stops soon.
pub(super) const T17: Rule = Rule("T17");
/// No two runs share a bundle of a counted resource, and free bundles are offered.
pub(super) const T18: Rule = Rule("T18");
/// A task that prefers a place waits for a slot there, for as long as its patience lasts.
pub(super) const T19: Rule = Rule("T19");
/// Counters add up.
pub(super) const BOOKS: Rule = Rule("books");
/// The core's structures are consistent (`mf_tasks_check`).
pub(super) const SOUND: Rule = Rule("sound");
/// Recovery after the last fault: every task ends, every slot asks, no unneeded record is kept.
pub(super) const HEALS: Rule = Rule("heals");

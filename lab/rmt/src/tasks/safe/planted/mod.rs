//! Planted defects of the safe program, one at a time, which the checks must find.
//!
//! A program is data, and a planted defect changes that data, so the safe program has no branch for it. The result must still keep the laws
//! of the switch. Only `tasks::check` can build one, so none ever serves packets.

mod edits;

use super::front::{Entered, Guarded, Size};
use super::{Config, Safe};
use crate::{Refusal, Target};

/// The defects, in search order: the name on the command line, the instance that refutes it, the rule that breaks there in how many steps,
/// and a description.
macro_rules! planted {
    ($($defect:ident = $name:literal, $within:literal, $finds:expr, $about:literal;)*) => {
        /// A defect of the safe program.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Planted { $(#[doc = $about] $defect,)* }

        impl Planted {
            /// All defects.
            pub const ALL: &'static [Self] = &[$(Self::$defect,)*];

            /// Name on the command line.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$defect => $name,)* }
            }

            /// Description of the defect.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $(Self::$defect => $about,)* }
            }

            /// The name of the instance for its search. The safe program breaks no rule there.
            #[must_use]
            pub const fn within(self) -> &'static str {
                match self { $(Self::$defect => $within,)* }
            }

            /// The rule that breaks first, and in how many steps; `None`: it breaks none, because other parts of the program suffice.
            #[must_use]
            pub const fn finds(self) -> Option<(&'static str, usize)> {
                match self { $(Self::$defect => $finds,)* }
            }
        }
    };
}

planted! {
    // Admission of tasks.
    LimitNotCompared = "limit-not-compared", "ordered-small", Some(("T1", 4)),
        "`accepted` is not compared with the limit: it counts refused tasks too";
    EnterNotCompared = "enter-not-compared", "ordered-small", Some(("T1", 3)),
        "a task that was not accepted is stored";
    LateCredit = "late-credit", "ordered-small", Some(("T1", 6)),
        "a late packet overwrites the copy of the credit with an older value";
    CreditUnsigned = "credit-unsigned", "ordered-small", Some(("progress", 0)),
        "credit is compared as a plain number, not as a serial one";
    CreditOfAnotherLevel = "credit-of-another-level", "credit-small", Some(("T1", 6)),
        "credit that a packet has read is used for any level";
    CreditNotRead = "credit-not-read", "ordered-small", Some(("progress", 0)),
        "a task is refused if only the copy of the credit is used up";
    PaidWhenFound = "paid-when-found", "crossing-small", Some(("T1", 6)),
        "credit is paid when a task leaves its entry, though a search keeps it";
    PaidAtEachEntry = "paid-at-each-entry", "crossing-small", Some(("T1", 7)),
        "a search pays credit at each entry";
    SearchNeverPays = "search-never-pays", "kept-small", Some(("registers", 4)),
        "no credit is paid for a task that a search assigns";
    // Pointers and counts.
    TailRaisedFirst = "tail-raised-first", "ordered-small", Some(("T1", 1)),
        "a task is stored where `add_ptr` is after its increment";
    HeadRaisedFirst = "head-raised-first", "ordered-small", Some(("T4", 2)),
        "a task is taken where `retrieve_ptr` is after its increment";
    HeadNotRaised = "head-not-raised", "ordered-small", Some(("T2", 2)),
        "`retrieve_ptr` stays when a task is taken";
    IndexTooShort = "index-too-short", "ordered-small", Some(("T1", 1)),
        "the index of an entry lacks its highest bit";
    CountBelowZero = "count-below-zero", "ordered-small", Some(("T4", 4)),
        "a count of 0 is decremented";
    CountOfOtherLevel = "count-of-other-level", "ordered-small", Some(("T4", 4)),
        "a task of level 2 is counted as one of level 1";
    BothPairsTaken = "both-pairs-taken", "four-levels", Some(("T4", 4)),
        "level 3 or 4 is decremented though level 1 or 2 gives the task";
    LevelAboveTaken = "level-above-taken", "crossing-small", Some(("progress", 1)),
        "a request from level 2 on takes tasks of level 1";
    LevelNotSet = "level-not-set", "ordered-small", Some(("T1", 4)),
        "the packet keeps the level that was asked for, not that of its task";
    // A search.
    TailNotCompared = "tail-not-compared", "kept-small", Some(("T1", 4)),
        "each pass of a search moves `add_ptr`";
    TailNotRaised = "tail-not-raised", "kept-small", Some(("T1", 3)),
        "a search stores its task at the tail, and `add_ptr` stays";
    PlaceNotCounted = "place-not-counted", "kept-small", Some(("T4", 4)),
        "a task that a search stores at the tail is not counted";
    PlaceForgetsLevel = "place-forgets-level", "four-levels", Some(("T1", 3)),
        "a search at the tail of level 4 does not store its task";
    PlacedAndKept = "placed-and-kept", "kept-small", Some(("progress", 2)),
        "a search that has stored its task at the tail still carries it";
    HeadNotCompared = "head-not-compared", "kept-small", Some(("T1", 5)),
        "a search uses an entry that others have taken meanwhile";
    HeadUnsigned = "head-unsigned", "crossing-small", Some(("T1", 7)),
        "a search compares pointers as plain numbers, not as serial ones";
    SearchBeginsAnew = "search-begins-anew", "kept-small", Some(("progress", 3)),
        "a search always looks at the head";
    EntrySkipped = "entry-skipped", "kept-small", Some(("T1", 3)),
        "a search skips every second entry";
    TailTooSoon = "tail-too-soon", "kept-small", Some(("T3", 6)),
        "a search looks at one entry, and then goes to the tail";
    EmptyExchanged = "empty-exchanged", "kept-small", Some(("T1", 7)),
        "a search that finds the queue empty reads behind its tail";
    AgainBehind = "again-behind", "kept-small", Some(("T1", 6)),
        "a search that finds the queue empty continues behind its tail";
    WordNotExchanged = "word-not-exchanged", "kept-small", Some(("T1", 4)),
        "a search does not exchange the last word of an entry";
    PlacedWithExecutor = "placed-with-executor", "kept-small", Some(("T1", 4)),
        "a search stores the executor's address as the client's";
    MaskReversed = "mask-reversed", "lacking-small", Some(("T5", 2)),
        "the task must have what the executor has, not the reverse";
    ResourcesNotCompared = "resources-not-compared", "kept-small", Some(("T5", 4)),
        "a search assigns the next task, whatever resources that needs";
    NextLevelForgotten = "next-level-forgotten", "crossing-small", Some(("T4", 4)),
        "a search that reaches the tail looks at no lower level";
    LastLevelGoesOn = "last-level-goes-on", "crossing-small", Some(("T7", 6)),
        "a search that reaches the last tail continues at a level that does not exist";
    // Answers.
    BitNotMoved = "bit-not-moved", "ordered-small", Some(("T7", 2)),
        "the task behind one that is taken gets the same bit of the answer";
    RefusalForgotten = "refusal-forgotten", "ordered-small", Some(("T7", 3)),
        "the answer does not name the last task if that is refused";
    IndexOfTaken = "index-of-taken", "ordered-small", Some(("T1", 8)),
        "the index of a task does not count refused tasks before it";
    FullInSilence = "full-in-silence", "ordered-small", Some(("T7", 3)),
        "a SUBMIT whose last task is refused has no answer";
    // The front.
    CopyGoesOn = "copy-goes-on", "network-small", Some(("T2", 2)),
        "a RETRIEVE whose counter is not later than the slot's goes on too";
    CounterNotStored = "counter-not-stored", "network-small", Some(("T2", 2)),
        "the counter is compared with the slot's, and not stored";
    CounterOnlyDiffers = "counter-only-differs", "network-small", Some(("T2", 3)),
        "a counter is taken for a later one if it is not the last: packets that come late take effect";
    CounterUnsigned = "counter-unsigned", "network-small", Some(("progress", 0)),
        "counters are compared as plain numbers, not as serial ones";
    CounterOfAllSlots = "counter-of-all-slots", "network-small", Some(("T7", 2)),
        "all slots have one counter";
    CheckedAgain = "checked-again", "network-search", Some(("T7", 4)),
        "the front does not mark what it has let through: a search that goes on at the next level is taken for a copy";
    // These break no rule.
    SearchFromOwnEntry = "search-from-own-entry", "crossing-small", None,
        "a search begins at its own entry: the head is later, so that costs a pass";
    CreditReadLate = "credit-read-late", "crossing-small", None,
        "a task that is taken reads no credit for the next: that asks for it itself";
    OldCopyUsed = "old-copy-used", "crossing-small", None,
        "a REST compares with the copy before its update: refused too early";
}

impl Planted {
    /// Whether it is one of the front.
    #[must_use]
    pub fn is_of_front(self) -> bool {
        self.within().starts_with("network")
    }
}

impl Guarded {
    /// The program with its front, and a defect.
    pub(in crate::tasks) fn planted(
        config: Config,
        size: Size,
        entered: &Entered,
        target: &Target,
        planted: Planted,
    ) -> Result<Self, Refusal> {
        let change = |builder: &mut crate::Builder, fields: &_| edits::plant(planted, config, builder.tables(), fields);
        Self::built(config, size, entered, target, change)
    }
}

impl Safe {
    pub(in crate::tasks) fn planted(config: Config, target: &Target, planted: Planted) -> Result<Self, Refusal> {
        Self::built(config, target, |builder, fields| edits::plant(planted, config, builder.tables(), fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn text(program: &crate::Program) -> String {
        format!("{:?}", program.source)
    }

    /// A change without effect, or one that the switch would refuse, would prove nothing about the check.
    #[test]
    fn each_defect_is_another_program_that_keeps_the_laws() {
        let (config, target) = (Config { levels: 4, size: 2, words: 1 }, &Target::TOFINO_1);
        let sound = [
            text(Safe::build(config, target).expect("it fits").program()),
            text(Guarded::checked(config, target, None).expect("it fits").program()),
        ];
        let mut texts = BTreeSet::from(sound);
        for &planted in Planted::ALL {
            let program = if planted.is_of_front() {
                Guarded::checked(config, target, Some(planted)).map(|guarded| guarded.program().clone())
            } else {
                Safe::planted(config, target, planted).map(|safe| safe.program().clone())
            };
            let program = program.unwrap_or_else(|refusal| panic!("{planted:?}: {refusal}"));
            assert!(texts.insert(text(&program)), "{planted:?} changes nothing");
        }
    }

    #[test]
    fn each_defect_has_a_name_of_its_own() {
        let names: BTreeSet<_> = Planted::ALL.iter().map(|planted| planted.name()).collect();
        assert_eq!(names.len(), Planted::ALL.len());
    }
}

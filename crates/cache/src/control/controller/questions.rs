//! When questions were asked, and for how long operators have been silent.
//!
//! Silence is measured by a clock that stops while no operator answers: a controller that was paused, or has lost its own links, must not
//! consider all operators dead.

use super::config::ControllerConfig;
use midflight_endpoint::Nanos;
use std::collections::VecDeque;

/// A numbered question: the answer shows when its sender was alive.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Question {
    pub(super) number: u64,
    pub(super) at: Nanos,
    /// The same by the clock of silence.
    pub(super) listened: Nanos,
}

#[derive(Debug)]
pub(super) struct Questions {
    /// The last ones, the newest at the end.
    asked: VecDeque<Question>,
    kept: usize,
    newest: Question,
    ask_every: Nanos,
    has_heard: bool,
}

impl Questions {
    pub(super) fn new(now: Nanos, config: &ControllerConfig) -> Self {
        let kept = 2 + config.dead_after / config.ask_every.max(1);
        Self {
            asked: VecDeque::new(),
            kept: usize::try_from(kept).unwrap_or(usize::MAX),
            newest: Question { at: now, ..Question::default() },
            ask_every: config.ask_every,
            has_heard: false,
        }
    }

    pub(super) fn ask(&mut self, now: Nanos) -> u64 {
        let Question { number, at, listened } = self.newest;
        // Time beyond the interval does not count, because the controller did not listen.
        let passed = if self.has_heard { now.saturating_sub(at).min(self.ask_every) } else { 0 };
        self.has_heard = false;
        self.newest = Question { number: number + 1, at: now, listened: listened.saturating_add(passed) };
        self.asked.push_back(self.newest);
        while self.asked.len() > self.kept {
            self.asked.pop_front();
        }
        self.newest.number
    }

    pub(super) fn hear(&mut self) {
        self.has_heard = true;
    }

    pub(super) fn get(&self, number: u64) -> Option<Question> {
        self.asked.iter().find(|question| question.number == number).copied()
    }

    pub(super) fn newest(&self) -> Question {
        self.newest
    }

    pub(super) fn listened(&self) -> Nanos {
        self.newest.listened
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_endpoint::MS;

    #[test]
    fn n6_the_clock_of_silence_stands_while_nobody_answers() {
        let mut questions = Questions::new(0, &ControllerConfig::default());
        let mut ask = |at_ms: u64, heard: bool| {
            if heard {
                questions.hear();
            }
            questions.ask(at_ms * MS);
            questions.listened() / MS
        };
        assert_eq!(ask(0, false), 0);
        assert_eq!(ask(100, true), 100);
        assert_eq!(ask(200, true), 200);
        assert_eq!(ask(300, false), 200, "nobody");
        assert_eq!(ask(2_000, true), 300, "it stood still, and then read what had come before");
        assert_eq!(ask(2_050, true), 350);
    }

    #[test]
    fn n6_only_the_last_questions_are_known() {
        let mut questions = Questions::new(0, &ControllerConfig::default());
        let last = (1..=20).map(|ms| questions.ask(ms)).last();
        assert_eq!(last, Some(20));
        assert!(questions.get(13).is_none() && questions.get(14).is_some() && questions.get(21).is_none());
    }
}

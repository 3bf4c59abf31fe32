//! A story's text, step by step: a comment or a command, what engines answer to it, and what the asic engine answers instead.

/// A line, with what follows it.
#[derive(Clone, Debug)]
pub(super) struct Step<'a> {
    /// Counted from 1.
    pub(super) number: usize,
    pub(super) line: &'a str,
    pub(super) answers: Vec<String>,
    pub(super) asic: Option<Aside<'a>>,
}

/// How the asic engine departs from the other ones here.
#[derive(Clone, Debug)]
pub(super) struct Aside<'a> {
    /// Which rule allows it, and why.
    pub(super) reason: &'a str,
    pub(super) answers: Vec<String>,
}

const ANSWER: &str = "    ";
const DIFFERS: &str = "  asic (";

/// The steps of a story. What belongs to no step, an answer before any command, is left out.
pub(super) fn steps(story: &str) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    for (index, line) in story.lines().enumerate() {
        let Some(step) = steps.last_mut().filter(|_| line.starts_with("  ")) else {
            steps.push(Step { number: index + 1, line, answers: Vec::new(), asic: None });
            continue;
        };
        if let Some(answer) = line.strip_prefix(ANSWER) {
            let answers = step.asic.as_mut().map_or(&mut step.answers, |aside| &mut aside.answers);
            answers.push(answer.to_owned());
        } else if let Some(reason) = line.strip_prefix(DIFFERS) {
            step.asic = Some(Aside { reason: reason.strip_suffix(')').unwrap_or(reason), answers: Vec::new() });
        }
    }
    steps
}

impl Step<'_> {
    /// Whether there is something to execute.
    pub(super) fn is_command(&self) -> bool {
        !self.line.trim().is_empty() && !self.line.starts_with('#')
    }

    /// Appends it to a story.
    pub(super) fn write(&self, story: &mut String) {
        let mut say = |parts: &[&str]| {
            parts.iter().for_each(|part| story.push_str(part));
            story.push('\n');
        };
        say(&[self.line]);
        self.answers.iter().for_each(|answer| say(&[ANSWER, answer]));
        if let Some(aside) = &self.asic {
            say(&[DIFFERS, aside.reason, ")"]);
            aside.answers.iter().for_each(|answer| say(&[ANSWER, answer]));
        }
    }
}

/// Whether the asic engine tells it like the other ones, but for what no entry of its queue holds.
pub(super) fn told_alike(soft: &[String], asic: &[String]) -> bool {
    let kept = |lines: &[String]| -> Vec<String> {
        lines.iter().filter(|line| !line.starts_with("looked at")).map(|line| what_entries_hold(line)).collect()
    };
    kept(soft) == kept(asic)
}

/// A line without these clauses: an entry has no time, half a token, no user, none but the SUBMIT for a job, and nobody knows
/// the room of all levels in one pass.
fn what_entries_hold(line: &str) -> String {
    let without = |clause: &str| {
        ["room ", "waited ", "half of the token", "no uid", "uid ", "jid ", "polls every "]
            .iter()
            .all(|of| !clause.starts_with(of))
    };
    let (head, close) = line.split_once(')').map_or((line, ""), |(head, rest)| (head, rest));
    let keep = |text: &str| text.split(", ").filter(|clause| without(clause)).collect::<Vec<_>>().join(", ");
    if close.is_empty() { keep(head) } else { format!("{}){}", keep(head), keep(close)) }
}

#[cfg(test)]
mod tests {
    use super::{steps, told_alike};

    const STORY: &str = "\
# Once.
eve retrieve: 0 wait 1
    ok
    -> eve ASSIGN
  asic (T2: because)
    ok
eve retrieve: 0 wait 2
    ok
";

    #[test]
    fn a_story_is_written_as_it_was_read() {
        let mut written = String::new();
        let steps = steps(STORY);
        steps.iter().for_each(|step| step.write(&mut written));
        assert_eq!(written, STORY);
        assert_eq!((steps[1].number, steps[2].number), (2, 7));
        assert_eq!(steps[1].asic.as_ref().map(|aside| aside.reason), Some("T2: because"));
        assert!(steps[2].asic.is_none());
    }

    #[test]
    fn only_what_no_entry_holds_may_differ() {
        let alike = |soft: &str, asic: &str| told_alike(&[soft.to_owned()], &[asic.to_owned()]);
        assert!(alike("-> ann SUBMIT_ACK 1: taken 0-3, room 4", "-> ann SUBMIT_ACK 1: taken 0-3, room 0"));
        assert!(!alike("-> ann SUBMIT_ACK 1: taken 0-3, room 4", "-> ann SUBMIT_ACK 1: taken 0-2, room 4"));
        let (soft, asic) = (
            "     0 wait 1: task 100 (ann 1.0), attempt 1, waited 3us",
            "     0 wait 1: task 100 (ann 1.0, half of the token, no uid, jid 5), attempt 1, waited 0us",
        );
        assert!(alike(soft, asic));
        assert!(!alike(soft, &asic.replace("attempt 1", "attempt 2")));
        assert!(!alike(soft, &asic.replace("ann 1.0", "ann 1.1")));
    }
}

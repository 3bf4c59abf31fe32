//! Parses a transcript into steps: a comment or command, the engines' answers, and the asic engine's answer where it
//! differs.

#[derive(Clone, Debug)]
pub(super) struct Step<'a> {
    pub(super) number: usize,
    pub(super) line: &'a str,
    pub(super) answers: Vec<String>,
    pub(super) asic: Option<AsicAnswer<'a>>,
}

#[derive(Clone, Debug)]
pub(super) struct AsicAnswer<'a> {
    pub(super) reason: &'a str,
    pub(super) answers: Vec<String>,
}

const ANSWER: &str = "    ";
const DIFFERS: &str = "  asic (";

/// Drops answers before the first command.
pub(super) fn steps(transcript: &str) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    for (index, line) in transcript.lines().enumerate() {
        let Some(step) = steps.last_mut().filter(|_| line.starts_with("  ")) else {
            steps.push(Step { number: index + 1, line, answers: Vec::new(), asic: None });
            continue;
        };
        if let Some(answer) = line.strip_prefix(ANSWER) {
            let answers = step.asic.as_mut().map_or(&mut step.answers, |other| &mut other.answers);
            answers.push(answer.to_owned());
        } else if let Some(reason) = line.strip_prefix(DIFFERS) {
            step.asic = Some(AsicAnswer { reason: reason.strip_suffix(')').unwrap_or(reason), answers: Vec::new() });
        }
    }
    steps
}

impl Step<'_> {
    pub(super) fn is_command(&self) -> bool {
        !self.line.trim().is_empty() && !self.line.starts_with('#')
    }

    pub(super) fn write(&self, transcript: &mut String) {
        let mut say = |parts: &[&str]| {
            parts.iter().for_each(|part| transcript.push_str(part));
            transcript.push('\n');
        };
        say(&[self.line]);
        self.answers.iter().for_each(|answer| say(&[ANSWER, answer]));
        if let Some(other) = &self.asic {
            say(&[DIFFERS, other.reason, ")"]);
            other.answers.iter().for_each(|answer| say(&[ANSWER, answer]));
        }
    }
}

/// Whether the asic engine's answer is the same, apart from what its queue entries do not store.
pub(super) fn is_same(soft: &[String], asic: &[String]) -> bool {
    let kept = |lines: &[String]| -> Vec<String> {
        lines.iter().filter(|line| !line.starts_with("looked at")).map(|line| what_entries_store(line)).collect()
    };
    kept(soft) == kept(asic)
}

/// The line without the clauses that may differ. A queue entry stores no time, half of the token, no user, and the
/// SUBMIT's number instead of the job's. No single pass can read the room of all levels.
fn what_entries_store(line: &str) -> String {
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
    use super::{is_same, steps};

    const TRANSCRIPT: &str = "\
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
    fn a_transcript_is_written_as_it_was_read() {
        let mut written = String::new();
        let steps = steps(TRANSCRIPT);
        steps.iter().for_each(|step| step.write(&mut written));
        assert_eq!(written, TRANSCRIPT);
        assert_eq!((steps[1].number, steps[2].number), (2, 7));
        assert_eq!(steps[1].asic.as_ref().map(|other| other.reason), Some("T2: because"));
        assert!(steps[2].asic.is_none());
    }

    #[test]
    fn only_what_no_entry_stores_may_differ() {
        let alike = |soft: &str, asic: &str| is_same(&[soft.to_owned()], &[asic.to_owned()]);
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

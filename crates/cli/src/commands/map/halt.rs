//! `--halt`: when to stop before all commands have run.

use super::report::End;

/// GNU parallel's condition, such as `soon,fail=1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Halt {
    pub now: bool,
    why: Why,
    count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Never,
    Fail,
    Success,
    Done,
}

impl Halt {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = match text {
            "never" | "0" => return Ok(Self { now: false, why: Why::Never, count: 0 }),
            "1" => "soon,fail=1",
            "2" => "now,fail=1",
            other => other,
        };
        let wrong = || "write never, soon,fail=N or now,fail=N; success=N or done=N in the place of fail=N".to_owned();
        let (when, rest) = text.split_once(',').ok_or_else(wrong)?;
        let now = match when {
            "soon" => false,
            "now" => true,
            _ => return Err(wrong()),
        };
        let (why, count) = rest.split_once('=').ok_or_else(wrong)?;
        let why = match why {
            "fail" => Why::Fail,
            "success" => Why::Success,
            "done" => Why::Done,
            _ => return Err(wrong()),
        };
        if count.ends_with('%') {
            return Err(
                "a percentage needs all commands to be known, and they are run while they are read: give a number"
                    .to_owned(),
            );
        }
        let count = count.parse().ok().filter(|&count| count > 0).ok_or_else(wrong)?;
        Ok(Self { now, why, count })
    }

    /// Whether it can ever become true.
    pub(super) fn is_possible(&self) -> bool {
        self.why != Why::Never
    }

    pub(super) fn is_due(&self, ok: u64, failed: u64) -> bool {
        let count = match self.why {
            Why::Never => return false,
            Why::Fail => failed,
            Why::Success => ok,
            Why::Done => ok + failed,
        };
        count >= self.count
    }

    /// As GNU parallel: the last command's exit code if the condition counts failures, else 0.
    pub(super) fn code(&self, last: &End) -> u8 {
        match (self.why, last) {
            (Why::Fail, End::Ran(result)) => u8::try_from(result.code).ok().filter(|&code| code > 0).unwrap_or(1),
            (Why::Fail, _) => 1,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_tasks::functions::ExecResult;

    #[test]
    fn each_form_and_what_it_waits_for() {
        let parse = |text| Halt::parse(text).unwrap();
        assert!(!parse("never").is_due(9, 9));
        assert_eq!((parse("1"), parse("2")), (parse("soon,fail=1"), parse("now,fail=1")));
        assert!(!parse("soon,fail=2").is_due(9, 1) && parse("soon,fail=2").is_due(0, 2));
        assert!(!parse("now,success=1").is_due(0, 5) && parse("now,success=1").is_due(1, 0));
        assert!(parse("now,done=3").is_due(1, 2) && parse("now,done=3").now);
        for wrong in ["later", "soon", "soon,fail", "soon,fail=0", "soon,fail=-1", "when,fail=1", "soon,fall=1"] {
            assert!(Halt::parse(wrong).unwrap_err().contains("soon,fail=N"), "{wrong}");
        }
        assert!(Halt::parse("soon,fail=20%").unwrap_err().contains("give a number"));
    }

    #[test]
    fn the_exit_code_is_that_of_the_failure() {
        let ran = |code| End::Ran(ExecResult { code, ..ExecResult::default() });
        let fail = Halt::parse("now,fail=1").unwrap();
        assert_eq!((fail.code(&ran(7)), fail.code(&End::Lost(String::new()))), (7, 1));
        assert_eq!(Halt::parse("now,success=1").unwrap().code(&ran(0)), 0);
    }
}

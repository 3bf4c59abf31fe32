//! A rule of a program, and that it was broken.

use std::fmt;

/// A rule that a run must not break, by its name in reports and documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rule(pub &'static str);

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
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
pub type Checked<T = ()> = Result<T, Broken>;

/// `holds!(T3, condition, "what was seen")`: returns a [`Broken`] where the condition does not hold.
macro_rules! holds {
    ($rule:expr, $condition:expr, $($what:tt)+) => {
        if !$condition {
            return Err($crate::check::Broken { rule: $rule, what: format!($($what)+) });
        }
    };
}
pub(crate) use holds;

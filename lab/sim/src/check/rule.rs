//! Rules, and violations of them.

use std::fmt;

/// A rule by its name in reports and documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rule(pub &'static str);

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}

/// A violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The rule.
    pub rule: Rule,
    /// What was seen, and what the rule demands.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.what)
    }
}

/// Result of a check.
pub type Checked<T = ()> = Result<T, Broken>;

/// `holds!(T3, condition, "what was seen")`: returns a [`Broken`] if the condition is false.
macro_rules! holds {
    ($rule:expr, $condition:expr, $($what:tt)+) => {
        if !$condition {
            return Err($crate::check::Broken { rule: $rule, what: format!($($what)+) });
        }
    };
}
pub(crate) use holds;

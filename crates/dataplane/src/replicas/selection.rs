//! How an operator chooses servers itself.

use std::fmt;

/// Who chooses servers for the requests that an operator serves: `enum mf_selection`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(rename_all = "kebab-case"))]
#[repr(u32)]
pub enum Selection {
    /// Not the operator: its selector does, to which it forwards them.
    #[default]
    None = 0,
    /// The operator: any of the servers.
    Random = 1,
    /// The operator: the server to which it has sent fewest requests that are not answered.
    LeastOutstanding = 2,
    /// The operator: the same of two servers at random.
    PowerOfTwo = 3,
    /// The operator: C3's ranking, without rate control.
    C3 = 4,
}

impl Selection {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::None, Self::Random, Self::LeastOutstanding, Self::PowerOfTwo, Self::C3];

    /// As users write it, and configuration files: the names of the selectors that run beside an operator.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Random => "random",
            Self::LeastOutstanding => "least-outstanding",
            Self::PowerOfTwo => "power-of-two",
            Self::C3 => "c3",
        }
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

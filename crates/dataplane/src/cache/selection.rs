//! Selection algorithms of an operator.

use std::fmt;

/// How requests at an operator get their server: `enum mf_selection`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(rename_all = "kebab-case"))]
#[repr(u32)]
pub enum Selection {
    /// Not here: the operator forwards them to a selector.
    #[default]
    None = 0,
    /// A random server.
    Random = 1,
    /// The server with the fewest outstanding requests from this operator.
    LeastOutstanding = 2,
    /// The better of two random servers by outstanding requests.
    PowerOfTwo = 3,
    /// C3's ranking, without rate control.
    C3 = 4,
}

impl Selection {
    /// All values by number.
    pub const ALL: [Self; 5] = [Self::None, Self::Random, Self::LeastOutstanding, Self::PowerOfTwo, Self::C3];

    /// Name in the configuration, as for separate selectors.
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

use super::{C3, HotCold, LeastOutstanding, PeakEwma, PowerOfTwo, Quadratic, Random, RoundRobin, Selector, Tars};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The selectors, except the oracle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// [`Random`].
    Random,
    /// [`RoundRobin`].
    RoundRobin,
    /// [`LeastOutstanding`].
    LeastOutstanding,
    /// [`PowerOfTwo`].
    PowerOfTwo,
    /// [`PeakEwma`].
    PeakEwma,
    /// [`C3`] without rate control.
    #[default]
    C3,
    /// [`C3`] with rate control.
    C3RateControl,
    /// [`Tars`].
    Tars,
    /// [`HotCold`].
    HotCold,
    /// [`Quadratic`].
    Quadratic,
}

/// An unknown name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no selector is called {name:?}; there are {all}", all = names())]
pub struct UnknownAlgorithm {
    name: String,
}

fn names() -> String {
    Algorithm::ALL.map(Algorithm::name).join(", ")
}

impl Algorithm {
    /// By how much they know, least first.
    pub const ALL: [Self; 10] = [
        Self::Random,
        Self::RoundRobin,
        Self::LeastOutstanding,
        Self::PowerOfTwo,
        Self::PeakEwma,
        Self::C3,
        Self::C3RateControl,
        Self::Tars,
        Self::HotCold,
        Self::Quadratic,
    ];

    /// The name in commands and configuration files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::RoundRobin => "round-robin",
            Self::LeastOutstanding => "least-outstanding",
            Self::PowerOfTwo => "power-of-two",
            Self::PeakEwma => "peak-ewma",
            Self::C3 => "c3",
            Self::C3RateControl => "c3-rate-control",
            Self::Tars => "tars",
            Self::HotCold => "hot-cold",
            Self::Quadratic => "quadratic",
        }
    }

    /// Creates a selector for `servers` servers that `selectors` selectors share, with its default parameters.
    #[must_use]
    pub fn selector(self, servers: u16, selectors: u32) -> Box<dyn Selector + Send> {
        match self {
            Self::Random => Box::new(Random::new(servers)),
            Self::RoundRobin => Box::new(RoundRobin::new(servers)),
            Self::LeastOutstanding => Box::new(LeastOutstanding::new(servers)),
            Self::PowerOfTwo => Box::new(PowerOfTwo::new(servers)),
            Self::PeakEwma => Box::new(PeakEwma::new(servers)),
            Self::C3 => Box::new(C3::new(servers, selectors)),
            Self::C3RateControl => Box::new(C3::with_rate_control(servers, selectors)),
            Self::Tars => Box::new(Tars::new(servers, selectors)),
            Self::HotCold => Box::new(HotCold::new(servers)),
            Self::Quadratic => Box::new(Quadratic::new(servers, selectors)),
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(text: &str) -> Result<Self, UnknownAlgorithm> {
        let named = Self::ALL.into_iter().find(|algorithm| algorithm.name() == text);
        named.ok_or_else(|| UnknownAlgorithm { name: text.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_in_commands_and_files() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.name().parse(), Ok(algorithm));
            assert_eq!(serde_json::to_string(&algorithm).unwrap(), format!("\"{algorithm}\""));
        }
        let error = "c4".parse::<Algorithm>().unwrap_err().to_string();
        assert!(error.contains("\"c4\"") && error.contains("c3-rate-control"), "{error}");
    }
}

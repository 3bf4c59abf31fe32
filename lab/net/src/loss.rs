//! Random packet loss, for tests.
//!
//! Each host's interface gets a classic BPF filter in both directions that drops packets at random. netem would not work: it acts on queued
//! packets, and what an XDP program sends back is not queued. These filters, at the host, see both.

use crate::LabError;
use crate::filter::{DROP, GO_ON, LOSE, Step, bytecode, prepare};
use crate::iproute::{Batch, Tool};
use crate::names::HOST_INTERFACE;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

const LOSS_MAX: f64 = 0.99;

/// Fraction of packets a link loses, in each direction: 0 to 0.99.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, PartialOrd, Serialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Loss(f64);

impl Loss {
    /// No loss.
    pub const NONE: Self = Self(0.0);

    /// Creates it from a fraction, such as 0.001.
    ///
    /// # Errors
    /// [`LabError::Loss`] if below 0 or above 0.99.
    pub fn new(fraction: f64) -> Result<Self, LabError> {
        if (0.0..=LOSS_MAX).contains(&fraction) {
            Ok(Self(fraction))
        } else {
            Err(LabError::Loss(fraction.to_string()))
        }
    }

    /// The fraction of packets lost.
    pub fn fraction(self) -> f64 {
        self.0
    }

    /// A packet is lost if its random 32-bit number is below this.
    pub(crate) fn threshold(self) -> u32 {
        // At most 0.99 · 2^32, so the cast cannot overflow.
        (self.0 * f64::from(u32::MAX)).round() as u32
    }
}

impl TryFrom<f64> for Loss {
    type Error = LabError;

    fn try_from(fraction: f64) -> Result<Self, LabError> {
        Self::new(fraction)
    }
}

impl From<Loss> for f64 {
    fn from(loss: Loss) -> Self {
        loss.0
    }
}

impl FromStr for Loss {
    type Err = LabError;

    fn from_str(text: &str) -> Result<Self, LabError> {
        let refused = || LabError::Loss(text.to_owned());
        let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |percent| (percent, 100.0));
        let number: f64 = number.trim().parse().map_err(|_| refused())?;
        Self::new(number / unit).map_err(|_| refused())
    }
}

impl fmt::Display for Loss {
    /// Rounded to hide binary fractions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", (self.0 * 1e8).round() / 1e6)
    }
}

/// On the host in whose namespace this thread runs.
pub(crate) fn install(loss: Loss) -> Result<(), LabError> {
    if loss == Loss::NONE {
        return Ok(());
    }
    let mut batch = Batch::new(Tool::Tc, "lose packets");
    prepare(&mut batch, HOST_INTERFACE);
    let steps = [Step::Random, Step::AtLeast(loss.threshold(), 0, 1), Step::Answer(GO_ON), Step::Answer(DROP)];
    let program = bytecode(&steps);
    for direction in ["ingress", "egress"] {
        batch.line(format!(
            "filter add dev {HOST_INTERFACE} {direction} pref {LOSE} bpf direct-action bytecode \"{program}\""
        ));
    }
    batch.run(None).map_err(needs_filters)
}

pub(crate) fn needs_filters(error: LabError) -> LabError {
    match error {
        LabError::Command { said, .. } => LabError::NoLoss { said },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_percentage_or_a_fraction() {
        for (text, fraction, shown) in
            [("0.1%", 0.001, "0.1%"), ("0.001", 0.001, "0.1%"), ("0", 0.0, "0%"), ("30 %", 0.3, "30%")]
        {
            let loss: Loss = text.parse().unwrap();
            assert_eq!((loss.fraction(), loss.to_string().as_str()), (fraction, shown), "{text}");
        }
        for wrong in ["", "%", "x", "-1%", "100%", "1", "nan", "inf", "1e999"] {
            assert!(wrong.parse::<Loss>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_threshold_is_the_fraction_of_all_numbers_of_32_bits() {
        assert_eq!(Loss::NONE.threshold(), 0);
        assert_eq!("50%".parse::<Loss>().unwrap().threshold(), 1 << 31);
        assert_eq!(Loss::new(1e-9).unwrap().threshold(), 4);
    }
}

//! The schedulers that are compared.

use crate::engines::LabEngine;
use midflight_papers::findings::plot::Hue;

/// A scheduler that runs for real.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Contender {
    /// Midflight, its switch in the kernel.
    Kernel,
    /// Midflight, its switch as a process.
    User,
    /// `midflight-lab baseline sparrow`.
    Sparrow,
}

/// In the order of tables and legends.
pub(super) const ALL: [Contender; 3] = [Contender::Kernel, Contender::User, Contender::Sparrow];

impl Contender {
    /// In names of results.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::User => "user",
            Self::Sparrow => "sparrow",
        }
    }

    /// For people.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Kernel => "Midflight, kernel engine",
            Self::User => "Midflight, switch in user space",
            Self::Sparrow => "Sparrow",
        }
    }

    /// Who it is in the simulated figures.
    pub(super) fn hue(self) -> Hue {
        match self {
            Self::Kernel => Hue::Ours,
            Self::User => Hue::OursServer,
            Self::Sparrow => Hue::Sparrow,
        }
    }

    /// The engine of Midflight's switch.
    pub(super) fn engine(self) -> Option<LabEngine> {
        match self {
            Self::Kernel => Some(LabEngine::Kernel),
            Self::User => Some(LabEngine::User),
            Self::Sparrow => None,
        }
    }

    /// Why it cannot run on this machine, if it cannot.
    pub(super) fn missing(self) -> Option<String> {
        self.engine().and_then(LabEngine::missing)
    }
}

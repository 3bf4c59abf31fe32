use crate::engines::LabEngine;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Contender {
    /// Midflight's switch in the kernel.
    Kernel,
    /// Midflight's switch as a process.
    User,
    /// `midflight-lab baseline sparrow`.
    Sparrow,
}

/// In the order of tables and legends.
pub(super) const ALL: [Contender; 3] = [Contender::Kernel, Contender::User, Contender::Sparrow];

impl Contender {
    /// For names of results.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::User => "user",
            Self::Sparrow => "sparrow",
        }
    }

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Kernel => "Midflight, kernel engine",
            Self::User => "Midflight, switch in user space",
            Self::Sparrow => "Sparrow",
        }
    }

    pub(super) fn engine(self) -> Option<LabEngine> {
        match self {
            Self::Kernel => Some(LabEngine::Kernel),
            Self::User => Some(LabEngine::User),
            Self::Sparrow => None,
        }
    }

    /// `None` if it can run here.
    pub(super) fn missing(self) -> Option<String> {
        self.engine().and_then(LabEngine::missing)
    }
}

use std::str::FromStr;

/// How XDP programs are attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XdpMode {
    /// In the interface's driver, before the kernel allocates anything for a frame.
    #[default]
    Native,
    /// After the driver, on any interface; slower.
    Generic,
}

impl XdpMode {
    /// All modes.
    pub const ALL: [Self; 2] = [Self::Native, Self::Generic];

    /// `native` or `generic`
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Generic => "generic",
        }
    }
}

impl FromStr for XdpMode {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|mode| mode.name() == name);
        named.ok_or_else(|| format!("unknown mode `{name}`, expected `native` or `generic`"))
    }
}

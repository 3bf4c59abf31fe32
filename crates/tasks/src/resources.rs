//! Names of resources in the masks of tasks and executors (T5); a name stands for one bit. The bits always have the names `r0` to
//! `r7`; `[tasks.resources]` in the configuration adds others.

use std::collections::BTreeMap;

/// Bits in a mask.
pub const RESOURCE_BITS: u8 = 8;

/// A cluster's names for the bits of a resource mask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct ResourceNames {
    bits: BTreeMap<String, u8>,
}

/// An invalid name or bit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResourceError {
    /// No bit has this name.
    #[error(
        "unknown resource `{name}`: known are {known}; name a bit in the [tasks.resources] table of the configuration"
    )]
    Unknown {
        /// The unknown name.
        name: String,
        /// List of the known names.
        known: String,
    },
    /// A bit above 7.
    #[error("resources.{name} = {bit}: must be 0 to 7")]
    BadBit {
        /// Name of the resource.
        name: String,
        /// Its bit.
        bit: u8,
    },
    /// The name is ambiguous in a list, or taken.
    #[error("resources.{0}: a name is letters, digits, `-` and `_`, and not r0 to r7 (those are the bits themselves)")]
    BadName(String),
    /// Two names have one bit.
    #[error("resources.{first} and resources.{second} are both bit {bit}: give each name its own bit")]
    SameBit {
        /// The first name.
        first: String,
        /// The second name.
        second: String,
        /// Their bit.
        bit: u8,
    },
}

impl ResourceNames {
    /// Checks names and bits.
    ///
    /// # Errors
    /// A bit above 7, a name that is invalid in a list, or two names for one bit.
    pub fn new(names: impl IntoIterator<Item = (String, u8)>) -> Result<Self, ResourceError> {
        let names = Self { bits: names.into_iter().collect() };
        names.validate()?;
        Ok(names)
    }

    /// Checks a deserialized table.
    ///
    /// # Errors
    /// As [`ResourceNames::new`].
    pub fn validate(&self) -> Result<(), ResourceError> {
        let mut owners: [Option<&str>; RESOURCE_BITS as usize] = [None; RESOURCE_BITS as usize];
        for (name, &bit) in &self.bits {
            let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
            if !plain || builtin(name).is_some() {
                return Err(ResourceError::BadName(name.clone()));
            }
            let owner =
                owners.get_mut(usize::from(bit)).ok_or_else(|| ResourceError::BadBit { name: name.clone(), bit })?;
            if let Some(first) = owner.replace(name) {
                return Err(ResourceError::SameBit { first: first.into(), second: name.clone(), bit });
            }
        }
        Ok(())
    }

    /// Mask of a list such as `gpu,ssd`; 0 for an empty list.
    ///
    /// # Errors
    /// If a name of the list is unknown.
    pub fn mask(&self, list: &str) -> Result<u8, ResourceError> {
        let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
        names.map(|name| self.bit(name)).try_fold(0, |mask, bit| Ok(mask | 1 << bit?))
    }

    /// Names of a mask's bits, lowest first.
    #[must_use]
    pub fn names(&self, mask: u8) -> Vec<String> {
        let name = |bit: u8| {
            let given = self.bits.iter().find(|&(_, &b)| b == bit).map(|(name, _)| name.clone());
            given.unwrap_or_else(|| format!("r{bit}"))
        };
        (0..RESOURCE_BITS).filter(|bit| mask >> bit & 1 == 1).map(name).collect()
    }

    fn bit(&self, name: &str) -> Result<u8, ResourceError> {
        let bit = builtin(name).or_else(|| self.bits.get(name).copied());
        bit.ok_or_else(|| {
            let known: Vec<_> = self.bits.keys().map(String::as_str).chain(["r0 to r7"]).collect();
            ResourceError::Unknown { name: name.into(), known: known.join(", ") }
        })
    }
}

fn builtin(name: &str) -> Option<u8> {
    let bit = name.strip_prefix('r')?;
    match bit.as_bytes() {
        [digit @ b'0'..=b'7'] => Some(digit - b'0'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> ResourceNames {
        ResourceNames::new([("gpu".into(), 0), ("ssd".into(), 1)]).unwrap()
    }

    #[test]
    fn t5_names_become_the_mask_that_the_switch_compares() {
        assert_eq!(names().mask("gpu,ssd"), Ok(0b11));
        assert_eq!(names().mask(" ssd , r7"), Ok(0b1000_0010));
        assert_eq!(names().mask(""), Ok(0));
        assert_eq!(names().names(0b1000_0010), ["ssd", "r7"]);
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = names().mask("gpu,tpu").unwrap_err().to_string();
        assert!(error.contains("`tpu`") && error.contains("gpu, ssd, r0 to r7"), "{error}");
        assert!(names().mask("r8").is_err());
    }

    #[test]
    fn each_name_needs_its_own_bit_below_8() {
        let one = |name: &str, bit| ResourceNames::new([(name.to_string(), bit)]).unwrap_err();
        assert_eq!(one("gpu", 8), ResourceError::BadBit { name: "gpu".into(), bit: 8 });
        assert_eq!(one("r1", 1), ResourceError::BadName("r1".into()));
        assert_eq!(one("a,b", 1), ResourceError::BadName("a,b".into()));
        let same = ResourceNames::new([("a".into(), 3), ("b".into(), 3)]).unwrap_err();
        assert_eq!(same, ResourceError::SameBit { first: "a".into(), second: "b".into(), bit: 3 });
    }
}

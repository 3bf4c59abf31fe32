//! `--count`: parses the counted resources of an executor.

use crate::options::ConfigFile;
use anyhow::Result;
use clap::Args;
use midflight_host::CountedResource;
use midflight_tasks::executor::BUNDLES_MAX;
use midflight_terminal::machine::{cores, memory};
use midflight_terminal::usage::error;
use std::collections::HashSet;

/// Variables that every command has.
const TAKEN: [&str; 4] = ["ATTEMPT", "JID", "RUN", "TID"];
/// Read by GPU libraries.
const GPUS: &str = "CUDA_VISIBLE_DEVICES";
const UNITS: [(&str, u64); 8] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

/// The option of commands that start executors.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Counts {
    /// A resource to count, offered too: gpu=2, gpu=[0,1], mem=4x16GiB; may be repeated
    #[arg(long, value_name = "NAME=BUNDLES")]
    count: Vec<String>,
}

impl Counts {
    pub(crate) fn is_empty(&self) -> bool {
        self.count.is_empty()
    }

    /// The flags for another process.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = String> {
        self.count.iter().map(|count| format!("--count={count}"))
    }

    /// Resolves the names with the configuration.
    pub(crate) fn resources(&self, names: &ConfigFile) -> Result<Vec<CountedResource>> {
        let mut all: Vec<CountedResource> = Vec::new();
        for text in &self.count {
            let wrong = |why: String| error(format!("--count {text}: {why}"));
            let counted = Counted::parse(text).map_err(wrong)?;
            counted.fits(cores().into(), memory()).map_err(wrong)?;
            let mask = names.mask(&counted.name)?;
            let resource = counted.resource(mask.trailing_zeros() as u8);
            if all.iter().any(|other| other.bit() == resource.bit()) {
                return Err(wrong("this resource is counted twice: name all of its bundles in one --count".into()));
            }
            all.push(resource);
        }
        Ok(all)
    }
}

/// Empty if nothing is counted.
pub(crate) fn summary(counted: &[CountedResource]) -> String {
    let each: Vec<_> = counted.iter().map(|one| format!("{} {}", one.bundles(), one.name())).collect();
    if each.is_empty() { String::new() } else { format!(" (counts {})", each.join(", ")) }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Ids(Vec<Vec<String>>),
    Amounts { count: u64, each: u64 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Counted {
    name: String,
    what: What,
    variable: Option<String>,
}

impl Counted {
    fn parse(text: &str) -> Result<Self, String> {
        const HOW: &str =
            "write it like gpu=2, gpu=[0,1], gpu=[0+1,2+3] or mem=4x16GiB, and :VARIABLE behind it if need be";
        let (name, rest) = text.split_once('=').ok_or(HOW)?;
        let (what, variable) = match rest.rsplit_once(':') {
            Some((what, variable)) => (what, Some(variable.to_owned())),
            None => (rest, None),
        };
        if let Some(variable) = &variable {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if variable.is_empty()
                || !variable.chars().all(is_plain)
                || variable.starts_with(|c: char| c.is_ascii_digit())
            {
                return Err(format!("{variable:?} is no name of a variable: use letters, digits and _"));
            }
        }
        if name.is_empty() || name.contains(',') || TAKEN.contains(&name.to_ascii_uppercase().as_str()) {
            return Err(format!("{name:?} cannot be counted: name one resource, other than attempt, jid, run and tid"));
        }
        let what = if let Some(list) = what.strip_prefix('[') {
            What::Ids(ids(list.strip_suffix(']').ok_or(HOW)?)?)
        } else if let Some((count, each)) = what.split_once('x') {
            What::Amounts { count: number(count).ok_or(HOW)?, each: amount(each).ok_or(HOW)? }
        } else {
            let count = number(what).ok_or(HOW)?;
            What::Ids((0..count.min(u64::from(BUNDLES_MAX) + 1)).map(|id| vec![id.to_string()]).collect())
        };
        let counted = Self { name: name.to_owned(), what, variable };
        let count = counted.count();
        if count == 0 || count > BUNDLES_MAX.into() {
            return Err(format!("a resource has 1 to {BUNDLES_MAX} bundles"));
        }
        Ok(counted)
    }

    fn count(&self) -> u64 {
        match &self.what {
            What::Ids(bundles) => bundles.len() as u64,
            What::Amounts { count, .. } => *count,
        }
    }

    /// Names other than `cores` and `memory` have no known capacity.
    fn fits(&self, cores: u64, memory: Option<u64>) -> Result<(), String> {
        let (has, unit) = match self.name.as_str() {
            "core" | "cores" | "cpu" | "cpus" => (Some(cores), "cores"),
            "mem" | "memory" => (memory, "bytes of memory"),
            _ => return Ok(()),
        };
        let total = match &self.what {
            What::Ids(bundles) if unit == "cores" => bundles.iter().map(|ids| ids.len() as u64).sum(),
            What::Ids(_) => return Err("say how much each bundle is, such as 4x16GiB".into()),
            What::Amounts { count, each } => count.saturating_mul(*each),
        };
        match has {
            Some(has) if total > has => {
                Err(format!("{total} {unit}, and this machine has {has}: use fewer or smaller bundles"))
            }
            _ => Ok(()),
        }
    }

    fn resource(self, bit: u8) -> CountedResource {
        let bundles: Vec<String> = match self.what {
            What::Ids(bundles) => bundles.iter().map(|ids| ids.join(",")).collect(),
            What::Amounts { count, each } => vec![each.to_string(); count as usize],
        };
        let is_gpu = matches!(self.name.as_str(), "gpu" | "gpus");
        let resource = CountedResource::new(bit, &self.name, bundles);
        match self.variable.as_deref().or(is_gpu.then_some(GPUS)) {
            Some(variable) => resource.variable(variable),
            None => resource,
        }
    }
}

/// Parses bundles of ids, "0+1,2+3". Each id may appear once.
fn ids(list: &str) -> Result<Vec<Vec<String>>, String> {
    let bundles: Vec<Vec<String>> =
        list.split(',').map(|bundle| bundle.split('+').map(|id| id.trim().to_owned()).collect()).collect();
    let mut seen = HashSet::new();
    for id in bundles.iter().flatten() {
        if id.is_empty() {
            return Err("an id is missing: write them like [0,1] or [0+1,2+3]".into());
        }
        if !seen.insert(id) {
            return Err(format!("{id} is there twice: two tasks would have it at once"));
        }
    }
    Ok(bundles)
}

fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Parses "16GiB" or "2"; at least 1.
fn amount(text: &str) -> Option<u64> {
    let (digits, unit) =
        UNITS.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit))).unwrap_or((text, 1));
    number(digits)?.checked_mul(unit).filter(|amount| *amount > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundles(text: &str) -> (u8, usize, CountedResource) {
        let resource = Counted::parse(text).unwrap().resource(3);
        (resource.bit(), resource.bundles(), resource)
    }

    #[test]
    fn a_number_is_so_many_ids() {
        let cuda = |ids: &[&str]| CountedResource::new(3, "gpu", ids.iter().copied()).variable(GPUS);
        assert_eq!(bundles("gpu=2"), (3, 2, cuda(&["0", "1"])));
        assert_eq!(bundles("gpu=[4,6]").2, cuda(&["4", "6"]));
        assert_eq!(bundles("gpu=[0+1,2+3]").2, cuda(&["0,1", "2,3"]));
        let other = CountedResource::new(3, "npu", ["0"]).variable("ASCEND_RT_VISIBLE_DEVICES");
        assert_eq!(bundles("npu=1:ASCEND_RT_VISIBLE_DEVICES").2, other);
    }

    #[test]
    fn amounts_with_units_become_plain_numbers() {
        assert_eq!(bundles("mem=4x16GiB").2, CountedResource::new(3, "mem", ["17179869184"; 4]));
        assert_eq!(bundles("cores=2x3").2, CountedResource::new(3, "cores", ["3"; 2]));
        assert_eq!(bundles("disk=1x2TB").2, CountedResource::new(3, "disk", ["2000000000000"]));
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_what_to_write() {
        let refused = |text: &str, why: &str| {
            let error = Counted::parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        };
        for text in
            ["gpu", "gpu=", "gpu=x", "gpu=[0,1", "gpu=-1", "mem=4x", "mem=4x0GiB", "mem=x1", "mem=1x99999999TiB"]
        {
            refused(text, "write it like");
        }
        refused("gpu=0", "a resource has 1 to 4096 bundles");
        refused("gpu=99999999999999999999x1", "write it like");
        refused("gpu=5000", "a resource has 1 to 4096 bundles");
        refused("gpu=[0,0]", "0 is there twice");
        refused("gpu=[0,,1]", "an id is missing");
        refused("gpu=1:2X", "no name of a variable");
        refused("jid=1", "cannot be counted");
        refused("a,b=1", "cannot be counted");
    }

    #[test]
    fn what_is_more_than_the_machine_has_is_refused() {
        let fits = |text: &str| Counted::parse(text).unwrap().fits(4, Some(8 << 30));
        assert_eq!(fits("cores=2x2"), Ok(()));
        assert_eq!(fits("cores=2x3"), Err("6 cores, and this machine has 4: use fewer or smaller bundles".into()));
        assert!(fits("cpus=5").is_err() && fits("gpu=99").is_ok());
        assert_eq!(fits("mem=2x4GiB"), Ok(()));
        assert!(fits("memory=1x9GiB").unwrap_err().starts_with("9663676416 bytes of memory, and this machine has"));
        assert!(fits("mem=2").unwrap_err().contains("4x16GiB"));
    }
}

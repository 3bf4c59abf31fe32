//! Marks: an environment variable that all descendants of a command inherit, even outside its process group.

use rustix::process::{Pid, Signal, kill_process};
use std::collections::HashSet;
use std::fmt;
use std::fs;

/// The variable's name.
pub(crate) const VARIABLE: &str = "MIDFLIGHT_RUN";

/// Rounds of killing, for processes started during the round before.
const ROUNDS: usize = 10;

/// Identifies one run of a command on this machine: `LIFE-NUMBER`, 16 hexadecimal digits each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mark {
    pub(crate) life: u64,
    pub(crate) number: u64,
}

impl Mark {
    /// Length of the text.
    pub(crate) const BYTES: usize = 33;

    fn parse(text: &[u8]) -> Option<Self> {
        let (life, number) = std::str::from_utf8(text).ok()?.split_once('-')?;
        let number_of = |digits| u64::from_str_radix(digits, 16).ok();
        Some(Self { life: number_of(life)?, number: number_of(number)? })
    }

    /// Finds the mark in the content of `/proc/PID/environ`.
    fn in_environment(environment: &[u8]) -> Option<Self> {
        let value = |variable: &'_ [u8]| -> Option<Self> {
            Self::parse(variable.strip_prefix(VARIABLE.as_bytes())?.strip_prefix(b"=")?)
        };
        environment.split(|&byte| byte == 0).find_map(value)
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:016x}-{:016x}", self.life, self.number))
    }
}

/// Kills all processes with one of these marks that `/proc` shows to this user.
pub(crate) fn kill_marked(marks: &HashSet<Mark>) {
    if marks.is_empty() {
        return;
    }
    for _ in 0..ROUNDS {
        let marked: Vec<Pid> =
            processes().filter(|&pid| mark_of(pid).is_some_and(|mark| marks.contains(&mark))).collect();
        if marked.is_empty() {
            return;
        }
        for pid in marked {
            let _ = kill_process(pid, Signal::KILL); // fails if it has ended
        }
    }
}

fn processes() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
}

fn mark_of(pid: Pid) -> Option<Mark> {
    Mark::in_environment(&fs::read(format!("/proc/{pid}/environ")).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_in_an_environment() {
        let mark = Mark { life: 7, number: u64::MAX };
        assert_eq!(mark.to_string().len(), Mark::BYTES);
        let environment = |text: String| Mark::in_environment(text.as_bytes());
        assert_eq!(environment(format!("A=1\0MIDFLIGHT_RUN={mark}\0B=2\0")), Some(mark));
        assert_eq!(environment(format!("MY_MIDFLIGHT_RUN={mark}\0MIDFLIGHT_RUN=odd\0")), None);
    }
}

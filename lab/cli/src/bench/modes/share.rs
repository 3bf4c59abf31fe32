//! A share of a CPU, by a control group (version 1 or 2).

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Processes that used up the share wait for the next period, so it must be short compared with leases and heartbeats.
const PERIOD: Duration = Duration::from_millis(10);
/// The smallest that Linux accepts; smaller shares have longer periods.
const QUOTA_MIN: Duration = Duration::from_millis(1);

/// Removed on drop, if its processes have ended.
#[derive(Debug)]
pub(super) struct Share(PathBuf);

impl Share {
    /// Of one CPU: 0.1 is a tenth.
    pub(super) fn new(name: &str, share: f64) -> Result<Self> {
        let hierarchy = CgroupHierarchy::find()?;
        let path = hierarchy.root.join(format!("midflight-{}-{name}", std::process::id()));
        std::fs::create_dir(&path).with_context(|| format!("cannot make the control group {}", path.display()))?;
        let group = Self(path);
        let period = PERIOD.max(QUOTA_MIN.div_f64(share));
        let (period, quota) = (period.as_micros(), period.mul_f64(share).as_micros().max(QUOTA_MIN.as_micros()));
        if hierarchy.is_unified {
            group.write("cpu.max", &format!("{quota} {period}"))?;
        } else {
            group.write("cpu.cfs_period_us", &period.to_string())?;
            group.write("cpu.cfs_quota_us", &quota.to_string())?;
        }
        Ok(group)
    }

    /// Moves the process and its threads into the group.
    pub(super) fn take_in(&self, process: u32) -> Result<()> {
        self.write("cgroup.procs", &process.to_string())
    }

    fn write(&self, file: &str, value: &str) -> Result<()> {
        let path = self.0.join(file);
        std::fs::write(&path, value).with_context(|| format!("cannot write {value:?} to {}", path.display()))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // A group with a process stays, without effect on others.
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Where cgroups with a CPU share are created.
struct CgroupHierarchy {
    root: PathBuf,
    /// Version 2.
    is_unified: bool,
}

impl CgroupHierarchy {
    fn find() -> Result<Self> {
        let path = "/proc/self/mountinfo";
        let mounts = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
        let of_version_1 = mounts.lines().filter_map(mount).find(|mount| mount.has_cpu);
        if let Some(mount) = of_version_1 {
            return Ok(Self { root: mount.at.into(), is_unified: false });
        }
        let unified = mounts.lines().filter_map(mount).find(|mount| mount.is_unified);
        let Some(Mount { at, .. }) = unified else {
            bail!(
                "no control groups are mounted, by which replicas get their shares of the CPU (mount -t cgroup2 none /sys/fs/cgroup)"
            )
        };
        let control = Path::new(at).join("cgroup.subtree_control");
        std::fs::write(&control, "+cpu")
            .with_context(|| format!("cannot switch on the controller of the CPU in {}", control.display()))?;
        Ok(Self { root: at.into(), is_unified: true })
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Mount<'a> {
    at: &'a str,
    is_unified: bool,
    /// Version 1, with the CPU controller.
    has_cpu: bool,
}

/// Parses a line of `/proc/self/mountinfo` (man 5 proc_pid_mountinfo); `None` unless it mounts control groups.
fn mount(line: &str) -> Option<Mount<'_>> {
    let (before, behind) = line.split_once(" - ")?;
    let at = before.split_whitespace().nth(4)?;
    let mut behind = behind.split_whitespace();
    let (kind, _source, options) = (behind.next()?, behind.next()?, behind.next()?);
    let has_cpu = kind == "cgroup" && options.split(',').any(|option| option == "cpu");
    let is_unified = kind == "cgroup2";
    (has_cpu || is_unified).then_some(Mount { at, is_unified, has_cpu })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_found_among_the_mounts() {
        let first = "34 29 0:30 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct";
        assert_eq!(mount(first), Some(Mount { at: "/sys/fs/cgroup/cpu", is_unified: false, has_cpu: true }));
        let second = "35 29 0:31 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        assert_eq!(mount(second), Some(Mount { at: "/sys/fs/cgroup", is_unified: true, has_cpu: false }));
        let other = "36 29 0:32 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset";
        assert_eq!(mount(other), None);
        assert_eq!(mount("24 1 8:1 / / rw - ext4 /dev/root rw"), None);
    }
}

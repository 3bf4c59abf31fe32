//! Resources of a process: memory, descriptors, BPF objects. None may grow in a soak.

use crate::memory;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::io;

/// Growth of memory that is always allowed: allocators keep some for later.
const RSS_SLACK_KIB: u64 = 16 << 10;
/// One part in this many is also allowed.
const RSS_SLACK_PART: u64 = 4;
/// For connections of arguments by reference, which executors keep for half a minute.
const FDS_SLACK: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gauges {
    pub(super) rss_kib: u64,
    pub(super) fds: usize,
}

impl Gauges {
    pub(super) fn of(process: u32) -> Result<Self> {
        let path = format!("/proc/{process}/status");
        let rss_kib = memory::kib(&path, "VmRSS:").with_context(|| format!("{path} has no VmRSS"))?;
        let path = format!("/proc/{process}/fd");
        let fds = std::fs::read_dir(&path).with_context(|| format!("cannot read {path}"))?.count();
        Ok(Self { rss_kib, fds })
    }

    /// What has grown since `before` by more than the slack.
    pub(super) fn grown_since(&self, before: &Self) -> Option<String> {
        let rss_most = before.rss_kib + before.rss_kib / RSS_SLACK_PART + RSS_SLACK_KIB;
        if self.rss_kib > rss_most {
            return Some(format!("its memory grew from {} to {} KiB", before.rss_kib, self.rss_kib));
        }
        (self.fds > before.fds + FDS_SLACK).then(|| format!("its descriptors grew from {} to {}", before.fds, self.fds))
    }
}

/// A kernel object by its id; ids are not reused soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BpfObject {
    Program(u32),
    Map(u32),
    Link(u32),
}

impl BpfObject {
    /// The process has descriptors of them.
    pub(super) fn of(process: u32) -> Result<BTreeSet<Self>> {
        let path = format!("/proc/{process}/fdinfo");
        let entries = std::fs::read_dir(&path).with_context(|| format!("cannot read {path}"))?;
        // A descriptor that was closed since cannot be read.
        let texts = entries.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path()).ok());
        Ok(texts.filter_map(|text| Self::named_in(&text)).collect())
    }

    /// A link's descriptor also names its program.
    fn named_in(fdinfo: &str) -> Option<Self> {
        let number = |key: &str| {
            let value = fdinfo.lines().find_map(|line| line.strip_prefix(key))?;
            value.trim().parse().ok()
        };
        let link = number("link_id:").map(Self::Link);
        link.or_else(|| number("map_id:").map(Self::Map)).or_else(|| number("prog_id:").map(Self::Program))
    }

    /// Whether it still exists in the kernel.
    pub(super) fn exists(self) -> io::Result<bool> {
        const BPF_PROG_GET_FD_BY_ID: libc::c_int = 13;
        const BPF_MAP_GET_FD_BY_ID: libc::c_int = 14;
        const BPF_LINK_GET_FD_BY_ID: libc::c_int = 30;
        /// The used part of `union bpf_attr`: id, next id, flags.
        #[repr(C)]
        struct ById([u32; 3]);
        let (command, id) = match self {
            Self::Program(id) => (BPF_PROG_GET_FD_BY_ID, id),
            Self::Map(id) => (BPF_MAP_GET_FD_BY_ID, id),
            Self::Link(id) => (BPF_LINK_GET_FD_BY_ID, id),
        };
        let attributes = ById([id, 0, 0]);
        // SAFETY: the kernel reads the given length of `attributes`, which outlives the call.
        let fd = unsafe { libc::syscall(libc::SYS_bpf, command, &raw const attributes, size_of::<ById>()) };
        if let Ok(fd) = i32::try_from(fd)
            && fd >= 0
        {
            // SAFETY: the descriptor is new, and nothing else owns it.
            drop(unsafe { <std::os::fd::OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(fd) });
            return Ok(true);
        }
        match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
            error => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_holds_something() {
        let before = Gauges::of(std::process::id()).unwrap();
        assert!(before.rss_kib > 0 && before.fds >= 3, "{before:?}");
        let _files: Vec<_> = (0..FDS_SLACK + 40).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
        let after = Gauges::of(std::process::id()).unwrap();
        assert!(after.grown_since(&before).is_some_and(|what| what.contains("descriptors")), "{after:?}");
        assert_eq!(before.grown_since(&after), None);
        let fat = Gauges { rss_kib: 2 * before.rss_kib + RSS_SLACK_KIB, ..before };
        assert!(fat.grown_since(&before).is_some_and(|what| what.contains("memory")));
    }

    #[test]
    fn descriptors_of_bpf_objects_are_told_apart() {
        let common = "pos:\t0\nflags:\t02000002\nmnt_id:\t16\n";
        for (more, object) in [
            ("prog_type:\t6\nprog_jited:\t1\nprog_id:\t31\n", Some(BpfObject::Program(31))),
            ("map_type:\t33\nmap_id:\t7\nfrozen:\t0\n", Some(BpfObject::Map(7))),
            ("link_type:\txdp\nlink_id:\t9\nprog_tag:\tab\nprog_id:\t31\nifindex:\t3\n", Some(BpfObject::Link(9))),
            ("eventfd-count: 0\n", None),
        ] {
            assert_eq!(BpfObject::named_in(&format!("{common}{more}")), object);
        }
    }
}

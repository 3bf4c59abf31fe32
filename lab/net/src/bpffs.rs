//! The BPF file system, where a switch with `--keep` pins its queue. Most systems mount it at boot; containers may not.

use rustix::fs::{FlockOperation, flock, statfs};
use rustix::mount::{MountFlags, mount};
use std::fs::File;
use std::io;

const BPFFS: &str = "/sys/fs/bpf";
const BPFFS_MAGIC: u64 = 0xcafe_4a11;

/// Mounts it if missing, in this process's mount namespace. Ignores errors: a switch with `--keep` reports a missing mount.
pub(crate) fn provide() {
    if let Err(error) = mount_unless_mounted() {
        tracing::info!("{BPFFS} is not mounted, and mounting it failed: {error}");
    }
}

fn mount_unless_mounted() -> io::Result<()> {
    if is_mounted() {
        return Ok(());
    }
    // If two processes mounted it at once, the second mount would hide the first one's files.
    let below = File::open(BPFFS)?;
    flock(&below, FlockOperation::LockExclusive)?;
    if !is_mounted() {
        mount("bpf", BPFFS, "bpf", MountFlags::empty(), Some(c"mode=0700"))?;
    }
    Ok(())
}

fn is_mounted() -> bool {
    // The type's width differs between machines; the magic fits them all.
    statfs(BPFFS).is_ok_and(|found| found.f_type as u32 as u64 == BPFFS_MAGIC)
}

//! Small file systems in memory, one per replica.

use anyhow::{Context, Result};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Enough for a replica during a run.
const SIZE: &str = "size=64m";

/// Unmounted on drop.
#[derive(Debug)]
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    pub(super) fn mount(path: PathBuf) -> Result<Self> {
        let shown = path.display();
        std::fs::create_dir_all(&path).with_context(|| format!("cannot make {shown}"))?;
        let options = std::ffi::CString::new(SIZE)?;
        mount("midflight", &path, "tmpfs", MountFlags::empty(), Some(options.as_c_str()))
            .with_context(|| format!("cannot mount a tmpfs at {shown}: this needs root (CAP_SYS_ADMIN)"))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &PathBuf {
        &self.0
    }

    fn filler(&self) -> PathBuf {
        Path::new(&self.0).join("filler")
    }

    pub(crate) fn fill(&self) -> Result<()> {
        let mut filler = File::create(self.filler()).context("cannot fill a small disk")?;
        let block = [0xAA; 1 << 16];
        // Finish in small steps, so that nothing fits.
        for step in [block.len(), 4096, 1] {
            while match filler.write(&block[..step]) {
                Ok(_) => true,
                Err(error) if error.kind() == ErrorKind::StorageFull => false,
                Err(error) => return Err(error).context("cannot fill a small disk"),
            } {}
        }
        Ok(())
    }

    pub(crate) fn make_room(&self) -> Result<()> {
        std::fs::remove_file(self.filler()).context("cannot make room on a small disk")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // If it is in use, it disappears with its last user.
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}

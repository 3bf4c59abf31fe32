//! A small disk, for tests of a full one.

use std::process::{Command, Stdio};

/// Unmounted on drop.
#[derive(Debug)]
pub(crate) struct Small(String);

impl Small {
    /// `None` without root.
    pub(crate) fn mount(path: String, size: &str) -> Option<Self> {
        std::fs::create_dir_all(&path).unwrap();
        let options = format!("size={size},mode=0700");
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs", &path]).stderr(Stdio::null()).status();
        mount.is_ok_and(|status| status.success()).then_some(Self(path))
    }

    /// Returns the file to remove to make room again.
    pub(crate) fn fill(&self) -> String {
        let filler = format!("{}/filler", self.0);
        let fill = ["if=/dev/zero", &format!("of={filler}"), "bs=4k"];
        let _ = Command::new("dd").args(fill).stderr(Stdio::null()).status(); // it fails by design: the disk is full
        filler
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["--lazy", &self.0]).status();
    }
}

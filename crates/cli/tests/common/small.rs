//! A disk that is soon full.

use std::process::{Command, Stdio};

/// A file system of this many bytes; unmounted when dropped.
#[derive(Debug)]
pub(crate) struct Small(String);

impl Small {
    /// `None` where that is not possible: only root may mount.
    pub(crate) fn mount(path: String, size: &str) -> Option<Self> {
        std::fs::create_dir_all(&path).unwrap();
        let options = format!("size={size},mode=0700");
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs", &path]).stderr(Stdio::null()).status();
        mount.is_ok_and(|status| status.success()).then_some(Self(path))
    }

    /// Leaves no room; removing the file that it names makes room again.
    pub(crate) fn fill(&self) -> String {
        let filler = format!("{}/filler", self.0);
        let fill = ["if=/dev/zero", &format!("of={filler}"), "bs=4k"];
        let _ = Command::new("dd").args(fill).stderr(Stdio::null()).status(); // it ends with an error: there is no room
        filler
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["--lazy", &self.0]).status();
    }
}

//! Slow disks: a library that delays each sync of a replica by the time in a file.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const VARIABLE: &str = "MIDFLIGHT_SLOW_SYNC";
const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void wait_as_told(void) {
    const char *path = getenv("MIDFLIGHT_SLOW_SYNC");
    FILE *file = path ? fopen(path, "r") : NULL;
    unsigned us = 0;
    if (file) {
        if (fscanf(file, "%u", &us) == 1) usleep(us);
        fclose(file);
    }
}

int fsync(int fd) { wait_as_told(); return (int)syscall(SYS_fsync, fd); }
int fdatasync(int fd) { wait_as_told(); return (int)syscall(SYS_fdatasync, fd); }
"#;

#[derive(Debug)]
pub(super) struct SlowSync {
    directory: PathBuf,
}

impl SlowSync {
    pub(super) fn build(directory: &Path) -> Result<Self> {
        let slow = Self { directory: directory.to_owned() };
        let source = directory.join("slow-sync.c");
        std::fs::write(&source, SOURCE)?;
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O", "-o"]).arg(slow.library()).arg(&source);
        let output = compiler.output().context("a slow disk needs a C compiler: install `cc`")?;
        ensure!(output.status.success(), "cc: {}", String::from_utf8_lossy(&output.stderr));
        Ok(slow)
    }

    fn library(&self) -> PathBuf {
        self.directory.join("slow-sync.so")
    }

    fn file(&self, id: usize) -> PathBuf {
        self.directory.join(format!("slow-sync-{id}"))
    }

    /// Loads the library.
    pub(super) fn preload(&self, command: &mut Command, id: usize) {
        command.env("LD_PRELOAD", self.library()).env(VARIABLE, self.file(id));
    }

    pub(super) fn set(&self, id: usize, by: Duration) -> Result<()> {
        Ok(std::fs::write(self.file(id), by.as_micros().to_string())?)
    }
}

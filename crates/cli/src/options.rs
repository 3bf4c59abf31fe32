//! Options that several subcommands share.

use anyhow::Result;
use clap::Args;
use midflight_control::config::SocketConfig;
use midflight_control::{Config, ExecutorsTable, ProgramTable, SwitchTable};
use midflight_host::{BlobOptions, ExecutorBuilder, PythonOptions, SocketBuffers};
use midflight_tasks::place::{LONGEST_PATIENCE, Preference};
use midflight_terminal::usage::{duration, duration_or_zero, error, resolve};
use midflight_wire::tasks::SLOT_PLACES;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Where names of resources come from.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ConfigFile {
    /// Configuration of the cluster: its [tasks.resources] table names resources (see docs/configuration.md)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

impl ConfigFile {
    /// Defaults without a file.
    pub(crate) fn load<T: ProgramTable>(&self) -> Result<Config<T>> {
        self.config.as_deref().map_or_else(|| Ok(Config::default()), |file| Config::load(file).map_err(error))
    }

    pub(crate) fn executors(&self) -> Result<ExecutorsTable> {
        let config: Config = self.load()?;
        Ok(config.program.executors)
    }

    pub(crate) fn mask(&self, list: &str) -> Result<u8> {
        let config: Config = self.load()?;
        config.program.resources.mask(list).map_err(error)
    }
}

pub(crate) fn buffers(config: &SocketConfig) -> SocketBuffers {
    SocketBuffers { receive_bytes: config.receive_buffer_bytes as usize, send_bytes: config.send_buffer_bytes as usize }
}

/// Applies the configuration's prefetch settings and limit of waiting tasks to an executor.
pub(crate) fn ask_ahead(builder: ExecutorBuilder, keys: ExecutorsTable) -> ExecutorBuilder {
    let builder = builder.ahead(keys.ahead);
    let builder = keys.waiting.into_iter().fold(builder, ExecutorBuilder::waiting);
    keys.ahead_span.into_iter().fold(builder, ExecutorBuilder::ahead_span)
}

/// Room for outputs that are too large for memory.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct OutputDisk {
    /// MiB of files for commands' outputs beyond 512 KiB; a command without room fails; default: 16384
    #[arg(long, value_name = "MIB")]
    pub output_disk: Option<u32>,
}

impl OutputDisk {
    pub(crate) fn blobs(self, directory: Option<PathBuf>) -> BlobOptions {
        let mut options = BlobOptions::default();
        options.max_file_bytes = self.output_disk.map_or(options.max_file_bytes, |mib| u64::from(mib) << 20);
        options.directory = directory;
        options
    }
}

/// Where executors keep such outputs.
#[derive(Args, Clone, Debug)]
pub(crate) struct OutputFiles {
    #[command(flatten)]
    disk: OutputDisk,
    /// Directory of these files, which have no names there; default: $TMPDIR or /tmp
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
}

impl OutputFiles {
    pub(crate) fn blobs(&self) -> Result<BlobOptions> {
        if let Some(directory) = self.output_dir.as_deref().filter(|directory| !directory.is_dir()) {
            let path = directory.display();
            return Err(error(format!("--output-dir {path} is no directory: make it, or name another one")));
        }
        Ok(self.disk.blobs(self.output_dir.clone()))
    }

    /// The flags for an executor in another process.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let disk = self.disk.output_disk.map(|mib| format!("--output-disk={mib}").into());
        let directory = self.output_dir.clone().map(PathBuf::into_os_string);
        disk.into_iter().chain(directory.into_iter().flat_map(|directory| ["--output-dir".into(), directory])).collect()
    }
}

/// Whether an executor runs Python functions, and how.
#[derive(Args, Clone, Debug)]
pub(crate) struct Python {
    /// Run Python functions (docs/python.md) with this interpreter: CPython 3.11 or newer with the package midflight;
    /// default: python3
    #[arg(long, value_name = "PYTHON", num_args = 0..=1, default_missing_value = "python3")]
    python: Option<PathBuf>,
    /// The same with the interpreter of a virtual environment
    #[arg(long, value_name = "DIR", conflicts_with = "python")]
    venv: Option<PathBuf>,
    /// End a Python worker after N tasks, and start a new one in its place; default: never
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    python_tasks: Option<u64>,
    /// MiB of functions and shared arguments that the executor and its workers together keep for further tasks, which are
    /// also the most that one may have; default: 1024
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..))]
    python_cache: Option<u32>,
}

impl Python {
    /// `None` if Python is off.
    pub(crate) fn options(&self) -> Result<Option<PythonOptions>> {
        let Some(interpreter) = self.interpreter() else {
            let given =
                [("--python-tasks", self.python_tasks.is_some()), ("--python-cache", self.python_cache.is_some())];
            if let Some((name, _)) = given.iter().find(|(_, is_given)| *is_given) {
                return Err(error(format!("{name} is of Python workers: give --python or --venv, too")));
            }
            return Ok(None);
        };
        let default = PythonOptions::new(interpreter);
        let cache_bytes = self.python_cache.map_or(default.cache_bytes, |mib| u64::from(mib) << 20);
        Ok(Some(PythonOptions { max_tasks: self.python_tasks, cache_bytes, ..default }))
    }

    fn interpreter(&self) -> Option<PathBuf> {
        self.python.clone().or_else(|| self.venv.as_ref().map(|directory| directory.join("bin/python")))
    }

    /// The flags for an executor in another process.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let interpreter = self.interpreter().map(|python| ["--python".into(), python.into_os_string()]);
        let tasks = self.python_tasks.map(|tasks| format!("--python-tasks={tasks}").into());
        let cache = self.python_cache.map(|mib| format!("--python-cache={mib}").into());
        interpreter.into_iter().flatten().chain(tasks).chain(cache).collect()
    }
}

/// What tasks ask for.
#[derive(Args, Clone, Debug)]
pub(crate) struct TaskOptions {
    /// Priority: 1 (the highest) to 8
    #[arg(long, short, value_name = "LEVEL", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=8))]
    pub priority: u8,
    /// Resources that the executor must have, such as gpu,ssd (names of --config, or r0 to r7)
    #[arg(long, value_name = "NAMES", default_value = "")]
    pub resources: String,
    /// Place where the tasks prefer to run, a name that executors give by --place
    #[arg(long, value_name = "PLACE")]
    pub prefer: Option<String>,
    /// How long they wait for a slot there before they go anywhere; 0s to 32s
    #[arg(long, value_name = "DURATION", requires = "prefer", value_parser = duration_or_zero, default_value = "50ms")]
    pub patience: Duration,
    /// How long one attempt may take (what counts: below), such as 500ms or 2m; default: for ever
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// How often a task that failed or took too long is tried again
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub retries: u32,
}

impl TaskOptions {
    pub(crate) fn preference(&self) -> Result<Option<Preference>> {
        let Some(place) = self.prefer.as_deref().map(place).transpose()? else { return Ok(None) };
        if self.patience > LONGEST_PATIENCE {
            return Err(error(format!(
                "--patience {:?} exceeds {LONGEST_PATIENCE:?}, after which tasks go anywhere",
                self.patience
            )));
        }
        Ok(Some(Preference::new(place, self.patience)))
    }
}

pub(crate) fn places(list: &str) -> Result<Vec<&str>> {
    let names: Vec<&str> = list.split(',').filter(|name| !name.is_empty()).map(place).collect::<Result<_>>()?;
    if names.len() > SLOT_PLACES {
        return Err(error(format!(
            "--place {list} names {}: name at most {SLOT_PLACES}, a machine and a rack",
            names.len()
        )));
    }
    Ok(names)
}

fn place(name: &str) -> Result<&str> {
    let is_name = !name.is_empty() && !name.contains(|c: char| c == ',' || c.is_whitespace());
    if is_name { Ok(name) } else { Err(error(format!("{name:?} is no name of a place: use no comma and no space"))) }
}

/// Flags override the file.
pub(crate) fn override_addresses(switch: &mut SwitchTable, listen: Option<&str>, http: Option<&str>) -> Result<()> {
    if let Some(listen) = listen {
        switch.listen = resolve(listen)?;
    }
    if let Some(http) = http {
        switch.http = http_address(http)?;
    }
    Ok(())
}

/// `None` for "off".
pub(crate) fn http_address(text: &str) -> Result<Option<SocketAddr>> {
    if matches!(text, "off" | "") { Ok(None) } else { resolve(text).map(Some) }
}

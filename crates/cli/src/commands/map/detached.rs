//! `--detach`: hands the commands to the submitter as a job.

use super::sources::Entries;
use super::template::{Template, Values};
use super::{Args, sources};
use crate::commands::job::detach::{self, Items};
use anyhow::{Result, ensure};
use midflight_control::config::DEFAULT_PORT;
use midflight_jobs::model::JobSpec;
use midflight_tasks::functions::{EXEC, ExecRequest};
use midflight_terminal::usage;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::process::ExitCode;

/// Options for live outputs have no meaning for a job that outlives its terminal.
pub(super) fn check(args: &Args, template: &Template) -> Result<()> {
    let Args { output, log, .. } = args;
    let told = [
        ("--jobs", args.jobs.is_some()),
        ("--halt", args.halt.is_possible()),
        ("{%}", template.has_slot()),
        ("--unordered", output.unordered),
        ("--tag", output.tag),
        ("--results", output.results.is_some()),
        ("--tmpdir", output.tmpdir.is_some()),
        ("--output-disk", output.disk.output_disk.is_some()),
        ("--joblog", log.joblog.is_some()),
    ];
    let wrong = told.iter().find(|(_, is_set)| *is_set).map(|(name, _)| *name);
    ensure!(
        wrong.is_none(),
        usage::error(format!("{} does not go with --detach: leave one of them out", wrong.unwrap_or_default()))
    );
    Ok(())
}

pub(super) fn submit(
    args: &Args,
    mut entries: Entries,
    template: &Template,
    request: ExecRequest,
    resources: u8,
    switches: Option<Vec<SocketAddr>>,
) -> Result<ExitCode> {
    let mut items = Items::default();
    for sequence in 1.. {
        let Some(entry) = entries.next()? else { break };
        let values = Values { arguments: &entry.arguments, sequence, slot: 1 };
        let command = entry.check().and_then(|()| template.expand(values));
        items.push(command.map_err(|error| usage::error(format!("command {sequence}: {error}")))?)?;
    }
    let (words, _) = sources::split(&args.words)?;
    let spec = JobSpec {
        name: args.detach.name_or(&words.join(OsStr::new(" ")).to_string_lossy()),
        function: EXEC.to_owned(),
        argument: Vec::new(),
        indices: items.indices(),
        has_items: true,
        directory: request.directory,
        environment: request.environment,
        timeout: request.timeout,
        retries: args.tasks.retries,
        priority: args.tasks.priority,
        resources,
        prefer: args.tasks.preference()?.map(|it| (it.place, it.patience_ms)),
        after: args.detach.dependencies()?,
    };
    let switches = switches.map_or_else(|| usage::resolve_all(&format!("127.0.0.1:{DEFAULT_PORT}")), Ok)?;
    detach::submit(spec, items, switches)
}

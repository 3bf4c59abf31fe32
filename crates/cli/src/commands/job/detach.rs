//! `submit --detach` and `map --detach`: hand a job to the submitter and return.

use super::list::last_answer;
use super::select::{Select, numbers};
use super::{connect, status_after_asking};
use anyhow::{Context, Result, bail, ensure};
use clap::Args as ClapArgs;
use midflight_jobs::connection::Connection;
use midflight_jobs::model::{After, COMMANDS_MAX, ITEMS_BYTES_MAX, Indices, JobSpec, JobState, When};
use midflight_jobs::protocol::{Answer, PIECE_MAX, Request};
use midflight_terminal::units::thousands;
use midflight_terminal::{stdout, usage};
use std::net::SocketAddr;
use std::process::ExitCode;

/// Options of a job that outlives its terminal.
#[derive(ClapArgs, Clone, Debug)]
pub(crate) struct DetachOptions {
    /// Print the number of the job, and return: it goes on without this terminal (midflight job --help)
    #[arg(long)]
    pub detach: bool,
    /// Name of the job, for people
    #[arg(long, value_name = "NAME", requires = "detach")]
    name: Option<String>,
    /// Begin when these jobs (7, 2-4, last) have succeeded; if one does not, the job is skipped
    #[arg(long, value_name = "JOB,..", value_delimiter = ',', requires = "detach")]
    after: Vec<Select>,
    /// Begin when these jobs have ended
    #[arg(long, value_name = "JOB,..", value_delimiter = ',', requires = "detach")]
    after_any: Vec<Select>,
    /// Begin when these jobs have failed; if one does not, the job is skipped
    #[arg(long, value_name = "JOB,..", value_delimiter = ',', requires = "detach")]
    after_failed: Vec<Select>,
}

impl DetachOptions {
    pub(crate) fn name_or(&self, otherwise: &str) -> String {
        self.name.clone().unwrap_or_else(|| otherwise.chars().take(40).collect())
    }

    pub(crate) fn dependencies(&self) -> Result<Vec<After>> {
        let mut dependencies = Vec::new();
        let lists =
            [(&self.after, When::Succeeded), (&self.after_any, When::Ended), (&self.after_failed, When::Failed)];
        for (selects, when) in lists {
            dependencies.extend(numbers(selects)?.into_iter().map(|job| After { job, when }));
        }
        Ok(dependencies)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Array(pub Vec<Indices>);

impl Array {
    /// Parses `1-1000`, `0-9:3` or `1,5,7-9`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let indices = text.split(',').map(part).collect::<Result<Vec<_>, _>>()?;
        let count: u64 = indices.iter().map(|indices| u64::from(indices.count())).sum();
        if count > u64::from(COMMANDS_MAX) {
            return Err(format!("an array has at most {} commands", thousands(COMMANDS_MAX.into())));
        }
        Ok(Self(indices))
    }
}

fn part(text: &str) -> Result<Indices, String> {
    let wrong = || format!("`{text}` is no range: write it like 1-1000, 0-9:3 or 1,5,7-9");
    let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
    let (range, step) = text.split_once(':').map_or((text, Ok(1)), |(range, step)| (range, number(step)));
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let indices = Indices { first: number(first)?, last: number(last)?, step: step? };
    if indices.step == 0 || indices.first > indices.last { Err(wrong()) } else { Ok(indices) }
}

/// Command lines within the submitter's bounds.
#[derive(Debug, Default)]
pub(crate) struct Items {
    items: Vec<Vec<u8>>,
    bytes: usize,
}

impl Items {
    pub(crate) fn push(&mut self, item: Vec<u8>) -> Result<()> {
        self.bytes += item.len() + size_of::<Vec<u8>>();
        let fits = self.items.len() < COMMANDS_MAX as usize && self.bytes <= ITEMS_BYTES_MAX;
        ensure!(
            fits,
            usage::error(format!(
                "a job has at most {} commands and {} MiB of command lines: divide the input",
                thousands(COMMANDS_MAX.into()),
                ITEMS_BYTES_MAX >> 20
            ))
        );
        self.items.push(item);
        Ok(())
    }

    pub(crate) fn indices(&self) -> Vec<Indices> {
        vec![Indices { first: 1, last: u32::try_from(self.items.len()).unwrap_or(u32::MAX), step: 1 }]
    }
}

/// Prints the job's number, and suggests the next command.
pub(crate) fn submit(spec: JobSpec, items: Items, switches: Vec<SocketAddr>) -> Result<ExitCode> {
    spec.check().map_err(usage::error)?;
    let mut connection = connect()?;
    let (count, has_items) = (spec.count(), spec.has_items);
    connection.tell(&Request::Submit { spec: Box::new(spec), switches })?;
    if has_items {
        send_items(&mut connection, items.items)?;
    }
    let Answer::Submitted { job, state } = connection.hear()? else {
        bail!("the submitter has answered something else than was asked for");
    };
    stdout::print(&format!("{job}\n"))?;
    let commands = if count == 1 { "1 command".to_owned() } else { format!("{} commands", thousands(count.into())) };
    match state {
        JobState::Skipped => eprintln!("job {job} is skipped: what it waits for did not end as it had to"),
        JobState::Waiting => eprintln!("job {job}: {commands}, waits for other jobs"),
        _ => {
            eprintln!("job {job}: {commands}; `midflight job wait {job}` waits for its end");
            tell_of_the_switch(&mut connection)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn send_items(connection: &mut Connection, items: Vec<Vec<u8>>) -> Result<()> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    for item in items {
        bytes += item.len() + size_of::<Vec<u8>>();
        batch.push(item);
        if bytes >= PIECE_MAX {
            connection.tell(&Request::Items(std::mem::take(&mut batch)))?;
            bytes = 0;
        }
    }
    connection.tell(&Request::Items(batch))?;
    connection.tell(&Request::End).context("cannot send the command lines")
}

/// The submitter accepts jobs without a cluster, but the user should know.
fn tell_of_the_switch(connection: &mut Connection) -> Result<()> {
    let (status, is_answered) = status_after_asking(connection)?;
    if !is_answered {
        let switches: Vec<_> = status.switches.iter().map(ToString::to_string).collect();
        eprintln!(
            "no switch answers on {}{}: start one with `midflight up`, and the job begins; or cancel it, and give --switch",
            switches.join(","),
            last_answer(&status)
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_written_as_for_slurm_and_hyperqueue() {
        let indices = |first, last, step| Indices { first, last, step };
        assert_eq!(Array::parse("1-1000"), Ok(Array(vec![indices(1, 1000, 1)])));
        assert_eq!(Array::parse("0-9:3,12"), Ok(Array(vec![indices(0, 9, 3), indices(12, 12, 1)])));
        for wrong in ["", "3-1", "1-2:0", "a", "1-", "1,,2"] {
            assert!(Array::parse(wrong).unwrap_err().contains("is no range"), "{wrong}");
        }
        assert!(Array::parse("0-4000000000").unwrap_err().contains("at most"));
    }
}

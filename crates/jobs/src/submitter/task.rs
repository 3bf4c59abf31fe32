//! Converts commands to tasks, and outcomes of tasks to ends of commands.

use crate::model::{EndedRow, How, JobSpec, preference};
use midflight_host::{Error, TaskError, TaskOutcome, TaskSpec};
use midflight_tasks::functions::{COMMAND, EXEC, ExecRequest, ExecResult};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) job: u64,
    pub(super) place: u32,
    pub(super) tries: u32,
}

/// `item` is the command's own line, if it has one.
pub(super) fn task(spec: &JobSpec, at: Place, item: Option<Vec<u8>>) -> Result<TaskSpec, String> {
    let line = item.unwrap_or_else(|| spec.argument.clone());
    let prefer = preference(spec.prefer);
    let properties = |mut task: TaskSpec| {
        (task.priority, task.resources, task.prefer) = (spec.priority, spec.resources, prefer);
        task
    };
    if spec.function != EXEC {
        return Ok(properties(TaskSpec::new(&spec.function, line)));
    }
    let index = spec.index(at.place).ok_or("the job has no such command")?;
    let mut environment = spec.environment.clone();
    let own = [("MIDFLIGHT_JOB", at.job.to_string()), ("MIDFLIGHT_INDEX", index.to_string())];
    environment.extend(own.map(|(name, value)| (name.as_bytes().to_vec(), value.into_bytes())));
    let request =
        ExecRequest { command_line: line, directory: spec.directory.clone(), environment, timeout: spec.timeout };
    Ok(properties(TaskSpec::new(COMMAND, request.encode().map_err(|error| error.to_string())?)))
}

pub(super) fn ended(spec: &JobSpec, tries: u32, outcome: TaskOutcome) -> (EndedRow, Vec<u8>) {
    let none = |how, why: String| (EndedRow::without_result(how, why, tries), Vec::new());
    let result = match outcome {
        Ok(result) => result,
        Err(Error::Task(TaskError::Cancelled)) => return none(How::Cancelled, String::new()),
        Err(Error::Task(error @ (TaskError::Forgotten | TaskError::Lost(_)))) => {
            return none(How::Lost, error.to_string());
        }
        Err(Error::Task(TaskError::TimedOut)) => return none(How::TimedOut, "it took too long".to_owned()),
        Err(Error::Task(TaskError::TooLarge { length, max })) => {
            let why = format!("its outputs have {length} bytes, and may have {max}: write them to a file");
            return none(How::Failed, why);
        }
        Err(error) => return none(How::Failed, error.to_string()),
    };
    if spec.function != EXEC {
        let row = EndedRow::without_result(How::Succeeded, "", tries);
        let ran = Duration::from_nanos(result.timing.ran_ns);
        return (EndedRow { ran, stdout: result.value.len() as u64, ..row }, result.value);
    }
    let Some(mut output) = ExecResult::decode(&result.value) else {
        return none(
            How::Failed,
            "the executor's answer is no command's result: it must be of this version".to_owned(),
        );
    };
    let how = match (output.timed_out, output.code) {
        (true, _) => How::TimedOut,
        (false, 0) => How::Succeeded,
        (false, _) => How::Failed,
    };
    let row = EndedRow {
        how,
        code: Some(output.code),
        signal: output.signal,
        host: output.host,
        started: u64::try_from(output.started.as_millis()).ok(),
        ran: output.run_time,
        tries,
        stdout: output.stdout.len() as u64,
        stderr: output.stderr.len() as u64,
        kept: true,
        why: String::new(),
    };
    output.stdout.append(&mut output.stderr);
    (row, output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::spec;

    #[test]
    fn a_command_knows_its_job_and_its_index() {
        let spec = JobSpec { argument: b"echo $MIDFLIGHT_INDEX".to_vec(), ..spec() };
        let task = task(&spec, Place { job: 9, place: 3, tries: 0 }, None).unwrap();
        let request = ExecRequest::decode(&task.argument).unwrap();
        let variable = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
        assert_eq!(request.environment, [variable("MIDFLIGHT_JOB", "9"), variable("MIDFLIGHT_INDEX", "20")]);
        assert_eq!(request.command_line, spec.argument);
    }

    #[test]
    fn what_may_have_run_is_lost_and_what_is_unknown_has_failed() {
        assert_eq!(ended(&spec(), 1, Err(TaskError::Forgotten.into())).0.how, How::Lost);
        let (row, outputs) = ended(&spec(), 1, Err(TaskError::Unknown.into()));
        assert_eq!((row.how, row.tries, outputs.len()), (How::Failed, 1, 0));
    }
}

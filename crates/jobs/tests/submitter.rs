//! A submitter with a switch and an executor in this process, and commands that use its socket.

#![allow(clippy::unwrap_used, reason = "tests may")]

use midflight_host::{Executor, Switch};
use midflight_jobs::connection::{ConnectError, Connection};
use midflight_jobs::directory::{DirectoryError, StateDirectory};
use midflight_jobs::model::{After, EndedRow, How, Indices, JobRow, JobSpec, JobState, When};
use midflight_jobs::protocol::{Answer, CONNECTIONS_MAX, ProtocolError, Request};
use midflight_jobs::submitter::{Settings, Stopper, Submitter, SubmitterError};
use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

/// A process that another test forks may hold a copy of an earlier submitter's lock for a moment.
fn start(state: &StateDirectory, settings: Settings) -> Result<Submitter, SubmitterError> {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match Submitter::start(state, settings) {
            Err(SubmitterError::Directory(DirectoryError::Locked { .. })) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(1));
            }
            started => return started,
        }
    }
}

struct Site {
    directory: tempfile::TempDir,
    switch: Switch,
    executor: Executor,
    settings: Settings,
    running: Option<(Stopper, JoinHandle<()>)>,
}

impl Site {
    fn new(settings: Settings) -> Self {
        let switch = Switch::builder().start().unwrap();
        let executor = Executor::builder().switch(switch.local_addr()).slots(2).start().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let mut site = Self { directory, switch, executor, settings, running: None };
        site.start();
        site
    }

    fn state(&self) -> StateDirectory {
        StateDirectory::at(&self.directory.path().join("state")).unwrap()
    }

    fn start(&mut self) {
        let submitter = start(&self.state(), self.settings).unwrap();
        let stopper = submitter.stopper();
        self.running = Some((stopper, std::thread::spawn(move || submitter.run())));
    }

    fn stop(&mut self) {
        let (stopper, thread) = self.running.take().unwrap();
        stopper.stop();
        thread.join().unwrap();
    }

    fn connect(&self) -> Connection {
        Connection::open(&self.state()).unwrap().unwrap()
    }

    fn submit(&self, spec: JobSpec) -> Result<u64, ConnectError> {
        let switches: Vec<SocketAddr> = vec![self.switch.local_addr()];
        match self.connect().ask(&Request::Submit { spec: Box::new(spec), switches })? {
            Answer::Submitted { job, .. } => Ok(job),
            other => panic!("{other:?}"),
        }
    }

    fn job(&self, job: u64) -> JobRow {
        match self.connect().ask(&Request::Show { job }).unwrap() {
            Answer::Jobs(mut rows) => rows.remove(0),
            other => panic!("{other:?}"),
        }
    }

    fn wait(&self, job: u64) -> JobRow {
        let began = Instant::now();
        loop {
            let row = self.job(job);
            if row.state.has_ended() {
                return row;
            }
            assert!(began.elapsed() < PATIENCE, "{row:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn ended(&self, job: u64) -> Vec<(u32, EndedRow)> {
        match self.connect().ask(&Request::Ended { job, place: 0 }).unwrap() {
            Answer::Ended(rows) => rows,
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if let Some((stopper, _)) = &self.running {
            stopper.stop();
        }
    }
}

fn array(line: &str, last: u32) -> JobSpec {
    JobSpec::new("test", "exec", line.as_bytes().to_vec(), vec![Indices { first: 1, last, step: 1 }])
}

#[test]
fn who_finds_no_room_for_a_connection_is_told_so() {
    let site = Site::new(Settings::default());
    let mut all: Vec<Connection> = (0..CONNECTIONS_MAX).map(|_| site.connect()).collect();
    let refused = Connection::open(&site.state());
    assert!(matches!(refused, Err(ConnectError::Protocol(ProtocolError::Busy))), "{refused:?}");
    all.pop();
    let began = Instant::now();
    while Connection::open(&site.state()).is_err() {
        assert!(began.elapsed() < PATIENCE, "one has ended");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_ended_while_nobody_listened_is_lost_or_tried_again() {
    let mut site = Site::new(Settings::default());
    let ran = site.directory.path().join("ran");
    let line = format!("echo x >> {}; sleep 0.3", ran.display());
    let once = site.submit(array(&line, 1)).unwrap();
    let twice = site.submit(JobSpec { retries: 1, ..array(&line, 1) }).unwrap();
    let began = Instant::now();
    while std::fs::read_to_string(&ran).map_or(0, |text| text.len()) < 4 && began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(5));
    }
    site.stop();
    let began = Instant::now();
    while site.executor.counts().protocol.given_up < 2 {
        assert!(began.elapsed() < PATIENCE, "the executor gives up its completions");
        std::thread::sleep(Duration::from_millis(10));
    }
    site.start();
    assert_eq!(site.wait(once).state, JobState::Failed);
    let ended = site.ended(once);
    assert_eq!(ended[0].1.how, How::Lost, "{ended:?}");
    assert!(ended[0].1.why.contains("may have run"), "{ended:?}");
    assert_eq!(site.wait(twice).state, JobState::Succeeded);
    assert_eq!(site.ended(twice)[0].1.tries, 1);
    assert_eq!(std::fs::read_to_string(&ran).unwrap().lines().count(), 3);
}

#[test]
fn bounds_are_kept_and_named() {
    let site = Site::new(Settings { bytes_max: 10_000, ..Settings::default() });
    let job = site.submit(array("head -c 6000 /dev/zero", 2)).unwrap();
    let row = site.wait(job);
    assert_eq!((row.counts.succeeded, row.left_out), (2, 1), "one of two outputs has room");
    assert_eq!(site.ended(job).iter().filter(|(_, ended)| ended.kept && ended.code == Some(0)).count(), 1);
    let refused = site.submit(array(&"x".repeat(5_000), 1)).unwrap_err().to_string();
    assert!(refused.contains("10000 bytes") && refused.contains("job remove"), "{refused}");
    assert_eq!(site.connect().ask(&Request::Remove(vec![job])).unwrap(), Answer::Done);
    site.submit(array(&format!("true {}", "x".repeat(5_000)), 1)).unwrap();
    let missing = JobSpec { after: vec![After { job: 77, when: When::Ended }], ..array("true", 1) };
    assert!(site.submit(missing).unwrap_err().to_string().contains("no job 77"));
    let nothing = JobSpec { indices: Vec::new(), ..array("true", 1) };
    assert!(site.submit(nothing).unwrap_err().to_string().contains("commands"));
}

/// A list that is too long for one message comes in several.
#[test]
fn jobs_with_long_arguments_are_listed() {
    let site = Site::new(Settings::default());
    let long = |bytes| JobSpec { function: "noop".to_owned(), argument: vec![0; bytes], ..array("", 1) };
    let jobs: Vec<u64> = (0..3).map(|_| site.submit(long(3 << 20)).unwrap()).collect();
    let (mut connection, mut listed, mut answers) = (site.connect(), Vec::new(), 0);
    loop {
        let first = listed.last().map_or(0, |job| job + 1);
        let Answer::Jobs(rows) = connection.ask(&Request::List { first }).unwrap() else { panic!("rows") };
        if rows.is_empty() {
            break;
        }
        answers += 1;
        listed.extend(rows.iter().map(|row| row.job));
    }
    assert_eq!((listed, answers), (jobs, 3));
    let refused = site.submit(long(5 << 20)).unwrap_err().to_string();
    assert!(refused.contains("write them to a file"), "{refused}");
}

/// redb panics at some of these.
#[test]
fn a_store_with_holes_is_refused_with_advice_or_opened() {
    let mut site = Site::new(Settings::default());
    let job = site.submit(array("head -c 3000 /dev/zero", 50)).unwrap();
    site.wait(job);
    site.stop();
    let path = site.state().store();
    let whole = std::fs::read(&path).unwrap();
    let mut refused = 0;
    for hole in (4_096..whole.len()).step_by(4_096).take(120) {
        let mut bytes = whole.clone();
        bytes[hole..(hole + 4_096).min(whole.len())].fill(0);
        std::fs::write(&path, &bytes).unwrap();
        match start(&site.state(), site.settings) {
            Ok(submitter) => {
                submitter.stopper().stop();
                submitter.run();
            }
            Err(error) => {
                assert!(error.to_string().contains("restore a copy"), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 0, "a hole was where it matters");
}

//! Measures the round trip of a no-op task and the throughput of batches on loopback, with switch, executor and client
//! as processes of their own. `cargo run --release -p midflight-host --example loopback`; `midflight bench loop` is the
//! complete measurement.

use midflight_host::{Client, ClientOptions, Executor, Job, Switch, SwitchConfig, resolve};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SLOTS: u32 = 64;
const ROUND_TRIPS: usize = 20_000;
const JOBS: usize = 30;
const TASKS_PER_JOB: usize = 50_000;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(tracing::Level::WARN).init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["switch"] => switch(),
        ["executor", address] => executor(address, SLOTS),
        ["executor", address, slots] => executor(address, slots.parse()?),
        _ => measure(),
    }
}

/// Ends when stdin is closed, that is with its parent.
fn until_parent_ends() -> Result<()> {
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn switch() -> Result<()> {
    let switch = Switch::start(&SwitchConfig::new(resolve("127.0.0.1:0")?))?;
    println!("{}", switch.local_addr());
    until_parent_ends()?;
    eprintln!("switch: {:?}", switch.socket_counts());
    Ok(())
}

fn executor(address: &str, slots: u32) -> Result<()> {
    let executor = Executor::builder().switch(resolve(address)?).slots(slots).start()?;
    println!("{}", executor.wait_registered(slots, Duration::from_secs(5)));
    until_parent_ends()?;
    eprintln!("executor: {:?}", executor.counts());
    Ok(())
}

/// A process of this program, and the line that it prints when it is ready.
fn start(arguments: &[&str]) -> Result<(Child, String)> {
    let program = std::env::current_exe()?;
    let mut child = Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("no stdout")?).read_line(&mut line)?;
    Ok((child, line.trim().to_owned()))
}

fn measure() -> Result<()> {
    let (mut switch, address) = start(&["switch"])?;
    let (mut executor, _) = start(&["executor", &address])?;
    let client = Client::connect(ClientOptions::new(vec![resolve(&address)?]))?;

    let mut times = Vec::with_capacity(ROUND_TRIPS);
    for _ in 0..ROUND_TRIPS {
        let job = Job::builder("noop").task("").build();
        let began = Instant::now();
        client.submit(job)?.wait().remove(0)?;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    println!("round trip: p50 {:?}, p99 {:?}", times[ROUND_TRIPS / 2], times[ROUND_TRIPS * 99 / 100]);

    let mut rates = Vec::with_capacity(JOBS);
    for _ in 0..JOBS {
        let job = Job::builder("noop").repeat(TASKS_PER_JOB, "").build();
        let began = Instant::now();
        let outcomes = client.submit(job)?.wait();
        rates.push(TASKS_PER_JOB as f64 / began.elapsed().as_secs_f64());
        assert!(outcomes.iter().all(std::result::Result::is_ok));
    }
    rates.sort_unstable_by(f64::total_cmp);
    println!("throughput: median {:.0}, best {:.0} tasks/s", rates[JOBS / 2], rates[JOBS - 1]);

    eprintln!("client: {:?}", client.counts());
    for child in [&mut executor, &mut switch] {
        drop(child.stdin.take());
        child.wait()?;
    }
    Ok(())
}

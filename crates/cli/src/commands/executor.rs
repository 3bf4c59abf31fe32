//! `midflight executor`: slots on this machine that pull tasks from a switch.

use super::up::slurm;
use crate::counts::{self, Counts};
use crate::http::Http;
use crate::options;
use crate::watched::Watched;
use anyhow::{Result, bail};
use clap::Args as ClapArgs;
use midflight_control::config::DEFAULT_PORT;
use midflight_host::{Executor, raise_open_files};
use midflight_terminal::machine::cores;
use midflight_terminal::signals::Shutdown;
use midflight_terminal::{stdout, usage};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Warn after this time. The executor keeps trying.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

const EXAMPLES: &str = "\
EXAMPLES
  midflight executor                           a slot for each core, switch on this machine
  midflight executor --switch switch.example:7700 --slots 64
  midflight executor --switch a:7700,b:7700    the second when the first falls silent
  midflight executor --config midflight.toml --resources gpu,ssd
  midflight executor --config midflight.toml --count gpu=2 --count mem=4x16GiB
  midflight executor --http 127.0.0.1:7702     metrics: slots, bundles, run times by function
  midflight executor --place node3,rack7       tasks may prefer this machine or rack
  midflight executor --venv ~/work/.venv       Python functions, with what is installed there
  midflight executor --output-dir /scratch --output-disk 100000

--count gives each task that requires a resource a bundle of its own, and tells it which:
  gpu=2                       two, CUDA_VISIBLE_DEVICES=0 and =1; MIDFLIGHT_GPU says the same
  gpu=[4,6]                   two of these ids; gpu=[0+1,2+3] are two of two GPUs each
  mem=4x16GiB, cores=4x2      four amounts: MIDFLIGHT_MEM=17179869184, MIDFLIGHT_CORES=2
  npu=2:ASCEND_RT_VISIBLE_DEVICES                   tells it in this variable, too

It runs noop, sleep, spin, exec and command (command lines), with --python or --venv functions of
Python. Programs that use the Rust library register their own functions.

SIGTERM or SIGINT: takes nothing new, finishes what runs, hands over the results and ends. A
second one ends at once; the switch then gives what ran to other executors. However it ends, its
commands end with it, SIGKILL included.

EXIT CODES
  0 drained, 1 failed (a thread panicked, say), or tasks still ran when the drain ended, 2 wrong
  usage";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Switches to pull from, the preferred one first
    #[arg(long, value_name = "HOST:PORT,..", default_value_t = format!("127.0.0.1:{DEFAULT_PORT}"))]
    switch: String,
    /// Tasks at one time; default: cores of this machine, in a step of Slurm its CPUs
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    slots: Option<u32>,
    /// Resources that this machine offers, such as gpu,ssd (names of --config, or r0 to r7)
    #[arg(long, value_name = "NAMES", default_value = "")]
    resources: String,
    #[command(flatten)]
    counts: Counts,
    /// Where this machine is, such as node3,rack7: tasks may prefer a place (--prefer); at most two
    #[arg(long, value_name = "NAMES", default_value = "")]
    place: String,
    /// Local UDP address, and IP address of results; default: loopback or all interfaces
    #[arg(long, value_name = "HOST:PORT")]
    bind: Option<String>,
    /// TCP address of /metrics, /healthz and /status; default: off
    #[arg(long, value_name = "HOST:PORT", default_value = "off", hide_default_value = true)]
    http: String,
    #[command(flatten)]
    outputs: options::OutputFiles,
    #[command(flatten)]
    python: options::Python,
    /// How long tasks may go on after SIGTERM before they are killed
    #[arg(long, value_name = "DURATION", value_parser = usage::duration, default_value = "1h")]
    drain: Duration,
    /// End as after SIGTERM when the standard input ends: with whoever started it by ssh or srun
    #[arg(long)]
    until_eof: bool,
    #[command(flatten)]
    config: options::ConfigFile,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let slots = args.slots.or_else(slurm::cpus_of_step).unwrap_or_else(cores);
    let resources = args.config.mask(&args.resources)?;
    let blobs = args.outputs.blobs()?;
    raise_open_files(slots);
    let builder = Executor::builder().slots(slots).resources(resources).blobs(blobs);
    let mut builder = options::ask_ahead(builder, args.config.executors()?);
    let counted = args.counts.resources(&args.config)?;
    let counting = counts::summary(&counted);
    for resource in counted {
        builder = builder.count(resource);
    }
    for place in options::places(&args.place)? {
        builder = builder.place(place);
    }
    builder = builder.switches(usage::resolve_all(&args.switch)?);
    if let Some(python) = args.python.options()? {
        builder = builder.python(python);
    }
    if let Some(bind) = &args.bind {
        builder = builder.bind(usage::resolve(bind)?);
    }
    let listener = options::http_address(&args.http)?.map(midflight_control::http::listen).transpose()?;
    let mut shutdown = Shutdown::new()?;
    let executor = Arc::new(builder.on_failure(shutdown.ender()).start()?);
    let watched = Arc::new(Watched::new(Arc::clone(&executor)));
    let http = listener.map(|listener| Http::serve(listener, watched)).transpose()?;
    let complete = executor.wait_registered(slots, ANSWER_WITHIN);
    let http = http.as_ref().map(Http::address);
    announce(complete, &executor, &format!("{slots} slots{counting}"), http, args)?;
    if args.until_eof {
        let end = shutdown.ender();
        std::thread::spawn(move || {
            // Waits for stdin to end. Its content does not matter, and a read error also means the end.
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            end();
        });
    }
    let signal = shutdown.wait();
    if let Some(why) = executor.failure() {
        bail!("{why}");
    }
    tracing::info!("{signal}: draining");
    shutdown.each(|_| std::process::exit(i32::from(midflight_terminal::usage::FAILURE)));
    let drained = executor.drain(args.drain);
    if let Some(why) = executor.failure() {
        bail!("{why}");
    }
    drained?;
    stdout::print("drained\n")?;
    Ok(ExitCode::SUCCESS)
}

fn announce(complete: bool, executor: &Executor, slots: &str, http: Option<SocketAddr>, args: &Args) -> Result<()> {
    match executor.registered() {
        _ if complete => {
            let http = http.map_or_else(String::new, |http| format!(", http://{http}"));
            stdout::print(&format!("executor with {slots} at switch {}{http}\n", executor.switch()))?;
        }
        0 => tracing::warn!(
            "no switch answers on {}: check --switch and that it runs; this executor registers when it does",
            args.switch
        ),
        got => tracing::warn!("the switch has room for {got} of {slots} only: raise tasks.slots in its configuration"),
    }
    Ok(())
}

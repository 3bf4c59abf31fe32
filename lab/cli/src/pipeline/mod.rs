//! `midflight-lab pipeline`: a switch whose program runs in the model of a pipeline or in BMv2.

mod asic;
mod bmv2;
mod hosts;
mod queue;
#[cfg(test)]
mod tests;

use anyhow::Result;
use asic::AsicEngine;
use bmv2::Bmv2Engine;
use clap::{Args as ClapArgs, ValueEnum};
use midflight_asic::Program;
use midflight_asic::store::{AsicStore, UNIT_BITS};
use midflight_cli::{ExternalEngine, NamedProgram, SwitchArgs, run_store_in, run_tasks_in};
use midflight_control::{Config, StoreTable, TasksTable};
use midflight_dataplane::TasksProgram;
use midflight_dataplane::store::StoreProgram;
use midflight_host::{EnginePlace, Error, Hosted, InProcess};
use midflight_terminal::usage;
use queue::Queue;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab pipeline                                  our queue, in the model of a switch
  midflight-lab pipeline --engine asic-published          the papers' queue
  midflight-lab pipeline --config store.toml              the switch of a store
  sudo midflight-lab pipeline --engine bmv2 --interface eth0,eth1 --listen 10.0.0.1:7700

docs/engines.md says what each can do. BMv2 needs root, p4c and simple_switch (docs/internals/p4.md).

EXIT CODES
  0 ended by a signal, 1 failed, 2 wrong usage or configuration";

/// What the command line says.
#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Where the program runs
    #[arg(long, value_enum, default_value_t = Engine::AsicSafe)]
    engine: Engine,
    /// Interfaces that are BMv2's ports
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    interface: Vec<String>,
    /// After how long a slot asks again that found no task, 10us to 65ms; default: 1ms, in BMv2 10ms
    #[arg(long, value_name = "DURATION", value_parser = poll)]
    poll: Option<Duration>,
    #[command(flatten)]
    switch: SwitchArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// In a model of a switch's pipeline, in this process: this project's program
    AsicSafe,
    /// The same with the papers' program
    AsicPublished,
    /// In BMv2's simple_switch: this project's program in P4
    Bmv2,
    /// The same with the papers' program
    Bmv2Published,
}

impl Engine {
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn program(self) -> Program {
        match self {
            Self::AsicSafe | Self::Bmv2 => Program::Safe,
            Self::AsicPublished | Self::Bmv2Published => Program::Published,
        }
    }

    fn is_bmv2(self) -> bool {
        matches!(self, Self::Bmv2 | Self::Bmv2Published)
    }
}

fn poll(text: &str) -> Result<Duration, String> {
    let range = Duration::from_micros(10)..=Duration::from_millis(65);
    let duration = usage::duration(text)?;
    if range.contains(&duration) { Ok(duration) } else { Err("must be 10us to 65ms".into()) }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let Args { engine, interface, poll, switch } = args;
    match switch.program()? {
        NamedProgram::Tasks if engine.is_bmv2() => {
            run_tasks_in(switch, &InBmv2 { engine: *engine, interfaces: interface.clone(), poll: *poll })
        }
        NamedProgram::Tasks if !interface.is_empty() => Err(usage::error("--interface is for BMv2: say --engine bmv2")),
        NamedProgram::Tasks => run_tasks_in(switch, &InModel { engine: *engine, poll: *poll }),
        NamedProgram::Store if poll.is_some() || !interface.is_empty() => {
            Err(usage::error("--poll and --interface are for the queue of tasks"))
        }
        NamedProgram::Store if *engine == Engine::AsicSafe => run_store_in(switch, &StoreInModel),
        NamedProgram::Store => {
            Err(usage::error("the store's switch has one program of a pipeline: --engine asic-safe"))
        }
        NamedProgram::Cache => Err(usage::error("an operator does not run here: use `midflight switch`")),
    }
}

/// A queue of tasks in the model of a switch.
struct InModel {
    engine: Engine,
    poll: Option<Duration>,
}

impl ExternalEngine<TasksProgram, TasksTable> for InModel {
    fn name(&self) -> String {
        self.engine.name()
    }

    fn adapt(&self, config: &mut Config) -> Result<()> {
        if config.switch.listen.is_ipv6() && !config.switch.listen.ip().is_unspecified() {
            return Err(usage::error("a pipeline serves IPv4: --listen 0.0.0.0:7700, or an address of that kind"));
        }
        let levels = &mut config.program.bounds.levels;
        *levels = (*levels).min(Queue::LEVELS_MAX);
        Ok(())
    }

    fn start(
        &self,
        place: &EnginePlace<'_, TasksProgram>,
        _interrupted: &Arc<AtomicBool>,
    ) -> Result<Box<dyn Hosted<TasksProgram>>, Error> {
        let queue = Queue::of(self.engine.program(), place.program, self.poll);
        Ok(Box::new(AsicEngine::new(place.program, queue, place.epoch)?))
    }
}

/// A queue of tasks in BMv2.
struct InBmv2 {
    engine: Engine,
    interfaces: Vec<String>,
    poll: Option<Duration>,
}

impl ExternalEngine<TasksProgram, TasksTable> for InBmv2 {
    fn name(&self) -> String {
        self.engine.name()
    }

    fn adapt(&self, config: &mut Config) -> Result<()> {
        if self.interfaces.is_empty() || self.interfaces.iter().any(String::is_empty) {
            return Err(usage::error("the engine bmv2 serves interfaces: name them, --interface eth0 for example"));
        }
        if config.switch.listen.is_ipv6() || config.switch.listen.ip().is_unspecified() {
            return Err(usage::error(bmv2::ONE_ADDRESS));
        }
        config.program.bounds.levels = Queue::LEVELS_MAX;
        Ok(())
    }

    fn start(
        &self,
        place: &EnginePlace<'_, TasksProgram>,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Box<dyn Hosted<TasksProgram>>, Error> {
        let poll = self.poll.unwrap_or_default().max(bmv2::POLL_MIN);
        let queue = Queue::of(self.engine.program(), place.program, Some(poll));
        Ok(Box::new(Bmv2Engine::start(place, queue, self.interfaces.clone(), interrupted)?))
    }
}

/// A store's switch in the model of a switch.
struct StoreInModel;

impl ExternalEngine<StoreProgram, StoreTable> for StoreInModel {
    fn name(&self) -> String {
        Engine::AsicSafe.name()
    }

    fn start(
        &self,
        place: &EnginePlace<'_, StoreProgram>,
        _interrupted: &Arc<AtomicBool>,
    ) -> Result<Box<dyn Hosted<StoreProgram>>, Error> {
        let store = AsicStore::new(place.program, rand::random(), UNIT_BITS).map_err(Error::Invalid)?;
        Ok(Box::new(InProcess(store)))
    }
}

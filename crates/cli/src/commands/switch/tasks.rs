//! The task queue, as `midflight switch` runs it.

use super::program::{Details, SURVEYED_WITHIN, SwitchProgram};
use crate::operator_socket::OperatorSocket;
use anyhow::Result;
use midflight_control::admin::{Request, Which};
use midflight_control::watch::{TasksWatch, label};
use midflight_control::{Config, EngineKind, TasksStatus, TasksTable};
use midflight_dataplane::{Stats, SurveyedClient, TasksConfig, TasksProgram};
use midflight_host::{AsicOptions, AsicQueue, BMV2_POLL_MIN_US, Bmv2Options, Program, Switch, SwitchEngine};
use midflight_terminal::usage;
use std::sync::{Arc, Weak};

impl SwitchProgram for TasksProgram {
    type Table = TasksTable;
    type Status = TasksStatus;
    type Beside = OperatorSocket;

    fn limits(table: &TasksTable) -> TasksConfig {
        table.bounds
    }

    fn in_process(config: &Config, kind: EngineKind) -> Result<SwitchEngine> {
        let program = match kind {
            EngineKind::AsicSafe => Program::Safe,
            EngineKind::AsicPublished => Program::Published,
            EngineKind::User | EngineKind::Kernel | EngineKind::Bmv2 | EngineKind::Bmv2Published => {
                return Ok(SwitchEngine::User);
            }
        };
        if config.switch.listen.is_ipv6() && !config.switch.listen.ip().is_unspecified() {
            return Err(usage::error("the asic engine serves IPv4: --listen 0.0.0.0:7700, or an address of that kind"));
        }
        let poll_us = poll_us(config);
        Ok(SwitchEngine::Asic(AsicOptions::Tasks(AsicQueue {
            poll_us,
            ..AsicQueue::new(program, &config.program.bounds)
        })))
    }

    fn bmv2_engine(config: &Config, program: Program, interfaces: Vec<String>) -> Result<SwitchEngine> {
        if config.switch.listen.is_ipv6() || config.switch.listen.ip().is_unspecified() {
            return Err(usage::error(
                "the engine bmv2 serves one address of IPv4: name it by --listen, 10.0.0.1:7700 for example",
            ));
        }
        let mut options = Bmv2Options::new(program, &config.program.bounds, interfaces);
        options.queue.poll_us = poll_us(config).max(BMV2_POLL_MIN_US);
        Ok(SwitchEngine::Bmv2(options))
    }

    fn status(stats: &Stats, table: &TasksTable, engine: &SwitchEngine) -> TasksStatus {
        TasksStatus::new(stats, levels(engine, table))
    }

    /// An asic engine has no tables that can be read.
    fn details(table: &TasksTable, engine: &SwitchEngine) -> Details<Self> {
        if matches!(engine, SwitchEngine::Asic(_)) {
            return Box::new(|_, _, _| Ok(None));
        }
        let mut watch = TasksWatch::new(table);
        Box::new(move |switch, _, status| {
            let Ok((now, survey)) = switch.survey(SURVEYED_WITHIN) else { return Ok(None) };
            serde_json::to_value(watch.detail(now, &survey, status)).map(Some)
        })
    }

    fn inherited(stats: &Stats) -> String {
        format!("{} tasks waiting", stats.queued.iter().sum::<u32>())
    }

    fn beside(config: &Config, port: u16) -> Result<OperatorSocket> {
        let switch = &config.switch;
        OperatorSocket::bind(switch.admin_path(port), switch.admin == "auto", "midflight purge")
    }

    fn begin(socket: OperatorSocket, switch: &Arc<Switch>, _on_failure: impl FnOnce() + Send + 'static) -> Result<()> {
        let switch = Arc::downgrade(switch);
        socket.serve(move |request| purge(&switch, request))
    }
}

fn poll_us(config: &Config) -> u16 {
    u16::try_from(config.program.asic.poll.as_micros()).unwrap_or(u16::MAX)
}

/// The priority levels that the engine has, of those that the configuration asks for.
fn levels(engine: &SwitchEngine, table: &TasksTable) -> u32 {
    match engine {
        SwitchEngine::Asic(AsicOptions::Tasks(AsicQueue { levels, .. }))
        | SwitchEngine::Bmv2(Bmv2Options { queue: AsicQueue { levels, .. }, .. }) => *levels,
        SwitchEngine::User | SwitchEngine::Kernel(_) | SwitchEngine::Asic(AsicOptions::Reads) => table.bounds.levels,
    }
}

/// Carries out `midflight purge`.
fn purge(switch: &Weak<Switch>, Request::Purge(which): Request) -> Result<u32, String> {
    let switch = switch.upgrade().ok_or("the switch is ending")?;
    let which = match which {
        Which::Client(client) => midflight_host::Which::Client(identity(&switch, &client)?),
        Which::Resources(mask) => midflight_host::Which::Resources(mask),
        Which::Address(ip) => midflight_host::Which::Address(ip),
    };
    switch.purge(which).map_err(|error| error.to_string())
}

/// Of the client with this label.
fn identity(switch: &Switch, client: &str) -> Result<u64, String> {
    let (_, survey) = switch.survey(SURVEYED_WITHIN).map_err(|error| error.to_string())?;
    let found = survey.clients.iter().map(SurveyedClient::identity).find(|identity| label(*identity) == client);
    found.ok_or_else(|| format!("no client has the id {client}: midflight top --json names those that are here"))
}

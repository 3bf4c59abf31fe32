//! The tasks program, as `midflight switch` runs it.

use super::program::{Details, SURVEYED_WITHIN, SwitchProgram};
use crate::operator_socket::OperatorSocket;
use anyhow::Result;
use midflight_control::admin::{Request, Which};
use midflight_control::watch::{TasksWatch, label};
use midflight_control::{Config, TasksStatus, TasksTable};
use midflight_dataplane::{Stats, SurveyedClient, TasksConfig, TasksProgram};
use midflight_host::{Switch, SwitchEngine};
use std::sync::{Arc, Weak};

impl SwitchProgram for TasksProgram {
    type Table = TasksTable;
    type Status = TasksStatus;
    type Companion = OperatorSocket;

    fn limits(table: &TasksTable) -> TasksConfig {
        table.bounds
    }

    fn status(stats: &Stats, table: &TasksTable, _engine: &SwitchEngine) -> TasksStatus {
        TasksStatus::new(stats, table.bounds.levels)
    }

    fn details(table: &TasksTable, engine: &SwitchEngine) -> Details<Self> {
        // A pipeline has no readable tables.
        if matches!(engine, SwitchEngine::Other(_)) {
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

    fn companion(config: &Config, port: u16) -> Result<OperatorSocket> {
        let switch = &config.switch;
        OperatorSocket::bind(switch.admin_path(port), switch.admin == "auto", "midflight purge")
    }

    fn begin(socket: OperatorSocket, switch: &Arc<Switch>, _on_failure: impl FnOnce() + Send + 'static) -> Result<()> {
        let switch = Arc::downgrade(switch);
        socket.serve(move |request| purge(&switch, request))
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

/// The identity of the client with this label.
fn identity(switch: &Switch, client: &str) -> Result<u64, String> {
    let (_, survey) = switch.survey(SURVEYED_WITHIN).map_err(|error| error.to_string())?;
    let found = survey.clients.iter().map(SurveyedClient::identity).find(|identity| label(*identity) == client);
    found.ok_or_else(|| format!("no client has the id {client}: midflight top --json names those that are here"))
}

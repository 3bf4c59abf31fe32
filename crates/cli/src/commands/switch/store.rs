//! The store program, as `midflight switch` runs it.

use super::program::{Details, SURVEYED_WITHIN, SwitchProgram};
use crate::operator_socket::OperatorSocket;
use anyhow::{Result, bail};
use midflight_control::store::{SetAnswer, SetRequest};
use midflight_control::watch::StoreWatch;
use midflight_control::{Config, StoreStatus, StoreTable};
use midflight_dataplane::store::{NewSet, Outcome, SetOrder, Stats, StoreConfig, StoreProgram};
use midflight_host::{Switch, SwitchEngine};
use midflight_terminal::usage;
use std::sync::{Arc, Weak};

impl SwitchProgram for StoreProgram {
    type Table = StoreTable;
    type Status = StoreStatus;
    type Companion = Sets;

    fn limits(table: &StoreTable) -> StoreConfig {
        table.bounds()
    }

    fn status(stats: &Stats, _table: &StoreTable, _engine: &SwitchEngine) -> StoreStatus {
        StoreStatus::new(stats)
    }

    fn details(table: &StoreTable, engine: &SwitchEngine) -> Details<Self> {
        // A pipeline has no readable sessions.
        if matches!(engine, SwitchEngine::Other(_)) {
            return Box::new(|_, _, _| Ok(None));
        }
        let mut watch = StoreWatch::new(table);
        Box::new(move |switch, _, _| {
            let Ok((now, survey)) = switch.survey(SURVEYED_WITHIN) else { return Ok(None) };
            serde_json::to_value(watch.detail(now, &survey)).map(Some)
        })
    }

    fn inherited(stats: &Stats) -> String {
        format!("{} of its replica sets", stats.present().count())
    }

    /// Each set gets a new incarnation: the switch's earlier state is lost.
    fn companion(config: &Config<StoreTable>, port: u16) -> Result<Sets> {
        let sets = &config.program.set;
        if sets.is_empty() {
            return Err(usage::error(
                "the configuration has no replica set: add a table [[store.set]] and name the file (--config); `midflight store \
                 init` prints one",
            ));
        }
        let switch = &config.switch;
        let socket = OperatorSocket::bind(switch.admin_path(port), switch.admin == "auto", "midflight store policy")?;
        Ok(Sets { sets: sets.iter().map(|set| set.at_switch(rand::random())).collect(), socket })
    }

    /// A set kept by an earlier process continues, with the new settings where they may change.
    fn begin(
        Sets { mut sets, socket }: Sets,
        switch: &Arc<Switch<Self>>,
        _on_failure: impl FnOnce() + Send + 'static,
    ) -> Result<()> {
        for kept in switch.stats().present().filter(|kept| sets.iter().all(|set| set.number != kept.set)) {
            tracing::info!("the replica set {} was kept, and is not configured any more: it is removed", kept.set);
            switch.order(SetOrder::remove(kept.set))?;
        }
        for set in &sets {
            let mut done = switch.order(SetOrder::change(set))?;
            if done.outcome() == Outcome::Unknown {
                done = switch.order(SetOrder::add(set))?;
            }
            check(done)?;
        }
        let switch = Arc::downgrade(switch);
        socket.serve(move |request| change(&switch, &mut sets, request))
    }
}

pub(crate) struct Sets {
    sets: Vec<NewSet>,
    socket: OperatorSocket,
}

/// Carries out `midflight store policy`. `sets` is their current state.
fn change(switch: &Weak<Switch<StoreProgram>>, sets: &mut [NewSet], request: SetRequest) -> Result<SetAnswer, String> {
    let set = sets.iter_mut().find(|set| set.number == request.set);
    let set = set.ok_or_else(|| format!("this switch has no replica set {}", request.set))?;
    let wanted = NewSet {
        policy: request.policy.unwrap_or(set.policy),
        reply_check: request.reply_check.unwrap_or(set.reply_check),
        ..set.clone()
    };
    if wanted != *set {
        let switch = switch.upgrade().ok_or("the switch is ending")?;
        let done = switch.order(SetOrder::change(&wanted)).map_err(|error| error.to_string())?;
        check(done).map_err(|error| error.to_string())?;
        *set = wanted;
    }
    Ok(SetAnswer { policy: set.policy, reply_check: set.reply_check })
}

fn check(done: SetOrder) -> Result<()> {
    let set = done.number();
    match done.outcome() {
        Outcome::Done => Ok(()),
        Outcome::Frozen => bail!(
            "the replica set {set}, which was kept, has another session_lease or number of key groups than the configuration: \
             both are frozen; --fresh throws away what was kept"
        ),
        Outcome::NoRoom => bail!("no room for the replica set {set}: raise store.sets"),
        outcome => bail!("the switch does not take the replica set {set}: {outcome:?}"),
    }
}

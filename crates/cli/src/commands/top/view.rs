//! Parses what `/events` sends.

use crate::commands::status::OfProgram;
use anyhow::{Context, Result, bail};
use midflight_control::Snapshot;
use midflight_control::cache::ControllerSnapshot;
use midflight_control::store::ReplicaStatus;
use midflight_control::watch::{self, CacheDetail, ControllerDetail, StoreDetail, TasksDetail};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) struct View {
    pub(super) period_ms: Option<u64>,
    pub(super) rates: BTreeMap<String, f64>,
    pub(super) of: Of,
}

pub(super) enum Of {
    Switch(Box<Snapshot<OfProgram>>, Detail),
    Replica(Box<ReplicaStatus>),
    Controller(Box<ControllerSnapshot>, ControllerDetail),
}

pub(super) enum Detail {
    Nothing,
    Tasks(TasksDetail),
    Store(StoreDetail),
    Cache(CacheDetail),
}

impl View {
    pub(super) fn parse(text: &str) -> Result<Self> {
        Self::read(text).context("what it shows is not of this version")
    }

    fn read(text: &str) -> Result<Self> {
        let view: watch::View<Value, Value> = serde_json::from_str(text)?;
        let watch::View { program, period_ms, rates, status, detail, .. } = view;
        let of = match (program.as_str(), detail) {
            ("tasks", detail) => of_switch(status, detail, Detail::Tasks)?,
            ("store", detail) => of_switch(status, detail, Detail::Store)?,
            ("cache", detail) => of_switch(status, detail, Detail::Cache)?,
            ("replica", _) => Of::Replica(serde_json::from_value(status)?),
            ("controller", Some(detail)) => {
                Of::Controller(serde_json::from_value(status)?, serde_json::from_value(detail)?)
            }
            _ => bail!("its program is {program:?}"),
        };
        Ok(Self { period_ms, rates, of })
    }

    /// Increase per second.
    pub(super) fn rate(&self, name: &str) -> f64 {
        self.rates.get(name).copied().unwrap_or(0.0)
    }

    /// The charted counter.
    pub(super) fn drawn(&self) -> &'static str {
        match &self.of {
            Of::Switch(status, _) if matches!(status.program, OfProgram::Tasks(_)) => "tasks.completed",
            Of::Switch(..) => "taken",
            Of::Replica(_) => "counters.reads_served",
            Of::Controller(..) => "counters.reports",
        }
    }
}

fn of_switch<T: DeserializeOwned>(status: Value, detail: Option<Value>, of: fn(T) -> Detail) -> Result<Of> {
    let detail = match detail {
        Some(detail) => of(serde_json::from_value(detail)?),
        None => Detail::Nothing,
    };
    Ok(Of::Switch(serde_json::from_value(status)?, detail))
}

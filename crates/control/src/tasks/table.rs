//! The table `[tasks]` of the configuration.

use crate::config::{ProgramTable, within_time};
use crate::file::{Table, within};
use midflight_dataplane::TasksConfig;
use midflight_dataplane::duration::duration;
use midflight_tasks::resources::ResourceNames;
use serde::Deserialize;
use std::time::Duration;

/// Bounds and times of the task queue, and names of resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TasksTable {
    /// The keys of `[tasks]` itself.
    pub bounds: TasksConfig,
    /// `[tasks.executors]`
    pub executors: ExecutorsTable,
    /// `[tasks.resources]`
    pub resources: ResourceNames,
}

/// Keys of executors only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExecutorsTable {
    /// Whether an executor prefetches tasks if they take less than a round trip.
    pub ahead: bool,
    /// Tasks up to this duration are prefetched, if it is more than a round trip. `None`: the executor's default.
    #[serde(deserialize_with = "some_duration")]
    pub ahead_span: Option<Duration>,
    /// Number of tasks that may wait for other tasks at a time. `None`: the executor's default.
    pub waiting: Option<u32>,
}

fn some_duration<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    duration(deserializer).map(Some)
}

impl Default for ExecutorsTable {
    fn default() -> Self {
        Self { ahead: true, ahead_span: None, waiting: None }
    }
}

impl ProgramTable for TasksTable {
    const NAME: &'static str = "tasks";
    const DEFAULT_TOML: &'static str = include_str!("tasks.toml");

    fn read(mut table: Table<'_>) -> Result<Self, toml::de::Error> {
        let executors = table.take_table("executors")?.rest()?;
        let resources = table.take_table("resources")?.rest()?;
        Ok(Self { bounds: table.rest()?, executors, resources })
    }

    fn validate(&self) -> Result<(), String> {
        let bounds = &self.bounds;
        within("tasks.queue", bounds.queue, 1..=4 << 20)?;
        within("tasks.slots", bounds.slots, 1..=1 << 20)?;
        within("tasks.clients", bounds.clients, 1..=1 << 20)?;
        within("tasks.places", bounds.places, 1..=65_536)?;
        within("tasks.levels", bounds.levels, 1..=u32::from(midflight_wire::tasks::LEVELS))?;
        let [lease, slot_idle, client_idle, cookie] =
            [bounds.lease_ns, bounds.slot_idle_ns, bounds.client_idle_ns, bounds.cookie_ns].map(Duration::from_nanos);
        within_time("tasks.lease", lease, "100ms", "1h")?;
        within_time("tasks.slot_idle", slot_idle, "100ms", "24h")?;
        within_time("tasks.client_idle", client_idle, "1s", "24h")?;
        within_time("tasks.cookie", cookie, "50ms", "1h")?;
        outlives_cookies("tasks.slot_idle", slot_idle, cookie)?;
        outlives_cookies("tasks.client_idle", client_idle, cookie)?;
        within_time("tasks.executors.ahead_span", self.executors.ahead_span.unwrap_or_default(), "0s", "20ms")?;
        within("tasks.executors.waiting", self.executors.waiting.unwrap_or_default(), 0..=4096)?;
        self.resources.validate().map_err(|error| format!("tasks.{error}"))
    }
}

/// Otherwise a copy of the packet could make the record again after its end.
fn outlives_cookies(key: &str, idle: Duration, cookie: Duration) -> Result<(), String> {
    if idle >= 2 * cookie {
        return Ok(());
    }
    let (idle, least) = (humantime::format_duration(idle), humantime::format_duration(2 * cookie));
    Err(format!("{key} = {idle} is less than twice tasks.cookie: use {least} or more, or a shorter cookie"))
}

//! An operator of NetRS: the switch, its selector and the keeper of its rules.

use super::program::{Details, SURVEYED_WITHIN, SwitchProgram};
use super::running::{Companion, Prepared};
use crate::options::buffers;
use anyhow::Result;
use midflight_cache::rsnode::{Most, RsNodeConfig};
use midflight_control::cache::table::SelectorTable;
use midflight_control::metrics::named;
use midflight_control::watch::{CacheWatch, OperatorParts, SelectorView};
use midflight_control::{CacheStatus, CacheTable, Config, EngineKind, ShellCounters};
use midflight_dataplane::cache::{CacheConfig, CacheProgram, Selection, Stats};
use midflight_host::cache::control_stream::Secret;
use midflight_host::cache::operator::{
    BoundKeeper, BoundSelector, Keeper, KeeperOptions, KeeperReport, SelectedBy, Selector, SelectorOptions,
    SelectorReport,
};
use midflight_host::clock::nanos;
use midflight_host::{Diversion, Switch, SwitchEngine};
use midflight_terminal::usage;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

impl SwitchProgram for CacheProgram {
    type Table = CacheTable;
    type Status = CacheStatus;
    type Companion = Parts;

    /// Without their keeper, rules would never be removed.
    const CAN_BE_KEPT: bool = false;

    fn limits(table: &CacheTable) -> CacheConfig {
        table.bounds
    }

    fn status(stats: &Stats, _table: &CacheTable, _engine: &SwitchEngine) -> CacheStatus {
        *stats
    }

    fn details(table: &CacheTable, _engine: &SwitchEngine) -> Details<Self> {
        let mut watch = CacheWatch::new(table.bounds.selection);
        Box::new(move |switch, companion, _| {
            let Ok((now, survey)) = switch.survey(SURVEYED_WITHIN) else { return Ok(None) };
            let parts = companion.map(Companion::parts).unwrap_or_default();
            serde_json::to_value(watch.detail(now, &survey, parts, switch.stats().under_way)).map(Some)
        })
    }

    fn inherited(_stats: &Stats) -> String {
        "its rules".into()
    }

    fn companion(config: &Config<CacheTable>, port: u16) -> Result<Parts> {
        let table = &config.program;
        let operator = SocketAddr::new(config.switch.listen.ip(), port);
        if table.selector.is_some() && operator.ip().is_unspecified() {
            return Err(usage::error(format!(
                "a selector knows its operator by one address: say --listen ADDRESS:{port}, or `listen` in the configuration"
            )));
        }
        let Some(secret) = &table.control.secret else {
            return Err(usage::error(
                "cache.control.secret: name the file of the secret that it shares with its controllers; `midflight controller --init \
                 FILE` makes one, of which each operator needs a copy",
            ));
        };
        let secret = Secret::read(secret).map_err(|why| usage::error(format!("cache.control.secret: {why}")))?;
        let options = KeeperOptions { listen: table.control.listen, controllers: table.control.from.clone(), secret };
        let keeper = BoundKeeper::bind(options)?;
        let buffers = buffers(&config.switch.socket);
        let selector = |table: &SelectorTable| {
            let options = selector_options(table, operator);
            let has_kernel_engine = config.switch.engine.kind == EngineKind::Kernel;
            let busy_poll = config.switch.socket.busy_poll;
            BoundSelector::bind(&SelectorOptions { buffers, busy_poll, has_kernel_engine, ..options })
        };
        let (selector, diversion) = table.selector.as_ref().map(selector).transpose()?.unzip();
        let is_in_core = table.bounds.selection != Selection::None;
        Ok(Parts { keeper, selector, is_in_core, diversion, running: Arc::new(RunningParts::new(is_in_core)) })
    }

    fn attach(parts: &mut Parts, prepared: &mut Prepared<Self>) {
        if let Some(diversion) = parts.diversion.take() {
            prepared.divert(diversion);
        }
        prepared.set_companion(Arc::clone(&parts.running) as Arc<dyn Companion>);
    }

    fn begin(parts: Parts, switch: &Arc<Switch<Self>>, on_failure: impl FnOnce() + Send + 'static) -> Result<()> {
        let Parts { keeper, selector, is_in_core, running, .. } = parts;
        let selector = selector.map(BoundSelector::run).transpose()?.map(Arc::new);
        let selected_by = match &selector {
            Some(selector) => SelectedBy::Thread(Arc::clone(selector)),
            None if is_in_core => SelectedBy::Core,
            None => SelectedBy::Nobody,
        };
        let keeper = keeper.serve(switch, selected_by, on_failure)?;
        // Cannot fail: set only here.
        let _ = running.parts.set((selector, keeper));
        Ok(())
    }
}

fn selector_options(table: &SelectorTable, operator: SocketAddr) -> SelectorOptions {
    let config = RsNodeConfig {
        operator,
        under_way: table.under_way,
        expire: nanos(table.expire),
        waiting: table.waiting as usize,
        hold: nanos(table.hold),
    };
    let most = Most { servers: table.servers, groups: table.replica_groups as usize };
    SelectorOptions { config, algorithm: table.algorithm, most, ..SelectorOptions::new(table.listen, operator) }
}

/// The selector, and the listener for the controller's orders, before their threads start.
pub(crate) struct Parts {
    keeper: BoundKeeper,
    selector: Option<BoundSelector>,
    is_in_core: bool,
    diversion: Option<Diversion>,
    running: Arc<RunningParts>,
}

impl Parts {
    pub(crate) fn control(&self) -> SocketAddr {
        self.keeper.local_addr()
    }

    pub(crate) fn selector(&self) -> Option<SocketAddr> {
        self.selector.as_ref().map(BoundSelector::local_addr)
    }
}

struct RunningParts {
    is_in_core: bool,
    /// Set once both run.
    parts: OnceLock<(Option<Arc<Selector>>, Keeper)>,
}

impl RunningParts {
    fn new(is_in_core: bool) -> Self {
        Self { is_in_core, parts: OnceLock::new() }
    }
}

impl Companion for RunningParts {
    fn describe(&self) -> String {
        let Some((selector, keeper)) = self.parts.get() else { return String::new() };
        let selector = match selector {
            Some(selector) => format!("selector on {}", selector.local_addr()),
            None if self.is_in_core => "selects by itself".into(),
            None => "without a selector".into(),
        };
        format!(", {selector}, orders on {}", keeper.local_addr())
    }

    fn failure(&self) -> Option<String> {
        let (_, keeper) = self.parts.get()?;
        keeper.failure().map(str::to_owned)
    }

    fn parts(&self) -> OperatorParts {
        let Some((selector, keeper)) = self.parts.get() else { return OperatorParts::default() };
        let KeeperReport { term, heard, rules, .. } = keeper.report();
        let selector = selector.as_ref().map(|selector| {
            let view = SelectorView {
                algorithm: selector.algorithm().to_string(),
                address: Some(selector.local_addr().to_string()),
                works: selector.incarnation().is_some(),
                under_way: selector.report().under_way as u64,
            };
            (view, selector.servers())
        });
        OperatorParts { term: term.number, heard, rules: rules as u64, selector }
    }

    fn counters(&self) -> ShellCounters {
        let Some((selector, keeper)) = self.parts.get() else { return ShellCounters::new() };
        let of_selector = selector.iter().flat_map(|selector| {
            let works = ("works", u64::from(selector.incarnation().is_some()));
            named("selector_", of_selector(&selector.report()).into_iter().chain([works]))
        });
        of_selector.chain(named("control_", of_keeper(&keeper.report()))).collect()
    }
}

fn of_selector(report: &SelectorReport) -> Vec<(&'static str, u64)> {
    let SelectorReport { rsnode, disbelieved, under_way, packets, busy, ring_full, socket } = report;
    let own = [
        ("packets", *packets),
        ("busy_ns", u64::try_from(busy.as_nanos()).unwrap_or(u64::MAX)),
        ("ring_full", *ring_full),
        ("under_way", *under_way as u64),
        ("received", socket.received),
        ("kernel_dropped", socket.kernel_dropped),
        ("sent", socket.sent),
        ("send_errors", socket.send_errors + socket.send_too_long),
        ("send_blocked", socket.send_blocked),
    ];
    [own.to_vec(), rsnode.by_name(), disbelieved.by_name()].concat()
}

fn of_keeper(report: &KeeperReport) -> Vec<(&'static str, u64)> {
    let KeeperReport { term, rules, messages, streams, .. } = report;
    let messages = messages.by_name().into_iter().map(|(name, count)| match name {
        "foreign" => ("not_of_a_controller", count),
        _ => (name, count),
    });
    messages.chain(streams.by_name()).chain([("term", term.number), ("rules", *rules as u64)]).collect()
}

//! The summary above the lists, for the screen and as text.

use super::rows::{Tone, per_second};
use super::view::{Detail, Of, View};
use crate::commands::status::OfProgram;
use midflight_control::cache::ControllerSnapshot;
use midflight_control::store::{ReplicaStatus, SetStatus};
use midflight_control::tasks::quantile_us;
use midflight_control::watch::{
    CacheDetail, ControllerDetail, ExecutorState, ReplicaState, ServerState, SetView, StoreDetail, TasksDetail,
};
use midflight_control::{Snapshot, StoreStatus, TasksStatus};
use midflight_terminal::columns::plain;
use midflight_terminal::units::{short_time, thousands};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use std::time::Duration;

pub(super) fn head(view: &View) -> Vec<Line<'static>> {
    match &view.of {
        Of::Switch(status, detail) => of_switch(view, status, detail),
        Of::Replica(status) => of_replica(view, status),
        Of::Controller(status, detail) => of_controller(status, detail),
    }
}

/// Values that need attention are coloured.
fn named(name: &'static str, values: Vec<Span<'static>>) -> Line<'static> {
    let name = Span::styled(format!("{name:10}"), Style::new().add_modifier(Modifier::DIM));
    Line::from_iter(std::iter::once(name).chain(values))
}

fn of_switch(view: &View, status: &Snapshot<OfProgram>, detail: &Detail) -> Vec<Line<'static>> {
    let uptime = humantime::format_duration(Duration::from_secs(status.uptime_ms / 1000));
    let program = match status.program {
        OfProgram::Tasks(_) => "tasks",
        OfProgram::Store(_) => "store",
        OfProgram::Cache(_) => "cache",
    };
    let about = format!("{}, {program}, {} engine, up {uptime}", status.listen, plain(&status.engine.kind));
    let mut lines = vec![named("switch", vec![about.into()])];
    match (&status.program, detail) {
        (OfProgram::Tasks(tasks), Detail::Tasks(detail)) => lines.extend(of_tasks(view, tasks, Some(detail))),
        (OfProgram::Tasks(tasks), _) => lines.extend(of_tasks(view, tasks, None)),
        (OfProgram::Store(store), Detail::Store(detail)) => lines.extend(of_store(view, store, Some(detail))),
        (OfProgram::Store(store), _) => lines.extend(of_store(view, store, None)),
        (OfProgram::Cache(_), Detail::Cache(detail)) => lines.extend(of_operator(view, Some(detail))),
        (OfProgram::Cache(_), _) => lines.extend(of_operator(view, None)),
    }
    lines.push(named("failures", failures(view)));
    lines
}

fn text(text: String) -> Vec<Span<'static>> {
    vec![text.into()]
}

/// Needs attention, if `count` is not 0.
fn worry(tone: Tone, count: u64, what: &str) -> Option<Span<'static>> {
    (count > 0).then(|| Span::styled(format!("  {} {what}", thousands(count)), style(tone)))
}

fn of_store(view: &View, status: &StoreStatus, detail: Option<&StoreDetail>) -> Vec<Line<'static>> {
    let rate = |name: &str| {
        let of_set = |set: &SetStatus| view.rate(&format!("sets.{}.{name}", set.set));
        status.sets.iter().map(of_set).sum::<f64>()
    };
    let kinds = ["reads_to_followers", "reads_to_leader", "reads_leader_only"].map(rate);
    let reads = format!(
        "{} a second: {} to followers, {} to leaders, {} leader-only",
        per_second(kinds.iter().sum()),
        per_second(kinds[0]),
        per_second(kinds[1]),
        per_second(kinds[2])
    );
    let unstable: u64 = status.sets.iter().map(|set| u64::from(set.unstable)).sum();
    let writes = format!(
        "{} a second, {} key groups unstable; {} reads turned back",
        per_second(rate("writes")),
        thousands(unstable),
        per_second(rate("reads_turned_back"))
    );
    let mut lines = vec![named("reads", text(reads)), named("writes", text(writes))];
    if let Some(detail) = detail {
        let sets = &detail.sets.shown;
        let all: Vec<_> = sets.iter().flat_map(|set| &set.replicas).collect();
        let silent = all.iter().filter(|replica| replica.state == ReplicaState::Silent).count() as u64;
        let heard = format!("{} of {} heard", all.len() as u64 - silent, all.len());
        let replicas = std::iter::once(heard.into()).chain(worry(Tone::Bad, silent, "silent"));
        let ended = sets.iter().filter(|set| !is_active(set)).count() as u64;
        let sessions = format!("{} of {} sets have one", sets.len() as u64 - ended, sets.len());
        let sessions = std::iter::once(sessions.into()).chain(worry(Tone::Bad, ended, "without"));
        lines.extend([named("replicas", replicas.collect()), named("sessions", sessions.collect())]);
    }
    lines
}

fn is_active(set: &SetView) -> bool {
    set.session.as_ref().is_some_and(|session| session.ends_in_ms.is_some())
}

fn of_operator(view: &View, detail: Option<&CacheDetail>) -> Vec<Line<'static>> {
    let rate = |name: &str| per_second(view.rate(name));
    let backups = view.rate("degraded") + view.rate("without_rsnode") + view.rate("unknown_group");
    let requests = format!("{} a second to RSNodes, {} selected here", rate("labelled"), rate("selected"));
    let to_backups = Span::styled(
        format!(", {} to backups", per_second(backups)),
        style(if backups > 0.0 { Tone::Warn } else { Tone::Plain }),
    );
    let answers = format!("{} a second delivered, {} copied", rate("delivered"), rate("copied"));
    let mut lines = vec![named("requests", vec![requests.into(), to_backups]), named("answers", text(answers))];
    let Some(detail) = detail else { return lines };
    let selector = match &detail.selector {
        None => "none: it is no RSNode".into(),
        Some(selector) => {
            let ended = if selector.works { "" } else { ", HAS ENDED" };
            format!("{}{ended}, {} requests under way", plain(&selector.algorithm), thousands(selector.under_way))
        }
    };
    let silent = detail.server_states.get(&ServerState::Silent).copied().unwrap_or(0);
    let servers: u64 = detail.server_states.values().sum();
    let servers =
        std::iter::once(format!("{} known", thousands(servers)).into()).chain(worry(Tone::Bad, silent, "silent"));
    let control = match detail.controller_heard_ms {
        None => "no controller was heard".into(),
        Some(ms) => {
            let heard = short_time(ms as f64 * 1e6);
            format!("term {}, {} rules, heard {heard} ago", detail.term, thousands(detail.rules))
        }
    };
    lines.extend([
        named("selector", text(selector)),
        named("servers", servers.collect()),
        named("control", text(control)),
    ]);
    lines
}

fn of_replica(view: &View, status: &ReplicaStatus) -> Vec<Line<'static>> {
    let leads = match status.leader {
        _ if status.role == "leader" && status.has_lease => "with its lease".into(),
        _ if status.role == "leader" => "without its lease".into(),
        Some(leader) => format!("{leader} leads"),
        None => "knows no leader".into(),
    };
    let about = format!(
        "{} of set {}, {}, term {}, {leads}; reads: {}",
        status.replica,
        status.set,
        plain(&status.role),
        status.term,
        plain(&status.reads)
    );
    let log = format!(
        "{} entries, {} committed, {} of them not applied yet",
        thousands(status.last_index),
        thousands(status.committed),
        thousands(status.committed.saturating_sub(status.applied))
    );
    let rate = |name: &str| per_second(view.rate(&format!("counters.{name}")));
    let reads = format!(
        "{} a second served, {} as the leader, {} refused; {} wait",
        rate("reads_served"),
        rate("reads_as_leader"),
        rate("reads_refused"),
        thousands(status.reads_waiting)
    );
    let session = match &status.session {
        Some(session) => format!("at {}", session.switch),
        None if status.role == "leader" => "none with a switch".into(),
        None => "only a leader has one".into(),
    };
    let store = format!("{} keys, {} bytes", thousands(status.keys), thousands(status.store_bytes));
    [("replica", about), ("log", log), ("reads", reads), ("store", store), ("session", session)]
        .map(|(name, value)| named(name, text(value)))
        .into()
}

fn of_controller(status: &ControllerSnapshot, detail: &ControllerDetail) -> Vec<Line<'static>> {
    let is_active = status.role == "active";
    let role = match status.other_heard_ms {
        _ if is_active => format!("term {}", status.term),
        Some(ms) => format!("another one is active, heard {} ago", short_time(ms as f64 * 1e6)),
        None => "no active one was heard of".into(),
    };
    let about = format!(
        "controller at place {}, of {}, {}, {role}",
        status.place,
        status.controllers.len(),
        plain(&status.role)
    );
    let answer = format!(
        "{} of {} answer",
        detail.operators_all - detail.operators_silent.min(detail.operators_all),
        detail.operators_all
    );
    let operators = std::iter::once(answer.into()).chain(worry(Tone::Bad, detail.operators_silent, "do not"));
    let mut lines = vec![named("control", text(about)), named("operators", operators.collect())];
    if is_active {
        let groups = format!("{} traffic groups", thousands(detail.groups_all));
        let groups = std::iter::once(groups.into()).chain(worry(Tone::Warn, detail.groups_degraded, "degraded"));
        let deployed = if status.is_deployed { "deployed" } else { "not deployed yet" };
        let plan = status.plan.as_ref().map_or_else(
            || format!("none taken yet, {deployed}"),
            |plan| format!("{} RSNodes, {} at least, by {}, {deployed}", plan.rsnodes, plan.bound, plain(&plan.method)),
        );
        lines.extend([named("groups", groups.collect()), named("plan", text(plan))]);
    }
    lines
}

fn of_tasks(view: &View, tasks: &TasksStatus, detail: Option<&TasksDetail>) -> Vec<Line<'static>> {
    let rate = |name: &str| per_second(view.rate(name));
    let rates = format!(
        "{} a second completed, {} submitted, {} assigned",
        rate("tasks.completed"),
        rate("tasks.submitted"),
        rate("tasks.assigned")
    );
    let queued: u64 = tasks.queued.iter().map(|&n| u64::from(n)).sum();
    let levels = tasks.queued.iter().enumerate().filter(|&(_, &n)| n > 0);
    let levels: Vec<_> = levels.map(|(level, n)| format!("level {}: {}", level + 1, thousands((*n).into()))).collect();
    let queue = format!("{}  {}", thousands(queued), levels.join("  "));
    let slots = format!(
        "{} busy, {} parked, of {}",
        thousands(tasks.busy.into()),
        thousands(tasks.parked.into()),
        thousands(tasks.slots.into())
    );
    let mut lines = vec![
        named("tasks", vec![rates.into()]),
        named("queue", vec![queue.into()]),
        named("slots", vec![slots.into()]),
    ];
    if let Some(detail) = detail {
        lines.push(named("executors", states(detail)));
        lines.push(named("wait", vec![quantiles(&detail.wait_us, &tasks.wait_us).into()]));
        lines.push(named("run", vec![quantiles(&detail.run_us, &tasks.run_us).into()]));
    }
    lines
}

/// Quantiles of the last period, and since the start.
fn quantiles(now: &[u64], all: &[u64]) -> String {
    let of = |buckets: &[u64]| {
        let quantile = |q| quantile_us(buckets, q).map(|us| short_time(us as f64 * 1e3));
        match (quantile(0.5), quantile(0.99)) {
            (Some(half), Some(most)) => format!("half < {half}, 99 % < {most}"),
            _ => "no tasks".into(),
        }
    };
    format!("{} (all: {})", of(now), of(all))
}

fn states(detail: &TasksDetail) -> Vec<Span<'static>> {
    let shown = [
        (ExecutorState::Alive, "alive", Tone::Plain),
        (ExecutorState::Silent, "silent", Tone::Warn),
        (ExecutorState::Lost, "lost", Tone::Bad),
        (ExecutorState::Left, "left", Tone::Plain),
    ];
    let each = shown.into_iter().filter_map(|(state, name, tone)| {
        let count = detail.states.get(&state).copied().unwrap_or(0);
        (count > 0 || state == ExecutorState::Alive)
            .then(|| Span::styled(format!("{} {name}  ", thousands(count)), style(tone)))
    });
    each.collect()
}

/// Rates that should be 0.
fn failures(view: &View) -> Vec<Span<'static>> {
    let drops: f64 = view.rates.iter().filter(|(name, _)| name.starts_with("drops.")).map(|(_, rate)| rate).sum();
    let tasks = [("tasks.expired", "expired"), ("tasks.returned", "returned"), ("tasks.dropped", "dropped")];
    let tasks = tasks.map(|(name, what)| (view.rate(name), what));
    let all: Vec<_> = tasks.into_iter().chain([(drops, "drops")]).filter(|(rate, _)| *rate > 0.0).collect();
    if all.is_empty() {
        return vec!["none".into()];
    }
    let text = |(rate, what): &(f64, &str)| Span::styled(format!("{} {what}  ", per_second(*rate)), style(Tone::Warn));
    all.iter().map(text).chain([Span::raw("a second")]).collect()
}

pub(super) fn style(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::new(),
        Tone::Good => Style::new().fg(Color::Green),
        Tone::Warn => Style::new().fg(Color::Yellow),
        Tone::Bad => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
    }
}

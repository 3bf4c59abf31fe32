use super::rows::{Key, Line, Tone, ago, count, line, number, per_second, some, text};
use midflight_control::cache::{GroupLine, OperatorLine};
use midflight_control::store::{MemberStatus, ReplicaStatus};
use midflight_control::watch::{
    ClientView, ExecutorState, ExecutorView, GroupState, GroupView, JobView, ReplicaState, ReplicaView, RsNodeView,
    ServerState, ServerView, SetView,
};
use midflight_terminal::units::{short_number, short_time};

pub(super) fn executor(e: &ExecutorView) -> Line {
    let (state, tone) = match e.state {
        ExecutorState::Lost => ("lost", Tone::Bad),
        ExecutorState::Silent => ("silent", Tone::Warn),
        ExecutorState::Alive => ("alive", Tone::Good),
        ExecutorState::Left => ("left", Tone::Plain),
    };
    let longest = e.longest_ms.map_or_else(String::new, ago);
    let cells = [
        text(&e.address),
        text(state),
        number(ago(e.heard_ms), e.heard_ms as f64),
        number(format!("{} of {}", e.busy, e.slots), e.busy),
        count(e.parked.into()),
        number(longest, e.longest_ms.map_or(-1.0, |ms| ms as f64)),
        some(e.had.into()),
    ];
    line(tone, cells)
}

pub(super) fn job(j: &JobView) -> Line {
    let cells = [
        text(&j.address),
        count(j.jid.into()),
        count(j.level.into()),
        count(j.queued),
        count(j.running),
        some(j.again),
        number(ago(j.oldest_ms), j.oldest_ms as f64),
    ];
    line(Tone::Plain, cells)
}

pub(super) fn client(c: &ClientView) -> Line {
    let heard = number(ago(c.heard_ms), c.heard_ms as f64);
    line(Tone::Plain, [text(&c.address), number(c.uid.to_string(), c.uid), count(c.open.into()), heard])
}

/// Empty if unknown.
fn rate(per_s: Option<f64>) -> (String, Key) {
    number(per_s.map_or_else(String::new, per_second), per_s.unwrap_or(-1.0))
}

/// Empty if unknown.
fn micros(us: Option<f64>) -> (String, Key) {
    number(us.map_or_else(String::new, |us| short_time(us * 1e3)), us.unwrap_or(-1.0))
}

/// "never" if unknown.
fn since(ms: Option<u64>) -> (String, Key) {
    number(ms.map_or_else(|| "never".into(), ago), ms.map_or(f64::INFINITY, |ms| ms as f64))
}

pub(super) fn replica(set: &SetView, r: &ReplicaView) -> Line {
    let (state, tone) = match r.state {
        ReplicaState::Silent => ("silent", Tone::Bad),
        ReplicaState::Out => ("out of the session", Tone::Warn),
        ReplicaState::NoReads => ("gets no reads", Tone::Warn),
        ReplicaState::Waits => ("waits for a session", Tone::Warn),
        ReplicaState::Serves => ("serves", Tone::Good),
        ReplicaState::Leads => ("leads", Tone::Good),
    };
    let name = r.replica.map_or_else(|| format!("slot {}", r.slot), |replica| replica.to_string());
    let cells = [
        count(set.set.into()),
        number(name, r.slot),
        text(state),
        rate(r.reads_per_s),
        count(r.lag),
        since(r.heard_ms),
        text(&r.address),
    ];
    line(tone, cells)
}

pub(super) fn session(set: &SetView) -> Line {
    let (name, state, tone) = match &set.session {
        None => (String::new(), "none yet", Tone::Bad),
        Some(session) => {
            let name = format!("{}.{}", session.term, session.number);
            if session.ends_in_ms.is_some() { (name, "active", Tone::Good) } else { (name, "ended", Tone::Bad) }
        }
    };
    let policy = if set.any_replica { "any replica" } else { set.policy.name() };
    let cells = [
        count(set.set.into()),
        text(&name),
        text(state),
        count(set.writes_under_way),
        text(policy),
        text(set.reply_check.name()),
    ];
    line(tone, cells)
}

pub(super) fn member(status: &ReplicaStatus, member: &MemberStatus) -> Line {
    let is_leader = status.role == "leader";
    let known = |value: u64| if is_leader { count(value) } else { number(String::new(), -1.0) };
    let part = if status.leader == Some(member.member.id) { "leads" } else { "follows" };
    let cells = [
        count(member.member.id),
        text(part),
        known(member.matched),
        known(status.last_index.saturating_sub(member.matched)),
        text(&member.member.address.to_string()),
    ];
    line(Tone::Plain, cells)
}

pub(super) fn server(s: &ServerView) -> Line {
    let (state, tone) = match s.state {
        ServerState::Silent => ("silent", Tone::Bad),
        ServerState::Unknown => ("unknown", Tone::Warn),
        ServerState::Answers => ("answers", Tone::Good),
    };
    let queue = s.queue.map_or_else(String::new, short_number);
    let cells = [
        text(&s.address),
        text(state),
        rate(s.asked_per_s),
        count(s.outstanding.into()),
        number(queue, s.queue.unwrap_or(-1.0)),
        micros(s.service_us),
        micros(s.response_us),
    ];
    line(tone, cells)
}

pub(super) fn group(g: &GroupView) -> Line {
    let (state, tone) = match g.state {
        GroupState::Unknown => ("unknown RSNode", Tone::Bad),
        GroupState::Degraded => ("degraded", Tone::Warn),
        GroupState::Labelled => ("labelled", Tone::Good),
    };
    let cells = [
        count(g.group.into()),
        text(state),
        some(g.rsnode.unwrap_or(0).into()),
        text(g.operator.as_deref().unwrap_or_default()),
        rate(g.answers_per_s),
    ];
    line(tone, cells)
}

pub(super) fn rsnode(r: &RsNodeView) -> Line {
    line(Tone::Plain, [count(r.id.into()), text(&r.operator)])
}

pub(super) fn operator(o: &OperatorLine) -> Line {
    let (state, tone) = match o {
        OperatorLine { is_connected: false, .. } => ("not connected", Tone::Bad),
        OperatorLine { is_alive: false, .. } => ("dead", Tone::Bad),
        OperatorLine { refused: 1.., .. } => ("refuses orders", Tone::Bad),
        OperatorLine { is_barred: true, .. } => ("alive, in no plan", Tone::Warn),
        _ => ("alive", Tone::Good),
    };
    let selects = |value: u64| {
        if o.may_select { number(per_second(value as f64), value as f64) } else { number(String::new(), -1.0) }
    };
    let cells = [
        text(&o.switch),
        text(state),
        since(o.heard_ms),
        selects(o.load_per_s),
        selects(o.load_most_per_s),
        text(&o.address.to_string()),
    ];
    line(tone, cells)
}

pub(super) fn traffic_group(g: &GroupLine) -> Line {
    let tone = if g.label.is_none() { Tone::Warn } else { Tone::Plain };
    let cells = [
        text(&g.group),
        number(g.label.map_or_else(|| "degraded".into(), |id| id.to_string()), g.label.unwrap_or(0)),
        text(g.wanted.as_deref().unwrap_or("degraded")),
        number(per_second(g.requests_per_s as f64), g.requests_per_s as f64),
    ];
    line(tone, cells)
}

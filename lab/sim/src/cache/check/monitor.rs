//! Follows each read from its client through selectors to servers and back, and checks what is visible at once.

use super::control::Control;
use super::rules::*;
use super::spy::Seen;
use super::trace;
use super::trial::{Party, Trial};
use crate::cache::{CacheEvent, ClientActor, OperatorActor, Passed, SelectorActor, ServerActor};
use crate::check::{self, CheckReport, Checked, Common, FaultKind as _, Places, Recent, Trace, holds};
use crate::{Actor, Happening, NodeId};
use midflight_cache::client::{Answer, Failure, ReadKey};
use midflight_dataplane::cache::Verdict;
use midflight_endpoint::{MS, Nanos, SECOND};
use midflight_wire::cache::{Kind, NO_RSNODE, Packet, parse};
use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::rc::Rc;

/// Walks the core's structures once in this many turns of operators; more would dominate a run's time.
const SOUND_EVERY: u32 = 64;
/// A selector forgets a request after this time.
pub(super) const EXPIRE: Nanos = SECOND;
/// Longest interval of its expiry, including clock drift.
const LATE: Nanos = 100 * MS;

#[derive(Clone, Copy, Debug)]
struct Open {
    group: u32,
    token: u64,
}

/// What a selector compares of an answer.
type Name = (NodeId, SocketAddr, u64, SocketAddr, u16);

fn name(selector: NodeId, passed: &Passed) -> Name {
    (selector, passed.client, passed.number, passed.server, passed.retained)
}

/// The results of a run so far.
#[derive(Debug)]
pub struct Findings {
    report: CheckReport,
    places: Places<Party>,
    recent: Recent,
    groups: Rc<[Vec<SocketAddr>]>,
    addresses: HashMap<NodeId, SocketAddr>,
    gateways: HashMap<NodeId, NodeId>,
    lets_no_read_fail: bool,
    drops_nothing: bool,
    has_copies: bool,
    has_drift: bool,
    open: HashMap<(NodeId, ReadKey), Open>,
    begun: HashSet<u64>,
    pub(super) failed: u64,
    /// By request number, how often it was sent, and passed a selector.
    asked: HashMap<u64, u32>,
    selected: HashMap<u64, u32>,
    under_way: HashMap<Name, Nanos>,
    from: Option<NodeId>,
    /// Answers that endpoints had accepted, or requests that they had taken, before their current turn.
    counted: HashMap<NodeId, u64>,
    turns: u32,
    traffic_groups: HashMap<NodeId, usize>,
    pub(super) control: Option<Control>,
    pub(super) seen: Seen,
}

impl Findings {
    pub(super) fn new(
        trial: &Trial,
        places: Places<Party>,
        groups: Rc<[Vec<SocketAddr>]>,
        addresses: HashMap<NodeId, SocketAddr>,
        traced: bool,
        recent: Recent,
    ) -> Self {
        let clients = places.of(Party::Client).enumerate();
        let gateways = clients.map(|(n, node)| (node, places.node(Party::Operator(trial.rack_of_client(n))))).collect();
        let traffic_groups =
            places.of(Party::Client).enumerate().map(|(n, node)| (node, trial.group_of_client(n))).collect();
        let is_drift = |what: &super::FaultKind| matches!(what.common(), Some(Common::Drift { .. }));
        Self {
            report: CheckReport::new(traced.then(|| Trace::new(places.names()))),
            gateways,
            places,
            recent,
            groups,
            addresses,
            lets_no_read_fail: trial.lets_no_read_fail(),
            drops_nothing: trial.drops_nothing(),
            has_copies: trial.has_copies(),
            has_drift: trial.faults.iter().any(|fault| is_drift(&fault.what)),
            open: HashMap::new(),
            begun: HashSet::new(),
            failed: 0,
            asked: HashMap::new(),
            selected: HashMap::new(),
            under_way: HashMap::new(),
            from: None,
            counted: HashMap::new(),
            turns: 0,
            traffic_groups,
            control: None,
            seen: Seen::default(),
        }
    }

    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    fn who(&self, node: NodeId) -> String {
        self.places.party(node).map_or("an attacker".to_owned(), |party| format!("{party:?}"))
    }

    fn event(&mut self, at: Nanos, node: NodeId, event: &CacheEvent) -> Checked {
        match event {
            CacheEvent::Begun { key, group, token } => {
                self.open.insert((node, *key), Open { group: *group, token: *token });
                self.begun.insert(*token);
            }
            CacheEvent::Asked { number, rsnode } => {
                holds!(N2, *rsnode == NO_RSNODE, "{} names RSNode {rsnode}", self.who(node));
                *self.asked.entry(*number).or_default() += 1;
            }
            CacheEvent::Selected(passed) => return self.passes(at, node, passed),
            CacheEvent::Served { group, token } => return self.serves(node, *group, *token),
            CacheEvent::Ended { key, outcome } => return self.ends(node, *key, outcome),
            CacheEvent::Control(event) => {
                return self.control.as_mut().map_or(Ok(()), |control| control.event(at, node, event));
            }
            CacheEvent::Verdict { verdict, sent, is_netrs } => return self.judges(node, *verdict, *sent, *is_netrs),
        }
        Ok(())
    }

    /// N1: unless datagrams are duplicated, each request of a client passes at most one selector.
    fn passes(&mut self, at: Nanos, node: NodeId, passed: &Passed) -> Checked {
        let times = self.selected.entry(passed.number).or_default();
        *times += 1;
        let (times, asked) = (*times, self.asked.get(&passed.number).copied().unwrap_or_default());
        holds!(
            N1,
            self.has_copies || times <= asked,
            "request #{:x} was sent {asked} times, and has passed selectors {times} times",
            passed.number
        );
        if passed.is_selected {
            self.under_way.insert(name(node, passed), at);
        }
        Ok(())
    }

    /// N3: a request reaches a replica of its group. N8: only requests of clients are served.
    fn serves(&self, node: NodeId, group: u32, token: u64) -> Checked {
        let who = self.who(node);
        let servers = self.groups.get(group as usize).zip(self.addresses.get(&node));
        let is_replica = servers.is_some_and(|(servers, address)| servers.contains(address));
        holds!(N3, is_replica, "{who} serves a request of group {group}, and is no replica of it");
        holds!(N8, self.begun.contains(&token), "{who} serves token {token:x}, which nobody has asked");
        Ok(())
    }

    /// A read ends once, with its own answer (N7), from a replica of its group (N3). A read must not fail through a
    /// fault that the network should survive (N6), nor because its group is degraded (N5).
    fn ends(&mut self, node: NodeId, key: ReadKey, outcome: &Result<Answer, Failure>) -> Checked {
        let who = self.who(node);
        let Some(open) = self.open.remove(&(node, key)) else {
            holds!(ONCE, false, "{who} reports the end of #{:x} a second time", key.0);
            return Ok(());
        };
        match outcome {
            Ok(answer) => {
                let is_own = answer.bytes == open.token.to_be_bytes();
                holds!(N7, is_own, "{who} takes the answer to another question for that to #{:x}", key.0);
                let is_replica = self.groups[open.group as usize].contains(&answer.server);
                let Open { group, .. } = open;
                holds!(N3, is_replica, "#{:x} of group {group} was answered by {}, no replica", key.0, answer.server);
            }
            Err(failure) => {
                self.failed += 1;
                let is_degraded = |control: &Control| control.is_degraded(self.traffic_groups[&node]);
                let rule = if self.control.as_ref().is_some_and(is_degraded) { N5 } else { N6 };
                holds!(
                    rule,
                    !self.lets_no_read_fail,
                    "{who} gives #{:x} up ({failure}), and no fault excuses it",
                    key.0
                );
            }
        }
        Ok(())
    }

    /// N7: operators with their rules drop nothing, whatever the plan. N9: what is not NetRS's is neither answered nor
    /// forwarded.
    fn judges(&self, node: NodeId, verdict: Verdict, sent: usize, is_netrs: bool) -> Checked {
        let who = self.who(node);
        let is_fine = matches!(verdict, Verdict::Forwarded | Verdict::NoCookie);
        holds!(
            N7,
            is_fine || !self.drops_nothing,
            "{who} drops a datagram ({verdict:?}), though all operators have their rules, and nobody forges packets"
        );
        holds!(N9, is_netrs || sent == 0, "{who} sends {sent} datagrams for one that is not NetRS's");
        Ok(())
    }

    /// N7: an answer counts once, for the request that the selector has sent. A refusal teaches it nothing.
    fn learns(&mut self, at: Nanos, node: NodeId, actor: &SelectorActor, datagram: &[u8]) -> Checked {
        if !self.has_counted_more(node, actor.rsnode().counters().answered) {
            return Ok(());
        }
        let who = self.who(node);
        let Some(passed) = Passed::read(datagram) else {
            holds!(N8, false, "{who} takes for an answer what is none");
            return Ok(());
        };
        let sent = self.under_way.remove(&name(node, &passed));
        let Some(sent) = sent else {
            holds!(N7, false, "{who} takes an answer to #{:x} for that to another request", passed.number);
            return Ok(());
        };
        let is_in_time = self.has_drift || at - sent <= EXPIRE + LATE;
        holds!(N7, is_in_time, "{who} takes an answer to #{:x}, which had expired, for that to another", passed.number);
        let is_refusal = matches!(parse(datagram), Ok(Packet::Response(_, _, [], _, [])));
        holds!(N8, !is_refusal, "{who} learns from a refusal");
        Ok(())
    }

    /// N8: a client accepts answers only from its operator, or in direct mode from a server.
    fn believes(&mut self, node: NodeId, actor: &ClientActor) -> Checked {
        if self.has_counted_more(node, actor.client().counters().answered) {
            let is_server = |from: &NodeId| matches!(self.places.party(*from), Some(Party::Server(_)));
            let is_gateway = |from: &NodeId| self.gateways.get(&node) == Some(from);
            let is_direct = actor.client().selector().is_some();
            let is_right = self.from.is_some_and(|from| if is_direct { is_server(&from) } else { is_gateway(&from) });
            holds!(N8, is_right, "{} believes {:?}", self.who(node), self.from.map(|from| self.who(from)));
        }
        Ok(())
    }

    /// N8: a server accepts a request only from an operator or selector, or with a cookie.
    fn takes(&mut self, node: NodeId, actor: &ServerActor, datagram: &[u8]) -> Checked {
        if self.has_counted_more(node, actor.server().counters().taken) {
            let is_direct = matches!(parse(datagram), Ok(Packet::ForServer(Kind::Direct, ..)));
            let from = self.from.and_then(|from| self.places.party(from));
            let is_right = is_direct || matches!(from, Some(Party::Operator(_) | Party::Selector(_)));
            holds!(N8, is_right, "{} takes a request of {from:?}", self.who(node));
        }
        Ok(())
    }

    fn has_counted_more(&mut self, node: NodeId, count: u64) -> bool {
        self.counted.insert(node, count).unwrap_or_default() < count
    }
}

impl check::Findings for Findings {
    fn report(&mut self) -> &mut CheckReport {
        &mut self.report
    }

    fn describe(datagram: &[u8]) -> String {
        trace::describe(datagram)
    }

    fn describe_event(trace: &Trace, what: &dyn Any) -> Option<String> {
        let (node, event) = what.downcast_ref::<(NodeId, CacheEvent)>()?;
        trace::event(trace, *node, event)
    }

    fn arrived(&mut self, from: NodeId, to: NodeId, datagram: &[u8]) -> Checked {
        self.recent.note(from, to, datagram);
        if self.traffic_groups.contains_key(&from) {
            self.seen.note(from, datagram);
        }
        self.from = Some(from);
        Ok(())
    }

    fn handled(&mut self, at: Nanos, node: NodeId, actor: &dyn Actor, datagram: Option<&[u8]>) -> Checked {
        let actor = actor as &dyn Any;
        if let Some(operator) = actor.downcast_ref::<OperatorActor>() {
            self.turns += 1;
            if self.turns.is_multiple_of(SOUND_EVERY) {
                let sound = operator.check();
                holds!(SOUND, sound.is_ok(), "{}: {sound:?}", self.who(node));
            }
            if let Some(control) = &mut self.control {
                control.turn(at, node, operator)?;
            }
        }
        let Some(datagram) = datagram else { return Ok(()) };
        if let Some(selector) = actor.downcast_ref() {
            return self.learns(at, node, selector, datagram);
        }
        if let Some(client) = actor.downcast_ref() {
            return self.believes(node, client);
        }
        actor.downcast_ref().map_or(Ok(()), |server| self.takes(node, server, datagram))
    }

    fn happened(&mut self, at: Nanos, happening: &Happening<'_>) -> Checked {
        if let Some(control) = &mut self.control {
            control.happened(at, happening);
        }
        if let Happening::Crashed { node } = *happening {
            self.open.retain(|(client, _), _| *client != node);
            self.under_way.retain(|(selector, ..), _| *selector != node);
            self.counted.remove(&node);
        }
        happening.of().map_or(Ok(()), |(node, event)| self.event(at, *node, event))
    }
}

//! What a view of an operator adds: its controller, traffic groups, RSNodes, and servers as its selector sees them.

use super::{Listed, rate};
use midflight_cache::rsnode::SeenServer;
use midflight_dataplane::cache::{Selection, Survey, SurveyedGroup, SurveyedRsNode};
use midflight_endpoint::Nanos;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::time::Duration;

/// State of an operator that its core does not have: its control connection and its selector.
#[derive(Clone, Debug, Default)]
pub struct OperatorParts {
    /// Number of the term that it follows; 0: none yet.
    pub term: u64,
    /// Time since the last message of a controller of that term.
    pub heard: Option<Duration>,
    /// Rules that it has.
    pub rules: u64,
    /// Its selector, and the servers in the order of their numbers.
    pub selector: Option<(SelectorView, Vec<SeenServer>)>,
}

/// A selector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelectorView {
    /// Its algorithm.
    pub algorithm: String,
    /// Its address; `None`: the operator's core selects.
    pub address: Option<String>,
    /// Whether its thread runs.
    pub works: bool,
    /// Requests in flight.
    pub under_way: u64,
}

/// Whether a traffic group's requests reach an RSNode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupState {
    /// No: its RSNode's operator is unknown here, or does not answer.
    Unknown,
    /// No: they go to their backups.
    Degraded,
    /// Yes.
    Labelled,
}

/// A traffic group of the operator's rack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupView {
    /// Its number.
    pub group: u16,
    /// Whether its requests reach an RSNode.
    pub state: GroupState,
    /// The RSNode id of its label; `None`: it is degraded.
    pub rsnode: Option<u16>,
    /// The RSNode's address, or `here`.
    pub operator: Option<String>,
    /// Answers per second to its hosts; `None` in the first view.
    pub answers_per_s: Option<f64>,
}

/// An RSNode id that the operator knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RsNodeView {
    /// The id.
    pub id: u16,
    /// Its operator's address, or `here`.
    pub operator: String,
}

/// The state of a server, as the selector here sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerState {
    /// Requests have expired since its last answer.
    Silent,
    /// No recent request or answer is known.
    Unknown,
    /// It answers.
    Answers,
}

/// A server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerView {
    /// Its address.
    pub address: String,
    /// Its state.
    pub state: ServerState,
    /// Requests that were neither answered nor have expired.
    pub outstanding: u32,
    /// Requests per second sent to it; `None` in the first view, or if the core selects, which does not count them.
    pub asked_per_s: Option<f64>,
    /// Those of them without an answer in time.
    pub expired_per_s: Option<f64>,
    /// Average response time, in microseconds.
    pub response_us: Option<f64>,
    /// Average service time, as it reports, in microseconds.
    pub service_us: Option<f64>,
    /// Average of the queue that it reports, in requests.
    pub queue: Option<f64>,
    /// Its rank: the selector chooses the least. The unit is the selector's own.
    pub score: Option<f64>,
}

/// The operator at one moment, and rates since the previous view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CacheDetail {
    /// Number of the term that it follows; 0: no controller has given it rules.
    pub term: u64,
    /// Milliseconds since the last message of a controller of that term.
    pub controller_heard_ms: Option<u64>,
    /// Rules that it has.
    pub rules: u64,
    /// The operator's own RSNode ids.
    pub serves: Listed<u16>,
    /// The selector; `None`: there is none, so the operator is no RSNode.
    pub selector: Option<SelectorView>,
    /// Number of groups in each state.
    pub group_states: BTreeMap<GroupState, u64>,
    /// First those that need attention, then those with the most answers.
    pub groups: Listed<GroupView>,
    /// In the order of their ids.
    pub rsnodes: Listed<RsNodeView>,
    /// Number of servers in each state.
    pub server_states: BTreeMap<ServerState, u64>,
    /// First those that need attention, then those with the most requests.
    pub servers: Listed<ServerView>,
}

/// State between views.
#[derive(Debug)]
pub struct CacheWatch {
    selection: Selection,
    then: Option<Nanos>,
    answers: HashMap<u16, u64>,
    /// Of each server: requests sent and expired.
    servers: HashMap<SocketAddr, [u64; 2]>,
}

impl CacheWatch {
    /// For an operator whose core selects so, if it does.
    #[must_use]
    pub fn new(selection: Selection) -> Self {
        Self { selection, then: None, answers: HashMap::new(), servers: HashMap::new() }
    }

    /// The detail of this survey and these parts. `now`: the survey's time; `under_way`: requests in flight of a core that selects.
    pub fn detail(&mut self, now: Nanos, survey: &Survey, parts: OperatorParts, under_way: u64) -> CacheDetail {
        let seconds = self.then.map(|then| (now.saturating_sub(then) as f64 / 1e9).max(1e-3));
        self.then = Some(now);
        let (selector, mut servers) = match parts.selector {
            Some((selector, seen)) => (Some(selector), self.seen(seconds, &seen)),
            None if self.selection != Selection::None => {
                (Some(in_core(self.selection, under_way)), of_core(now, survey))
            }
            None => (None, Vec::new()),
        };
        servers.sort_by(|a, b| {
            let key = |server: &ServerView| (server.state, Reverse(server.asked_per_s.map(|rate| rate as u64)));
            (key(a), &a.address).cmp(&(key(b), &b.address))
        });
        let mut groups = self.groups(seconds, survey);
        groups.sort_by_key(|group| (group.state, Reverse(group.answers_per_s.map(|rate| rate as u64)), group.group));
        let rsnodes = survey.rsnodes.iter().map(|rsnode| RsNodeView { id: rsnode.id, operator: place(rsnode) });
        CacheDetail {
            term: parts.term,
            controller_heard_ms: parts.heard.map(|heard| u64::try_from(heard.as_millis()).unwrap_or(u64::MAX)),
            rules: parts.rules,
            serves: Listed::of(
                survey.rsnodes.iter().filter(|rsnode| rsnode.is_here()).map(|rsnode| rsnode.id).collect(),
            ),
            selector,
            group_states: counted(groups.iter().map(|group| group.state)),
            groups: Listed::of(groups),
            rsnodes: Listed::of(rsnodes.collect()),
            server_states: counted(servers.iter().map(|server| server.state)),
            servers: Listed::of(servers),
        }
    }

    fn groups(&mut self, seconds: Option<f64>, survey: &Survey) -> Vec<GroupView> {
        let at: HashMap<u16, String> = survey.rsnodes.iter().map(|rsnode| (rsnode.id, place(rsnode))).collect();
        let view = |group: &SurveyedGroup| {
            let operator = group.rsnode().and_then(|id| at.get(&id).cloned());
            let state = match (group.rsnode(), &operator) {
                (None, _) => GroupState::Degraded,
                (_, None) => GroupState::Unknown,
                _ => GroupState::Labelled,
            };
            let before = self.answers.get(&group.group).copied().unwrap_or(0);
            let answers_per_s = seconds.map(|seconds| rate(group.answers.saturating_sub(before), seconds));
            GroupView { group: group.group, state, rsnode: group.rsnode(), operator, answers_per_s }
        };
        let views = survey.groups.iter().map(view).collect();
        self.answers = survey.groups.iter().map(|group| (group.group, group.answers)).collect();
        views
    }

    /// Servers as a separate selector sees them.
    fn seen(&mut self, seconds: Option<f64>, seen: &[SeenServer]) -> Vec<ServerView> {
        let before = std::mem::take(&mut self.servers);
        let mut views = Vec::with_capacity(seen.len());
        for server in seen {
            let tally = [server.tally.asked, server.tally.expired];
            let base = before.get(&server.address).copied().unwrap_or_default();
            let [asked, expired] = [0, 1].map(|i| tally[i].wrapping_sub(base[i]));
            let state = match server.tally {
                tally if tally.expired_since > 0 => ServerState::Silent,
                tally if tally.answered > 0 => ServerState::Answers,
                _ => ServerState::Unknown,
            };
            self.servers.insert(server.address, tally);
            let learned = server.learned.unwrap_or_default();
            views.push(ServerView {
                address: server.address.to_string(),
                state,
                outstanding: server.outstanding,
                asked_per_s: seconds.map(|seconds| rate(asked, seconds)),
                expired_per_s: seconds.map(|seconds| rate(expired, seconds)),
                response_us: learned.response.and_then(micros),
                service_us: learned.service.and_then(micros),
                queue: learned.queue.and_then(short),
                score: learned.score.and_then(short),
            });
        }
        views
    }
}

/// Only C3 has averages.
fn of_core(now: Nanos, survey: &Survey) -> Vec<ServerView> {
    let view = |server: &midflight_dataplane::cache::SurveyedServer| {
        let is_known = now < server.known_until_ns;
        let [response, service, queue] = server.averages();
        let of = |value: f64, is_there: bool| (is_known && is_there).then_some(value);
        ServerView {
            address: server.address().to_string(),
            state: if is_known { ServerState::Answers } else { ServerState::Unknown },
            outstanding: server.outstanding,
            asked_per_s: None,
            expired_per_s: None,
            response_us: of(response, response > 0.0).and_then(micros),
            service_us: of(service, service > 0.0).and_then(micros),
            queue: of(queue, service > 0.0).and_then(short),
            score: None,
        }
    };
    survey.servers.iter().map(view).collect()
}

fn in_core(selection: Selection, under_way: u64) -> SelectorView {
    SelectorView { algorithm: selection.name().into(), address: None, works: true, under_way }
}

fn place(rsnode: &SurveyedRsNode) -> String {
    if rsnode.is_here() { "here".into() } else { rsnode.address().to_string() }
}

fn counted<T: Ord>(states: impl Iterator<Item = T>) -> BTreeMap<T, u64> {
    let mut all = BTreeMap::new();
    states.for_each(|state| *all.entry(state).or_insert(0) += 1);
    all
}

fn micros(nanos: f64) -> Option<f64> {
    short(nanos / 1e3)
}

/// Rounded to three decimals; `None` for infinity, which JSON lacks.
fn short(value: f64) -> Option<f64> {
    value.is_finite().then(|| (value * 1e3).round() / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::LISTED_MAX;
    use midflight_cache::select::{Learned, Tally};
    use midflight_endpoint::SECOND;

    fn address(last: u8) -> SocketAddr {
        ([10, 0, 2, last], 7800).into()
    }

    fn server(last: u8, asked: u64, answered: u64, expired: u64) -> SeenServer {
        let learned = (answered > 0).then_some(Learned {
            response: Some(2_500_000.0),
            service: Some(1e6),
            queue: Some(0.5),
            score: Some(4_000_000.5),
        });
        let outstanding = (asked - answered - expired) as u32;
        SeenServer {
            address: address(last),
            outstanding,
            tally: Tally { asked, answered, expired, expired_since: expired },
            learned,
        }
    }

    fn parts(servers: Vec<SeenServer>) -> OperatorParts {
        let selector =
            SelectorView { algorithm: "c3".into(), address: Some("10.0.0.1:7750".into()), works: true, under_way: 3 };
        let heard = Some(Duration::from_millis(40));
        OperatorParts { term: 2, heard, rules: 9, selector: Some((selector, servers)) }
    }

    fn survey(answers: u64) -> Survey {
        let mut survey = Survey::default();
        survey.groups = vec![
            SurveyedGroup::new(0, Some(7), answers),
            SurveyedGroup::new(1, None, 0),
            SurveyedGroup::new(2, Some(9), 0),
        ];
        survey.rsnodes = vec![SurveyedRsNode::new(6, Some(address(9))), SurveyedRsNode::new(7, None)];
        survey
    }

    #[test]
    fn the_view_of_an_operator_is_the_documented_one() {
        let mut watch = CacheWatch::new(Selection::None);
        watch.detail(SECOND, &survey(100), parts(vec![server(1, 10, 10, 0), server(2, 10, 10, 0)]), 0);
        let seen = vec![server(1, 110, 108, 0), server(2, 15, 10, 4)];
        let detail = watch.detail(2 * SECOND, &survey(350), parts(seen), 0);
        let expected = serde_json::json!({
            "term": 2, "controller_heard_ms": 40, "rules": 9, "serves": {"more": 0, "shown": [7]},
            "selector": {"algorithm": "c3", "address": "10.0.0.1:7750", "works": true, "under_way": 3},
            "group_states": {"unknown": 1, "degraded": 1, "labelled": 1},
            "groups": {"more": 0, "shown": [
                {"group": 2, "state": "unknown", "rsnode": 9, "operator": null, "answers_per_s": 0.0},
                {"group": 1, "state": "degraded", "rsnode": null, "operator": null, "answers_per_s": 0.0},
                {"group": 0, "state": "labelled", "rsnode": 7, "operator": "here", "answers_per_s": 250.0},
            ]},
            "rsnodes": {"more": 0, "shown": [
                {"id": 6, "operator": "10.0.2.9:7800"}, {"id": 7, "operator": "here"}]},
            "server_states": {"silent": 1, "answers": 1},
            "servers": {"more": 0, "shown": [
                {"address": "10.0.2.2:7800", "state": "silent", "outstanding": 1, "asked_per_s": 5.0, "expired_per_s": 4.0,
                 "response_us": 2500.0, "service_us": 1000.0, "queue": 0.5, "score": 4000000.5},
                {"address": "10.0.2.1:7800", "state": "answers", "outstanding": 2, "asked_per_s": 100.0, "expired_per_s": 0.0,
                 "response_us": 2500.0, "service_us": 1000.0, "queue": 0.5, "score": 4000000.5},
            ]},
        });
        assert_eq!(serde_json::to_value(&detail).unwrap(), expected);
    }

    #[test]
    fn a_server_stays_silent_until_it_answers() {
        let mut watch = CacheWatch::new(Selection::None);
        let mut state = |second: u64, seen| {
            watch.detail(second * SECOND, &Survey::default(), parts(vec![seen]), 0).servers.shown[0].state
        };
        assert_eq!(state(1, server(1, 0, 0, 0)), ServerState::Unknown);
        assert_eq!(state(2, server(1, 5, 5, 0)), ServerState::Answers);
        assert_eq!(state(3, server(1, 5, 5, 0)), ServerState::Answers, "nobody asked it");
        assert_eq!(state(4, server(1, 6, 5, 1)), ServerState::Silent);
        assert_eq!(state(5, server(1, 6, 5, 1)), ServerState::Silent);
        let mut answers_again = server(1, 7, 6, 1);
        answers_again.tally.expired_since = 0;
        assert_eq!(state(6, answers_again), ServerState::Answers);
    }

    #[test]
    fn a_server_that_was_dead_before_anybody_watched_is_silent() {
        let parts = parts(vec![server(1, 1_000, 900, 100)]);
        let detail = CacheWatch::new(Selection::None).detail(SECOND, &Survey::default(), parts, 0);
        assert_eq!(detail.servers.shown[0].state, ServerState::Silent);
    }

    #[test]
    fn an_operator_with_thousands_of_groups_and_servers_makes_a_view_that_is_bounded() {
        let mut watch = CacheWatch::new(Selection::None);
        let mut survey = Survey::default();
        survey.groups = (0..65_000).map(|group| SurveyedGroup::new(group, Some(1), 0)).collect();
        survey.rsnodes = (1..=4_096).map(|id| SurveyedRsNode::new(id, (id > 1_000).then(|| address(1)))).collect();
        let servers = (0..=u16::MAX).map(|n| SeenServer { address: ([10, 1, 0, 1], n).into(), ..server(1, 0, 0, 0) });
        let detail = watch.detail(SECOND, &survey, parts(servers.collect()), 0);
        assert_eq!((detail.groups.shown.len(), detail.groups.more), (LISTED_MAX, 65_000 - 256));
        assert_eq!((detail.servers.more, detail.rsnodes.more), (65_536 - 256, 4_096 - 256));
        assert_eq!((detail.serves.shown.len(), detail.serves.more), (LISTED_MAX, 1_000 - 256));
        assert!(serde_json::to_string(&detail).unwrap().len() < 160 << 10);
    }

    #[test]
    fn a_core_that_chooses_says_what_it_knows_of_servers() {
        let mut watch = CacheWatch::new(Selection::C3);
        let detail = watch.detail(SECOND, &Survey::default(), OperatorParts::default(), 4);
        let selector = SelectorView { algorithm: "c3".into(), address: None, works: true, under_way: 4 };
        assert_eq!((detail.selector, detail.servers.shown.len()), (Some(selector), 0));
    }
}

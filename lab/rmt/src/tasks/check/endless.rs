//! Livelock: cycles of states in which every executor is served and no task is assigned.
//!
//! Executors ask for ever here. Pointers and credit are renumbered in each state, so that a queue returns to its first state after one
//! turn, and the graph of all states is finite. A fair run that never ends stays in one of its strongly connected components from some time
//! on.

use super::pack::{pack, unpack};
use super::world::{Broken, FOREVER, Fate, Setting, Step, World};
use super::{Instance, Subject};
use crate::Watch;
use std::collections::{HashMap, VecDeque};

/// A cycle that may repeat for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// Steps before the cycle.
    pub steps: usize,
    /// Steps of the cycle.
    pub turn: usize,
    /// The steps and the cycle, one step per line.
    pub transcript: String,
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.transcript)
    }
}

/// The result of a search for cycles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endless {
    /// Different states, apart from where numbers begin.
    pub states: usize,
    /// Steps between them.
    pub steps: usize,
    /// Whether all states were reached.
    pub exhaustive: bool,
    /// Maximum number of passes until recirculation ends if no other packet comes; `None`: packets may recirculate for ever.
    pub passes: Option<usize>,
    /// A request that is never answered, though every executor and packet is served again and again.
    pub request: Option<Way>,
    /// No task is assigned any more, likewise, though an executor may run an accepted one.
    pub task: Option<Way>,
}

struct Graph {
    states: Vec<Box<[u8]>>,
    /// The step by which each was found, and the state before it.
    from: Vec<Option<(u32, Step)>>,
    edges: Vec<Vec<Edge>>,
    exhaustive: bool,
}

#[derive(Clone, Copy)]
struct Edge {
    to: u32,
    step: Step,
    serves: Option<u8>,
    is_pass: bool,
}

/// Searches all states for cycles. All executors ask for ever.
///
/// # Errors
/// If a rule breaks during the search.
pub fn endless<S: Subject>(subject: S, instance: &Instance, watch: &Watch) -> Result<Endless, Broken> {
    let executors = instance.executors.iter().map(|&(has, _)| (has, FOREVER)).collect();
    let setting = Setting::new(subject, Instance { executors, ..instance.clone() });
    let graph = explore(&setting, watch)?;
    let all = vec![true; graph.states.len()];
    let task = lasting(&setting, &graph, &all, |part| part.is_open);
    let requests = (0..setting.instance.executors.len()).filter_map(|executor| {
        let states = graph.states.iter();
        let waiting: Vec<bool> = states.map(|bytes| unpack(&setting, bytes).executors[executor].waits).collect();
        lasting(&setting, &graph, &waiting, |_| true)
    });
    let request = requests.min_by_key(|way| (way.steps, way.turn));
    Ok(Endless {
        states: graph.states.len(),
        steps: graph.edges.iter().map(Vec::len).sum(),
        exhaustive: graph.exhaustive,
        passes: longest(&graph),
        request,
        task,
    })
}

/// Visits the same states, and repeats each step with all pointers and credit moved by `by`: it must lead to the same state. Returns the
/// number of steps.
///
/// # Errors
/// If a rule breaks, or a step leads elsewhere.
pub fn shifted<S: Subject>(subject: S, instance: &Instance, by: u32, watch: &Watch) -> Result<usize, Broken> {
    let executors = instance.executors.iter().map(|&(has, _)| (has, FOREVER)).collect();
    let setting = Setting::new(subject, Instance { executors, ..instance.clone() });
    let (graph, start) = (explore(&setting, watch)?, instance.start.wrapping_add(by));
    for (bytes, edges) in graph.states.iter().zip(&graph.edges) {
        for edge in edges {
            let mut world = unpack(&setting, bytes);
            setting.subject.number_anew(&mut world.machine, &mut world.flight, start);
            world.step(edge.step)?;
            if stored(&mut world) != graph.states[edge.to as usize] {
                return Err(Broken { rule: "shift", what: format!("{:?} leads elsewhere", edge.step) });
            }
        }
    }
    Ok(graph.edges.iter().map(Vec::len).sum())
}

/// The steps to the nearest component of these states that is fair and `wanted`.
fn lasting<S: Subject>(
    setting: &Setting<S>,
    graph: &Graph,
    inside: &[bool],
    wanted: impl Fn(&Part<'_>) -> bool,
) -> Option<Way> {
    let mut parts = parts(graph, inside);
    parts.sort_by_key(|part| depth(graph, first(part)));
    let parts = parts.iter().map(|part| Part::of(setting, graph, part));
    parts.filter(|part| part.is_fair && wanted(part)).map(|part| part.way(setting, graph)).next()
}

/// A state in its stored form, with its numbers counted from the start.
fn stored<S: Subject>(world: &mut World<'_, S>) -> Box<[u8]> {
    let start = world.setting.instance.start;
    super::pack::sort(world);
    world.setting.subject.number_anew(&mut world.machine, &mut world.flight, start);
    pack(world)
}

fn explore<S: Subject>(setting: &Setting<S>, watch: &Watch) -> Result<Graph, Broken> {
    let begin = stored(&mut World::new(setting));
    let mut known = HashMap::from([(begin.clone(), 0)]);
    let mut graph = Graph { states: vec![begin], from: vec![None], edges: Vec::new(), exhaustive: true };
    while graph.edges.len() < graph.states.len() {
        let limit = setting.instance.limit.is_some_and(|limit| graph.states.len() >= limit);
        if watch.stops() || limit {
            graph.exhaustive = false;
            graph.edges.resize_with(graph.states.len(), Vec::new);
            break;
        }
        watch.count();
        let number = graph.edges.len();
        let bytes = graph.states[number].clone();
        let mut edges = Vec::new();
        for step in unpack(setting, &bytes).steps() {
            let mut world = unpack(setting, &bytes);
            let (serves, is_pass) = served(&world, step);
            world.step(step)?;
            let state = stored(&mut world);
            let next = u32::try_from(graph.states.len()).unwrap_or(u32::MAX);
            let to = *known.entry(state.clone()).or_insert(next);
            if to == next {
                graph.states.push(state);
                graph.from.push(Some((number as u32, step)));
            }
            edges.push(Edge { to, step, serves, is_pass });
        }
        graph.edges.push(edges);
    }
    Ok(graph)
}

fn served<S: Subject>(world: &World<'_, S>, step: Step) -> (Option<u8>, bool) {
    match step {
        Step::Poll(executor) => (Some(executor), false),
        Step::Pass(number) => (world.setting.subject.asker(&world.flight[usize::from(number)]), true),
        _ => (None, false),
    }
}

/// The strongly connected components of these states that have an internal step, by Tarjan's algorithm.
fn parts(graph: &Graph, inside: &[bool]) -> Vec<Vec<u32>> {
    const NONE: u32 = u32::MAX;
    let count = graph.states.len();
    let (mut index, mut low, mut on) = (vec![NONE; count], vec![0; count], vec![false; count]);
    let (mut stack, mut next, mut parts) = (Vec::new(), 0, Vec::new());
    for root in 0..count as u32 {
        if index[root as usize] != NONE || !inside[root as usize] {
            continue;
        }
        let mut calls = vec![(root, 0)];
        while let Some((state, edge)) = calls.pop() {
            let at = state as usize;
            if edge == 0 {
                (index[at], low[at], on[at]) = (next, next, true);
                next += 1;
                stack.push(state);
            } else {
                // The state after the last step has been visited.
                low[at] = low[at].min(low[graph.edges[at][edge - 1].to as usize]);
            }
            let rest = graph.edges[at].iter().enumerate().skip(edge);
            let mut called = false;
            for (number, &Edge { to, .. }) in rest.filter(|(_, edge)| inside[edge.to as usize]) {
                if index[to as usize] == NONE {
                    calls.extend([(state, number + 1), (to, 0)]);
                    called = true;
                    break;
                } else if on[to as usize] {
                    low[at] = low[at].min(index[to as usize]);
                }
            }
            if called || low[at] != index[at] {
                continue;
            }
            let start = stack.iter().rposition(|&other| other == state).unwrap_or(0);
            let part = stack.split_off(start);
            part.iter().for_each(|&state| on[state as usize] = false);
            if part.len() > 1 || graph.edges[at].iter().any(|edge| edge.to == state) {
                parts.push(part);
            }
        }
    }
    parts
}

/// States are numbered in the order of discovery, so the first is the least deep.
fn first(part: &[u32]) -> u32 {
    part.iter().copied().min().unwrap_or(0)
}

fn depth(graph: &Graph, mut state: u32) -> usize {
    let mut depth = 0;
    while let Some((before, _)) = graph.from[state as usize] {
        (state, depth) = (before, depth + 1);
    }
    depth
}

/// Maximum number of consecutive passes; `None` if they form a cycle.
fn longest(graph: &Graph) -> Option<usize> {
    let count = graph.states.len();
    let passes = |state: usize| graph.edges[state].iter().filter(|edge| edge.is_pass);
    let mut before = vec![0_u32; count];
    (0..count).flat_map(passes).for_each(|edge| before[edge.to as usize] += 1);
    let mut ready: Vec<usize> = (0..count).filter(|&state| before[state] == 0).collect();
    let (mut length, mut done) = (vec![0; count], 0);
    while let Some(state) = ready.pop() {
        done += 1;
        for edge in passes(state) {
            let to = edge.to as usize;
            length[to] = length[to].max(length[state] + 1);
            before[to] -= 1;
            if before[to] == 0 {
                ready.push(to);
            }
        }
    }
    (done == count).then(|| length.into_iter().max().unwrap_or(0))
}

/// A strongly connected component, and its properties.
struct Part<'a> {
    states: &'a [u32],
    executors: Vec<u8>,
    /// Every executor is served in it, and no client has anything to send or in flight.
    is_fair: bool,
    /// The switch has a task that an executor may run.
    is_open: bool,
}

impl<'a> Part<'a> {
    fn of<S: Subject>(setting: &Setting<S>, graph: &Graph, states: &'a [u32]) -> Self {
        let executors: Vec<u8> = (0..setting.instance.executors.len() as u8).collect();
        let inside: std::collections::HashSet<u32> = states.iter().copied().collect();
        let edges = states.iter().flat_map(|&state| &graph.edges[state as usize]).filter(|e| inside.contains(&e.to));
        let mut served: Vec<u8> = edges.filter_map(|edge| edge.serves).collect();
        served.sort_unstable();
        served.dedup();
        let worlds = || states.iter().map(|&state| unpack(setting, &graph.states[state as usize]));
        let idle = |world: &World<'_, S>| {
            let quiet = world.clients.iter().all(|client| client.todo.is_empty());
            quiet && world.flight.iter().all(|packet| setting.subject.asker(packet).is_some())
        };
        let runs =
            |tid: usize| setting.instance.executors.iter().any(|(has, _)| setting.tasks[tid].resources & !has == 0);
        let open = |world: World<'_, S>| {
            let accepted = |fate: &Fate| matches!(fate, Fate::Accepted { .. });
            world.fates.iter().enumerate().any(|(tid, fate)| accepted(fate) && runs(tid))
        };
        Self {
            states,
            is_fair: served == executors && worlds().all(|world| idle(&world)),
            executors,
            is_open: worlds().next().is_some_and(open),
        }
    }

    /// Steps into it, and a cycle within it that serves every executor.
    fn way<S: Subject>(&self, setting: &Setting<S>, graph: &Graph) -> Way {
        let begin = first(self.states);
        let (mut steps, mut state) = (Vec::new(), begin);
        while let Some((before, step)) = graph.from[state as usize] {
            steps.push((before, step));
            state = before;
        }
        steps.reverse();
        let (mut turn, mut at, mut left) = (Vec::new(), begin, self.executors.clone());
        while !left.is_empty() {
            let found = self.walk(graph, at, |edge| edge.serves.is_some_and(|executor| left.contains(&executor)));
            for (state, edge) in found {
                left.retain(|&executor| edge.serves != Some(executor));
                turn.push((state, edge.step));
                at = edge.to;
            }
        }
        if at != begin {
            let back = self.walk(graph, at, |edge| edge.to == begin);
            turn.extend(back.into_iter().map(|(state, edge)| (state, edge.step)));
        }
        let mut text = String::new();
        for (number, &(state, step)) in (1..).zip(&steps) {
            text += &format!("{number:>4}  {}", told(setting, graph, state, step));
        }
        text += "      for ever:\n";
        for &(state, step) in &turn {
            text += &format!("   …  {}", told(setting, graph, state, step));
        }
        Way { steps: steps.len(), turn: turn.len(), transcript: text }
    }

    /// The shortest path within it to a `wanted` step.
    fn walk(&self, graph: &Graph, from: u32, wanted: impl Fn(&Edge) -> bool) -> Vec<(u32, Edge)> {
        let inside: std::collections::HashSet<u32> = self.states.iter().copied().collect();
        let (mut before, mut queue) = (HashMap::new(), VecDeque::from([from]));
        while let Some(state) = queue.pop_front() {
            for edge in graph.edges[state as usize].iter().filter(|edge| inside.contains(&edge.to)) {
                if wanted(edge) {
                    let mut way = vec![(state, *edge)];
                    while let Some(&last) = before.get(&way[way.len() - 1].0).filter(|_| way[way.len() - 1].0 != from) {
                        way.push(last);
                    }
                    way.reverse();
                    return way;
                }
                if edge.to != from && !before.contains_key(&edge.to) {
                    before.insert(edge.to, (state, *edge));
                    queue.push_back(edge.to);
                }
            }
        }
        Vec::new()
    }
}

fn told<S: Subject>(setting: &Setting<S>, graph: &Graph, state: u32, step: Step) -> String {
    let mut world = unpack(setting, &graph.states[state as usize]);
    world.log = Some(String::new());
    let _ = world.step(step);
    world.log.unwrap_or_default()
}

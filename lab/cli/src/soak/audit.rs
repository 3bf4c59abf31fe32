//! What must hold at rest: all tasks have ended, counters add up, memory has not grown.

use super::cluster::Cluster;
use super::findings::Findings;
use super::gauges::{BpfObject, Gauges};
use super::ledger::Totals;
use anyhow::{Context, Result};
use midflight_control::Snapshot;
use midflight_host::Client;
use midflight_terminal::envelope::Measure;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Timeout for the cluster to come to rest, including the tasks of killed clients.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long counters that are read one after the other may disagree.
const AGREE_WITHIN: Duration = Duration::from_secs(10);
/// Drop reasons of malformed datagrams, which no process of a soak sends.
const MALFORMED: [&str; 9] = [
    "truncated",
    "trailing",
    "bad_magic",
    "bad_version",
    "unknown_operation",
    "not_for_switch",
    "bad_count",
    "bad_priority",
    "bad_argument",
];
#[derive(Debug)]
pub(super) struct Rest {
    began: Instant,
}

impl Rest {
    pub(super) fn new() -> Self {
        Self { began: Instant::now() }
    }

    pub(super) fn is_reached(&self, cluster: &Cluster<'_>, open: u64) -> Result<bool> {
        if open > 0 {
            return Ok(false);
        }
        let snapshot = cluster.snapshot()?;
        Ok(cluster.is_complete(&snapshot) && snapshot.program.busy == 0 && queued(&snapshot) == 0)
    }

    pub(super) fn takes_too_long(&self) -> bool {
        self.began.elapsed() > PATIENCE
    }

    /// Empty if all is at rest.
    pub(super) fn why(&self, cluster: &Cluster<'_>, totals: &Totals) -> Result<String> {
        let snapshot = cluster.snapshot()?;
        Ok(format!(
            "no rest after {PATIENCE:?}: {} tasks have not ended; the switch has {} queued, {} busy slots, {} slots; all \
             executors and no other clients are there: {}",
            totals.open,
            queued(&snapshot),
            snapshot.program.busy,
            snapshot.program.slots,
            cluster.is_complete(&snapshot)
        ))
    }
}

fn queued(snapshot: &Snapshot) -> u64 {
    snapshot.program.queued.iter().map(|&tasks| u64::from(tasks)).sum()
}

const WATCHED: [&str; 3] = ["client", "executor", "switch"];

#[derive(Debug)]
pub(super) struct Audit {
    findings: Arc<Findings>,
    rests: u64,
    /// Gauges at the first rest, and at the last.
    first: BTreeMap<&'static str, Gauges>,
    last: BTreeMap<&'static str, Gauges>,
    /// Programs, maps and links at the first rest.
    objects: Option<[usize; 3]>,
}

impl Audit {
    pub(super) fn new(findings: Arc<Findings>) -> Self {
        Self { findings, rests: 0, first: BTreeMap::new(), last: BTreeMap::new(), objects: None }
    }

    pub(super) fn rests(&self) -> u64 {
        self.rests
    }

    pub(super) fn at_rest(&mut self, cluster: &mut Cluster<'_>, clients: &[Arc<Client>]) -> Result<()> {
        self.rests += 1;
        for client in clients {
            let wrong = of_client(client);
            wrong.into_iter().for_each(|what| self.findings.add(what));
        }
        let deadline = Instant::now() + AGREE_WITHIN;
        let mut wrong = of_switch(&cluster.snapshot()?);
        while !wrong.is_empty() && Instant::now() < deadline {
            // Parked executors keep repeating packets, and counters of different processes are not read at the same moment.
            std::thread::sleep(Duration::from_millis(20));
            wrong = of_switch(&cluster.snapshot()?);
        }
        wrong.into_iter().for_each(|what| self.findings.add(what));
        self.gauges(cluster)
    }

    fn gauges(&mut self, cluster: &mut Cluster<'_>) -> Result<()> {
        let processes = [Some(std::process::id()), cluster.executor_id(), cluster.switch_id()];
        for (who, process) in WATCHED.into_iter().zip(processes) {
            let process = process.with_context(|| format!("there is no {who}"))?;
            let gauges = Gauges::of(process)?;
            if let Some(grown) = self.first.get(who).and_then(|first| gauges.grown_since(first)) {
                self.findings.add(format!("the {who} that stays: {grown}"));
            }
            self.first.entry(who).or_insert(gauges);
            self.last.insert(who, gauges);
        }
        let mut objects = [0; 3];
        for object in cluster.bpf_objects()? {
            objects[match object {
                BpfObject::Program(_) => 0,
                BpfObject::Map(_) => 1,
                BpfObject::Link(_) => 2,
            }] += 1;
        }
        let first = *self.objects.get_or_insert(objects);
        if objects != first {
            self.findings.add(format!("the switch has {objects:?} BPF programs, maps and links, and had {first:?}"));
        }
        Ok(())
    }

    pub(super) fn measures(&self) -> Vec<Measure> {
        let mut measures = Vec::new();
        for who in WATCHED {
            if let (Some(first), Some(last)) = (self.first.get(who), self.last.get(who)) {
                measures.push(Measure::count(&format!("soak.{who}_rss_first_kib"), first.rss_kib, "KiB"));
                measures.push(Measure::count(&format!("soak.{who}_rss_last_kib"), last.rss_kib, "KiB"));
            }
        }
        let [programs, maps, links] = self.objects.unwrap_or_default().map(|count| count as u64);
        for (name, count) in [("programs", programs), ("maps", maps), ("links", links)] {
            measures.push(Measure::count(&format!("soak.bpf_{name}"), count, name));
        }
        measures
    }
}

/// T1 and T9, by the client's counters.
fn of_client(client: &Client) -> Option<String> {
    let c = client.counts().protocol;
    let (ended, open) = (c.completed + c.cancelled + c.lost, client.open());
    (c.submitted != ended || open > 0).then(|| {
        format!("a client counts {} submitted and {ended} ended ({} lost), with {open} open", c.submitted, c.lost)
    })
}

/// Counters that disagree in a switch without tasks.
fn of_switch(s: &Snapshot) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut must = |so: bool, what: &dyn Fn() -> String| {
        if !so {
            wrong.push(what());
        }
    };
    let (p, queued) = (&s.program, queued(s));
    let t = &p.tasks;
    must(t.submitted == t.completed + t.cancelled + t.dropped + t.purged + u64::from(p.busy) + queued, &|| {
        format!("the core lost count of tasks (T1): {t:?}, {} busy, {queued} queued", p.busy)
    });
    let again = t.expired + t.returned;
    must(t.assigned == t.completed + u64::from(p.busy) + again, &|| {
        format!("the core lost count of assignments: {t:?}, {} busy", p.busy)
    });
    must(p.parked + p.busy <= p.slots, &|| format!("{} slots are parked, {} busy, of {}", p.parked, p.busy, p.slots));
    for name in MALFORMED {
        must(s.drops.get(name) == Some(&0), &|| format!("drops by {name}: {:?}", s.drops.get(name)));
    }
    let (packets, shell) = (s.packets.values().sum::<u64>(), |name: &str| s.shell.get(name).copied().unwrap_or(0));
    let given = match s.engine.kind.as_str() {
        "kernel" => shell("xdp_taken") + shell("tc_taken") + shell("called"),
        _ => shell("received"),
    };
    must(packets == given, &|| format!("the shells gave {given} datagrams to the core, which counts {packets}"));
    must(shell("asserted") == 0, &|| format!("the shells count {} asserted", shell("asserted")));
    // While the process is dead or starved, nothing empties the ring; responses without room in it are requested again.
    let (left, lost) = (shell("handed_over"), shell("hand_over_failed"));
    must(lost <= left, &|| format!("of {} answers left to the process, {lost} found no room", left + lost));
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_control::{EngineStatus, Surroundings, TasksStatus};
    use midflight_dataplane::{Tasks, TasksConfig};

    /// A switch that served ten tasks and is at rest.
    fn served() -> Snapshot {
        let stats = Tasks::new(&TasksConfig::default(), 1, 0).unwrap().stats();
        let surroundings = Surroundings {
            listen: ([127, 0, 0, 1], 7).into(),
            engine: EngineStatus::in_process("user"),
            epoch: 1,
            uptime_ms: 1,
            shell: BTreeMap::new(),
        };
        let mut s = Snapshot::new(surroundings, &stats, TasksStatus::new(&stats, 8));
        let t = &mut s.program.tasks;
        (t.submitted, t.assigned, t.completed, t.cancelled, t.expired) = (10, 10, 8, 2, 2);
        (s.program.slots, s.program.parked) = (4, 4);
        s.packets.insert("submit".into(), 7);
        s.shell.insert("received".into(), 7);
        s
    }

    #[test]
    fn t1_a_switch_whose_counters_disagree_is_found_out() {
        assert_eq!(of_switch(&served()), Vec::<String>::new());
        type Tamper = fn(&mut Snapshot);
        let tampered: [(Tamper, &str); 6] = [
            (|s| s.program.tasks.completed -= 1, "lost count of tasks (T1)"),
            (|s| s.program.tasks.expired += 1, "lost count of assignments"),
            (|s| s.program.parked = 5, "5 slots are parked, 0 busy, of 4"),
            (|s| *s.drops.get_mut("bad_magic").unwrap() = 3, "drops by bad_magic: Some(3)"),
            (|s| *s.packets.get_mut("submit").unwrap() = 6, "gave 7 datagrams to the core, which counts 6"),
            (|s| s.shell.extend([("asserted".to_owned(), 1)]), "the shells count 1 asserted"),
        ];
        for (tamper, part) in tampered {
            let mut s = served();
            tamper(&mut s);
            let wrong = of_switch(&s);
            assert!(wrong.iter().any(|what| what.contains(part)), "{part}: {wrong:?}");
        }
    }

    #[test]
    fn drops_are_named_as_the_core_names_them() {
        assert!(MALFORMED.iter().all(|&name| served().drops.contains_key(name)));
    }
}

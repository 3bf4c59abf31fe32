//! A store of three replicas, as processes with a configuration file.

use super::{Directory, Running, free_address, midflight, run, wait_until};
use std::net::SocketAddr;
use std::process::Command;

pub(crate) struct Store {
    pub directory: Directory,
    pub config: String,
    pub switches: Vec<Option<Running>>,
    pub replicas: Vec<Option<Running>>,
    /// Addresses of the switches for clients.
    pub addresses: Vec<SocketAddr>,
}

impl Store {
    /// Starts all processes, with one switch.
    pub(crate) fn start(name: &str) -> Self {
        let mut store = Self::new(name, 1);
        store.start_all();
        store
    }

    /// Writes the configuration only. Switches and replicas count from 1.
    pub(crate) fn new(name: &str, switches: usize) -> Self {
        let directory = Directory::new(name);
        let addresses: Vec<_> = (0..switches).map(|_| free_address()).collect();
        let named: Vec<_> = addresses.iter().map(|address| format!("\"{address}\"")).collect();
        let replica = |id| {
            let address = free_address();
            let links = SocketAddr::new(address.ip(), address.port() + 1);
            format!("  {{ id = {id}, address = \"{address}\", links = \"{links}\" }},\n")
        };
        let replicas: String = (1..=3).map(replica).collect();
        let text = format!(
            "http = \"\"\n[[store.set]]\nnumber = 1\ncluster = 42\nswitches = [{}]\nreplicas = [\n{replicas}]\n",
            named.join(", ")
        );
        let config = directory.write("store.toml", &text);
        let switches = (0..switches).map(|_| None).collect();
        Self { directory, config, switches, replicas: vec![None, None, None], addresses }
    }

    pub(crate) fn start_all(&mut self) {
        (1..=self.switches.len()).for_each(|number| self.start_switch(number));
        (1..=3).for_each(|id| self.start_replica(id));
    }

    pub(crate) fn start_switch(&mut self, number: usize) {
        let listen = self.addresses[number - 1].to_string();
        self.switches[number - 1] = Some(Running::start(&["switch", "--config", &self.config, "--listen", &listen]));
    }

    pub(crate) fn data(&self, id: usize) -> String {
        self.directory.path(&format!("data-{id}"))
    }

    pub(crate) fn replica(&self, id: usize) -> Command {
        midflight(&["replica", "--config", &self.config, "--id", &id.to_string(), "--data", &self.data(id), "--new"])
    }

    pub(crate) fn start_replica(&mut self, id: usize) {
        self.replicas[id - 1] = Some(Running::spawn(self.replica(id)));
    }

    /// Like a power cut: drop sends SIGKILL.
    pub(crate) fn kill(&mut self, id: usize) {
        self.replicas[id - 1] = None;
    }

    pub(crate) fn kill_switch(&mut self, number: usize) {
        self.switches[number - 1] = None;
    }

    pub(crate) fn cli(&self, args: &[&str]) -> (Option<i32>, String) {
        let said = run(&[&["store", args[0], "--config", &self.config], &args[1..]].concat());
        (said.code, said.stdout)
    }

    /// All replicas must be running.
    pub(crate) fn statuses(&self) -> Vec<serde_json::Value> {
        let (code, text) = self.cli(&["status", "--json"]);
        if code == Some(0) { serde_json::from_str(&text).unwrap() } else { Vec::new() }
    }

    fn led(&self) -> serde_json::Value {
        let mut found = None;
        wait_until("a replica has a session", || {
            found = self.statuses().into_iter().find(|status| !status["session"].is_null());
            found.is_some()
        });
        found.unwrap()
    }

    pub(crate) fn leader(&self) -> usize {
        self.led()["replica"].as_u64().unwrap() as usize
    }

    pub(crate) fn active_switch(&self) -> usize {
        let at: SocketAddr = self.led()["session"]["switch"].as_str().unwrap().parse().unwrap();
        self.addresses.iter().position(|address| *address == at).unwrap() + 1
    }

    /// All replicas run and have applied what the leader has committed by now.
    pub(crate) fn wait_until_whole(&self) {
        let committed = self.led()["committed"].as_u64().unwrap();
        wait_until("all replicas have caught up", || {
            let statuses = self.statuses();
            statuses.len() == 3 && statuses.iter().all(|status| status["applied"].as_u64().unwrap() >= committed)
        });
    }
}

//! The status of an agent in front of a backend.

use crate::load::LoadReport;
use crate::metrics::{ProcessStatus, ShellCounters, counters, gauge, info, numbers};
use prometheus_client::encoding::DescriptorEncoder;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;

/// An agent at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentStatus {
    /// Version of the software.
    pub version: String,
    /// UDP and TCP address where it serves.
    pub listen: SocketAddr,
    /// The operator of its rack; without one it answers direct requests only.
    pub operator: Option<SocketAddr>,
    /// The backend, as it was named.
    pub backend: String,
    /// Why the backend is not reachable; `None` while it is.
    pub backend_is_gone: Option<String>,
    /// Requests that are served concurrently.
    pub slots: u64,
    /// Waiting requests, which are reported to selectors.
    pub queue: u64,
    /// Requests that are being served.
    pub served: u64,
    /// The mean service time of the last requests, in microseconds; `None` before the first answer.
    pub service_time_us: Option<f64>,
    /// Share of the slots in use in the last second, 0 to 1.
    pub utilization: f64,
    /// Requests answered in the last second.
    pub answered_per_s: f64,
    /// Requests refused in the last second.
    pub refused_per_s: f64,
    /// Open streams.
    pub streams: u64,
    /// Outcomes of requests, by name.
    pub counters: ShellCounters,
    /// Counters of socket, streams and threads.
    pub shell: ShellCounters,
}

impl ProcessStatus for AgentStatus {
    const PREFIX: &'static str = "midflight_agent";

    fn shell(&mut self) -> &mut ShellCounters {
        &mut self.shell
    }

    fn encode(&self, e: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let listen = self.listen.to_string();
        let labels = [("version", self.version.as_str()), ("listen", &listen), ("backend", &self.backend)];
        info(e, "about", "The agent", &labels)?;
        counters(e, "events", "What became of requests, by name", "name", &self.counters)?;
        counters(e, "shell", "Counts of its socket, streams and threads, by name", "name", &self.shell)?;
        let all = [
            ("backend_up", "1 while the backend is there", u64::from(self.backend_is_gone.is_none())),
            ("slots", "Requests that are served at once", self.slots),
            ("queue", "Requests that wait", self.queue),
            ("served", "Requests that are being served", self.served),
            ("streams", "Streams that are open", self.streams),
        ];
        numbers(e, all)?;
        let seconds = self.service_time_us.unwrap_or_default() / 1e6;
        gauge(e, "service_time_seconds", "Mean of the last service times; 0 before the first", seconds)?;
        gauge(e, "utilization", "Share of the slots in use in the last second", self.utilization)?;
        gauge(e, "answered_per_second", "Requests answered in the last second", self.answered_per_s)?;
        gauge(e, "refused_per_second", "Requests refused in the last second", self.refused_per_s)
    }

    fn load(&self) -> Option<LoadReport> {
        // Proxies avoid a fully utilised server.
        let is_gone = self.backend_is_gone.is_some();
        Some(LoadReport {
            application_utilization: if is_gone { 1.0 } else { self.utilization },
            rps_fractional: self.answered_per_s,
            eps: self.refused_per_s,
            named_metrics: vec![
                ("queue", self.queue as f64),
                ("service_time_us", self.service_time_us.unwrap_or_default()),
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::AnySnapshot;

    fn status() -> AgentStatus {
        AgentStatus {
            version: "0.1.0".into(),
            listen: "127.0.0.1:7800".parse().unwrap(),
            operator: None,
            backend: "memcached://127.0.0.1:11211".into(),
            backend_is_gone: None,
            slots: 4,
            queue: 2,
            served: 4,
            service_time_us: Some(150.5),
            utilization: 0.75,
            answered_per_s: 1000.0,
            refused_per_s: 1.5,
            streams: 3,
            counters: ShellCounters::from([("backend_gone".into(), 7)]),
            shell: ShellCounters::from([("received".into(), 9)]),
        }
    }

    #[test]
    fn metrics_say_what_the_status_says() {
        let text = status().to_prometheus();
        for line in [
            "midflight_agent_backend_up 1",
            "midflight_agent_queue 2",
            "midflight_agent_utilization 0.75",
            "midflight_agent_events_total{name=\"backend_gone\"} 7",
            "midflight_agent_shell_total{name=\"received\"} 9",
            "midflight_agent_about_info{version=\"0.1.0\",listen=\"127.0.0.1:7800\",backend=\"memcached://127.0.0.1:11211\"} 1",
        ] {
            assert!(text.lines().any(|l| l == line), "no line {line} in\n{text}");
        }
        assert!(text.contains("midflight_agent_service_time_seconds 0.0001505"), "{text}");
    }

    #[test]
    fn promtool_takes_the_metrics() {
        crate::http::tests::promtool::assert_promtool_takes(&status());
    }

    #[test]
    fn an_agent_without_its_backend_is_fully_used() {
        assert_eq!(AnySnapshot::load(&status()).unwrap().application_utilization, 0.75);
        let without = AgentStatus { backend_is_gone: Some("connection refused".into()), ..status() };
        assert_eq!(AnySnapshot::load(&without).unwrap().application_utilization, 1.0);
    }
}

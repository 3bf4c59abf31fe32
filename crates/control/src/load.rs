//! Load reports in ORCA's format (Open Request Cost Aggregation), which Envoy and gRPC read: a header of an HTTP response.

use std::fmt::Write as _;

pub(crate) const HEADER: &str = "endpoint-load-metrics";
/// The header by which a client asks for the format: `TEXT` (default) or `JSON`.
pub(crate) const ASKED_FORMAT: &str = "endpoint-load-metrics-format";

/// The load of a server. The fields are those of `xds.data.orca.v3.OrcaLoadReport`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadReport {
    /// Share of its capacity in use; 1 is all of it.
    pub application_utilization: f64,
    /// Requests answered per second.
    pub rps_fractional: f64,
    /// Requests refused per second.
    pub eps: f64,
    /// Other metrics, by name.
    pub named_metrics: Vec<(&'static str, f64)>,
}

impl LoadReport {
    fn fields(&self) -> [(&'static str, f64); 3] {
        [
            ("application_utilization", self.application_utilization),
            ("rps_fractional", self.rps_fractional),
            ("eps", self.eps),
        ]
    }

    /// As names and numbers.
    #[must_use]
    pub fn to_text(&self) -> String {
        let fields = self.fields().map(|(name, value)| format!("{name}={value}"));
        let named = self.named_metrics.iter().map(|(name, value)| format!("named_metrics.{name}={value}"));
        format!("TEXT {}", fields.into_iter().chain(named).collect::<Vec<_>>().join(", "))
    }

    /// As JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = String::from("JSON {");
        for (name, value) in self.fields() {
            // Writing to a String cannot fail.
            let _ = write!(text, "\"{name}\": {value}, ");
        }
        let named = self.named_metrics.iter().map(|(name, value)| format!("\"{name}\": {value}"));
        let _ = write!(text, "\"named_metrics\": {{{}}}}}", named.collect::<Vec<_>>().join(", "));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_say_the_same() {
        let report = LoadReport {
            application_utilization: 0.25,
            rps_fractional: 1200.5,
            eps: 0.0,
            named_metrics: vec![("queue", 3.0), ("service_time_us", 180.5)],
        };
        assert_eq!(
            report.to_text(),
            "TEXT application_utilization=0.25, rps_fractional=1200.5, eps=0, named_metrics.queue=3, \
             named_metrics.service_time_us=180.5"
        );
        let json: serde_json::Value = serde_json::from_str(report.to_json().strip_prefix("JSON ").unwrap()).unwrap();
        let same = serde_json::json!({
            "application_utilization": 0.25, "rps_fractional": 1200.5, "eps": 0,
            "named_metrics": {"queue": 3, "service_time_us": 180.5}
        });
        assert_eq!(json, same);
    }
}

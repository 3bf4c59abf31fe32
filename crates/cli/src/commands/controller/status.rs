//! `midflight controller status`: what a controller knows, for people and scripts.

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use midflight_control::replicas::ControllerSnapshot;
use midflight_terminal::{stdout, switches};
use std::fmt::Write;
use std::process::ExitCode;

const EXAMPLES: &str = "\
EXAMPLES
  midflight controller status
  midflight controller status --http 10.0.0.250:7790
  midflight controller status --json | jq .rsnodes

EXIT CODES
  0 shown, 1 no answer, 2 wrong usage";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// HTTP address of the controller
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7790")]
    http: String,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(super) fn run(&self) -> Result<ExitCode> {
        let text = switches::status_of("controller", "midflight controller", &self.http)?;
        if self.json {
            stdout::print(&format!("{text}\n"))?;
            return Ok(ExitCode::SUCCESS);
        }
        let snapshot: ControllerSnapshot = serde_json::from_str(&text)
            .with_context(|| format!("{} is not a controller of this version", self.http))?;
        stdout::print(&for_people(&snapshot))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn for_people(s: &ControllerSnapshot) -> String {
    let mut text = String::new();
    let term = if s.term == 0 { String::new() } else { format!(", term {}", s.term) };
    let deployed = if s.is_deployed { "deployed" } else { "not deployed yet" };
    let plan = s.plan.as_ref().map_or_else(
        || "none yet: it needs traffic to plan for".into(),
        |plan| {
            format!(
                "{} RSNodes ({} at least), {} groups degraded, {} in {} ms, {deployed}",
                plan.rsnodes, plan.bound, plan.degraded, plan.method, plan.took_ms
            )
        },
    );
    // Writing to a String cannot fail.
    let _ = writeln!(text, "controller {}{term}, version {}\nplan       {plan}\n\noperators", s.role, s.version);
    for operator in &s.operators {
        let state = match (operator.is_connected, operator.is_alive, operator.is_up_to_date) {
            (_, false, _) => "dead",
            (false, ..) => "not connected",
            (.., false) => "getting its rules",
            _ => "up to date",
        };
        let barred = if operator.is_barred { ", in no plan" } else { "" };
        let _ = writeln!(text, "  {:12} {:21} {state}{barred}", operator.switch, operator.address.to_string());
    }
    let _ = writeln!(text, "\nRSNodes");
    for rsnode in s.rsnodes.iter().filter(|rsnode| rsnode.used != "resting") {
        let groups: Vec<_> =
            s.groups.iter().filter(|group| group.label == Some(rsnode.id)).map(|group| group.group.as_str()).collect();
        let switch = rsnode.switch.as_deref().unwrap_or("nobody");
        let _ = writeln!(text, "  {:5} {switch:12} {:10} {}", rsnode.id, rsnode.used, groups.join(" "));
    }
    let degraded: Vec<_> =
        s.groups.iter().filter(|group| group.label.is_none()).map(|group| group.group.as_str()).collect();
    let _ = writeln!(text, "\ndegraded   {}", if degraded.is_empty() { "none".into() } else { degraded.join(" ") });
    text
}

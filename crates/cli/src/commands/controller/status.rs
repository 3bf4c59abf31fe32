//! `midflight controller status`: the state of a controller, as text or JSON.

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use midflight_control::cache::{ControllerSnapshot, OperatorLine};
use midflight_terminal::{stdout, switches, units};
use std::process::ExitCode;
use std::time::Duration;

const EXAMPLES: &str = "\
EXAMPLES
  midflight controller status                           the one at 127.0.0.1:7790
  midflight controller status --http 10.0.0.250:7790    as `controllers` of its configuration says
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
    let is_active = s.role == "active";
    let term = if s.term == 0 { String::new() } else { format!(", term {}", s.term) };
    let mut text = format!("controller {}{term}, version {}\n", s.role, s.version);
    if is_active {
        text += &format!("plan       {}\n", plan(s));
    }
    text += "\noperators\n";
    for operator in &s.operators {
        text +=
            &format!("  {:12} {:21} {}\n", operator.switch, operator.address.to_string(), state(operator, is_active));
    }
    // A standby does not know the rules.
    if is_active { text + &rsnodes(s) } else { text }
}

fn plan(s: &ControllerSnapshot) -> String {
    let deployed = if s.is_deployed { "deployed" } else { "not deployed yet" };
    s.plan.as_ref().map_or_else(
        || "none taken yet: it needs traffic to plan for".into(),
        |plan| {
            let took = match plan.took_ms {
                0 => "less than 1 ms".into(),
                ms => units::duration(Duration::from_millis(ms)),
            };
            format!(
                "{} RSNodes ({} at least), {} groups degraded, {} in {took}, {deployed}",
                plan.rsnodes, plan.bound, plan.degraded, plan.method
            )
        },
    )
}

fn state(operator: &OperatorLine, is_active: bool) -> String {
    let state = match (operator.is_connected, operator.is_alive, operator.is_up_to_date) {
        (false, ..) => "not connected",
        (_, false, _) => "dead",
        _ if !is_active => "alive",
        (.., false) => "getting its rules",
        _ => "up to date",
    };
    let barred = if operator.is_barred { ", in no plan" } else { "" };
    let refused = match operator.refused {
        0 => String::new(),
        refused => format!(", refuses {refused} orders (see the log)"),
    };
    format!("{state}{barred}{refused}")
}

/// RSNodes with their groups, and groups without an RSNode.
fn rsnodes(s: &ControllerSnapshot) -> String {
    let of = |label: Option<u16>| {
        let groups = s.groups.iter().filter(|group| group.label == label).map(|group| group.group.as_str());
        groups.collect::<Vec<_>>().join(" ")
    };
    let mut text = String::from("\nRSNodes\n");
    for rsnode in s.rsnodes.iter().filter(|rsnode| rsnode.used != "quarantined") {
        let switch = rsnode.switch.as_deref().unwrap_or("nobody");
        text += &format!("  {:5} {switch:12} {:10} {}\n", rsnode.id, rsnode.used, of(Some(rsnode.id)));
    }
    let degraded = of(None);
    text + &format!("\ndegraded   {}\n", if degraded.is_empty() { "none" } else { &degraded })
}

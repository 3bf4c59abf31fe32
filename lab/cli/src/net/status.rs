use super::{count_of_hosts, lab_error};
use anyhow::Result;
use clap::Args as ClapArgs;
use midflight_net::{HOST_INTERFACE, Lab, LabError, Place, SWITCH_IPV4, SWITCH_IPV6};
use midflight_terminal::stdout;
use serde_json::{Value, json};
use std::fmt::Write;
use std::process::ExitCode;

const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab net status
  midflight-lab net status --name large
  midflight-lab net status --json | jq -r '.labs[].hosts[].ipv4'

It needs no root.

EXIT CODES
  0 shown, 1 failed (no lab of that name), 2 wrong usage";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Only the lab of this name; default: all
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let labs = match &args.name {
        Some(name) => vec![(name.clone(), Some(Lab::open(name).map_err(lab_error)?))],
        None => all().map_err(lab_error)?,
    };
    if args.json {
        let labs: Vec<_> = labs.iter().map(|(name, lab)| for_scripts(name, lab.as_ref())).collect();
        stdout::print(&format!("{}\n", json!({ "labs": labs })))?;
    } else if labs.is_empty() {
        stdout::print("no lab is up: `midflight-lab net up` sets one up\n")?;
    } else {
        let labs: Vec<_> = labs.iter().map(|(name, lab)| for_people(name, lab.as_ref())).collect();
        stdout::print(&labs.join("\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// `None` for incomplete labs.
fn all() -> Result<Vec<(String, Option<Lab>)>, LabError> {
    let mut labs = Vec::new();
    for name in Lab::names()? {
        match Lab::open(&name) {
            Ok(lab) => labs.push((name, Some(lab))),
            Err(LabError::Incomplete(_)) => labs.push((name, None)),
            Err(LabError::NotFound(_)) => {} // removed concurrently
            Err(error) => return Err(error),
        }
    }
    Ok(labs)
}

fn for_scripts(name: &str, lab: Option<&Lab>) -> Value {
    let Some(lab) = lab else { return json!({ "name": name, "complete": false }) };
    let racks = lab.racks().iter().zip(0..).map(|(rack, number)| {
        json!({
            "name": rack.name, "netns": rack.netns, "ipv4": rack.ipv4, "ipv6": rack.ipv6,
            "interfaces": lab.interfaces_of(Place::Rack(number))
        })
    });
    let hosts = lab.hosts().iter().map(|host| {
        json!({
            "name": host.name, "netns": host.netns, "ipv4": host.ipv4, "ipv6": host.ipv6, "interface": HOST_INTERFACE,
            "above": host.above.to_string()
        })
    });
    let switch = json!({
        "netns": lab.switch_netns(), "ipv4": SWITCH_IPV4, "ipv6": SWITCH_IPV6, "interfaces": lab.interfaces()
    });
    json!({
        "name": name, "complete": true, "loss": lab.loss().fraction(), "xdp": lab.xdp(), "switch": switch,
        "racks": racks.collect::<Vec<_>>(), "hosts": hosts.collect::<Vec<_>>()
    })
}

fn for_people(name: &str, lab: Option<&Lab>) -> String {
    let Some(lab) = lab else {
        return format!("lab {name} is not complete: being set up, or cut off; midflight-lab net down --name {name}\n");
    };
    let mut text = format!("lab {name}: {}, {} loss\n", count_of_hosts(lab), lab.loss());
    let width = lab.switch_netns().len();
    let mut row = |place: &str, netns: &str, ipv4: &str, ipv6: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {place:7} {netns:width$}  {ipv4:12} {ipv6}");
    };
    row("switch", lab.switch_netns(), &SWITCH_IPV4.to_string(), &SWITCH_IPV6.to_string());
    for host in lab.racks().iter().chain(lab.hosts()) {
        row(&host.name, &host.netns, &host.ipv4.to_string(), &host.ipv6.to_string());
    }
    text
}

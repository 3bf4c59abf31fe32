use super::{DEFAULT_NAME, Name, Wanted, count_of_hosts};
use anyhow::Result;
use clap::Args as ClapArgs;
use midflight_control::config::DEFAULT_PORT;
use midflight_net::{Lab, SWITCH_IPV4, SWITCH_IPV6};
use midflight_terminal::signals::end_flag;
use midflight_terminal::stdout;
use std::process::ExitCode;

const EXAMPLES: &str = "\
EXAMPLES
  midflight-lab net up                    a switch and two hosts; the lab is called demo
  midflight-lab net up --hosts 16 --name large
  midflight-lab net up --hosts 6 --racks 2     two racks with a switch and three hosts each
  midflight-lab net up --loss 0.1%        each link loses one packet in a thousand, either way

The namespaces are mf-NAME-switch, mf-NAME-host0, mf-NAME-rack0 and so on, as `ip netns` lists
them. Every host reaches the switch at 10.77.255.1 and fd77::1, and the others through it. Ctrl-C
undoes what has been done; what is killed in the middle is removed by the next `net up` or
`net down`.

EXIT CODES
  0 up, 1 failed (no root, the name is taken), 2 wrong usage, 130 interrupted";

#[derive(ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    name: Name,
    #[command(flatten)]
    wanted: Wanted,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let interrupted = end_flag()?;
    let mut lab = args.wanted.up(args.name.or_default(), &interrupted)?;
    stdout::print(&greeting(&lab))?;
    lab.keep();
    Ok(ExitCode::SUCCESS)
}

fn greeting(lab: &Lab) -> String {
    let (name, hosts) = (lab.name(), lab.hosts().len());
    let of_lab = if name == DEFAULT_NAME { String::new() } else { format!(" --name {name}") };
    let exec = format!("midflight-lab net exec{of_lab}");
    let switch = format!("{SWITCH_IPV4}:{DEFAULT_PORT}");
    let (client, executor) = (&lab.hosts()[0].name, &lab.hosts()[hosts.min(2) - 1].name);
    let hosts = count_of_hosts(lab);
    let loss = if lab.loss().fraction() > 0.0 { format!(", {} loss", lab.loss()) } else { String::new() };
    format!(
        "lab {name}: {hosts}{loss}; the switch is {SWITCH_IPV4} and {SWITCH_IPV6} to all of them. In terminals of their \
         own:\n\n  \
         {exec} switch -- midflight switch --listen {switch}\n  \
         {exec} {executor} -- midflight executor --switch {switch}\n  \
         {exec} {client} -- midflight submit noop -n 100000 --switch {switch}\n\n\
         midflight-lab net down{of_lab} takes it down.\n"
    )
}

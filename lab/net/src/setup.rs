use crate::iproute::{Batch, Tool};
use crate::names::{HOST_INTERFACE, Host, Place, SWITCH_IPV4, SWITCH_IPV6, of_namespace};
use crate::record::{Lock, Record};
use crate::{Lab, LabError, ethtool, loss, netns, processes, xdp};
use rustix::thread::{CapabilitySet, capabilities};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// Lets one command delete all links.
const LINK_GROUP: u32 = 77;

/// Disables duplicate address detection (which makes addresses unusable for a second) and router solicitation.
const QUIET: [(&str, &str); 5] = [
    ("ipv6/conf/all/disable_ipv6", "0"),
    ("ipv6/conf/default/disable_ipv6", "0"),
    ("ipv6/conf/all/accept_dad", "0"),
    ("ipv6/conf/default/accept_dad", "0"),
    ("ipv6/conf/default/accept_ra", "0"),
];
const FORWARD: [(&str, &str); 3] =
    [("ipv4/ip_forward", "1"), ("ipv6/conf/all/forwarding", "1"), ("ipv6/conf/default/forwarding", "1")];

/// Whether this process may set up, enter and take down labs.
///
/// # Errors
/// [`LabError::Privilege`]
pub fn check_privileges() -> Result<(), LabError> {
    let ours = capabilities(None).map_err(LabError::io("read the capabilities of this process"))?.effective;
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    if ours.contains(needed) { Ok(()) } else { Err(LabError::Privilege) }
}

/// Creates namespaces and links. `go_on` may abort between steps. After an error the lab is incomplete.
pub(crate) fn raise(lab: &Lab, lock: &Lock, go_on: &dyn Fn() -> Result<(), LabError>) -> Result<(), LabError> {
    let switches: Vec<&str> =
        std::iter::once(lab.switch_netns()).chain(lab.racks().iter().map(|rack| rack.netns.as_str())).collect();
    add_namespaces(lab, lock)?;
    go_on()?;
    for switch in &switches {
        netns::within(switch, || QUIET.iter().chain(&FORWARD).try_for_each(set))??;
    }
    for host in lab.hosts() {
        go_on()?;
        netns::within(&host.netns, || QUIET.iter().try_for_each(set))??;
    }
    netns::within(lab.switch_netns(), || configure_switch(lock))??;
    add_links(lab, lab.linked(), lock)?;
    for host in lab.linked() {
        go_on()?;
        configure_link(lab, host, lock)?;
    }
    netns::within(lab.switch_netns(), || lead_to_racks(lab, lock))??;
    go_on()
}

pub(crate) fn renew_link(lab: &Lab, host: &Host, lock: &Lock) -> Result<(), LabError> {
    let mut batch = Batch::new(Tool::Ip, "delete a link");
    batch.line(format!("link delete {}", host.name));
    lab.within(host.above, || batch.run(Some(lock.file())))??;
    add_links(lab, std::iter::once(host), lock)?;
    configure_link(lab, host, lock)
}

fn add_namespaces(lab: &Lab, lock: &Lock) -> Result<(), LabError> {
    let mut batch = Batch::new(Tool::Ip, "make network namespaces");
    batch.line(format!("netns add {}", lab.switch_netns()));
    for host in lab.linked() {
        batch.line(format!("netns add {}", host.netns));
    }
    batch.run(Some(lock.file()))
}

fn add_links<'l>(lab: &Lab, hosts: impl Iterator<Item = &'l Host>, lock: &Lock) -> Result<(), LabError> {
    let mut batch = Batch::new(Tool::Ip, "make veth pairs (CONFIG_VETH)");
    for Host { name, netns, above, .. } in hosts {
        let above = lab.netns(*above)?;
        batch.line(format!("link add {name} netns {above} type veth peer name {HOST_INTERFACE} netns {netns}"));
    }
    batch.run(Some(lock.file()))
}

/// Runs in the switch's namespace.
fn configure_switch(lock: &Lock) -> Result<(), LabError> {
    let mut batch = Batch::new(Tool::Ip, "give the switch its addresses");
    batch.line("link set lo up");
    batch.line(format!("address add {SWITCH_IPV4}/32 dev lo"));
    batch.line(format!("address add {SWITCH_IPV6}/128 dev lo nodad"));
    batch.run(Some(lock.file()))
}

/// Runs in the switch's namespace: routes to the racks' hosts.
fn lead_to_racks(lab: &Lab, lock: &Lock) -> Result<(), LabError> {
    let mut batch = Batch::new(Tool::Ip, "make routes to racks");
    for (number, rack) in lab.racks().iter().enumerate() {
        for host in lab.below(Place::Rack(number)) {
            batch.line(format!("route add {}/24 via {}", network_ipv4(host.ipv4), rack.ipv4));
            batch.line(format!("route add {}/64 via {}", network_ipv6(host.ipv6), rack.ipv6));
        }
    }
    batch.run(Some(lock.file()))
}

/// The link carries frames on return.
fn configure_link(lab: &Lab, host: &Host, lock: &Lock) -> Result<(), LabError> {
    lab.within(host.above, || configure_gateway(host, lock))??;
    let is_rack = lab.racks().contains(host);
    netns::within(&host.netns, || configure_host(host, lab.record, is_rack, lock))??;
    if is_rack {
        lab.within(host.above, || ethtool::enable_gro(&host.name))??;
    }
    // An end has carrier only once the other one is up too.
    lab.within(host.above, || ethtool::await_queue(&host.name))??;
    netns::within(&host.netns, || ethtool::await_queue(HOST_INTERFACE))?
}

/// Runs in the namespace of the switch above.
fn configure_gateway(Host { name, gateway_ipv4, gateway_ipv6, .. }: &Host, lock: &Lock) -> Result<(), LabError> {
    let mut batch = Batch::new(Tool::Ip, "give the switch its addresses");
    batch.line(format!("address add {gateway_ipv4}/24 dev {name}"));
    batch.line(format!("address add {gateway_ipv6}/64 dev {name} nodad"));
    batch.line(format!("link set {name} group {LINK_GROUP} up"));
    batch.run(Some(lock.file()))
}

/// Runs in the namespace of the host or of the rack's switch.
fn configure_host(host: &Host, wanted: Record, is_rack: bool, lock: &Lock) -> Result<(), LabError> {
    let mut batch = Batch::new(Tool::Ip, "give a host its addresses");
    batch.line("link set lo up");
    batch.line(format!("address add {}/24 dev {HOST_INTERFACE}", host.ipv4));
    batch.line(format!("address add {}/64 dev {HOST_INTERFACE} nodad", host.ipv6));
    batch.line(format!("link set {HOST_INTERFACE} up"));
    batch.line(format!("route add 0.0.0.0/0 via {}", host.gateway_ipv4));
    batch.line(format!("route add ::/0 via {}", host.gateway_ipv6));
    batch.run(Some(lock.file()))?;
    ethtool::enable_gro(HOST_INTERFACE)?;
    // A rack's switch may need its own program there.
    if wanted.xdp && !is_rack {
        xdp::pass_all()?;
    }
    loss::install(wanted.loss)
}

fn network_ipv4(address: Ipv4Addr) -> Ipv4Addr {
    Ipv4Addr::from_bits(address.to_bits() & !0xff)
}

fn network_ipv6(address: Ipv6Addr) -> Ipv6Addr {
    Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))
}

/// Sets a key in `/proc/sys/net`, which shows each thread its own namespace's settings.
fn set(&(key, value): &(&str, &str)) -> Result<(), LabError> {
    let path = Path::new("/proc/sys/net").join(key);
    std::fs::write(&path, value).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound if key.starts_with("ipv6") => LabError::NoIpv6,
        _ => LabError::io(format!("write {}", path.display()))(error),
    })
}

/// `false` if there was nothing.
pub(crate) fn demolish(lab: &str, lock: &Lock) -> Result<bool, LabError> {
    let namespaces = netns::of(lab)?;
    if namespaces.is_empty() {
        return Ok(false);
    }
    if processes::we_are_inside(&namespaces) {
        return Err(LabError::Inside(lab.to_owned()));
    }
    lock.incomplete()?;
    processes::end_all(&namespaces)?;
    // A pinned program, for example, keeps a namespace alive; delete its links anyway. An error means that there are none, or that the
    // namespace was never completed.
    for switch in namespaces.iter().filter(|namespace| is_of_switch(namespace)) {
        let mut links = Batch::new(Tool::Ip, "remove links");
        links.line(format!("link delete group {LINK_GROUP}"));
        let _ = netns::within(switch, || links.run(Some(lock.file())));
    }
    let mut batch = Batch::forced(Tool::Ip, "remove network namespaces");
    for namespace in &namespaces {
        batch.line(format!("netns delete {namespace}"));
    }
    batch.run(Some(lock.file()))?;
    Ok(true)
}

fn is_of_switch(namespace: &str) -> bool {
    of_namespace(namespace).is_some_and(|(_, place)| !matches!(place, Place::Host(_)))
}

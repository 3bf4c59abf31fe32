//! The datagrams that a transcript's asic engines receive, wait by wait.

use crate::P4Error;
use crate::bmv2::Entered;
use crate::frame::Host;
use midflight_dataplane::TasksConfig;
use midflight_spec::transcript::{AnyEngine, Heard, PollingAsic, TasksVocabulary, run_asic};
use midflight_wire::tasks::{Packet, parse};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

pub(crate) struct Switch {
    epoch: u32,
    /// Room for tasks of each level.
    room: u32,
    slots: BTreeSet<(u32, u32, u32, u16)>,
    /// In order, without those of IPv6, which the program only forwards.
    pub(crate) datagrams: Vec<(Host, Vec<u8>)>,
    /// Number of IPv6 datagrams.
    pub(crate) of_ipv6: u32,
    /// The asic engine's answers to each.
    #[cfg(test)]
    pub(crate) answers: Vec<Vec<Vec<u8>>>,
}

impl Switch {
    /// The controller's entries for this size.
    pub(crate) fn entered(&self, size: u32, slot_cells: u32) -> Entered {
        let slots = self.slots.iter().copied().filter(|&(slot, ..)| slot < slot_cells).collect();
        Entered { epoch: self.epoch, slots, size, room: self.room.min(size), start: 0, slot_cells }
    }
}

pub(crate) fn switches(name: &str, transcript: &str) -> Result<Vec<Switch>, P4Error> {
    let refused = |what: String| P4Error::Transcript { name: name.to_owned(), what };
    let (mut all, mut refusal): (Vec<(u32, u32, Heard)>, _) = (Vec::new(), None);
    let run = run_asic::<TasksVocabulary>(transcript, &mut |config, epoch, secret| -> AnyEngine<TasksVocabulary> {
        let heard = Heard::default();
        let room = config.queue.checked_next_power_of_two().unwrap_or(u32::MAX);
        all.push((epoch, room, heard.clone()));
        let engine = PollingAsic::new(config, epoch, secret).or_else(|error| {
            refusal = Some(error.to_string());
            PollingAsic::new(&TasksConfig::default(), epoch, secret) // not compared: the refusal is returned
        });
        Box::new(engine.expect("a pipeline has room for the default").heard_in(&heard))
    });
    if let Some(what) = refusal {
        return Err(refused(what));
    }
    run.map_err(|error| refused(error.to_string()))?;
    let switch = |(epoch, room, heard): (u32, u32, Heard)| {
        let heard = heard.take();
        let answers = heard.iter().flat_map(|(.., answers)| answers);
        let slots = answers.flat_map(|(to, answer)| registered(*to, answer)).collect();
        #[cfg(test)]
        let answers = {
            let ours = heard.iter().filter(|(from, ..)| host(*from).is_some());
            ours.map(|(.., answers)| answers.iter().map(|(_, bytes)| bytes.clone()).collect()).collect()
        };
        let datagrams: Vec<_> =
            heard.iter().filter_map(|(from, datagram, _)| Some((host(*from)?, datagram.clone()))).collect();
        let of_ipv6 = (heard.len() - datagrams.len()) as u32;
        Switch {
            epoch,
            room,
            slots,
            datagrams,
            of_ipv6,
            #[cfg(test)]
            answers,
        }
    };
    Ok(all.into_iter().map(switch).collect())
}

/// The slots in an answer.
fn registered(to: SocketAddr, answer: &[u8]) -> Vec<(u32, u32, u32, u16)> {
    let (Some(host), Ok(Packet::Registered(_, names))) = (host(to), parse(answer)) else { return Vec::new() };
    names.iter().map(|name| (name.slot.get(), name.generation.get(), host.ip, host.port)).collect()
}

fn host(address: SocketAddr) -> Option<Host> {
    let IpAddr::V4(ip) = address.ip().to_canonical() else { return None };
    let [_, _, high, low] = ip.octets();
    Some(Host { mac: [2, 0, 0, 1, high, low], ip: u32::from(ip), port: address.port() })
}

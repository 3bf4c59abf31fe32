//! The surroundings of the switch under test: ports, addresses, and the markers that show the end of a pass; positions in recirculated
//! packets.

use crate::frame::{CPU, Host, MF, byte, word32};

/// Ports of the switch under test.
pub(crate) const CLIENTS: u16 = 0;
pub(crate) const EXECUTORS: u16 = 1;
pub(crate) const NEIGHBOURS: u16 = 2;
/// MAC and IPv4 address of the switch, and of the next hop to [`NEIGHBOUR`]'s network.
pub(crate) const SWITCH: ([u8; 6], u32) = ([2, 0, 0, 0, 0, 0xFE], 0x0A00_00FE);
pub(crate) const NEIGHBOUR: ([u8; 6], u32) = ([2, 0, 0, 0, 9, 9], 0x0A09_0000);
pub(crate) const UDP_PORT: u16 = 7700;

/// Offset of the header that only recirculated packets have.
pub(crate) const ROUND: usize = MF + 24;
/// Bytes of a record of SUBMIT, and of SUBMIT without records, with its UDP header.
pub(crate) const RECORD: usize = 28;
pub(crate) const SUBMIT: usize = 8 + 56;
pub(crate) const PREFERENCE: usize = 8;

impl Host {
    pub(crate) fn numbered(number: u8) -> Self {
        Self { mac: [2, 0, 0, 0, 1, number], ip: 0x0A00_0000 | u32::from(number), port: 0x1F00 | u16::from(number) }
    }

    pub(crate) fn to_switch(self, datagram: &[u8]) -> Vec<u8> {
        self.to((SWITCH.0, SWITCH.1, UDP_PORT), datagram)
    }
}

/// The destination address of markers for a port.
pub(crate) fn marker_to(port: u16) -> [u8; 6] {
    let [high, low] = port.to_be_bytes();
    [2, 0xFF, 0, 0, high, low]
}

/// A frame that is only forwarded, to a port.
pub(crate) fn marker(port: u16) -> Vec<u8> {
    let mut frame = [&marker_to(port)[..], &[2, 0xFF, 0, 0, 0xFF, 0xFF, 0x88, 0xB5]].concat();
    frame.resize(60, 0);
    frame
}

/// The name of an outgoing frame, for counts.
pub(crate) fn named(port: u16, frame: &[u8]) -> &'static str {
    use midflight_wire::tasks::Operation;
    if port == CPU {
        return "to the controller";
    }
    if port == NEIGHBOURS {
        return "forwarded";
    }
    match Operation::from_number(byte(frame, MF + 3)) {
        Some(Operation::SubmitAck) if word32(frame, MF + 36) != 0 => "SUBMIT_ACK that refuses",
        Some(Operation::SubmitAck) => "SUBMIT_ACK",
        Some(Operation::Assign) => "ASSIGN",
        Some(Operation::NoOp) => "NO_OP",
        Some(Operation::Reset) => "RESET",
        _ => "another",
    }
}

//! Frames: offsets of their parts, and answers to them.

/// As in `p4/target/v1model.p4`.
pub(crate) const RECIRCULATION: u16 = 68;
pub(crate) const CPU: u16 = 192;

/// Offsets of a frame's parts.
pub(crate) const IP: usize = 14;
pub(crate) const UDP: usize = 34;
pub(crate) const MF: usize = 42;

/// Big-endian numbers in a frame; 0 beyond its end.
pub(crate) fn byte(frame: &[u8], at: usize) -> u8 {
    frame.get(at).copied().unwrap_or(0)
}

pub(crate) fn word16(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([byte(frame, at), byte(frame, at + 1)])
}

pub(crate) fn word32(frame: &[u8], at: usize) -> u32 {
    u32::from(word16(frame, at)) << 16 | u32::from(word16(frame, at + 2))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) mac: [u8; 6],
    pub(crate) ip: u32,
    pub(crate) port: u16,
}

impl Host {
    pub(crate) fn to(self, (mac, ip, port): ([u8; 6], u32, u16), datagram: &[u8]) -> Vec<u8> {
        let (length, mut frame) = (datagram.len() as u16 + 8, Vec::with_capacity(MF + datagram.len()));
        frame.extend(mac);
        frame.extend(self.mac);
        frame.extend([0x08, 0x00, 0x45, 0]);
        frame.extend((length + 20).to_be_bytes());
        frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
        frame.extend(self.ip.to_be_bytes());
        frame.extend(ip.to_be_bytes());
        frame.extend(self.port.to_be_bytes());
        frame.extend(port.to_be_bytes());
        frame.extend(length.to_be_bytes());
        frame.extend([0, 0]);
        frame.extend(datagram);
        seal(&mut frame);
        frame
    }
}

pub(crate) fn seal(frame: &mut [u8]) {
    if frame.len() < UDP {
        return;
    }
    frame[IP + 10..IP + 12].fill(0);
    let sum: u32 = (IP..UDP).step_by(2).map(|at| u32::from(word16(frame, at))).sum();
    let sum = (sum >> 16) + (sum & 0xFFFF);
    let sum = !(((sum >> 16) + (sum & 0xFFFF)) as u16);
    frame[IP + 10..IP + 12].copy_from_slice(&sum.to_be_bytes());
}

/// An answer: a datagram back to the sender of the request.
pub(crate) fn answer(question: &[u8], datagram: &[u8]) -> Vec<u8> {
    let host = Host {
        mac: std::array::from_fn(|at| byte(question, at)),
        ip: word32(question, IP + 16),
        port: word16(question, UDP + 2),
    };
    let mac = std::array::from_fn(|at| byte(question, 6 + at));
    let mut frame = host.to((mac, word32(question, IP + 12), word16(question, UDP)), datagram);
    // The other fields stay as they were: the fragment's flags.
    frame[IP + 6..IP + 8].copy_from_slice(&question[IP + 6..IP + 8]);
    seal(&mut frame);
    frame
}

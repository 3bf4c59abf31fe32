//! The papers' testbed: one switch, and machines whose network stacks take time.

use crate::calibration::*;
use midflight_sim::{Hardware, HostConfig, LinkConfig, SwitchConfig, Topology};

pub(crate) fn hardware() -> Hardware {
    let link = LinkConfig { latency: WAY_NS, bits_per_second: LINK_BITS_PER_SECOND };
    let switch = SwitchConfig {
        pass: PASS_NS,
        packets_per_second: SWITCH_PACKETS_PER_SECOND,
        queue: 4_096,
        recirculation: RECIRCULATION_NS,
    };
    Hardware { topology: Topology::Star, link, trunk: link, switch }
}

pub(crate) fn host() -> HostConfig {
    HostConfig {
        lanes: NODE_THREADS,
        send: SEND_NS,
        receive: RECEIVE_NS,
        receive_jitter: RECEIVE_JITTER_NS,
        ..HostConfig::default()
    }
}

//! The survey: traffic groups, RSNodes, and servers of an operator that selects itself, copied in steps.

#[cfg(test)]
use crate::survey::STEP;
use crate::survey::step;
use midflight_endpoint::Nanos;
use midflight_wire::Address;
use midflight_wire::cache::ILLEGAL_RSNODE;
use std::net::SocketAddr;

#[cfg(test)]
pub(super) const LAYOUT: [usize; 4] =
    [STEP, size_of::<SurveyedGroup>(), size_of::<SurveyedRsNode>(), size_of::<SurveyedServer>()];

unsafe extern "C" {
    fn mf_cache_survey_groups(state: *const u8, next: *mut u32, found: *mut SurveyedGroup) -> u32;
    fn mf_cache_survey_rsnodes(state: *const u8, next: *mut u32, found: *mut SurveyedRsNode) -> u32;
    fn mf_cache_survey_servers(state: *const u8, next: *mut u32, found: *mut SurveyedServer) -> u32;
}

/// Used elements of an operator's tables.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Traffic groups.
    pub groups: Vec<SurveyedGroup>,
    /// RSNodes.
    pub rsnodes: Vec<SurveyedRsNode>,
    /// Servers, if the operator selects itself.
    pub servers: Vec<SurveyedServer>,
    table: Table,
    next: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Table {
    #[default]
    Groups,
    RsNodes,
    Servers,
    Done,
}

/// A traffic group: `struct mf_surveyed_group`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct SurveyedGroup {
    /// Answers to its hosts, counted by the monitor.
    pub answers: u64,
    /// Number of the group.
    pub group: u16,
    rsnode: u16,
    reserved: u32,
}

/// An RSNode: `struct mf_surveyed_rsnode`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SurveyedRsNode {
    address: Address,
    /// RSNode id.
    pub id: u16,
    is_here: u16,
}

/// A server, as seen by an operator that selects itself: `struct mf_surveyed_server`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SurveyedServer {
    /// Validity of its statistics, by the operator's clock; 0: it never answered.
    pub known_until_ns: Nanos,
    response: u64,
    service: u64,
    queue: u64,
    address: Address,
    /// Requests neither answered nor expired.
    pub outstanding: u32,
}

impl SurveyedGroup {
    /// For tests: a group with this label; `None`: it is degraded.
    #[must_use]
    pub fn new(group: u16, rsnode: Option<u16>, answers: u64) -> Self {
        Self { answers, group, rsnode: rsnode.unwrap_or(ILLEGAL_RSNODE), reserved: 0 }
    }

    /// The RSNode id of its requests; `None`: it is degraded.
    #[must_use]
    pub fn rsnode(&self) -> Option<u16> {
        (self.rsnode != ILLEGAL_RSNODE).then_some(self.rsnode)
    }
}

impl SurveyedRsNode {
    /// For tests: an RSNode at another operator; `None`: at this one.
    #[must_use]
    pub fn new(id: u16, address: Option<SocketAddr>) -> Self {
        let is_here = u16::from(address.is_none());
        Self { address: address.unwrap_or_else(|| ([0, 0, 0, 0], 0).into()).into(), id, is_here }
    }

    /// Whether it is this operator.
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.is_here != 0
    }

    /// Address of its operator.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address.into()
    }
}

impl SurveyedServer {
    /// Address of the server.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address.into()
    }

    /// C3's averages: response time and service time, both in nanoseconds, and the reported queue. 0: never reported.
    #[must_use]
    pub fn averages(&self) -> [f64; 3] {
        [self.response, self.service, self.queue].map(number)
    }
}

/// A number of `select_number.h`.
fn number(bits: u64) -> f64 {
    const BIAS: i32 = 512;
    f64::from(bits as u32) * 2f64.powi((bits >> 32) as i32 - BIAS)
}

/// Does the next step; `true`: the survey is complete.
///
/// # Safety
/// `state` is an initialised state of an operator.
pub(crate) unsafe fn go_on(state: *const u8, survey: &mut Survey) -> bool {
    let next = &mut survey.next;
    // SAFETY: the caller's; each function fits its structure.
    unsafe {
        match survey.table {
            Table::Groups => step(&mut survey.groups, |found| mf_cache_survey_groups(state, next, found)),
            Table::RsNodes => step(&mut survey.rsnodes, |found| mf_cache_survey_rsnodes(state, next, found)),
            Table::Servers => step(&mut survey.servers, |found| mf_cache_survey_servers(state, next, found)),
            Table::Done => return true,
        }
    }
    if survey.next == 0 {
        survey.table = match survey.table {
            Table::Groups => Table::RsNodes,
            Table::RsNodes => Table::Servers,
            Table::Servers | Table::Done => Table::Done,
        };
    }
    survey.table == Table::Done
}

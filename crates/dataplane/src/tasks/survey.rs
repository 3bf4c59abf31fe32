//! The survey: used elements of a queue's tables, copied in steps.

#[cfg(test)]
use crate::survey::STEP;
use crate::survey::step;
use midflight_endpoint::Nanos;
use midflight_wire::Address;
use std::net::SocketAddr;

/// Most task records that a survey visits; of a longer queue it shows a part.
const RECORDS_MAX: u32 = 131_072;

#[cfg(test)]
pub(super) const LAYOUT: [usize; 4] =
    [STEP, size_of::<SurveyedSlot>(), size_of::<SurveyedClient>(), size_of::<SurveyedTask>()];

unsafe extern "C" {
    fn mf_tasks_survey_slots(state: *const u8, next: *mut u32, found: *mut SurveyedSlot) -> u32;
    fn mf_tasks_survey_clients(state: *const u8, next: *mut u32, found: *mut SurveyedClient) -> u32;
    fn mf_tasks_survey_records(state: *const u8, next: *mut u32, found: *mut SurveyedTask) -> u32;
}

/// Used elements of a queue's tables.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    /// Registered slots.
    pub slots: Vec<SurveyedSlot>,
    /// Known clients.
    pub clients: Vec<SurveyedClient>,
    /// Tasks, queued and assigned.
    pub tasks: Vec<SurveyedTask>,
    /// Whether there are more records than it visits.
    pub is_partial: bool,
    phase: SurveyPhase,
    next: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SurveyPhase {
    #[default]
    Slots,
    Clients,
    Records,
    Done,
}

/// A registered slot: `struct mf_surveyed_slot`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SurveyedSlot {
    executor: u64,
    /// When it was last heard, by the switch's clock.
    pub heard_ns: Nanos,
    assigned_ns: Nanos,
    address: Address,
    state: u8,
    /// Bitmap of its resources.
    pub resources: u8,
    reserved: [u8; 2],
}

/// State of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurveyedState {
    /// Neither a task nor a wait: between two, or expired.
    Free,
    /// Waits for a task.
    Parked,
    /// Has a task, assigned at this time.
    Busy(Nanos),
}

impl SurveyedSlot {
    /// For tests: a slot of this executor.
    #[must_use]
    pub fn new(executor: u64, address: SocketAddr, heard_ns: Nanos, state: SurveyedState) -> Self {
        let (state, assigned_ns) = match state {
            SurveyedState::Free => (1, 0),
            SurveyedState::Parked => (2, 0),
            SurveyedState::Busy(since) => (3, since),
        };
        let (executor, address) = (executor.to_be(), address.into());
        Self { executor, heard_ns, assigned_ns, address, state, resources: 0, reserved: [0; 2] }
    }

    /// Random identity of its executor.
    #[must_use]
    pub fn executor(&self) -> u64 {
        u64::from_be(self.executor)
    }

    /// Address of the executor.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address.into()
    }

    /// State of the slot.
    #[must_use]
    pub fn state(&self) -> SurveyedState {
        match self.state {
            3 => SurveyedState::Busy(self.assigned_ns),
            2 => SurveyedState::Parked,
            _ => SurveyedState::Free,
        }
    }
}

/// A known client: `struct mf_surveyed_client`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SurveyedClient {
    identity: u64,
    /// When it was last heard, by the switch's clock.
    pub heard_ns: Nanos,
    address: Address,
    /// The number by which its tasks refer to it.
    pub number: u32,
    /// Its tasks, queued and assigned.
    pub open: u32,
    /// The user who runs it, as it says.
    pub uid: u32,
}

impl SurveyedClient {
    /// Its random identity.
    #[must_use]
    pub fn identity(&self) -> u64 {
        u64::from_be(self.identity)
    }

    /// Address of the client.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address.into()
    }
}

/// A task: `struct mf_surveyed_task`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SurveyedTask {
    /// When it was accepted, by the switch's clock.
    pub accepted_ns: Nanos,
    /// The number of its client.
    pub client: u32,
    /// Its job, as the client numbers it.
    pub jid: u32,
    is_held: u8,
    /// Priority: 1 is the highest.
    pub level: u8,
    /// Bitmap of the resources that it needs.
    pub resources: u8,
    /// Attempts begun.
    pub attempt: u8,
    reserved: u32,
}

impl SurveyedTask {
    /// Whether a slot has it; otherwise it is queued.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.is_held != 0
    }
}

/// Does the next step; `true`: the survey is complete.
///
/// # Safety
/// `state` is an initialised state of a queue.
pub(crate) unsafe fn go_on(state: *const u8, survey: &mut Survey) -> bool {
    let next = &mut survey.next;
    // SAFETY: the caller's; each function fits its structure.
    unsafe {
        match survey.phase {
            SurveyPhase::Slots => step(&mut survey.slots, |found| mf_tasks_survey_slots(state, next, found)),
            SurveyPhase::Clients => step(&mut survey.clients, |found| mf_tasks_survey_clients(state, next, found)),
            SurveyPhase::Records => step(&mut survey.tasks, |found| mf_tasks_survey_records(state, next, found)),
            SurveyPhase::Done => return true,
        }
    }
    if survey.phase == SurveyPhase::Records && survey.next >= RECORDS_MAX {
        (survey.is_partial, survey.next) = (true, 0);
    }
    if survey.next == 0 {
        survey.phase = match survey.phase {
            SurveyPhase::Slots => SurveyPhase::Clients,
            SurveyPhase::Clients => SurveyPhase::Records,
            SurveyPhase::Records | SurveyPhase::Done => SurveyPhase::Done,
        };
    }
    survey.phase == SurveyPhase::Done
}

//! The soft engine of the tasks program, safe to use.

use crate::Verdict;
use crate::ffi::{
    OUT_MAX, RawConfig, RawDatagram, RawOut, RawTasks, Stats, key_of, mf_tasks_check, mf_tasks_init,
    mf_tasks_owes_several, mf_tasks_packet, mf_tasks_purge, mf_tasks_size, mf_tasks_tick,
};
use crate::memory::Region;
use crate::purge::Purge;
use midflight_wire::Address;
use std::net::SocketAddr;

/// Bounds and times of a queue. Every bound is enforced by telling the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TasksConfig {
    /// Tasks, queued and assigned: 1 to 4 Mi. Default 131,072.
    pub queue: u32,
    /// Executor slots: 1 to 1 Mi. Default 65,536.
    pub slots: u32,
    /// Clients: 1 to 1 Mi. Default 65,536.
    pub clients: u32,
    /// Priority levels: 1 to 8. Default 8.
    pub levels: u32,
    /// Silence after which an assigned task is queued again (T10); a parked slot is taken out after half of it. Default 1 s.
    pub lease_ns: u64,
    /// Silence after which a slot without a task is forgotten. Default 10 s.
    pub slot_idle_ns: u64,
    /// Silence after which a client loses its queued tasks, and without any is forgotten. Default 60 s.
    pub client_idle_ns: u64,
    /// A cookie holds for the rest of so long, and as long again. `slot_idle_ns` and `client_idle_ns` are at least twice as
    /// long: a copy of the packet that made a record cannot make it again. Default 5 s.
    pub cookie_ns: u64,
}

impl Default for TasksConfig {
    fn default() -> Self {
        Self {
            queue: 131_072,
            slots: 65_536,
            clients: 65_536,
            levels: 8,
            lease_ns: 1_000_000_000,
            slot_idle_ns: 10_000_000_000,
            client_idle_ns: 60_000_000_000,
            cookie_ns: 5_000_000_000,
        }
    }
}

impl TasksConfig {
    pub(crate) fn raw(&self) -> RawConfig {
        RawConfig {
            queue: self.queue,
            slots: self.slots,
            clients: self.clients,
            levels: self.levels,
            lease_ns: self.lease_ns,
            slot_idle_ns: self.slot_idle_ns,
            client_idle_ns: self.client_idle_ns,
            cookie_ns: self.cookie_ns,
        }
    }

    /// Bytes of state; 0 where a bound is violated. Pages that are never used cost nothing.
    #[must_use]
    pub fn state_bytes(&self) -> u64 {
        // SAFETY: the pointer is valid for the call.
        unsafe { mf_tasks_size(&self.raw()) }
    }
}

/// A bound of [`TasksConfig`] is violated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigError;

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "queue must be 1 to 4194304, slots and clients 1 to 1048576, levels 1 to 8, no time 0, \
             and slot_idle and client_idle at least twice as long as cookie",
        )
    }
}

impl std::error::Error for ConfigError {}

/// What a call owes to the network. One for the life of a switch: it is large, and calls overwrite it.
pub struct Out(Box<RawOut>);

impl std::fmt::Debug for Out {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Default for Out {
    fn default() -> Self {
        Self::new()
    }
}

impl Out {
    /// Empty.
    #[must_use]
    pub fn new() -> Self {
        // SAFETY: all fields are integers, for which zero is valid.
        Self(unsafe { Box::new_zeroed().assume_init() })
    }

    /// What a call left elsewhere.
    #[cfg(feature = "kernel")]
    pub(crate) fn copy_from(&mut self, other: &RawOut) {
        let count = (other.count as usize).min(OUT_MAX);
        self.0.count = count as u32;
        for (own, others) in self.0.packet.iter_mut().zip(&other.packet[..count]) {
            own.to = others.to;
            own.length = others.length.min(own.data.len() as u32);
            let used = own.length as usize;
            own.data[..used].copy_from_slice(&others.data[..used]);
        }
    }

    /// Owes these datagrams, in the place of those before. Says how many there is no room for: the last ones, and those
    /// that are longer than a packet.
    pub fn replace<'a>(&mut self, datagrams: impl IntoIterator<Item = (SocketAddr, &'a [u8])>) -> usize {
        let (mut count, mut left_out) = (0, 0);
        for (to, bytes) in datagrams {
            match self
                .0
                .packet
                .get_mut(count)
                .and_then(|own| Some((own.data.get_mut(..bytes.len())?, &mut own.to, &mut own.length)))
            {
                Some((data, own_to, length)) => {
                    data.copy_from_slice(bytes);
                    (*own_to, *length) = (to.into(), bytes.len() as u32);
                    count += 1;
                }
                None => left_out += 1,
            }
        }
        self.0.count = count as u32;
        left_out
    }

    /// Nothing is owed.
    pub fn clear(&mut self) {
        self.0.count = 0;
    }

    /// How many datagrams.
    #[must_use]
    pub fn len(&self) -> usize {
        (self.0.count as usize).min(OUT_MAX)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The datagrams in the order in which they are to be sent.
    pub fn iter(&self) -> impl Iterator<Item = (SocketAddr, &[u8])> {
        self.0.packet[..self.len()].iter().map(|p| (p.to.into(), &p.data[..p.length as usize]))
    }
}

fn raw_datagram(from: impl Into<Address>, datagram: &[u8]) -> RawDatagram {
    // Longer than any packet is TRAILING whatever it is exactly, so the cut loses nothing.
    let length = u32::try_from(datagram.len()).unwrap_or(u32::MAX);
    RawDatagram { from: from.into(), length, data: datagram.as_ptr() }
}

/// The cluster's one task queue. Time and randomness are arguments.
#[derive(Debug)]
pub struct Tasks {
    region: Region,
}

impl Tasks {
    /// An empty queue. `epoch` and `secret` are drawn at random by the caller; an epoch of 0 becomes 1.
    ///
    /// # Errors
    /// Where a bound of the configuration is violated.
    pub fn new(config: &TasksConfig, epoch: u32, secret: u128) -> Result<Self, ConfigError> {
        if config.lease_ns == 0 || config.slot_idle_ns == 0 || config.client_idle_ns == 0 {
            return Err(ConfigError);
        }
        let region = Region::zeroed(config.state_bytes()).ok_or(ConfigError)?;
        #[cfg(feature = "mutants")]
        crate::mutants::arm();
        let tasks = Self { region };
        // SAFETY: the region is zeroed, aligned to 64 and as large as this configuration asks.
        unsafe { mf_tasks_init(tasks.raw(), &config.raw(), epoch.max(1), key_of(secret).as_ptr()) };
        Ok(tasks)
    }

    /// Takes one datagram and overwrites `out`. `now_ns` never decreases.
    pub fn packet(&mut self, now_ns: u64, from: impl Into<Address>, datagram: &[u8], out: &mut Out) -> Verdict {
        let datagram = raw_datagram(from, datagram);
        // SAFETY: pointers are valid for the call, the datagram's bytes for its length.
        let verdict = unsafe { mf_tasks_packet(self.raw(), now_ns, &raw const datagram, &raw mut *out.0) };
        Verdict::ALL[verdict as usize]
    }

    /// Whether [`packet`](Self::packet) may owe more than one datagram for this one, or one to somebody else than its sender.
    #[must_use]
    pub fn owes_several(&self, from: impl Into<Address>, datagram: &[u8]) -> bool {
        let datagram = raw_datagram(from, datagram);
        // SAFETY: as in `packet`; it only reads.
        unsafe { mf_tasks_owes_several(self.raw(), &raw const datagram) != 0 }
    }

    /// Looks at the next slots and takes from the silent ones what they hold (T10), then at the next clients and tasks, and
    /// gives up what the silent have left (T14). Returns how many slots it looked at, at most 1,024. Overwrites `out`.
    pub fn tick(&mut self, now_ns: u64, out: &mut Out) -> u32 {
        // SAFETY: pointers are valid for the call.
        unsafe { mf_tasks_tick(self.raw(), now_ns, &raw mut *out.0) }
    }

    /// Takes out the queued tasks that the operator wants to be gone: looks at the next ones, at most 1,024. Whether it has
    /// looked at all.
    pub fn purge(&mut self, purge: &mut Purge) -> bool {
        // SAFETY: pointers are valid for the call.
        unsafe { mf_tasks_purge(self.raw(), purge.raw()) != 0 }
    }

    /// What was counted so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        // SAFETY: the region holds an initialised queue.
        unsafe { Stats::of(self.raw()) }
    }

    /// For tests: walks all structures.
    ///
    /// # Errors
    /// The line of the check in `tasks_check.c` that failed.
    pub fn check(&self) -> Result<(), i32> {
        // SAFETY: reads the region only.
        match unsafe { mf_tasks_check(self.raw()) } {
            0 => Ok(()),
            line => Err(line),
        }
    }

    fn raw(&self) -> *mut RawTasks {
        self.region.start().cast()
    }
}

//! Distances in a fat-tree, in links between switches. Every such link has the same delay and no queue: the paper's network (section V-A)
//! has delays but no bandwidth.

/// `arity` pods of arity/2 racks with arity/2 hosts each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tree {
    half: u32,
}

/// A selector's place, at a switch on its clients' way up to the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Place {
    /// At a rack's switch, or at a client in that rack.
    Rack(u32),
    /// At an aggregation switch, in a pod.
    Aggregation(u32),
    /// At a core switch.
    Core,
}

impl Tree {
    /// `arity` must be even.
    pub(super) fn new(arity: u32) -> Self {
        Self { half: arity / 2 }
    }

    pub(super) fn racks(self) -> u32 {
        2 * self.half * self.half
    }

    pub(super) fn hosts(self) -> u32 {
        self.racks() * self.half
    }

    pub(super) fn rack_of_host(self, host: u32) -> u32 {
        host / self.half
    }

    pub(super) fn pod(self, rack: u32) -> u32 {
        rack / self.half
    }

    /// The highest tier between two racks, as in plans: 0 core, 1 aggregation, 2 rack.
    pub(super) fn tier(self, one: u32, other: u32) -> usize {
        match (one == other, self.pod(one) == self.pod(other)) {
            (true, _) => 2,
            (_, true) => 1,
            _ => 0,
        }
    }

    /// Links between a client's rack and its selector.
    pub(super) fn up(place: Place) -> u32 {
        match place {
            Place::Rack(_) => 0,
            Place::Aggregation(_) => 1,
            Place::Core => 2,
        }
    }

    /// Links between a selector and a server's rack.
    pub(super) fn down(self, place: Place, rack: u32) -> u32 {
        match place {
            Place::Rack(own) => self.between(own, rack),
            Place::Aggregation(pod) if pod == self.pod(rack) => 1,
            // Via the core: an aggregation switch has no link to other pods' aggregation switches.
            Place::Aggregation(_) => 3,
            Place::Core => 2,
        }
    }

    pub(super) fn between(self, one: u32, other: u32) -> u32 {
        2 * (2 - self.tier(one, other) as u32)
    }
}

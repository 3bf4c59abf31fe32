//! How switches are connected, and a datagram's route through them.
//!
//! Each switch determines only the next one, so a program on the path may change a datagram's target: the rest of the
//! route follows from the current switch. Among equally short routes, the two end nodes determine one, the same in both
//! directions.

use crate::NodeId;

/// How switches are connected. Their numbers start at 0 with the rack switches and end with the topmost tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Topology {
    /// All hosts on one switch.
    #[default]
    Star,
    /// A switch in each rack, and one spine above them.
    TwoTiers {
        /// Number of racks.
        racks: u32,
    },
    /// Rack and aggregation switches in pods, and core switches above them ([`Topology::fat_tree`]).
    FatTree {
        /// Half of a switch's ports.
        half: u32,
    },
}

/// A switch's tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Connects hosts (top-of-rack).
    Rack,
    /// Connects the racks of a pod.
    Aggregation,
    /// Connects pods, or the racks of two tiers.
    Core,
}

impl Topology {
    /// A star for one rack, two tiers for more.
    #[must_use]
    pub fn racks(racks: u32) -> Self {
        if racks > 1 { Self::TwoTiers { racks } } else { Self::Star }
    }

    /// A fat-tree of switches with `k` ports (Al-Fares 2008): k pods of k/2 racks and k/2 aggregation switches, k/2
    /// hosts in a rack, k²/4 core switches. The aggregation switches at the same place in their pods share k/2 core
    /// switches.
    ///
    /// # Panics
    /// If `k` is odd, 0, or above 256.
    #[must_use]
    pub fn fat_tree(k: u32) -> Self {
        assert!(
            (2..=256).contains(&k) && k.is_multiple_of(2),
            "a fat-tree's switches have 2 to 256 ports, an even number"
        );
        Self::FatTree { half: k / 2 }
    }

    /// Number of rack switches; these come first.
    #[must_use]
    pub fn rack_switches(self) -> u32 {
        match self {
            Self::Star => 1,
            Self::TwoTiers { racks } => racks,
            Self::FatTree { half } => 2 * half * half,
        }
    }

    /// Number of switches.
    #[must_use]
    pub fn switches(self) -> u32 {
        match self {
            Self::Star => 1,
            Self::TwoTiers { racks } => racks + 1,
            Self::FatTree { half } => 5 * half * half,
        }
    }

    /// The tier of a switch.
    #[must_use]
    pub fn tier(self, switch: u32) -> Tier {
        match self {
            _ if switch < self.rack_switches() => Tier::Rack,
            Self::FatTree { .. } if switch < 2 * self.rack_switches() => Tier::Aggregation,
            _ => Tier::Core,
        }
    }

    /// The pod of a fat-tree's rack or aggregation switch; `None` for a core switch, and in other topologies.
    #[must_use]
    pub fn pod(self, switch: u32) -> Option<u32> {
        let Self::FatTree { half } = self else { return None };
        (self.tier(switch) < Tier::Core).then(|| switch % self.rack_switches() / half)
    }

    pub(super) fn trunks(self) -> u32 {
        match self {
            Self::Star => 0,
            Self::TwoTiers { racks } => racks,
            Self::FatTree { half } => 4 * half * half * half,
        }
    }

    /// Number of the link between two neighbours; `lower` is nearer to the hosts.
    #[inline]
    pub(super) fn trunk(self, lower: u32, upper: u32) -> u32 {
        match self {
            Self::FatTree { half } => lower * half + upper % half,
            _ => lower,
        }
    }

    pub(crate) fn route(self, first: u32, last: u32, ends: (NodeId, NodeId)) -> Vec<u32> {
        let next = |here: &u32| (*here != last).then(|| self.next(*here, last, ends));
        std::iter::successors(Some(first), next).collect()
    }

    #[inline]
    pub(super) fn next(self, here: u32, target: u32, ends: (NodeId, NodeId)) -> u32 {
        match self {
            Self::Star => target,
            Self::TwoTiers { racks } => {
                if here == racks {
                    target
                } else {
                    racks
                }
            }
            Self::FatTree { half } => self.next_in_fat_tree(half, here, target, choice(ends)),
        }
    }

    /// A column is the place of an aggregation switch in its pod, with its core switches. A route changes columns in a
    /// rack, where all of them meet.
    fn next_in_fat_tree(self, half: u32, here: u32, target: u32, choice: u32) -> u32 {
        let racks = self.rack_switches();
        let column = |switch: u32| if switch < 2 * racks { switch % half } else { (switch - 2 * racks) / half };
        let aggregation = |pod: u32, column: u32| racks + pod * half + column;
        let core = |column: u32| 2 * racks + column * half + choice / half % half;
        let (pod, wanted) = (self.pod(here), self.pod(target));
        match (self.tier(here), self.tier(target)) {
            (Tier::Rack, Tier::Rack) => aggregation(here / half, choice % half),
            (Tier::Rack, _) => aggregation(here / half, column(target)),
            (Tier::Aggregation, Tier::Rack) if pod == wanted => target,
            (Tier::Aggregation, Tier::Rack) => core(column(here)),
            (Tier::Aggregation, tier) if column(here) == column(target) => {
                if tier == Tier::Core {
                    target
                } else {
                    core(column(here))
                }
            }
            (Tier::Aggregation, _) => (here - racks) / half * half + choice % half,
            (Tier::Core, _) => aggregation(wanted.unwrap_or(choice % (2 * half)), column(here)),
        }
    }
}

/// Chooses among equally short routes. Neighbouring nodes choose differently, and the order of the ends does not
/// matter.
fn choice((one, other): (NodeId, NodeId)) -> u32 {
    let mixed = (u64::from(one.0) + 1).wrapping_mul(u64::from(other.0) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as u32
}

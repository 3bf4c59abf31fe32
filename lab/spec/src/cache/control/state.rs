//! State of the model: two controllers, two or three operators, messages in flight, and requests under way. Numbers are
//! small, so that states recur.

/// The first operator labels the requests of the one traffic group.
pub(super) const OPERATORS: usize = 3;
pub(super) const IDS: usize = 2;
pub(super) const REQUESTS: usize = 2;
/// The operator whose clients send the requests.
pub(super) const LABELLER: u8 = 0;

/// Keys that an operator may lack, a bit each. This one: the replica groups of its selector.
pub(super) const GROUPS: u8 = 1;
pub(super) const LABEL: u8 = 1 << (1 + IDS);

pub(super) fn key(id: u8) -> u8 {
    1 << (1 + id)
}

/// Authority to give orders, compared by number, then by controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Term {
    pub(super) number: u8,
    pub(super) controller: u8,
}

/// Number of a SET: the controller's inventory count, and SETs since then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Number {
    pub(super) loading: u8,
    pub(super) sequence: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Rule {
    #[default]
    Unknown,
    Serve,
    At(u8),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Operator {
    pub(super) incarnation: u8,
    pub(super) term: Term,
    pub(super) last: Number,
    pub(super) ids: [Rule; IDS],
    pub(super) label: Option<u8>,
    /// The keys of rules set by the term that it follows.
    pub(super) fresh: u8,
    /// Its selector has the replica groups.
    pub(super) grouped: bool,
    /// The greatest term that this incarnation has heard of. Not part of the protocol; invariants compare with it.
    pub(super) heard: Term,
}

impl Operator {
    pub(super) fn rule(&self, id: u8) -> Rule {
        self.ids[usize::from(id)]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.label.is_none() && self.ids == [Rule::Unknown; IDS]
    }
}

/// What a SET says under each key; `None`: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Orders {
    pub(super) grouped: bool,
    pub(super) ids: [Option<Rule>; IDS],
    pub(super) label: Option<Option<u8>>,
    /// The operator must remove what this term has not set.
    pub(super) complete: bool,
}

/// A message in flight. It may arrive at any time, repeatedly, or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Message {
    /// Request for an inventory, from a controller that is active or wants to be.
    Ask {
        operator: u8,
        term: Term,
        loading: u8,
    },
    Inventory {
        operator: u8,
        term: Term,
        asked: u8,
        incarnation: u8,
        last: Number,
        ids: [Rule; IDS],
        label: Option<u8>,
    },
    Set {
        operator: u8,
        term: Term,
        number: Number,
        incarnation: u8,
        orders: Orders,
    },
    Done {
        operator: u8,
        term: Term,
        number: Number,
        incarnation: u8,
    },
}

/// A controller's view of an RSNode id. The bit set holds the requests that were under way when the current use began:
/// when all have ended, an answer's longest time may have passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Use {
    Preparing,
    Serving,
    Retiring(u8),
    Removing,
    Quarantined(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RsNode {
    pub(super) operator: Option<u8>,
    pub(super) used: Use,
}

impl RsNode {
    pub(super) fn is_known(self) -> bool {
        matches!(self.used, Use::Preparing | Use::Serving | Use::Retiring(_))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Sent {
    pub(super) number: Number,
    pub(super) keys: u8,
    pub(super) orders: Orders,
}

/// A controller's view of an operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Channel {
    pub(super) is_open: bool,
    pub(super) is_dead: bool,
    pub(super) is_lost: bool,
    pub(super) incarnation: Option<u8>,
    pub(super) last: Number,
    pub(super) loading: u8,
    pub(super) dirty: u8,
    pub(super) urgent: u8,
    pub(super) sent: Option<Sent>,
    pub(super) is_loading: bool,
    pub(super) is_grouped: bool,
}

impl Channel {
    pub(super) fn is_live(&self) -> bool {
        self.is_open && !self.is_dead
    }

    /// Whether it lacks, or may lack, one of `keys`.
    pub(super) fn lacks(&self, keys: u8) -> bool {
        (self.dirty | self.urgent | self.sent.map_or(0, |sent| sent.keys)) & keys != 0
    }

    /// Whether an operator that should carry out orders or send its inventory lacks this key.
    pub(super) fn will_learn(&self, key: u8) -> bool {
        !self.is_dead && (!self.is_open || self.lacks(key))
    }

    pub(super) fn need(&mut self, key: u8) {
        if self.is_open && self.urgent & key == 0 {
            self.dirty |= key;
        }
    }

    pub(super) fn need_at_once(&mut self, key: u8) {
        if self.is_open {
            self.dirty &= !key;
            self.urgent |= key;
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Role {
    #[default]
    Standby,
    Claiming,
    Active,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Controller {
    pub(super) me: u8,
    pub(super) role: Role,
    pub(super) term: Term,
    pub(super) highest: Term,
    pub(super) channels: [Channel; OPERATORS],
    pub(super) ids: [Option<RsNode>; IDS],
    /// The label that the labeller is known to have; `None`: unknown.
    pub(super) in_force: Option<Option<u8>>,
    pub(super) wanted: Option<u8>,
    pub(super) target: Option<u8>,
    /// Requests that were under way at its takeover, or when an operator began to follow it.
    pub(super) before: u8,
}

impl Controller {
    /// Whether it acts, or is about to act, by this term.
    pub(super) fn has(&self, term: Term) -> bool {
        self.role != Role::Standby && self.term == term
    }

    /// The id with which an operator is, or becomes, an RSNode.
    pub(super) fn id_of(&self, operator: u8, is_it: impl Fn(Use) -> bool) -> Option<u8> {
        let is_it = |id: &u8| {
            self.ids[usize::from(*id)].is_some_and(|node| node.operator == Some(operator) && is_it(node.used))
        };
        (0..IDS as u8).find(is_it)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Request {
    /// Labelled, and in flight to an operator.
    Labelled { id: u8, to: u8 },
    /// An operator's selector has chosen a server; the answer has not reached an operator yet.
    Selected { id: u8, by: u8 },
    /// The answer is in flight to the id's operator, as another operator knows it.
    Answer { id: u8, by: u8, to: u8 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Broken {
    Order,
    Label,
    Removal,
    Id,
    Answer,
    Groups,
    Alone,
}

impl Broken {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Order => "1, orders",
            Self::Label => "2, labels",
            Self::Removal => "3, removal",
            Self::Id => "4, ids",
            Self::Answer => "N7, answers",
            Self::Groups => "replica groups",
            Self::Alone => "nothing by itself",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Budget {
    pub(super) plans: u8,
    pub(super) takeovers: u8,
    pub(super) suspicions: u8,
    pub(super) forgets: u8,
    pub(super) operator_restarts: u8,
    pub(super) controller_restarts: u8,
    pub(super) reopenings: u8,
    pub(super) requests: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct State {
    pub(super) controllers: [Controller; 2],
    pub(super) operators: Vec<Operator>,
    /// Sorted, without duplicates.
    pub(super) messages: Vec<Message>,
    pub(super) requests: [Option<Request>; REQUESTS],
    /// RSNode ids ever assigned, a bit each.
    pub(super) used: u8,
    pub(super) budget: Budget,
    /// The controller assumed that an operator had no rules though it had, or an operator obeyed an older controller
    /// while a later one acted. Then only the weaker guarantees of the documentation hold.
    pub(super) is_excused: bool,
    pub(super) broken: Option<Broken>,
}

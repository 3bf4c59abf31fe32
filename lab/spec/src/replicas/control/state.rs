//! The state of the model: two controllers, two or three operators, what is on its way between them, and requests that are under way.
//! All numbers are small, so that states come again.

/// Places for operators. The first one labels the requests of the one traffic group.
pub(super) const OPERATORS: usize = 3;
/// RSNode ids.
pub(super) const IDS: usize = 2;
/// Places for requests.
pub(super) const REQUESTS: usize = 2;
/// The operator whose clients send the requests.
pub(super) const LABELLER: u8 = 0;

/// A key of a rule that an operator may lack, a bit each: the replica groups of its selector.
pub(super) const GROUPS: u8 = 1;
/// The label of the traffic group.
pub(super) const LABEL: u8 = 1 << (1 + IDS);

/// The rule of an RSNode id.
pub(super) fn key(id: u8) -> u8 {
    1 << (1 + id)
}

/// Who may give orders: by its number, then by its controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Term {
    pub(super) number: u8,
    /// The number of the controller's process.
    pub(super) controller: u8,
}

/// The number of a SET: how often its controller has asked for an inventory, and SETs since then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Number {
    pub(super) loading: u8,
    pub(super) sequence: u8,
}

/// What an operator knows of an RSNode id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Rule {
    #[default]
    Unknown,
    /// It is its own.
    Serve,
    /// It is this operator's.
    At(u8),
}

/// An operator and its keeper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Operator {
    pub(super) incarnation: u8,
    pub(super) term: Term,
    pub(super) last: Number,
    pub(super) ids: [Rule; IDS],
    pub(super) label: Option<u8>,
    /// The keys of rules that the term which it follows has set.
    pub(super) fresh: u8,
    /// Its selector has the replica groups.
    pub(super) grouped: bool,
    /// The greatest term that this incarnation has heard of: no part of the protocol, it is there to be compared with.
    pub(super) heard: Term,
}

impl Operator {
    pub(super) fn rule(&self, id: u8) -> Rule {
        self.ids[usize::from(id)]
    }

    /// It has no rule of RSNode ids, and no label.
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
    /// What the term has not set is to be removed.
    pub(super) complete: bool,
}

/// A message on its way. It may arrive at any time, any number of times, or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Message {
    /// ASK of a controller that is active, or wants to be, for an inventory.
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

/// What an RSNode id is used for, as its controller knows. A set of requests (a bit each) were under way when the present use began: when
/// all of them have ended, the longest time of an answer may have passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Use {
    Preparing,
    Serving,
    Retiring(u8),
    Removing,
    Resting(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RsNode {
    pub(super) operator: Option<u8>,
    pub(super) used: Use,
}

impl RsNode {
    /// Whether operators should know it.
    pub(super) fn is_known(self) -> bool {
        matches!(self.used, Use::Preparing | Use::Serving | Use::Retiring(_))
    }
}

/// A SET without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Sent {
    pub(super) number: Number,
    pub(super) keys: u8,
    pub(super) orders: Orders,
}

/// An operator as a controller sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Channel {
    /// Its inventory has come, so orders may be sent.
    pub(super) is_open: bool,
    /// It has not answered for `dead_after`.
    pub(super) is_dead: bool,
    /// Nor for `forget_after`.
    pub(super) is_lost: bool,
    pub(super) incarnation: Option<u8>,
    pub(super) last: Number,
    /// Inventories that were asked for.
    pub(super) loading: u8,
    pub(super) dirty: u8,
    pub(super) urgent: u8,
    pub(super) sent: Option<Sent>,
    /// It is getting all rules.
    pub(super) is_loading: bool,
    pub(super) is_grouped: bool,
}

impl Channel {
    pub(super) fn is_live(&self) -> bool {
        self.is_open && !self.is_dead
    }

    /// It lacks this, or may lack it.
    pub(super) fn lacks(&self, keys: u8) -> bool {
        (self.dirty | self.urgent | self.sent.map_or(0, |sent| sent.keys)) & keys != 0
    }

    /// The same of an operator that is expected to carry out orders, or to say what it has.
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

/// A controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Controller {
    /// The number of its process.
    pub(super) me: u8,
    pub(super) role: Role,
    pub(super) term: Term,
    pub(super) highest: Term,
    pub(super) channels: [Channel; OPERATORS],
    pub(super) ids: [Option<RsNode>; IDS],
    /// What the labeller is known to have as its label; `None`: that is not known.
    pub(super) in_force: Option<Option<u8>>,
    pub(super) wanted: Option<u8>,
    /// Which operator should select for the traffic group.
    pub(super) target: Option<u8>,
    /// Requests that were under way when it took over, or when an operator began to follow it.
    pub(super) before: u8,
}

impl Controller {
    /// Whether it has this term, and acts by it or is about to.
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

/// A request under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Request {
    /// It was labelled, and is on its way to an operator.
    Labelled { id: u8, to: u8 },
    /// An operator's selector has chosen a server; the answer has not reached an operator yet.
    Selected { id: u8, by: u8 },
    /// The answer is on its way to the operator that an operator has for the id.
    Answer { id: u8, by: u8, to: u8 },
}

/// What must not happen; each is a property.
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
    /// The name of the property.
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

/// What may still happen, and how often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Budget {
    pub(super) plans: u8,
    pub(super) takeovers: u8,
    pub(super) suspicions: u8,
    pub(super) forgets: u8,
    pub(super) operator_restarts: u8,
    pub(super) controller_restarts: u8,
    /// A controller asks for an inventory once more.
    pub(super) reopenings: u8,
    pub(super) requests: u8,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct State {
    pub(super) controllers: [Controller; 2],
    pub(super) operators: Vec<Operator>,
    /// In order, each once.
    pub(super) messages: Vec<Message>,
    pub(super) requests: [Option<Request>; REQUESTS],
    /// RSNode ids that were given out, a bit each.
    pub(super) used: u8,
    pub(super) budget: Budget,
    /// An operator that had rules was taken to have none, or one obeyed an older controller while a later one acted: what the page says of
    /// these holds then, and no more.
    pub(super) is_excused: bool,
    pub(super) broken: Option<Broken>,
}

//! Protocol errors that the model plants, one at a time: a search that finds none of them would prove nothing.

use super::state::Broken;

/// A rule of the protocol, left out or done wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Planted {
    /// A keeper follows whoever spoke last.
    OlderTermObeyed,
    /// Terms are compared by their numbers only.
    SameNumberSameTerm,
    /// An operator that starts again keeps its incarnation and the number of the last orders.
    RestartKeepsSequence,
    /// Orders for an operator as it was before it started again are carried out.
    IncarnationIgnored,
    /// Orders are carried out whatever their number is.
    AnySequence,
    /// After an inventory, orders of before it are carried out too.
    InventoryWithoutFence,
    /// A keeper that has not heard of a controller for long removes its rules.
    RulesExpire,
    /// An id is a label as soon as it is given out.
    LabelBeforeAllKnow,
    /// An id is a label before its selector has the replica groups, and its operator serves without them.
    ServeBeforeGroups,
    /// An RSNode retires when its group is told to have another label.
    RemovalBeforeConfirmed,
    /// An id is removed as soon as no group has it.
    RemovalAtOnce,
    /// An id is free as soon as it is to be removed.
    ReuseAtOnce,
    /// An id is free as soon as it is removed.
    ReuseWithoutRest,
    /// A controller that takes over gives out ids at once.
    IdsAtOnceAfterTakeover,
    /// A controller that takes over does not ask what is in force.
    ClaimWithoutInventory,
    /// An id that a plan takes back is a label at once, also if not all know it yet.
    TakenBackUnchecked,
    /// An id that is a label, and of which no operator has a rule any more, counts as free after a takeover.
    LabelNotLearned,
    /// After a takeover, fresh ids wait for the answers of before the takeover, not of before the last inventory.
    WaitFromTakeover,
    /// An id that was prepared while an operator was away is a label when it is back, before it has heard of the id.
    CameBackUnchecked,
    /// Labels of orders that wait for an answer, at an operator that does not answer any more, count as never given.
    UnconfirmedForgotten,
    /// An id counts as free though an operator that has not answered since the takeover may know it.
    UnheardIgnored,
    /// An operator that was started again counts as one without a label, though another controller may have given it one.
    RestartedCountsEmpty,
}

impl Planted {
    /// All of them: the search must find each.
    pub const ALL: [Self; 22] = [
        Self::OlderTermObeyed,
        Self::SameNumberSameTerm,
        Self::RestartKeepsSequence,
        Self::IncarnationIgnored,
        Self::AnySequence,
        Self::InventoryWithoutFence,
        Self::RulesExpire,
        Self::LabelBeforeAllKnow,
        Self::ServeBeforeGroups,
        Self::RemovalBeforeConfirmed,
        Self::RemovalAtOnce,
        Self::ReuseAtOnce,
        Self::ReuseWithoutRest,
        Self::IdsAtOnceAfterTakeover,
        Self::ClaimWithoutInventory,
        Self::TakenBackUnchecked,
        Self::LabelNotLearned,
        Self::WaitFromTakeover,
        Self::CameBackUnchecked,
        Self::UnconfirmedForgotten,
        Self::UnheardIgnored,
        Self::RestartedCountsEmpty,
    ];

    /// Whether it gives an effect to messages that have none by the rules.
    pub(super) fn keeps_old(self) -> bool {
        let old = [Self::OlderTermObeyed, Self::SameNumberSameTerm, Self::IncarnationIgnored, Self::AnySequence];
        old.contains(&self)
    }

    /// What it must break: that it breaks something else on the way does not count.
    pub(super) fn breaks(self) -> Broken {
        match self {
            Self::OlderTermObeyed | Self::SameNumberSameTerm => Broken::Order,
            Self::RestartKeepsSequence
            | Self::LabelBeforeAllKnow
            | Self::TakenBackUnchecked
            | Self::CameBackUnchecked => Broken::Label,
            Self::IncarnationIgnored
            | Self::AnySequence
            | Self::InventoryWithoutFence
            | Self::RemovalBeforeConfirmed
            | Self::RemovalAtOnce
            | Self::UnconfirmedForgotten
            | Self::RestartedCountsEmpty => Broken::Removal,
            Self::ReuseAtOnce | Self::ClaimWithoutInventory | Self::UnheardIgnored | Self::LabelNotLearned => {
                Broken::Id
            }
            Self::ReuseWithoutRest | Self::IdsAtOnceAfterTakeover | Self::WaitFromTakeover => Broken::Answer,
            Self::ServeBeforeGroups => Broken::Groups,
            Self::RulesExpire => Broken::Alone,
        }
    }

    /// The property that it must break.
    #[must_use]
    pub fn rule(self) -> &'static str {
        self.breaks().name()
    }

    /// Whether the search takes a second or two.
    #[must_use]
    pub fn is_found_soon(self) -> bool {
        !matches!(self, Self::RestartedCountsEmpty | Self::WaitFromTakeover | Self::IdsAtOnceAfterTakeover)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OlderTermObeyed => "older-term-obeyed",
            Self::SameNumberSameTerm => "same-number-same-term",
            Self::RestartKeepsSequence => "restart-keeps-sequence",
            Self::IncarnationIgnored => "incarnation-ignored",
            Self::AnySequence => "any-sequence",
            Self::InventoryWithoutFence => "inventory-without-fence",
            Self::RulesExpire => "rules-expire",
            Self::LabelBeforeAllKnow => "label-before-all-know",
            Self::ServeBeforeGroups => "serve-before-groups",
            Self::RemovalBeforeConfirmed => "removal-before-confirmed",
            Self::RemovalAtOnce => "removal-at-once",
            Self::ReuseAtOnce => "reuse-at-once",
            Self::ReuseWithoutRest => "reuse-without-rest",
            Self::IdsAtOnceAfterTakeover => "ids-at-once-after-takeover",
            Self::ClaimWithoutInventory => "claim-without-inventory",
            Self::TakenBackUnchecked => "taken-back-unchecked",
            Self::LabelNotLearned => "label-not-learned",
            Self::WaitFromTakeover => "wait-from-takeover",
            Self::CameBackUnchecked => "came-back-unchecked",
            Self::UnconfirmedForgotten => "unconfirmed-forgotten",
            Self::UnheardIgnored => "unheard-ignored",
            Self::RestartedCountsEmpty => "restarted-counts-empty",
        }
    }
}

//! Protocol errors planted in the model, one at a time, to show that the search finds errors.

use super::state::Broken;

/// A rule of the protocol that is left out or wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Planted {
    /// A keeper follows the last sender.
    OlderTermObeyed,
    /// Terms are compared by their numbers only.
    SameNumberSameTerm,
    /// A restarted operator keeps its incarnation and the number of the last orders.
    RestartKeepsSequence,
    /// An operator carries out orders for its former incarnation.
    IncarnationIgnored,
    /// Orders are carried out whatever their number is.
    AnySequence,
    /// Orders from before an inventory are carried out after it.
    InventoryWithoutFence,
    /// A keeper removes its rules after a long silence of the controller.
    RulesExpire,
    /// An id becomes a label as soon as it is assigned.
    LabelBeforeAllKnow,
    /// An id becomes a label before its selector has the replica groups, and its operator serves without them.
    ServeBeforeGroups,
    /// An RSNode retires when its group is ordered, not confirmed, to have another label.
    RemovalBeforeConfirmed,
    /// An id is removed as soon as no group has it.
    RemovalAtOnce,
    /// An id is free as soon as its removal is ordered.
    ReuseAtOnce,
    /// An id is free as soon as it is removed.
    ReuseWithoutRest,
    /// A controller assigns ids directly after its takeover.
    IdsAtOnceAfterTakeover,
    /// A controller takes over without an inventory.
    ClaimWithoutInventory,
    /// An id that a plan takes back becomes a label at once, though some operators may not know it yet.
    TakenBackUnchecked,
    /// After a takeover, a label of which no operator has a rule counts as free.
    LabelNotLearned,
    /// After a takeover, fresh ids wait for answers from before the takeover, not from before the last inventory.
    WaitFromTakeover,
    /// An id that was prepared while an operator was away becomes a label when the operator is back, before it knows
    /// the id.
    CameBackUnchecked,
    /// Unconfirmed labels at an operator that stops answering count as never ordered.
    UnconfirmedForgotten,
    /// An id counts as free though an operator that has been silent since the takeover may know it.
    UnheardIgnored,
    /// A restarted operator counts as one without a label, though another controller may have given it one.
    RestartedCountsEmpty,
}

impl Planted {
    /// All of them; the search must find each.
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

    /// Whether it gives an effect to messages that otherwise have none.
    pub(super) fn keeps_old(self) -> bool {
        let old = [Self::OlderTermObeyed, Self::SameNumberSameTerm, Self::IncarnationIgnored, Self::AnySequence];
        old.contains(&self)
    }

    /// The property that it must break; breaking another one first does not count.
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

    /// Name of the property that it must break.
    #[must_use]
    pub fn rule(self) -> &'static str {
        self.breaks().name()
    }

    /// Whether the search takes a second or two.
    #[must_use]
    pub fn is_found_soon(self) -> bool {
        !matches!(self, Self::RestartedCountsEmpty | Self::WaitFromTakeover | Self::IdsAtOnceAfterTakeover)
    }

    /// Name on the command line.
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

//! This process's operator as its keeper sees it: the switch and the selection.

use super::selector::Selector;
use crate::switch::Switch;
use midflight_cache::control::Parts;
use midflight_cache::control::keeper::Load;
use midflight_cache::rsnode::GroupError;
use midflight_dataplane::cache::{CacheProgram, Outcome, Rule, RuleOrder, TIERS_MAX};
use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// An order takes microseconds; this is far below a controller's failure detection.
const ORDER_WITHIN: Duration = Duration::from_secs(1);

/// How an operator selects servers.
#[derive(Clone, Debug)]
pub enum SelectedBy {
    /// Never: the operator is no RSNode.
    Nobody,
    /// By a selector thread of this process.
    Thread(Arc<Selector>),
    /// By the operator's core, as configured.
    Core,
}

impl SelectedBy {
    pub(super) fn incarnation(&self, of_core: u64) -> Option<u64> {
        match self {
            Self::Nobody => None,
            Self::Thread(selector) => selector.incarnation(),
            Self::Core => Some(of_core),
        }
    }
}

pub(super) struct LocalOperator<'a> {
    switch: &'a Switch<CacheProgram>,
    selected_by: &'a SelectedBy,
    has_warned: &'a AtomicBool,
    /// The switch did not carry out an order.
    has_failed: Cell<bool>,
}

impl<'a> LocalOperator<'a> {
    /// `has_warned`: whether the log has mentioned a selector at another address.
    pub(super) fn new(
        switch: &'a Switch<CacheProgram>,
        selected_by: &'a SelectedBy,
        has_warned: &'a AtomicBool,
    ) -> Self {
        Self { switch, selected_by, has_warned, has_failed: Cell::new(false) }
    }

    /// Whether the switch failed: some orders may not be in force.
    pub(super) fn have_failed(&self) -> bool {
        self.has_failed.get()
    }

    /// Whether the controller has another selector address than this process: packets to it would be lost.
    fn is_elsewhere(&self, rule: Rule) -> bool {
        let (Rule::Own { selector: Some(said), .. }, SelectedBy::Thread(_) | SelectedBy::Nobody) =
            (rule, self.selected_by)
        else {
            return false;
        };
        let present = match self.selected_by {
            SelectedBy::Thread(selector) => Some(selector.local_addr()),
            _ => None,
        };
        let is_elsewhere = present != Some(said);
        if is_elsewhere && !self.has_warned.swap(true, Relaxed) {
            let present = present.map_or_else(|| "none".into(), |present| present.to_string());
            tracing::warn!(
                "a controller says that the selector here is {said}, but it is {present}: correct one of the configurations"
            );
        }
        is_elsewhere
    }

    /// Stops at the first failure, to bound the total time.
    fn order(&self, order: RuleOrder) -> Option<RuleOrder> {
        if self.has_failed.get() {
            return None;
        }
        let done = self.switch.order_within(order, ORDER_WITHIN);
        self.has_failed.set(done.is_err());
        done.ok()
    }
}

impl Parts for LocalOperator<'_> {
    fn set(&mut self, rule: Rule) -> Outcome {
        if self.is_elsewhere(rule) {
            return Outcome::Bad;
        }
        // A core that selects needs no selector, whatever the controller's address of it.
        let rule = match (rule, self.selected_by) {
            (Rule::Own { rack, .. }, SelectedBy::Core) => Rule::Own { rack, selector: None },
            (rule, _) => rule,
        };
        self.order(rule.into()).map_or(Outcome::Bad, |done| done.outcome())
    }

    fn request_counts(&self, group: u16) -> [u64; TIERS_MAX] {
        self.order(RuleOrder::counts_of(group)).map_or([0; TIERS_MAX], |done| done.counts())
    }

    fn load(&self) -> Load {
        let stats = self.switch.stats();
        Load { selected: stats.selected, copied: stats.copied }
    }

    fn set_replica_group(&mut self, group: u32, servers: &[SocketAddr]) -> Outcome {
        match self.selected_by {
            SelectedBy::Nobody => Outcome::Done,
            SelectedBy::Thread(selector) => match selector.set_group(group, servers) {
                Ok(()) => Outcome::Done,
                Err(GroupError::NoRoomForGroup(_) | GroupError::NoRoomForServer(..)) => Outcome::NoRoom,
                Err(_) => Outcome::Bad,
            },
            SelectedBy::Core => {
                let done = self.order(RuleOrder::replica_group(group, servers));
                done.map_or(Outcome::Bad, |done| done.outcome())
            }
        }
    }

    fn set_selectors(&mut self, selectors: u32) {
        match self.selected_by {
            SelectedBy::Nobody => {}
            SelectedBy::Thread(selector) => selector.set_selectors(selectors),
            SelectedBy::Core => drop(self.order(RuleOrder::selectors(selectors))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::SwitchBuilder;
    use midflight_dataplane::cache::CacheConfig;
    use std::time::Instant;

    /// All orders of a message together wait only once for a switch that hangs.
    #[test]
    fn n8_a_switch_that_hangs_is_waited_for_once() {
        let (switch, _hangs) = SwitchBuilder::<CacheProgram>::of(CacheConfig::default()).bind().unwrap().hang();
        let has_warned = AtomicBool::new(false);
        let mut parts = LocalOperator::new(&switch, &SelectedBy::Nobody, &has_warned);
        let began = Instant::now();
        for id in 1..100 {
            assert_eq!(parts.set(Rule::Serve(id)), Outcome::Bad);
        }
        assert_eq!((parts.request_counts(0), parts.have_failed()), ([0; TIERS_MAX], true));
        assert!((ORDER_WITHIN..2 * ORDER_WITHIN).contains(&began.elapsed()), "{:?}", began.elapsed());
    }
}

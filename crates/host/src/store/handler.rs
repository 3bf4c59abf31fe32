//! Completes operations with the store's answers.

use crate::clock;
use crate::driver::{Handler, warn_of_version};
use crate::error::Error;
use crate::pending::Pending;
use midflight_endpoint::Nanos;
use midflight_store::client::{Answer, Client, Event, OperationKey};
use std::collections::HashMap;
use std::sync::Arc;

type Ended = (Arc<Pending<Answer>>, Result<Answer, Error>);

#[derive(Default)]
pub(super) struct AnswerHandler {
    open: HashMap<OperationKey, Arc<Pending<Answer>>>,
    /// Ended operations whose callers have not been told.
    ended: Vec<Ended>,
}

impl AnswerHandler {
    pub(super) fn expect(&mut self, key: OperationKey, pending: Arc<Pending<Answer>>) {
        self.open.insert(key, pending);
    }

    /// Returns the operations that are still open.
    pub(super) fn close(&mut self) -> Vec<Arc<Pending<Answer>>> {
        std::mem::take(&mut self.open).into_values().collect()
    }
}

impl Handler<Client> for AnswerHandler {
    /// Client ids expire at the store while this machine is suspended, too.
    const CLOCK: fn() -> Nanos = clock::now_counting_suspension;

    fn event(&mut self, _client: &mut Client, event: Event) {
        match event {
            Event::Done { key, outcome } => {
                let waits = self.open.remove(&key); // absent after `close`
                self.ended.extend(waits.map(|pending| (pending, outcome.map_err(Into::into))));
            }
            Event::SwitchChanged { switch } => tracing::info!("switch {switch} serves the set"),
            Event::OtherVersion { switch, version } => warn_of_version(switch, version),
        }
    }

    fn after(&mut self) -> Option<impl FnOnce() + use<>> {
        let ended = std::mem::take(&mut self.ended);
        (!ended.is_empty()).then_some(move || ended.into_iter().for_each(|(pending, outcome)| pending.end(outcome)))
    }
}

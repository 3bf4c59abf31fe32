//! Requests and answers through operators. Degraded requests have no RSNode, so the model does not follow them.

use super::scope::seen;
use super::state::{Broken, IDS, LABELLER, REQUESTS, Request, Role, Rule, Use};
use super::world::World;

impl World<'_> {
    pub(super) fn under_way(&self) -> u8 {
        let is_there = |place: &usize| self.state.requests[*place].is_some();
        (0..REQUESTS).filter(is_there).map(|place| 1 << place).sum()
    }

    pub(super) fn is_under_way(&self, id: u8) -> bool {
        self.state.requests.iter().flatten().any(|request| match *request {
            Request::Labelled { id: of, .. } | Request::Selected { id: of, .. } | Request::Answer { id: of, .. } => {
                of == id
            }
        })
    }

    pub(super) fn request(&mut self) {
        self.state.budget.requests -= 1;
        let at = self.state.operators[usize::from(LABELLER)];
        let Some(place) = (0..REQUESTS).find(|&place| self.state.requests[place].is_none()) else { return };
        let Some(id) = at.label else { return };
        match at.rule(id) {
            Rule::Serve => self.select(place, id, LABELLER),
            Rule::At(to) => self.state.requests[place] = Some(Request::Labelled { id, to }),
            Rule::Unknown => return self.saw(seen::BACKUP),
        }
        self.note_new(1 << place);
    }

    /// Restarts the wait of a retiring RSNode while its id is, or may be, a label.
    fn note_new(&mut self, request: u8) {
        for c in 0..self.state.controllers.len() {
            let mut controller = self.state.controllers[c];
            for id in 0..IDS as u8 {
                let is_label = self.is_label(&self.state.controllers[c], id);
                if let (true, Some(node)) = (is_label, &mut controller.ids[usize::from(id)])
                    && let Use::Retiring(since) = &mut node.used
                {
                    *since |= request;
                }
            }
            self.state.controllers[c] = controller;
        }
    }

    /// An operator's selector gets a request. It knows the replica group of each.
    fn select(&mut self, place: usize, id: u8, by: u8) {
        if !self.state.operators[usize::from(by)].grouped {
            self.breaks(Broken::Groups);
        }
        self.state.requests[place] = Some(Request::Selected { id, by });
    }

    pub(super) fn arrive(&mut self, place: u8) {
        let place = usize::from(place);
        match self.state.requests[place] {
            Some(Request::Labelled { id, to }) => {
                if self.state.operators[usize::from(to)].rule(id) == Rule::Serve {
                    self.select(place, id, to);
                } else {
                    // To its backup: it has no RSNode any more.
                    self.saw(seen::BACKUP);
                    self.end(place);
                }
            }
            Some(Request::Answer { id, by, to }) => {
                if self.state.operators[usize::from(to)].rule(id) == Rule::Serve {
                    self.deliver_copy(by, to);
                }
                self.end(place);
            }
            Some(Request::Selected { .. }) | None => {}
        }
    }

    /// A server's answer reaches its rack's operator: `via`.
    pub(super) fn answer(&mut self, place: u8, via: u8) {
        let place = usize::from(place);
        let Some(Request::Selected { id, by }) = self.state.requests[place] else { return };
        match self.state.operators[usize::from(via)].rule(id) {
            Rule::Unknown => self.end(place),
            Rule::At(to) => self.state.requests[place] = Some(Request::Answer { id, by, to }),
            Rule::Serve => {
                self.deliver_copy(by, via);
                self.end(place);
            }
        }
    }

    /// A selector gets the copy of an answer; it must be the one that sent the request (N7). The model compares ids only, not server, client and number.
    fn deliver_copy(&mut self, tracked_by: u8, received_by: u8) {
        self.saw(seen::CREDITED);
        if tracked_by != received_by && !self.state.is_excused {
            self.breaks(Broken::Answer);
        }
    }

    fn end(&mut self, place: usize) {
        self.state.requests[place] = None;
        for controller in &mut self.state.controllers {
            controller.before &= !(1 << place);
            for node in controller.ids.iter_mut().flatten() {
                if let Use::Retiring(since) | Use::Quarantined(since) = &mut node.used {
                    *since &= !(1 << place);
                }
            }
        }
    }

    /// Whether a deployment has ended: the label is the plan's, and differs from the initial one.
    pub(super) fn is_deployed(&self) -> bool {
        self.state.controllers.iter().any(|controller| {
            let node = controller.wanted.and_then(|id| controller.ids[usize::from(id)]);
            let is_planned = node.is_some_and(|node| node.operator == controller.target);
            controller.role == Role::Active && is_planned && controller.in_force == Some(controller.wanted)
        })
    }
}

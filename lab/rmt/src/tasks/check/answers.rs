//! The answers to clients and executors, and their rules.

use super::world::{Broken, Executor, Fate, World};
use super::{Order, PassOutcome, Subject};

impl<S: Subject> World<'_, S> {
    pub(super) fn told(&mut self, told: PassOutcome) -> Result<(), Broken> {
        match told {
            PassOutcome::Round | PassOutcome::Gone => Ok(()),
            PassOutcome::NoOp { executor } => {
                self.seen.no_ops += 1;
                self.hears(executor).map(|_| ())
            }
            PassOutcome::Assigned { executor, tid, whole } => {
                let heard = self.hears(executor)?;
                self.assigned(executor, tid, whole)?;
                self.runs(tid, heard)
            }
            PassOutcome::Answered { client, taken, refused } => {
                let sent = std::mem::take(&mut self.clients[usize::from(client)].sent);
                let all = (1u32 << sent.len()) - 1;
                if (taken | refused, taken & refused) != (all, 0) {
                    self.ask("T7", format!("of {} tasks, {taken:b} taken and {refused:b} refused", sent.len()))?;
                }
                let bits = sent.iter().enumerate().filter(|(bit, _)| refused >> bit & 1 == 1);
                let refused = bits.map(|(_, &tid)| tid).collect();
                self.refused(client, &sent, refused)?;
                self.acknowledged(client);
                Ok(())
            }
            PassOutcome::Refused { client, tids } if tids.iter().any(|&tid| self.accepted(tid)) => {
                self.given_back(client, &tids)
            }
            PassOutcome::Refused { client, tids } => {
                let sent = std::mem::take(&mut self.clients[usize::from(client)].sent);
                self.refused(client, &sent, tids)
            }
        }
    }

    fn hears(&mut self, executor: u8) -> Result<bool, Broken> {
        if self.net.is_some() {
            return self.answers(executor);
        }
        match self.executors.get_mut(usize::from(executor)) {
            Some(Executor { waits, .. }) if *waits => {
                *waits = false;
                Ok(true)
            }
            _ => self.ask("T2", format!("executor {executor} is answered twice")).map(|()| true),
        }
    }

    fn assigned(&mut self, executor: u8, tid: u32, whole: bool) -> Result<(), Broken> {
        self.seen.assigned += 1;
        let Some(task) = self.setting.task(tid) else { return self.ask("T1", format!("task {tid} is none")) };
        if !whole {
            self.ask("T1", format!("task {tid} came with another's words"))?;
        }
        if !self.accepted(tid) {
            return self.ask("T2", format!("task {tid} is assigned, and was {:?}", self.fates[tid as usize - 1]));
        }
        let (has, _) = self.setting.instance.executors[usize::from(executor)];
        if task.resources & !has != 0 {
            self.ask("T5", format!("executor {executor} cannot run task {tid}"))?;
        }
        let level = usize::from(task.level) - 1;
        let order = &self.order[level];
        let Some(place) = order.iter().position(|&other| other == tid) else {
            return self.ask("T3", format!("task {tid} is not in the order of its level"));
        };
        for &other in &order[..place] {
            let moved = self.fates[other as usize - 1] == Fate::Accepted { moved: true };
            if self.setting.order == Order::Exact || !moved {
                self.ask("T3", format!("task {tid} overtook task {other}"))?;
            }
        }
        self.order[level].remove(place);
        self.fates[tid as usize - 1] = Fate::Assigned;
        Ok(())
    }

    /// T7: a taken task is not refused afterwards. If it is, it belongs to the client again.
    fn given_back(&mut self, number: u8, tids: &[u32]) -> Result<(), Broken> {
        for &tid in tids {
            if !self.accepted(tid) {
                continue;
            }
            self.ask("T7", format!("task {tid} was taken, and is refused afterwards"))?;
            self.fates[tid as usize - 1] = Fate::Outside;
            self.order.iter_mut().for_each(|order| order.retain(|&other| other != tid));
            let client = &mut self.clients[usize::from(number)];
            client.sent.retain(|&other| other != tid);
            if client.retries > 0 {
                client.retries -= 1;
                client.todo.push(tid);
            }
        }
        Ok(())
    }

    /// T7: an answer to a client is true.
    fn refused(&mut self, client: u8, sent: &[u32], refused: Vec<u32>) -> Result<(), Broken> {
        for &tid in sent {
            let (inside, told) = (self.fates[tid as usize - 1] != Fate::Outside, refused.contains(&tid));
            if inside == told {
                let how = if told { "in, and " } else { "out, and not " };
                self.ask("T7", format!("task {tid} is {how}refused"))?;
            }
        }
        self.seen.refused += u64::from(!refused.is_empty());
        let client = &mut self.clients[usize::from(client)];
        if !refused.is_empty() && client.retries > 0 {
            client.retries -= 1;
            client.todo = refused;
        }
        Ok(())
    }
}

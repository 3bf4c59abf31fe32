//! A machine whose processes share its cores. A process that gets a datagram or a wake-up waits for a core; all that has come until then is
//! handled in one turn.

use midflight_endpoint::Nanos;
use midflight_sim::{Actor, Context, Wake};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

/// Marks the wake-up in which a turn ends. No process of a cell uses it.
const TURN: u64 = u64::MAX;

#[derive(Clone)]
pub(super) struct Machine {
    /// Core time of a turn.
    turn: Nanos,
    /// When each core is free again.
    free: Rc<RefCell<Vec<Nanos>>>,
}

impl Machine {
    pub(super) fn new(cores: u32, turn: Nanos) -> Self {
        Self { turn, free: Rc::new(RefCell::new(vec![0; cores.max(1) as usize])) }
    }

    /// Time until a turn that begins as soon as a core is free has ended.
    fn take_turn(&self, now: Nanos) -> Nanos {
        let mut cores = self.free.borrow_mut();
        let Some(free) = cores.iter_mut().min() else { return 0 };
        *free = now.max(*free) + self.turn;
        *free - now
    }
}

/// Runs the actor as a process of the machine, if there is one.
pub(super) fn process(machine: Option<&Machine>, actor: Box<dyn Actor>) -> Box<dyn Actor> {
    let Some(machine) = machine.cloned() else { return actor };
    Box::new(Process { actor, machine, inputs: Vec::new() })
}

enum Input {
    Datagram(SocketAddr, Vec<u8>),
    Wake(Wake),
}

struct Process {
    actor: Box<dyn Actor>,
    machine: Machine,
    /// Not yet handled; if there are any, a turn is due.
    inputs: Vec<Input>,
}

impl Process {
    fn add(&mut self, context: &mut Context<'_>, input: Input) {
        if self.inputs.is_empty() {
            context.after(self.machine.take_turn(context.now()), TURN);
        }
        self.inputs.push(input);
    }
}

impl Actor for Process {
    fn start(&mut self, context: &mut Context<'_>) {
        self.actor.start(context);
    }

    fn datagram(&mut self, context: &mut Context<'_>, from: SocketAddr, datagram: &[u8]) {
        self.add(context, Input::Datagram(from, datagram.to_vec()));
    }

    fn wake(&mut self, context: &mut Context<'_>, wake: Wake) {
        if wake != Wake::Token(TURN) {
            return self.add(context, Input::Wake(wake));
        }
        for input in std::mem::take(&mut self.inputs) {
            match input {
                Input::Datagram(from, datagram) => self.actor.datagram(context, from, &datagram),
                Input::Wake(wake) => self.actor.wake(context, wake),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_wait_for_a_core() {
        let machine = Machine::new(2, 10);
        assert_eq!([0, 0, 0, 5, 40].map(|now| machine.take_turn(now)), [10, 10, 20, 15, 10]);
    }
}

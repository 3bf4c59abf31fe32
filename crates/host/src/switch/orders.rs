//! An operator's orders and surveys. Any thread may request one; the switch's thread carries it out between packets, in bounded parts.

use super::hosted::Hosted;
use midflight_dataplane::program::{Program, SoftProgram};
// Unlike crossbeam's channels, these drop queued orders with the receiver, which tells the callers.
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

const WAITING_MAX: usize = 16;

type Done<T> = Result<T, String>;

#[derive(Debug)]
enum Asked<P: Program> {
    Order(P::Order, SyncSender<Done<P::Order>>),
    Survey(P::Survey, SyncSender<Done<P::Survey>>),
}

#[derive(Debug)]
pub(super) struct Orders<P: Program>(SyncSender<Asked<P>>);

/// Dropping it, when the thread ends, tells the callers that their requests will not be carried out.
#[derive(Debug)]
pub(super) struct CurrentOrder<P: Program> {
    waiting: Receiver<Asked<P>>,
    current: Option<Asked<P>>,
}

pub(super) fn queue<P: SoftProgram>() -> (Orders<P>, CurrentOrder<P>) {
    let (sender, waiting) = sync_channel(WAITING_MAX);
    (Orders(sender), CurrentOrder { waiting, current: None })
}

impl<P: SoftProgram> Orders<P> {
    /// Waits up to `within` for the order's completion; it may still be completed later.
    pub(super) fn carry_out(&self, order: P::Order, within: Duration, wake: impl FnOnce()) -> Done<P::Order> {
        self.ask(|reply| Asked::Order(order, reply), within, wake)
    }

    pub(super) fn survey(&self, within: Duration, wake: impl FnOnce()) -> Done<P::Survey> {
        self.ask(|reply| Asked::Survey(P::Survey::default(), reply), within, wake)
    }

    fn ask<T>(
        &self,
        asked: impl FnOnce(SyncSender<Done<T>>) -> Asked<P>,
        within: Duration,
        wake: impl FnOnce(),
    ) -> Done<T> {
        let ended = || "the switch has ended".to_owned();
        let (reply, answer) = sync_channel(1);
        self.0.try_send(asked(reply)).map_err(|refused| match refused {
            TrySendError::Full(_) => "too many orders wait already".into(),
            TrySendError::Disconnected(_) => ended(),
        })?;
        wake();
        answer.recv_timeout(within).map_err(|failed| match failed {
            RecvTimeoutError::Timeout => format!("the switch has not done it within {within:?}"),
            RecvTimeoutError::Disconnected => ended(),
        })?
    }
}

impl<P: SoftProgram> CurrentOrder<P> {
    /// Does the next bounded part; `false` if there is nothing to do.
    pub(super) fn go_on(&mut self, engine: &mut dyn Hosted<P>) -> bool {
        // Sending fails if the caller no longer waits.
        match self.current.take().or_else(|| self.waiting.try_recv().ok()) {
            None => return false,
            Some(Asked::Order(mut order, reply)) => match engine.order(&mut order) {
                Ok(false) => self.current = Some(Asked::Order(order, reply)),
                Ok(true) => _ = reply.try_send(Ok(order)),
                Err(error) => _ = reply.try_send(Err(error.to_string())),
            },
            Some(Asked::Survey(mut survey, reply)) => {
                if engine.survey(&mut survey) {
                    let _ = reply.try_send(Ok(survey));
                } else {
                    self.current = Some(Asked::Survey(survey, reply));
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_dataplane::{Purge, TasksProgram, Which};
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    #[test]
    fn orders_that_wait_when_the_switch_ends_are_refused() {
        let (orders, of_thread) = queue::<TasksProgram>();
        let (queued, order) = (AtomicUsize::new(0), || Purge::new(Which::Client(1)));
        let give = || orders.carry_out(order(), Duration::MAX, || _ = queued.fetch_add(1, Relaxed)).unwrap_err();
        let answers = std::thread::scope(|scope| {
            let waits: Vec<_> = (0..WAITING_MAX).map(|_| scope.spawn(give)).collect();
            while queued.load(Relaxed) < WAITING_MAX {
                std::thread::yield_now();
            }
            assert_eq!(give(), "too many orders wait already");
            drop(of_thread);
            waits.into_iter().map(|wait| wait.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(answers, ["the switch has ended"; WAITING_MAX]);
        assert_eq!(give(), "the switch has ended");
    }

    /// No caller waits for ever. Abandoned orders stay in the queue, which is bounded.
    #[test]
    fn an_order_that_is_not_carried_out_is_waited_for_so_long() {
        let (orders, _hangs) = queue::<TasksProgram>();
        let give = || orders.carry_out(Purge::new(Which::Client(1)), Duration::from_millis(1), || ()).unwrap_err();
        for _ in 0..WAITING_MAX {
            assert_eq!(give(), "the switch has not done it within 1ms");
        }
        assert_eq!(give(), "too many orders wait already");
    }
}

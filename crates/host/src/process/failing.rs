//! A part that cannot continue ends the process, because peers would keep relying on it.

use crate::driver::lock;
use std::fmt;
use std::sync::{Mutex, OnceLock};

pub(crate) struct Failing {
    why: OnceLock<String>,
    on_failure: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

/// Held by a thread or a task; a panic fails the process.
pub(crate) struct Watch<'a> {
    failing: &'a Failing,
    what: &'static str,
}

impl Failing {
    /// `on_failure` is called once, by the first failure.
    pub(crate) fn new(on_failure: impl FnOnce() + Send + 'static) -> Self {
        Self { why: OnceLock::new(), on_failure: Mutex::new(Some(Box::new(on_failure))) }
    }

    pub(crate) fn why(&self) -> Option<&str> {
        self.why.get().map(String::as_str)
    }

    pub(crate) fn fail(&self, why: String) {
        // Keeps the first reason.
        let _ = self.why.set(why);
        let call = lock(&self.on_failure).take();
        if let Some(call) = call {
            call();
        }
    }

    /// `what` completes "the thread that … has panicked".
    pub(crate) fn watch(&self, what: &'static str) -> Watch<'_> {
        Watch { failing: self, what }
    }
}

impl fmt::Debug for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failing").field("why", &self.why.get()).finish_non_exhaustive()
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.failing.fail(format!("the thread that {} has panicked: the log has the message", self.what));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    fn counted() -> (Arc<Failing>, Arc<AtomicUsize>) {
        let calls = Arc::new(AtomicUsize::new(0));
        let of_failure = Arc::clone(&calls);
        (Arc::new(Failing::new(move || _ = of_failure.fetch_add(1, SeqCst))), calls)
    }

    #[test]
    fn a_panic_is_told_once_and_an_end_is_not() {
        let (failing, calls) = counted();
        let run = |panics: bool| {
            let failing = Arc::clone(&failing);
            let thread = std::thread::spawn(move || {
                let _watch = failing.watch("counts");
                assert!(!panics, "as planned");
            });
            thread.join().is_err()
        };
        assert!(!run(false));
        assert_eq!((failing.why(), calls.load(SeqCst)), (None, 0));
        assert!(run(true) && run(true));
        let why = "the thread that counts has panicked: the log has the message";
        assert_eq!((failing.why(), calls.load(SeqCst)), (Some(why), 1));
        failing.fail("another reason".into());
        assert_eq!((failing.why(), calls.load(SeqCst)), (Some(why), 1));
    }

    /// The runtime survives the panic of a task, so the task must report it.
    #[test]
    fn a_panic_of_a_task_is_told() {
        let (failing, calls) = counted();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let of_task = Arc::clone(&failing);
        let ended = runtime.block_on(async {
            tokio::spawn(async move {
                let _watch = of_task.watch("serves");
                tokio::task::yield_now().await;
                panic!("as planned");
            })
            .await
        });
        assert!(ended.is_err() && calls.load(SeqCst) == 1 && failing.why().is_some());
    }
}

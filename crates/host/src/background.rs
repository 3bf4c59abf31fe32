//! A thread with a runtime of its own.

use crate::driver::spawn;
use crate::error::Error;
use std::thread::JoinHandle;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// `what` completes "cannot …".
pub(crate) fn runtime(what: &'static str) -> Result<Runtime, Error> {
    Builder::new_current_thread().enable_all().build().map_err(Error::resources(what))
}

/// Dropping it drops what it runs, and waits for the thread.
#[derive(Debug)]
pub(crate) struct Background {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    pub(crate) fn start<F: Future<Output = ()>>(
        name: &str,
        runtime: Runtime,
        run: impl FnOnce() -> F + Send + 'static,
    ) -> Result<Self, Error> {
        let (stop, stopped) = oneshot::channel();
        let thread = spawn(name, move || {
            // Panics while `run` exists, as if inside it.
            let stop = async { assert!(stopped.await.is_err(), "a test wants the thread to panic") };
            runtime.block_on(async {
                tokio::select! {
                    biased;
                    () = run() => {}
                    () = stop => {}
                }
            });
            // Does not wait for a name that is being resolved.
            runtime.shutdown_background();
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }

    pub(crate) fn panic(&mut self) {
        // Fails if the thread has ended.
        let _ = self.stop.take().map(|stop| stop.send(()));
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

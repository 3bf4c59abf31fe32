//! Asynchronous functions: a runtime of one thread runs as many at once as the executor has slots.

use crate::driver::{lock, spawn};
use crate::error::Error;
use crate::tasks::functions::{TaskContext, Value, panic_message};
use std::fmt::Display;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// The future of a function; errors and panics are messages.
pub(crate) type Outcome = Pin<Box<dyn Future<Output = Result<Value, String>> + Send>>;

pub(crate) type AsyncCall = dyn Fn(TaskContext, Vec<u8>) -> Outcome + Send + Sync;

/// Turns errors and panics into messages.
pub(crate) fn wrap_async<F, R, E>(function: F) -> Arc<AsyncCall>
where
    F: Fn(TaskContext, Vec<u8>) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Vec<u8>, E>> + Send + 'static,
    E: Display,
{
    let function = Arc::new(function);
    Arc::new(move |context, argument| {
        let function = Arc::clone(&function);
        Box::pin(Caught(Box::pin(async move {
            let result = function(context, argument).await;
            result.map(Value::Bytes).map_err(|error| error.to_string())
        })))
    })
}

/// Turns a panic into an error.
struct Caught(Outcome);

impl Future for Caught {
    type Output = Result<Value, String>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(context)));
        polled.unwrap_or_else(|panic| Poll::Ready(Err(panic_message(&*panic))))
    }
}

/// Closing it drops what it runs.
#[derive(Debug)]
pub(crate) struct Runtime {
    handle: Handle,
    end: Mutex<Option<oneshot::Sender<()>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Runtime {
    pub(crate) fn start() -> Result<Self, Error> {
        let failed = Error::resources("start the runtime of asynchronous functions");
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (end, ended) = oneshot::channel::<()>();
        let handle = runtime.handle().clone();
        let thread = spawn("mf-futures", move || {
            let _ = runtime.block_on(ended); // fails if the sender is gone, which also ends it
            runtime.shutdown_background();
        })?;
        Ok(Self { handle, end: Mutex::new(Some(end)), thread: Mutex::new(Some(thread)) })
    }

    pub(crate) fn spawn(&self, run: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(run);
    }

    /// Idempotent.
    pub(crate) fn close(&self) {
        lock(&self.end).take();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            let _ = thread.join();
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.close();
    }
}

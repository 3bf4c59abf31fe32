//! Sparrow over real sockets, with Midflight's driver and functions. See [`midflight_baselines::sparrow`] for the protocol.

mod client;
mod worker;

pub(crate) use client::{Outcome, SparrowClient, Submitted};
pub(crate) use worker::{SparrowWorker, Start};

use midflight_baselines::sparrow::{ConfigError, Scheduler, SchedulerConfig, scheduler};
use midflight_endpoint::Endpoint;
use midflight_host::parts::{BUSY_POLL, Driver, Handler, Socket, Waker, spawn};
use midflight_host::{Error, SocketCounts, clock};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

fn refused(error: ConfigError) -> Error {
    Error::Invalid(error.to_string())
}

/// Stops on drop.
struct Running<E: Endpoint + Send + 'static, H: Handler<E> + 'static> {
    driver: Arc<Driver<E, H>>,
    thread: Option<JoinHandle<()>>,
}

impl<E: Endpoint + Send + 'static, H: Handler<E> + 'static> Running<E, H> {
    fn start(name: &str, driver: Arc<Driver<E, H>>) -> Result<Self, Error> {
        let network = Arc::clone(&driver);
        let thread = spawn(name, move || network.run(BUSY_POLL))?;
        Ok(Self { driver, thread: Some(thread) })
    }
}

impl<E: Endpoint + Send + 'static, H: Handler<E> + 'static> Drop for Running<E, H> {
    fn drop(&mut self) {
        self.driver.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Silent;

impl Handler<Scheduler> for Silent {
    fn event(&mut self, _endpoint: &mut Scheduler, _event: scheduler::Event) {}
}

/// Stops on drop.
pub(crate) struct SparrowScheduler(Running<Scheduler, Silent>);

impl std::fmt::Debug for SparrowScheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SparrowScheduler").field("local", &self.local_addr()).finish_non_exhaustive()
    }
}

impl SparrowScheduler {
    /// # Errors
    /// If the configuration is out of bounds, or the system refuses the address or a thread.
    pub(crate) fn start(listen: SocketAddr, config: SchedulerConfig) -> Result<Self, Error> {
        let driver =
            Driver::new(Scheduler::new(config).map_err(refused)?, Silent, Socket::bind(listen)?, Waker::new()?);
        Ok(Self(Running::start("mf-sparrow", Arc::new(driver))?))
    }

    #[must_use]
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.0.driver.socket.local_addr()
    }

    #[must_use]
    pub(crate) fn counts(&self) -> (scheduler::Counters, SocketCounts) {
        let counters = self.0.driver.peek(|scheduler, _| scheduler.counters());
        (counters, self.0.driver.socket.counts())
    }
}

/// The current time, and a seed.
fn birth() -> (midflight_endpoint::Nanos, u64) {
    (clock::now(), rand::random::<u32>().into())
}

//! The client class for Python.

use crate::buffer::Buffer;
use crate::calls::{append, contiguous};
use crate::completions::{Completion, End, Found};
use crate::fork::{Own, before_client};
use crate::submitter::{Bounds, Submitter};
use midflight_host::{BlobOptions, Error, SharedBlob, TaskError, resolve};
use midflight_tasks::resources::ResourceNames;
use pyo3::exceptions::{PyConnectionError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PyString};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pyo3::import_exception!(midflight.errors, ArgumentTooLarge);
pyo3::import_exception!(midflight.errors, ClientClosed);

/// Longer results are not copied, and longer arguments are copied without the GIL.
pub(crate) const COPIED_MAX: usize = 64 << 10;
/// Interval at which a waiting thread checks for signals.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// How a task has ended, as numbers that Python knows.
#[repr(u8)]
enum Kind {
    Value = 0,
    Failed = 1,
    Unknown = 2,
    Lost = 3,
    TooLarge = 4,
    Cancelled = 5,
    Closed = 6,
    NotSubmitted = 7,
    NoRoom = 8,
    Part = 9,
}

/// Ignores poisoning: the data is consistent at every statement that may panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn failed(error: Error) -> PyErr {
    match error {
        Error::Closed => ClientClosed::new_err("the client is closed: connect a new one"),
        Error::ArgumentTooLong { .. } => ArgumentTooLarge::new_err(error.to_string()),
        Error::NotConnected { addresses, .. } => {
            let names: Vec<_> = addresses.iter().map(ToString::to_string).collect();
            PyConnectionError::new_err(format!(
                "no switch answers at {}: start one (midflight up --python), or give its address (switch=\"HOST:PORT\")",
                names.join(", ")
            ))
        }
        Error::Resolve { .. } | Error::Invalid(_) => PyValueError::new_err(error.to_string()),
        Error::Bind { .. } | Error::Resources { .. } => PyOSError::new_err(error.to_string()),
        _ => PyRuntimeError::new_err(error.to_string()),
    }
}

/// Bytes that executors may fetch while this lives.
#[pyclass(frozen, module = "midflight._native")]
pub(crate) struct Blob(Own<Arc<SharedBlob>>);

impl Blob {
    pub(crate) fn shared(&self) -> PyResult<Arc<SharedBlob>> {
        self.0.get().cloned()
    }
}

#[pyclass(frozen, module = "midflight._native")]
pub(crate) struct Client {
    submitter: Own<Arc<Submitter>>,
    memory_max: usize,
}

#[pymethods]
impl Client {
    /// Connects; waits for the switch's answer.
    #[new]
    #[pyo3(signature = (switches, *, bind, max_open, value_max, blob_max, timeout))]
    fn new(
        py: Python<'_>,
        switches: Vec<String>,
        bind: Option<String>,
        max_open: usize,
        value_max: u32,
        blob_max: usize,
        timeout: f64,
    ) -> PyResult<Self> {
        before_client();
        let timeout = Duration::try_from_secs_f64(timeout).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let connect = || -> Result<_, Error> {
            let addresses = switches.iter().map(|name| resolve(name)).collect::<Result<Vec<_>, _>>()?;
            let mut blobs = BlobOptions::default();
            blobs.max_bytes = blob_max;
            let builder = midflight_host::Client::builder().switches(addresses).max_open(max_open).value_max(value_max);
            let builder = builder.wait_for_room(false).blobs(blobs).connect_timeout(timeout);
            let bind = bind.map(|name| resolve(&name)).transpose()?;
            bind.into_iter().fold(builder, midflight_host::ClientBuilder::bind).connect()
        };
        let client = py.detach(connect).map_err(failed)?;
        let submitter = Submitter::start(client, Bounds { open: max_open, memory: blob_max })?;
        Ok(Self { submitter: Own::new(submitter), memory_max: blob_max })
    }

    /// Makes the concatenated pieces available to executors. Waits for room while tasks are open.
    fn share(&self, py: Python<'_>, pieces: Vec<Bound<'_, PyAny>>) -> PyResult<Blob> {
        let submitter = self.submitter()?;
        let pieces = pieces.iter().map(contiguous).collect::<PyResult<Vec<_>>>()?;
        let length = pieces.iter().map(|piece| piece.len_bytes()).sum();
        if length > self.memory_max {
            return Err(ArgumentTooLarge::new_err(format!("{length} bytes exceed memory_max, {}", self.memory_max)));
        }
        let bytes = py.detach(|| {
            let mut bytes = Vec::with_capacity(length);
            pieces.iter().for_each(|piece| append(&mut bytes, piece));
            Arc::new(bytes)
        });
        drop(pieces);
        loop {
            let client = submitter.client().ok_or(Error::Closed).map_err(failed)?;
            let is_open = submitter.flow.open() > 0;
            match client.share(Arc::clone(&bytes)) {
                Err(Error::BlobsFull { .. }) if is_open => {
                    py.detach(|| submitter.flow.wait_for_room(LONGEST_WAIT, |_| false));
                    py.check_signals()?;
                }
                Err(Error::BlobsFull { max_bytes }) => {
                    return Err(ArgumentTooLarge::new_err(format!(
                        "{length} bytes have no room beside functions and other shared arguments: memory_max is {max_bytes}"
                    )));
                }
                other => return other.map(|blob| Blob(Own::new(Arc::new(blob)))).map_err(failed),
            }
        }
    }

    /// The mask of a list of resources, such as `gpu,r3`. `names`: the bits of the cluster's names.
    #[staticmethod]
    fn resources(list: &str, names: BTreeMap<String, u8>) -> PyResult<u8> {
        let mask = ResourceNames::new(names).and_then(|names| names.mask(list));
        mask.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Raises an exception if the client cannot be used.
    fn check(&self) -> PyResult<()> {
        self.submitter()?.client().map(drop).ok_or(Error::Closed).map_err(failed)
    }

    /// Number of times that threads have settled ends of tasks; see `wait`.
    fn settled(&self) -> PyResult<u64> {
        Ok(self.submitter()?.flow.completions.count())
    }

    /// For a thread that waits for a result: calls `settle(waiters, kind, value)` for each task that has ended. May return without any:
    /// check and call it again. `False` when the client is closed and all is settled.
    fn wait(&self, py: Python<'_>, settle: &Bound<'_, PyAny>, settled: u64, timeout: f64) -> PyResult<bool> {
        let submitter = self.submitter()?;
        let completions = &submitter.flow.completions;
        let timeout = Duration::try_from_secs_f64(timeout).unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT);
        let found = py.detach(|| {
            completions.wait(timeout, settled, || {
                if let Some(client) = submitter.client() {
                    client.poll_until(timeout, &|| completions.is_some());
                }
            })
        });
        settle_all(settle, submitter, found)
    }

    /// As `wait`, for the client's own thread and without a timeout.
    fn wait_always(&self, py: Python<'_>, settle: &Bound<'_, PyAny>) -> PyResult<bool> {
        let submitter = self.submitter()?;
        let found = py.detach(|| submitter.flow.completions.wait_always());
        settle_all(settle, submitter, found)
    }

    fn cancel(&self, py: Python<'_>, token: u64) -> PyResult<()> {
        let submitter = self.submitter()?;
        py.detach(|| submitter.flow.cancel(token));
        Ok(())
    }

    fn open(&self) -> PyResult<usize> {
        Ok(self.submitter()?.flow.open())
    }

    fn addresses(&self) -> PyResult<(String, String)> {
        let client = self.submitter()?.client().ok_or(Error::Closed).map_err(failed)?;
        Ok((client.local_addr().to_string(), client.switch().to_string()))
    }

    /// Closes the client, and calls `settle` for all open calls. In a child after a fork it does nothing: `False`.
    fn close(&self, py: Python<'_>, settle: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Some(submitter) = self.submitter.here() else { return Ok(false) };
        py.detach(|| submitter.close());
        settle_all(settle, submitter, submitter.flow.completions.begin())?;
        Ok(true)
    }
}

impl Client {
    pub(crate) fn submitter(&self) -> PyResult<&Arc<Submitter>> {
        self.submitter.get()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(submitter) = self.submitter.here() {
            Python::attach(|py| py.detach(|| submitter.close()));
        }
    }
}

/// Calls `settle` for each completion found. If it raises an exception, its completion stays for the next thread.
fn settle_all(settle: &Bound<'_, PyAny>, submitter: &Submitter, found: Found) -> PyResult<bool> {
    let completions = &submitter.flow.completions;
    let count = match found {
        Found::Closed => return Ok(false),
        Found::Nothing => {
            settle.py().check_signals()?;
            return Ok(true);
        }
        Found::Some(count) => count,
    };
    let mut settled = Ok(true);
    for _ in 0..count {
        let Some(completion) = completions.next() else { break };
        let (completion, result) = settle_one(settle, completion);
        if let Err(error) = result {
            completions.put_back(completion);
            settled = Err(error);
            break;
        }
    }
    completions.settled();
    settled
}

fn settle_one(settle: &Bound<'_, PyAny>, completion: Completion) -> (Completion, PyResult<()>) {
    let py = settle.py();
    let Completion { waiters, end } = completion;
    let (kind, value) = known(py, end);
    let result = waiters.tuple(py).and_then(|tuple| settle.call1((tuple, kind, &value)));
    (Completion { waiters, end: End::Known(kind, value.unbind()) }, result.map(drop))
}

fn known(py: Python<'_>, end: End) -> (u8, Bound<'_, PyAny>) {
    let text = |kind: Kind, text: &str| (kind as u8, PyString::new(py, text).into_any());
    let error = match end {
        End::Known(kind, value) => return (kind, value.into_bound(py)),
        End::Outcome(Ok(result)) if result.value.len() <= COPIED_MAX => {
            return (Kind::Value as u8, PyBytes::new(py, &result.value).into_any());
        }
        End::Outcome(Ok(result)) => {
            let buffer = Bound::new(py, Buffer::new(result.value));
            return match buffer.and_then(|buffer| PyMemoryView::from(&buffer)) {
                Ok(view) => (Kind::Value as u8, view.into_any()),
                Err(error) => text(Kind::Failed, &format!("the result has come, but Python cannot take it: {error}")),
            };
        }
        End::Part(part) => return (Kind::Part as u8, PyBytes::new(py, &part).into_any()),
        End::NotSubmitted(why) => return text(Kind::NotSubmitted, &why),
        End::NoRoom(why) => return text(Kind::NoRoom, &why),
        End::Outcome(Err(error)) => error,
    };
    let kind = match &error {
        Error::Task(TaskError::Failed { .. }) => Kind::Failed,
        Error::Task(TaskError::Unknown) => Kind::Unknown,
        Error::Task(TaskError::TooLarge { .. }) => Kind::TooLarge,
        Error::Task(TaskError::Cancelled) => Kind::Cancelled,
        Error::Closed => Kind::Closed,
        _ => Kind::Lost,
    };
    text(kind, &error.to_string())
}

//! The client as Python sees it.

use crate::buffer::Buffer;
use crate::completions::{End, Ended};
use crate::submitter::Submitter;
use midflight_host::{ClientOptions, Error, SharedBlob, TaskError, resolve};
use midflight_tasks::resources::ResourceNames;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyConnectionError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyMemoryView, PyString};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Longer results are not copied.
const COPIED_MAX: usize = 64 << 10;
/// How often a thread that waits looks at signals.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// How a task has ended, as Python knows it.
#[repr(u8)]
enum Kind {
    Value = 0,
    Failed = 1,
    Unknown = 2,
    TimedOut = 3,
    Lost = 4,
    TooLarge = 5,
    Cancelled = 6,
    Closed = 7,
    NotSubmitted = 8,
}

/// Locks even if a holder panicked: the data is consistent at every statement that may panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As an exception.
pub(crate) fn failed(error: Error) -> PyErr {
    match error {
        Error::Resolve { .. } | Error::Configuration(_) => PyValueError::new_err(error.to_string()),
        Error::Bind { .. } | Error::Resources { .. } => PyOSError::new_err(error.to_string()),
        _ => PyRuntimeError::new_err(error.to_string()),
    }
}

/// Bytes that executors may fetch for as long as this lives.
#[pyclass(frozen, module = "midflight._native")]
pub(crate) struct Blob(Arc<SharedBlob>);

impl Blob {
    pub(crate) fn shared(&self) -> Arc<SharedBlob> {
        Arc::clone(&self.0)
    }
}

/// A client of the library.
#[pyclass(frozen, module = "midflight._native")]
pub(crate) struct Client {
    submitter: Arc<Submitter>,
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
        let addresses = switches.iter().map(|name| resolve(name)).collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let mut options = ClientOptions { max_open, value_max, ..ClientOptions::new(addresses) };
        options.bind = bind.map(|name| resolve(&name)).transpose().map_err(failed)?;
        options.blobs.max_bytes = blob_max;
        let timeout = Duration::try_from_secs_f64(timeout).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let connect = || -> Result<_, Error> {
            let client = midflight_host::Client::connect(options)?;
            let connected = client.wait_connected(timeout);
            Ok((client, connected))
        };
        let (client, connected) = py.detach(connect).map_err(failed)?;
        if !connected {
            py.detach(|| drop(client));
            return Err(PyConnectionError::new_err(format!(
                "no switch answers at {}: start one (midflight up --python), or give its address (switch=\"HOST:PORT\")",
                switches.join(", ")
            )));
        }
        Ok(Self { submitter: Submitter::start(client)? })
    }

    /// Keeps bytes for executors: the pieces, one after another.
    fn share(&self, py: Python<'_>, pieces: Vec<PyBuffer<u8>>) -> PyResult<Blob> {
        let mut bytes = Vec::with_capacity(pieces.iter().map(|buffer| buffer.len_bytes()).sum());
        for piece in &pieces {
            let start = bytes.len();
            bytes.resize(start + piece.len_bytes(), 0);
            piece.copy_to_slice(py, &mut bytes[start..])?;
        }
        let client = self.submitter.client().ok_or(Error::Closed).map_err(failed)?;
        client.share(bytes).map(|blob| Blob(Arc::new(blob))).map_err(failed)
    }

    /// The mask of a list of resources, such as `r0,r3`.
    #[staticmethod]
    fn resources(list: &str) -> PyResult<u8> {
        ResourceNames::default().mask(list).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// What was settled so far; see `wait`.
    fn settled(&self) -> u64 {
        self.submitter.completions.settled()
    }

    /// What was taken is settled.
    fn settle(&self) {
        self.submitter.completions.settle();
    }

    /// For a thread that waits for a result: tasks that have ended, each as token of the first call, kind, value
    /// and number of calls. May be none: look again.
    fn wait<'py>(&self, py: Python<'py>, settled: u64, timeout: f64) -> PyResult<Bound<'py, PyList>> {
        let timeout = Duration::try_from_secs_f64(timeout).unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT);
        let completions = &self.submitter.completions;
        let ended = py.detach(|| {
            let ended = completions.take_first(timeout, settled, || {
                if let Some(client) = self.submitter.client() {
                    client.poll_until(timeout, &|| completions.is_some());
                }
            });
            self.submitter.ended(&ended);
            ended
        });
        if ended.is_empty() {
            py.check_signals()?;
        }
        listed(py, ended)
    }

    /// For the client's own thread: the same; `None` when the client is closed.
    fn wait_always<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let ended = py.detach(|| {
            let ended = self.submitter.completions.take_second();
            self.submitter.ended(ended.as_deref().unwrap_or_default());
            ended
        });
        ended.map(|ended| listed(py, ended)).transpose()
    }

    /// Cancels a task.
    fn cancel(&self, py: Python<'_>, token: u64) {
        py.detach(|| self.submitter.cancel(token));
    }

    /// Tasks that have not ended.
    fn open(&self) -> usize {
        self.submitter.open()
    }

    /// The local address and the switch's.
    fn addresses(&self) -> PyResult<(String, String)> {
        let client = self.submitter.client().ok_or(Error::Closed).map_err(failed)?;
        Ok((client.local_addr().to_string(), client.switch().0.to_string()))
    }

    /// Ends it.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.submitter.close());
    }
}

impl Client {
    pub(crate) fn submitter(&self) -> PyResult<Arc<Submitter>> {
        Ok(Arc::clone(&self.submitter))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.submitter.close();
    }
}

fn listed(py: Python<'_>, ended: Vec<Ended>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for Ended { token, calls, end } in ended {
        let (kind, value) = parts(py, end)?;
        list.append((token, kind as u8, value, calls))?;
    }
    Ok(list)
}

fn parts(py: Python<'_>, end: End) -> PyResult<(Kind, Bound<'_, PyAny>)> {
    let error = match end {
        End::Outcome(Ok(result)) if result.value.len() <= COPIED_MAX => {
            return Ok((Kind::Value, PyBytes::new(py, &result.value).into_any()));
        }
        End::Outcome(Ok(result)) => {
            let buffer = Bound::new(py, Buffer::new(result.value))?;
            return Ok((Kind::Value, PyMemoryView::from(&buffer)?.into_any()));
        }
        End::Outcome(Err(error)) => error,
        End::NotSubmitted(why) => return Ok((Kind::NotSubmitted, PyString::new(py, &why).into_any())),
    };
    let kind = match &error {
        TaskError::Failed { .. } => Kind::Failed,
        TaskError::Unknown => Kind::Unknown,
        TaskError::TimedOut => Kind::TimedOut,
        TaskError::TooLarge { .. } => Kind::TooLarge,
        TaskError::Cancelled => Kind::Cancelled,
        TaskError::Closed => Kind::Closed,
        _ => Kind::Lost,
    };
    Ok((kind, PyString::new(py, &error.to_string()).into_any()))
}

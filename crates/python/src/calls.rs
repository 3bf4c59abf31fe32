//! Calls of one function with the same options; the heads of their arguments are equal.

use crate::client::{ArgumentTooLarge, Blob, COPIED_MAX, Client, LONGEST_WAIT, failed};
use crate::fork::Own;
use crate::queue::{Item, Task};
use crate::submitter::Submitter;
use crate::waiters::Waiters;
use midflight_host::{PYTHON, SharedBlob, TaskSpec};
use midflight_tasks::functions::{PYTHON_SHARED_MAX, PythonCallOptions, PythonHead};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyList};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Bytes of the head of an entry without buffers.
const ENTRY_BYTES: usize = 16;
/// Buffers begin at multiples of it.
const ALIGNMENT: usize = 64;

/// Blobs that tasks need until they have ended.
pub(crate) type Holds = Vec<Arc<SharedBlob>>;

/// A function with options, to be called; Python keeps it for further calls.
#[pyclass(frozen, module = "midflight._native")]
pub(crate) struct Calls(Own<(Arc<Submitter>, Arc<Shape>)>);

pub(crate) struct Shape {
    options: PythonCallOptions,
    /// The function, and the shared arguments of all calls.
    pub(crate) blobs: Arc<Holds>,
    /// Without argument and attempts.
    task: TaskSpec,
    /// Number of calls that may be one task.
    pub(crate) size: AtomicUsize,
}

impl Shape {
    pub(crate) fn task(&self, pickles: &[Vec<u8>]) -> TaskSpec {
        let data: usize = pickles.iter().map(Vec::len).sum();
        let options = self.options_of(pickles.len(), 0);
        let mut argument = Vec::with_capacity(self.head_bytes() + 4 + ENTRY_BYTES * pickles.len() + data);
        self.append_head(&mut argument, &options, &[]);
        argument.extend_from_slice(&(pickles.len() as u32).to_le_bytes());
        let gives_back = pickles.len() > 1;
        pickles.iter().for_each(|pickle| append_entry(&mut argument, gives_back, pickle.len(), &[]));
        pickles.iter().for_each(|pickle| argument.extend_from_slice(pickle));
        self.task_of(argument, &options)
    }

    /// Options of a task of `calls` calls. `ran`: how often they have already run in one task with others.
    fn options_of(&self, calls: usize, ran: u8) -> PythonCallOptions {
        let PythonCallOptions { attempts, retries, .. } = self.options;
        let attempts = if calls > 1 { 1 } else { attempts.saturating_sub(ran).max(1) };
        PythonCallOptions { attempts, retries: retries.saturating_sub(ran.saturating_sub(1)), ..self.options }
    }

    pub(crate) fn length_of(&self, pickle: &[u8]) -> usize {
        self.head_bytes() + 4 + ENTRY_BYTES + pickle.len()
    }

    fn head_bytes(&self) -> usize {
        PythonHead::bytes(self.blobs.len() - 1)
    }

    fn append_head(&self, argument: &mut Vec<u8>, options: &PythonCallOptions, more: &[Arc<SharedBlob>]) {
        let shared = self.blobs[1..].iter().chain(more).map(|blob| blob.reference());
        options.append_head(argument, &self.blobs[0].reference(), shared);
    }

    fn task_of(&self, argument: Vec<u8>, options: &PythonCallOptions) -> TaskSpec {
        let mut task = self.task.clone();
        task.argument = Arc::new(argument);
        // The executor decides which failures are final.
        task.retries = Some(u32::from(options.attempts - 1).max(u32::from(options.retries)));
        task
    }
}

struct Entry {
    pickle: PyBackedBytes,
    buffers: Vec<PyBuffer<u8>>,
}

#[pymethods]
impl Calls {
    #[new]
    #[pyo3(signature = (client, blobs, *, python, environment, priority, resources, timeout, attempts, retries))]
    #[allow(clippy::too_many_arguments, reason = "they are named in Python")]
    fn new(
        client: &Client,
        blobs: Vec<PyRef<'_, Blob>>,
        python: (u8, u8),
        environment: u64,
        priority: u8,
        resources: u8,
        timeout: Option<f64>,
        attempts: u8,
        retries: u8,
    ) -> PyResult<Self> {
        let submitter = Arc::clone(client.submitter()?);
        let blobs = shared(&blobs)?;
        if blobs.is_empty() || blobs.len() > PYTHON_SHARED_MAX + 1 {
            return Err(PyValueError::new_err(format!("a call has at most {PYTHON_SHARED_MAX} shared arguments")));
        }
        let timeout = timeout.map(Duration::try_from_secs_f64).transpose();
        let timeout = timeout.map_err(|error| PyValueError::new_err(format!("timeout: {error}")))?;
        let mut task = TaskSpec::new(PYTHON, Vec::new());
        (task.priority, task.resources) = (priority, resources);
        let options = PythonCallOptions { python, retries, attempts, environment, timeout };
        let shape = Shape { options, blobs: Arc::new(blobs), task, size: AtomicUsize::new(1) };
        Ok(Self(Own::new((submitter, Arc::new(shape)))))
    }

    /// Submits one call, whose pickle has no buffers and no shared arguments; returns its token. `waiter` gets its end.
    fn submit(&self, py: Python<'_>, waiter: &Bound<'_, PyAny>, pickle: &Bound<'_, PyBytes>) -> PyResult<u64> {
        let (submitter, shape) = self.0.get()?;
        let pickle = pickle.as_bytes().to_vec();
        check(shape.length_of(&pickle))?;
        wait_for_room(py, submitter)?;
        let (shape, waiter) = (Arc::clone(shape), waiter.clone().unbind());
        add(py, submitter, move |token| Item::Call { token, waiter, shape, pickle })
    }

    /// Sets how many calls that are submitted one by one may be joined to a task while many are open.
    fn set_size(&self, size: usize) -> PyResult<()> {
        self.0.get()?.1.size.store(size, Ordering::Relaxed);
        Ok(())
    }

    /// Submits several calls as one task: pickles, or tuples of a pickle and a list of buffers. Returns its token. `blobs`: shared
    /// arguments in addition to the function's own. `ran`: how often a single call has already run in a task with others, which reduces its
    /// attempts. `gives_back`: a task that takes long returns the calls that it has not begun, [`super::completions::End::Part`]. `again`:
    /// does not wait for room.
    #[pyo3(signature = (waiter, calls, blobs, ran=0, gives_back=false, again=false))]
    #[allow(clippy::too_many_arguments, reason = "they are named in Python")]
    fn submit_all(
        &self,
        py: Python<'_>,
        waiter: &Bound<'_, PyAny>,
        calls: &Bound<'_, PyList>,
        blobs: Vec<PyRef<'_, Blob>>,
        ran: u8,
        gives_back: bool,
        again: bool,
    ) -> PyResult<u64> {
        let (submitter, shape) = self.0.get()?;
        let more = shared(&blobs)?;
        let entries = calls.iter().map(|call| Entry::of(&call)).collect::<PyResult<Vec<_>>>()?;
        let options = shape.options_of(entries.len(), ran);
        let argument = shape.argument(py, &entries, gives_back, &options, &more)?;
        let spec = shape.task_of(argument, &options);
        let holds = if more.is_empty() {
            Arc::clone(&shape.blobs)
        } else {
            Arc::new(shape.blobs.iter().cloned().chain(more).collect())
        };
        if !again {
            wait_for_room(py, submitter)?;
        }
        let waiters = Arc::new(Waiters::One(waiter.clone().unbind()));
        add(py, submitter, move |token| Item::Task(Task { token, waiters, spec, holds }))
    }

    /// The argument of one task of these calls, as `submit_all` sends it. Tests check it against the documented format.
    fn argument(&self, py: Python<'_>, calls: &Bound<'_, PyList>, blobs: Vec<PyRef<'_, Blob>>) -> PyResult<Vec<u8>> {
        let entries = calls.iter().map(|call| Entry::of(&call)).collect::<PyResult<Vec<_>>>()?;
        let shape = &self.0.get()?.1;
        shape.argument(py, &entries, false, &shape.options, &shared(&blobs)?)
    }
}

/// Also checks for signals.
fn wait_for_room(py: Python<'_>, submitter: &Submitter) -> PyResult<()> {
    let mut has_room = submitter.wait_for_room(Duration::ZERO);
    while !has_room {
        has_room = py.detach(|| submitter.wait_for_room(LONGEST_WAIT));
        py.check_signals()?;
    }
    Ok(())
}

fn add(py: Python<'_>, submitter: &Submitter, item: impl FnOnce(u64) -> Item) -> PyResult<u64> {
    let (token, alone) = submitter.add(item).map_err(failed)?;
    if let Some(item) = alone {
        py.detach(|| submitter.send_alone(item));
    }
    Ok(token)
}

impl Shape {
    /// `more` are shared arguments in addition to the function's own.
    fn argument(
        &self,
        py: Python<'_>,
        entries: &[Entry],
        gives_back: bool,
        options: &PythonCallOptions,
        more: &[Arc<SharedBlob>],
    ) -> PyResult<Vec<u8>> {
        let count = self.blobs.len() - 1 + more.len();
        if count > PYTHON_SHARED_MAX {
            return Err(PyValueError::new_err(format!(
                "{count} shared arguments in a call: at most {PYTHON_SHARED_MAX}, share a tuple"
            )));
        }
        let length = PythonHead::bytes(count) + 4 + entries.iter().map(Entry::length_max).sum::<usize>();
        check(length)?;
        let mut argument = Vec::with_capacity(length);
        self.append_head(&mut argument, options, more);
        let start = argument.len();
        argument.extend_from_slice(&(entries.len() as u32).to_le_bytes());
        entries.iter().for_each(|entry| append_entry(&mut argument, gives_back, entry.pickle.len(), &entry.buffers));
        let mut append_all = || {
            for Entry { pickle, buffers } in entries {
                argument.extend_from_slice(pickle);
                for buffer in buffers {
                    let padded = (argument.len() - start).next_multiple_of(ALIGNMENT);
                    argument.resize(start + padded, 0);
                    append(&mut argument, buffer);
                }
            }
        };
        if length > COPIED_MAX {
            py.detach(append_all)
        } else {
            append_all()
        }
        Ok(argument)
    }
}

impl Entry {
    fn of(call: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(pickle) = call.cast::<PyBytes>() {
            return Ok(Self { pickle: pickle.clone().into(), buffers: Vec::new() });
        }
        let (pickle, buffers): (Bound<'_, PyBytes>, Bound<'_, PyAny>) = call.extract()?;
        let buffers = buffers.try_iter()?.map(|buffer| contiguous(&buffer?));
        Ok(Self { pickle: pickle.into(), buffers: buffers.collect::<PyResult<_>>()? })
    }

    fn length_max(&self) -> usize {
        let buffers = self.buffers.iter().map(|buffer| 8 + ALIGNMENT + buffer.len_bytes());
        ENTRY_BYTES + self.pickle.len() + buffers.sum::<usize>()
    }
}

pub(crate) fn contiguous(object: &Bound<'_, PyAny>) -> PyResult<PyBuffer<u8>> {
    let buffer = PyBuffer::get(object)?;
    if buffer.is_c_contiguous() { Ok(buffer) } else { Err(PyValueError::new_err("a buffer in pieces")) }
}

/// Needs no GIL.
pub(crate) fn append(bytes: &mut Vec<u8>, buffer: &PyBuffer<u8>) {
    let (length, end) = (buffer.len_bytes(), bytes.len());
    bytes.reserve(length);
    // SAFETY: the buffer is contiguous and does not move while it is held; the vector has room. If the program writes to it at the same
    // time, the copy has some old and some new bytes, all initialised.
    unsafe {
        std::ptr::copy_nonoverlapping(buffer.buf_ptr().cast::<u8>(), bytes.as_mut_ptr().add(end), length);
        bytes.set_len(end + length);
    }
}

fn shared(blobs: &[PyRef<'_, Blob>]) -> PyResult<Vec<Arc<SharedBlob>>> {
    blobs.iter().map(|blob| blob.shared()).collect()
}

fn check(length: usize) -> PyResult<()> {
    let max = midflight_wire::tasks::ARGUMENT_BLOB_MAX as usize;
    if length > max { Err(ArgumentTooLarge::new_err(format!("{length} bytes exceed {max}"))) } else { Ok(()) }
}

fn append_entry(bytes: &mut Vec<u8>, gives_back: bool, pickle: usize, buffers: &[PyBuffer<u8>]) {
    bytes.extend([u8::from(gives_back), 0, 0, 0]);
    bytes.extend((buffers.len() as u32).to_le_bytes());
    bytes.extend((pickle as u64).to_le_bytes());
    buffers.iter().for_each(|buffer| bytes.extend((buffer.len_bytes() as u64).to_le_bytes()));
}

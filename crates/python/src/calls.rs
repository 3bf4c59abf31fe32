//! Calls of one function with the same options: the heads of their arguments are the same.

use crate::client::{Blob, Client, failed};
use crate::submitter::{Item, Submitter};
use midflight_host::{PYTHON, SharedBlob, TaskSpec};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The format of arguments.
const VERSION: u8 = 1;
/// Shared arguments of a task.
const SHARED_MAX: usize = 255;
const SHARED_AT: usize = 7;
/// The head of an entry without buffers.
const ENTRY_BYTES: usize = 16;

/// Blobs that tasks need until they have ended.
pub(crate) type Holds = Vec<Arc<SharedBlob>>;

/// How to call one function. Python keeps it for further calls.
#[pyclass(frozen, module = "midflight._native")]
pub(crate) struct Calls {
    submitter: Arc<Submitter>,
    shape: Arc<Shape>,
}

/// What calls of one function with the same options have in common.
pub(crate) struct Shape {
    head: Vec<u8>,
    pub(crate) blobs: Arc<Holds>,
    /// Without its argument.
    task: TaskSpec,
    /// So many calls may be one task.
    pub(crate) size: AtomicUsize,
}

impl Shape {
    /// One task of these calls.
    pub(crate) fn task(&self, pickles: &[Vec<u8>]) -> TaskSpec {
        let data: usize = pickles.iter().map(Vec::len).sum();
        let mut argument = Vec::with_capacity(self.head.len() + 4 + ENTRY_BYTES * pickles.len() + data);
        argument.extend_from_slice(&self.head);
        argument.extend_from_slice(&(pickles.len() as u32).to_le_bytes());
        pickles.iter().for_each(|pickle| append_entry(&mut argument, pickle.len(), &[]));
        pickles.iter().for_each(|pickle| argument.extend_from_slice(pickle));
        self.task_of(argument)
    }

    fn task_of(&self, argument: Vec<u8>) -> TaskSpec {
        TaskSpec { argument: Arc::new(argument), ..self.task.clone() }
    }
}

/// One call, in its parts.
struct Entry<'py> {
    pickle: Bound<'py, PyBytes>,
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
        let blobs: Vec<Arc<SharedBlob>> = blobs.iter().map(|blob| blob.shared()).collect();
        if blobs.is_empty() || blobs.len() > SHARED_MAX + 1 {
            return Err(PyValueError::new_err(format!("a call has at most {SHARED_MAX} shared arguments")));
        }
        let mut head = vec![b'M', b'P', VERSION, python.0, python.1, retries, attempts, (blobs.len() - 1) as u8];
        head.extend(environment.to_le_bytes());
        blobs.iter().for_each(|blob| append_reference(&mut head, blob));
        let timeout = timeout.map(Duration::try_from_secs_f64).transpose();
        let timeout = timeout.map_err(|error| PyValueError::new_err(format!("timeout: {error}")))?;
        let task = TaskSpec {
            priority,
            resources,
            timeout,
            attempts: u32::from(attempts).max(u32::from(retries) + 1),
            retry_failed: true, // the executor decides which failures are for good
            ..TaskSpec::new(PYTHON, Vec::new())
        };
        let shape = Shape { head, blobs: Arc::new(blobs), task, size: AtomicUsize::new(1) };
        Ok(Self { submitter: client.submitter()?, shape: Arc::new(shape) })
    }

    /// Submits one call, whose pickle has no buffers and no shared arguments; returns its token.
    fn submit(&self, py: Python<'_>, pickle: &Bound<'_, PyBytes>) -> PyResult<u64> {
        let pickle = pickle.as_bytes().to_vec();
        check(self.shape.head.len() + 4 + ENTRY_BYTES + pickle.len())?;
        self.add(py, Item::Call { shape: Arc::clone(&self.shape), pickle })
    }

    /// From now on, so many calls that are submitted one by one may become one task where many are open.
    fn set_size(&self, size: usize) {
        self.shape.size.store(size, Ordering::Relaxed);
    }

    /// Submits several calls as one task: pickles, or tuples of a pickle and a list of buffers. `shared` are the shared arguments
    /// that they have beside the function's own. Returns its token.
    fn submit_all(&self, py: Python<'_>, calls: &Bound<'_, PyList>, shared: Vec<PyRef<'_, Blob>>) -> PyResult<u64> {
        let entries = calls.iter().map(|call| Entry::of(&call)).collect::<PyResult<Vec<_>>>()?;
        let more: Vec<Arc<SharedBlob>> = shared.iter().map(|blob| blob.shared()).collect();
        let Shape { head, blobs, .. } = &*self.shape;
        let count = blobs.len() - 1 + more.len();
        let count = u8::try_from(count).map_err(|_| {
            PyValueError::new_err(format!("{count} shared arguments in a call: at most {SHARED_MAX}, share a tuple"))
        })?;
        let data: usize = entries.iter().map(Entry::len).sum();
        let mut argument = Vec::with_capacity(head.len() + 16 * more.len() + 4 + 64 * entries.len() + data);
        argument.extend_from_slice(head);
        argument[SHARED_AT] = count;
        more.iter().for_each(|blob| append_reference(&mut argument, blob));
        argument.extend_from_slice(&(entries.len() as u32).to_le_bytes());
        entries.iter().for_each(|entry| append_entry(&mut argument, entry.pickle.as_bytes().len(), &entry.buffers));
        for entry in &entries {
            argument.extend_from_slice(entry.pickle.as_bytes());
            for buffer in &entry.buffers {
                let start = argument.len();
                argument.resize(start + buffer.len_bytes(), 0);
                buffer.copy_to_slice(py, &mut argument[start..])?;
            }
        }
        check(argument.len())?;
        let holds =
            if more.is_empty() { Arc::clone(blobs) } else { Arc::new(blobs.iter().cloned().chain(more).collect()) };
        self.add(py, Item::Task { task: self.shape.task_of(argument), holds })
    }
}

impl Calls {
    fn add(&self, py: Python<'_>, item: Item) -> PyResult<u64> {
        let (token, due) = self.submitter.add(item).map_err(failed)?;
        if let Some(due) = due {
            py.detach(|| self.submitter.do_due(due));
        }
        Ok(token)
    }
}

impl<'py> Entry<'py> {
    fn of(call: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(pickle) = call.cast::<PyBytes>() {
            return Ok(Self { pickle: pickle.clone(), buffers: Vec::new() });
        }
        let parts = call.cast::<PyTuple>()?;
        let pickle = parts.get_item(0)?.cast::<PyBytes>()?.clone();
        let buffers = parts.get_item(1)?;
        let buffers = buffers.try_iter()?.map(|buffer| {
            let buffer = PyBuffer::get(&buffer?)?;
            if buffer.is_c_contiguous() { Ok(buffer) } else { Err(PyRuntimeError::new_err("a buffer in pieces")) }
        });
        Ok(Self { pickle, buffers: buffers.collect::<PyResult<_>>()? })
    }

    fn len(&self) -> usize {
        self.pickle.as_bytes().len() + self.buffers.iter().map(|buffer| buffer.len_bytes()).sum::<usize>()
    }
}

/// Whether an argument may have so many bytes.
fn check(length: usize) -> PyResult<()> {
    let max = midflight_wire::ARGUMENT_BLOB_MAX as usize;
    if length > max { Err(PyValueError::new_err(format!("{length} bytes exceed {max}"))) } else { Ok(()) }
}

fn append_reference(bytes: &mut Vec<u8>, blob: &SharedBlob) {
    let reference = blob.reference();
    bytes.extend(reference.id.get().to_le_bytes());
    bytes.extend(reference.length.get().to_le_bytes());
    bytes.extend(reference.port.get().to_le_bytes());
    bytes.extend([0, 0]);
}

/// The head of an entry.
fn append_entry(bytes: &mut Vec<u8>, pickle: usize, buffers: &[PyBuffer<u8>]) {
    bytes.extend([0; 4]);
    bytes.extend((buffers.len() as u32).to_le_bytes());
    bytes.extend((pickle as u64).to_le_bytes());
    buffers.iter().for_each(|buffer| bytes.extend((buffer.len_bytes() as u64).to_le_bytes()));
}

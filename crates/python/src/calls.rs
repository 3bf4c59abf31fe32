//! Calls of one function with the same options: the heads of their arguments are the same.

use crate::client::{Blob, Client, failed};
use crate::submitter::Submitter;
use midflight_host::{PYTHON, SharedBlob, TaskSpec};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use std::sync::Arc;
use std::time::Duration;

/// The format of arguments.
const VERSION: u8 = 1;
/// Shared arguments of a task.
const SHARED_MAX: usize = 255;
const SHARED_AT: usize = 7;

/// Blobs that tasks need until they have ended.
pub(crate) struct Holds {
    _blobs: Vec<Arc<SharedBlob>>,
}

/// How to call one function. Python keeps it for further calls.
#[pyclass(frozen, module = "midflight._native")]
pub(crate) struct Calls {
    submitter: Arc<Submitter>,
    blobs: Vec<Arc<SharedBlob>>,
    head: Vec<u8>,
    holds: Arc<Holds>,
    /// Without its argument.
    task: TaskSpec,
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
        let holds = Arc::new(Holds { _blobs: blobs.clone() });
        Ok(Self { submitter: client.submitter()?, blobs, head, holds, task })
    }

    /// Submits one call, whose pickle has no buffers and no shared arguments; returns its token.
    fn submit(&self, py: Python<'_>, pickle: &Bound<'_, PyBytes>) -> PyResult<u64> {
        let pickle = pickle.as_bytes();
        let mut argument = Vec::with_capacity(self.head.len() + 20 + pickle.len());
        argument.extend_from_slice(&self.head);
        argument.extend_from_slice(&1_u32.to_le_bytes());
        append_entry(&mut argument, pickle.len(), &[]);
        argument.extend_from_slice(pickle);
        self.add(py, argument, &self.holds)
    }

    /// Submits several calls as one task: pickles, or tuples of a pickle and a list of buffers. `shared` are the shared arguments
    /// that they have beside the function's own. Returns its token.
    fn submit_all(&self, py: Python<'_>, calls: &Bound<'_, PyList>, shared: Vec<PyRef<'_, Blob>>) -> PyResult<u64> {
        let entries = calls.iter().map(|call| Entry::of(&call)).collect::<PyResult<Vec<_>>>()?;
        let more: Vec<Arc<SharedBlob>> = shared.iter().map(|blob| blob.shared()).collect();
        let count = self.blobs.len() - 1 + more.len();
        let count = u8::try_from(count).map_err(|_| {
            PyValueError::new_err(format!("{count} shared arguments in a call: at most {SHARED_MAX}, share a tuple"))
        })?;
        let data: usize = entries.iter().map(Entry::len).sum();
        let mut argument = Vec::with_capacity(self.head.len() + 16 * more.len() + 4 + 64 * entries.len() + data);
        argument.extend_from_slice(&self.head);
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
        if more.is_empty() {
            return self.add(py, argument, &self.holds);
        }
        let holds = Holds { _blobs: self.blobs.iter().cloned().chain(more).collect() };
        self.add(py, argument, &Arc::new(holds))
    }
}

impl Calls {
    fn add(&self, py: Python<'_>, argument: Vec<u8>, holds: &Arc<Holds>) -> PyResult<u64> {
        let max = midflight_wire::ARGUMENT_BLOB_MAX as usize;
        if argument.len() > max {
            return Err(PyValueError::new_err(format!("{} bytes exceed {max}", argument.len())));
        }
        let task = TaskSpec { argument: Arc::new(argument), ..self.task.clone() };
        let (token, due) = self.submitter.add(task, holds).map_err(failed)?;
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

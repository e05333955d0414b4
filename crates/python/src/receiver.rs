//! Receivers, and versions that they take.

use crate::errors::{exception, name, raised, released, wait};
use crate::event::Event;
use crate::handle::Handle;
use crate::memory::view;
use crate::source::statistics;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMemoryView};
use std::os::fd::AsRawFd;
use std::sync::{Arc, PoisonError, RwLock};

/// A receiver of a group.
#[pyclass(frozen, module = "srdma")]
pub(crate) struct Receiver {
    receiver: Handle<srdma::Receiver>,
    group: u32,
}

impl Receiver {
    pub(crate) fn new(receiver: srdma::Receiver, group: u32) -> Self {
        Receiver { receiver: Handle::new(receiver), group }
    }
}

#[pymethods]
impl Receiver {
    /// The group's number at the controller.
    #[getter]
    fn group(&self) -> u32 {
        self.group
    }

    /// Takes the oldest whole version, when there is one.
    #[pyo3(signature = (timeout=60.0))]
    fn next_version(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Version> {
        let receiver = self.receiver.get(py)?;
        let version = wait(py, timeout, |timeout| receiver.next_version(timeout))?;
        Ok(Version::new(version))
    }

    /// Takes this version when it is whole; versions before it are dropped.
    #[pyo3(signature = (version, timeout=60.0))]
    fn wait(&self, py: Python<'_>, version: u64, timeout: Option<f64>) -> PyResult<Version> {
        let receiver = self.receiver.get(py)?;
        let version = wait(py, timeout, |timeout| receiver.wait(version, timeout))?;
        Ok(Version::new(version))
    }

    /// The oldest event not yet fetched, or `None`.
    fn next_event(&self, py: Python<'_>) -> PyResult<Option<Event>> {
        let event = self.receiver.get(py)?.next_event().map_err(|error| raised(py, &error))?;
        Ok(event.as_ref().map(Event::of))
    }

    /// A descriptor that is readable while there are events.
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        Ok(self.receiver.get(py)?.as_raw_fd())
    }

    /// Versions, octets and packets since the join.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = self.receiver.get(py)?.statistics().map_err(|error| raised(py, &error))?;
        statistics(py, &found)
    }

    /// Leaves the group; what is whole can still be taken.
    fn leave(&self, py: Python<'_>) -> PyResult<()> {
        let receiver = self.receiver.get(py)?;
        released(py, || receiver.leave())
    }

    /// Leaves the group and ends the receiver. Versions that were taken stay. Without effect the second time.
    fn close(&self, py: Python<'_>) {
        self.receiver.close(py);
    }

    /// The next versions, until the group ends.
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Version>> {
        let receiver = self.receiver.get(py)?;
        match wait(py, None, |timeout| match receiver.next_version(timeout) {
            Ok(version) => Ok(Some(version)),
            Err(srdma::Error::Over(srdma::Over::GroupClosed | srdma::Over::Closed)) => Ok(None),
            Err(error) => Err(error),
        })? {
            Some(version) => Ok(Some(Version::new(version))),
            None => Ok(None),
        }
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        format!("Receiver(group={})", self.group)
    }
}

/// A version that is whole: a mapping of names to read-only memory views, in place. Its slot is free for a later one
/// when it is released, and no view of it is left.
#[pyclass(frozen, mapping, module = "srdma")]
pub(crate) struct Version {
    /// Empty once it is released.
    version: RwLock<Option<Arc<srdma::Version>>>,
    number: u64,
}

impl Version {
    fn new(version: srdma::Version) -> Self {
        Version { number: version.number(), version: RwLock::new(Some(Arc::new(version))) }
    }

    fn get(&self, py: Python<'_>) -> PyResult<Arc<srdma::Version>> {
        let version = self.version.read().unwrap_or_else(PoisonError::into_inner);
        version.clone().ok_or_else(|| exception(py, name::Closed, "the version is released"))
    }
}

#[pymethods]
impl Version {
    /// Its number.
    #[getter]
    fn number(&self) -> u64 {
        self.number
    }

    /// Names of its buffers, in order.
    fn keys(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.get(py)?.manifest().buffers().iter().map(|entry| entry.name.clone()).collect())
    }

    /// Names and memory views, in order.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Vec<(String, Bound<'py, PyMemoryView>)>> {
        let version = self.get(py)?;
        let names = version.manifest().buffers().iter().map(|entry| entry.name.clone());
        names.enumerate().map(|(index, name)| Ok((name, view(py, Arc::clone(&version), index)?))).collect()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyMemoryView>> {
        let version = self.get(py)?;
        let index = version.manifest().buffers().iter().position(|entry| entry.name == name);
        view(py, version, index.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.get(py)?.manifest().buffers().len())
    }

    fn __contains__(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        Ok(self.get(py)?.manifest().buffers().iter().any(|entry| entry.name == name))
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(self.keys(py)?.into_pyobject(py)?.try_iter()?.into_any().unbind())
    }

    /// Releases it. Views of its buffers keep their memory, and with it the slot.
    fn release(&self) {
        drop(self.version.write().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.release();
    }

    fn __repr__(&self) -> String {
        format!("Version({})", self.number)
    }
}

//! Sources.

use crate::errors::{raised, released, wait};
use crate::event::Event;
use crate::handle::Handle;
use crate::memory;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping};
use srdma::{Buffer, Statistics};
use std::os::fd::AsRawFd;

/// The source of a group.
#[pyclass(frozen, module = "srdma")]
pub(crate) struct Source {
    source: Handle<srdma::Source>,
    group: u32,
}

impl Source {
    pub(crate) fn new(source: srdma::Source) -> Self {
        Source { group: source.group(), source: Handle::new(source) }
    }
}

/// Names and objects of a mapping, or of pairs.
fn pairs<'py>(buffers: &Bound<'py, PyAny>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    let pairs = match buffers.cast::<PyMapping>() {
        Ok(mapping) => mapping.items()?.into_any(),
        Err(_) => buffers.clone(),
    };
    pairs.try_iter()?.map(|pair| pair?.extract()).collect()
}

/// Lengths of such buffers, or of numbers.
pub(crate) fn lengths(buffers: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    if let Ok(lengths) = buffers.extract::<Vec<u64>>() {
        return Ok(lengths);
    }
    let length = |(name, object): (String, Bound<'_, PyAny>)| Ok(memory::of(name, &object)?.length_octets());
    pairs(buffers)?.into_iter().map(length).collect()
}

/// Statistics by their names.
pub(crate) fn statistics<'py>(py: Python<'py>, found: &Statistics) -> PyResult<Bound<'py, PyDict>> {
    let values = PyDict::new(py);
    let numbers = [
        ("versions", found.versions),
        ("octets", found.octets),
        ("failed", found.failed),
        ("waiting", found.waiting),
        ("slow", found.slow),
        ("strays", found.strays),
    ];
    numbers.into_iter().try_for_each(|(name, value)| values.set_item(name, value))?;
    if let Some(packets) = found.packets {
        let numbers = [
            ("packets_sent", packets.sent),
            ("packets_retransmitted", packets.retransmitted),
            ("packets_acknowledged", packets.acknowledged),
            ("timeouts", packets.timeouts),
            ("naks", packets.naks),
            ("rnr_naks", packets.rnr_naks),
            ("cnps", packets.cnps),
            ("octets_received", packets.octets_received),
            ("duplicates", packets.duplicates),
        ];
        numbers.into_iter().try_for_each(|(name, value)| values.set_item(name, value))?;
    }
    Ok(values)
}

#[pymethods]
impl Source {
    /// The group's number at the controller.
    #[getter]
    fn group(&self) -> u32 {
        self.group
    }

    /// Waits for so many receivers, and commits the group: from then on versions are sent.
    #[pyo3(signature = (receivers, timeout=60.0))]
    fn commit(&self, py: Python<'_>, receivers: u32, timeout: Option<f64>) -> PyResult<()> {
        let source = self.source.get(py)?;
        wait(py, timeout, |timeout| source.commit(receivers, timeout))
    }

    /// Publishes a version, whose number is greater than those before: a mapping, or pairs, of names and buffers. They
    /// must not change until it is published. Returns at once.
    fn publish(&self, py: Python<'_>, version: u64, buffers: &Bound<'_, PyAny>) -> PyResult<()> {
        let source = self.source.get(py)?;
        let given = pairs(buffers)?.into_iter().map(|(name, object)| memory::of(name, &object));
        let given = given.collect::<PyResult<Vec<Buffer>>>()?;
        released(py, || source.publish(version, given))
    }

    /// Waits until a version is published: all members have all its octets.
    #[pyo3(signature = (version, timeout=60.0))]
    fn wait(&self, py: Python<'_>, version: u64, timeout: Option<f64>) -> PyResult<()> {
        let source = self.source.get(py)?;
        wait(py, timeout, |timeout| source.wait(version, timeout))
    }

    /// The oldest event not yet fetched, or `None`.
    fn next_event(&self, py: Python<'_>) -> PyResult<Option<Event>> {
        let event = self.source.get(py)?.next_event().map_err(|error| raised(py, &error))?;
        Ok(event.as_ref().map(Event::of))
    }

    /// A descriptor that is readable while there are events.
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        Ok(self.source.get(py)?.as_raw_fd())
    }

    /// Versions, octets and packets since the group was created.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = self.source.get(py)?.statistics().map_err(|error| raised(py, &error))?;
        statistics(py, &found)
    }

    /// Ends the source and closes the group; versions that are not published fail. Without effect the second time.
    fn close(&self, py: Python<'_>) {
        self.source.close(py);
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        format!("Source(group={})", self.group)
    }
}

//! Handles that can be closed: by a call, with their objects, or when the interpreter ends.

use crate::errors::{exception, name};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

/// A source or a receiver, until it is closed.
type Shared<T> = RwLock<Option<Arc<T>>>;

/// A handle of the library. Dropping the last reference closes it: a call of another thread ends before.
pub(crate) struct Handle<T: Send + Sync + 'static>(Arc<Shared<T>>);

/// What closes each handle that is open.
static OPEN: Mutex<Vec<Box<dyn Open>>> = Mutex::new(Vec::new());

trait Open: Send {
    fn is_open(&self) -> bool;
    fn close(&self);
}

impl<T: Send + Sync> Open for Weak<Shared<T>> {
    fn is_open(&self) -> bool {
        self.upgrade().is_some_and(|shared| shared.read().unwrap_or_else(PoisonError::into_inner).is_some())
    }

    fn close(&self) {
        if let Some(shared) = self.upgrade() {
            drop(shared.write().unwrap_or_else(PoisonError::into_inner).take());
        }
    }
}

impl<T: Send + Sync + 'static> Handle<T> {
    pub(crate) fn new(value: T) -> Self {
        let shared = Arc::new(RwLock::new(Some(Arc::new(value))));
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|handle| handle.is_open());
        open.push(Box::new(Arc::downgrade(&shared)));
        Handle(shared)
    }

    /// What it has, for a call.
    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<Arc<T>> {
        let shared = self.0.read().unwrap_or_else(PoisonError::into_inner);
        shared.clone().ok_or_else(|| exception(py, name::Closed, "the handle is closed"))
    }

    /// Closes it; without effect the second time. Its thread may need the interpreter's lock for the buffers that it
    /// returns.
    pub(crate) fn close(&self, py: Python<'_>) {
        let value = self.0.write().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(value));
    }
}

impl<T: Send + Sync + 'static> Drop for Handle<T> {
    fn drop(&mut self) {
        let value = self.0.write().unwrap_or_else(PoisonError::into_inner).take();
        if value.is_some() {
            // When the interpreter ends all handles have been closed.
            let _ = Python::try_attach(|py| py.detach(|| drop(value)));
        }
    }
}

/// Closes all handles, before the interpreter ends: later no thread gets its lock.
#[pyfunction]
pub(crate) fn close_all(py: Python<'_>) {
    let open = std::mem::take(&mut *OPEN.lock().unwrap_or_else(PoisonError::into_inner));
    py.detach(|| open.into_iter().for_each(|handle| handle.close()));
}

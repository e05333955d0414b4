//! The source of a controller's group: a thread that asks what to do, beside the loop that sends.

mod baton;

use baton::Baton;
use srdma_api::{Client, SourceOrder};
use srdma_host::{Gate, Passage, SourceState};
use srdma_wire::Psn;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long the controller may wait for another order: what was acknowledged is told as often.
const WAIT: Duration = Duration::from_secs(1);
/// How soon a controller that was not reached is tried again.
const RETRY: Duration = Duration::from_millis(300);

/// What the thread and the loop share.
struct Shared {
    baton: Mutex<Baton>,
    changed: Condvar,
}

/// The loop's end. The thread ends with it.
pub(crate) struct Source(Arc<Shared>);

impl Source {
    /// Begins to ask what the source of a group is to do.
    pub(crate) fn start(client: Client, group: u32, initial_psn: Psn) -> std::io::Result<Self> {
        let shared = Arc::new(Shared { baton: Mutex::new(Baton::new(initial_psn)), changed: Condvar::new() });
        let of_thread = Arc::downgrade(&shared);
        let path = format!("/v1/groups/{group}/source");
        thread::Builder::new().name("source".to_owned()).spawn(move || {
            while let Some(shared) = of_thread.upgrade() {
                let report = shared.calmed().report(WAIT.as_millis() as u32);
                match client.post::<SourceOrder>(&path, &report, None) {
                    Ok(reply) => {
                        shared.lock().take(reply.value);
                        shared.changed.notify_all();
                    }
                    Err(error) if error.problem().is_some_and(|problem| problem.name() == "unknown-group") => {
                        shared.lock().take(SourceOrder::Closed);
                        shared.changed.notify_all();
                        return;
                    }
                    // The source goes on as it was told last.
                    Err(_) => thread::sleep(RETRY),
                }
            }
        })?;
        Ok(Source(shared))
    }

    /// Waits until the source may send for the first time; false: the group is closed.
    pub(crate) fn released(&self) -> bool {
        let mut baton = self.0.lock();
        loop {
            match baton.passage() {
                Passage::Open => return true,
                Passage::Closed => return false,
                Passage::Shut => baton = self.0.changed.wait(baton).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

impl Gate for Source {
    fn pass(&mut self, state: SourceState) -> Passage {
        let mut baton = self.0.lock();
        let was_calming = baton.is_calming();
        let passage = baton.pass(state);
        if was_calming && !baton.is_calming() {
            self.0.changed.notify_all();
        }
        passage
    }
}

impl Shared {
    /// The baton, whoever has panicked with it: it is a value that is always whole.
    fn lock(&self) -> MutexGuard<'_, Baton> {
        self.baton.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The baton when there is something to report: a source that is asked to pause is quiet soon.
    fn calmed(&self) -> MutexGuard<'_, Baton> {
        let waited = self.changed.wait_timeout_while(self.lock(), WAIT, |baton| baton.is_calming());
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

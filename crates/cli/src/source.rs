//! The source of a controller's group: a thread that asks what to do, beside the loop that sends.

mod baton;

use baton::Baton;
use srdma_api::{Client, ClientError, ProblemType, SourceOrder};
use srdma_host::{Gate, Passage, SourceState};
use srdma_wire::Psn;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long the controller may wait for another order: what was acknowledged is told as often.
const WAIT: Duration = Duration::from_secs(1);
/// How soon a controller that was not reached is tried again.
const RETRY: Duration = Duration::from_millis(300);
/// How long a controller that is not reached is told the last word.
const LAST_WORD: Duration = Duration::from_secs(2);

/// What the thread and the loop share.
struct Shared {
    baton: Mutex<Baton>,
    changed: Condvar,
}

/// The loop's end. The thread ends with it, and the controller is told that nothing more is sent.
pub(crate) struct Source {
    shared: Arc<Shared>,
    client: Client,
    group: u32,
}

impl Source {
    /// Begins to ask what the source of a group is to do.
    pub(crate) fn start(client: Client, group: u32, initial_psn: Psn) -> std::io::Result<Self> {
        let shared = Arc::new(Shared { baton: Mutex::new(Baton::new(initial_psn)), changed: Condvar::new() });
        let of_thread = Arc::downgrade(&shared);
        let source = Source { shared, client: client.clone(), group };
        thread::Builder::new().name("source".to_owned()).spawn(move || {
            while let Some(shared) = of_thread.upgrade() {
                let report = shared.calmed().report(WAIT.as_millis() as u32);
                match client.report_source(group, &report) {
                    Ok(order) => {
                        shared.lock().take(order);
                        shared.changed.notify_all();
                    }
                    Err(error) if is_ended(&error) => {
                        shared.lock().take(SourceOrder::Closed);
                        shared.changed.notify_all();
                        return;
                    }
                    // The source goes on as it was told last.
                    Err(_) => thread::sleep(RETRY),
                }
            }
        })?;
        Ok(source)
    }

    /// Waits until the source may send for the first time; false: the group is closed.
    pub(crate) fn released(&self) -> bool {
        let mut baton = self.shared.lock();
        loop {
            match baton.passage() {
                Passage::Open => return true,
                Passage::Closed => return false,
                Passage::Shut => baton = self.shared.changed.wait(baton).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

impl Gate for Source {
    fn pass(&mut self, state: SourceState) -> Passage {
        let mut baton = self.shared.lock();
        let was_calming = baton.is_calming();
        let passage = baton.pass(state);
        if was_calming && !baton.is_calming() {
            self.shared.changed.notify_all();
        }
        passage
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        let report = {
            let baton = self.shared.lock();
            if baton.passage() == Passage::Closed {
                return;
            }
            baton.last_report()
        };
        let since = Instant::now();
        loop {
            match self.client.report_source(self.group, &report) {
                // A controller that is not told finds it out by the silence.
                Err(error) if error.problem().is_none() && since.elapsed() < LAST_WORD => thread::sleep(RETRY),
                Ok(_) | Err(_) => return,
            }
        }
    }
}

/// Whether the group or its source has ended.
fn is_ended(error: &ClientError) -> bool {
    error.is(ProblemType::UnknownGroup) || error.is(ProblemType::SourceEnded)
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

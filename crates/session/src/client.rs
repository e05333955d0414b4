//! The source of a controller's group: a thread that exchanges reports and orders, beside the loop that sends.

use crate::source_session::SourceSession;
use srdma_api::{Client, ClientError, ProblemType, SourceOrder};
use srdma_host::{SessionState, SourceControl, StreamProgress};
use srdma_wire::Psn;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Limit of the controller's wait for another order; also the interval of progress reports.
const WAIT: Duration = Duration::from_secs(1);
/// Interval for retrying requests that did not reach the controller.
const RETRY: Duration = Duration::from_millis(300);
/// Timeout of the last report, within which it is retried.
const LAST_REPORT_TIMEOUT: Duration = Duration::from_secs(2);

struct Shared {
    session: Mutex<SourceSession>,
    changed: Condvar,
}

/// The source's connection to its controller, held by the sending loop. Dropping it ends the thread and reports the end
/// of the source.
pub struct SourceClient {
    shared: Arc<Shared>,
    client: Client,
    group: u32,
}

impl SourceClient {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub fn start(client: Client, group: u32, initial_psn: Psn) -> std::io::Result<Self> {
        let shared = Arc::new(Shared { session: Mutex::new(SourceSession::new(initial_psn)), changed: Condvar::new() });
        let of_thread = Arc::downgrade(&shared);
        let source = SourceClient { shared, client: client.clone(), group };
        thread::Builder::new().name("source".to_owned()).spawn(move || {
            while let Some(shared) = of_thread.upgrade() {
                let report = shared.wait_while_draining().report(WAIT.as_millis() as u32);
                match client.report_source(group, &report) {
                    Ok(order) => {
                        shared.lock().apply(order);
                        shared.changed.notify_all();
                    }
                    Err(error) if is_ended(&error) => {
                        shared.lock().apply(SourceOrder::End);
                        shared.changed.notify_all();
                        return;
                    }
                    // The last order stays in effect.
                    Err(_) => thread::sleep(RETRY),
                }
            }
        })?;
        Ok(source)
    }

    /// Waits until the source may send for the first time; false: the group is closed.
    pub fn wait_until_sending(&self) -> bool {
        let mut session = self.shared.lock();
        loop {
            match session.state() {
                SessionState::Sending => return true,
                SessionState::Ended => return false,
                SessionState::Draining | SessionState::Paused => {
                    session = self.shared.changed.wait(session).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

impl SourceControl for SourceClient {
    fn update(&mut self, progress: StreamProgress) -> SessionState {
        let mut session = self.shared.lock();
        let was_draining = session.is_draining();
        let state = session.update(progress);
        if was_draining && !session.is_draining() {
            self.shared.changed.notify_all();
        }
        state
    }
}

impl Drop for SourceClient {
    fn drop(&mut self) {
        let report = {
            let session = self.shared.lock();
            if session.state() == SessionState::Ended {
                return;
            }
            session.last_report()
        };
        let since = Instant::now();
        loop {
            match self.client.report_source(self.group, &report) {
                // A controller that misses the report detects the end by its timeout.
                Err(error) if error.problem().is_none() && since.elapsed() < LAST_REPORT_TIMEOUT => {
                    thread::sleep(RETRY);
                }
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
    /// Locks the session. A panic of the other thread leaves it valid: its methods do not panic.
    fn lock(&self) -> MutexGuard<'_, SourceSession> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the session when it is no longer draining, or after a timeout: a draining source is paused soon.
    fn wait_while_draining(&self) -> MutexGuard<'_, SourceSession> {
        let waited = self.changed.wait_timeout_while(self.lock(), WAIT, |session| session.is_draining());
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

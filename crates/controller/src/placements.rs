//! Placements of jobs, each on a thread of its own: requests and nodes do not wait for them (D103).
//!
//! ```text
//!   request ──► snapshot (locked) ──► thread: evaluate ──► apply (locked), if nothing has changed since
//!                    ▲                                       │ otherwise
//!                    └───────────────────────────────────────┘
//! ```

use crate::service::{RequestError, Service};
use crate::store::StoreError;
use srdma_api::ProblemType;
use srdma_controller_core::{Deadline, JobOutcome, JobRequest, JobTask, Phase, Principal, Refusal};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, oneshot};

/// Attempts to evaluate a change on the newest state.
const ATTEMPTS: usize = 3;

/// Limit of concurrent views of jobs, whose cost grows with the jobs; others wait.
const VIEWS: usize = 2;

/// Counts running placements, and limits them.
pub(crate) struct Placements {
    most: usize,
    most_per_tenant: usize,
    /// Running ones by tenant; the operators are the one without a name, and do not count among all.
    running: Arc<Mutex<BTreeMap<Option<String>, usize>>>,
    views: Semaphore,
}

/// A running placement, until it is dropped.
struct Slot {
    running: Arc<Mutex<BTreeMap<Option<String>, usize>>>,
    tenant: Option<String>,
}

impl Placements {
    pub(crate) fn new(most: usize, most_per_tenant: usize) -> Self {
        Placements { most, most_per_tenant, running: Arc::default(), views: Semaphore::new(VIEWS) }
    }

    /// Begins a placement of a tenant, or of an operator.
    fn begin(&self, tenant: Option<&str>) -> Result<Slot, Refusal> {
        let mut running = lock(&self.running);
        let own = running.get(&tenant.map(str::to_owned)).copied().unwrap_or(0);
        let of_tenants: usize = running.iter().filter(|(tenant, _)| tenant.is_some()).map(|(_, count)| count).sum();
        let refused = |text: String| Err(Refusal::new(ProblemType::TooManyPlacements, text));
        if own >= self.most_per_tenant {
            let whose = tenant.map_or_else(|| "the operators".to_owned(), |tenant| format!("tenant {tenant}"));
            return refused(format!("{own} placements of {whose} are running: repeat the request when one has ended"));
        }
        if tenant.is_some() && of_tenants >= self.most {
            return refused("placements of other tenants are running: repeat the request later".to_owned());
        }
        let tenant = tenant.map(str::to_owned);
        *running.entry(tenant.clone()).or_default() += 1;
        Ok(Slot { running: Arc::clone(&self.running), tenant })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut running = lock(&self.running);
        if let Some(count) = running.get_mut(&self.tenant) {
            *count -= 1;
            if *count == 0 {
                running.remove(&self.tenant);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Counts are whole at every moment.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Cancels the placement of a client that has left.
struct Cancellation(Arc<AtomicBool>);

impl Drop for Cancellation {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The limits of a placement.
#[derive(Clone)]
struct Limits {
    started: Instant,
    deadline: Duration,
    is_cancelled: Arc<AtomicBool>,
}

impl Limits {
    fn phase(&self) -> Phase {
        let elapsed = self.started.elapsed();
        if self.is_cancelled.load(Ordering::Relaxed) || elapsed >= 2 * self.deadline {
            Phase::Stop
        } else if elapsed >= self.deadline {
            Phase::Place
        } else {
            Phase::Improve
        }
    }
}

impl Service {
    /// Evaluates a change of jobs, makes it unless it is a question, and returns the answer as JSON.
    pub(crate) async fn change_jobs(
        self: &Arc<Self>,
        principal: &Principal,
        request: JobRequest,
    ) -> Result<String, RequestError> {
        let request = Arc::new(request);
        let mut task = self.read(|core| core.job_task(principal, &request))?;
        let slot = Arc::new(self.placements().begin(principal.tenant.as_deref())?);
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let _cancels = Cancellation(Arc::clone(&is_cancelled));
        let limits = Limits { started: Instant::now(), deadline: self.placement_deadline(), is_cancelled };
        for _ in 0..ATTEMPTS {
            let (outcome, body) = evaluate(task, limits.clone(), Arc::clone(&slot)).await?;
            if !outcome.is_change() {
                discard(outcome);
                return Ok(body);
            }
            // On a task of its own: a client that leaves does not leave chunks behind.
            let applied = tokio::spawn(Arc::clone(self).apply_jobs(outcome, Arc::clone(&slot)));
            if applied.await.map_err(|_| failed())?? {
                return Ok(body);
            }
            task = self.read(|core| core.job_task(principal, &request))?;
        }
        let text = format!("other changes of jobs came first, {ATTEMPTS} times: repeat the request");
        Err(Refusal::new(ProblemType::Busy, text).into())
    }

    /// Writes the chunks of a change one by one, so that other writes come between them, and makes the change. `false`:
    /// another one was made meanwhile.
    async fn apply_jobs(self: Arc<Self>, mut outcome: JobOutcome, _slot: Arc<Slot>) -> Result<bool, StoreError> {
        let (chunks, undo) = outcome.take_chunks();
        for chunk in chunks {
            self.transaction(|core| core.write_chunk(chunk)).durable().await?;
        }
        let is_applied = self.transaction(|core| core.apply_jobs(&mut outcome)).durable().await?;
        discard(outcome);
        for chunk in undo.into_iter().filter(|_| !is_applied) {
            self.transaction(|core| core.write_chunk(chunk)).durable().await?;
        }
        Ok(is_applied)
    }

    /// A job with its flows as JSON, and its version.
    pub(crate) async fn job(
        &self,
        principal: &Principal,
        tenant: Option<&str>,
        name: String,
    ) -> Result<(String, u64), RequestError> {
        // The semaphore is never closed.
        let _permit = self.placements().views.acquire().await;
        let (jobs, tenant) = self.read(|core| core.jobs_of(principal, tenant))?;
        let view = move || {
            let job = jobs.view(tenant.as_deref(), &name)?;
            Ok((serde_json::to_string(&job).unwrap_or_default(), job.version))
        };
        tokio::task::spawn_blocking(view).await.map_err(|_| failed())?
    }
}

/// Evaluates a task on a thread of its own, which also writes the answer as JSON.
async fn evaluate(task: JobTask, limits: Limits, slot: Arc<Slot>) -> Result<(JobOutcome, String), Refusal> {
    let (sender, receiver) = oneshot::channel();
    let run = move || {
        let phase = || limits.phase();
        let outcome = task.run(Deadline::of(&phase));
        let answer = outcome.map(|outcome| {
            let body = serde_json::to_string(outcome.answer()).unwrap_or_default();
            (outcome, body)
        });
        drop(task);
        // A client that has left has given its own reference back: this one is the last.
        drop(slot);
        // The client may have left.
        let _ = sender.send(answer);
    };
    let spawned = std::thread::Builder::new().name("placement".to_owned()).spawn(run);
    spawned.map_err(|error| Refusal::new(ProblemType::TooManyPlacements, format!("no thread: {error}")))?;
    receiver.await.map_err(|_| failed())?
}

fn failed() -> Refusal {
    Refusal::new(ProblemType::JobConflict, "the controller failed in this request; its log has the reason")
}

/// Drops a large value where no request waits for it.
fn discard(outcome: JobOutcome) {
    drop(tokio::task::spawn_blocking(move || drop(outcome)));
}

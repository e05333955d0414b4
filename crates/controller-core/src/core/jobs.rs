//! Jobs on the fabric (PP-4-1). A change is evaluated apart from the core, on a snapshot, and then applied if the jobs
//! are still those of the snapshot (D103).

use super::Core;
use crate::jobs::{Evaluated, JobError, JobRow, JobRows, Jobs};
use crate::principal::Principal;
use crate::refusal::Refusal;
use crate::rows::Write;
use crate::settings::{DEFAULT_TENANT, Tenant};
use srdma_api::ProblemType;
use srdma_api::{EventKind, Job, JobPage, NewJob, WhatIf, WhatIfAnswer};
use srdma_placement::Deadline;
use std::sync::Arc;

/// Jobs of a page: default and maximum.
const PAGE: usize = 100;
const MAX_PAGE: usize = 10_000;

/// A request to change jobs, or to evaluate a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRequest {
    kind: Kind,
    /// The owner of its jobs, as named in the request.
    tenant: Option<String>,
    change: WhatIf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Place,
    Remove,
    Drain,
    Release,
    WhatIf,
}

impl JobRequest {
    /// Places jobs: all of them or none.
    pub fn place(tenant: Option<String>, new: NewJob) -> Self {
        JobRequest { kind: Kind::Place, tenant, change: WhatIf { add: Some(new), ..WhatIf::default() } }
    }

    /// Removes a job.
    pub fn remove(tenant: Option<String>, name: String) -> Self {
        JobRequest { kind: Kind::Remove, tenant, change: WhatIf { remove: vec![name], ..WhatIf::default() } }
    }

    /// Drains switches or links and moves their flows, or releases them.
    pub fn drain(names: Vec<String>, is_drained: bool) -> Self {
        let (kind, change) = match is_drained {
            true => (Kind::Drain, WhatIf { drain: names, ..WhatIf::default() }),
            false => (Kind::Release, WhatIf { release: names, ..WhatIf::default() }),
        };
        JobRequest { kind, tenant: None, change }
    }

    /// Evaluates a change without making it.
    pub fn what_if(tenant: Option<String>, change: WhatIf) -> Self {
        JobRequest { kind: Kind::WhatIf, tenant, change }
    }
}

/// A permitted request, with a snapshot of the jobs: it is evaluated without the core.
#[derive(Clone, Debug)]
pub struct JobTask {
    request: Arc<JobRequest>,
    jobs: Jobs,
    tenant: Tenant,
    /// The tenant that receives the answer; none for an operator.
    viewer: Option<String>,
    /// Name of the token.
    who: String,
}

/// The result of a task, to be [applied](Core::apply_jobs).
#[derive(Debug)]
pub struct JobOutcome {
    evaluated: Evaluated,
    is_change: bool,
    who: String,
    /// Writes of chunks, each to be durable [before](Core::write_chunk) the change is applied.
    chunks: Vec<Write>,
    writes: Vec<Write>,
    /// Actions and targets.
    audit: Vec<(&'static str, String)>,
    events: Vec<(String, EventKind)>,
}

impl JobTask {
    /// Evaluates the request. It may take long.
    ///
    /// # Errors
    ///
    /// The change is not possible, or the time is over.
    pub fn run(&self, deadline: Deadline<'_>) -> Result<JobOutcome, Refusal> {
        let JobRequest { kind, change, .. } = &*self.request;
        let evaluated = self.jobs.evaluate(change, &self.tenant, self.viewer.as_deref(), deadline);
        let mut evaluated = evaluated.map_err(|error| refused(&error))?;
        let owner = || self.tenant.name.clone();
        let mut added: Vec<&String> = evaluated.answer.added.iter().map(|flow| &flow.job).collect();
        added.dedup();
        let (audit, events) = match kind {
            Kind::Place => (
                added.iter().map(|name| ("place", format!("job {name} of {}", self.tenant.name))).collect(),
                added.iter().map(|name| (owner(), EventKind::JobPlaced { job: (*name).clone() })).collect(),
            ),
            Kind::Remove => (
                change.remove.iter().map(|name| ("remove", format!("job {name} of {}", self.tenant.name))).collect(),
                change.remove.iter().map(|name| (owner(), EventKind::JobRemoved { job: name.clone() })).collect(),
            ),
            Kind::Drain => (vec![("drain", format!("fabric {}", change.drain.join(" ")))], Vec::new()),
            Kind::Release => (vec![("release", format!("fabric {}", change.release.join(" ")))], Vec::new()),
            Kind::WhatIf => (Vec::new(), Vec::new()),
        };
        let JobRows { chunks, rows } = std::mem::take(&mut evaluated.rows);
        let is_change = *kind != Kind::WhatIf;
        let writes = |rows: Vec<JobRow>| rows.into_iter().filter(|_| is_change).map(write_of).collect();
        let (chunks, writes) = (writes(chunks), writes(rows));
        Ok(JobOutcome { evaluated, is_change, who: self.who.clone(), chunks, writes, audit, events })
    }
}

impl JobOutcome {
    /// Whether it is to be applied; otherwise it was a question.
    pub fn is_change(&self) -> bool {
        self.is_change
    }

    /// Takes the writes of chunks, and those that undo them if the change is not applied.
    pub fn take_chunks(&mut self) -> (Vec<Write>, Vec<Write>) {
        let chunks = std::mem::take(&mut self.chunks);
        let undo = chunks.iter().map(|chunk| Write::Delete { key: chunk.key().to_owned() }).collect();
        (chunks, undo)
    }

    /// The effect.
    pub fn answer(&self) -> &WhatIfAnswer {
        &self.evaluated.answer
    }
}

impl Core {
    /// Checks that the principal may make a request, and takes a snapshot for it.
    pub fn job_task(&self, principal: &Principal, request: &Arc<JobRequest>) -> Result<JobTask, Refusal> {
        let named = request.tenant.as_deref();
        let owner = match request.kind {
            Kind::Place | Kind::Remove => principal.tenant_of_new(named)?,
            Kind::WhatIf => principal.may_read_network().map(|()| named.unwrap_or(DEFAULT_TENANT).to_owned())?,
            Kind::Drain | Kind::Release => principal.may_operate().map(|()| DEFAULT_TENANT.to_owned())?,
        };
        let jobs = self.jobs.as_ref().ok_or_else(no_fabric)?;
        let tenant = match self.settings.tenants.get(&owner) {
            Some(tenant) => tenant.clone(),
            // Jobs are left of a tenant that was configured once, and links are no tenant's.
            None if request.kind == Kind::Remove && jobs.has_tenant(&owner) => left_over(owner),
            None if named.is_none() && request.change.add.is_none() => left_over(owner),
            None => return Err(unknown_tenant(&owner)),
        };
        let (viewer, who) = (principal.tenant.clone(), principal.name.clone());
        Ok(JobTask { request: Arc::clone(request), jobs: jobs.clone(), tenant, viewer, who })
    }

    /// Writes a chunk of the rows of a change that is not applied yet, or undoes such a write.
    pub fn write_chunk(&mut self, chunk: Write) {
        self.effects.writes.push(chunk);
    }

    /// Makes an evaluated change, whose chunks are durable, if the jobs are still those of its snapshot; `false` if
    /// they are not. The outcome has no writes left then or afterwards, but its answer.
    pub fn apply_jobs(&mut self, outcome: &mut JobOutcome) -> bool {
        let Some(jobs) = &mut self.jobs else { return false };
        if !jobs.apply(&outcome.evaluated) {
            return false;
        }
        self.effects.writes.append(&mut outcome.writes);
        for (action, target) in std::mem::take(&mut outcome.audit) {
            self.audit(&outcome.who, action, target);
        }
        for (tenant, kind) in std::mem::take(&mut outcome.events) {
            self.emit(Some(&tenant), kind);
        }
        true
    }

    /// A snapshot of the jobs, to read one of this tenant's; the tenant, none if an operator names none. Another
    /// tenant's jobs are refused as jobs that do not exist.
    pub fn jobs_of(&self, principal: &Principal, named: Option<&str>) -> Result<(Jobs, Option<String>), Refusal> {
        let tenant = named.or(principal.tenant.as_deref());
        principal.may_read(tenant.unwrap_or_default())?;
        let jobs = self.jobs.as_ref().ok_or_else(no_fabric)?;
        Ok((jobs.clone(), tenant.map(str::to_owned)))
    }

    /// A page of the jobs that the principal may read, of one tenant or of all.
    pub fn job_page(
        &self,
        principal: &Principal,
        named: Option<&str>,
        after: Option<&str>,
        limit: Option<usize>,
    ) -> Result<JobPage, Refusal> {
        let tenant = named.or(principal.tenant.as_deref());
        principal.may_read(tenant.unwrap_or_default())?;
        let limit = limit.unwrap_or(PAGE).clamp(1, MAX_PAGE);
        Ok(self.jobs.as_ref().ok_or_else(no_fabric)?.page(tenant, after, limit))
    }

    /// Restores the stored jobs.
    pub fn restore_jobs(&mut self, mut jobs: Jobs, rows: &[JobRow]) -> Result<(), JobError> {
        let changed = jobs.restore(rows)?;
        self.effects.writes.extend(changed.into_iter().map(write_of));
        self.jobs = Some(jobs);
        Ok(())
    }
}

impl Jobs {
    /// A job with its flows, for a client. Without a tenant it is the job of the default tenant, or the only one of
    /// this name. What it costs grows with the job.
    pub fn view(&self, tenant: Option<&str>, name: &str) -> Result<Job, Refusal> {
        let tenant = tenant.or_else(|| self.owner_of(name)).unwrap_or(DEFAULT_TENANT);
        self.get(tenant, name).map_err(|error| refused(&error))
    }
}

fn write_of(JobRow { key, value }: JobRow) -> Write {
    match value {
        Some(value) => Write::Put { key, value },
        None => Write::Delete { key },
    }
}

/// A tenant of which only the name is known, and whose jobs are removed.
fn left_over(name: String) -> Tenant {
    Tenant { name, ..Tenant::default() }
}

fn unknown_tenant(name: &str) -> Refusal {
    Refusal::new(ProblemType::OtherTenant, format!("tenant {name} is not configured"))
}

fn no_fabric() -> Refusal {
    Refusal::new(ProblemType::NoFabric, "controller.toml has no `fabric` to place jobs on")
}

fn refused(error: &JobError) -> Refusal {
    let kind = match error {
        JobError::Unknown { .. } => ProblemType::UnknownJob,
        JobError::NotJobs(_) | JobError::NoJobs | JobError::Name { .. } | JobError::NoFlows { .. } => {
            ProblemType::InvalidRequest
        }
        JobError::FlowQuota { .. } | JobError::JobQuota { .. } => ProblemType::JobQuotaExceeded,
        JobError::Nic { .. } | JobError::Number { .. } => ProblemType::JobNotPermitted,
        JobError::TimeOver => ProblemType::PlacementTimeout,
        _ => ProblemType::JobConflict,
    };
    Refusal::new(kind, error.to_string())
}

//! Jobs on the fabric (PP-4-1).

use super::Core;
use crate::jobs::{JobError, JobRow, Jobs};
use crate::principal::Principal;
use crate::refusal::Refusal;
use crate::rows::Write;
use srdma_api::ProblemType;
use srdma_api::{EventKind, Job, JobPage, NewJob, WhatIf, WhatIfAnswer};

/// Jobs of a page: default and maximum.
const PAGE: usize = 100;
const MAX_PAGE: usize = 10_000;

impl Core {
    /// Places jobs: all of them or none.
    pub fn place_jobs(
        &mut self,
        principal: &Principal,
        tenant: Option<&str>,
        new: &NewJob,
    ) -> Result<WhatIfAnswer, Refusal> {
        let tenant = principal.tenant_of_new(tenant)?;
        let placed = jobs_of(&mut self.jobs)?.place(new, &tenant).map_err(|error| refused(&error))?;
        let answer = self.store_jobs(placed);
        let mut names: Vec<&String> = answer.added.iter().map(|flow| &flow.job).collect();
        names.dedup();
        for name in names {
            self.audit(&principal.name, "place", format!("job {name}"));
            self.emit(Some(&tenant), EventKind::JobPlaced { job: name.clone() });
        }
        Ok(answer)
    }

    /// Removes a job.
    pub fn remove_job(&mut self, principal: &Principal, name: &str) -> Result<WhatIfAnswer, Refusal> {
        let jobs = jobs_of(&mut self.jobs)?;
        let tenant = jobs.get(name).map_err(|error| refused(&error))?.tenant;
        principal.may_change(&tenant)?;
        let removed = jobs.remove(name).map_err(|error| refused(&error))?;
        self.audit(&principal.name, "remove", format!("job {name}"));
        self.emit(Some(&tenant), EventKind::JobRemoved { job: name.to_owned() });
        Ok(self.store_jobs(removed))
    }

    /// Drains switches or links and moves their flows, or releases them.
    pub fn drain_links(
        &mut self,
        principal: &Principal,
        names: &[String],
        is_drained: bool,
    ) -> Result<WhatIfAnswer, Refusal> {
        principal.may_operate()?;
        let jobs = jobs_of(&mut self.jobs)?;
        let changed = if is_drained { jobs.drain(names) } else { jobs.release(names) };
        let changed = changed.map_err(|error| refused(&error))?;
        let action = if is_drained { "drain" } else { "release" };
        self.audit(&principal.name, action, format!("fabric {}", names.join(" ")));
        Ok(self.store_jobs(changed))
    }

    /// The effect of a change, without making it.
    pub fn what_if(&self, principal: &Principal, change: &WhatIf) -> Result<WhatIfAnswer, Refusal> {
        principal.may_read_network()?;
        let jobs = self.jobs.as_ref().ok_or_else(no_fabric)?;
        jobs.whatif(change).map_err(|error| refused(&error))
    }

    /// A job with its flows.
    pub fn job(&self, principal: &Principal, name: &str) -> Result<Job, Refusal> {
        let job = self.jobs.as_ref().ok_or_else(no_fabric)?.get(name).map_err(|error| refused(&error))?;
        principal.may_read(&job.tenant)?;
        Ok(job)
    }

    /// A page of the jobs that the principal may read.
    pub fn job_page(
        &self,
        principal: &Principal,
        after: Option<&str>,
        limit: Option<usize>,
    ) -> Result<JobPage, Refusal> {
        let tenant = principal.tenant.as_deref();
        principal.may_read(tenant.unwrap_or_default())?;
        let limit = limit.unwrap_or(PAGE).clamp(1, MAX_PAGE);
        Ok(self.jobs.as_ref().ok_or_else(no_fabric)?.page(tenant, after, limit))
    }

    /// Restores the stored jobs.
    pub fn restore_jobs(&mut self, mut jobs: Jobs, rows: &[JobRow]) -> Result<(), JobError> {
        let changed = jobs.restore(rows)?;
        self.write_rows(changed);
        self.jobs = Some(jobs);
        Ok(())
    }

    fn store_jobs(&mut self, (rows, answer): (Vec<JobRow>, WhatIfAnswer)) -> WhatIfAnswer {
        self.write_rows(rows);
        answer
    }

    fn write_rows(&mut self, rows: Vec<JobRow>) {
        for JobRow { key, value } in rows {
            self.write(match value {
                Some(value) => Write::Put { key, value },
                None => Write::Delete { key },
            });
        }
    }
}

fn jobs_of(jobs: &mut Option<Jobs>) -> Result<&mut Jobs, Refusal> {
    jobs.as_mut().ok_or_else(no_fabric)
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
        _ => ProblemType::JobConflict,
    };
    Refusal::new(kind, error.to_string())
}

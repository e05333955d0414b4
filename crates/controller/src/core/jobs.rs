//! Jobs on the fabric (PP-4-1): their rows go where all others go.

use super::Core;
use crate::access::Who;
use crate::jobs::{JobError, JobRow, Jobs};
use crate::refusal::{Kind, Refusal};
use crate::store::Write;
use srdma_api::{Job, JobPage, NewJob, News, WhatIf, WhatIfAnswer};

/// Jobs of a page, if nobody says, and at most.
const PAGE: usize = 100;
const MOST_OF_A_PAGE: usize = 10_000;

impl Core {
    /// Places jobs: all of them or none.
    pub(crate) fn place_jobs(
        &mut self,
        who: &Who,
        tenant: Option<&str>,
        new: &NewJob,
    ) -> Result<WhatIfAnswer, Refusal> {
        let tenant = who.tenant_of_new(tenant)?;
        let placed = placer(&mut self.jobs)?.place(new, &tenant).map_err(|error| refused(&error))?;
        let answer = self.store_jobs(placed);
        let mut names: Vec<&String> = answer.added.iter().map(|flow| &flow.job).collect();
        names.dedup();
        for name in names {
            self.audit(&who.name, "place", format!("job {name}"));
            self.tell(Some(&tenant), News::JobPlaced { job: name.clone() });
        }
        Ok(answer)
    }

    /// Takes a job away.
    pub(crate) fn remove_job(&mut self, who: &Who, name: &str) -> Result<WhatIfAnswer, Refusal> {
        let jobs = placer(&mut self.jobs)?;
        let tenant = jobs.get(name).map_err(|error| refused(&error))?.tenant;
        who.may_change(&tenant)?;
        let removed = jobs.remove(name).map_err(|error| refused(&error))?;
        self.audit(&who.name, "remove", format!("job {name}"));
        self.tell(Some(&tenant), News::JobRemoved { job: name.to_owned() });
        Ok(self.store_jobs(removed))
    }

    /// Takes switches or links out of use and moves their flows, or takes them into use again.
    pub(crate) fn drain_links(
        &mut self,
        who: &Who,
        names: &[String],
        is_drained: bool,
    ) -> Result<WhatIfAnswer, Refusal> {
        who.may_operate()?;
        let jobs = placer(&mut self.jobs)?;
        let changed = if is_drained { jobs.drain(names) } else { jobs.release(names) };
        let changed = changed.map_err(|error| refused(&error))?;
        let action = if is_drained { "drain" } else { "release" };
        self.audit(&who.name, action, format!("fabric {}", names.join(" ")));
        Ok(self.store_jobs(changed))
    }

    /// What a change would do.
    pub(crate) fn what_if(&self, who: &Who, change: &WhatIf) -> Result<WhatIfAnswer, Refusal> {
        who.may_see_network()?;
        let jobs = self.jobs.as_ref().ok_or_else(no_fabric)?;
        jobs.whatif(change).map_err(|error| refused(&error))
    }

    /// A job with its flows.
    pub(crate) fn job(&self, who: &Who, name: &str) -> Result<Job, Refusal> {
        let job = self.jobs.as_ref().ok_or_else(no_fabric)?.get(name).map_err(|error| refused(&error))?;
        who.may_see(&job.tenant)?;
        Ok(job)
    }

    /// A page of the jobs that somebody may look at.
    pub(crate) fn job_page(&self, who: &Who, after: Option<&str>, limit: Option<usize>) -> Result<JobPage, Refusal> {
        let tenant = who.tenant.as_deref();
        who.may_see(tenant.unwrap_or_default())?;
        let limit = limit.unwrap_or(PAGE).clamp(1, MOST_OF_A_PAGE);
        Ok(self.jobs.as_ref().ok_or_else(no_fabric)?.page(tenant, after, limit))
    }

    /// Goes on with the jobs that are stored.
    pub(crate) fn take_jobs(&mut self, mut jobs: Jobs, rows: &[JobRow]) -> Result<(), JobError> {
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

fn placer(jobs: &mut Option<Jobs>) -> Result<&mut Jobs, Refusal> {
    jobs.as_mut().ok_or_else(no_fabric)
}

fn no_fabric() -> Refusal {
    Refusal::new(Kind::NoFabric, "the controller's file names no `fabric` to place jobs on")
}

fn refused(error: &JobError) -> Refusal {
    let kind = match error {
        JobError::Unknown { .. } => Kind::UnknownJob,
        JobError::NotJobs(_) | JobError::NoJobs | JobError::Name { .. } | JobError::SendsNothing { .. } => {
            Kind::NotUnderstood
        }
        _ => Kind::JobConflict,
    };
    Refusal::new(kind, error.to_string())
}

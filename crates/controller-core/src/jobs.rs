//! Jobs and their placement (PP-4-1), as a value without I/O: each call returns its changes as rows for the store.
//!
//! ```text
//!   kept paths ──resume──► Plan ──change──► Plan ──► answer
//!       ▲                                    │
//!       └──────────── rows ◄─────────────────┘
//! ```
//!
//! Each change starts from the kept paths alone, so that a restarted controller moves the same flows.

mod error;
mod rows;

pub use error::JobError;
pub use rows::JobRow;

use rows::{KeptJob, State};
use srdma_api::{Job, JobPage, NewJob, PlacedFlow, WhatIf, WhatIfAnswer};
use srdma_fabric::{Encoding, LinkId, NodeId, Program, SidPlan, Topology};
use srdma_placement::{Collective, KeptFlow, LinkNames, ListedFlow, Plan, jobs_from_toml};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Limit of the flows of all jobs together.
pub const MAX_FLOWS: u64 = 262_144;

/// Limit of the work for the bound in an answer, in visited links: some tens of milliseconds.
const WORK: usize = 5_000_000;

/// Limit of octets of a job's name.
const MAX_NAME_OCTETS: usize = 64;

/// The jobs that are placed on a fabric.
#[derive(Clone, Debug)]
pub struct Jobs {
    topology: Arc<Topology>,
    sids: SidPlan,
    encoding: Encoding,
    names: LinkNames,
    state: State,
}

impl Jobs {
    /// A fabric without jobs.
    pub fn new(topology: Topology, sids: SidPlan, encoding: Encoding) -> Self {
        let names = LinkNames::of(&topology);
        Jobs { topology: Arc::new(topology), sids, encoding, names, state: State::default() }
    }

    /// Restores the stored jobs; returns the rows that change since flows whose links have failed move.
    ///
    /// # Errors
    ///
    /// A row is invalid, or does not fit the fabric.
    pub fn restore(&mut self, rows: &[JobRow]) -> Result<Vec<JobRow>, JobError> {
        self.state = State::of_rows(rows, &self.topology, &self.names)?;
        let topology = Arc::clone(&self.topology);
        let plan = self.plan(&topology)?;
        let next = self.state.after(&plan, &BTreeMap::new());
        Ok(self.become_next(next))
    }

    /// All rows.
    pub fn rows(&self) -> Vec<JobRow> {
        self.state.rows_since(&State::default(), &self.topology)
    }

    /// Places jobs of a tenant: all of them or none. Others move only where that relieves the most loaded link.
    ///
    /// # Errors
    ///
    /// Invalid jobs file; a job exists already, or sends nothing; too many flows; no path.
    pub fn place(&mut self, new: &NewJob, tenant: &str) -> Result<(Vec<JobRow>, WhatIfAnswer), JobError> {
        self.change(&WhatIf { add: Some(new.clone()), ..WhatIf::default() }, tenant)
    }

    /// Removes a job.
    ///
    /// # Errors
    ///
    /// It does not exist.
    pub fn remove(&mut self, name: &str) -> Result<(Vec<JobRow>, WhatIfAnswer), JobError> {
        self.change(&WhatIf { remove: vec![name.to_owned()], ..WhatIf::default() }, "")
    }

    /// Drains switches or links and moves their flows.
    ///
    /// # Errors
    ///
    /// A name of neither a switch nor a link; a NIC would be cut off.
    pub fn drain(&mut self, names: &[String]) -> Result<(Vec<JobRow>, WhatIfAnswer), JobError> {
        self.change(&WhatIf { drain: names.to_vec(), ..WhatIf::default() }, "")
    }

    /// Releases switches or links.
    ///
    /// # Errors
    ///
    /// A name of neither a switch nor a link; a link that has failed.
    pub fn release(&mut self, names: &[String]) -> Result<(Vec<JobRow>, WhatIfAnswer), JobError> {
        self.change(&WhatIf { release: names.to_vec(), ..WhatIf::default() }, "")
    }

    /// The effect of a change, without making it: jobs are removed, links released and drained, then jobs added.
    ///
    /// # Errors
    ///
    /// Those of the calls that would make the change.
    pub fn whatif(&self, change: &WhatIf) -> Result<WhatIfAnswer, JobError> {
        self.evaluate(change, "").map(|(_, answer)| answer)
    }

    /// A job with its flows.
    ///
    /// # Errors
    ///
    /// It does not exist.
    pub fn get(&self, name: &str) -> Result<Job, JobError> {
        let job = self.state.jobs.get(name).ok_or_else(|| JobError::Unknown { name: name.to_owned() })?;
        let flows = job.flows.iter().map(|flow| self.placed(flow)).collect::<Result<_, _>>()?;
        Ok(Job { flows, ..header(name, job) })
    }

    /// A page of jobs behind a name, ordered by name, of one tenant or of all.
    pub fn page(&self, tenant: Option<&str>, after: Option<&str>, limit: usize) -> JobPage {
        let is_meant = |(name, job): &(&String, &KeptJob)| {
            after.is_none_or(|after| name.as_str() > after) && tenant.is_none_or(|tenant| job.tenant == tenant)
        };
        let limit = limit.max(1);
        let mut jobs: Vec<Job> = self
            .state
            .jobs
            .iter()
            .filter(is_meant)
            .take(limit.saturating_add(1))
            .map(|(name, job)| header(name, job))
            .collect();
        let is_last = jobs.len() <= limit;
        jobs.truncate(limit);
        let next = jobs.last().filter(|_| !is_last).map(|job| job.name.clone());
        JobPage { jobs, next }
    }

    fn change(&mut self, change: &WhatIf, tenant: &str) -> Result<(Vec<JobRow>, WhatIfAnswer), JobError> {
        let (next, answer) = self.evaluate(change, tenant)?;
        Ok((self.become_next(next), answer))
    }

    fn become_next(&mut self, next: State) -> Vec<JobRow> {
        let rows = next.rows_since(&self.state, &self.topology);
        self.state = next;
        rows
    }

    /// Evaluates a change.
    fn evaluate(&self, change: &WhatIf, tenant: &str) -> Result<(State, WhatIfAnswer), JobError> {
        let WhatIf { add, remove, drain, release } = change;
        let mut plan = self.plan(&self.topology)?;
        let before = plan.placement().most_loaded().1;
        if let Some(name) = remove.iter().find(|name| !self.state.jobs.contains_key(*name)) {
            return Err(JobError::Unknown { name: name.clone() });
        }
        if !remove.is_empty() {
            plan.remove(|flow| remove.contains(&flow.wanted.job));
        }
        if !release.is_empty() {
            let links = self.links(release)?;
            if let Some(failed) = links.iter().find(|link| self.topology.is_failed(**link)) {
                return Err(JobError::Failed { link: self.topology.link_name(*failed) });
            }
            plan.release(&links);
        }
        if !drain.is_empty() {
            let cut_off = |error| JobError::Disconnects { names: drain.join(", "), problem: error };
            plan.drain(&self.links(drain)?).map_err(cut_off)?;
        }
        let mut tenants = BTreeMap::new();
        if let Some(NewJob { jobs }) = add {
            let room = MAX_FLOWS - plan.flows().len() as u64;
            let wanted = self.wanted(jobs, remove, room)?;
            tenants = wanted.iter().map(|flow| (flow.job.clone(), tenant.to_owned())).collect();
            plan.add(wanted).map_err(JobError::NoPath)?;
        }
        let answer = WhatIfAnswer {
            added: self.placed_of(&plan, plan.added())?,
            removed: plan.removed().len() as u32,
            moved: self.placed_of(&plan, plan.moved().map(|(flow, _)| flow))?,
            before,
            after: plan.placement().most_loaded().1,
            bound: plan.placement().bound_within(WORK),
        };
        Ok((self.state.after(&plan, &tenants), answer))
    }

    /// The flows of the jobs in a text, whose names must be unused or among the removed jobs.
    fn wanted(&self, text: &str, goes: &[String], room: u64) -> Result<Vec<ListedFlow>, JobError> {
        let jobs = jobs_from_toml(text, &self.topology).map_err(JobError::NotJobs)?;
        let mut flows = 0_u64;
        for job in &jobs {
            let name = job.name.clone();
            let is_usual = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
            if name.is_empty() || name.len() > MAX_NAME_OCTETS || !name.chars().all(is_usual) {
                return Err(JobError::Name { name });
            }
            if self.state.jobs.contains_key(&name) && !goes.contains(&name) {
                return Err(JobError::Exists { name });
            }
            // Groups of one rank send nothing, but are visited.
            let work = |collective: &Collective| job.most_flows(collective).max(job.nics.len() as u64);
            flows = job.collectives.iter().map(work).fold(flows, u64::saturating_add);
        }
        if flows > room {
            return Err(JobError::TooManyFlows { found: flows, room });
        }
        let mut wanted = Vec::new();
        for job in &jobs {
            let before = wanted.len();
            wanted.extend(job.wanted(&self.topology, |_| true));
            if wanted.len() == before {
                return Err(JobError::NoFlows { name: job.name.clone() });
            }
        }
        if wanted.is_empty() { Err(JobError::NoJobs) } else { Ok(wanted) }
    }

    fn links(&self, names: &[String]) -> Result<Vec<LinkId>, JobError> {
        let links = |name: &String| {
            let found = self.topology.links_named(name);
            found.ok_or_else(|| JobError::UnknownLink { name: name.clone() })
        };
        Ok(names.iter().map(links).collect::<Result<Vec<_>, _>>()?.concat())
    }

    fn plan<'a>(&self, topology: &'a Topology) -> Result<Plan<'a>, JobError> {
        let mut kept: Vec<KeptFlow> = self.state.jobs.values().flat_map(|job| job.flows.iter().cloned()).collect();
        kept.sort_unstable_by_key(|flow| flow.number);
        let drained: Vec<LinkId> = self.state.drained.iter().copied().collect();
        Plan::resume(topology, &kept, &drained).map_err(JobError::Stored)
    }

    fn placed_of<'p>(
        &self,
        plan: &'p Plan<'_>,
        flows: impl Iterator<Item = &'p srdma_placement::Numbered>,
    ) -> Result<Vec<PlacedFlow>, JobError> {
        flows.filter_map(|flow| plan.keep(flow)).map(|flow| self.placed(&flow)).collect()
    }

    fn placed(&self, flow: &KeptFlow) -> Result<PlacedFlow, JobError> {
        let KeptFlow { wanted, path, .. } = flow;
        let program = Program::encode(&self.sids, &self.topology, path, self.encoding, wanted.tenant);
        let Program { destination, segments } = program.map_err(JobError::NoProgram)?;
        let name = |host| self.topology.name(NodeId::Host(host)).to_owned();
        Ok(PlacedFlow {
            job: wanted.job.clone(),
            collective: wanted.part.clone(),
            from: name(path.from),
            to: name(path.to),
            rate_bits_per_s: wanted.flow.rate_bits_per_s,
            path: path.node_names(&self.topology),
            program: [destination].into_iter().chain(segments).map(|address| address.to_string()).collect(),
        })
    }
}

/// A job without its flows.
fn header(name: &str, job: &KeptJob) -> Job {
    Job { name: name.to_owned(), tenant: job.tenant.clone(), flows: Vec::new(), version: job.version }
}

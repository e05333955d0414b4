//! Jobs and their placement (PP-4-1), as a value without I/O: each change returns its rows for the store.
//!
//! ```text
//!   kept paths ──resume──► Plan ──change──► Plan ──► Evaluated: rows, answer
//!       ▲                                              │
//!       └── apply, if the paths are still those ◄──────┘
//! ```
//!
//! Each change starts from the kept paths alone, so that a restarted controller moves the same flows. Evaluating one
//! may take long, and is done on a snapshot; [`Jobs::apply`] only exchanges the state.

mod error;
mod evaluate;
mod rows;

pub use error::JobError;
pub use evaluate::Evaluated;
pub use rows::{JobRow, JobRows};

use crate::settings::DEFAULT_TENANT;
use rows::{KeptJob, State, key_of, parts_of};
use srdma_api::{Job, JobPage, PlacedFlow};
use srdma_fabric::{Encoding, LinkId, NodeId, Program, SidPlan, Topology};
use srdma_placement::{Deadline, KeptFlow, LinkNames, Plan};
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Limit of the flows of all jobs together.
pub const MAX_FLOWS: u64 = 262_144;

/// The jobs that are placed on a fabric. A clone is a snapshot, and costs nothing: the state is shared.
#[derive(Clone, Debug)]
pub struct Jobs {
    fabric: Arc<Fabric>,
    state: Arc<State>,
    /// The number of the next evaluated change.
    next_stage: Arc<AtomicU64>,
}

/// The fabric that jobs are placed on.
#[derive(Debug)]
struct Fabric {
    topology: Topology,
    sids: SidPlan,
    encoding: Encoding,
    names: LinkNames,
}

impl Jobs {
    /// A fabric without jobs.
    pub fn new(topology: Topology, sids: SidPlan, encoding: Encoding) -> Self {
        let names = LinkNames::of(&topology);
        Jobs {
            fabric: Arc::new(Fabric { topology, sids, encoding, names }),
            state: Arc::default(),
            next_stage: Arc::default(),
        }
    }

    /// Restores the stored jobs; returns the rows that change since flows whose links have failed move, and those of
    /// earlier programs whose keys change, and those of changes that were not made, which are deleted.
    ///
    /// # Errors
    ///
    /// A row is invalid, or does not fit the fabric.
    pub fn restore(&mut self, rows: &[JobRow]) -> Result<Vec<JobRow>, JobError> {
        let (state, mut changed) = State::of_rows(rows, &self.fabric.topology, &self.fabric.names)?;
        if let Some(last) = state.last_stage() {
            self.next_stage.fetch_max(last.saturating_add(1), Ordering::Relaxed);
        }
        self.state = Arc::new(state);
        let next = self.state.after(&self.plan(Deadline::NONE)?, &BTreeSet::new(), self.take_stage());
        let JobRows { chunks, rows } = next.rows_since(&self.state, &self.fabric.topology);
        changed.extend(chunks.into_iter().chain(rows));
        self.state = Arc::new(next);
        Ok(changed)
    }

    /// All rows.
    pub fn rows(&self) -> Vec<JobRow> {
        let JobRows { chunks, rows } = self.state.rows_since(&State::default(), &self.fabric.topology);
        chunks.into_iter().chain(rows).collect()
    }

    fn take_stage(&self) -> u64 {
        self.next_stage.fetch_add(1, Ordering::Relaxed)
    }

    /// Makes an evaluated change, if no other was made since; `false` if one was. What it costs does not depend on the
    /// size of the change.
    pub fn apply(&mut self, evaluated: &Evaluated) -> bool {
        let is_current = evaluated.starts_from(&self.state);
        if is_current {
            self.state = evaluated.next();
        }
        is_current
    }

    /// A job of a tenant with its flows (D104).
    ///
    /// # Errors
    ///
    /// It does not exist.
    pub fn get(&self, tenant: &str, name: &str) -> Result<Job, JobError> {
        let key = key_of(tenant, name);
        let job = self.state.jobs.get(&key).ok_or_else(|| JobError::Unknown { name: name.to_owned() })?;
        let flows = job.flows.iter().map(|flow| self.placed(flow)).collect::<Result<_, _>>()?;
        Ok(Job { flows, ..header(&key, job) })
    }

    /// Whether a tenant has jobs.
    pub fn has_tenant(&self, tenant: &str) -> bool {
        self.of_tenant(tenant).next().is_some()
    }

    /// A page of jobs behind another one, of one tenant or of all. `after`: the `next` of a page, or the name of a job
    /// of this tenant.
    pub fn page(&self, tenant: Option<&str>, after: Option<&str>, limit: usize) -> JobPage {
        let prefix = tenant.map(|tenant| key_of(tenant, ""));
        let after = after.map(|after| match (&prefix, after.contains('/')) {
            (Some(prefix), false) => format!("{prefix}{after}"),
            (Some(_), true) | (None, _) => after.to_owned(),
        });
        let first = match (&after, &prefix) {
            // A position before the tenant's own jobs means the first of them.
            (Some(after), Some(prefix)) if after < prefix => Bound::Included(prefix.as_str()),
            (Some(after), _) => Bound::Excluded(after.as_str()),
            (None, Some(prefix)) => Bound::Included(prefix.as_str()),
            (None, None) => Bound::Unbounded,
        };
        let limit = limit.max(1);
        let behind = self.state.jobs.range::<str, _>((first, Bound::Unbounded));
        let behind = behind.take_while(|(key, _)| prefix.as_ref().is_none_or(|prefix| key.starts_with(prefix)));
        let mut jobs: Vec<(&String, &KeptJob)> = behind.take(limit.saturating_add(1)).collect();
        let is_last = jobs.len() <= limit;
        jobs.truncate(limit);
        let next = jobs.last().filter(|_| !is_last).map(|(key, _)| (*key).clone());
        JobPage { jobs: jobs.into_iter().map(|(key, job)| header(key, job)).collect(), next }
    }

    /// The tenant of the only job of a name, where the default tenant has none.
    pub(crate) fn owner_of(&self, name: &str) -> Option<&str> {
        if self.state.jobs.contains_key(&key_of(DEFAULT_TENANT, name)) {
            return Some(DEFAULT_TENANT);
        }
        let mut owners = self.state.jobs.keys().map(|key| parts_of(key)).filter(|(_, own)| *own == name);
        let (owner, _) = owners.next()?;
        owners.next().is_none().then_some(owner)
    }

    fn of_tenant(&self, tenant: &str) -> impl Iterator<Item = (&String, &KeptJob)> {
        let prefix = key_of(tenant, "");
        let jobs = self.state.jobs.range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded));
        jobs.take_while(move |(key, _)| key.starts_with(&prefix))
    }

    fn plan<'a>(&'a self, deadline: Deadline<'a>) -> Result<Plan<'a>, JobError> {
        let mut kept: Vec<KeptFlow> = self.state.jobs.values().flat_map(|job| job.flows.iter().cloned()).collect();
        kept.sort_unstable_by_key(|flow| flow.number);
        let drained: Vec<LinkId> = self.state.drained.iter().copied().collect();
        Plan::resume_within(&self.fabric.topology, &kept, &drained, deadline).map_err(JobError::Stored)
    }

    fn placed(&self, flow: &KeptFlow) -> Result<PlacedFlow, JobError> {
        let Fabric { topology, sids, encoding, .. } = &*self.fabric;
        let KeptFlow { wanted, path, .. } = flow;
        let program = Program::encode(sids, topology, path, *encoding, wanted.tenant).map_err(JobError::NoProgram)?;
        let Program { destination, segments } = program;
        let host = |host| topology.name(NodeId::Host(host)).to_owned();
        let (tenant, name) = parts_of(&wanted.job);
        Ok(PlacedFlow {
            job: name.to_owned(),
            tenant: tenant.to_owned(),
            collective: wanted.part.clone(),
            from: host(path.from),
            to: host(path.to),
            rate_bits_per_s: wanted.flow.rate_bits_per_s,
            path: path.node_names(topology),
            program: [destination].into_iter().chain(segments).map(|address| address.to_string()).collect(),
        })
    }
}

/// A job without its flows.
fn header(key: &str, job: &KeptJob) -> Job {
    let (tenant, name) = parts_of(key);
    Job { name: name.to_owned(), tenant: tenant.to_owned(), flows: Vec::new(), version: job.version }
}

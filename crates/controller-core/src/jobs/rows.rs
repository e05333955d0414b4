//! Stored values of jobs, and their rows, JSON each.
//!
//! | key | value |
//! |---|---|
//! | `job/TENANT/NAME` | a job: tenant, version, flows with their paths by the names of links |
//! | `job/NAME` | the same as earlier programs wrote it, when names were unique among tenants |
//! | `drained` | how many changes there were, and the links that are drained |

use super::JobError;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use srdma_fabric::{LinkId, Topology};
use srdma_placement::{KeptFlow, LinkNames, Plan, SavedFlow};
use std::collections::{BTreeMap, BTreeSet};

const DRAINED: &str = "drained";
const JOB: &str = "job/";

/// A row of the store.
#[allow(missing_docs, reason = "names and types explain the other items")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRow {
    pub key: String,
    /// Its value; `None` deletes the row.
    pub value: Option<Vec<u8>>,
}

/// Key of a job among those of all tenants. Neither part has a slash.
pub(super) fn key_of(tenant: &str, name: &str) -> String {
    format!("{tenant}/{name}")
}

/// The tenant and the name in a key.
pub(super) fn parts_of(key: &str) -> (&str, &str) {
    key.split_once('/').unwrap_or(("", key))
}

/// Stored state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// By [key](key_of); flows have the key as their job.
    pub(super) jobs: BTreeMap<String, KeptJob>,
    pub(super) drained: BTreeSet<LinkId>,
    /// Number of changes; versions are taken from it, so that none is reused.
    changes: u64,
}

/// Stored state of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeptJob {
    pub(super) version: u64,
    /// By their numbers.
    pub(super) flows: Vec<KeptFlow>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JobValue {
    tenant: String,
    version: u64,
    flows: Vec<SavedFlow>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DrainedValue {
    changes: u64,
    links: Vec<String>,
}

impl State {
    /// State after a change of the plan, in which these jobs are new.
    pub(super) fn after(&self, plan: &Plan<'_>, new: &BTreeSet<String>) -> State {
        let mut flows: BTreeMap<String, Vec<KeptFlow>> = BTreeMap::new();
        for flow in plan.kept() {
            flows.entry(flow.wanted.job.clone()).or_default().push(flow);
        }
        let next = self.changes + 1;
        let job = |(key, flows): (String, Vec<KeptFlow>)| {
            let old = self.jobs.get(&key).filter(|_| !new.contains(&key));
            let version = old.filter(|old| old.flows == flows).map_or(next, |old| old.version);
            (key, KeptJob { version, flows })
        };
        let jobs: BTreeMap<String, KeptJob> = flows.into_iter().map(job).collect();
        let drained: BTreeSet<LinkId> = plan.drained().into_iter().collect();
        let has_changed = jobs != self.jobs || drained != self.drained;
        State { changes: if has_changed { next } else { self.changes }, jobs, drained }
    }

    /// The rows that differ from those before.
    pub(super) fn rows_since(&self, before: &State, topology: &Topology) -> Vec<JobRow> {
        let mut rows = Vec::new();
        for key in before.jobs.keys().filter(|key| !self.jobs.contains_key(*key)) {
            rows.push(JobRow { key: format!("{JOB}{key}"), value: None });
        }
        for (key, job) in self.jobs.iter().filter(|(key, job)| before.jobs.get(*key) != Some(*job)) {
            let (tenant, name) = parts_of(key);
            let saved = |flow| SavedFlow { job: name.to_owned(), ..SavedFlow::of(topology, flow) };
            let flows = job.flows.iter().map(saved).collect();
            let value = JobValue { tenant: tenant.to_owned(), version: job.version, flows };
            rows.push(put(format!("{JOB}{key}"), &value));
        }
        if self.changes != before.changes {
            let links = self.drained.iter().map(|link| topology.link_name(*link)).collect();
            rows.push(put(DRAINED.to_owned(), &DrainedValue { changes: self.changes, links }));
        }
        rows
    }

    /// State from stored rows, and the rows that bring those of earlier programs to their present keys.
    pub(super) fn of_rows(
        rows: &[JobRow],
        topology: &Topology,
        names: &LinkNames,
    ) -> Result<(State, Vec<JobRow>), JobError> {
        let mut state = State::default();
        let mut renamed = Vec::new();
        for JobRow { key, value } in rows {
            let Some(value) = value else { continue };
            let wrong = |problem: String| JobError::Row { key: key.clone(), problem };
            if key == DRAINED {
                let DrainedValue { changes, links } = get(key, value)?;
                let links = links.iter().map(|name| names.link(name)).collect::<Result<_, _>>();
                (state.changes, state.drained) = (changes, links.map_err(|error| wrong(error.to_string()))?);
            } else if let Some(stored) = key.strip_prefix(JOB) {
                let JobValue { tenant, version, flows } = get(key, value)?;
                let (owner, name) = stored.split_once('/').unwrap_or((&tenant, stored));
                if owner != tenant {
                    return Err(wrong(format!("it is of tenant {tenant}")));
                }
                if let Some(flow) = flows.iter().find(|flow| flow.job != name) {
                    return Err(wrong(format!("flow {} is of job {}", flow.number, flow.job)));
                }
                let own = key_of(&tenant, name);
                let flows = flows.into_iter().map(|flow| SavedFlow { job: own.clone(), ..flow }.read(topology, names));
                let flows = flows.collect::<Result<_, _>>().map_err(|error| wrong(error.to_string()))?;
                if stored != own {
                    renamed.push(JobRow { key: key.clone(), value: None });
                    renamed.push(JobRow { key: format!("{JOB}{own}"), value: Some(value.clone()) });
                }
                state.jobs.insert(own, KeptJob { version, flows });
            } else {
                return Err(wrong("not a row of a job".to_owned()));
            }
        }
        Ok((state, renamed))
    }
}

fn put(key: String, value: &impl Serialize) -> JobRow {
    // Only maps with keys other than strings cannot be written, and no row has one.
    JobRow { key, value: serde_json::to_vec(value).ok() }
}

fn get<T: DeserializeOwned>(key: &str, value: &[u8]) -> Result<T, JobError> {
    serde_json::from_slice(value).map_err(|error| JobError::Row { key: key.to_owned(), problem: error.to_string() })
}

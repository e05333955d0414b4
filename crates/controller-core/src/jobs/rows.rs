//! Stored values of jobs, and their rows, JSON each.
//!
//! | key | value |
//! |---|---|
//! | `job/TENANT/NAME` | a job: tenant, version, flows with their paths by the names of links, or their chunks |
//! | `job-chunk/STAGE/INDEX` | a chunk of the flows of a large job, written before its job |
//! | `job/NAME` | the same as earlier programs wrote it, when names were unique among tenants |
//! | `drained` | how many changes there were, and the links that are drained |

use super::JobError;
use crate::rows::check_counter;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use srdma_fabric::{LinkId, Topology};
use srdma_placement::{KeptFlow, LinkNames, Plan, SavedFlow};
use std::collections::{BTreeMap, BTreeSet};

const DRAINED: &str = "drained";
const JOB: &str = "job/";
const CHUNK: &str = "job-chunk/";

/// Limit of flows in a row, some hundred octets each: the time to write one delays other writes.
const ROW_FLOWS: usize = 1024;

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
    chunks: Option<Chunks>,
    /// By their numbers.
    pub(super) flows: Vec<KeptFlow>,
}

/// Where the flows of a large job are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Chunks {
    /// The number of the change that wrote them.
    stage: u64,
    /// The number of the first one among those of the change.
    first: u32,
    count: u32,
}

impl Chunks {
    fn keys(self) -> impl Iterator<Item = String> {
        (self.first..self.first.saturating_add(self.count)).map(move |index| chunk_key(self.stage, index))
    }
}

fn chunk_key(stage: u64, index: u32) -> String {
    format!("{CHUNK}{stage:016x}/{index:08}")
}

/// Rows of a change.
#[derive(Debug, Default)]
pub struct JobRows {
    /// Chunks of large jobs, to be written before: each may be a batch of its own.
    pub chunks: Vec<JobRow>,
    /// All others, to be written in one batch.
    pub rows: Vec<JobRow>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct JobValue {
    tenant: String,
    version: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    flows: Vec<SavedFlow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chunks: Option<Chunks>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DrainedValue {
    changes: u64,
    links: Vec<String>,
}

impl State {
    /// State after a change of the plan, in which these jobs are new. `stage`: number of the change, for chunks.
    pub(super) fn after(&self, plan: &Plan<'_>, new: &BTreeSet<String>, stage: u64) -> State {
        let mut flows: BTreeMap<String, Vec<KeptFlow>> = BTreeMap::new();
        for flow in plan.kept() {
            flows.entry(flow.wanted.job.clone()).or_default().push(flow);
        }
        let next = self.changes + 1;
        let mut first = 0;
        let job = |(key, flows): (String, Vec<KeptFlow>)| {
            let old = self.jobs.get(&key).filter(|old| !new.contains(&key) && old.flows == flows);
            let (version, chunks) =
                old.map_or_else(|| (next, chunks_for(flows.len(), stage, &mut first)), |old| (old.version, old.chunks));
            (key, KeptJob { version, chunks, flows })
        };
        let jobs: BTreeMap<String, KeptJob> = flows.into_iter().map(job).collect();
        let drained: BTreeSet<LinkId> = plan.drained().into_iter().collect();
        let has_changed = jobs != self.jobs || drained != self.drained;
        State { changes: if has_changed { next } else { self.changes }, jobs, drained }
    }

    /// The rows that differ from those before.
    pub(super) fn rows_since(&self, before: &State, topology: &Topology) -> JobRows {
        let JobRows { mut chunks, mut rows } = JobRows::default();
        for (key, old) in before.jobs.iter().filter(|(key, old)| self.jobs.get(*key) != Some(*old)) {
            if !self.jobs.contains_key(key) {
                rows.push(JobRow { key: format!("{JOB}{key}"), value: None });
            }
            rows.extend(old.chunks.into_iter().flat_map(Chunks::keys).map(|key| JobRow { key, value: None }));
        }
        for (key, job) in self.jobs.iter().filter(|(key, job)| before.jobs.get(*key) != Some(*job)) {
            let (tenant, name) = parts_of(key);
            let saved = |flow| SavedFlow { job: name.to_owned(), ..SavedFlow::of(topology, flow) };
            let mut value =
                JobValue { tenant: tenant.to_owned(), version: job.version, flows: Vec::new(), chunks: job.chunks };
            match job.chunks {
                Some(own) => {
                    let flows = job.flows.chunks(ROW_FLOWS).map(|flows| flows.iter().map(saved).collect());
                    chunks.extend(own.keys().zip(flows).map(|(key, flows): (_, Vec<SavedFlow>)| put(key, &flows)));
                }
                None => value.flows = job.flows.iter().map(saved).collect(),
            }
            rows.push(put(format!("{JOB}{key}"), &value));
        }
        if self.changes != before.changes {
            let links = self.drained.iter().map(|link| topology.link_name(*link)).collect();
            rows.push(put(DRAINED.to_owned(), &DrainedValue { changes: self.changes, links }));
        }
        JobRows { chunks, rows }
    }

    /// The number of the last change that has written chunks of these jobs.
    pub(super) fn last_stage(&self) -> Option<u64> {
        self.jobs.values().filter_map(|job| Some(job.chunks?.stage)).max()
    }

    /// State from stored rows; the rows that bring those of earlier programs to their present keys, and delete chunks
    /// of changes that were not made.
    pub(super) fn of_rows(
        rows: &[JobRow],
        topology: &Topology,
        names: &LinkNames,
    ) -> Result<(State, Vec<JobRow>), JobError> {
        let mut state = State::default();
        let mut renamed = Vec::new();
        let is_chunk = |row: &&JobRow| row.key.starts_with(CHUNK);
        let mut chunks: BTreeMap<&str, &[u8]> = BTreeMap::new();
        for row in rows.iter().filter(is_chunk) {
            chunks.extend(row.value.as_deref().map(|value| (row.key.as_str(), value)));
        }
        for JobRow { key, value } in rows.iter().filter(|row| !is_chunk(row)) {
            let Some(value) = value else { continue };
            let wrong = |problem: String| JobError::Row { key: key.clone(), problem };
            if key == DRAINED {
                let DrainedValue { changes, links } = get(key, value)?;
                check_counter("changes", changes, u64::MAX).map_err(wrong)?;
                let links = links.iter().map(|name| names.link(name)).collect::<Result<_, _>>();
                (state.changes, state.drained) = (changes, links.map_err(|error| wrong(error.to_string()))?);
            } else if let Some(stored) = key.strip_prefix(JOB) {
                let JobValue { tenant, version, mut flows, chunks: own_chunks } = get(key, value)?;
                for chunk in own_chunks.into_iter().flat_map(Chunks::keys) {
                    let value =
                        chunks.remove(chunk.as_str()).ok_or_else(|| wrong(format!("row {chunk} is missing")))?;
                    flows.append(&mut get(&chunk, value)?);
                }
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
                state.jobs.insert(own, KeptJob { version, chunks: own_chunks, flows });
            } else {
                return Err(wrong("not a row of a job".to_owned()));
            }
        }
        renamed.extend(chunks.into_keys().map(|key| JobRow { key: key.to_owned(), value: None }));
        Ok((state, renamed))
    }
}

/// Chunks for so many flows, if one row cannot have them all.
fn chunks_for(flows: usize, stage: u64, next: &mut u32) -> Option<Chunks> {
    let count = flows.div_ceil(ROW_FLOWS) as u32;
    let chunks = Chunks { stage, first: *next, count };
    (count > 1).then(|| {
        *next += count;
        chunks
    })
}

fn put(key: String, value: &impl Serialize) -> JobRow {
    // Only maps with keys other than strings cannot be written, and no row has one.
    JobRow { key, value: serde_json::to_vec(value).ok() }
}

fn get<T: DeserializeOwned>(key: &str, value: &[u8]) -> Result<T, JobError> {
    serde_json::from_slice(value).map_err(|error| JobError::Row { key: key.to_owned(), problem: error.to_string() })
}

//! Jobs as TOML.
//!
//! ```toml
//! [[job]]
//! name = "train"
//! nics = ["h1.*", "h2.*"]     # rank by rank; a star stands for every host whose name begins so
//! tensor = 2
//! data = 8
//!
//! [[job.collective]]
//! kind = "all-reduce-ring"
//! group = "data"
//! octets = 67_108_864
//! ```
//!
//! | key | meaning, unit | default |
//! |---|---|---|
//! | `job.name` | unique | |
//! | `job.tenant` | 0 to 4095: its End.DT6 ends the programs | none |
//! | `job.nics` | the host of each rank | |
//! | `job.tensor`, `.data`, `.pipeline` | sizes; their product is the number of ranks | 1, the rest, 1 |
//! | `job.expert` | ranks of a data group that share experts; divides `data` | `data` |
//! | `job.iterations` | how often its collectives run; for simulation | 1 |
//! | `job.start_us` | when for the first time, microseconds; for simulation | 0 |
//! | `job.pause_us` | from the end of an iteration to the next one, microseconds; for simulation | 0 |
//! | `job.collective.kind` | see below | |
//! | `job.collective.name` | for `--collective` | its kind |
//! | `job.collective.group` | `all`, `tensor`, `data`, `expert`, `pipeline` | `all` |
//! | `job.collective.octets` | buffer of each rank, octets | 67,108,864 |
//! | `job.collective.period_us` | how often, microseconds | as fast as links allow |
//! | `job.trace` | a file of a [`GoalTrace`], beside that of the job; in place of collectives | none |
//!
//! Kinds: `all-reduce-ring`, `all-reduce-tree`, `all-gather`, `reduce-scatter`, `all-to-all`, `send-recv`; `broadcast`,
//! along a chain, `broadcast-tree`, `broadcast-unicast`, and `broadcast-multicast`, by a multicast group.

use crate::goal::GoalTrace;
use crate::job::{Collective, CollectiveKind, GroupKind, Job, Parallel};
use serde::Deserialize;
use srdma_fabric::{HostId, MOST_BITS_PER_S, NodeId, Topology};
use srdma_toml_error::{LineError, Problem};
use std::collections::HashSet;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use toml::Spanned;

/// The default size of a buffer, in octets.
const OCTETS: u64 = 64 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    job: Vec<Spanned<JobSection>>,
}

/// A job as it is written: in a file of jobs, or as a section of another one.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobSection {
    name: Spanned<String>,
    tenant: Option<Spanned<u16>>,
    nics: Vec<Spanned<String>>,
    tensor: Option<Spanned<usize>>,
    data: Option<Spanned<usize>>,
    expert: Option<Spanned<usize>>,
    pipeline: Option<Spanned<usize>>,
    iterations: Option<Spanned<u64>>,
    start_us: Option<Spanned<u64>>,
    pause_us: Option<Spanned<u64>>,
    trace: Option<Spanned<String>>,
    #[serde(default)]
    collective: Vec<Spanned<CollectiveSection>>,
}

/// Period and times of a job's collectives.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repetition {
    pub iterations: u64,
    /// When for the first time, in microseconds.
    pub start_us: u64,
    /// Microseconds from the end of an iteration to the beginning of the next one, in which ranks compute.
    pub pause_us: u64,
}

/// The most ranks of all jobs of a file together: stars and repeated names must not make more of a short text.
const MOST_RANKS: usize = 1 << 20;

/// The most iterations of a job, and the longest time that it may wait, in microseconds.
const MOST_ITERATIONS: u64 = 1_000_000;
const MOST_US: u64 = 10_000_000;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CollectiveSection {
    kind: CollectiveKind,
    name: Option<String>,
    #[serde(default)]
    group: GroupKind,
    octets: Option<u64>,
    period_us: Option<u64>,
}

/// Reads the text of a trace, by the name that a job gives it, or says why not.
pub type ReadTrace<'a> = dyn Fn(&str) -> Result<String, String> + 'a;

/// Reads the jobs of a text that is no file, for a fabric: there are no traces beside it, and the controller that such
/// a text is sent to has groups of its own (D296).
///
/// # Errors
///
/// Names the line in error, the found and the expected value.
pub fn jobs_from_toml(text: &str, topology: &Topology) -> Result<Vec<Job>, LineError> {
    let no_files = |_: &str| Err("only jobs of files have traces: expected [[job.collective]]".to_owned());
    let jobs = jobs_with_traces_from_toml(text, topology, &no_files)?;
    match jobs.iter().find(|job| job.has_groups()) {
        Some(job) => {
            let problem = format!(
                "job {}: broadcast-multicast is for srdma plan and srdma sim: expected a broadcast of another kind, \
                 or a group of the controller",
                job.name
            );
            let kind = CollectiveKind::BroadcastMulticast.name();
            let line = text.lines().position(|line| line.contains(kind)).map_or(1, |line| line + 1);
            Err(LineError { line, problem })
        }
        None => Ok(jobs),
    }
}

/// Reads the jobs of a file, for a fabric, with their traces.
///
/// # Errors
///
/// Names the line in error, the found and the expected value.
pub fn jobs_with_traces_from_toml(
    text: &str,
    topology: &Topology,
    read_trace: &ReadTrace<'_>,
) -> Result<Vec<Job>, LineError> {
    let file: Result<File, Problem> = toml::from_str(text).map_err(|error| Problem::of_toml(&error, text));
    file.and_then(|file| jobs(&file.job, topology, read_trace)).map_err(|problem| problem.in_text(text))
}

impl JobSection {
    /// Period and times.
    ///
    /// # Errors
    ///
    /// A number that is out of its range, with its offset in the text.
    pub fn repetition(&self) -> Result<Repetition, Problem> {
        let number = |name: &str, key: &Option<Spanned<u64>>, range: RangeInclusive<u64>, default| match key {
            Some(key) if !range.contains(key.get_ref()) => {
                let text = format!("{name} {}: expected {} to {}", key.get_ref(), range.start(), range.end());
                wrong(key.span(), text)
            }
            Some(key) => Ok(*key.get_ref()),
            None => Ok(default),
        };
        Ok(Repetition {
            iterations: number("iterations", &self.iterations, 1..=MOST_ITERATIONS, 1)?,
            start_us: number("start_us", &self.start_us, 0..=MOST_US, 0)?,
            pause_us: number("pause_us", &self.pause_us, 0..=MOST_US, 0)?,
        })
    }
}

/// The jobs of sections that were read from a text, for a fabric.
///
/// # Errors
///
/// The error, with its offset in the text.
pub fn jobs(
    sections: &[Spanned<JobSection>],
    topology: &Topology,
    read_trace: &ReadTrace<'_>,
) -> Result<Vec<Job>, Problem> {
    let mut jobs: Vec<Job> = Vec::new();
    let mut names: HashSet<&str> = HashSet::new();
    let mut room = MOST_RANKS;
    for section in sections {
        let (at, section) = (section.span(), section.get_ref());
        if !names.insert(section.name.get_ref()) {
            return wrong(section.name.span(), format!("two jobs are called {}", section.name.get_ref()));
        }
        if let Some(tenant) = section.tenant.as_ref().filter(|tenant| *tenant.get_ref() > 4095) {
            return wrong(tenant.span(), format!("tenant {}: expected 0 to 4095", tenant.get_ref()));
        }
        section.repetition()?;
        let nics = nics(section, topology, room)?;
        room -= nics.len();
        let parallel = parallel(section, at, nics.len())?;
        let collectives = section.collective.iter().map(collective).collect::<Result<_, _>>()?;
        let trace = trace(section, nics.len(), read_trace)?;
        let tenant = section.tenant.as_ref().map(|tenant| *tenant.get_ref());
        jobs.push(Job { name: section.name.get_ref().clone(), tenant, nics, parallel, collectives, trace });
    }
    Ok(jobs)
}

fn nics(section: &JobSection, topology: &Topology, room: usize) -> Result<Vec<HostId>, Problem> {
    let mut nics = Vec::new();
    for name in &section.nics {
        let (at, name) = (name.span(), name.get_ref());
        let before = nics.len();
        if let Some(beginning) = name.strip_suffix('*') {
            nics.extend(topology.hosts_beginning(beginning));
        } else if let Some(NodeId::Host(host)) = topology.node(name) {
            nics.push(host);
        }
        if nics.len() == before {
            return wrong(at, format!("{name} is no NIC of this fabric"));
        }
        if nics.len() > room {
            return wrong(at, format!("the jobs have more than {MOST_RANKS} ranks together"));
        }
    }
    match nics.len() {
        0 => wrong(section.name.span(), format!("job {} has no NICs", section.name.get_ref())),
        _ => Ok(nics),
    }
}

fn parallel(section: &JobSection, at: Range<usize>, ranks: usize) -> Result<Parallel, Problem> {
    let size = |key: &Option<Spanned<usize>>| key.as_ref().map(|size| *size.get_ref());
    let (tensor, pipeline) = (size(&section.tensor).unwrap_or(1), size(&section.pipeline).unwrap_or(1));
    let others = tensor.saturating_mul(pipeline);
    let data = size(&section.data).unwrap_or(ranks.checked_div(others).unwrap_or(0));
    if others.saturating_mul(data) != ranks || ranks == 0 {
        let text = format!("tensor {tensor} × data {data} × pipeline {pipeline} ranks, but the job has {ranks} NICs");
        return wrong(at, text);
    }
    let expert = size(&section.expert).unwrap_or(data);
    if expert == 0 || !data.is_multiple_of(expert) {
        let at = section.expert.as_ref().map_or(at, Spanned::span);
        return wrong(at, format!("expert {expert}: expected a number that divides data, {data}"));
    }
    Ok(Parallel { tensor, data, expert, pipeline })
}

fn collective(section: &Spanned<CollectiveSection>) -> Result<Collective, Problem> {
    let (at, section) = (section.span(), section.get_ref());
    let octets = section.octets.unwrap_or(OCTETS);
    if octets == 0 || section.period_us == Some(0) {
        return wrong(at, "a collective of 0 octets, or every 0 microseconds: expected 1 or more".to_owned());
    }
    let CollectiveSection { kind, group, period_us, .. } = *section;
    if let Some(period_us) = period_us
        && u128::from(octets) * 8_000_000 > u128::from(MOST_BITS_PER_S) * u128::from(period_us)
    {
        let text =
            format!("{octets} octets every {period_us} microseconds: expected {MOST_BITS_PER_S} bits a second at most");
        return wrong(at, text);
    }
    let name = section.name.clone().unwrap_or_else(|| kind.name().to_owned());
    Ok(Collective { name, kind, group, octets, period_us })
}

/// The trace of a job, if it has one.
fn trace(section: &JobSection, nics: usize, read_trace: &ReadTrace<'_>) -> Result<Option<Arc<GoalTrace>>, Problem> {
    let Some(file) = &section.trace else { return Ok(None) };
    let (at, name) = (file.span(), file.get_ref());
    if let Some(collective) = section.collective.first() {
        let text = "a job with a trace and a collective: expected one of them".to_owned();
        return wrong(collective.span(), text);
    }
    let parsed = read_trace(name).and_then(|text| GoalTrace::parse(&text).map_err(|error| error.to_string()));
    match parsed {
        Err(error) => wrong(at, format!("trace {name}: {error}")),
        Ok(trace) if trace.ranks() != nics => {
            wrong(at, format!("trace {name} has {} ranks, but the job has {nics} NICs", trace.ranks()))
        }
        Ok(trace) => Ok(Some(Arc::new(trace))),
    }
}

fn wrong<T>(at: Range<usize>, text: String) -> Result<T, Problem> {
    Err(Problem::new(at.start, text))
}

//! Evaluates changes of jobs on a snapshot.

use super::rows::{State, key_of, parts_of};
use super::{JobError, JobRows, Jobs, MAX_FLOWS};
use crate::settings::Tenant;
use srdma_api::{NewJob, PlacedFlow, WhatIf, WhatIfAnswer};
use srdma_fabric::{HostId, LinkId, NodeId, Topology};
use srdma_placement::{
    Collective, Deadline, Flow, Job, ListedFlow, Loads, Numbered, Phase, Plan, directions, jobs_from_toml,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Limit of the work for the bound in an answer, in visited links: some tens of milliseconds.
const WORK: usize = 5_000_000;

/// Limit of octets of a job's name.
const MAX_NAME_OCTETS: usize = 64;

/// An evaluated change: the states before and after it, and its effect.
#[derive(Debug)]
pub struct Evaluated {
    before: Arc<State>,
    next: Arc<State>,
    /// The rows that change.
    pub rows: JobRows,
    /// The effect.
    pub answer: WhatIfAnswer,
}

impl Evaluated {
    pub(super) fn starts_from(&self, state: &Arc<State>) -> bool {
        Arc::ptr_eq(&self.before, state)
    }

    pub(super) fn next(&self) -> Arc<State> {
        Arc::clone(&self.next)
    }
}

impl Jobs {
    /// Evaluates a change: jobs of the tenant are removed, links released and drained, then jobs of the tenant added,
    /// all or none. Flows of others move only where that relieves the most loaded link. The same change on the same
    /// state has the same result, unless the deadline ends it. `viewer`: the tenant that receives the answer, which has
    /// flows and loads of this tenant only; without one it has all.
    ///
    /// # Errors
    ///
    /// Invalid jobs file; a name that exists or does not exist; a quota; a NIC or number that is not the tenant's; no
    /// path; a NIC would be cut off; the time is over.
    pub fn evaluate(
        &self,
        change: &WhatIf,
        tenant: &Tenant,
        viewer: Option<&str>,
        deadline: Deadline<'_>,
    ) -> Result<Evaluated, JobError> {
        let in_time = |error| if deadline.phase() == Phase::Stop { JobError::TimeOver } else { error };
        self.evaluate_within(change, tenant, viewer, deadline).map_err(in_time)
    }

    fn evaluate_within(
        &self,
        change: &WhatIf,
        tenant: &Tenant,
        viewer: Option<&str>,
        deadline: Deadline<'_>,
    ) -> Result<Evaluated, JobError> {
        let WhatIf { add, remove, drain, release } = change;
        let removed: BTreeSet<String> = remove.iter().map(|name| key_of(&tenant.name, name)).collect();
        if let Some(key) = removed.iter().find(|key| !self.state.jobs.contains_key(*key)) {
            return Err(JobError::Unknown { name: parts_of(key).1.to_owned() });
        }
        let released = self.links(release)?;
        if let Some(failed) = released.iter().find(|link| self.fabric.topology.is_failed(**link)) {
            return Err(JobError::Failed { link: self.fabric.topology.link_name(*failed) });
        }
        let drained = self.links(drain)?;
        let wanted = match add {
            Some(NewJob { jobs }) => self.wanted(jobs, &removed, tenant)?,
            None => Vec::new(),
        };
        let new: BTreeSet<String> = wanted.iter().map(|flow| flow.job.clone()).collect();
        let mut plan = self.plan(deadline)?;
        let before = self.most_loaded(&plan, viewer);
        if !removed.is_empty() {
            plan.remove(|flow| removed.contains(&flow.wanted.job));
        }
        if !released.is_empty() {
            plan.release(&released);
        }
        if !drained.is_empty() {
            let cut_off = |error| JobError::Disconnects { names: drain.join(", "), problem: error };
            plan.drain(&drained).map_err(cut_off)?;
        }
        if !wanted.is_empty() {
            plan.add(wanted).map_err(JobError::NoPath)?;
        }
        let is_shown = |flow: &&Numbered| viewer.is_none_or(|viewer| parts_of(&flow.wanted.job).0 == viewer);
        let (moved, of_others): (Vec<&Numbered>, Vec<&Numbered>) =
            plan.moved().map(|(flow, _)| flow).partition(|flow| is_shown(flow));
        let answer = WhatIfAnswer {
            added: self.placed_of(&plan, plan.added())?,
            removed: plan.removed().len() as u32,
            moved: self.placed_of(&plan, moved.into_iter())?,
            moved_of_others: of_others.len() as u32,
            before,
            after: self.most_loaded(&plan, viewer),
            bound: match viewer {
                None => plan.placement().bound_within(WORK),
                Some(_) => {
                    let own: Vec<Flow> = plan.flows().iter().filter(is_shown).map(|flow| flow.wanted.flow).collect();
                    plan.placement().bound_of_within(&own, WORK)
                }
            },
            is_cut_short: plan.placement().is_cut_short(),
        };
        let next = self.state.after(&plan, &new, self.take_stage());
        let rows = next.rows_since(&self.state, &self.fabric.topology);
        Ok(Evaluated { before: Arc::clone(&self.state), next: Arc::new(next), rows, answer })
    }

    /// Load of the most loaded link, by all flows, or by those of a tenant alone.
    fn most_loaded(&self, plan: &Plan<'_>, viewer: Option<&str>) -> f64 {
        let Some(viewer) = viewer else { return plan.placement().most_loaded().1 };
        let topology = &self.fabric.topology;
        let mut loads = Loads::none(topology);
        for flow in plan.flows().iter().filter(|flow| parts_of(&flow.wanted.job).0 == viewer) {
            if let Some(path) = plan.placement().path(flow.id) {
                loads.add(topology, &directions(topology, &path), flow.wanted.flow.rate_bits_per_s);
            }
        }
        loads.most_loaded(topology).1
    }

    /// The flows of the jobs in a text, whose names the tenant must not use, except for removed jobs.
    fn wanted(&self, text: &str, removed: &BTreeSet<String>, tenant: &Tenant) -> Result<Vec<ListedFlow>, JobError> {
        let topology = &self.fabric.topology;
        let mut jobs = jobs_from_toml(text, topology).map_err(JobError::NotJobs)?;
        let is_permitted = permitted_nics(topology, tenant);
        let mut found = 0_u64;
        for job in &mut jobs {
            let name = job.name.clone();
            let is_usual = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
            if name.is_empty() || name.len() > MAX_NAME_OCTETS || !name.chars().all(is_usual) {
                return Err(JobError::Name { name });
            }
            let key = key_of(&tenant.name, &name);
            if self.state.jobs.contains_key(&key) && !removed.contains(&key) {
                return Err(JobError::Exists { name });
            }
            check_permitted(topology, job, tenant, &is_permitted)?;
            // Groups of one rank send nothing, but are visited.
            let work = |collective: &Collective| job.most_flows(collective).max(job.nics.len() as u64);
            found = job.collectives.iter().map(work).fold(found, u64::saturating_add);
        }
        self.check_quotas(tenant, removed, jobs.len(), found)?;
        let mut wanted = Vec::new();
        for job in jobs {
            let before = wanted.len();
            // The flows have the key as their job.
            let keyed = Job { name: key_of(&tenant.name, &job.name), ..job };
            wanted.extend(keyed.wanted(topology, |_| true));
            if wanted.len() == before {
                return Err(JobError::NoFlows { name: parts_of(&keyed.name).1.to_owned() });
            }
        }
        if wanted.is_empty() { Err(JobError::NoJobs) } else { Ok(wanted) }
    }

    /// Checks the quotas of the tenant, and the room for flows of all.
    fn check_quotas(
        &self,
        tenant: &Tenant,
        removed: &BTreeSet<String>,
        jobs: usize,
        flows: u64,
    ) -> Result<(), JobError> {
        let stays = |key: &String| !removed.contains(key);
        let own = self.of_tenant(&tenant.name).filter(|(key, _)| stays(key));
        let (has_jobs, has) =
            own.fold((0, 0_u64), |(jobs, flows), (_, job)| (jobs + 1, flows + job.flows.len() as u64));
        let name = || tenant.name.clone();
        if has_jobs + jobs > tenant.jobs {
            return Err(JobError::JobQuota { tenant: name(), found: jobs, has: has_jobs, most: tenant.jobs });
        }
        if has.saturating_add(flows) > tenant.flows {
            return Err(JobError::FlowQuota { tenant: name(), found: flows, has, most: tenant.flows });
        }
        let of_all = self.state.jobs.iter().filter(|(key, _)| stays(key)).map(|(_, job)| job.flows.len() as u64);
        match of_all.sum::<u64>().saturating_add(flows) > MAX_FLOWS {
            true => Err(JobError::TooManyFlows { found: flows }),
            false => Ok(()),
        }
    }

    /// The links of these names, each once.
    fn links(&self, names: &[String]) -> Result<Vec<LinkId>, JobError> {
        let names: BTreeSet<&String> = names.iter().collect();
        let mut links = BTreeSet::new();
        for name in names {
            let found = self.fabric.topology.links_named(name);
            links.extend(found.ok_or_else(|| JobError::UnknownLink { name: name.clone() })?);
        }
        Ok(links.into_iter().collect())
    }

    fn placed_of<'p>(
        &self,
        plan: &'p Plan<'_>,
        flows: impl Iterator<Item = &'p Numbered>,
    ) -> Result<Vec<PlacedFlow>, JobError> {
        flows.filter_map(|flow| plan.keep(flow)).map(|flow| self.placed(&flow)).collect()
    }
}

/// Whether a tenant may use each NIC.
fn permitted_nics(topology: &Topology, tenant: &Tenant) -> Vec<bool> {
    let mut is_permitted = vec![tenant.has_all_nics; topology.hosts().len()];
    for nic in nics_of(topology, &tenant.nics) {
        is_permitted[nic.index()] = true;
    }
    is_permitted
}

/// The NICs that these names stand for.
fn nics_of(topology: &Topology, names: &[String]) -> Vec<HostId> {
    let nics = names.iter().flat_map(|name| match (name.strip_suffix('*'), topology.node(name)) {
        (Some(beginning), _) => topology.hosts_beginning(beginning),
        (None, Some(NodeId::Host(host))) => vec![host],
        (None, Some(NodeId::Switch(_)) | None) => Vec::new(),
    });
    nics.collect()
}

/// Checks that a job uses its tenant's NICs only, and that its programs end in the tenant's number.
fn check_permitted(topology: &Topology, job: &mut Job, tenant: &Tenant, is_permitted: &[bool]) -> Result<(), JobError> {
    let (name, owner) = (|job: &Job| job.name.clone(), || tenant.name.clone());
    if let Some(nic) = job.nics.iter().find(|nic| !is_permitted[nic.index()]) {
        let nic = topology.name(NodeId::Host(*nic)).to_owned();
        return Err(JobError::Nic { name: name(job), nic, tenant: owner() });
    }
    if tenant.has_all_nics {
        return Ok(());
    }
    match job.tenant {
        Some(number) if tenant.number != Some(number) => {
            Err(JobError::Number { name: name(job), number, tenant: owner() })
        }
        Some(_) | None => {
            job.tenant = tenant.number;
            Ok(())
        }
    }
}

impl Jobs {
    /// A name of these that stands for no NIC of the fabric.
    pub fn unknown_nic<'n>(&self, names: &'n [String]) -> Option<&'n String> {
        names.iter().find(|name| nics_of(&self.fabric.topology, std::slice::from_ref(name)).is_empty())
    }
}

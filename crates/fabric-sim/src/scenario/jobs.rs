//! Jobs of a scenario: those of a job file, with one rank per NIC, and the number of iterations.

use srdma_fabric::{HostId, NodeId, Topology};
use srdma_placement::job_file::{JobSection, Repetition, jobs};
use srdma_placement::{CollectiveKind, GroupKind, Job};
use srdma_toml_error::{Problem, read_beside};
use std::collections::BTreeSet;
use std::path::Path;
use toml::Spanned;

/// The jobs of these sections of a file.
///
/// # Errors
///
/// Those of a job file; a NIC with two ranks of a job; a job without messages, or with multicast groups of several
/// kinds.
pub(super) fn resolve(
    sections: &[Spanned<JobSection>],
    topology: &Topology,
    file: &Path,
) -> Result<Vec<(Job, Repetition)>, Problem> {
    let mut all = Vec::new();
    for (job, section) in jobs(sections, topology, &|name| read_beside(file, name))?.into_iter().zip(sections) {
        let (at, section) = (section.span().start, section.get_ref());
        let mut seen: BTreeSet<HostId> = BTreeSet::new();
        if let Some(nic) = job.nics.iter().find(|nic| !seen.insert(**nic)) {
            let nic = topology.name(NodeId::Host(*nic));
            let text = format!("job {} has two ranks at NIC {nic}: expected one for each", job.name);
            return Err(Problem::new(at, text));
        }
        if job.collectives.is_empty() && job.trace.is_none() {
            let text =
                format!("job {} sends nothing: expected one [[workload.job.collective]] at least, or trace", job.name);
            return Err(Problem::new(at, text));
        }
        let groups = job.collectives.iter().filter(|own| own.kind == CollectiveKind::BroadcastMulticast);
        let kinds: Vec<GroupKind> = groups.map(|own| own.group).collect();
        if kinds.windows(2).any(|pair| pair[0] != pair[1]) {
            let text = format!("job {} has groups of several kinds: expected a job for each", job.name);
            return Err(Problem::new(at, text));
        }
        all.push((job, section.repetition()?));
    }
    Ok(all)
}

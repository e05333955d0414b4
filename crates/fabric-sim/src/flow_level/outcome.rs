//! Results of a run at flow level.

use super::{FlowLevelRun, PS_PER_NS};
use crate::job_results::{add_jobs, job_result, link_result, recovery_ns};
use crate::max_min::FlowId;
use crate::results::{JobResult, LinkResult, SlowestResult, Summary, Totals, VariantResult};
use srdma_fabric::NodeId;

impl FlowLevelRun<'_> {
    pub(super) fn result(mut self) -> VariantResult {
        (0..self.states.len()).for_each(|flow| self.count(FlowId(flow as u32)));
        let states = self.jobs.states().iter().enumerate();
        let jobs: Vec<JobResult> =
            states.map(|(task, state)| job_result(self.scenario, state, self.slowest(task))).collect();
        let links = self.links();
        let summary =
            Summary { recovery_ns: recovery_ns(self.scenario, &jobs), ..add_jobs(Summary::default(), &jobs, &links) };
        let octets = self.sent.iter().map(|sent| sent.octets).sum();
        VariantResult {
            variant: self.variant.name.clone(),
            title: self.variant.title().to_owned(),
            seed: self.seed,
            simulated_ns: self.now_ps / PS_PER_NS,
            packet_hops: 0,
            skipped_ns: 0,
            verified_icrc: self.scenario.hosts.verify_icrc,
            flows: Vec::new(),
            ports: Vec::new(),
            series: Vec::new(),
            notifications: Vec::new(),
            jobs,
            links,
            totals: Totals { octets_sent: octets, octets_delivered: octets, ..Totals::default() },
            summary,
        }
    }

    /// Takes what has completed through a flow for its links.
    pub(super) fn count(&mut self, flow: FlowId) {
        let octets = std::mem::take(&mut self.states[flow.0 as usize].octets);
        self.flows.links(flow).for_each(|link| self.carried[link as usize] += octets);
    }

    fn links(&self) -> Vec<LinkResult> {
        let topology = &self.scenario.topology;
        let both = topology.links().iter().zip(self.carried.chunks(2)).flat_map(|(link, carried)| {
            let [one, other] = link.ends;
            carried
                .iter()
                .zip([[one, other], [other, one]])
                .map(|(octets, ends)| link_result(topology, link, ends, *octets))
        });
        both.collect()
    }

    /// The slowest channel of a task, over the time with messages in flight.
    fn slowest(&self, task: usize) -> Option<SlowestResult> {
        let channels = self.jobs.channels.iter().zip(&self.sent);
        let of_task = channels.filter(|(channel, sent)| channel.task == task && sent.busy_ps > 0);
        let rates = of_task.map(|(channel, sent)| (sent.octets as f64 * 8e12 / sent.busy_ps as f64, channel));
        let (bits_per_s, channel) = rates.min_by(|one, other| one.0.total_cmp(&other.0))?;
        let [source, destination] =
            [channel.from, channel.to].map(|host| self.scenario.topology.name(NodeId::Host(host)).to_owned());
        Some(SlowestResult { source, destination, bits_per_s })
    }
}

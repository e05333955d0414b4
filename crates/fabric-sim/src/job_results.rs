//! Results of jobs.

use super::iterations::{Iteration, State};
use super::parallel::locked;
use super::path::full_packet_octets;
use super::results::{IterationResult, JobResult, LinkResult, SlowestResult, Summary, percentile};
use super::run::Run;
use super::scenario::FabricScenario;
use super::tasks::rate_of;
use super::teardown::QueuePairTotals;
use srdma_dataplane::Traffic;
use srdma_fabric::{End, Link, NodeId, Topology};
use srdma_frame::PortId;
use srdma_sim::link::FRAMING_OCTETS;

/// Factor of the usual duration above which an iteration is considered affected by a failure.
const SUFFERS: f64 = 1.1;

impl Run<'_> {
    /// A result for each task.
    pub(super) fn job_results(&self) -> Vec<JobResult> {
        let states = self.jobs.states().iter().enumerate();
        states.map(|(task, state)| job_result(self.scenario, state, self.slowest(task))).collect()
    }

    fn slowest(&self, task: usize) -> Option<SlowestResult> {
        let sent = self.fabric.all_servers().flat_map(|server| server.sent());
        let of_task = sent.filter(|(channel, sent)| self.jobs.channels[*channel].task == task && sent.busy_ns > 0);
        let rates = of_task.map(|(channel, sent)| (sent.octets as f64 * 8e9 / sent.busy_ns as f64, channel));
        let (bits_per_s, channel) = rates.min_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)))?;
        let channel = &self.jobs.channels[channel];
        let [source, destination] =
            [channel.from, channel.to].map(|host| self.scenario.topology.name(NodeId::Host(host)).to_owned());
        Some(SlowestResult { source, destination, bits_per_s })
    }

    /// Sender counters of each queue pair of jobs.
    pub(super) fn channel_totals(&self) -> impl Iterator<Item = QueuePairTotals> {
        let channels = self.jobs.channels.iter().enumerate();
        channels.flat_map(|(number, channel)| {
            let sender = self.fabric.server(channel.from);
            let counters = self.lanes(number).filter_map(move |qpn| sender?.endpoint().counters(qpn));
            counters.map(|counters| QueuePairTotals::of(counters, 0)).collect::<Vec<QueuePairTotals>>()
        })
    }

    /// NAKs of receivers of jobs.
    fn out_of_order(&self) -> u64 {
        let channels = self.jobs.channels.iter().enumerate();
        let naks = channels.flat_map(|(number, channel)| {
            let receiver = self.fabric.server(channel.to);
            self.lanes(number).filter_map(move |qpn| Some(receiver?.endpoint().counters(qpn)?.naks_sent))
        });
        naks.sum()
    }

    /// Octets of each link in each direction, by the counters of its switch.
    pub(super) fn link_results(&self) -> Vec<LinkResult> {
        if self.jobs.channels.is_empty() {
            return Vec::new();
        }
        let skipped = self.skipped.links.iter().copied().chain(std::iter::repeat(0));
        let result = |((link, ends), skipped)| {
            let octets = self.carried_octets(ends) + skipped;
            link_result(&self.scenario.topology, link, ends, octets)
        };
        self.directions().zip(skipped).map(result).collect()
    }

    /// Each link in each direction.
    pub(super) fn directions(&self) -> impl Iterator<Item = (&Link, [End; 2])> {
        let links = self.scenario.topology.links().iter();
        let both = |link: &'_ Link| {
            let [one, other] = link.ends;
            [[one, other], [other, one]]
        };
        let is_counted = |ends: &[End; 2]| ends.iter().any(|end| matches!(end.node, NodeId::Switch(_)));
        links.flat_map(move |link| both(link).into_iter().filter(is_counted).map(move |ends| (link, ends)))
    }

    /// Octets of a link in a direction, by the counters of its switch.
    pub(super) fn carried_octets(&self, ends: [End; 2]) -> u64 {
        self.traffic(ends).map_or(0, |traffic| traffic.octets + traffic.frames * FRAMING_OCTETS)
    }

    fn traffic(&self, [from, to]: [End; 2]) -> Option<Traffic> {
        match (from.node, to.node) {
            (NodeId::Switch(switch), _) => Some(self.fabric.switch(switch)?.port_counters(PortId(from.port))?.enqueued),
            (NodeId::Host(_), NodeId::Switch(switch)) => {
                Some(self.fabric.switch(switch)?.port_counters(PortId(to.port))?.received)
            }
            (NodeId::Host(_), NodeId::Host(_)) => None,
        }
    }

    /// Adds the results of jobs.
    pub(super) fn with_jobs(&self, summary: Summary, jobs: &[JobResult], links: &[LinkResult]) -> Summary {
        if jobs.is_empty() {
            return summary;
        }
        Summary {
            recovery_ns: recovery_ns(self.scenario, jobs),
            out_of_order: Some(self.out_of_order()),
            path_changes: self.variant.steering.then(|| self.fabric.all_servers().map(|server| server.moves()).sum()),
            lost_on_links: (!self.scenario.failures.is_empty()).then(|| self.fabric.network.lost()),
            ..add_jobs(summary, jobs, links)
        }
    }
}

/// The result of a task.
pub(super) fn job_result(scenario: &FabricScenario, state: &State, slowest: Option<SlowestResult>) -> JobResult {
    let task = locked(&state.task);
    let result = |it: &Iteration| IterationResult { started_ns: it.started_ns, finished_ns: it.finished_ns };
    let octets = task.busiest_octets() as f64 / f64::from(task.begun().max(1));
    let mtu = u64::from(scenario.hosts.path_mtu().octets());
    let rate = task.nics().first().map_or(1, |nic| rate_of(&scenario.topology, *nic));
    JobResult {
        name: scenario.jobs[task.job].0.name.clone(),
        ideal_ns: octets / mtu as f64 * full_packet_octets(mtu) as f64 * 8e9 / rate as f64,
        iterations: state.iterations.iter().map(result).collect(),
        slowest,
    }
}

/// The result of a link in one direction, by the octets that it carried.
pub(super) fn link_result(topology: &Topology, link: &Link, [from, to]: [End; 2], octets: u64) -> LinkResult {
    LinkResult {
        name: format!("{}-{}", topology.name(from.node), topology.name(to.node)),
        in_fabric: [from, to].iter().all(|end| matches!(end.node, NodeId::Switch(_))),
        octets,
        busy_ns: (octets as f64 * 8e9 / link.rate_bits_per_s as f64) as u64,
    }
}

/// Adds the measures of iterations and links.
pub(super) fn add_jobs(summary: Summary, jobs: &[JobResult], links: &[LinkResult]) -> Summary {
    let took = |it: &IterationResult| Some((it.finished_ns? - it.started_ns) as f64);
    let all = || jobs.iter().flat_map(|job| &job.iterations);
    let mut times: Vec<f64> = all().filter_map(took).collect();
    let over = |job: &JobResult| -> Vec<f64> {
        job.iterations.iter().filter_map(|it| Some(took(it)? / job.ideal_ns.max(1.0))).collect()
    };
    let mut over: Vec<f64> = jobs.iter().flat_map(over).collect();
    let in_fabric = || links.iter().filter(|link| link.in_fabric && link.octets > 0);
    let busiest = in_fabric().map(|link| link.busy_ns).max().map(|busy| busy as f64);
    let of_nics = links.iter().filter(|link| !link.in_fabric).map(|link| link.busy_ns).max();
    let mean = in_fabric().map(|link| link.busy_ns as f64).sum::<f64>() / in_fabric().count().max(1) as f64;
    let slowest = jobs.iter().filter_map(|job| Some(job.slowest.as_ref()?.bits_per_s));
    Summary {
        iteration_p50_ns: percentile(&mut times, 0.5),
        iteration_longest_ns: percentile(&mut times, 1.0),
        iteration_over_ideal: percentile(&mut over, 0.5),
        busiest_link: busiest.zip(of_nics).map(|(busiest, nic)| busiest / nic.max(1) as f64),
        link_over_mean: busiest.map(|busiest| busiest / mean.max(1.0)),
        slowest_bits_per_s: slowest.reduce(f64::min),
        unfinished: summary.unfinished + all().filter(|it| it.finished_ns.is_none()).count() as u64,
        ..summary
    }
}

/// Time for which jobs are slowed down after the first failure; 0 if not at all, `None` if to the end.
pub(super) fn recovery_ns(scenario: &FabricScenario, jobs: &[JobResult]) -> Option<f64> {
    let failed_ns = scenario.failures.iter().map(|failure| failure.at_ns).min()?;
    let mut longest = 0.0_f64;
    for job in jobs {
        let ended = job.iterations.iter().filter_map(|it| Some((it.started_ns, it.finished_ns?)));
        let (before, after): (Vec<_>, Vec<_>) = ended.partition(|(_, finished)| *finished <= failed_ns);
        let mut usual: Vec<f64> = before.iter().map(|(start, end)| (end - start) as f64).collect();
        let usual_ns = percentile(&mut usual, 0.5)?;
        let suffers = |(start, end): &&(u64, u64)| (end - start) as f64 > SUFFERS * usual_ns;
        if job.iterations.iter().any(|it| it.finished_ns.is_none()) {
            return None;
        }
        let last = after.iter().filter(suffers).map(|(_, end)| *end).max();
        longest = longest.max(last.map_or(0.0, |last| (last - failed_ns) as f64));
    }
    Some(longest)
}

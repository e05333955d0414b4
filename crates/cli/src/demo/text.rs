//! The result of `srdma demo` as text.

use super::Run;
use super::table::Table;
use crate::units::{count, grouped, octets, rate, time};
use srdma_group::RepairMode;
use srdma_sim::baseline::BaselineOutcome;
use srdma_sim::fabric::Headend;
use srdma_sim::topology::Topology;
use srdma_sim::transfer::{Branching, LinkOutcome, Operation, Outcome, ReceiverOutcome};
use std::fmt;

/// More receivers or links than this are summarised.
const MOST_ROWS: usize = 16;

/// Printed digits of a SHA-256.
const SHA256_DIGITS: usize = 16;

impl fmt::Display for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.heading())?;
        writeln!(f, "{}\n", self.path())?;
        write!(f, "{}\n{}\n", self.receivers(), self.links())?;
        write!(f, "{}", self.summary())?;
        if !self.compare.is_empty() {
            write!(f, "\n{}", self.comparison())?;
        }
        write!(f, "\n{}", self.verdict())
    }
}

impl Run<'_> {
    fn heading(&self) -> String {
        let scenario = self.scenario;
        let receivers = scenario.topology.receivers().len();
        let tree = if scenario.topology == Topology::figure_1() { " of Figure 1" } else { "" };
        let operation = match scenario.operation {
            Operation::Write => "WRITE",
            Operation::Send => "SEND",
        };
        format!(
            "{} from S1 to {}{tree}: RDMA {operation} in messages of {}, path MTU {}, seed {}",
            octets(self.size_octets),
            count(receivers as u64, "receiver"),
            octets(u64::from(scenario.message_octets)),
            scenario.path_mtu.octets(),
            scenario.seed
        )
    }

    fn path(&self) -> String {
        let scenario = self.scenario;
        let branching = match scenario.branching {
            Branching::Replicate => "replication SIDs",
            Branching::Multicast => "an IPv6 multicast group",
            Branching::Mixed => "replication SIDs and multicast groups",
        };
        let headend = match scenario.headend {
            Headend::FirstHop => scenario.topology.nodes()[0].name.as_str(),
            Headend::Host => "S1's own switch",
        };
        let lists = if self.group.lists_in_packets() { "in TLVs" } else { "provisioned" };
        format!(
            "Tree by {branching} from {headend}, receiver lists {lists}, {} octets around each packet; links of {}, {}",
            self.group.overhead().octets(),
            rate(scenario.link.rate_bits_per_s),
            time(scenario.link.delay_ns)
        )
    }

    fn receivers(&self) -> Table {
        let receivers = &self.outcome.receivers;
        let mut table = Table::new(&["receiver", "octets", "ACKs sent", "NAKs sent", "SHA-256"]).with_text_last();
        if receivers.len() <= MOST_ROWS {
            for receiver in receivers {
                table.row(receiver_row(receiver));
            }
            return table;
        }
        let identical = receivers.iter().filter(|receiver| receiver.is_identical).count();
        let verdict = format!("= source's at {}", grouped(identical as u64));
        let last = receivers.len() - 1;
        for (name, place, verdict) in [("least", 0, ""), ("median", last / 2, ""), ("most", last, &verdict)] {
            let column = |value: fn(&ReceiverOutcome) -> u64| {
                let mut values: Vec<u64> = receivers.iter().map(value).collect();
                values.sort_unstable();
                grouped(values[place])
            };
            table.row([
                name.to_owned(),
                column(|receiver| receiver.octets),
                column(|receiver| receiver.acks_sent),
                column(|receiver| receiver.naks_sent),
                verdict.to_owned(),
            ]);
        }
        table
    }

    fn links(&self) -> Table {
        let links = &self.outcome.links;
        let mut table = Table::new(&["link", "octets down", "octets up", "frames lost"]);
        let row = |name: String, links: &[&LinkOutcome]| {
            let sum = |value: fn(&LinkOutcome) -> u64| grouped(links.iter().map(|link| value(link)).sum());
            [name, sum(|link| link.down_octets), sum(|link| link.up_octets), sum(|link| link.lost_packets)]
        };
        if links.len() <= MOST_ROWS {
            for link in links {
                table.row(row(link.name.clone(), &[link]));
            }
            return table;
        }
        let levels = self.scenario.topology.levels();
        for level in 1..=levels + 1 {
            let depths = self.link_levels();
            let of_level: Vec<&LinkOutcome> =
                links.iter().zip(depths).filter(|(_, depth)| *depth == level).map(|(link, _)| link).collect();
            let name = match of_level.as_slice() {
                [link] => link.name.clone(),
                several if level > levels => format!("{} to receivers", count(several.len() as u64, "link")),
                several => format!("{} links of level {level}", grouped(several.len() as u64)),
            };
            table.row(row(name, &of_level));
        }
        table
    }

    /// Number of links between the source and the lower end of each link.
    fn link_levels(&self) -> impl Iterator<Item = usize> {
        let topology = &self.scenario.topology;
        let of_nodes = (0..topology.nodes().len()).map(|position| topology.path_up(position).count());
        of_nodes.chain(topology.receivers().iter().map(|leaf| topology.path_up(leaf.edge).count() + 1))
    }

    fn summary(&self) -> Table {
        let Outcome { source, receivers, .. } = self.outcome;
        let total = |value: fn(&ReceiverOutcome) -> u64| grouped(receivers.iter().map(value).sum());
        let lines = [
            (
                "source egress",
                format!(
                    "{:.3} × the data: {}, {} of them retransmissions",
                    source.egress_octets as f64 / self.size_octets as f64,
                    count(source.packets_sent, "packet"),
                    grouped(source.packets_retransmitted)
                ),
            ),
            (
                "ACKs",
                format!(
                    "{} sent by receivers, {} received by the source",
                    total(|r| r.acks_sent),
                    grouped(source.acks_received)
                ),
            ),
            (
                "NAKs",
                format!(
                    "{} sent by receivers, {} received by the source",
                    total(|r| r.naks_sent),
                    grouped(source.naks_received)
                ),
            ),
            ("timeouts", grouped(source.timeouts)),
            ("repair", self.repair()),
            ("completion", self.outcome.completion_ns.map_or("never".to_owned(), |ns| self.completion(ns))),
            ("simulated", self.simulated()),
        ];
        let mut table = Table::of_lines();
        for (name, value) in lines {
            table.row([name.to_owned(), value]);
        }
        table
    }

    fn repair(&self) -> String {
        if self.scenario.repair == RepairMode::Off {
            return "off".to_owned();
        }
        let repair = &self.outcome.repair;
        format!(
            "{} sent again by nodes; {} answered by them, {} between them, {}",
            count(repair.packets_resent, "packet"),
            count(repair.naks_absorbed, "NAK"),
            count(repair.requests_sent, "request"),
            count(repair.probes, "probe"),
        )
    }

    fn simulated(&self) -> String {
        let hops = format!("{} packet-hops in {:.2} s", grouped(self.outcome.hops), self.wall.as_secs_f64());
        match self.outcome.dropped_for_memory {
            0 => hops,
            dropped => format!("{hops}, {} dropped for lack of memory", count(dropped, "frame")),
        }
    }

    fn completion(&self, ns: u64) -> String {
        let bits_per_s = self.size_octets as f64 * 8e9 / ns.max(1) as f64;
        format!("{}, {} of data to each receiver", time(ns), rate(bits_per_s as u64))
    }

    fn comparison(&self) -> Table {
        let mut table = Table::new(&["algorithm", "completion", "× multicast", "source egress", "chunks of"]);
        let multicast_ns = self.outcome.completion_ns;
        let row = |name: &str, completion_ns: Option<u64>, egress: u64, chunk: String| {
            let ratio = completion_ns.zip(multicast_ns).map(|(ns, multicast)| ns as f64 / multicast as f64);
            [
                name.to_owned(),
                completion_ns.map_or("failed".to_owned(), time),
                ratio.map_or(String::new(), |ratio| format!("{ratio:.2}")),
                format!("{:.3} × the data", egress as f64 / self.size_octets as f64),
                chunk,
            ]
        };
        table.row(row("multicast", multicast_ns, self.outcome.source.egress_octets, String::new()));
        for BaselineOutcome { algorithm, completion_ns, source_egress_octets, chunk_octets, .. } in self.compare {
            let chunk = octets(u64::from(*chunk_octets));
            table.row(row(algorithm.name(), *completion_ns, *source_egress_octets, chunk));
        }
        table
    }

    fn verdict(&self) -> String {
        let Outcome { receivers, .. } = self.outcome;
        let identical = receivers.iter().filter(|receiver| receiver.is_identical).count();
        let who = format!("{} of {}", grouped(identical as u64), count(receivers.len() as u64, "receiver"));
        let sha256 = &hex::encode(self.outcome.source.sha256)[..SHA256_DIGITS];
        if let Some(violation) = &self.outcome.first_violation {
            let others = self.outcome.invariant_violations - 1;
            format!("FAILED: {violation} (and {} more)\n", grouped(others))
        } else if let Some(failure) = self.outcome.failure {
            format!("FAILED: the source gave up ({failure:?}); {who} have all of its data\n")
        } else if self.outcome.is_good() {
            format!("OK: {who} have the source's data (SHA-256 {sha256}…); no false acknowledgements\n")
        } else {
            format!("FAILED: {who} have the source's data (SHA-256 {sha256}…)\n")
        }
    }
}

fn receiver_row(receiver: &ReceiverOutcome) -> [String; 5] {
    let digest = &hex::encode(receiver.sha256)[..SHA256_DIGITS];
    let verdict = if receiver.is_identical { "= source's" } else { "DIFFERS" };
    [
        receiver.name.clone(),
        grouped(receiver.octets),
        grouped(receiver.acks_sent),
        grouped(receiver.naks_sent),
        format!("{digest}… {verdict}"),
    ]
}

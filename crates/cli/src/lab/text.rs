//! The result of `srdma lab run` on one screen.

use crate::demo::table::Table;
use crate::units::{count, grouped, octets, rate, time};
use srdma_lab::guest::Unicast;
use srdma_lab::topology::{Lists, Operation};
use srdma_lab::{HostOutcome, LinkCounters, NodeOutcome, Outcome, ReceiverOutcome, SidOutcome};
use std::fmt;

/// Digits of a SHA-256 that are shown.
const SHA256_DIGITS: usize = 16;

/// A result as text.
pub(super) struct Text<'o>(pub(super) &'o Outcome);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}\n", self.heading(), self.path())?;
        writeln!(f, "{}\n{}\n{}", self.receivers(), self.links(), self.nodes())?;
        write!(f, "{}\n{}", self.summary(), self.verdict())
    }
}

impl Text<'_> {
    fn heading(&self) -> String {
        let Outcome { lab, source_name, transfer, receivers, .. } = self.0;
        let operation = match transfer.operation {
            Operation::Write => "WRITE",
            Operation::Send => "SEND",
        };
        let size = octets(transfer.size_octets);
        let (who, lab) = match &self.0.other_pairs[..] {
            [] => (format!("{source_name} to {}", count(receivers.len() as u64, "receiver")), format!("of {lab}")),
            others => {
                let receivers = receivers.iter().map(|receiver| format!("{source_name} to {}", receiver.name));
                let others = others.iter().map(|pair| format!("{} to {}", pair.source_name, pair.receiver.name));
                (receivers.chain(others).collect::<Vec<_>>().join(" and from "), format!("in {lab}, all at once"))
            }
        };
        format!("{size} from {who} {lab}: RDMA {operation}, path MTU {}", transfer.path_mtu)
    }

    fn path(&self) -> String {
        let lists = match self.0.transfer.lists {
            Lists::Tlv => "in TLVs",
            Lists::Provisioned => "provisioned",
        };
        let mut drivers: Vec<&str> = self.0.nodes.iter().flat_map(|node| &node.drivers).map(String::as_str).collect();
        drivers.sort_unstable();
        drivers.dedup();
        let way = match self.0.overhead_octets {
            Some(overhead) => format!("Receiver lists {lists}, {overhead} octets around each packet"),
            None => "Unicast".to_owned(),
        };
        let group = self.0.controlled.iter().map(|group| format!("; group {}", group.url)).collect::<String>();
        format!("{way}; nodes by {}{group}", drivers.join(", "))
    }

    fn receivers(&self) -> Table {
        let mut table = Table::new(&["receiver", "octets", "ACKs sent", "NAKs sent", "SHA-256"]).with_text_last();
        for ReceiverOutcome { name, is_identical, outcome } in self.all_receivers() {
            let sha256 = match (&outcome.error, is_identical) {
                (Some(error), _) => error.clone(),
                (None, true) => format!("{} = source's", digits(outcome)),
                (None, false) => format!("{} DIFFERS", digits(outcome)),
            };
            table.row([
                name.clone(),
                grouped(outcome.octets),
                known(outcome.acks_sent),
                known(outcome.naks_sent),
                sha256,
            ]);
        }
        table
    }

    /// Of the first source and of the other pairs.
    fn all_receivers(&self) -> impl Iterator<Item = &ReceiverOutcome> {
        self.0.receivers.iter().chain(self.0.other_pairs.iter().map(|pair| &pair.receiver))
    }

    fn links(&self) -> Table {
        let mut table = Table::new(&["link", "rate", "loss", "octets down", "octets up", "frames lost"]);
        for link in &self.0.links {
            let [rate, loss, down, up, lost] = link_cells(link.rate_bits_per_s, link.loss, &link.counters);
            table.row([link.name.clone(), rate, loss, down, up, lost]);
        }
        table
    }

    /// Counters of the nodes in a transfer by unicast: their SIDs.
    fn sids(&self) -> Table {
        let mut table = Table::new(&["node", "SID", "behaviour", "packets", "drops"]).with_text_last();
        for node in &self.0.nodes {
            // The drops are the node's, and stand once.
            let mut drops = Some(drops(node));
            for SidOutcome { sid, behavior, packets } in &node.sids {
                let drops = drops.take().unwrap_or_default();
                table.row([node.name.clone(), sid.clone(), behavior.clone(), grouped(*packets), drops]);
            }
        }
        table
    }

    fn nodes(&self) -> Table {
        if self.0.overhead_octets.is_none() {
            return self.sids();
        }
        let repairs = self.0.nodes.iter().any(|node| !node.repair.is_empty());
        let mut columns = vec!["node", "packets", "copies", "ACKs in", "ACKs up", "NAKs in", "NAKs up"];
        columns.extend(repairs.then_some("sent again"));
        columns.push("drops");
        let mut table = Table::new(&columns).with_text_last();
        for node in &self.0.nodes {
            let numbers = [
                node.data_packets,
                node.copies,
                node.acks_received,
                node.acks_sent,
                node.naks_received,
                node.naks_sent,
            ];
            let name = [node.name.clone()];
            let resent = node.repair.get("packets_resent").copied().unwrap_or(0);
            let resent = repairs.then(|| grouped(resent));
            table.row(name.into_iter().chain(numbers.map(grouped)).chain(resent).chain([drops(node)]));
        }
        table
    }

    /// Octets that left the source, by whichever end of its link it is at.
    fn source_egress(&self) -> u64 {
        let Outcome { source_name, links, .. } = self.0;
        let own = links.iter().filter_map(|link| {
            let is_first = link.name.strip_prefix(source_name).is_some_and(|rest| rest.starts_with('-'));
            let is_second = link.name.strip_suffix(source_name).is_some_and(|rest| rest.ends_with('-'));
            let counters = &link.counters;
            is_first.then_some(counters.down_octets).or(is_second.then_some(counters.up_octets))
        });
        own.sum()
    }

    fn summary(&self) -> Table {
        let Outcome { source, receivers, transfer, .. } = self.0;
        let egress = self.source_egress();
        let total = |value: fn(&HostOutcome) -> Option<u64>| receivers.iter().map(|r| value(&r.outcome)).sum();
        let bits_per_s = transfer.size_octets as f64 * 8.0 / source.seconds.max(1e-9);
        let completion =
            format!("{}, {} of data to each receiver", time((source.seconds * 1e9) as u64), rate(bits_per_s as u64));
        let lines = [
            (
                "source egress",
                format!(
                    "{:.3} × the data: {} packets, {} of them sent again",
                    egress as f64 / transfer.size_octets as f64,
                    known(source.packets_sent),
                    known(source.retransmissions)
                ),
            ),
            (
                "ACKs",
                format!(
                    "{} sent by receivers, {} seen by the source",
                    known(total(|r| r.acks_sent)),
                    known(source.acks_received)
                ),
            ),
            (
                "NAKs",
                format!(
                    "{} sent by receivers, {} seen by the source",
                    known(total(|r| r.naks_sent)),
                    known(source.naks_received)
                ),
            ),
            ("timeouts", known(source.timeouts)),
            ("completion", if source.error.is_none() { completion } else { "never".to_owned() }),
        ];
        let emulation = source.emulation_share.map(|share| ("emulation", share_of_processors(share)));
        let unicast = self.0.unicast.as_ref().map(|unicast| ("unicast", self.comparison(unicast)));
        let mut table = Table::of_lines();
        for (name, value) in lines.into_iter().chain(emulation).chain(unicast) {
            table.row([name.to_owned(), value]);
        }
        table
    }

    fn comparison(&self, unicast: &Unicast) -> String {
        let ratio = unicast.seconds / self.0.source.seconds.max(1e-9);
        format!(
            "{} to all receivers at once, {ratio:.2} × as long{}; emulation took {}",
            time((unicast.seconds * 1e9) as u64),
            if unicast.is_identical { "" } else { ", AND SOME DATA DIFFER" },
            share_of_processors(unicast.emulation_share)
        )
    }

    fn verdict(&self) -> String {
        let identical = self.all_receivers().filter(|receiver| receiver.is_identical).count();
        let who =
            format!("{} of {}", grouped(identical as u64), count(self.all_receivers().count() as u64, "receiver"));
        let others = self.0.other_pairs.iter().map(|pair| &pair.source);
        let errors = [&self.0.source].into_iter().chain(others).find_map(|source| source.error.as_ref());
        let sha256 = digits(&self.0.source);
        match errors {
            Some(error) => format!("FAILED: a source gave up: {error}; {who} have all data\n"),
            None if self.0.is_good() && !self.0.other_pairs.is_empty() => {
                format!("OK: {who} have their sources' data\n")
            }
            None if self.0.is_good() => format!("OK: {who} have the source's data (SHA-256 {sha256})\n"),
            None => format!("FAILED: {who} have the source's data (SHA-256 {sha256})\n"),
        }
    }
}

fn drops(node: &NodeOutcome) -> String {
    let drops = node.drops.iter().map(|(reason, number)| format!("{reason} {}", grouped(*number)));
    let lost = (node.lost_frames > 0).then(|| format!("lost by drivers {}", grouped(node.lost_frames)));
    let drops: Vec<String> = drops.chain(lost).collect();
    if drops.is_empty() { "none".to_owned() } else { drops.join(", ") }
}

fn digits(outcome: &HostOutcome) -> String {
    let sha256 = outcome.sha256.as_deref().unwrap_or("–");
    format!("{}…", sha256.get(..SHA256_DIGITS).unwrap_or(sha256))
}

fn share_of_processors(share: f64) -> String {
    format!("{:.0} % of the processors", share * 100.0)
}

fn known(number: Option<u64>) -> String {
    number.map_or("–".to_owned(), grouped)
}

/// A link's rate and loss, and what has passed it: octets down and up, and frames lost.
pub(super) fn link_cells(rate_bits_per_s: Option<u64>, loss: f64, counters: &LinkCounters) -> [String; 5] {
    [
        rate_bits_per_s.map_or("–".to_owned(), rate),
        if loss == 0.0 { "–".to_owned() } else { format!("{} %", loss * 100.0) },
        grouped(counters.down_octets),
        grouped(counters.up_octets),
        grouped(counters.lost_packets),
    ]
}

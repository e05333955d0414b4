//! Nodes and traffic of workers.

use super::{GROUPS, RECEIVERS, WorkersCase};
use crate::aggregation::{group_entry, names, prepare_edge, receiver};
use crate::fixture::{MAC, SID, icrc_of, worker};
use crate::packets::{self, ETHERNET};
use crate::routes::{self, Numbers};
use srdma_dataplane::{Command, Node, Worker};
use srdma_wire::{Icrc, Prefix, Psn, Syndrome};
use std::sync::atomic::{AtomicU32, Ordering};

/// Destinations of forwarded packets.
const DESTINATIONS: usize = 512;

/// Octets of a forwarded packet's frame.
const FORWARDED: usize = 128;

/// Octets of an ACK Extended Transport Header.
const AETH: usize = 4;

/// Octets of payload of a data packet.
const PAYLOAD: usize = 64;

/// PSNs by which ACKs follow the data: more than there are on the way from one worker to another.
const LAG: u32 = 64;

/// What each worker receives.
#[derive(Debug)]
pub(super) struct Traffic {
    workers: Vec<(Worker, Vec<Flow>)>,
    prefixes: Vec<Prefix>,
    /// Of each group: the last PSN whose data packet was received by a worker.
    progress: Vec<AtomicU32>,
    has_groups: bool,
}

/// Packets that differ in their PSN alone.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    frame: Vec<u8>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Plain,
    /// Data of a group, with the PSN at this offset.
    Data {
        group: u32,
        at: usize,
        psn: u32,
    },
    /// ACKs of a receiver of a group.
    Ack {
        group: u32,
        at: usize,
        psn: u32,
    },
}

impl Traffic {
    pub(super) fn new(case: WorkersCase, count: u16) -> anyhow::Result<Self> {
        let mut numbers = Numbers(7);
        let prefixes = routes::prefixes(10, &mut numbers);
        let mut workers: Vec<(Worker, Vec<Flow>)> = Worker::all(count).map(|worker| (worker, Vec::new())).collect();
        if case == WorkersCase::Forwarding {
            for (_, flows) in &mut workers {
                flows.extend(forwarded(&prefixes, &mut numbers));
            }
        } else {
            for group in 0..GROUPS {
                let owner = Worker::all(count).find(|worker| worker.owns(names(group).0)).unwrap_or_default();
                for flow in flows_of(group)? {
                    let at = match case {
                        WorkersCase::GroupsAnywhere => numbers.below(workers.len()),
                        WorkersCase::Forwarding | WorkersCase::Groups => owner.index(),
                    };
                    workers[at].1.push(flow);
                }
            }
        }
        let progress = (0..GROUPS).map(|_| AtomicU32::new(0)).collect();
        Ok(Traffic { workers, prefixes, progress, has_groups: case != WorkersCase::Forwarding })
    }

    pub(super) fn workers(&self) -> usize {
        self.workers.len()
    }

    /// The node of a worker.
    pub(super) fn node(&self, index: usize) -> anyhow::Result<Node> {
        let mut node = worker(&self.prefixes, self.workers[index].0)?;
        if self.has_groups {
            prepare_edge(&mut node, RECEIVERS)?;
            for group in 0..GROUPS {
                node.apply(Command::AddGroup(Box::new(group_entry(group, RECEIVERS))))?;
            }
        }
        Ok(node)
    }

    pub(super) fn flows(&self, index: usize) -> Vec<Flow> {
        self.workers[index].1.clone()
    }

    /// The next frame of a flow; `None` for an ACK whose data were not sent yet.
    #[inline]
    pub(super) fn next<'f>(&self, flow: &'f mut Flow) -> anyhow::Result<Option<&'f [u8]>> {
        let (at, psn) = match &mut flow.kind {
            Kind::Plain => return Ok(Some(&flow.frame)),
            Kind::Data { group, at, psn } => {
                self.progress[*group as usize].store(*psn, Ordering::Relaxed);
                *psn += 1;
                (*at, *psn - 1)
            }
            Kind::Ack { group, at, psn } => {
                if *psn + LAG > self.progress[*group as usize].load(Ordering::Relaxed) {
                    return Ok(None);
                }
                *psn += 1;
                (*at, *psn - 1)
            }
        };
        flow.frame[at..at + 3].copy_from_slice(&Psn::new(psn).to_octets());
        if let Kind::Ack { .. } = flow.kind {
            // The node verifies it; a data packet's is corrected, right or wrong.
            let icrc = icrc_of(&flow.frame[ETHERNET..])?;
            let end = flow.frame.len() - Icrc::LEN;
            flow.frame[end..].copy_from_slice(&icrc.0);
        }
        Ok(Some(&flow.frame))
    }

    /// Whether the packets are those of groups.
    pub(super) fn has_groups(&self) -> bool {
        self.has_groups
    }
}

fn forwarded(prefixes: &[Prefix], numbers: &mut Numbers) -> Vec<Flow> {
    let destinations = (0..DESTINATIONS).map(|_| {
        let prefix = prefixes[numbers.below(prefixes.len())];
        routes::address_in(prefix, numbers)
    });
    let frame = |destination| Flow { frame: packets::unencapsulated(MAC, destination, FORWARDED), kind: Kind::Plain };
    destinations.map(frame).collect()
}

/// The data of a group, and the ACKs of its receivers.
fn flows_of(group: u32) -> anyhow::Result<Vec<Flow>> {
    let names = names(group);
    let psn = Psn::new(0);
    let frame = packets::multicast(MAC, SID, names, &[], psn, PAYLOAD);
    let at = frame.len() - Icrc::LEN - PAYLOAD - 3;
    let data = Flow { frame, kind: Kind::Data { group, at, psn: 0 } };
    let acks = (0..RECEIVERS).map(|branch| {
        let frame = packets::response(MAC, receiver(branch), names, psn, Syndrome::ACK);
        let at = frame.len() - Icrc::LEN - AETH - 3;
        Flow { frame, kind: Kind::Ack { group, at, psn: 0 } }
    });
    Ok(std::iter::once(data).chain(acks).collect())
}

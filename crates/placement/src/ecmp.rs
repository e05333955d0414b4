//! Paths of flows that are not placed: each switch takes one of its equal ports by a hash of the flow.

use crate::load::Direction;
use srdma_fabric::{HostId, NextHops, NodeId, Topology};

/// The path that hashes choose for a flow: its number takes the place of the 5-tuple, the seed that of the switches'
/// salts.
pub fn ecmp(
    topology: &Topology,
    next_hops: &NextHops,
    [from, to]: [HostId; 2],
    flow: u64,
    seed: u64,
) -> Vec<Direction> {
    let mut along = Vec::new();
    let mut at = NodeId::Host(from);
    while at != NodeId::Host(to) {
        let ports = match at {
            NodeId::Host(host) => next_hops.from_host(topology, host, to),
            NodeId::Switch(switch) => next_hops.toward(switch, to).to_vec(),
        };
        let own = match at {
            NodeId::Host(_) => u64::MAX,
            NodeId::Switch(switch) => u64::from(switch.0),
        };
        let hash = mixed(mixed(mixed(seed) ^ flow) ^ own);
        let chosen = ports.get((hash % ports.len().max(1) as u64) as usize);
        let Some(port) = chosen.and_then(|port| topology.port(at, *port)) else {
            break;
        };
        along.push(Direction::from(topology, at, port.link));
        at = port.peer.node;
    }
    along
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn mixed(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

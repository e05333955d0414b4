//! Orders of a controller to a node: whatever it orders, the node's groups are those of the agent's table.

use srdma_agent::{AllowedSids, GroupTable, Plan};
use srdma_api::SyncAnswer;
use srdma_dataplane::{Command, Node, NodeConfig, PortConfig};
use srdma_wire::{MacAddress, Prefix};
use std::net::Ipv6Addr;

const LOOPBACK: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xff, 1, 0, 0, 0, 1);
const END_MT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xff, 1, 0, 0, 0, 0xe);
const REPLICATION: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0, 0, 0, 0, 0);

/// Lines, each an answer to a node's report as JSON: any that are none are refused, and any orders carried out as by
/// the daemon.
pub fn orders(input: &[u8]) {
    let port = PortConfig {
        name: "p0".to_owned(),
        mac: MacAddress([2, 0, 0, 0, 0, 1]),
        addresses: vec![Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1)],
        link_mtu: 9000,
        queue_limit_octets: 1 << 20,
        vlan: None,
        trust: srdma_dataplane::Trust::Dscp,
    };
    let mut node = Node::new(NodeConfig::new(LOOPBACK, vec![port]));
    let allowed = AllowedSids { end_mt: Some(END_MT), replication: Prefix::new(REPLICATION, 48) };
    let mut table = GroupTable::new(allowed);
    for line in input.split(|octet| *octet == b'\n') {
        let Ok(answer) = serde_json::from_slice::<SyncAnswer>(line) else { continue };
        for unreadable in &answer.unreadable {
            // An answer names what it refuses.
            let _ = unreadable.refusal();
        }
        let written = serde_json::to_vec(&answer).expect("what was read can be written");
        let again: SyncAnswer = serde_json::from_slice(&written).expect("what was written can be read");
        // A repair policy that is off is not written.
        assert_eq!(serde_json::to_vec(&again).ok().as_ref(), Some(&written));
        for order in answer.orders {
            let Plan::Apply(change) = table.plan(order, |_| false) else { continue };
            let all = |node: &mut Node, commands: &[Command]| {
                commands.iter().cloned().try_for_each(|command| node.apply(command))
            };
            match all(&mut node, &change.commands) {
                Ok(()) => {
                    table = table.apply(&change).0;
                    let _ = all(&mut node, &change.afterwards);
                }
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    for command in &change.undo {
                        // Missing entries need no removal.
                        let _ = node.apply(command.clone());
                    }
                }
            }
            check(&table, &node);
        }
    }
}

/// The groups in effect are the same at both.
fn check(table: &GroupTable, node: &Node) {
    let committed = table.held().into_iter().filter(|held| held.entries.committed.is_some());
    let mut of_table: Vec<u32> = committed.map(|held| held.group).collect();
    let mut of_node: Vec<u32> = node.groups().map(|group| group.0).collect();
    of_table.sort_unstable();
    of_node.sort_unstable();
    assert_eq!(of_table, of_node, "groups in effect at the agent and at the node");
    for group in of_table {
        let entry = node.group_entry(srdma_group::GroupId(group)).expect("it is among them");
        assert_eq!(table.entry(group), Some(entry));
    }
}

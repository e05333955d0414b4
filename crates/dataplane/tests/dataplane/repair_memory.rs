//! Memory of retransmission buffers (D162): reserved when an entry is applied, and never exceeded.

use crate::common::Bench;
use crate::common::group::*;
use srdma_dataplane::{Command, NodeConfig};
use srdma_frame::Element;
use srdma_group::*;
use srdma_wire::PathMtu;

/// The window of 128 packets and one more, of a path MTU of 4,096 octets, of two chunks each.
const SHARE: u64 = 129 * 2 * 4_096;

/// An edge whose buffers may take so much.
fn edge_of(repair_memory_octets: u64) -> Bench {
    edge_with(false, |config| {
        config.repair_memory_octets = repair_memory_octets;
        config.ports.iter_mut().for_each(|port| port.link_mtu = 9_216);
    })
}

/// The edge's entry of another group that it repairs.
fn repaired(id: u32, epoch: u32) -> GroupEntry {
    let mut entry = entry(&[receiver(id as u16, 0x100 + id, None)], None);
    let mut proxy = entry.proxy.segments();
    proxy[7] += id as u16;
    (entry.id, entry.epoch, entry.proxy) = (GroupId(id), epoch, proxy.into());
    entry.policy.repair.mode = RepairMode::Edge;
    entry.repair = Some(RepairEntry { window_packets: 128, parent_repairs: false, children: Vec::new(), levels: 1 });
    entry
}

fn add(bench: &mut Bench, id: u32, epoch: u32) {
    bench.apply(Command::AddGroup(Box::new(repaired(id, epoch))));
}

/// For each group whether it is repaired, and whether it is not for want of memory.
fn states(bench: &Bench, ids: &[u32]) -> Vec<(bool, bool)> {
    let state = |id: &u32| {
        let id = GroupId(*id);
        (bench.node.repair_counters(id).is_some(), bench.node.lacks_repair_memory(id))
    };
    ids.iter().map(state).collect()
}

/// D162.
#[test]
fn groups_beyond_the_limit_are_applied_without_repair() {
    let (on, off) = ((true, false), (false, true));
    let mut bench = edge_of(2 * SHARE + SHARE / 2);
    (1..=3).for_each(|id| add(&mut bench, id, 1));
    assert_eq!(states(&bench, &[1, 2, 3]), [on, on, off]);
    assert_eq!(bench.node.repair_octets(), 2 * SHARE);
    // A group's own share is no reason against its next epoch; that of another one is free when it ends.
    add(&mut bench, 1, 2);
    add(&mut bench, 3, 2);
    assert_eq!(states(&bench, &[1, 2, 3]), [on, on, off]);
    bench.apply(Command::RemoveGroup(GroupId(2)));
    add(&mut bench, 3, 3);
    assert_eq!(states(&bench, &[1, 3]), [on, on]);
    assert_eq!(bench.node.repair_octets(), 2 * SHARE);
}

/// The window and one packet more; a node without memory repairs nothing.
#[test]
fn shares_are_those_of_the_buffers() {
    let with = |window_packets: u32, window_octets: u32| {
        let mut bench = edge_of(u64::MAX);
        let mut entry = repaired(1, 1);
        entry.policy.repair.window_octets = window_octets;
        entry.repair.as_mut().expect("it repairs").window_packets = window_packets;
        bench.apply(Command::AddGroup(Box::new(entry)));
        bench.node.repair_octets() / 4_096
    };
    assert_eq!([with(128, 128 * 4_096), with(129, 129 * 4_096), with(512, 512 * 1_024)], [258, 260, 513]);
    let mut bench = edge_of(0);
    add(&mut bench, 1, 1);
    assert_eq!(states(&bench, &[1]), [(false, true)]);
}

/// Gives a packet to the edge; returns the number of copies, and of packets in the buffer.
fn send(bench: &mut Bench, packet: &[u8]) -> (usize, u64) {
    let copies = bench.keep(0, packet);
    (copies, bench.node.repair_fill(GroupId(1)).expect("it repairs").packets)
}

/// D162: A packet of more chunks than the path MTU makes is forwarded, and not kept: it would take the share of others.
/// All that is kept is released with the group.
#[test]
fn longer_packets_are_not_kept() {
    let mut bench = edge_of(SHARE);
    let mut entry = repaired(1, 1);
    entry.proxy = address(PROXY);
    bench.apply(Command::AddGroup(Box::new(entry)));
    let data = |payload: usize, psn: u8| {
        let mut data = inner(0x04, 0, &vec![7; payload], false);
        data[40 + 8 + 11] = psn;
        encapsulated(&data)
    };
    assert_eq!(send(&mut bench, &data(4_096, 100)), (1, 1));
    assert_eq!(send(&mut bench, &data(8_192, 101)), (1, 1));
    assert_eq!(bench.drops(0), []);
    assert!(bench.pool.in_use() > 0);
    bench.apply(Command::RemoveGroup(GroupId(1)));
    let due = bench.node.next_deadline().expect("chunks to release");
    bench.node.tick(due, &mut bench.pool);
    assert_eq!(bench.pool.in_use(), 0);
}

/// The default limit of 1 GiB has room for 1,016 groups of the default window.
#[test]
fn a_thousand_groups_of_the_default_window_are_repaired() {
    let mut bench = edge_of(NodeConfig::new(address(EDGE), Vec::new()).repair_memory_octets);
    let window = RepairPolicy::default().window_packets(PathMtu::Octets4096);
    let ids: Vec<u32> = (1..=1_017).collect();
    for id in &ids {
        let mut entry = repaired(*id, 1);
        entry.repair.as_mut().expect("it repairs").window_packets = window;
        bench.apply(Command::AddGroup(Box::new(entry)));
    }
    let repaired = states(&bench, &ids).iter().filter(|state| **state == (true, false)).count();
    assert_eq!((window, repaired), (128, 1_016));
    assert!(bench.node.repair_octets() <= 1 << 30, "{} octets", bench.node.repair_octets());
}

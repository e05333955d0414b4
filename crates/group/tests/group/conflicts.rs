//! Conflicts between groups.

use crate::figure_1::*;
use srdma_group::*;
use srdma_wire::Qpn;

/// Another group of the same nodes and hosts.
fn second() -> Record {
    let mut record = Record { id: GroupId(2), proxy: address("2001:db8:ff::200"), ..record() };
    record.receivers.iter_mut().for_each(|receiver| receiver.qpn = Qpn::new(receiver.qpn.get() + 0x100).unwrap());
    record.source.qpn = Qpn::new(0x78).unwrap();
    let mut nodes = record.tree.nodes().to_vec();
    for node in nodes.iter_mut().filter(|node| node.role == NodeRole::Transit) {
        let mut segments = node.sid.segments();
        segments[3] = 0xe002;
        node.sid = segments.into();
    }
    record.tree = Tree::new(nodes).unwrap();
    record
}

fn refused(change: impl FnOnce(&mut Record)) -> String {
    let mut second = second();
    change(&mut second);
    let groups = [record(), second].map(|record| Group::new(record).unwrap());
    check_conflicts(&groups).unwrap_err().to_string()
}

/// D2: one Proxy Address belongs to one group; the Designated QPN may be the same.
#[test]
fn groups_share_hosts_and_edges_but_no_addresses_of_their_own() {
    let groups = [record(), second()].map(|record| Group::new(record).unwrap());
    assert_eq!(check_conflicts(&groups), Ok(()));
    assert_eq!(refused(|record| record.id = GroupId(1)), "group 1 exists twice: a number belongs to one group");
    let message = "Proxy Address 2001:db8:ff::100 of group 1 is the Proxy Address in group 2: it belongs to its group \
                   alone (D2)";
    assert_eq!(refused(|record| record.proxy = address("2001:db8:ff::100")), message);
    let message =
        "Proxy Address 2001:db8:ff::100 of group 1 is a receiver in group 2: it belongs to its group alone (D2)";
    assert_eq!(refused(|record| record.receivers[0].address = address("2001:db8:ff::100")), message);
    let message =
        "Proxy Address 2001:db8:ff::100 of group 1 is the source in group 2: it belongs to its group alone (D2)";
    assert_eq!(refused(|record| record.source.address = address("2001:db8:ff::100")), message);
    let message = "queue pair 0x101 of 2001:db8:100::1 is in groups 1 and 2: it is connected to one Proxy Address (D2)";
    assert_eq!(refused(|record| record.receivers[0].qpn = Qpn::new(0x101).unwrap()), message);
    let message =
        "SID 5f00:0:6:e000:: replicates for groups 1 and 2: a Replication SID belongs to one group (RFC 9524)";
    assert_eq!(refused(|record| record.tree = figure_1()), message);
}

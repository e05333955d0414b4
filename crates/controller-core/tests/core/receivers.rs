//! What the source's side learns of receivers.

use crate::cluster::*;
use srdma_api::NewReceiver;
use srdma_group::OnFailure;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// MT-5.1-2: receivers join with addresses and queue pairs, and the headend, next to the source, has exactly these by
/// edge; also of one that joins while the group is in use, and not of one that has left.
#[test]
fn the_headend_learns_addresses_and_queue_pairs() {
    let mut cluster = Cluster::new();
    let group = cluster.commit(|core| core.create_group(&admin(), None, new_group(OnFailure::Strict))).unwrap();
    let join = |cluster: &mut Cluster, edge, host, qpn| {
        let join = NewReceiver::new(qpn, 4096);
        cluster.commit(|core| core.join(&admin(), group, receiver(edge, host), join, None)).unwrap();
    };
    join(&mut cluster, 1, 1, 0x1111);
    join(&mut cluster, 1, 2, 0x2222);
    join(&mut cluster, 3, 1, 0xABCDEF);
    cluster.commit(|core| core.commit_group(&admin(), group, None)).unwrap();
    cluster.settle();
    let at_first =
        [(1, vec![(receiver(1, 1), 0x1111), (receiver(1, 2), 0x2222)]), (3, vec![(receiver(3, 1), 0xABCDEF)])];
    assert_eq!(learned(&cluster), of_edges(at_first));

    join(&mut cluster, 2, 7, 0x7777);
    cluster.leave(receiver(1, 1)).unwrap();
    cluster.settle();
    let now = [
        (1, vec![(receiver(1, 2), 0x2222)]),
        (2, vec![(receiver(2, 7), 0x7777)]),
        (3, vec![(receiver(3, 1), 0xABCDEF)]),
    ];
    assert_eq!(learned(&cluster), of_edges(now));
}

type Lists = BTreeMap<Ipv6Addr, Vec<(Ipv6Addr, u32)>>;

fn of_edges<const N: usize>(lists: [(u16, Vec<(Ipv6Addr, u32)>); N]) -> Lists {
    lists.map(|(edge, receivers)| (loopback(edge), receivers)).into()
}

/// The lists that the headend N6 writes into packets.
fn learned(cluster: &Cluster) -> Lists {
    let entry = cluster.entry(6).expect("the headend has an entry");
    let lists = &entry.headend.as_ref().expect("it is the headend's").lists;
    let receivers = |list: &srdma_group::EdgeList| {
        list.receivers.iter().map(|receiver| (receiver.address, receiver.qpn.get())).collect()
    };
    lists.iter().map(|list| (list.edge, receivers(list))).collect()
}

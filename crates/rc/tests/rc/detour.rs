//! D89: on congestion a queue pair continues with another UDP source port and flow label, where permitted.

use crate::support::{Given, OURS, PEER, Rig, pattern, qpn};
use srdma_rc::{Access, DETOUR_INTERVAL_NS, LocalRange, Operation, WorkRequest};
use srdma_wire::rocev2::Packet;
use srdma_wire::{CnpView, Opcode};
use std::collections::BTreeSet;
use zerocopy::IntoBytes;

const INTERVAL_NS: u64 = DETOUR_INTERVAL_NS;

struct Flow {
    rig: Rig,
    wr_id: u64,
    key: srdma_rc::MemoryKey,
}

impl Flow {
    fn new(detour_interval_ns: Option<u64>) -> Self {
        let mut rig = Rig::new(|config| config.detour_interval_ns = detour_interval_ns);
        let key = rig.endpoint.register_memory(pattern(64, 9), 0, Access::LOCAL, 1);
        Flow { rig, wr_id: 0, key }
    }

    /// UDP source port and flow label of the next packet, whose ICRC has to be right.
    fn next(&mut self) -> (u16, u32) {
        self.wr_id += 1;
        let local = LocalRange { key: self.key, offset: 0, length_octets: 8 };
        let operation = Operation::Send { immediate: None };
        let request = WorkRequest { wr_id: self.wr_id, operation, local, signalled: false };
        self.rig.endpoint.post_send(self.rig.qpn, request).expect("posted");
        let mut buffer = vec![0; self.rig.endpoint.max_packet_octets()];
        let length = self.rig.endpoint.poll_transmit(self.rig.now, &mut buffer).expect("a packet");
        let packet = Packet::parse(&buffer[..length], length).expect("a RoCEv2 packet");
        assert!(packet.icrc([]).expect("whole").is_good());
        assert_eq!((packet.ipv6.source(), packet.ipv6.destination()), (OURS, PEER));
        (packet.udp.source_port(), packet.ipv6.flow_label())
    }

    fn congested(&mut self) {
        let cnp =
            Given { payload: CnpView::with_count(0).as_bytes().to_vec(), ..Given::new(Opcode::CNP, 0, Vec::new()) };
        self.rig.give(&cnp).expect("a CNP");
    }

    fn detours(&self) -> u64 {
        self.rig.endpoint.counters(qpn(0x11)).expect("there").detours
    }
}

/// D89
#[test]
fn a_queue_pair_keeps_its_path_by_default() {
    let mut flow = Flow::new(None);
    let before = flow.next();
    flow.congested();
    assert_eq!((flow.next(), flow.detours()), (before, 0));
}

/// D89
#[test]
fn it_changes_its_path_at_once_and_not_again_within_the_interval() {
    let mut flow = Flow::new(Some(INTERVAL_NS));
    let before = flow.next();
    flow.congested();
    let after = flow.next();
    assert!(after.0 != before.0 && after.1 != before.1, "{before:?} {after:?}");
    flow.rig.advance_ns(INTERVAL_NS - 1);
    flow.congested();
    assert_eq!((flow.next(), flow.detours()), (after, 1));
    flow.rig.advance_ns(1);
    flow.congested();
    assert_ne!(flow.next(), after);
    assert_eq!(flow.detours(), 2);
}

/// Ports stay where RoCEv2 has them, and are many: hashes have something to choose by. The same is chosen each time.
#[test]
fn paths_are_many_and_the_same_in_every_run() {
    let ways = || {
        let mut flow = Flow::new(Some(1));
        let way = |_| {
            flow.rig.advance_ns(1);
            flow.congested();
            flow.next()
        };
        (0..50).map(way).collect::<Vec<_>>()
    };
    let taken = ways();
    assert_eq!(taken, ways());
    assert!(taken.iter().all(|(port, label)| *port >= 0xC000 && *label <= 0xF_FFFF));
    assert!(taken.windows(2).all(|pair| pair[0].0 != pair[1].0), "no port follows itself");
    assert!(taken.iter().map(|(port, _)| port).collect::<BTreeSet<_>>().len() > 45);
}

//! Ports with traffic classes, and VLANs.

use super::*;
use crate::common::port_mac;
use srdma_frame::{Element, Frame};

/// A node whose port 1 has classes by precedence, class 5 marks from its first octet on.
fn with_classes() -> Bench {
    let mut bench = node();
    route(&mut bench, "10.2.0.0/16", via(1));
    bench.apply(Command::SetClasses(ClassMap::by_precedence()));
    let mut egress = EgressConfig::new(100_000_000_000, 1 << 20);
    egress.classes[5].limit_octets = 600;
    egress.classes[5].marking = Some(Marking { k_min_octets: 0, k_max_octets: 0, p_max: 1.0 });
    bench.apply(Command::SetEgress { port: PortId(1), egress: Box::new(egress) });
    bench
}

fn of_class(class: u8, ecn: u8) -> Vec<u8> {
    changed(&packet("10.1.0.2", "10.2.0.2", 17, &[0; 100]), &[(1, class << 5 | ecn)])
}

fn take_in(bench: &mut Bench, packet: &[u8]) {
    let frame = [&port_mac(0).0[..], &[2, 0, 0, 0, 1, 0, 0x08, 0x00], packet].concat();
    let frame = Frame::from_octets(&frame, &mut bench.pool).unwrap();
    bench.node.receive(bench.now, PortId(0), &mut vec![frame], &mut bench.pool);
}

/// RFC 2474, RFC 3168: the class is that of the DSCP, and a mark changes the checksum too.
#[test]
fn classes_and_marks() {
    let mut bench = with_classes();
    for (class, ecn) in [(0, 2), (7, 0), (5, 0), (5, 2), (5, 1), (5, 3)] {
        take_in(&mut bench, &of_class(class, ecn));
    }
    let sent: Vec<Vec<u8>> = bench.drain().into_iter().map(|(_, packet)| packet).collect();
    let expected = [(7, 0), (5, 0), (5, 3), (5, 3), (5, 3), (0, 2)];
    assert_eq!(sent, expected.map(|(class, ecn)| changed(&of_class(class, ecn), &[(8, 63)])));
    assert_eq!(bench.node.class_counters(PortId(1), 5).unwrap().marks, 2);
}

#[test]
fn a_full_class_drops() {
    let mut bench = with_classes();
    for _ in 0..9 {
        take_in(&mut bench, &of_class(5, 0));
    }
    assert_eq!(bench.drain().len(), 4, "134 octets each, of 600");
    assert_eq!(bench.drops(0), [("queue_full", 5)]);
}

/// D257: in by one VLAN, out by the other, with the class in the tag.
#[test]
fn vlans_carry_ipv4() {
    let vlan = |id| Some(PortVlan { parent: PortId(0), id });
    for has_classes in [false, true] {
        let mut bench = node_with(|config| {
            for (port, id) in [(1, 100), (2, 200)] {
                (config.ports[port].vlan, config.ports[port].mac) = (vlan(id), port_mac(0));
            }
        });
        route(&mut bench, "10.2.0.0/16", via(2));
        bench.apply(Command::SetClasses(ClassMap::by_precedence()));
        if has_classes {
            let egress = Box::new(EgressConfig::new(100_000_000_000, 1 << 20));
            bench.apply(Command::SetEgress { port: PortId(0), egress });
        }
        let frame = |tag: [u8; 2], packet: &[u8]| {
            let (to, from) = (port_mac(0).0, [2, 0, 0, 0, 1, 1]);
            [&to[..], &from, &[0x81, 0x00], &tag, &[0x08, 0x00], packet].concat()
        };
        let received = frame([0, 100], &of_class(3, 0));
        let received = Frame::from_octets(&received, &mut bench.pool).unwrap();
        bench.node.receive(bench.now, PortId(0), &mut vec![received], &mut bench.pool);
        let sent = bench.give_out(PortId(0)).expect("a frame");
        assert_eq!(sent[12..18], [0x81, 0x00, 3 << 5, 200, 0x08, 0x00], "classes: {has_classes}");
        assert_eq!(sent[18..], changed(&of_class(3, 0), &[(8, 63)]));
    }
}

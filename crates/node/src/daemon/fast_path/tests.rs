//! Which ports take part, and what the node reports of those that do not. No kernel is asked.

use super::*;
use srdma_dataplane::{NodeConfig, PortConfig};
use srdma_frame::{Frame, Pool};
use srdma_io::{Driver, DriverStatistics, Interest};
use srdma_wire::MacAddress;
use std::net::Ipv6Addr;
use std::os::fd::BorrowedFd;

/// A driver that is nothing but of a kind.
#[derive(Debug)]
struct OfKind(DriverKind);

impl Driver for OfKind {
    fn receive(&mut self, _: &mut Pool, _: &mut Vec<Frame>, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn is_drained(&self) -> bool {
        true
    }

    fn room(&mut self, _: &mut Pool) -> usize {
        0
    }

    fn push(&mut self, frame: Frame, pool: &mut Pool) {
        frame.release(pool);
    }

    fn flush(&mut self, _: &mut Pool) -> io::Result<()> {
        Ok(())
    }

    fn is_flushed(&self) -> bool {
        true
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn set_interest(&mut self, _: &Interest) -> io::Result<()> {
        Ok(())
    }

    fn kind(&self) -> DriverKind {
        self.0
    }

    fn statistics(&self) -> DriverStatistics {
        DriverStatistics::default()
    }

    fn detach(&mut self, _: &mut Pool) {}
}

fn port(kind: DriverKind) -> Port {
    let mut port = Port::default();
    port.driver = Some(Box::new(OfKind(kind)));
    port
}

fn open() -> FastPort {
    FastPort { interface: Some(1), target: Some(Ok(true)), ..FastPort::default() }
}

#[test]
fn only_af_xdp_native_takes_part() {
    assert_eq!(obstacle(0, &open(), &port(DriverKind::XdpNative)), None);
    for kind in [DriverKind::XdpGeneric, DriverKind::Packet, DriverKind::Capture] {
        assert_eq!(obstacle(0, &open(), &port(kind)), Some(format!("driver {kind}")));
    }
    assert_eq!(obstacle(0, &open(), &Port::default()).as_deref(), Some("no driver"));
}

/// D237.
#[test]
fn a_target_that_takes_no_frames_or_is_not_known_keeps_the_port_out() {
    for target in [Ok(false), Err("no such family".to_owned())] {
        let fast = FastPort { target: Some(target), ..open() };
        assert!(obstacle(0, &fast, &port(DriverKind::XdpNative)).is_some());
    }
    let excluded = obstacle(0, &FastPort::default(), &port(DriverKind::XdpNative));
    assert_eq!(excluded.as_deref(), Some("off in the configuration"));
    assert!(obstacle(MAX_PORTS.into(), &open(), &port(DriverKind::XdpNative)).is_some());
}

/// A node whose only port has another driver: no maps are made, and the reason is kept.
#[test]
fn without_an_open_port_nothing_is_asked_of_the_kernel() {
    let config = PortConfig {
        name: "p".to_owned(),
        mac: MacAddress([2, 0, 0, 0, 0, 1]),
        addresses: Vec::new(),
        link_mtu: 1500,
        queue_limit_octets: 1 << 20,
        ..PortConfig::default()
    };
    let node = Node::new(NodeConfig::new(Ipv6Addr::LOCALHOST, vec![config]));
    let mut fast_path = FastPath { ports: vec![open()], is_wanted: true, ..FastPath::default() };
    fast_path.follow(&node, &mut [port(DriverKind::Packet)], &Wanted::default());
    assert!(fast_path.maps.is_none() && fast_path.failure.is_none());
    assert_eq!(fast_path.ports[0].reason.as_deref(), Some("driver AF_PACKET"));
    assert_eq!(fast_path.generation, Some(node.generation()));
}

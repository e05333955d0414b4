//! AF_XDP on veth links, against the kernel's own sockets at their other ends.

pub(crate) mod link;

use link::{
    ADDRESSES, ENODEV, Link, MODES, PAGES, PATIENCE, Wire, connect, everything, namespace, octets, open, receive, send,
    wait_for,
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{setsockopt, sockopt};
use srdma_frame::{Frame, HEADER_SPAN, Pool, Segment};
use srdma_io::{AfXdp, Driver, Interest, Match, OpenError, Umem, XdpMode};
use srdma_wire::Prefix;
use std::net::{Ipv6Addr, UdpSocket};
use std::time::{Duration, Instant};

#[test]
#[ignore = "needs root"]
fn frames_of_any_length_are_received_and_sent_unchanged() {
    let link = Link::new();
    let wire = Wire::open(&link.host);
    for mode in MODES {
        let (mut driver, mut pool) = open(&link, mode, &everything());
        driver.receive(&mut pool, &mut Vec::new(), 0).unwrap();
        let lens = [64, 65, 127, 1024, 1500, 3839, 3840, 3841, 4096, 4097, 4200, 7679, 7680, 7681, 8900];
        for (number, len) in lens.into_iter().enumerate() {
            let expected = octets(len, number);
            wire.send(&expected);
            let frame = receive(&mut driver, &mut pool);
            assert!(frame.to_vec(&pool) == expected, "{mode:?}: {len} octets came in otherwise");
            assert!(frame.head_len() >= len.min(HEADER_SPAN));
            send(&mut driver, frame, &mut pool);
            assert!(wire.receive() == expected, "{mode:?}: {len} octets went out otherwise");
        }
        let counted = driver.statistics();
        assert!(counted.received >= lens.len() as u64 && counted.sent == lens.len() as u64, "{counted:?}");
        driver.detach(&mut pool);
        assert_eq!(pool.in_use(), 0);
        drop(driver);
        let shown = link.node.run(&["ip", "link", "show", "port"]).unwrap();
        assert!(!shown.contains("xdp"), "{shown}");
    }
}

/// A copy as replication makes it: a head of its own, a shared body, a tail.
fn copy(head: &[u8], body: &Frame, tail: [u8; 4], pool: &mut Pool) -> Frame {
    let mut copy = Frame::small(head, pool).unwrap();
    for segment in std::iter::once(body.first()).chain(body.body().iter().copied()) {
        pool.share(segment.chunk(), 1);
        assert!(copy.append(Segment::new(segment.chunk(), segment.start(), segment.len())));
    }
    copy.with_tail(tail)
}

#[test]
#[ignore = "needs root"]
fn copies_around_one_body_are_gathered() {
    const COPIES: usize = 100;
    let link = Link::new();
    let wire = Wire::open(&link.host);
    for mode in MODES {
        let (mut driver, mut pool) = open(&link, mode, &everything());
        for len in [200, 1024, 4200, 8700] {
            let payload = octets(len, 7);
            let body = Frame::from_octets(&payload, &mut pool).unwrap();
            let head = |number| octets(70, number);
            for number in 0..COPIES {
                assert!(driver.room(&mut pool) > 0);
                let copy = copy(&head(number), &body, [number as u8; 4], &mut pool);
                driver.push(copy, &mut pool);
            }
            body.release(&mut pool);
            driver.flush(&mut pool).unwrap();
            for number in 0..COPIES {
                let expected = [head(number), payload.clone(), vec![number as u8; 4]].concat();
                assert!(wire.receive() == expected, "{mode:?}: copy {number} of {len} octets");
            }
        }
        wait_for(|| {
            driver.room(&mut pool);
            pool.in_use() == 0
        });
        driver.detach(&mut pool);
    }
}

/// A UDP packet in IPv6, after some more of the link layer than its addresses: the VLAN tag, if any.
fn udp(tag: &[u8], destination: &str, port: u16) -> Vec<u8> {
    let destination: Ipv6Addr = destination.parse().unwrap();
    let mut octets = ADDRESSES.to_vec();
    octets.extend_from_slice(tag);
    octets.extend_from_slice(&[0x86, 0xDD, 0x60, 0, 0, 0, 0, 8, 17, 64]);
    octets.extend_from_slice(&[0xFD; 16]);
    octets.extend_from_slice(&destination.octets());
    octets.extend_from_slice(&[0xC0, 0, (port >> 8) as u8, port as u8, 0, 8, 0, 0]);
    octets
}

/// A packet to a Proxy Address, with another header than UDP behind that of IPv6.
fn with_options(next_header: u8) -> Vec<u8> {
    let mut octets = udp(&[], "2001:db8:cc::1", 4791);
    octets[20] = next_header;
    octets
}

/// An IPv4 packet of no data.
fn ipv4(tag: &[u8], destination: [u8; 4]) -> Vec<u8> {
    let mut frame = [&ADDRESSES[..], tag, &[0x08, 0x00, 0x45, 0, 0, 20, 0, 0, 0x40, 0, 64, 17]].concat();
    frame.extend([0, 0, 192, 0, 2, 1]);
    frame.extend(destination);
    frame
}

/// A prefix of IPv4.
fn net(address: [u8; 4], len: u8) -> Prefix {
    Prefix::of_ipv4(address.into(), len).unwrap()
}

fn pfc() -> Vec<u8> {
    let mut octets = ADDRESSES.to_vec();
    octets.extend_from_slice(&[0x88, 0x08, 0x01, 0x01]);
    octets.resize(60, 0);
    octets
}

/// An ICMPv6 Parameter Problem to an address of which unknown options matter.
fn parameter_problem(code: u8) -> Vec<u8> {
    let mut octets = udp(&[], "2001:db8:fe::1", 0);
    octets[20] = 58;
    octets[54..56].copy_from_slice(&[4, code]);
    octets
}

fn prefix(text: &str, len: u8) -> Prefix {
    Prefix::new(text.parse().unwrap(), len).unwrap()
}

/// The frames of a list that a driver receives. The kernel's own, such as ND, may arrive between.
fn taken(driver: &mut dyn Driver, pool: &mut Pool, wire: &Wire, sent: &[Vec<u8>], last: &[u8]) -> Vec<usize> {
    sent.iter().for_each(|octets| wire.send(octets));
    wire.send(last);
    let mut taken = Vec::new();
    let mut frames = Vec::new();
    let mut is_last = false;
    wait_for(|| {
        driver.receive(pool, &mut frames, 1).unwrap();
        if let Some(frame) = frames.pop() {
            let octets = frame.to_vec(pool);
            frame.release(pool);
            is_last = octets == last;
            taken.extend(sent.iter().position(|sent| *sent == octets));
        }
        is_last
    });
    taken
}

#[test]
#[ignore = "needs root"]
fn frames_without_interest_stay_with_the_kernel() {
    const TAG: [u8; 4] = [0x81, 0, 0x60, 5];
    let link = Link::new();
    let wire = Wire::open(&link.host);
    let frames = [
        udp(&[], "2001:db8:aa::7", 1),
        udp(&TAG, "2001:db8:aa::8", 2),
        udp(&[], "2001:db8:aa:1::1", 3),
        udp(&[], "2001:db8:bb::1", 4791),
        udp(&[], "2001:db8:cc::1", 4791),
        udp(&TAG, "2001:db8:cc::1", 4791),
        udp(&[], "2001:db8:cc::1", 4790),
        pfc(),
        octets(60, 1),
        octets(14, 2),
        with_options(0),
        with_options(60),
        with_options(43),
        parameter_problem(1),
        parameter_problem(2),
        udp(&[], "2001:db8:fe::2", 3784),
        udp(&[], "2001:db8:fe::2", 4784),
        udp(&[], "2001:db8:fe::2", 3785),
        ipv4(&[], [10, 1, 2, 3]),
        ipv4(&TAG, [10, 1, 2, 3]),
        ipv4(&[], [10, 9, 2, 3]),
        udp(&[], "::ffff:10.1.2.3", 9),
    ];
    let last = udp(&[], "2001:db8:ff::1", 9);
    let all = |prefix| (prefix, Match::All);
    let first = Interest {
        prefixes: vec![
            all(prefix("2001:db8:aa::", 48)),
            (prefix("2001:db8:aa:1::", 64), Match::Kernel),
            (prefix("2001:db8:cc::1", 128), Match::RoceV2),
            all(prefix("2001:db8:ff::1", 128)),
            all(net([10, 0, 0, 0], 8)),
            (net([10, 9, 0, 0], 16), Match::Kernel),
        ],
        ..Interest::default()
    };
    let second = Interest {
        prefixes: vec![
            all(prefix("2001:db8:aa:1::", 64)),
            (prefix("2001:db8:bb::", 32 + 16), Match::RoceV2),
            (prefix("2001:db8:cc::1", 128), Match::Kernel),
            (prefix("2001:db8:fe::1", 128), Match::UnknownOption),
            (prefix("2001:db8:fe::2", 128), Match::Own),
            all(prefix("2001:db8:ff::1", 128)),
        ],
        pfc: true,
        everything: false,
    };
    let receiver = link.node.enter(|| UdpSocket::bind("[2001:db8::1]:4791")).unwrap().unwrap();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    let sender = link.host.enter(|| UdpSocket::bind("[2001:db8::2]:0")).unwrap().unwrap();
    for mode in MODES {
        let (mut driver, mut pool) = open(&link, mode, &first);
        driver.receive(&mut pool, &mut Vec::new(), 0).unwrap();
        assert_eq!(taken(&mut driver, &mut pool, &wire, &frames, &last), [0, 1, 4, 5, 10, 11, 18, 19], "{mode:?}");
        sender.send_to(b"for the kernel", "[2001:db8::1]:4791").unwrap();
        assert_eq!(receiver.recv(&mut [0; 99]).unwrap(), 14);
        driver.set_interest(&second).unwrap();
        assert_eq!(taken(&mut driver, &mut pool, &wire, &frames, &last), [2, 3, 7, 14, 15, 16], "{mode:?}");
        driver.set_interest(&everything()).unwrap();
        assert_eq!(taken(&mut driver, &mut pool, &wire, &frames, &last), (0..frames.len()).collect::<Vec<_>>());
        driver.set_interest(&first).unwrap();
        assert_eq!(taken(&mut driver, &mut pool, &wire, &frames, &last), [0, 1, 4, 5, 10, 11, 18, 19], "{mode:?}");
        driver.detach(&mut pool);
        assert_eq!(pool.in_use(), 0);
    }
}

#[test]
#[ignore = "needs root"]
fn a_frame_goes_from_one_interface_to_another_in_the_same_memory() {
    let (node, left, right) = (namespace(), namespace(), namespace());
    connect(&node, "left", &left);
    connect(&node, "right", &right);
    let (from, to) = (Wire::open(&left), Wire::open(&right));
    let (umem, mut pool) = Umem::new(PAGES).unwrap();
    // The modes need not be the same.
    let open = |interface, mode| node.enter(|| AfXdp::open(interface, mode, &everything(), &umem)).unwrap().unwrap();
    let mut drivers = [open("left", XdpMode::Native), open("right", XdpMode::Generic)];
    for driver in &mut drivers {
        driver.receive(&mut pool, &mut Vec::new(), 0).unwrap();
    }
    let before = pool.in_use();
    for number in 0..300 {
        let expected = octets(60 + number * 29, number);
        from.send(&expected);
        let frame = receive(&mut drivers[0], &mut pool);
        send(&mut drivers[1], frame, &mut pool);
        assert!(to.receive() == expected);
    }
    wait_for(|| {
        drivers[1].room(&mut pool);
        pool.in_use() == before
    });
    for driver in &mut drivers {
        driver.detach(&mut pool);
    }
    assert_eq!(pool.in_use(), 0);
}

#[test]
#[ignore = "needs root"]
fn every_queue_is_read_and_wakes_a_waiting_thread() {
    const FLOWS: u16 = 64;
    let link = Link { node: namespace(), host: namespace() };
    let words = ["ip", "link", "add", "port", "numtxqueues", "2", "numrxqueues", "2", "type", "veth", "peer", "name"];
    let peer = ["wire", "numtxqueues", "2", "numrxqueues", "2", "netns", link.host.name()];
    link.node.run(&[&words[..], &peer].concat()).unwrap();
    for (end, interface) in [(&link.node, "port"), (&link.host, "wire")] {
        end.run(&["ethtool", "-L", interface, "rx", "2", "tx", "2"]).unwrap();
        end.run(&["ip", "link", "set", interface, "up"]).unwrap();
    }
    let wire = Wire::open(&link.host);
    let interest = Interest { prefixes: vec![(prefix("2001:db8::", 32), Match::RoceV2)], ..Interest::default() };
    for mode in MODES {
        let (mut driver, mut pool) = open(&link, mode, &interest);
        driver.receive(&mut pool, &mut Vec::new(), 0).unwrap();
        assert!(pool.in_use() <= 2048, "the queues of a port leave chunks to other ports");
        let mut frames = Vec::new();
        for flow in 0..FLOWS {
            wire.send(&udp(&[], &format!("2001:db8::{flow:x}"), 4791));
            let mut waited = [PollFd::new(driver.readable().unwrap(), PollFlags::POLLIN)];
            assert_eq!(poll(&mut waited, PollTimeout::from(5_000_u16)).unwrap(), 1);
            wait_for(|| {
                driver.receive(&mut pool, &mut frames, 1).unwrap();
                frames.pop().map(|frame| frame.release(&mut pool)).is_some()
            });
        }
        assert_eq!(driver.statistics().received, u64::from(FLOWS));
        driver.detach(&mut pool);
        assert_eq!(pool.in_use(), 0);
    }
}

#[test]
#[ignore = "needs root"]
fn an_interface_in_use_is_refused() {
    let link = Link::new();
    for mode in MODES {
        let (mut driver, mut pool) = open(&link, mode, &everything());
        for other in MODES {
            // It is refused without the wait for a queue that is being freed, which takes a second.
            let is_at_once = (0..20).any(|_| {
                let (umem, _) = Umem::new(256).unwrap();
                let started = Instant::now();
                let error = link.node.enter(|| AfXdp::open("port", other, &everything(), &umem)).unwrap().unwrap_err();
                let elapsed = started.elapsed();
                assert!(matches!(error, OpenError::InUse { .. }), "{error}");
                let text = error.to_string();
                assert!(text.starts_with("interface port is in use by another process"), "{text}");
                elapsed < Duration::from_millis(500)
            });
            assert!(is_at_once);
        }
        driver.detach(&mut pool);
    }
    let (umem, _) = Umem::new(256).unwrap();
    let error = link.node.enter(|| AfXdp::open("nowhere", XdpMode::Native, &everything(), &umem)).unwrap();
    assert!(matches!(error, Err(OpenError::NoInterface { .. })), "{error:?}");
}

#[test]
#[ignore = "needs root"]
fn an_interface_that_vanishes_is_an_error() {
    for mode in MODES {
        let link = Link::new();
        let (mut driver, mut pool) = open(&link, mode, &everything());
        driver.receive(&mut pool, &mut Vec::new(), 0).unwrap();
        link.node.run(&["ip", "link", "del", "port"]).unwrap();
        let mut error = None;
        wait_for(|| {
            let mut frames = Vec::new();
            error = driver.receive(&mut pool, &mut frames, 8).err();
            frames.into_iter().for_each(|frame| frame.release(&mut pool));
            error.is_some()
        });
        assert_eq!(error.unwrap().raw_os_error(), Some(ENODEV));
        let frame = Frame::from_octets(&octets(100, 1), &mut pool).unwrap();
        driver.push(frame, &mut pool);
        assert_eq!(driver.flush(&mut pool).unwrap_err().raw_os_error(), Some(ENODEV));
        driver.detach(&mut pool);
        assert_eq!(pool.in_use(), 0);
    }
}

#[test]
#[ignore = "needs root"]
fn a_link_recovers_after_down() {
    let link = Link::new();
    let wire = Wire::open(&link.host);
    for mode in MODES {
        let (mut driver, mut pool) = open(&link, mode, &everything());
        driver.receive(&mut pool, &mut Vec::new(), 0).unwrap();
        link.node.run(&["ip", "link", "set", "port", "down"]).unwrap();
        let frame = Frame::from_octets(&octets(100, 1), &mut pool).unwrap();
        driver.push(frame, &mut pool);
        driver.flush(&mut pool).unwrap();
        assert!(!driver.is_flushed());
        link.node.run(&["ip", "link", "set", "port", "up"]).unwrap();
        driver.flush(&mut pool).unwrap();
        assert!(driver.is_flushed());
        assert!(wire.receive() == octets(100, 1));
        wire.send(&octets(200, 2));
        let frame = receive(&mut driver, &mut pool);
        assert!(frame.to_vec(&pool) == octets(200, 2));
        frame.release(&mut pool);
        driver.detach(&mut pool);
        assert_eq!(pool.in_use(), 0);
    }
}

/// The sum of a UDP packet with its pseudo header, which is all ones when its checksum is right.
fn udp_sum(packet: &[u8]) -> u32 {
    let words = packet[8..].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
    let mut sum = words.sum::<u32>() + 17 + (packet.len() as u32 - 40);
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum
}

/// The requirements in the documentation of [`AfXdp`] on the other end are sufficient.
#[test]
#[ignore = "needs root"]
fn frames_of_sockets_arrive_as_on_a_wire() {
    let link = Link::new();
    link.host.run(&["ethtool", "-K", "wire", "tx", "on", "gso", "on", "tso", "on"]).unwrap();
    link.host.run(&["ethtool", "-K", "wire", "tx", "off"]).unwrap();
    let interest = Interest { prefixes: vec![(prefix("2001:db8::1", 128), Match::RoceV2)], ..Interest::default() };
    let sender = link.host.enter(|| UdpSocket::bind("[2001:db8::2]:0")).unwrap().unwrap();
    setsockopt(&sender, sockopt::UdpGsoSegment, &1000).unwrap();
    for mode in MODES {
        let (mut driver, mut pool) = open(&link, mode, &interest);
        driver.receive(&mut pool, &mut Vec::new(), 0).unwrap();
        sender.send_to(&[7; 3000], "[2001:db8::1]:4791").unwrap();
        let mut frames = Vec::new();
        wait_for(|| {
            driver.receive(&mut pool, &mut frames, 3).unwrap();
            frames.len() == 3
        });
        for frame in frames {
            let octets = frame.to_vec(&pool);
            assert_eq!(octets.len(), 14 + 40 + 8 + 1000);
            assert_eq!(udp_sum(&octets[14..]), 0xFFFF);
            frame.release(&mut pool);
        }
        driver.detach(&mut pool);
        assert_eq!(pool.in_use(), 0);
    }
}

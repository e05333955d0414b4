//! AF_PACKET on veth links.

use srdma_frame::{Frame, HEADER_SPAN, HEADROOM, Pool, Segment};
use srdma_io::namespace::{NamespaceGuard, VethEnd, veth};
use srdma_io::{AfPacket, Driver, Interest, Match};
use srdma_wire::{MacAddress, Prefix};
use std::io;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

const LEFT: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const RIGHT: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

/// Deadline of every wait, far beyond what a busy machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// An EtherType for experiments (IEEE 802).
const EXPERIMENT: u16 = 0x88B5;

/// Two namespaces with a link of MTU 9,000: `left` and `right`, 2001:db8::1 and 2001:db8::2.
struct Link {
    left: NamespaceGuard,
    right: NamespaceGuard,
    pool: Pool,
}

impl Link {
    fn new() -> Self {
        let [left, right] = [0, 1].map(|_| NamespaceGuard::unique("srdma-t").unwrap());
        let ends = [
            VethEnd { namespace: &left, interface: "left", mac: Some(LEFT), addresses: &["2001:db8::1/64"] },
            VethEnd { namespace: &right, interface: "right", mac: Some(RIGHT), addresses: &["2001:db8::2/64"] },
        ];
        veth(9000, ends).unwrap();
        Link { left, right, pool: Pool::new(2048) }
    }

    fn drivers(&self, interest: &Interest) -> [AfPacket; 2] {
        let left = self.left.enter(|| AfPacket::open("left", interest)).unwrap();
        let right = self.right.enter(|| AfPacket::open("right", interest)).unwrap();
        [left.unwrap(), right.unwrap()]
    }

    fn send(&mut self, driver: &mut AfPacket, octets: &[u8]) {
        let frame = Frame::from_octets(octets, &mut self.pool).unwrap();
        assert!(driver.room(&mut self.pool) > 0);
        driver.push(frame, &mut self.pool);
        driver.flush(&mut self.pool).unwrap();
    }

    /// Receives frames until `count` of interest have arrived; the kernel's own are skipped.
    fn receive(&mut self, driver: &mut AfPacket, count: usize, is_ours: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
        let begin = Instant::now();
        let (mut frames, mut found) = (Vec::new(), Vec::new());
        while found.len() < count {
            assert!(begin.elapsed() < PATIENCE, "{} of {count} frames in time", found.len());
            driver.receive(&mut self.pool, &mut frames, 64).unwrap();
            for frame in frames.drain(..) {
                assert_eq!(frame.head_len().min(HEADER_SPAN), frame.len().min(HEADER_SPAN));
                assert_eq!(frame.first().start(), HEADROOM);
                found.push(frame.to_vec(&self.pool));
                frame.release(&mut self.pool);
            }
            found.retain(|octets| is_ours(octets));
        }
        found
    }
}

fn everything() -> Interest {
    Interest { everything: true, ..Interest::default() }
}

fn experiment(len: usize, number: u8) -> Vec<u8> {
    let mut octets = [&RIGHT.0[..], &LEFT.0, &EXPERIMENT.to_be_bytes()].concat();
    octets.extend((octets.len()..len).map(|index| (index * 7) as u8 ^ number));
    octets
}

fn is_experiment(octets: &[u8]) -> bool {
    octets[12..14] == EXPERIMENT.to_be_bytes()
}

/// A UDP packet to an address and port, with `payload`.
fn udp(destination: &str, port: u16, payload: &[u8]) -> Vec<u8> {
    let source: std::net::Ipv6Addr = "2001:db8::1".parse().unwrap();
    let destination: std::net::Ipv6Addr = destination.parse().unwrap();
    let mut octets = [&RIGHT.0[..], &LEFT.0, &[0x86, 0xDD, 0x60, 0, 0, 0]].concat();
    let len = (8 + payload.len()) as u16;
    octets.extend(len.to_be_bytes());
    octets.extend([17, 64]);
    octets.extend(source.octets());
    octets.extend(destination.octets());
    octets.extend([0x12, 0xB7]);
    octets.extend(port.to_be_bytes());
    octets.extend(len.to_be_bytes());
    octets.extend([0, 0]);
    octets.extend(payload);
    octets
}

#[test]
#[ignore = "needs root"]
fn frames_of_any_length_cross_octet_by_octet() {
    let mut link = Link::new();
    let [mut left, mut right] = link.drivers(&everything());
    for (number, len) in [60, 61, 1514, 2303, 2304, 2305, 3840, 3841, 4200, 7681, 8900, 9014].into_iter().enumerate() {
        let octets = experiment(len, number as u8);
        link.send(&mut left, &octets);
        assert_eq!(link.receive(&mut right, 1, is_experiment), [octets]);
    }
    assert_eq!((left.statistics().sent, left.statistics().send_errors), (12, 0));
    assert_eq!(link.pool.in_use(), 0);
}

#[test]
#[ignore = "needs root"]
fn pieces_are_gathered_and_many_frames_wait_their_turn() {
    let mut link = Link::new();
    let [mut left, mut right] = link.drivers(&everything());
    let whole = experiment(4200, 0);
    for number in 0..200 {
        let mut frame = Frame::small(&[&whole[..14], &[number]].concat(), &mut link.pool).unwrap();
        for piece in [&whole[15..3000], &whole[3000..]] {
            let chunk = link.pool.allocate_large().unwrap();
            link.pool.octets_mut(chunk)[1..1 + piece.len()].copy_from_slice(piece);
            assert!(frame.append(Segment::new(chunk, 1, piece.len())));
        }
        left.push(frame, &mut link.pool);
    }
    assert!(!left.is_flushed());
    left.flush(&mut link.pool).unwrap();
    assert!(left.is_flushed());
    for (number, octets) in link.receive(&mut right, 200, is_experiment).into_iter().enumerate() {
        assert_eq!(octets, [&whole[..14], &[number as u8], &whole[15..]].concat());
    }
    assert_eq!(link.pool.in_use(), 0);
}

#[test]
#[ignore = "needs root"]
fn only_frames_of_interest_are_received_and_the_kernel_still_works() {
    let mut link = Link::new();
    let prefix = |text: &str, len| Prefix::new(text.parse().unwrap(), len).unwrap();
    let mut interest = Interest {
        prefixes: vec![
            (prefix("2001:db8:ff::", 48), Match::All),
            (prefix("2001:db8:ff:9::", 61), Match::Kernel),
            (prefix("2001:db8:cc::1", 128), Match::RoceV2),
            (prefix("2001:db8:fe::1", 128), Match::UnknownOption),
            (prefix("2001:db8:fe::2", 128), Match::Own),
        ],
        pfc: true,
        everything: false,
    };
    let [mut left, mut right] = link.drivers(&interest);
    let pause = [&[1, 0x80, 0xC2, 0, 0, 1][..], &LEFT.0, &[0x88, 0x08, 1, 1], &[0; 44]].concat();
    let [with_trace, fast_cnp, routed] = [0, 60, 43].map(|next_header| {
        let mut octets = udp("2001:db8:cc::1", 4791, b"e");
        octets[20] = next_header;
        octets
    });
    let refusal = |code: u8| {
        let mut octets = udp("2001:db8:fe::1", 9, b"r");
        octets[20] = 58;
        octets[54..56].copy_from_slice(&[4, code]);
        octets
    };
    let wanted = [
        udp("2001:db8:ff::1", 9, b"a"),
        udp("2001:db8:cc::1", 4791, b"b"),
        with_trace,
        fast_cnp,
        refusal(2),
        udp("2001:db8:fe::2", 3784, b"f"),
        udp("2001:db8:fe::2", 4784, b"g"),
        pause,
        udp("2001:db8:ff::2", 9, b"z"),
    ];
    let unwanted = [
        udp("2001:db8:ff:9::1", 9, b"c"),
        udp("2001:db8:cc::1", 53, b"d"),
        udp("2001:db8:fe::2", 3785, b"h"),
        routed,
        refusal(1),
        experiment(60, 0),
    ];
    // Once as a program in the kernel, and once with more prefixes than that holds.
    for _ in 0..2 {
        for octets in unwanted.iter().chain(&wanted) {
            link.send(&mut left, octets);
        }
        assert_eq!(link.receive(&mut right, wanted.len(), |_| true), wanted);
        let host = |number: u16| (prefix(&format!("2001:db8:dd::{number:x}"), 128), Match::All);
        interest.prefixes.extend((0..1000).map(host));
        right.set_interest(&interest).unwrap();
    }
    let echo = link.right.enter(|| UdpSocket::bind("[2001:db8::2]:9")).unwrap().unwrap();
    let socket = link.left.enter(|| UdpSocket::bind("[2001:db8::1]:0")).unwrap().unwrap();
    echo.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.send_to(b"kernel", "[2001:db8::2]:9").unwrap();
    assert_eq!(echo.recv(&mut [0; 9]).unwrap(), 6);
}

/// Interfaces accept frames to the group of pauses while a socket has joined it.
#[test]
#[ignore = "needs root"]
fn pause_frames_are_subscribed_while_they_are_of_interest() {
    let link = Link::new();
    let groups = || link.left.run(&["ip", "maddr", "show", "dev", "left"]).unwrap();
    let interest = Interest { pfc: true, ..Interest::default() };
    let mut driver = link.left.enter(|| AfPacket::open("left", &interest)).unwrap().unwrap();
    assert!(groups().contains("01:80:c2:00:00:01"), "{}", groups());
    driver.set_interest(&Interest::default()).unwrap();
    assert!(!groups().contains("01:80:c2:00:00:01"), "{}", groups());
    driver.set_interest(&interest).unwrap();
    assert!(groups().contains("01:80:c2:00:00:01"), "{}", groups());
    drop(driver);
    assert!(!groups().contains("01:80:c2:00:00:01"), "{}", groups());
}

/// D243: frames to other MAC addresses are received while everything is of interest.
#[test]
#[ignore = "needs root"]
fn an_interface_is_promiscuous_while_everything_is_of_interest() {
    let link = Link::new();
    let is_promiscuous = || {
        let shown = link.left.run(&["ip", "-details", "link", "show", "dev", "left"]).unwrap();
        assert!(shown.contains(" promiscuity "), "{shown}");
        !shown.contains(" promiscuity 0 ")
    };
    let mut driver = link.left.enter(|| AfPacket::open("left", &everything())).unwrap().unwrap();
    assert!(is_promiscuous());
    driver.set_interest(&Interest::default()).unwrap();
    assert!(!is_promiscuous());
    driver.set_interest(&everything()).unwrap();
    assert!(is_promiscuous());
    drop(driver);
    assert!(!is_promiscuous());
}

#[test]
#[ignore = "needs root"]
fn sent_frames_are_not_received_again() {
    let mut link = Link::new();
    let [mut left, mut right] = link.drivers(&everything());
    link.send(&mut left, &experiment(60, 0));
    link.receive(&mut right, 1, is_experiment);
    let answer = [&LEFT.0[..], &RIGHT.0, &EXPERIMENT.to_be_bytes(), &[9; 46]].concat();
    link.send(&mut right, &answer);
    assert_eq!(link.receive(&mut left, 1, is_experiment), [answer]);
}

#[test]
#[ignore = "needs root"]
fn a_tag_that_the_kernel_stripped_is_restored() {
    let mut link = Link::new();
    let interest =
        Interest { prefixes: vec![(Prefix::host("2001:db8:ff::1".parse().unwrap()), Match::All)], ..everything() };
    for interest in [everything(), Interest { everything: false, ..interest }] {
        let [mut left, mut right] = link.drivers(&interest);
        let mut octets = udp("2001:db8:ff::1", 9, b"tagged");
        octets.splice(12..12, [0x81, 0, 0x20, 7]);
        link.send(&mut left, &octets);
        let is_ours = |octets: &[u8]| octets.ends_with(b"tagged");
        assert_eq!(link.receive(&mut right, 1, is_ours), [octets]);
    }
}

#[test]
#[ignore = "needs root"]
fn a_checksum_that_the_sender_left_to_hardware_is_computed() {
    let mut link = Link::new();
    link.left.run(&["ethtool", "-K", "left", "tx", "on"]).unwrap();
    let [_, mut right] = link.drivers(&everything());
    let socket = link.left.enter(|| UdpSocket::bind("[2001:db8::1]:1234")).unwrap().unwrap();
    socket.send_to(b"checksum", "[2001:db8::2]:9").unwrap();
    let octets = link.receive(&mut right, 1, |octets| octets.ends_with(b"checksum")).remove(0);
    let addresses_and_udp = octets[14 + 8..].as_chunks::<2>().0;
    let sum: u32 = addresses_and_udp.iter().map(|pair| u32::from(u16::from_be_bytes(*pair))).sum();
    // The rest of the pseudo-header: 16 octets of UDP.
    let sum = sum + 16 + 17;
    assert_eq!((sum & 0xFFFF) + (sum >> 16), 0xFFFF);
}

#[test]
#[ignore = "needs root"]
fn segmentation_offload_frames_are_counted() {
    let mut link = Link::new();
    link.left.run(&["ethtool", "-K", "left", "tx", "on", "gso", "on", "tx-udp-segmentation", "on"]).unwrap();
    let [_, mut right] = link.drivers(&everything());
    let socket = link.left.enter(|| UdpSocket::bind("[2001:db8::1]:1234")).unwrap().unwrap();
    nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::UdpGsoSegment, &500).unwrap();
    socket.send_to(&[7; 2000], "[2001:db8::2]:9").unwrap();
    let begin = Instant::now();
    while right.statistics().too_long == 0 {
        assert!(begin.elapsed() < PATIENCE, "no long frame in time");
        let mut frames = Vec::new();
        right.receive(&mut link.pool, &mut frames, 64).unwrap();
        frames.into_iter().for_each(|frame| frame.release(&mut link.pool));
    }
}

#[test]
#[ignore = "needs root"]
fn a_frame_longer_than_its_segments_is_counted_and_skipped() {
    let mut link = Link::new();
    for (end, interface) in [(&link.left, "left"), (&link.right, "right")] {
        end.run(&["ip", "link", "set", interface, "mtu", "16000"]).unwrap();
    }
    let [mut left, mut right] = link.drivers(&everything());
    let sender = link.left.enter(|| UdpSocket::bind("[2001:db8::1]:0")).unwrap().unwrap();
    // With headers, 15,500 octets: more than four chunks, less than a slot of the ring.
    sender.send_to(&[7; 15_438], "[2001:db8::2]:9999").unwrap();
    let begin = Instant::now();
    let mut number = 0;
    while right.statistics().too_long == 0 {
        assert!(begin.elapsed() < PATIENCE, "nothing was counted in time");
        link.send(&mut left, &experiment(60, number));
        assert_eq!(link.receive(&mut right, 1, is_experiment), [experiment(60, number)]);
        number = number.wrapping_add(1);
    }
    link.send(&mut left, &experiment(60, number));
    assert_eq!(link.receive(&mut right, 1, is_experiment), [experiment(60, number)]);
}

#[test]
#[ignore = "needs root"]
fn a_link_recovers_after_down_and_a_deleted_one_is_an_error() {
    let mut link = Link::new();
    let [mut left, mut right] = link.drivers(&everything());
    link.right.run(&["ip", "link", "set", "right", "down"]).unwrap();
    let error = until_error(&mut right, &mut link.pool);
    assert_eq!(error.kind(), io::ErrorKind::NetworkDown);
    let frame = Frame::from_octets(&experiment(60, 0), &mut link.pool).unwrap();
    right.push(frame, &mut link.pool);
    right.flush(&mut link.pool).unwrap();
    assert_eq!((right.statistics().send_errors, right.is_flushed(), link.pool.in_use()), (1, true, 0));
    link.right.run(&["ip", "link", "set", "right", "up"]).unwrap();
    link.send(&mut left, &experiment(60, 1));
    assert_eq!(link.receive(&mut right, 1, is_experiment), [experiment(60, 1)]);
    link.right.run(&["ip", "link", "del", "right"]).unwrap();
    let error = until_error(&mut right, &mut link.pool);
    assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
}

#[test]
#[ignore = "needs root"]
fn a_frame_that_the_queueing_discipline_refuses_blocks_no_others() {
    let mut link = Link::new();
    let limit = ["tc", "qdisc", "add", "dev", "left", "root", "tbf"];
    link.left.run(&[&limit[..], &["rate", "100mbit", "burst", "2000", "limit", "100000"]].concat()).unwrap();
    let [mut left, mut right] = link.drivers(&everything());
    link.send(&mut left, &experiment(4_200, 0));
    link.send(&mut left, &experiment(60, 1));
    let begin = Instant::now();
    while !left.is_flushed() {
        assert!(begin.elapsed() < PATIENCE, "the frame still waits");
        left.flush(&mut link.pool).unwrap();
    }
    assert_eq!(link.receive(&mut right, 1, is_experiment), [experiment(60, 1)]);
    assert_eq!((left.statistics().sent, left.statistics().send_errors), (1, 1));
}

#[test]
#[ignore = "needs root"]
fn a_link_deleted_while_down_is_an_error() {
    let mut link = Link::new();
    let [_, mut right] = link.drivers(&everything());
    link.right.run(&["ip", "link", "set", "right", "down"]).unwrap();
    assert_eq!(until_error(&mut right, &mut link.pool).kind(), io::ErrorKind::NetworkDown);
    link.right.run(&["ip", "link", "del", "right"]).unwrap();
    assert_eq!(until_error(&mut right, &mut link.pool).raw_os_error(), Some(libc::ENODEV));
}

fn until_error(driver: &mut AfPacket, pool: &mut Pool) -> io::Error {
    let begin = Instant::now();
    loop {
        let mut frames = Vec::new();
        let result = driver.receive(pool, &mut frames, 64);
        frames.into_iter().for_each(|frame| frame.release(pool));
        if let Err(error) = result {
            return error;
        }
        assert!(begin.elapsed() < PATIENCE, "no error in time");
    }
}

//! AF_XDP on veth links, against the kernel's own sockets at their other ends.

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, recv, sendto, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};
use srdma_dataplane::{Frame, HEADER_SPAN, Pool, Segment};
use srdma_io::namespace::{NamespaceGuard, VethEnd, veth};
use srdma_io::{AfXdp, Driver, Interest, Umem, XdpMode};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

const MODES: [XdpMode; 2] = [XdpMode::Native, XdpMode::Generic];
const PAGES: usize = 8192;

/// An EtherType for experiments (IEEE 802).
const EXPERIMENT: [u8; 2] = [0x88, 0xB5];

fn everything() -> Interest {
    Interest { everything: true, ..Interest::default() }
}

/// Two namespaces and a link between them: `port` in the first, `wire` in the second.
struct Link {
    node: NamespaceGuard,
    host: NamespaceGuard,
}

impl Link {
    fn new() -> Self {
        let link = Link { node: namespace(), host: namespace() };
        connect(&link.node, "port", &link.host);
        link
    }
}

fn namespace() -> NamespaceGuard {
    NamespaceGuard::unique("srdma-t").unwrap()
}

fn connect(node: &NamespaceGuard, port: &'static str, host: &NamespaceGuard) {
    let near = VethEnd { namespace: node, interface: port, mac: None, addresses: &["2001:db8::1/64"] };
    let far = VethEnd { namespace: host, interface: "wire", mac: None, addresses: &["2001:db8::2/64"] };
    veth(9000, [near, far]).unwrap();
}

/// A raw socket at `wire`.
struct Wire {
    socket: OwnedFd,
    address: LinkAddr,
}

impl Wire {
    fn open(host: &NamespaceGuard) -> Self {
        host.enter(|| {
            let all = SockProtocol::EthAll;
            let socket = socket(AddressFamily::Packet, SockType::Raw, SockFlag::empty(), all).unwrap();
            setsockopt(&socket, sockopt::RcvBufForce, &(1 << 24)).unwrap();
            setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::seconds(5)).unwrap();
            let mut interfaces = getifaddrs().unwrap().filter(|found| found.interface_name == "wire");
            let address = interfaces.find_map(|found| found.address?.as_link_addr().copied()).unwrap();
            Wire { socket, address }
        })
        .unwrap()
    }

    fn send(&self, octets: &[u8]) {
        let sent = sendto(self.socket.as_raw_fd(), octets, &self.address, MsgFlags::empty()).unwrap();
        assert_eq!(sent, octets.len());
    }

    /// The next frame of the experiment.
    fn receive(&self) -> Vec<u8> {
        let mut octets = vec![0; 20_000];
        loop {
            let len = recv(self.socket.as_raw_fd(), &mut octets, MsgFlags::empty()).expect("no frame in five seconds");
            if octets[12..14] == EXPERIMENT {
                return octets[..len].to_vec();
            }
        }
    }
}

/// A frame of the experiment, whose octets tell its number.
fn octets(len: usize, number: usize) -> Vec<u8> {
    let mut octets: Vec<u8> = (0..len).map(|index| (index * 7 + index / 251 + number * 13) as u8).collect();
    octets[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, EXPERIMENT[0], EXPERIMENT[1]]);
    octets
}

fn open(link: &Link, mode: XdpMode, interest: &Interest) -> (AfXdp, Pool) {
    let (umem, pool) = Umem::new(PAGES).unwrap();
    let driver = link.node.enter(|| AfXdp::open("port", mode, interest, &umem)).unwrap().unwrap();
    (driver, pool)
}

/// The next frame of the experiment that a driver has.
fn receive(driver: &mut dyn Driver, pool: &mut Pool) -> Frame {
    let end = Instant::now() + Duration::from_secs(5);
    let mut frames = Vec::new();
    while Instant::now() < end {
        driver.receive(pool, &mut frames, 1).unwrap();
        match frames.pop() {
            Some(frame) if frame.head(pool)[12..14] == EXPERIMENT => return frame,
            Some(frame) => frame.release(pool),
            None => std::thread::yield_now(),
        }
    }
    panic!("no frame in five seconds");
}

fn send(driver: &mut dyn Driver, frame: Frame, pool: &mut Pool) {
    assert!(driver.room(pool) > 0);
    driver.push(frame, pool);
    driver.flush(pool).unwrap();
    assert!(driver.is_flushed());
}

#[test]
#[ignore = "needs root"]
fn frames_of_any_length_come_and_go_as_they_are() {
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

fn wait_for(mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(5);
    while !condition() {
        assert!(Instant::now() < end, "not in five seconds");
        std::thread::yield_now();
    }
}

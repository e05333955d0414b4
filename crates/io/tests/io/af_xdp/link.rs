//! A link between two namespaces, with a driver at one end and a raw socket at the other.

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, recv, sendto, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};
use srdma_frame::{Frame, Pool};
use srdma_io::namespace::{NamespaceGuard, VethEnd, veth};
use srdma_io::{AfXdp, Driver, Interest, Umem, XdpMode};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

pub(crate) const MODES: [XdpMode; 2] = [XdpMode::Native, XdpMode::Generic];
pub(crate) const PAGES: usize = 8192;

/// Error of an interface that is gone.
pub(crate) const ENODEV: i32 = 19;

/// Deadline of every wait, far beyond what a busy machine needs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// An EtherType for experiments (IEEE 802).
pub(crate) const EXPERIMENT: [u8; 2] = [0x88, 0xB5];

/// Link-layer addresses of no interface.
pub(crate) const ADDRESSES: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];

pub(crate) fn everything() -> Interest {
    Interest { everything: true, ..Interest::default() }
}

/// Two namespaces and a link between them: `port` in the first, `wire` in the second.
pub(crate) struct Link {
    pub(crate) node: NamespaceGuard,
    pub(crate) host: NamespaceGuard,
}

impl Link {
    pub(crate) fn new() -> Self {
        let link = Link { node: namespace(), host: namespace() };
        connect(&link.node, "port", &link.host);
        link
    }

    /// Its ends have so many queues, for receiving and for sending.
    pub(crate) fn with_queues(queues: usize) -> Self {
        let link = Link { node: namespace(), host: namespace() };
        let queues = queues.to_string();
        let queues = ["numrxqueues", &queues, "numtxqueues", &queues];
        let near = [&["ip", "link", "add", "port"][..], &queues, &["type", "veth"]].concat();
        link.node.run(&[&near[..], &["peer", "name", "wire", "netns", link.host.name()], &queues].concat()).unwrap();
        link.node.run(&["ip", "link", "set", "port", "up"]).unwrap();
        link.host.run(&["ip", "link", "set", "wire", "up"]).unwrap();
        link
    }
}

pub(crate) fn namespace() -> NamespaceGuard {
    NamespaceGuard::unique("srdma-t").unwrap()
}

pub(crate) fn connect(node: &NamespaceGuard, port: &'static str, host: &NamespaceGuard) {
    let near = VethEnd { namespace: node, interface: port, mac: None, addresses: &["2001:db8::1/64"] };
    let far = VethEnd { namespace: host, interface: "wire", mac: None, addresses: &["2001:db8::2/64"] };
    veth(9000, [near, far]).unwrap();
}

/// A raw socket at `wire`.
pub(crate) struct Wire {
    socket: OwnedFd,
    address: LinkAddr,
}

impl Wire {
    pub(crate) fn open(host: &NamespaceGuard) -> Self {
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

    pub(crate) fn send(&self, octets: &[u8]) {
        let sent = sendto(self.socket.as_raw_fd(), octets, &self.address, MsgFlags::empty()).unwrap();
        assert_eq!(sent, octets.len());
    }

    /// The next frame of the experiment.
    pub(crate) fn receive(&self) -> Vec<u8> {
        let mut octets = vec![0; 20_000];
        loop {
            let len = recv(self.socket.as_raw_fd(), &mut octets, MsgFlags::empty()).expect("no frame in time");
            if octets[12..14] == EXPERIMENT {
                return octets[..len].to_vec();
            }
        }
    }
}

/// A frame of the experiment, whose octets encode its number.
pub(crate) fn octets(len: usize, number: usize) -> Vec<u8> {
    let mut octets: Vec<u8> = (0..len).map(|index| (index * 7 + index / 251 + number * 13) as u8).collect();
    octets[..12].copy_from_slice(&ADDRESSES);
    octets[12..14].copy_from_slice(&EXPERIMENT);
    octets
}

pub(crate) fn open(link: &Link, mode: XdpMode, interest: &Interest) -> (AfXdp, Pool) {
    let (umem, pool) = Umem::new(PAGES).unwrap();
    let driver = link.node.enter(|| AfXdp::open("port", mode, interest, &umem)).unwrap().unwrap();
    (driver, pool)
}

/// The next frame of the experiment that a driver has.
pub(crate) fn receive(driver: &mut dyn Driver, pool: &mut Pool) -> Frame {
    let end = Instant::now() + PATIENCE;
    let mut frames = Vec::new();
    while Instant::now() < end {
        driver.receive(pool, &mut frames, 1).unwrap();
        match frames.pop() {
            Some(frame) if frame.head(pool)[12..14] == EXPERIMENT => return frame,
            Some(frame) => frame.release(pool),
            None => std::thread::yield_now(),
        }
    }
    panic!("no frame in time");
}

pub(crate) fn send(driver: &mut dyn Driver, frame: Frame, pool: &mut Pool) {
    assert!(driver.room(pool) > 0);
    driver.push(frame, pool);
    driver.flush(pool).unwrap();
    assert!(driver.is_flushed());
}

pub(crate) fn wait_for(mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "not in time");
        std::thread::yield_now();
    }
}

//! Transfers between two endpoints on one address, which therefore have ports of their own; no privileges.

use crate::lossy::Lossy;
use sha2::{Digest, Sha256};
use srdma_host::{
    Clock, Congestion, Connection, FileError, FileSource, OutputFile, Received, Receiving, ReceivingConfig, SendData,
    Sending, SendingConfig, Sink, TransferError, TransferMode, UdpWire, UdpWireConfig, Wire, run,
};
use srdma_io::udp::Segmentation;
use srdma_rc::rate::DcqcnParameters;
use srdma_rc::{MemoryKey, QueuePairCounters, RateAlgorithm, RemoteAddress, Status};
use srdma_testkit::{ipv4_groups, packets};
use srdma_wire::{PathMtu, Psn, Qpn};
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const BASE: u64 = 0x7000_0000;
const TAG: u8 = 0x5A;
const LINE_BITS_PER_S: u64 = 200_000_000;

/// Parameters of a test.
#[derive(Clone, Copy)]
struct Setting {
    /// Of both ends.
    address: Ipv6Addr,
    by_write: bool,
    message_octets: u32,
    path_mtu: PathMtu,
    window: u32,
    segmentation: Segmentation,
    /// One packet of so many is lost, in either direction.
    loss: Option<u64>,
    /// Every packet is marked that may be; the receiver answers, and the sender slows down.
    marks: bool,
    buffer_octets: u32,
    region_octets: u64,
    rkey: u32,
    timeout: Duration,
}

/// Where the data of a test come from and go to.
struct Places<'a> {
    data: SendData,
    output: Option<&'a Path>,
}

impl Places<'_> {
    /// Data in memory, which the receiver discards.
    fn memory(data: &[u8]) -> Self {
        Places { data: SendData::in_memory(data.to_vec()), output: None }
    }
}

const USUAL: Setting = Setting {
    address: Ipv6Addr::LOCALHOST,
    by_write: true,
    message_octets: 1 << 16,
    path_mtu: PathMtu::Octets4096,
    window: 32,
    segmentation: Segmentation::Software,
    loss: None,
    marks: false,
    buffer_octets: 1 << 20,
    region_octets: 16 << 20,
    rkey: TAG as u32,
    timeout: Duration::from_secs(60),
};

struct Outcome {
    sent: Result<(), TransferError>,
    received: Option<Result<Received, TransferError>>,
    sender: QueuePairCounters,
}

impl Setting {
    fn wire(&self) -> UdpWire {
        UdpWire::new(&UdpWireConfig {
            address: self.address,
            peer: self.address,
            port: 0,
            peer_port: 0,
            segmentation: self.segmentation,
            buffer_octets: self.buffer_octets,
            max_packet_octets: 4300,
        })
        .expect("a socket on a loopback address")
    }

    fn connection(&self, qpn: u32, peer_qpn: u32) -> Connection {
        Connection {
            address: self.address,
            qpn: Qpn::new(qpn).unwrap(),
            peer_address: self.address,
            peer_qpn: Qpn::new(peer_qpn).unwrap(),
            // The numbers wrap on the way.
            psn: Psn::new(0xFF_FFF0),
            path_mtu: self.path_mtu,
            window: self.window,
            // 8 ms: this is one machine.
            ack_timeout: 11,
            retries: 7,
        }
    }

    fn lossy<'w>(&self, wire: &'w mut UdpWire, seed: u64) -> Lossy<'w> {
        Lossy::new(wire, self.loss, seed, self.marks)
    }

    fn congestion(&self) -> Congestion {
        if !self.marks {
            return Congestion::default();
        }
        let rate = Some(RateAlgorithm::Dcqcn(DcqcnParameters::connectx(LINE_BITS_PER_S)));
        Congestion { rate, cnp_interval_ns: Some(50_000), ..Congestion::default() }
    }

    /// A transfer from one thread to another.
    fn transfer(&self, places: Places<'_>) -> Outcome {
        let Places { data, output } = places;
        let (mut sender, mut receiver) = (self.wire(), self.wire());
        sender.set_peer_port(receiver.port());
        receiver.set_peer_port(sender.port());
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let receiving = scope.spawn(|| self.receive(&mut receiver, output, &is_over));
            let (sent, sender) = self.send(&mut sender, data);
            is_over.store(true, Ordering::Relaxed);
            Outcome { sent, sender, received: receiving.join().expect("no panic") }
        })
    }

    fn send(&self, wire: &mut UdpWire, data: SendData) -> (Result<(), TransferError>, QueuePairCounters) {
        let connection = self.connection(0x11, 0x22);
        let mut endpoint = connection.endpoint(&self.congestion()).unwrap();
        let remote = RemoteAddress { virtual_address: BASE, rkey: MemoryKey(self.rkey) };
        let config = SendingConfig {
            qpn: connection.qpn,
            mode: if self.by_write { TransferMode::Write(remote) } else { TransferMode::Send },
            message_octets: self.message_octets,
            timeout: self.timeout,
        };
        let clock = Clock::start();
        let mut report = |_| {};
        let mut sending = Sending::new(clock.now(), config, data, &mut endpoint, &mut report);
        run(&clock, &mut endpoint, &mut self.lossy(wire, 1), &mut sending).expect("the wire works");
        let outcome = sending.outcome().expect("it is over").map(drop);
        assert_eq!(sending.congestion().least_bits_per_s.is_some_and(|rate| rate < LINE_BITS_PER_S), self.marks);
        (outcome, *endpoint.counters(connection.qpn).unwrap())
    }

    /// Receives, then answers until the sender is content.
    fn receive(
        &self,
        wire: &mut UdpWire,
        output: Option<&Path>,
        is_over: &AtomicBool,
    ) -> Option<Result<Received, TransferError>> {
        let connection = self.connection(0x22, 0x11);
        let mut endpoint = connection.endpoint(&self.congestion()).unwrap();
        let config =
            ReceivingConfig { qpn: connection.qpn, virtual_address: BASE, key_tag: TAG, timeout: self.timeout };
        let clock = Clock::start();
        let mut report = |_| {};
        let output = output.map(|path| OutputFile::create(path).expect("a file"));
        let sink = Sink::new(self.region_octets, 1 << 20, output);
        let mut receiving = Receiving::new(clock.now(), config, sink, &mut endpoint, &mut report);
        assert_eq!(receiving.rkey(), MemoryKey(TAG.into()));
        let mut wire = self.lossy(wire, 2);
        run(&clock, &mut endpoint, &mut wire, &mut receiving).expect("the wire works");
        let received = receiving.take(&mut endpoint);
        while !is_over.load(Ordering::Relaxed) {
            let now = clock.now();
            let take = &mut |packet: &[&[u8]]| {
                let _ = endpoint.receive(now, packet);
            };
            wire.receive(take).expect("the wire works");
            wire.transmit(&mut |packet| endpoint.poll_transmit(now, packet)).expect("the wire works");
            wire.wait(Some(Duration::from_millis(1))).expect("the wire works");
        }
        received
    }

    /// A transfer that succeeds, from memory and from a file to a file.
    fn succeeds(&self, data: &[u8]) -> QueuePairCounters {
        let directory = tempfile::tempdir().expect("a directory");
        let [source, copy] = ["source", "copy"].map(|name| directory.path().join(name));
        fs::write(&source, data).expect("written");
        let file = FileSource::open(&source).expect("opened").expect("a regular file");
        self.arrives(data, Places { data: SendData::File(file), output: Some(&copy) });
        assert!(fs::read(&copy).expect("the copy") == data, "the copy of {} octets differs", data.len());
        self.arrives(data, Places::memory(data))
    }

    fn arrives(&self, data: &[u8], places: Places<'_>) -> QueuePairCounters {
        let outcome = self.transfer(places);
        assert_eq!(outcome.sent, Ok(()));
        let received = outcome.received.expect("it is over").expect("everything has come");
        let sha256 = <[u8; 32]>::from(Sha256::digest(data));
        assert_eq!((received.octets, received.sha256), (data.len() as u64, Some(sha256)));
        assert_eq!(received.trailer.sha256, sha256);
        assert_eq!(received.by_write, self.by_write && !data.is_empty());
        if let Some(output) = received.output {
            output.keep(received.octets).expect("it gets its name");
        }
        outcome.sender
    }
}

fn octets(len: usize) -> Vec<u8> {
    (0..len as u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

#[test]
fn every_length_by_write_and_by_send() {
    for by_write in [true, false] {
        for len in [0, 1, 4095, 4096, 4097, 1 << 16, (1 << 16) + 1] {
            Setting { by_write, ..USUAL }.succeeds(&octets(len));
        }
    }
}

#[test]
fn ten_mebibytes_in_packets_of_every_length() {
    for (path_mtu, by_write) in [(PathMtu::Octets4096, true), (PathMtu::Octets1024, false)] {
        Setting { path_mtu, by_write, ..USUAL }.succeeds(&octets(10 << 20));
    }
    for path_mtu in [PathMtu::Octets256, PathMtu::Octets512, PathMtu::Octets2048] {
        Setting { path_mtu, ..USUAL }.succeeds(&octets(1 << 20));
    }
}

#[test]
fn the_kernel_cuts_and_joins_packets() {
    for message_octets in [4096 * 3 + 7, 1 << 20] {
        let setting = Setting { segmentation: Segmentation::Offload, message_octets, ..USUAL };
        setting.succeeds(&octets(5 << 20));
        Setting { by_write: false, ..setting }.succeeds(&octets(5 << 20));
    }
}

#[test]
fn messages_shorter_than_a_packet_and_many_of_them() {
    Setting { by_write: false, message_octets: 1, window: 64, ..USUAL }.succeeds(&octets(10_000));
    Setting { message_octets: 3, window: 64, ..USUAL }.succeeds(&octets(10_000));
}

#[test]
fn lost_packets_are_retransmitted() {
    for by_write in [true, false] {
        let counters = Setting { by_write, loss: Some(50), window: 16, ..USUAL }.succeeds(&octets(2 << 20));
        assert!(counters.packets_retransmitted > 0 && counters.naks_received > 0, "{counters:?}");
    }
}

/// FC-3-2: the traffic class reaches the receiver over a socket, whose CNPs reduce the sender's rate.
#[test]
fn marks_are_answered() {
    let counters = Setting { marks: true, ..USUAL }.succeeds(&octets(1 << 20));
    assert!(counters.cnps_received > 0, "{counters:?}");
    let counters = USUAL.succeeds(&octets(1 << 20));
    assert_eq!(counters.cnps_received, 0);
}

/// A socket with the smallest buffer of a system, and the window that fits it.
#[test]
fn a_small_buffer_implies_a_small_window() {
    let setting = Setting { buffer_octets: 100_000, ..USUAL };
    let window = setting.wire().receive_window(4096);
    assert!((8..=32).contains(&window), "{window}");
    Setting { window, ..setting }.succeeds(&octets(4 << 20));
}

/// 127.0.0.1, IPv4-mapped.
const OVER_IPV4: Setting = Setting { address: Ipv4Addr::LOCALHOST.to_ipv6_mapped(), ..USUAL };

/// D275: the same over IPv4, marks included. Segmentation by the kernel is not used, though it was chosen.
#[test]
fn transfers_over_ipv4() {
    for by_write in [true, false] {
        OVER_IPV4.succeeds(&octets(0));
        let counters = Setting { by_write, loss: Some(50), window: 16, ..OVER_IPV4 }.succeeds(&octets(1 << 20));
        assert!(counters.packets_retransmitted > 0 && counters.naks_received > 0, "{counters:?}");
    }
    Setting { segmentation: Segmentation::Offload, ..OVER_IPV4 }.succeeds(&octets(1 << 20));
    let counters = Setting { marks: true, ..OVER_IPV4 }.succeeds(&octets(1 << 20));
    assert!(counters.cnps_received > 0, "{counters:?}");
}

/// D275: the ICRC of a datagram is that of the atomic IPv4 packet around it, whatever its time to live and checksums.
#[test]
fn datagrams_over_ipv4_have_its_icrc() {
    let mut wire = OVER_IPV4.wire();
    let peer = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    wire.set_peer_port(peer.local_addr().unwrap().port());
    let packet = packets::rocev2(OVER_IPV4.address, OVER_IPV4.address, 0x04, 0x22, 7, &[9; 101]);
    let mut once = Some(&packet);
    let sent = wire.transmit(&mut |place| {
        let packet = once.take()?;
        place[..packet.len()].copy_from_slice(packet);
        Some(packet.len())
    });
    assert_eq!(sent.unwrap(), 1);
    let mut payload = [0; 2048];
    let len = peer.recv(&mut payload).unwrap();
    let expected = ipv4_groups::in_ipv4(&packet);
    assert_eq!(payload[..len], expected[28..]);
    // And back.
    peer.send_to(&payload[..len], (Ipv4Addr::LOCALHOST, wire.port())).unwrap();
    wire.wait(Some(Duration::from_secs(10))).unwrap();
    let mut received = Vec::new();
    wire.receive(&mut |pieces| received.push(pieces.concat())).unwrap();
    let [received] = &received[..] else { panic!("{received:?}") };
    // The socket reports neither hop limit nor flow label.
    assert_eq!((&received[8..40], &received[48..]), (&packet[8..40], &packet[48..]));
}

#[test]
fn garbage_is_counted_and_ignored() {
    let (mut sender, mut receiver) = (USUAL.wire(), USUAL.wire());
    sender.set_peer_port(receiver.port());
    receiver.set_peer_port(sender.port());
    let is_over = AtomicBool::new(false);
    let target = (Ipv6Addr::LOCALHOST, receiver.port());
    let data = octets(2 << 20);
    thread::scope(|scope| {
        scope.spawn(|| {
            let socket = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).unwrap();
            let garbage = octets(4200);
            for len in (0..garbage.len()).cycle() {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                let _ = socket.send_to(&garbage[..len], target);
            }
        });
        let receiving = scope.spawn(|| USUAL.receive(&mut receiver, None, &is_over));
        let (sent, _) = USUAL.send(&mut sender, SendData::in_memory(data.clone()));
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(sent, Ok(()));
        let received = receiving.join().unwrap().unwrap().unwrap();
        assert_eq!(received.sha256, Some(Sha256::digest(&data).into()));
    });
    assert!(receiver.statistics().received > 600, "{:?}", receiver.statistics());
}

#[test]
fn a_wrong_key_and_too_much_data_are_refused_by_the_peer() {
    let refused = |setting: Setting, status| {
        let outcome = setting.transfer(Places::memory(&octets(100_000)));
        assert_eq!(outcome.sent, Err(TransferError::Request(status)));
        assert_eq!(outcome.received.map(|received| received.map(drop)), Some(Err(TransferError::RequestRefused)));
    };
    refused(Setting { rkey: 0x1234, ..USUAL }, Status::RemoteAccessError);
    refused(Setting { region_octets: 99_999, ..USUAL }, Status::RemoteAccessError);
    let outcome =
        Setting { by_write: false, region_octets: 99_990, ..USUAL }.transfer(Places::memory(&octets(100_000)));
    let received = outcome.received.map(|received| received.map(drop));
    assert_eq!(received, Some(Err(TransferError::TooLong { excess: 10, limit: 99_990 })));
}

/// D230: a file that becomes shorter while it is sent: the sender names it, and the receiver keeps nothing.
#[test]
fn a_file_that_shrinks_ends_the_transfer() {
    let directory = tempfile::tempdir().unwrap();
    let [source, copy] = ["source", "copy"].map(|name| directory.path().join(name));
    fs::write(&source, octets(1 << 20)).unwrap();
    let file = FileSource::open(&source).unwrap().expect("a regular file");
    fs::File::options().write(true).open(&source).unwrap().set_len(500_000).unwrap();
    let setting = Setting { timeout: Duration::from_secs(1), ..USUAL };
    let outcome = setting.transfer(Places { data: SendData::File(file), output: Some(&copy) });
    let path = source.display().to_string();
    let expected = FileError::Shrunk { path, end: 500_000, octets: 1 << 20 };
    assert_eq!(outcome.sent, Err(TransferError::File(expected)));
    let received = outcome.received.expect("it is over").expect_err("incomplete");
    assert_eq!(received, TransferError::ReceiveTimeout { after: setting.timeout });
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "the source alone");
}

/// D230: a disk without room: the receiver names file and place, and the sender learns that it need not go on.
#[test]
fn a_full_disk_ends_the_transfer_at_both_ends() {
    for by_write in [true, false] {
        let setting = Setting { by_write, ..USUAL };
        let data = SendData::in_memory(octets(8 << 20));
        let outcome = setting.transfer(Places { data, output: Some(Path::new("/dev/full")) });
        assert_eq!(outcome.sent, Err(TransferError::Request(Status::RemoteOperationalError)));
        let received = outcome.received.expect("it is over").expect_err("no room");
        assert!(matches!(received, TransferError::File(FileError::Write { is_full: true, .. })), "{received}");
    }
}

#[test]
fn a_silent_peer_ends_the_transfer() {
    // Long enough for a retransmission, even where the test waits for a processor.
    let setting = Setting { timeout: Duration::from_secs(1), ..USUAL };
    let mut wire = setting.wire();
    wire.set_peer_port(9);
    let (sent, counters) = setting.send(&mut wire, SendData::in_memory(octets(100)));
    assert_eq!(sent, Err(TransferError::NoResponse { after: setting.timeout }));
    assert!(counters.timeouts > 0);
    let received = setting.receive(&mut wire, None, &AtomicBool::new(true));
    assert_eq!(
        received.map(|received| received.map(drop)),
        Some(Err(TransferError::NothingReceived { after: setting.timeout }))
    );
}

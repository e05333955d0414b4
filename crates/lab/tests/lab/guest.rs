//! Soft-RoCE guests, two on one link: their RDMA stack against itself, without any node between them.

use srdma_lab::guest::{Guest, GuestPlan, Image, Peer, PeerOptions, Port, QueuePair, Work};
use srdma_lab::{Instance, Interrupt, Lab, Source};
use srdma_wire::{PathMtu, Psn};
use std::net::{IpAddr, Ipv6Addr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Booting takes four seconds on a quiet machine.
const BOOT_LIMIT: Duration = Duration::from_secs(120);
const TRANSFER_LIMIT: Duration = Duration::from_secs(120);

const OCTETS: u64 = 1 << 20;
const MESSAGE: u64 = 1 << 16;

const TOPOLOGY: &str = r#"
    description = "two guests on one link"
    node = [
        { name = "g1", kind = "guest", addresses = ["2001:db8:1::1"] },
        { name = "g2", kind = "guest", addresses = ["2001:db8:1::2"] },
    ]
    link = [{ ends = ["g1", "g2"] }]
"#;

/// A lab that is removed even if the test panics.
struct TestLab(Lab);

impl TestLab {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let source = Source { file: "tguest.toml".into(), text: TOPOLOGY.to_owned() };
        let suffix = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let instance = Instance::new("tguest", Some(&suffix)).unwrap();
        TestLab(Lab::create(&source, source.topology().unwrap(), instance).unwrap())
    }

    fn start(&mut self, image: &Image, number: u16, mtu: u32) -> Guest {
        let (node, interface) = (format!("g{number}"), format!("g{}", 3 - number));
        let ending_in = |prefix: [u16; 3]| IpAddr::from([prefix[0], prefix[1], prefix[2], 0, 0, 0, 0, number]);
        // Neighbour discovery needs a link-local address.
        let addresses = vec![(ending_in([0x2001, 0xdb8, 1]), 64), (ending_in([0xFE80, 0, 0]), 64)];
        let plan = GuestPlan { node, interface, addresses, gateways: Vec::new(), mtu };
        Guest::start(&mut self.0, image, &plan).unwrap()
    }
}

impl Drop for TestLab {
    fn drop(&mut self) {
        let down = Lab::down(self.0.instance(), Some(self.0.topology()));
        assert!(down.is_ok() || std::thread::panicking(), "{down:?}");
    }
}

/// Two peers with a connected queue pair each; `[0]` has something in its buffer.
fn peers(guests: &[Guest; 2], path_mtu: PathMtu) -> [(Peer, QueuePair); 2] {
    let options = PeerOptions { octets: OCTETS, path_mtu, ack_timeout: 17, address: None };
    let psns = [0x1000, 0xFF_FFF0].map(Psn::new);
    let mut index = 0;
    let [mut a, mut b] = guests.each_ref().map(|guest| {
        let mut peer = guest.shell(Port::Lab).unwrap().into_peer(options).unwrap();
        let pair = peer.open(psns[index]).unwrap();
        index += 1;
        (peer, pair)
    });
    a.0.connect(a.1, b.0.address, b.1.qpn, b.1.psn).unwrap();
    b.0.connect(b.1, a.0.address, a.1.qpn, a.1.psn).unwrap();
    a.0.fill(1).unwrap();
    assert_ne!(a.0.sha256(OCTETS).unwrap(), b.0.sha256(OCTETS).unwrap());
    [a, b]
}

fn poll<T>(mut ask: impl FnMut() -> srdma_lab::Result<Option<T>>) -> T {
    loop {
        if let Some(answer) = ask().unwrap() {
            return answer;
        }
    }
}

fn run(peer: &mut Peer) -> Duration {
    peer.run(TRANSFER_LIMIT).unwrap();
    poll(|| peer.done())
}

#[test]
#[ignore = "needs root"]
fn two_guests_write_and_send_to_each_other() {
    let mut lab = TestLab::new();
    let image = Image::provide(&mut |line| println!("{line}")).unwrap();
    let begin = Instant::now();
    let guests = [lab.start(&image, 1, 4608), lab.start(&image, 2, 4608)];
    for guest in &guests {
        guest.wait(BOOT_LIMIT, &Interrupt::ignore()).unwrap();
    }
    println!("both have booted after {:?}", begin.elapsed());
    for path_mtu in [PathMtu::Octets1024, PathMtu::Octets4096] {
        let [(mut a, from), (mut b, to)] = peers(&guests, path_mtu);
        a.assign(from, Work::Write { rkey: b.rkey, address: b.base }, OCTETS, MESSAGE).unwrap();
        println!("path MTU {path_mtu}: WRITE of {OCTETS} octets in {:?}", run(&mut a));
        assert_eq!(a.sha256(OCTETS).unwrap(), b.sha256(OCTETS).unwrap());

        b.fill(0).unwrap();
        b.receive(to, OCTETS, MESSAGE).unwrap();
        a.assign(from, Work::Send, OCTETS, MESSAGE).unwrap();
        println!("path MTU {path_mtu}: SEND of {OCTETS} octets in {:?}", run(&mut a));
        b.wait(OCTETS / MESSAGE, TRANSFER_LIMIT).unwrap();
        assert_eq!(poll(|| b.waited()), OCTETS);
        assert_eq!(a.sha256(OCTETS).unwrap(), b.sha256(OCTETS).unwrap());
    }

    // The ports are free again, and the two do not disturb each other.
    let mut shell = guests[0].shell(Port::Lab).unwrap();
    let mut other = guests[0].shell(Port::Shell).unwrap();
    assert_eq!(shell.run("hostname", TRANSFER_LIMIT).unwrap(), "g1");
    assert!(other.run("rdma link", TRANSFER_LIMIT).unwrap().contains("netdev eth0"));
    let error = other.run("echo so; false", TRANSFER_LIMIT).unwrap_err().to_string();
    assert_eq!(error, "guest g1: `echo so; false` failed with status 1: so");
}

#[test]
#[ignore = "needs root"]
fn an_impossible_request_is_refused_with_its_reason() {
    let mut lab = TestLab::new();
    let image = Image::provide(&mut |_| {}).unwrap();
    let guest = lab.start(&image, 1, 1500);
    guest.wait(BOOT_LIMIT, &Interrupt::ignore()).unwrap();
    let options = PeerOptions { octets: OCTETS, path_mtu: PathMtu::Octets1024, ack_timeout: 17, address: None };
    let mut peer = guest.shell(Port::Lab).unwrap().into_peer(options).unwrap();
    let pair = peer.open(Psn::new(0)).unwrap();
    let nowhere = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 9);
    let error = peer.connect(pair, nowhere, pair.qpn, pair.psn).unwrap_err().to_string();
    assert!(error.starts_with("guest g1: `connect 0 2001:db8:1::9 "), "{error}");
    assert!(error.contains(": cannot connect: "), "{error}");
    let error = peer.sha256(OCTETS + 1).unwrap_err().to_string();
    assert!(error.contains("not in the buffer"), "{error}");

    // A machine that ends during a wait for it.
    guest.process().kill();
    let error = peer.fill(1).unwrap_err().to_string();
    assert!(error.starts_with("guest g1: "), "{error}");
    let error = guest.shell(Port::Lab).unwrap_err().to_string();
    assert!(error.starts_with("guest g1 ended before it could answer; the last lines of "), "{error}");
}

#[test]
#[ignore = "needs root"]
fn a_guest_that_cannot_boot_is_an_error_with_its_output() {
    let mut lab = TestLab::new();
    let initrd = PathBuf::from("/nonexistent/initrd");
    let image = Image { kernel: PathBuf::from("/nonexistent/kernel"), initrd: initrd.clone(), memory_mib: 192 };
    let guest = lab.start(&image, 1, 1500);
    let error = guest.wait(BOOT_LIMIT, &Interrupt::ignore()).unwrap_err().to_string();
    assert!(error.starts_with("guest g1 ended before it could boot; the last lines of "), "{error}");
    assert!(error.contains("could not open kernel file '/nonexistent/kernel'"), "{error}");

    // One that boots, but not in time.
    let image = Image::provide(&mut |_| {}).unwrap();
    let mut lab = TestLab::new();
    let guest = lab.start(&image, 1, 1500);
    let error = guest.wait(Duration::from_millis(200), &Interrupt::ignore()).unwrap_err().to_string();
    assert!(error.starts_with("guest g1 did not boot within 0 s; the last lines of "), "{error}");
}

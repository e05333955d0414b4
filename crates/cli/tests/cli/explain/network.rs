//! A small tree in virtual time, and captures of what its nodes' ports have seen.
//!
//! ```text
//!   S1 ── n1, headend ─┬─ n2, edge ─┬─ R1    S1  2001:db8:aa::1      n1  2001:db8:ff:1::1
//!                      │            ├─ R2    Rn  2001:db8:bb::n      n2  2001:db8:ff:2::1, End.MT SID ::e
//!                      │            └─ R3    proxy  2001:db8:cc::1   n3  2001:db8:ff:3::1, End.MT SID ::e
//!                      └─ n3, edge ─── R4
//! ```

use srdma_capture::Writer;
use srdma_dataplane::Node;
use srdma_frame::{Element, Frame, Pool, PortId};
use srdma_node::Configuration;
use srdma_rc::{Habits, QueuePairConfig};
use srdma_sim::host::{HOST_PORT, Host, HostConfig};
use srdma_sim::program::{MessageOperation, ReceiveStream, SendStream};
use srdma_sim::replica::Replica;
use srdma_sim::{ElementId, LinkModel, Network, SimElement};
use srdma_wire::{Instant, MacAddress, PathMtu, Psn, Qpn};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::rc::Rc;
use std::sync::Arc;
use tempfile::TempDir;

/// Whether a frame that arrives gets through: at whom (`s1`, `n1`, `r3`), when, at which port, what.
pub(crate) type Filter = Rc<dyn Fn(&str, u64, PortId, &[u8]) -> bool>;

/// Faults of a run.
pub(crate) struct Plan {
    /// Octets that S1 sends, in messages of 2,048.
    pub(crate) size_octets: usize,
    /// R1 to R4 post receives only for so many messages.
    pub(crate) receives: [usize; 4],
    /// Frames that are not dropped.
    pub(crate) passes: Filter,
    /// Time at which n2 is replaced by a node without state.
    pub(crate) restart_n2_at: Option<Instant>,
    /// The time up to which it runs.
    pub(crate) until: Instant,
    /// The group's T_hold at n2.
    pub(crate) t_hold: &'static str,
    /// What the PSNs of R3's queue pair differ by from the group's.
    pub(crate) psn_offset: u32,
}

impl Plan {
    /// 64 packets to all, undisturbed.
    pub(crate) fn quiet() -> Self {
        Plan {
            size_octets: 64 * 1024,
            receives: [32; 4],
            passes: Rc::new(|_, _, _, _| true),
            restart_n2_at: None,
            until: Instant::from_ns(100_000_000),
            t_hold: "20us",
            psn_offset: 0,
        }
    }

    /// n2's configuration.
    fn n2(&self) -> String {
        let qpn = "qpn = 0x1003\n";
        edge(2, &[1, 2, 3], self.t_hold).replace(qpn, &format!("{qpn}psn_offset = {}\n", self.psn_offset))
    }
}

/// First PSN of the group.
pub(crate) const FIRST_PSN: u32 = 1000;

/// n1's configuration.
pub(crate) const N1: &str = "[node]
loopback = '2001:db8:ff:1::1'
[[port]]
name = 's1'
mac = '02:00:00:00:01:01'
[[port]]
name = 'n2'
mac = '02:00:00:00:01:02'
[[port]]
name = 'n3'
mac = '02:00:00:00:01:03'
[[neighbour]]
address = '2001:db8:aa::1%s1'
mac = '02:00:00:00:aa:01'
[[neighbour]]
address = '2001:db8:ff:2::1%n2'
mac = '02:00:00:00:02:01'
[[neighbour]]
address = '2001:db8:ff:3::1%n3'
mac = '02:00:00:00:03:01'
[[route]]
prefix = '2001:db8:ff:2::/64'
via = ['2001:db8:ff:2::1%n2']
[[route]]
prefix = '2001:db8:ff:3::/64'
via = ['2001:db8:ff:3::1%n3']
[[group]]
id = 1
proxy = '2001:db8:cc::1'
designated_qpn = 0xd00000
initial_psn = 1000
role = 'transit'
source = { address = '2001:db8:aa::1', qpn = 0x100 }
branches = ['2001:db8:ff:2::1', '2001:db8:ff:3::1']
downstream = ['2001:db8:ff:2::e', '2001:db8:ff:3::e']
[group.headend]
";

/// An edge's configuration; receivers are behind ports of their names.
pub(crate) fn edge(number: u8, receivers: &[u8], t_hold: &str) -> String {
    let mut text = format!(
        "[node]
loopback = '2001:db8:ff:{number}::1'
[[port]]
name = 'up'
mac = '02:00:00:00:0{number}:01'
[[neighbour]]
address = '2001:db8:ff:1::1%up'
mac = '02:00:00:00:01:0{number}'
[[sid]]
sid = '2001:db8:ff:{number}::e'
behavior = 'End.MT'
"
    );
    for (port, receiver) in (2..).zip(receivers) {
        text += &format!(
            "[[port]]
name = 'r{receiver}'
mac = '02:00:00:00:0{number}:0{port}'
[[neighbour]]
address = '2001:db8:bb::{receiver}%r{receiver}'
mac = '02:00:00:00:bb:0{receiver}'
"
        );
    }
    text += &format!(
        "[[group]]
id = 1
proxy = '2001:db8:cc::1'
designated_qpn = 0xd00000
initial_psn = 1000
role = 'edge'
sid = '2001:db8:ff:{number}::e'
parent = {{ loopback = '2001:db8:ff:1::1' }}
policy = {{ t_hold = '{t_hold}' }}
"
    );
    for receiver in receivers {
        text += &format!("[[group.receiver]]\naddress = '2001:db8:bb::{receiver}'\nqpn = 0x100{receiver}\n");
    }
    text
}

/// Frames by the name of the port that saw them.
type Captures = BTreeMap<String, Vec<(u64, Vec<u8>)>>;

/// An element, and what its ports have seen.
struct Recorder {
    name: String,
    element: Box<dyn Element>,
    filter: Filter,
    seen: Vec<(u64, PortId, Vec<u8>)>,
    /// A node that takes over from the first one.
    successor: Option<(Instant, Box<dyn Element>)>,
}

impl Recorder {
    fn new(name: impl Into<String>, element: impl Element + 'static, filter: &Filter) -> Self {
        let filter = Rc::clone(filter);
        Recorder { name: name.into(), element: Box::new(element), filter, seen: Vec::new(), successor: None }
    }

    fn node(name: &str, text: &str, filter: &Filter) -> (Self, Vec<String>) {
        let (node, names) = node(text);
        (Recorder::new(name, node, filter), names)
    }

    fn see(&mut self, now: Instant, port: PortId, octets: Vec<u8>) {
        self.seen.push((now.as_ns(), port, octets));
    }
}

fn node(text: &str) -> (Node, Vec<String>) {
    let configuration = Configuration::parse(Path::new("node.toml"), text).expect("a right configuration");
    let names = configuration.spec.node.ports.iter().map(|port| port.name.clone()).collect();
    (configuration.node().expect("a node"), names)
}

fn octets(frame: &Frame, pool: &Pool) -> Vec<u8> {
    frame.pieces(pool).flatten().copied().collect()
}

impl Element for Recorder {
    fn receive(&mut self, now: Instant, port: PortId, frames: &mut Vec<Frame>, pool: &mut Pool) {
        if let Some((_, successor)) = self.successor.take_if(|(at, _)| now >= *at) {
            self.element = successor;
        }
        let mut passed = Vec::new();
        for frame in frames.drain(..) {
            let octets = octets(&frame, pool);
            if (self.filter)(&self.name, now.as_ns(), port, &octets) {
                self.see(now, port, octets);
                passed.push(frame);
            } else {
                frame.release(pool);
            }
        }
        self.element.receive(now, port, &mut passed, pool);
    }

    fn tick(&mut self, now: Instant, pool: &mut Pool) {
        self.element.tick(now, pool);
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.element.next_deadline()
    }

    fn dequeue(&mut self, now: Instant, port: PortId, pool: &mut Pool) -> Option<Frame> {
        let frame = self.element.dequeue(now, port, pool)?;
        let octets = octets(&frame, pool);
        self.see(now, port, octets);
        Some(frame)
    }

    fn take_ready(&mut self, wake: &mut Vec<PortId>) {
        self.element.take_ready(wake);
    }
}

impl SimElement for Recorder {
    fn wants_driver_layout(&self) -> bool {
        true
    }
}

fn queue_pair(qpn: u32, psn_offset: u32) -> QueuePairConfig {
    let number = |qpn| Qpn::new(qpn).expect("24 bits");
    let habits = Habits { ack_request_interval: 4, max_outstanding_psns: 16, ..Habits::strict() };
    QueuePairConfig {
        sq_psn: Psn::new(FIRST_PSN),
        rq_psn: Psn::new(FIRST_PSN + psn_offset),
        path_mtu: PathMtu::Octets1024,
        // 4.2 ms.
        ack_timeout: 10,
        habits,
        ..QueuePairConfig::new(number(qpn), "2001:db8:cc::1".parse().expect("an address"), number(0xd0_0000))
    }
}

fn host(address: &str, mac: [u8; 2], gateway: [u8; 2], (qpn, psn_offset): (u32, u32)) -> Host {
    let [mac, gateway] = [mac, gateway].map(|[a, b]| MacAddress([2, 0, 0, 0, a, b]));
    let mut host = Host::new(&HostConfig { address: address.parse().expect("an address"), mac, gateway });
    host.add_queue_pair(queue_pair(qpn, psn_offset)).expect("a queue pair");
    host
}

const MESSAGE_OCTETS: u32 = 2048;

/// Runs a plan; the captures of n1 and n2.
fn run(plan: Plan) -> [Captures; 2] {
    let data = Arc::new((0..plan.size_octets).map(|at| at as u8).collect::<Vec<u8>>());
    let size = data.len() as u64;
    let mut network: Network<Recorder> = Network::new(1, 1 << 12);
    let (n1, n1_names) = Recorder::node("n1", N1, &plan.passes);
    let n2_text = plan.n2();
    let (mut n2, n2_names) = Recorder::node("n2", &n2_text, &plan.passes);
    n2.successor = plan.restart_n2_at.map(|at| {
        let text = n2_text.replacen("[[port]]", "restarted = true\n[[port]]", 1);
        (at, Box::new(node(&text).0) as Box<dyn Element>)
    });
    let (n3, _) = Recorder::node("n3", &edge(3, &[4], plan.t_hold), &plan.passes);
    let [n1, n2, n3] = [n1, n2, n3].map(|recorder| network.add(recorder));

    let mut source = host("2001:db8:aa::1", [0xaa, 1], [1, 1], (0x100, 0));
    let region = source.add_region(Replica::of_source(Arc::clone(&data)), 0, 0);
    let qpn = Qpn::new(0x100).expect("24 bits");
    source.add_send_stream(SendStream::new(qpn, region, size, MESSAGE_OCTETS, MessageOperation::Send));
    source.start();
    let model = LinkModel::perfect(10_000_000_000, 1000);
    let connect = |network: &mut Network<Recorder>, name: &str, upper: (ElementId, u16), lower: (ElementId, PortId)| {
        network.connect(name, (upper.0, PortId(upper.1)), lower, model);
    };
    let receivers = [(n2, 1_u8, 2_u8), (n2, 2, 3), (n2, 3, 4), (n3, 4, 2)];
    for ((edge, receiver, port), receives) in receivers.into_iter().zip(plan.receives) {
        let number = if edge == n2 { 2 } else { 3 };
        let (address, qpn) = (format!("2001:db8:bb::{receiver}"), 0x1000 + u32::from(receiver));
        let mut host =
            host(&address, [0xbb, receiver], [number, port], (qpn, if receiver == 3 { plan.psn_offset } else { 0 }));
        let region = host.add_region(Replica::empty(Arc::clone(&data)), 0, receiver);
        let wanted = size.min(receives as u64 * u64::from(MESSAGE_OCTETS));
        if wanted > 0 {
            host.add_receive_stream(ReceiveStream::new(
                Qpn::new(qpn).expect("24 bits"),
                region,
                wanted,
                MESSAGE_OCTETS,
            ));
        }
        host.start();
        let id = network.add(Recorder::new(format!("r{receiver}"), host, &plan.passes));
        connect(&mut network, &format!("edge-R{receiver}"), (edge, u16::from(port) - 1), (id, HOST_PORT));
    }
    connect(&mut network, "n1-n2", (n1, 1), (n2, PortId(0)));
    connect(&mut network, "n1-n3", (n1, 2), (n3, PortId(0)));
    let source = network.add(Recorder::new("s1", source, &plan.passes));
    connect(&mut network, "S1-n1", (source, 0), (n1, PortId(0)));
    network.with(source, |_, _, _| ());
    while network.step(plan.until).is_some() {}
    let captures = |id: ElementId, names: &[String]| {
        let mut captures = Captures::new();
        for (time, port, octets) in &network.element(id).seen {
            captures.entry(names[port.index()].clone()).or_default().push((*time, octets.clone()));
        }
        captures
    };
    [captures(n1, &n1_names), captures(n2, &n2_names)]
}

/// A directory with the captures of a node and its configuration.
pub(crate) struct Bench {
    directory: TempDir,
    files: Vec<String>,
}

/// Selection of captures.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    N1,
    N2,
}

impl Bench {
    /// A directory with nothing but a configuration.
    pub(crate) fn with(configuration: &str) -> Self {
        let directory = TempDir::new().expect("a directory");
        std::fs::write(directory.path().join("node.toml"), configuration).expect("written");
        Bench { directory, files: Vec::new() }
    }

    /// Runs a plan and writes what the ports of a node have seen, from a time on, as `edit` leaves it.
    pub(crate) fn of(plan: Plan, of: Of, from_ns: u64, edit: impl Fn(&str, u64, &mut Vec<u8>) -> bool) -> Self {
        let n2_text = plan.n2();
        let [n1, n2] = run(plan);
        let (text, captures) = match of {
            Of::N1 => (N1.to_owned(), n1),
            Of::N2 => (n2_text, n2),
        };
        let mut bench = Bench::with(&text);
        for (port, packets) in captures {
            let packets: Vec<_> = packets
                .into_iter()
                .filter(|(time, _)| *time >= from_ns)
                .filter_map(|(time, mut octets)| edit(&port, time, &mut octets).then_some((time, octets)))
                .collect();
            bench.write(&format!("{port}.pcapng"), &packets);
        }
        bench
    }

    /// Writes a capture, which [`Self::run`] will use.
    pub(crate) fn write(&mut self, name: &str, packets: &[(u64, Vec<u8>)]) {
        let mut writer = Writer::new(Vec::new()).expect("memory");
        let interface = writer.add_interface("eth0").expect("memory");
        for (time, octets) in packets {
            writer.write_packet(interface, *time, &[octets]).expect("memory");
        }
        std::fs::write(self.path(name), writer.finish().expect("memory")).expect("written");
        self.files.push(name.to_owned());
    }

    /// A file in the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs with exactly these arguments behind the configuration.
    pub(crate) fn try_run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_srdma"));
        command.current_dir(self.directory.path()).args(["explain", "--config", "node.toml"]);
        command.args(arguments).output().expect("the binary runs")
    }

    /// Runs over all captures, which must succeed; returns the output.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let files: Vec<&str> = self.files.iter().map(String::as_str).collect();
        let output = self.try_run(&[&files, arguments].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Runs, which must fail with exit code 2; returns the error.
    pub(crate) fn refused(&self, arguments: &[&str]) -> String {
        let output = self.try_run(arguments);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
        String::from_utf8(output.stderr).expect("UTF-8")
    }
}

//! Two hosts around a node, each in a namespace.
//!
//! ```text
//!   left host ─ eth0 ── uplink ─ node ─ hosts ── eth0 ─ right host
//! ```

use crate::daemon::CONFIGURATION;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use srdma_capture::Reader;
use srdma_frame::{Frame, Pool};
use srdma_io::namespace::{NamespaceGuard, VethEnd, veth};
use srdma_io::{Choice, Driver, Interest};
use srdma_wire::MacAddress;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Deadline of every wait, far beyond what a busy machine needs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The node's ports, and what is behind them.
pub(crate) const UP: usize = 0;
pub(crate) const HOSTS: usize = 1;

const PORTS: [(&str, u8); 2] = [("uplink", 2), ("hosts", 3)];

/// The namespaces, and the node's configuration.
pub(crate) struct Bench {
    directory: TempDir,
    pub(crate) node: NamespaceGuard,
    hosts: [NamespaceGuard; 2],
}

impl Bench {
    /// With links, and this configuration behind the ports'; `driver` is every port's.
    pub(crate) fn new(driver: &str, configuration: &str) -> Self {
        let namespace = || NamespaceGuard::unique("srdma-t").expect("a namespace");
        let bench = Bench {
            directory: TempDir::new().expect("a directory"),
            node: namespace(),
            hosts: [namespace(), namespace()],
        };
        bench.link(UP);
        bench.link(HOSTS);
        bench.configure(driver, configuration);
        bench
    }

    /// Makes the link of a port.
    pub(crate) fn link(&self, port: usize) {
        let (interface, last) = PORTS[port];
        let mac = Some(MacAddress([2, 0, 0, 0, 0, last]));
        let own = VethEnd { namespace: &self.node, interface, mac, addresses: &[] };
        let host = VethEnd { namespace: &self.hosts[port], interface: "eth0", mac: None, addresses: &[] };
        veth(4200, [own, host]).expect("a link");
    }

    /// Writes the node's file.
    pub(crate) fn configure(&self, driver: &str, configuration: &str) {
        let status = self.status();
        let mut text =
            format!("[node]\nloopback = '2001:db8:a::1'\nopen = true\n[daemon]\nstatus = '{}'\n", status.display());
        for (name, _) in PORTS {
            text += &format!("[[port]]\nname = '{name}'\ndriver = '{driver}'\n");
        }
        std::fs::write(self.file(), text + configuration).expect("written");
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.directory.path().join("node.toml")
    }

    /// The node's status socket.
    pub(crate) fn status(&self) -> PathBuf {
        self.directory.path().join("status.sock")
    }

    /// Starts the node; returns before it is ready.
    pub(crate) fn start(&self) -> Running {
        let program = std::env::current_exe().expect("this test");
        let mut command = self.node.command(program.to_str().expect("UTF-8"));
        command.args(["daemon::node_process", "--exact", "--nocapture", "--test-threads=1"]);
        command.env(CONFIGURATION, self.file()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("started");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let (sender, lines) = channel();
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Running { child, lines, seen: Vec::new() }
    }

    /// The host behind a port, which owns its interface.
    pub(crate) fn host(&self, port: usize) -> Host {
        let open = || {
            let everything = Interest { everything: true, ..Interest::default() };
            srdma_io::open("eth0", Choice::Packet, &everything, None).expect("opened").driver
        };
        let driver = self.hosts[port].enter(open).expect("entered");
        Host { driver, pool: Pool::new(1024), mac: [2, 0, 0, 0, 0, PORTS[port].1] }
    }

    /// Output of a command in the namespace of the host behind a port.
    pub(crate) fn in_host(&self, port: usize, words: &[&str]) -> String {
        self.hosts[port].run(words).expect("it succeeds")
    }

    /// Output of a command in the node's namespace.
    pub(crate) fn in_node(&self, words: &[&str]) -> String {
        self.node.run(words).expect("it succeeds")
    }
}

/// A node that runs.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Running {
    /// Waits for a line of the node that contains this; the line.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, part: &str) -> String {
        let end = Instant::now() + PATIENCE;
        while let Ok(line) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            self.seen.push(line.clone());
            if line.contains(part) {
                return line;
            }
        }
        panic!("expected the node to log {part:?}, found {:#?}", self.seen);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("it runs");
    }

    /// Processor time of its threads.
    pub(crate) fn processor_time(&self) -> Duration {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("it runs");
        let of_thread = |thread: std::fs::DirEntry| {
            let text = std::fs::read_to_string(thread.path().join("schedstat")).expect("it runs");
            text.split(' ').next().and_then(|ns| ns.parse().ok()).map(Duration::from_nanos).expect("nanoseconds")
        };
        threads.map(|thread| of_thread(thread.expect("a thread"))).sum()
    }

    /// Waits for the end; the exit code.
    pub(crate) fn ends(mut self) -> Option<i32> {
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A host that sends and receives frames as they are.
pub(crate) struct Host {
    driver: Box<dyn Driver>,
    pool: Pool,
    mac: [u8; 6],
}

impl Host {
    /// Sends a packet to the node.
    pub(crate) fn send(&mut self, packet: &[u8]) {
        self.send_frame(&[&self.mac[..], &[2, 0, 0, 0, 0, 0x99, 0x86, 0xDD], packet].concat());
    }

    /// Sends a frame as it is.
    pub(crate) fn send_frame(&mut self, octets: &[u8]) {
        let frame = Frame::from_octets(octets, &mut self.pool).expect("room");
        self.driver.push(frame, &mut self.pool);
        while !self.driver.is_flushed() {
            self.driver.flush(&mut self.pool).expect("sent");
        }
    }

    /// Waits for this number of IPv6 packets that `wanted` accepts.
    #[track_caller]
    pub(crate) fn receive(&mut self, count: usize, wanted: impl Fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
        let end = Instant::now() + PATIENCE;
        let mut packets = Vec::new();
        while packets.len() < count {
            assert!(Instant::now() < end, "{} of {count} packets came", packets.len());
            packets.extend(self.take().into_iter().filter(|packet| wanted(packet)));
        }
        packets
    }

    /// The IPv6 packets that have come.
    pub(crate) fn take(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        self.driver.receive(&mut self.pool, &mut frames, 256).expect("received");
        if frames.is_empty() {
            std::thread::sleep(Duration::from_micros(200));
        }
        let mut octets = Vec::new();
        for frame in frames {
            octets.push(frame.to_vec(&self.pool));
            frame.release(&mut self.pool);
        }
        let is_ipv6 = |octets: &Vec<u8>| octets[12..14] == [0x86, 0xDD];
        octets.iter().filter(|octets| is_ipv6(octets)).map(|octets| octets[14..].to_vec()).collect()
    }
}

/// The IPv6 packets of a golden capture.
pub(crate) fn golden(name: &str) -> Vec<Vec<u8>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../testdata/golden/{name}.pcap"));
    let packets = Reader::open(&file).expect("a capture");
    packets.map(|packet| packet.expect("a packet").octets[14..].to_vec()).collect()
}

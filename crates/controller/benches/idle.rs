//! CPU time of a controller whose nodes have nothing to do: `cargo bench -p srdma-controller --bench idle`.
//!
//! 1,000 nodes register over HTTP, each on a connection of its own. Each sends a report as soon as the one before is
//! answered, with the status of four ports, and waits for orders as long as the product's nodes do. The controller is a
//! process of its own, whose CPU time the kernel counts; it is read for five periods of ten seconds.

use srdma_api::{NodeStatus, POLL_INTERVAL_MS, PROTOCOL, PortStatus, Registration, Session, Sync};
use srdma_controller::{Config, OnDisk, StateStore, run};
use srdma_figures::report;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv6Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const NODES: u16 = 1000;
const PERIODS: usize = 5;
const PERIOD: Duration = Duration::from_secs(10);
/// The folder of the controller's process.
const FOLDER: &str = "SRDMA_BENCH_IDLE";
/// Of the kernel's counts (proc(5)).
const TICKS_PER_S: f64 = 100.0;
/// A thread of a node does little.
const STACK_OCTETS: usize = 128 << 10;

fn main() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return control(Path::new(&folder));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = std::env::current_exe().expect("this program");
    let child = Command::new(program).env(FOLDER, folder.path()).spawn().expect("a controller");
    let controller = Controller(child);
    let address = loop {
        match std::fs::read_to_string(folder.path().join("ready")) {
            Ok(text) if text.ends_with('\n') => break text.trim().parse().expect("an address"),
            _ => thread::sleep(Duration::from_millis(20)),
        }
    };
    report("CPU of the controller without a node", "% of a core", shares(&controller));
    let reports = Arc::new(AtomicU64::new(0));
    for number in 0..NODES {
        let reports = Arc::clone(&reports);
        let node = thread::Builder::new().stack_size(STACK_OCTETS);
        node.spawn(move || node_of(address, number, &reports)).expect("a thread");
    }
    while reports.load(Ordering::Relaxed) < 3 * u64::from(NODES) {
        thread::sleep(Duration::from_millis(100));
    }
    let (before, began) = (reports.load(Ordering::Relaxed), Instant::now());
    report(format!("the same with {NODES} nodes"), "% of a core", shares(&controller));
    let reports = (reports.load(Ordering::Relaxed) - before) as f64;
    report("reports of these nodes", "a second", [reports / began.elapsed().as_secs_f64()]);
}

/// The controller's process, which ends with this one.
struct Controller(Child);

impl Controller {
    /// User and system time, seconds.
    fn cpu_s(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).expect("its state");
        let (_, fields) = stat.rsplit_once(')').expect("a name");
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let ticks = |field: usize| fields[field].parse::<f64>().expect("a number");
        (ticks(11) + ticks(12)) / TICKS_PER_S
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Percent of a core that the controller takes in each period.
fn shares(controller: &Controller) -> Vec<f64> {
    let share = |_| {
        let (cpu_s, began) = (controller.cpu_s(), Instant::now());
        thread::sleep(PERIOD);
        100.0 * (controller.cpu_s() - cpu_s) / began.elapsed().as_secs_f64()
    };
    (0..PERIODS).map(share).collect()
}

fn control(folder: &Path) {
    let listen = vec!["[::1]:0".parse().expect("an address")];
    let config = Config { listen, ..Config::default() };
    let store = Arc::new(OnDisk::open(&folder.join("store")).expect("a store"));
    let ready = folder.join("ready");
    let result = run(config, StateStore::Own(store), None, || std::process::exit(1), &mut |addresses| {
        std::fs::write(&ready, format!("{}\n", addresses[0])).expect("a file");
    });
    result.expect("it runs");
}

/// Registers and reports until the controller ends.
fn node_of(address: SocketAddr, number: u16, reports: &AtomicU64) {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_nodelay(true).expect("no delay");
    let mut answers = BufReader::new(stream.try_clone().expect("a connection"));
    let name = format!("N{number}");
    let registration = Registration {
        repairs: false,
        protocol: PROTOCOL,
        name: name.clone(),
        loopback: Ipv6Addr::new(0x2001, 0xdb8, 0xff, number, 0, 0, 0, 1),
        end_mt: None,
        replication: None,
        links: Vec::new(),
        hosts: Vec::new(),
        groups: Vec::new(),
    };
    let body = serde_json::to_string(&registration).expect("a registration");
    let answer = post(&mut stream, &mut answers, "/v1/nodes", &body).expect("it registers");
    let session: Session = serde_json::from_slice(&answer).expect("a session");
    let mut octets = 0;
    loop {
        let port = |port| PortStatus {
            name: format!("eth{port}"),
            to: None,
            is_up: true,
            received_octets: octets,
            sent_octets: octets,
        };
        let status = NodeStatus { ports: (0..4).map(port).collect(), ..NodeStatus::default() };
        let wait_ms = POLL_INTERVAL_MS;
        let sync = Sync { session: session.session, status: Some(status), wait_ms, ..Sync::default() };
        let body = serde_json::to_string(&sync).expect("a report");
        if post(&mut stream, &mut answers, &format!("/v1/nodes/{name}/sync"), &body).is_none() {
            return;
        }
        octets += 1000;
        reports.fetch_add(1, Ordering::Relaxed);
    }
}

/// The body of the answer; `None`: the connection has ended.
fn post(stream: &mut TcpStream, answers: &mut BufReader<TcpStream>, path: &str, body: &str) -> Option<Vec<u8>> {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes()).ok()?;
    let mut line = String::new();
    answers.read_line(&mut line).ok().filter(|octets| *octets > 0)?;
    assert!(line.starts_with("HTTP/1.1 20"), "{line}");
    let mut length = 0;
    while line != "\r\n" {
        line.clear();
        answers.read_line(&mut line).ok()?;
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; length];
    answers.read_exact(&mut body).ok()?;
    Some(body)
}

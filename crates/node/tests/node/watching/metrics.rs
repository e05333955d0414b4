//! Metrics: their text, their names, and the server.

use super::example;
use srdma_node::TrafficReport;
use srdma_node::daemon::{
    BackupSnapshot, FastPathSnapshot, Latest, MetricsServer, Snapshot, WorkerSnapshot, metrics_text,
};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Ipv6Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

const DOCUMENT: &str = include_str!("../../../../../docs/operating.md");

/// Names and values of labels.
type Labels<'l> = Vec<(&'l str, &'l str)>;

/// A line of values: name, labels, value. The text format's grammar, as far as these metrics use it.
fn parse_value(line: &str) -> Option<(&str, Labels<'_>, f64)> {
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c == '6');
    let (name, rest) = line.split_at(line.find(['{', ' '])?);
    let (labels, value) = match rest.strip_prefix('{') {
        Some(rest) => rest.rsplit_once('}')?,
        None => ("", rest),
    };
    let label = |label| {
        let (key, value): (&str, &str) = str::split_once(label, '=')?;
        let value = value.strip_prefix('"')?.strip_suffix('"')?;
        (is_name(key) && !value.contains(['"', '\\', '\n'])).then_some((key, value))
    };
    let labels = labels.split(',').filter(|label| !label.is_empty()).map(label).collect::<Option<Vec<_>>>()?;
    let value = value.strip_prefix(' ')?.parse().ok()?;
    is_name(name).then_some((name, labels, value))
}

/// Name, type and unit of each family; panics at the first line that is wrong.
fn families(text: &str) -> Vec<(String, String, String)> {
    let mut families: Vec<(String, String, String)> = Vec::new();
    let mut seen = BTreeSet::new();
    let body = text.strip_suffix("# EOF\n").expect("the text has its end");
    for line in body.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words[..] {
            ["#", "HELP", name, help] => {
                assert!(!help.is_empty(), "{line}");
                families.push((name.to_owned(), String::new(), String::new()));
            }
            ["#", "TYPE", name, kind] => {
                let family = families.iter_mut().find(|family| family.0 == name).expect("HELP comes first");
                assert!(["counter", "gauge", "info"].contains(&kind), "{line}");
                family.1 = kind.to_owned();
            }
            ["#", "UNIT", name, unit] => {
                let family = families.iter_mut().find(|family| family.0 == name).expect("HELP comes first");
                assert!(name.ends_with(&format!("_{unit}")), "{line}");
                family.2 = unit.to_owned();
            }
            _ => {
                let (name, labels, _) = parse_value(line).unwrap_or_else(|| panic!("{line}"));
                let (family, kind, _) = families.last().expect("a family comes first");
                let suffix = match kind.as_str() {
                    "counter" => "_total",
                    "info" => "_info",
                    _ => "",
                };
                assert_eq!(name, format!("{family}{suffix}"));
                assert!(seen.insert(format!("{name}{labels:?}")), "twice: {line}");
            }
        }
    }
    families
}

#[test]
fn every_line_is_right_and_every_family_has_help_and_type() {
    let text = metrics_text(&Arc::new(example()));
    let families = families(&text);
    let names: BTreeSet<&str> = families.iter().map(|family| family.0.as_str()).collect();
    assert_eq!(names.len(), families.len(), "a family comes twice");
    assert!(families.iter().all(|(_, kind, _)| !kind.is_empty()));
}

#[test]
fn names_are_those_of_the_document() {
    let text = metrics_text(&Arc::new(example()));
    let exposed: BTreeSet<String> = families(&text)
        .into_iter()
        .map(|(name, kind, _)| match kind.as_str() {
            "counter" => name + "_total",
            "info" => name + "_info",
            _ => name,
        })
        .collect();
    let rows = DOCUMENT.lines().filter_map(|line| line.strip_prefix("| `srdma_"));
    let documented: BTreeSet<String> =
        rows.filter_map(|row| Some(format!("srdma_{}", row.split_once('`')?.0))).collect();
    assert_eq!(exposed, documented);
}

#[test]
fn names_and_labels_are_stable() {
    let mut snapshot = example();
    snapshot.ports[0].classes = vec![snapshot.ports[1].classes[3].clone()];
    let received = TrafficReport { frames: 3, octets: 300 };
    let fast_path = FastPathSnapshot { is_on: true, reason: None, received, sent: TrafficReport::default() };
    snapshot.ports[0].fast_path = Some(fast_path);
    let (port, peer) = ("n4".to_owned(), "fe80::4".parse().unwrap());
    snapshot.backups = vec![BackupSnapshot { port, peer, prefixes: 5, sent: received }];
    snapshot.workers = vec![WorkerSnapshot { received: 7, handed_over: 2, ..WorkerSnapshot::default() }];
    snapshot.ports.truncate(1);
    snapshot.sids.truncate(1);
    snapshot.groups.truncate(1);
    snapshot.groups[0].branches.truncate(1);
    snapshot.groups[0].branches[0].lag = Some(3);
    snapshot.groups[0].highest_psn = Some(0xff_fff2);
    let text = metrics_text(&Arc::new(snapshot));
    let with_one_reason: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("# HELP") && (!line.contains("reason=") || line.contains("\"no_route\"")))
        .collect();
    insta::assert_snapshot!(with_one_reason.join("\n"));
}

#[test]
fn an_unknown_expected_psn_is_absent() {
    let mut snapshot = example();
    snapshot.groups[0].branches[0].expected_psn = None;
    let text = metrics_text(&Arc::new(snapshot));
    let of_branch = |metric: &str| format!("{metric}{{group=\"1\",branch=\"2001:db8:ff:4::1\"}}");
    assert!(!text.contains(&of_branch("srdma_branch_expected_psn")));
    assert!(text.contains(&of_branch("srdma_branch_stalls_total")));
}

fn serve(snapshot: Snapshot) -> (Runtime, SocketAddr, watch::Sender<Latest>) {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let server = runtime.block_on(MetricsServer::bind((Ipv6Addr::LOCALHOST, 0).into())).unwrap();
    let address = server.address().unwrap();
    let (sender, receiver) = watch::channel(Latest::new(snapshot));
    runtime.spawn(server.serve(receiver));
    (runtime, address, sender)
}

fn request(address: SocketAddr, octets: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    // The server may answer and close before it has read everything.
    let _ = stream.write_all(octets);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn the_server_has_metrics_and_nothing_else() {
    let (_runtime, address, _sender) = serve(example());
    let get = |path: &str| request(address, format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes());
    let answer = get("/metrics");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("application/openmetrics-text"), "{head}");
    assert_eq!(body, metrics_text(&Arc::new(example())));
    for path in ["/", "/metrics/", "/metricsx", "/../metrics"] {
        assert!(get(path).starts_with("HTTP/1.1 404 "), "{path}");
    }
    assert!(request(address, b"POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 405 "));
}

/// D100: a page whose name resolves to the loopback does not read metrics; a collector at another address may use any
/// name.
#[test]
fn a_server_at_the_loopback_accepts_its_names_only() {
    let (_runtime, address, _sender) = serve(example());
    let get = |host: &str| request(address, format!("GET /metrics HTTP/1.1\r\n{host}\r\n").as_bytes());
    for host in ["localhost", "LOCALHOST:9", "127.0.0.1:9", &address.to_string()] {
        assert!(get(&format!("Host: {host}\r\n")).starts_with("HTTP/1.1 200 "), "{host}");
    }
    for host in ["evil.example", "localhost.evil.example:9", "192.0.2.1", "[2001:db8::1]", ""] {
        assert!(get(&format!("Host: {host}\r\n")).starts_with("HTTP/1.1 421 "), "{host}");
    }
    assert!(get("").starts_with("HTTP/1.1 421 ") && get("Host: localhost\r\nHost: x\r\n").starts_with("HTTP/1.1 421 "));
}

#[test]
fn malformed_requests_do_not_disturb_the_server() {
    let (_runtime, address, _sender) = serve(example());
    assert!(request(address, b"\0\xff\xfe not HTTP\r\n\r\n").starts_with("HTTP/1.1 400 "));
    let long = format!("GET /metrics HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    assert!(!request(address, long.as_bytes()).starts_with("HTTP/1.1 200 "));
    let idle: Vec<TcpStream> = (0..8).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert!(request(address, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 200 "));
    drop(idle);
}

/// Connections without a request do not keep a collector waiting: the oldest one is closed.
#[test]
fn idle_connections_give_way() {
    let (_runtime, address, _sender) = serve(example());
    let idle: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert!(request(address, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").starts_with("HTTP/1.1 200 "));
    let is_open = |stream: &&TcpStream| {
        stream.set_nonblocking(true).unwrap();
        stream.peek(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    };
    let open = idle.iter().filter(is_open).count();
    assert!(open >= 15, "the request was answered after {} had timed out", 20 - open);
}

#[test]
fn an_address_in_use_is_named() {
    let (runtime, address, _sender) = serve(example());
    let error = runtime.block_on(MetricsServer::bind(address)).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot serve metrics at {address}: ")), "{error}");
}

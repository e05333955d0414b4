//! Prometheus scrapes a node's metrics, and evaluates the queries of the Grafana dashboard.

use crate::own_lab::{Lab, Running};
use serde_json::Value;
use srdma_capture::Reader;
use std::fs;
use std::net::Ipv6Addr;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const DASHBOARD: &str = include_str!("../../../../dist/grafana/srdma.json");

/// In the namespace of N6, which has nothing else at these addresses.
const NODE: &str = "[::1]:9164";
const PROMETHEUS: &str = "[::1]:9090";

const CONFIGURATION: &str = "\
global: { scrape_interval: 1s }
scrape_configs:
  - job_name: srdma
    static_configs:
      - targets: ['[::1]:9164']
";

const PATIENCE: Duration = Duration::from_secs(60);

/// A command in the namespace of N6.
fn inside(lab: &Lab, program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &lab.namespace("N6"), program]).args(arguments);
    command
}

/// The series that an expression gives now.
fn query(lab: &Lab, expression: &str) -> Result<Vec<Value>, String> {
    let server = format!("http://{PROMETHEUS}");
    let output = inside(lab, "promtool", &["query", "instant", "-o", "json", &server, expression]).output().unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(serde_json::from_slice::<Vec<Value>>(&output.stdout).unwrap_or_default())
}

/// The expressions of the dashboard, for every node.
fn expressions() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let expression = |target: &Value| target["expr"].as_str().unwrap().to_owned();
    targets.map(expression).map(|text| text.replace("$node", ".*").replace("$__rate_interval", "10s")).collect()
}

/// Packets from the source to the Proxy Address, on the link between source and node.
fn captured_data(lab: &Lab) -> usize {
    let addresses = ["2001:db8:aa::1", "2001:db8:cc::1"].map(|text| text.parse::<Ipv6Addr>().unwrap().octets());
    let capture = fs::read(lab.capture("S1-N6")).unwrap();
    let packets = Reader::new(capture.as_slice()).unwrap().map(|packet| packet.unwrap().octets);
    packets.filter(|frame| frame.len() > 54 && frame[22..54] == addresses.concat()).count()
}

#[test]
#[ignore = "needs root"]
fn prometheus_evaluates_the_queries_of_the_dashboard() {
    let metrics = format!("name = \"N6\"\nkind = \"srdma\"\nconfig = {{ daemon = {{ metrics = \"{NODE}\" }} }}");
    let lab = Lab::new("figure1", &[("name = \"N6\"\nkind = \"srdma\"", &metrics)]);
    let captures = lab.captures();
    let run = lab.command("run", &["--keep", "--size", "4MiB", "--pcap", captures.to_str().unwrap()]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));

    let directory = tempfile::tempdir().unwrap();
    let configuration = directory.path().join("prometheus.yml");
    fs::write(&configuration, CONFIGURATION).unwrap();
    let file = format!("--config.file={}", configuration.display());
    let storage = format!("--storage.tsdb.path={}", directory.path().join("data").display());
    let listen = format!("--web.listen-address={PROMETHEUS}");
    let mut prometheus = inside(&lab, "prometheus", &[&file, &storage, &listen]);
    let _running = Running(prometheus.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());

    // A rate needs two scrapes.
    let begin = Instant::now();
    let traffic = "sum(rate(srdma_port_received_bytes_total[10s]))";
    while query(&lab, traffic).map_or(true, |series| series.is_empty()) {
        assert!(begin.elapsed() < PATIENCE, "{:?}", query(&lab, traffic));
        sleep(Duration::from_millis(500));
    }
    let mut answered = 0;
    for expression in expressions() {
        let series = query(&lab, &expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
        answered += usize::from(!series.is_empty());
    }
    assert!(answered >= 8, "ports, links, the group and its branches, the configuration: {answered}");
    let data = query(&lab, "srdma_group_data_packets_total").unwrap();
    let packets: usize = data[0]["value"][1].as_str().unwrap().parse().unwrap();
    assert_eq!(packets, captured_data(&lab), "what the node counts is what was on the wire");
}

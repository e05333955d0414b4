//! A run of the binary, and what it wrote.

use serde_json::Value;
use srdma_capture::Reader;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A golden capture.
pub(crate) fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden").join(format!("{name}.pcap"))
}

/// A packet with its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) time_ns: u64,
    pub(crate) octets: Vec<u8>,
}

impl Packet {
    /// From the IPv6 header on.
    pub(crate) fn ipv6(&self) -> &[u8] {
        &self.octets[14..]
    }

    /// Destination MAC address, then source MAC address.
    pub(crate) fn ethernet(&self) -> &[u8] {
        &self.octets[..12]
    }
}

/// The packets of a capture.
pub(crate) fn packets(file: &Path) -> Vec<Packet> {
    let reader = Reader::open(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let packets = reader.map(|packet| packet.map(|packet| Packet { time_ns: packet.time_ns, octets: packet.octets }));
    packets.collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The IPv6 packets of several, for comparison.
pub(crate) fn ipv6(packets: &[Packet]) -> Vec<&[u8]> {
    packets.iter().map(Packet::ipv6).collect()
}

/// A directory with a configuration, in which the binary runs.
pub(crate) struct Bench {
    directory: TempDir,
}

impl Bench {
    /// With this configuration.
    pub(crate) fn new(configuration: &str) -> Self {
        let directory = TempDir::new().expect("a directory");
        std::fs::write(directory.path().join("node.toml"), configuration).expect("written");
        Bench { directory }
    }

    /// A file in the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs with these captures as `--in`, and further arguments.
    pub(crate) fn try_run(&self, inputs: &[(&str, PathBuf)], arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_srdma"));
        command.current_dir(self.directory.path()).args(["process", "--config", "node.toml", "--out", "out"]);
        for (port, file) in inputs {
            command.arg("--in").arg(format!("{port}={}", file.display()));
        }
        command.args(arguments).output().expect("the binary runs")
    }

    /// Runs, which must go well; the counters.
    pub(crate) fn run(&self, inputs: &[(&str, PathBuf)], arguments: &[&str]) -> Value {
        let output = self.try_run(inputs, &[&["--json"], arguments].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("one JSON object")
    }

    /// Runs, which must fail with exit code 2; returns the error.
    pub(crate) fn refused(&self, inputs: &[(&str, PathBuf)], arguments: &[&str]) -> String {
        let output = self.try_run(inputs, arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty());
        String::from_utf8(output.stderr).expect("UTF-8")
    }

    /// Packets sent by a port.
    pub(crate) fn sent(&self, port: &str) -> Vec<Packet> {
        packets(&self.path("out").join(format!("{port}.pcapng")))
    }
}

/// Counters of a port.
pub(crate) fn port<'r>(report: &'r Value, name: &str) -> &'r Value {
    let mut ports = report["ports"].as_array().expect("ports").iter();
    ports.find(|port| port["name"] == name).expect("the port is in the report")
}

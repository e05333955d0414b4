//! State and captures of a lab with congestion.

use crate::own_lab::Lab;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

impl Lab {
    /// Transfers, with a capture of each link, and gives the result; the lab stays up.
    pub(crate) fn transfer(&self) -> Value {
        let captures = self.captures();
        let output = self.command("run", &["--json", "--keep", "--pcap", captures.to_str().expect("UTF-8")]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"));
        assert_eq!(result["receivers"][0]["is_identical"], true, "{stderr}{result}");
        assert_eq!(
            result["receivers"][0]["sha256"],
            result["source"]["sha256"].as_str().expect("a digest"),
            "{result}"
        );
        result
    }

    /// The last line of an endpoint's output.
    pub(crate) fn said(&self, node: &str) -> Value {
        let path = self.state().join("out").join(node);
        let text = fs::read_to_string(&path).expect("it has said something");
        serde_json::from_str(text.lines().last().expect("a line")).expect("it is JSON")
    }

    /// Checks that every RoCEv2 packet of a link's capture has its ICRC.
    pub(crate) fn check_icrcs(&self, link: &str) {
        let path = self.capture(link);
        let mut srdma = Command::new(env!("CARGO_BIN_EXE_srdma"));
        let output = srdma.args(["decode", "--json"]).arg(&path).output().expect("the program runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let packets = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line is JSON"));
        let icrcs: Vec<Value> = packets.map(|packet| packet["icrc"].clone()).filter(|icrc| icrc != "absent").collect();
        assert!(!icrcs.is_empty() && icrcs.iter().all(|icrc| icrc == "ok"), "{link}: {icrcs:?}");
    }

    /// Fields of the packets of a link's capture that pass a display filter of tshark.
    pub(crate) fn tshark(&self, link: &str, filter: &str, fields: &[&str]) -> Vec<BTreeMap<String, String>> {
        let path = self.capture(link);
        let mut tshark = Command::new("tshark");
        tshark.arg("-r").arg(&path).args(["-Y", filter, "-T", "fields", "-E", "separator=/t", "-E", "occurrence=a"]);
        tshark.args(fields.iter().flat_map(|field| ["-e", field]));
        let output = tshark.output().expect("tshark runs");
        assert!(output.status.success(), "{link}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout);
        let named = |line: &str| {
            let values = line.split('\t').map(str::to_owned);
            fields.iter().map(|field| (*field).to_owned()).zip(values).collect()
        };
        text.lines().map(named).collect()
    }
}

/// A traffic class of a node's port, in its status.
pub(crate) fn class<'s>(status: &'s Value, port: &str, class: usize) -> &'s Value {
    let ports = status["ports"].as_array().expect("ports");
    let port = ports.iter().find(|other| other["name"] == port).expect("the port");
    &port["classes"][class]
}

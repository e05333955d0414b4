//! The lab `kernel-transit`: Linux routers replicate between the headend in the source's host and the edges.

use serde_json::Value;
use std::process::{Command, Output};

/// The lab, down at the end whatever happens.
struct Lab(String);

impl Lab {
    fn command(&self, command: &str, arguments: &[&str]) -> Output {
        let program = env!("CARGO_BIN_EXE_srdma");
        let lab = ["lab", command, "kernel-transit", "--instance", &self.0];
        Command::new(program).args(lab).args(arguments).output().expect("the program runs")
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.command("down", &[]);
    }
}

/// D3, D6, MT-3-2, MT-5.2-2: routers without knowledge of groups replicate the headend's packets; the edges accept them
/// by the group's address, whether packets carry the receivers or the edges have them provisioned.
#[test]
#[ignore = "needs root"]
fn linux_routers_replicate() {
    for (operation, lists) in [("write", "tlv"), ("send", "provisioned")] {
        let lab = Lab(format!("k{}", std::process::id()));
        let output = lab.command("run", &["--json", "--size", "1MiB", "--op", operation, "--list", lists]);
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{operation}, {lists}: {stderr}\n{stdout}");
        let result: Value = serde_json::from_str(&stdout).expect("the result is JSON");
        let receivers = result["receivers"].as_array().expect("receivers");
        assert_eq!(receivers.len(), 5);
        for receiver in receivers {
            assert_eq!(receiver["is_identical"], true, "{receiver}");
            assert_eq!(receiver["octets"], 1 << 20, "{receiver}");
        }
        // Whatever the source sent, and sent again, passes each link between routers once.
        let links = result["links"].as_array().expect("links");
        let down = |name: &str| {
            let link = links.iter().find(|link| link["name"] == name);
            link.and_then(|link| link["down_octets"].as_u64()).expect("the link has a counter")
        };
        for link in ["N6-N4", "N6-N5", "N4-N1", "N4-N2", "N5-N3"] {
            assert!(down(link).abs_diff(down("SW-N6")) < 10_000, "{link}: {result}");
        }
        let nodes: Vec<_> = result["nodes"].as_array().expect("nodes").iter().map(|node| &node["name"]).collect();
        assert_eq!(nodes, ["SW", "N1", "N2", "N3"]);
    }
}

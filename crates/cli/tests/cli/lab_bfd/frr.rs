//! Sessions with FRR's bfdd (RFC 5880, RFC 5881, RFC 5883), and adjacencies that end with them (RFC 5882).

use super::{MARGIN_NS, Network, detected_after_ns, frames, wait_until};
use serde_json::Value;

const F: (&str, Option<&str>) = ("fe80::1", Some("f"));
const FAR: (&str, Option<&str>) = ("2001:db8:ff:3::1", None);
const G: (&str, Option<&str>) = ("fe80::1", Some("g"));

const UP: u8 = 3;

impl Network {
    fn bfd(&self, (peer, port): (&str, Option<&str>)) -> Value {
        self.session("N1", peer, port)
    }

    fn is_up(&self, of: (&str, Option<&str>)) -> bool {
        self.bfd(of)["state"] == "up"
    }

    /// The answer of FRR at F.
    fn vtysh(&self, lines: &[&str]) -> String {
        let directory = self.lab.state().join("frr");
        let directory = directory.to_str().expect("UTF-8");
        let commands = lines.iter().flat_map(|line| ["-c", *line]);
        let words: Vec<&str> = ["vtysh", "--vty_socket", directory].into_iter().chain(commands).collect();
        self.inside("F", &words)
    }

    /// What FRR knows of the session over the link.
    fn frr(&self) -> Value {
        let peers: Value = serde_json::from_str(&self.vtysh(&["show bfd peers json"])).expect("JSON");
        let peers = peers.as_array().expect("peers");
        peers.iter().find(|peer| peer["peer"] == "fe80::2").cloned().unwrap_or(Value::Null)
    }

    /// Waits until the node has received some packets by a port, which are BFD's.
    fn receives(&self, port: &str) {
        let received = || {
            let ports = self.lab.status("N1")["ports"].clone();
            let found = ports.as_array().expect("ports").iter().find(|found| found["name"] == port).cloned();
            found.expect("the port")["received"]["frames"].as_u64().expect("a number")
        };
        let before = received();
        wait_until(|| received() > before + 10, || format!("{port} receives nothing"));
    }
}

/// Intervals are the greater of what one side sends and the other receives; they change while the session is up.
#[test]
#[ignore = "needs root"]
fn intervals_are_negotiated_and_sessions_disabled() {
    // Sessions that a busy machine does not take down.
    let text = include_str!("frr.toml").replace("detect-multiplier 3", "detect-multiplier 50");
    let text = text.replace("neighbour = \"fe80::1%f\"", "neighbour = \"fe80::1%f\"\ndetect_mult = 50");
    let network = Network::start("bfd-frr", &text);
    for of in [F, FAR, G] {
        wait_until(
            || network.is_up(of),
            || format!("{}{}", network.lab.status("N1")["bfd"], network.vtysh(&["show bfd peers"])),
        );
    }
    // FRR sends at 60 ms and receives at 40 ms, the node at 50 ms both. FRR raises its intervals when it is up.
    let has = |interval_ms: u64, detection_ms: u64| {
        let session = network.bfd(F);
        session["interval_ns"] == interval_ms * 1_000_000 && session["detection_time_ns"] == detection_ms * 1_000_000
    };
    wait_until(|| has(50, 3_000), || network.bfd(F).to_string());
    assert_eq!(network.bfd(FAR)["detection_time_ns"], 5_000_000_000_u64);
    let remote = |interval: u64| {
        let frr = network.frr();
        frr["status"] == "up" && frr["remote-transmit-interval"] == interval
    };
    wait_until(|| remote(50), || network.frr().to_string());

    network.configure("N1", "neighbour = \"fe80::1%f\"", "desired_min_tx = \"200ms\"\nneighbour = \"fe80::1%f\"");
    wait_until(|| has(200, 3_000) && remote(200), || format!("{}{}", network.bfd(F), network.frr()));
    network.configure("N1", "desired_min_tx = \"200ms\"\n", "desired_min_tx = \"30ms\"\nrequired_min_rx = \"90ms\"\n");
    wait_until(|| has(40, 4_500) && remote(30), || format!("{}{}", network.bfd(F), network.frr()));
    assert_eq!((&network.bfd(F)["state"], &network.bfd(F)["downs"]), (&Value::from("up"), &Value::from(0)));

    // Disabled by the node, then by FRR: neither is a failure.
    network.configure("N1", "neighbour = \"fe80::1%f\"", "enabled = false\nneighbour = \"fe80::1%f\"");
    wait_until(|| network.frr()["status"] == "down", || network.frr().to_string());
    assert_eq!(network.bfd(F)["state"], "admin_down");
    network.configure("N1", "enabled = false\n", "");
    wait_until(|| network.is_up(F), || network.bfd(F).to_string());
    let peer = "peer fe80::2 local-address fe80::1 interface n1";
    network.vtysh(&["configure terminal", "bfd", peer, "shutdown"]);
    wait_until(|| network.bfd(F)["state"] == "down", || network.bfd(F).to_string());
    network.vtysh(&["configure terminal", "bfd", peer, "no shutdown"]);
    wait_until(|| network.is_up(F), || network.bfd(F).to_string());
    assert_eq!(network.bfd(F)["downs"], 0);
    let log = network.log("N1");
    assert_eq!((log.matches("session disabled").count(), log.matches("session down").count()), (2, 0), "{log}");
    // Nothing was refused, and the kernel has sent no errors about closed ports.
    let drops = network.lab.status("N1")["ports"].clone();
    assert!(!drops.to_string().contains("\"bfd_checksum\":1"), "{drops}");
}

/// A killed bfdd is detected after the detection time, over the link and over several hops.
#[test]
#[ignore = "needs root"]
fn a_killed_peer_is_detected_within_the_detection_time() {
    let network = Network::start("bfd-frr", include_str!("frr.toml"));
    let detection = || network.bfd(F)["detection_time_ns"] == 180_000_000;
    wait_until(
        || network.is_up(F) && network.is_up(FAR) && detection(),
        || network.lab.status("N1")["bfd"].to_string(),
    );
    let downs = || [F, FAR].map(|of| network.bfd(of)["downs"].as_u64().expect("a number"));
    let before = downs();
    let capture = network.lab.starts_capture();
    network.receives("f");
    network.lab.kill_together("frr", &["bfdd"]);
    wait_until(|| !network.is_up(F) && !network.is_up(FAR), || network.lab.status("N1")["bfd"].to_string());
    capture.ends();
    let seen = frames(&network.lab.capture("F-N1"));
    assert!(seen.iter().filter(|seen| seen.is_bfd()).any(|seen| seen.state().0 == UP));
    for (port, node, detection_ns) in [(3784, "fe80::2", 180_000_000), (4784, "2001:db8:ff:1::1", 300_000_000)] {
        let after_ns = detected_after_ns(&seen, port, node);
        println!("port {port}: down {} us after the last packet", after_ns / 1_000);
        assert!((detection_ns..detection_ns + MARGIN_NS).contains(&after_ns), "{port}: {after_ns}");
    }
    assert!(downs().iter().zip(before).all(|(after, before)| *after > before));
}

/// The adjacency ends with the session, long before its holding time of 30 s; one without BFD is as ever.
#[test]
#[ignore = "needs root"]
fn an_adjacency_ends_with_its_session() {
    let network = Network::start("bfd-frr", include_str!("frr.toml"));
    let learnt = || network.inside("N1", &["ip", "-6", "route", "show", "proto", "201"]).contains("2001:db8:ff:4::1");
    wait_until(|| network.is_up(G) && learnt(), || network.lab.status("N1")["isis"].to_string());
    assert_eq!(network.bfd(G)["detection_time_ns"], 150_000_000);
    // Killed together, as a router is; its hellos have a holding time of 30 s.
    let capture = network.lab.starts_capture();
    network.receives("g");
    network.lab.kill_together("frr-g", &["isisd", "bfdd"]);
    let circuit = || network.lab.status("N1")["isis"]["circuits"][0]["state"].as_str().expect("a state").to_owned();
    let is_gone = || !learnt() && circuit() != "up";
    wait_until(is_gone, || network.lab.status("N1")["isis"].to_string());
    let counters = network.lab.status("N1")["isis"]["counters"].clone();
    assert!(counters["neighbours_lost"].as_u64().expect("a counter") > 0, "{counters}");
    capture.ends();
    let seen = frames(&network.lab.capture("G-N1"));
    let after_ns = detected_after_ns(&seen, 3784, "fe80::2");
    assert!((150_000_000..150_000_000 + MARGIN_NS).contains(&after_ns), "{after_ns}");
    let log = network.log("N1");
    assert!(log.contains("bfd: session down port=g") && log.contains("isis: neighbour down port=g"), "{log}");
}

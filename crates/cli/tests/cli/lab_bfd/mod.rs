//! BFD in labs: with FRR, and around dead transit nodes. Times are those of captures.

mod frr;
mod replicating;
mod transit;

use crate::own_lab::{Lab, wait_until};
use serde_json::Value;
use srdma_capture::Reader;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What a busy machine may add to the time of a detection, in nanoseconds.
const MARGIN_NS: u64 = 100_000_000;

/// The transit nodes of the topologies that have two.
const TRANSIT: [&str; 2] = ["T1", "T2"];
/// Their edges with their End.MT SIDs.
const EDGES: [(&str, &str); 2] = [("N2", "2001:db8:ff:2::e"), ("N3", "2001:db8:ff:3::e")];

/// A lab that is up.
struct Network {
    lab: Lab,
}

impl Network {
    fn start(name: &str, text: &str) -> Self {
        let lab = Lab::of(name, text);
        lab.up();
        Network { lab }
    }

    fn log(&self, node: &str) -> String {
        fs::read_to_string(self.lab.state().join("log").join(node).with_extension("log")).expect("a log")
    }

    /// The session of a node with a peer.
    fn session(&self, node: &str, peer: &str, port: Option<&str>) -> Value {
        let status = self.lab.status(node);
        let sessions = status["bfd"].as_array().expect("sessions").iter();
        let is_it = |session: &&Value| session["peer"] == peer && session["port"] == Value::from(port);
        sessions.clone().find(is_it).cloned().unwrap_or(Value::Null)
    }

    /// A command in the namespace of a node.
    fn command(&self, node: &str, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.lab.namespace(node), program]);
        command
    }

    /// The output of a command in the namespace of a node.
    fn inside(&self, node: &str, words: &[&str]) -> String {
        let output = self.command(node, words[0]).args(&words[1..]).output().expect("ip runs");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Whether all sessions of the topologies with two transit nodes are up.
    fn has_all_sessions(&self) -> bool {
        let is_up = |(node, count): &(&str, usize)| {
            let sessions = self.lab.status(node)["bfd"].clone();
            let sessions = sessions.as_array().expect("sessions");
            sessions.len() == *count && sessions.iter().all(|session| session["state"] == "up")
        };
        [("N1", 2), ("N2", 2), ("N3", 2), ("T1", 3), ("T2", 3)].iter().all(is_up)
    }

    /// The processes of the transit nodes. To be called before a transfer, which a busy machine must not outlast.
    fn transit_pids(&self) -> [u64; 2] {
        let status = self.lab.lab_status();
        let nodes = status["nodes"].as_array().expect("nodes");
        TRANSIT.map(|node| {
            let found = nodes.iter().find(|found| found["name"] == node).expect("the node");
            found["processes"][0]["pid"].as_u64().expect("a number")
        })
    }

    /// From the last packet through a dead transit node to an edge to the first one by the other, in nanoseconds;
    /// `None`: no data went by the dead one.
    fn outage_ns(&self, dead: &str, other: &str, (edge, sid): (&str, &str)) -> Option<u64> {
        let last = self.data(&format!("{dead}-{edge}"), sid).into_iter().max()?;
        let around = self.data(&format!("{other}-{edge}"), sid).into_iter().filter(|time| *time > last);
        Some(around.min().expect("packets around the dead node") - last)
    }

    /// The data of a link to an edge, by time.
    fn data(&self, link: &str, sid: &str) -> Vec<u64> {
        let sid = sid.parse::<std::net::Ipv6Addr>().expect("a SID").octets();
        let is_data = |seen: &Seen| seen.octets[38..54] == sid;
        frames(&self.lab.capture(link)).iter().filter(|seen| is_data(seen)).map(|seen| seen.time_ns).collect()
    }

    /// Kills a transit node, whose kernel forwards nothing either, but still answers for its addresses.
    fn kill_transit(&self, node: &str, pids: [u64; 2]) {
        let position = TRANSIT.iter().position(|one| *one == node).expect("a transit node");
        let kill = format!("kill -KILL {}; sysctl -qw net.ipv6.conf.all.forwarding=0", pids[position]);
        self.inside(node, &["sh", "-c", &kill]);
    }

    /// Changes the configuration of a node, which notices by itself.
    fn configure(&self, node: &str, from: &str, to: &str) {
        let file = self.lab.state().join("node").join(node).with_extension("toml");
        let text = fs::read_to_string(&file).expect("a configuration");
        assert!(text.contains(from), "{text}");
        fs::write(&file, text.replacen(from, to, 1)).expect("written");
    }
}

/// A captured frame and its time.
struct Seen {
    time_ns: u64,
    octets: Vec<u8>,
}

impl Seen {
    fn source(&self) -> &[u8] {
        &self.octets[22..38]
    }

    fn is_bfd(&self) -> bool {
        self.octets.len() >= 86 && self.octets[20] == 17 && [3784, 4784].contains(&self.udp_port())
    }

    fn udp_port(&self) -> u16 {
        u16::from_be_bytes([self.octets[56], self.octets[57]])
    }

    /// State and diagnostic of a BFD packet, read here without our own parser (RFC 5880 section 4.1).
    fn state(&self) -> (u8, u8) {
        (self.octets[63] >> 6, self.octets[62] & 0x1F)
    }
}

/// The IPv6 frames of a capture.
fn frames(capture: &Path) -> Vec<Seen> {
    let packets = Reader::open(capture).expect("a capture").map(|packet| packet.expect("a packet"));
    let seen = packets.map(|packet| Seen { time_ns: packet.time_ns, octets: packet.octets });
    seen.filter(|seen| seen.octets.len() >= 62 && seen.octets[12..14] == [0x86, 0xDD]).collect()
}

/// From the last packet of a peer, which has died, to the node's first packet in state Down for its silence, in
/// nanoseconds.
fn detected_after_ns(seen: &[Seen], port: u16, node: &str) -> u64 {
    const DOWN: u8 = 1;
    const DETECTION_TIME_EXPIRED: u8 = 1;
    let own = node.parse::<std::net::Ipv6Addr>().expect("an address").octets();
    let of_session = || seen.iter().filter(|seen| seen.is_bfd() && seen.udp_port() == port);
    let last = of_session().filter(|seen| seen.source() != own).map(|seen| seen.time_ns).max();
    let last = last.expect("the peer was there");
    let is_down = |seen: &&Seen| seen.source() == own && seen.state() == (DOWN, DETECTION_TIME_EXPIRED);
    of_session().find(|seen| is_down(seen) && seen.time_ns > last).expect("the node goes down").time_ns - last
}

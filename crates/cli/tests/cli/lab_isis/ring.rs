//! Backups around a failed link (TI-LFA, D265, D266, D285): packets of a ping in the moment in which a link of a ring
//! fails, which BFD finds, or the carrier of its ports.

use super::tshark;
use crate::own_lab::{Lab, wait_until};
use serde_json::json;
use srdma_figures::report;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

const RING: &str = include_str!("ring.toml");

/// The ping: seconds from packet to packet, and how many there are.
const INTERVAL: &str = "0.004";
const PACKETS: &str = "1000";
const INTERVAL_MS: u64 = 4;

/// The greatest outage with backups when the carrier goes, in milliseconds: lost packets times their interval.
const LIMIT_OF_CARRIER_MS: u64 = 50;

/// Runs of each kind.
const RUNS: usize = 3;

/// More than any outage, in milliseconds: BFD takes 150 ms of it.
const LIMIT_MS: u64 = 3_000;

impl Lab {
    /// Takes the wire between N1 and N2 apart, or puts it together.
    fn set_wire(&self, is_whole: bool) {
        self.inside("W", if is_whole { "ip link set n2 master br0" } else { "ip link set n2 nomaster" });
    }

    /// Takes N2's port down, and at the same time the carrier of N1's, as their link does; or both up again. The kernel
    /// forgets addresses of what is down.
    fn set_port(&self, is_up: bool) {
        // N1's port is joined to N2's among the lab's wires.
        let ends = [(self.namespace("N2"), "n1"), (self.namespace("wires"), "l2a")];
        let set = |(namespace, interface): &(String, &str)| {
            let mut ip = Command::new("ip");
            ip.args(["-n", namespace, "link", "set", interface, if is_up { "up" } else { "down" }]);
            ip.spawn().expect("ip runs")
        };
        for mut child in ends.iter().map(set).collect::<Vec<_>>() {
            assert!(child.wait().expect("it ends").success());
        }
        if is_up {
            self.inside("N2", "ip addr flush dev n1 scope link");
            self.inside("N2", "ip addr add fe80::12/64 dev n1 nodad");
        }
    }

    fn pings(&self) -> Child {
        let mut ip = Command::new("ip");
        ip.args(["netns", "exec", &self.namespace("S"), "ping", "-6", "-D", "-i", INTERVAL, "-c", PACKETS]);
        ip.args(["-W", "1", "2001:db8:bb::1"]).stdout(Stdio::piped()).spawn().expect("ping runs")
    }

    /// Waits until the two reach each other by the wire, with BFD at both of its ends and all over the ring.
    fn ring_is_whole(&self) {
        // Without BFD there are no sessions.
        let is_up = |node: &&str| {
            let sessions = self.status(node)["bfd"].as_array().expect("sessions").len();
            self.sessions_up(node) == sessions
        };
        let has_sessions = || ["N1", "N2", "N3", "N4"].iter().all(is_up);
        wait_until(has_sessions, || format!("{}", self.status("N1")["bfd"]));
        let is_by = |node: &str, prefix: &str, gateway: &str| {
            self.inside(node, &format!("ip -6 route show proto 201 {prefix}")).contains(gateway)
        };
        let are_routed = || is_by("N1", "5f00:0:2::/48", "fe80::12") && is_by("N2", "5f00:0:1::/48", "fe80::11");
        wait_until(are_routed, || self.inside("N1", "ip -6 route"));
        let ping = || self.runs("S", "ping -6 -c 3 -i 0.2 -W 1 2001:db8:bb::1").status.success();
        wait_until(ping, || self.inside("N2", "ip -6 route"));
    }

    /// The longest time without a reply when the link fails, in milliseconds, and how many packets were lost.
    fn outage_ms(&self, set_link: impl Fn(&Self, bool)) -> (u64, usize) {
        self.ring_is_whole();
        // Backups come with the paths, which come once the databases are quiet.
        sleep(Duration::from_secs(2));
        let ping = self.pings();
        sleep(Duration::from_secs(2));
        set_link(self, false);
        let output = ping.wait_with_output().expect("it ends");
        set_link(self, true);
        let (silent_ms, replies) = silence(&String::from_utf8_lossy(&output.stdout));
        (silent_ms, PACKETS.parse::<usize>().expect("a number") - replies)
    }
}

/// The longest time without a reply in what `ping -D` has printed, in milliseconds, and the number of replies.
#[track_caller]
pub(super) fn silence(text: &str) -> (u64, usize) {
    let replies = text.lines().filter(|line| line.contains("icmp_seq="));
    let times: Vec<f64> = replies.filter_map(|line| line.strip_prefix('[')?.split(']').next()?.parse().ok()).collect();
    let gaps = times.windows(2).map(|pair| ((pair[1] - pair[0]) * 1000.0) as u64);
    (gaps.max().unwrap_or_else(|| panic!("{text}")), times.len())
}

impl Lab {
    /// The status has the backups around both neighbours, which are there again when the wire is whole.
    fn shows_backups(&self) {
        let backups = || self.status("N1")["backups"].as_array().expect("neighbours").clone();
        let has_all = || backups().iter().filter(|backup| backup["prefixes"].as_u64() > Some(0)).count() == 2;
        wait_until(has_all, || format!("{:?}", backups()));
    }
}

#[test]
#[ignore = "needs root"]
fn backups_take_over_when_a_link_fails() {
    let outages = |text: &str, captures: bool| {
        let lab = Lab::of("isis-ring", text);
        lab.up();
        let capture = captures.then(|| lab.starts_capture());
        let outages: Vec<u64> = (0..RUNS).map(|_| lab.outage_ms(Lab::set_wire).0).collect();
        if let Some(capture) = capture {
            capture.ends();
            lab.shows_backups();
            let by_n3 = "ipv6.dst == 5f00:0:3:1:: && ipv6.dst == 5f00:0:2:d6::";
            assert!(tshark(&lab.capture("N4-N1"), by_n3) > 10, "no packet has taken the SID of N3");
            let by_n4 = "ipv6.dst == 5f00:0:4:1:: && ipv6.dst == 5f00:0:1:d6::";
            assert!(tshark(&lab.capture("N2-N3"), by_n4) > 10, "no packet has taken the SID of N4");
        }
        outages
    };
    let with = outages(RING, true);
    let without = outages(&RING.replace("ti_lfa = true\n", ""), false);
    for (what, outages) in [("backup routes", &with), ("no backup routes", &without)] {
        let outages_ms = outages.iter().map(|outage_ms| *outage_ms as f64);
        report(format!("lost link with BFD, {what}: time without a reply"), "ms", outages_ms);
    }
    assert!(with.iter().chain(&without).all(|outage| *outage < LIMIT_MS), "{with:?} {without:?}");
}

/// The ring with a wire between N1 and N2 that is one of the kernel's, without a bridge.
fn without_bridge(text: &str) -> String {
    let (nodes, rest) = text.split_once("[[node]]\nname = \"W\"").expect("the bridge");
    let (_, links) = rest.split_once("[[link]]").expect("links");
    let nodes = nodes.replacen("\"w\"", "\"n2\"", 1).replace("\"w\"", "\"n1\"");
    let nodes = nodes.replacen("dev w ", "dev n2 ", 2).replace("dev w ", "dev n1 ");
    let links = links.replace("[[link]]\nends = [\"W\", \"N2\"]\nmtu = 1500\n\n", "");
    format!("{nodes}[[link]]{}", links.replace("\"W\"", "\"N2\""))
}

/// D285, without BFD: N1 loses its carrier, and N2's port is taken down. The link is a point-to-point circuit, and then a
/// LAN of the two (D286).
#[test]
#[ignore = "needs root"]
fn backups_take_over_when_the_carrier_goes() {
    let text_without_bfd = without_bridge(RING).replace(", bfd = true", "");
    let outages = |text: &str| -> Vec<(u64, usize)> {
        let lab = Lab::of("isis-carrier", text);
        lab.up();
        let outages = (0..RUNS).map(|_| lab.outage_ms(Lab::set_port)).collect();
        if text.contains("ti_lfa") {
            lab.ring_is_whole();
            let has_backups = || lab.show("N1", "backups")["backups"].as_array().expect("backups").len() == 4;
            wait_until(has_backups, || lab.show("N1", "backups").to_string());
            let backups = lab.show("N1", "backups")["backups"].clone();
            let of_n2 = backups.as_array().expect("backups").iter().find(|backup| backup["prefix"] == "5f00:0:2::/48");
            let expected = json!({
                "prefix": "5f00:0:2::/48", "level": 2, "neighbour": "N2", "protects": "link", "via": "N4", "port": "n4",
                "segments": ["5f00:0:3:1::"],
            });
            assert_eq!(of_n2, Some(&expected));
        }
        outages
    };
    let text_of_lan = ["n2", "n1"].iter().fold(text_without_bfd.clone(), |text, port| {
        text.replacen(
            &format!("port = \"{port}\" }}, {{"),
            &format!("port = \"{port}\", type = \"broadcast\" }}, {{"),
            1,
        )
    });
    let of_link = outages(&text_without_bfd);
    let of_lan = outages(&text_of_lan);
    let without = outages(&text_without_bfd.replace("ti_lfa = true\n", ""));
    let lost_ms = |(_, lost): &(u64, usize)| *lost as u64 * INTERVAL_MS;
    for (what, outages) in
        [("backup routes", &of_link), ("backup routes on a LAN", &of_lan), ("no backup routes", &without)]
    {
        let silent_ms = outages.iter().map(|(silent_ms, _)| *silent_ms as f64);
        report(format!("lost carrier without BFD, {what}: time without a reply"), "ms", silent_ms);
        let lost_ms = outages.iter().map(|outage| lost_ms(outage) as f64);
        report(format!("the same: lost packets by their interval, {what}"), "ms", lost_ms);
    }
    let is_short = |outage| lost_ms(outage) <= LIMIT_OF_CARRIER_MS;
    assert!(of_link.iter().chain(&of_lan).all(is_short), "{of_link:?} {of_lan:?}");
}

//! Backups around a failed link (TI-LFA, D265, D266): packets of a ping in the moment in which a link of a ring fails.

use super::tshark;
use crate::own_lab::{Lab, wait_until};
use serde_json::Value;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

const RING: &str = include_str!("ring.toml");

/// The ping: seconds from packet to packet, and how many there are.
const INTERVAL: &str = "0.004";
const PACKETS: &str = "1000";

/// Runs of each kind.
const RUNS: usize = 3;

/// More than any outage, in milliseconds: BFD takes 150 ms of it.
const LIMIT_MS: u64 = 3_000;

impl Lab {
    /// Takes the wire between N1 and N2 apart, or puts it together.
    fn set_wire(&self, is_whole: bool) {
        self.inside("W", if is_whole { "ip link set n2 master br0" } else { "ip link set n2 nomaster" });
    }

    fn pings(&self) -> Child {
        let mut ip = Command::new("ip");
        ip.args(["netns", "exec", &self.namespace("S"), "ping", "-6", "-D", "-i", INTERVAL, "-c", PACKETS]);
        ip.args(["-W", "1", "2001:db8:bb::1"]).stdout(Stdio::piped()).spawn().expect("ping runs")
    }

    /// Waits until the two reach each other by the wire, with BFD at both of its ends and all over the ring.
    fn ring_is_whole(&self) {
        let has_sessions = || ["N1", "N2", "N3", "N4"].iter().all(|node| self.sessions_up(node) == 2);
        wait_until(has_sessions, || format!("{}", self.status("N1")["bfd"]));
        let by_wire = |node: &str, prefix: &str| {
            self.inside(node, &format!("ip -6 route show proto 201 {prefix}")).contains("dev w")
        };
        let are_routed = || by_wire("N1", "5f00:0:2::/48") && by_wire("N2", "5f00:0:1::/48");
        wait_until(are_routed, || self.inside("N1", "ip -6 route"));
        let ping = || self.runs("S", "ping -6 -c 3 -i 0.2 -W 1 2001:db8:bb::1").status.success();
        wait_until(ping, || self.inside("N2", "ip -6 route"));
    }

    /// The longest time without a reply when the wire is taken apart, in milliseconds.
    fn outage_ms(&self) -> u64 {
        self.ring_is_whole();
        // Backups come with the paths, which come once the databases are quiet.
        sleep(Duration::from_secs(2));
        let ping = self.pings();
        sleep(Duration::from_secs(2));
        self.set_wire(false);
        let output = ping.wait_with_output().expect("it ends");
        self.set_wire(true);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let replies = text.lines().filter(|line| line.contains("icmp_seq="));
        let times: Vec<f64> =
            replies.filter_map(|line| line.strip_prefix('[')?.split(']').next()?.parse().ok()).collect();
        let gaps = times.windows(2).map(|pair| ((pair[1] - pair[0]) * 1000.0) as u64);
        gaps.max().unwrap_or_else(|| panic!("{text}"))
    }
}

impl Lab {
    /// The status has the backups around both neighbours, which are there again when the wire is whole.
    fn shows_backups(&self) {
        let prefixes = |session: &Value| session["backups"]["prefixes"].as_u64().unwrap_or(0);
        let sessions = || self.status("N1")["bfd"].as_array().expect("sessions").clone();
        let has_all = || sessions().iter().filter(|session| prefixes(session) > 0).count() == 2;
        wait_until(has_all, || format!("{:?}", sessions()));
    }
}

fn least_and_median(mut outages: Vec<u64>) -> (u64, u64) {
    outages.sort_unstable();
    (outages[0], outages[outages.len() / 2])
}

#[test]
#[ignore = "needs root"]
fn backups_take_over_when_a_link_fails() {
    let outages = |text: &str, captures: bool| {
        let lab = Lab::of("isis-ring", text);
        lab.up();
        let capture = captures.then(|| lab.starts_capture());
        let outages: Vec<u64> = (0..RUNS).map(|_| lab.outage_ms()).collect();
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
    println!(
        "outage with backups {with:?} ms, without {without:?} ms: least and median {:?}, {:?}",
        least_and_median(with.clone()),
        least_and_median(without.clone())
    );
    assert!(with.iter().chain(&without).all(|outage| *outage < LIMIT_MS), "{with:?} {without:?}");
}

//! Outage of routes of FRR: two leaves and two spines, each with FRR's zebra, isisd and bfdd, of which a spine dies.

use super::ring::silence;
use crate::own_lab::{Lab, wait_until};
use srdma_figures::report;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

const RUNS: usize = 3;
const SPINES: [&str; 2] = ["S1", "S2"];
const DAEMONS: [&str; 3] = ["isisd", "bfdd", "zebra"];
/// BFD detects in 150 ms, but FRR computes routes a second after the last time at the earliest.
const LIMIT_MS: u64 = 5_000;

/// A router with FRR, whose interfaces have the names of their neighbours, and intervals of BFD that are srdma's defaults.
fn router(name: &str, number: u8, neighbours: [&str; 2]) -> String {
    let interface = |neighbour: &str| {
        format!(
            "interface {neighbour}\n ipv6 router isis fabric\n isis network point-to-point\n \
             isis circuit-type level-2-only\n isis hello-interval 1\n isis hello-multiplier 30\n isis bfd\n \
             isis bfd profile fast\n"
        )
    };
    let [one, other] = neighbours.map(interface);
    let daemon = |daemon: &str| {
        let bfdctl = if daemon == "bfdd" { " --bfdctl {directory}/NAME/bfdd.sock" } else { "" };
        format!(
            "    '''/usr/lib/frr/{daemon} -d -P 0 -f {{directory}}/NAME/frr.conf -i {{directory}}/NAME/{daemon}.pid \
             -z {{directory}}/NAME/zserv --vty_socket {{directory}}/NAME{bfdctl} --log file:{{directory}}/NAME/{daemon}.log''',\n"
        )
    };
    let daemons: String = ["zebra", "bfdd", "isisd"].map(daemon).concat().replace("NAME", name);
    format!(
        "[[node]]\nname = \"{name}\"\nkind = \"router\"\naddresses = [\"2001:db8:ff:{number}::1\"]\ncommands = [\n    \
         \"install -d -o frr -g frr {{directory}}/{name}\",\n    '''sh -c \"cat > {{directory}}/{name}/frr.conf <<'END'\n\
         hostname {name}\nbfd\n profile fast\n  transmit-interval 50\n  receive-interval 50\n  detect-multiplier 3\n !\n!\n\
         interface lo\n ipv6 router isis fabric\n isis passive\n{one}{other}router isis fabric\n is-type level-2-only\n \
         lsp-gen-interval 1\n spf-interval 1\n net 49.0001.0000.0000.000{number}.00\nEND\"''',\n{daemons}]\n\n"
    )
}

fn topology() -> String {
    let routers = [
        router("L1", 1, ["s1", "s2"]),
        router("L2", 2, ["s1", "s2"]),
        router("S1", 3, ["l1", "l2"]),
        router("S2", 4, ["l1", "l2"]),
    ];
    let links = ["L1", "L2"].map(|leaf| SPINES.map(|spine| format!("[[link]]\nends = [\"{leaf}\", \"{spine}\"]\n\n")));
    format!(
        "description = \"FRR: two leaves and two spines\"\nshortest_path_routes = false\n\n{}{}",
        routers.concat(),
        links.concat().concat()
    )
}

impl Lab {
    /// Waits until both leaves have routes to each other by both spines.
    fn has_equal_paths(&self) {
        let route = |leaf, other| self.inside(leaf, &format!("ip -6 route show 2001:db8:ff:{other}::1"));
        let is_by_both = |leaf, other| {
            SPINES.iter().all(|spine| route(leaf, other).contains(&format!("dev {}", spine.to_lowercase())))
        };
        wait_until(|| is_by_both("L1", 2) && is_by_both("L2", 1), || self.inside("L1", "ip -6 route"));
    }

    /// The spine dies: no process of its control plane runs, and its kernel forwards nothing. Its links stay up.
    fn dies(&self, spine: &str) {
        self.kill_together(spine, &DAEMONS);
        self.inside(spine, "sysctl -qw net.ipv6.conf.all.forwarding=0");
    }
}

fn outage_ms() -> u64 {
    let lab = Lab::of("frr-outage", &topology());
    lab.up();
    lab.has_equal_paths();
    // FRR limits how soon it computes again.
    sleep(Duration::from_secs(3));
    let sent = || SPINES.map(|spine| lab.octets(&format!("L1-{spine}"), "down_octets"));
    let before = sent();
    let mut ping = Command::new("ip");
    ping.args(["netns", "exec", &lab.namespace("L1"), "ping", "-6", "-D", "-i", "0.004", "-c", "2000", "-W", "1"]);
    let ping =
        ping.args(["-I", "2001:db8:ff:1::1", "2001:db8:ff:2::1"]).stdout(Stdio::piped()).spawn().expect("it runs");
    sleep(Duration::from_secs(2));
    let after = sent();
    let busy = if after[0] - before[0] > after[1] - before[1] { "S1" } else { "S2" };
    lab.dies(busy);
    let output = ping.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (outage_ms, replies) = silence(&text);
    assert!(replies > 1_000, "{text}");
    outage_ms
}

/// What `scenarios/measured/frr.toml` has.
#[test]
#[ignore = "needs root"]
fn frr_goes_around_a_dead_spine() {
    let outages: Vec<u64> = (0..RUNS).map(|_| outage_ms()).collect();
    let figure = report("dead spine, routes of FRR", "ms", outages.iter().map(|outage_ms| *outage_ms as f64));
    // Nothing but BFD shows that it is dead.
    assert!(outages.iter().all(|outage_ms| (90..LIMIT_MS).contains(outage_ms)), "{figure}");
}

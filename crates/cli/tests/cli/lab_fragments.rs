//! Fragments of a Linux kernel to a SID of a running node (D245): pings that are longer than the MTU of their route.

use serde_json::Value;
use srdma_io::namespace::{NamespaceGuard, VethEnd, veth};
use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn status(socket: &Path) -> Option<Value> {
    let mut srdma = Command::new(env!("CARGO_BIN_EXE_srdma"));
    let output = srdma.args(["status", "--json"]).arg(socket).output().expect("the program runs");
    serde_json::from_slice(&output.stdout).ok().filter(|_| output.status.success())
}

#[test]
#[ignore = "needs root"]
fn fragments_of_a_linux_kernel_are_put_together() {
    let [host, node] = ["host", "node"].map(|name| {
        let namespace = NamespaceGuard::unique(&format!("srdma-fragments-{name}")).expect("a namespace");
        namespace.run(&["ip", "link", "set", "lo", "up"]).expect("lo is up");
        namespace
    });
    let end = |namespace, interface, addresses| VethEnd { namespace, interface, mac: None, addresses };
    let ends = [end(&host, "node", &["2001:db8:5::5/64"][..]), end(&node, "host", &["2001:db8:5::1/64"])];
    veth(1500, ends).expect("a link");
    let run = |namespace: &NamespaceGuard, line: &str| {
        namespace.run(&line.split(' ').collect::<Vec<_>>()).unwrap_or_else(|error| panic!("{line}: {error}"))
    };
    run(&host, "ip -6 route add fd00:1::/64 via 2001:db8:5::1 dev node mtu 1280");

    let directory = tempfile::tempdir().expect("a directory");
    let (file, socket) = (directory.path().join("node.toml"), directory.path().join("node.sock"));
    let text = format!(
        "[node]\nloopback = '2001:db8:ff:1::1'\nopen = true\n[daemon]\nstatus = '{}'\n[[port]]\nname = 'host'\n\
         [[sid]]\nsid = 'fd00:1::d6'\nbehavior = 'End.DT6'\n",
        socket.display()
    );
    fs::write(&file, text).expect("written");
    let mut srdma = node.command(env!("CARGO_BIN_EXE_srdma"));
    let _running = Node(srdma.args(["node", "--config"]).arg(&file).spawn().expect("the program runs"));
    let start = Instant::now();
    while status(&socket).is_none() {
        assert!(start.elapsed() < PATIENCE, "the node does not answer");
        std::thread::sleep(Duration::from_millis(50));
    }

    let ping = |octets: u32| {
        let mut ping = host.command("ping");
        ping.args(["-6", "-c", "10", "-i", "0.1", "-W", "2", "-s", &octets.to_string(), "fd00:1::d6"]);
        String::from_utf8_lossy(&ping.output().expect("ping runs").stdout).into_owned()
    };
    // Neighbours are resolved.
    ping(8);
    let fragments = || -> u64 {
        let text = run(&host, "cat /proc/net/snmp6");
        let line = text.lines().find(|line| line.starts_with("Ip6FragCreates")).expect("a counter");
        line.split_whitespace().last().and_then(|count| count.parse().ok()).expect("a number")
    };
    let before = fragments();
    let text = ping(1400);
    assert!(text.contains(" 10 received"), "{text}");
    assert!(fragments() >= before + 20, "the kernel has not fragmented");
    let status = status(&socket).expect("a status");
    assert!(!status.to_string().contains("fragment_"), "none was dropped: {status}");
}

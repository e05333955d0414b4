//! The lab `figure1-controller`: nodes that have their groups from a controller, hosts that join by themselves, and what
//! becomes of a transfer while controller and nodes are killed.

use crate::own_lab::{ControllerAccess, Lab, Running};
use crate::signals;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const NAME: &str = "figure1-controller";
const URL: &str = "https://[2001:db8:ff:c::1]:8470";
const NODES: [&str; 6] = ["N1", "N2", "N3", "N4", "N5", "N6"];
const PATIENCE: Duration = Duration::from_secs(60);
/// Size of the transfer: it must run long enough for events during it.
const OCTETS: usize = 80 << 20;
const RATE: &str = "rate_bits_per_s = 100_000_000";

/// The lab, whose controller is its own until it is killed.
struct Network {
    lab: Lab,
    directory: tempfile::TempDir,
    access: ControllerAccess,
    controller: Option<Running>,
}

impl Network {
    fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let slow = format!("ends = [\"S1\", \"N6\"]\n{RATE}");
        let lab = Lab::new(NAME, &[("ends = [\"S1\", \"N6\"]", &slow)]);
        let up = lab.command("up", &[]);
        let said = String::from_utf8_lossy(&up.stderr);
        assert!(up.status.success(), "{said}");
        let (status, access) = (lab.lab_status(), lab.controller());
        assert_eq!((access.url(), &status["controller"]["node"]), (URL, &Value::from("C")), "{status}");
        assert!(access.0.iter().all(|text| said.contains(text)), "{:?}: {said}", access.0);
        let network = Network { lab, directory, access, controller: None };
        for node in NODES {
            assert_eq!(
                network.status(node)["controller"]["is_reached"],
                true,
                "{node} has not registered with the controller"
            );
        }
        network
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Kills the controller by SIGKILL, and starts it again with the configuration and the store that the lab has made.
    fn restarts_the_controller(&mut self) {
        let controller = |status: &Value| {
            let mut nodes = status["nodes"].as_array().expect("nodes").iter();
            nodes.find(|node| node["name"] == "C").expect("C")["processes"][0].clone()
        };
        let old = controller(&self.lab.lab_status());
        assert_eq!((&old["name"], &old["is_running"]), (&Value::from("C.controller"), &Value::Bool(true)), "{old}");
        let pid = old["pid"].as_u64().expect("a process ID");
        signals::send(Signal::SIGKILL, pid.try_into().expect("of 32 bits"));
        self.waits("the controller is gone", |network| controller(&network.lab.lab_status())["is_running"] == false);
        let mut command = self.inside("C", "srdma");
        let directory = self.lab.state().join("controller");
        command.args(["controller", "run", "--config"]).arg(directory.join("controller.toml"));
        command.arg("--store").arg(directory.join("store")).stderr(Stdio::inherit());
        self.controller = Some(Running(command.spawn().expect("it starts")));
        self.waits("the controller answers", |network| network.group(&["list"]).status.success());
    }

    /// A command in the namespace of a node; `srdma` is the program under test.
    fn inside(&self, node: &str, program: &str) -> Command {
        let program = if program == "srdma" { env!("CARGO_BIN_EXE_srdma") } else { program };
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.lab.namespace(node), program]);
        self.access.set(&mut command);
        command
    }

    fn group(&self, arguments: &[&str]) -> Output {
        self.inside("C", "srdma").arg("group").args(arguments).output().expect("it runs")
    }

    /// The JSON output of `srdma group`.
    #[track_caller]
    fn asks(&self, arguments: &[&str]) -> Value {
        let output = self.group(&[arguments, &["--json"]].concat());
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// A group for WRITE, with its number as a string.
    fn creates(&self, proxy: &str, source_qpn: &str) -> String {
        let group = self.asks(&[
            "create",
            "--source",
            "2001:db8:aa::1",
            "--source-qpn",
            source_qpn,
            "--designated-qpn",
            "0xd00000",
            "--proxy",
            proxy,
            "--psn",
            "0xfffff0",
            "--region",
            "0x10000,0x40000000,0x1234",
        ]);
        assert_eq!(group["state"], "open");
        group["id"].to_string()
    }

    fn receives(&self, host: &str, group: &str) -> Running {
        let mut command = self.inside(host, "srdma");
        command.args(["recv", "--group", &format!("{URL}/{group}"), "--json", "--timeout", "50s", "--out"]);
        command.arg(self.path(&format!("{host}-{group}")));
        Running::piped(command)
    }

    /// Sends once there are five receivers.
    fn sends(&self, group: &str) -> Running {
        let mut command = self.inside("S1", "srdma");
        command.arg("send").arg(self.path("data")).args(["--group", &format!("{URL}/{group}"), "--json"]);
        command.args(["--receivers", "5", "--commit", "--timeout", "50s", "--message", "256KiB"]);
        Running::piped(command)
    }

    fn status(&self, node: &str) -> Value {
        let file = self.lab.state().join("node").join(node).with_extension("toml");
        let mut srdma = Command::new(env!("CARGO_BIN_EXE_srdma"));
        let output = srdma.args(["status", "--json", "--config"]).arg(file).output().expect("it runs");
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// Number of groups of a node.
    fn groups_of(&self, node: &str) -> usize {
        self.status(node)["groups"].as_array().map_or(0, Vec::len)
    }

    #[track_caller]
    fn waits(&self, what: &str, mut is_so: impl FnMut(&Self) -> bool) {
        let begin = Instant::now();
        while !is_so(self) {
            assert!(begin.elapsed() < PATIENCE, "in vain: {what}");
            sleep(Duration::from_millis(100));
        }
    }

    /// Waits until the source has sent so many packets into the group.
    #[track_caller]
    fn waits_for_packets(&self, group: &str, packets: u64) {
        let number: u64 = group.parse().expect("a number");
        self.waits("packets go down", |network| {
            let status = network.status("N6");
            let groups = status["groups"].as_array().cloned().unwrap_or_default();
            let of_group = groups.iter().find(|one| one["id"] == number);
            of_group.and_then(|one| one["data_packets"].as_u64()).unwrap_or(0) >= packets
        });
    }

    /// Kills a node by SIGKILL, and starts it again.
    fn restarts(&self, node: &str) -> Running {
        let file = self.lab.state().join("node").join(node).with_extension("toml");
        let running = Command::new("pgrep").args(["-f", &format!("node --config {}", file.display())]).output();
        let pids = String::from_utf8(running.expect("pgrep runs").stdout).expect("numbers");
        for pid in pids.lines() {
            signals::send(Signal::SIGKILL, pid.parse().expect("a process ID"));
            self.waits("the node ends", |_| has_ended(pid));
        }
        let mut command = self.inside(node, "srdma");
        command.arg("node").arg("--config").arg(&file).stderr(Stdio::null());
        Running(command.spawn().expect("it starts"))
    }
}

/// Whether a process is gone, or a zombie without other threads: only then are its files closed, and its interfaces
/// free.
fn has_ended(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let is_zombie = stat.rsplit_once(") ").is_none_or(|(_, fields)| fields.starts_with(['Z', 'X']));
    let threads = fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    is_zombie && threads <= 1
}

/// D31: `srdma lab run` has the controller create the group, and each receiver join by itself, also while links lose.
#[test]
#[ignore = "needs root"]
fn the_lab_transfers_to_a_group_of_its_controller() {
    const RUN_OCTETS: u64 = 4 << 20;
    let lab = Lab::new(NAME, &[]);
    let size = RUN_OCTETS.to_string();
    for arguments in [["--op", "write", "--list", "tlv"], ["--op", "send", "--list", "provisioned"]] {
        let losses = ["--json", "--size", &size, "--loss=N4-N1=0.005", "--loss=N5-N3=0.005"];
        let output = lab.command("run", &[&losses[..], &arguments].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {stderr}\n{}", String::from_utf8_lossy(&output.stdout));
        let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let receivers = result["receivers"].as_array().expect("receivers");
        assert_eq!(receivers.len(), 5, "{result}");
        for receiver in receivers {
            assert_eq!(
                (&receiver["is_identical"], &receiver["octets"]),
                (&true.into(), &RUN_OCTETS.into()),
                "{receiver}"
            );
            assert_eq!(receiver["sha256"], result["source"]["sha256"].as_str().expect("a digest"), "{receiver}");
        }
        assert_eq!(result["controlled"]["url"], format!("{URL}/1"));
        let tree = result["controlled"]["tree"].as_array().expect("a tree");
        let above = |name: &str| tree.iter().find(|node| node["name"] == name).expect("in the tree")["parent"].clone();
        for (node, parent) in [("N4", "N6"), ("N5", "N6"), ("N1", "N4"), ("N2", "N4"), ("N3", "N5")] {
            assert_eq!(above(node), parent, "{result}");
        }
        // Two copies of each packet at the headend, and none of it sent five times.
        let packets = RUN_OCTETS / 4096;
        let nodes = result["nodes"].as_array().expect("nodes");
        let headend = nodes.iter().find(|node| node["name"] == "N6").expect("N6");
        let data_packets = headend["data_packets"].as_u64().expect("a count");
        assert!(headend["copies"].as_u64() >= Some(2 * packets), "{headend}");
        assert!(data_packets < 3 * packets, "{headend}");
        assert_eq!(headend["copies"], 2 * data_packets, "{headend}");
        assert!(result["source"]["packets_sent"].as_u64() >= Some(data_packets), "{headend} {}", result["source"]);
        let lost = |link: &Value| link["lost_packets"].as_u64().expect("a counter");
        assert!(result["links"].as_array().expect("links").iter().map(lost).sum::<u64>() > 0, "{result}");
        assert!(result["overhead_octets"].as_u64() > Some(0) && result["link_mtu"] == 9000, "{result}");
        let namespaces = Command::new("ip").args(["netns", "list"]).output().expect("ip runs");
        let left = String::from_utf8_lossy(&namespaces.stdout).contains(&format!("{NAME}-{}-", lab.suffix));
        assert!(!left, "the run has left namespaces");
    }
}

/// If the controller refuses the group, or gives up, the run ends with the reason, and the lab is taken down.
#[test]
#[ignore = "needs root"]
fn a_refused_group_ends_the_run() {
    let lab = Lab::new(NAME, &[("hosts = [\"2001:db8:bb::3/128\", ", "hosts = [")]);
    let output = lab.command("run", &["--json", "--size", "4096"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let last = stderr.lines().last().expect("a reason");
    assert!(last.starts_with("srdma: the lab's controller: ") && last.contains("2001:db8:bb::3"), "{stderr}");
    let status = lab.command("status", &[]);
    assert!(String::from_utf8_lossy(&status.stderr).contains("is not up"), "{status:?}");
}

fn data() -> Vec<u8> {
    (0..OCTETS as u64 / 8).flat_map(|word| (word.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ word).to_le_bytes()).collect()
}

/// D30, D31: five receivers that join by themselves have what the source sends; then, with another group, one leaves, the
/// controller is killed, one joins late, and a node is killed, all while the source sends.
#[test]
#[ignore = "needs root"]
fn a_transfer_survives_changes_of_its_group() {
    let mut network = Network::start();
    let data = data();
    fs::write(network.path("data"), &data).expect("written");

    let shell = network.lab.command("shell", &["C", "--", env!("CARGO_BIN_EXE_srdma"), "group", "list", "--json"]);
    assert_eq!(String::from_utf8_lossy(&shell.stdout).trim(), "[]", "the shell knows where the controller is");

    let first = network.creates("2001:db8:cc::1", "0x100");
    let mut source = network.sends(&first);
    assert_eq!(source.error_line(), "waiting for receivers: 0 of 5 are ready\n");
    let receivers = ["R1", "R2", "R3", "R4", "R5"].map(|host| (host, network.receives(host, &first)));
    let sha256 = Value::from(source.output("S1", PATIENCE)["sha256"].as_str().expect("a digest"));
    for (host, receiver) in receivers {
        let result = receiver.output(host, PATIENCE);
        assert_eq!((&result["sha256"], &result["matches"]), (&sha256, &Value::Bool(true)), "{host}");
    }
    assert_eq!(network.asks(&["close", &first])["id"].to_string(), first);
    network.waits("no node has the first group", |network| NODES.iter().all(|node| network.groups_of(node) == 0));

    let second = network.creates("2001:db8:cc::2", "0x101");
    let [r1, r2, r3, r4, r5] = ["R1", "R2", "R3", "R4", "R5"].map(|host| network.receives(host, &second));
    let source = network.sends(&second);
    network.waits_for_packets(&second, 500);
    network.asks(&["leave", &second, "2001:db8:bb::5"]);
    drop(r5);
    network.waits("R5 is out", |network| {
        let group = network.asks(&["show", &second]);
        group["state"] == "ready" && group["receivers"] == 4
    });

    network.restarts_the_controller();

    let late = network.receives("R6", &second);
    network.waits("R6 is in", |network| network.asks(&["show", &second])["receivers"] == 5);
    let n4 = network.restarts("N4");
    network.waits("N4 has its part again", |network| network.groups_of("N4") == 1);

    assert_eq!(source.output("S1", PATIENCE)["sha256"], sha256);
    for (host, receiver) in [("R1", r1), ("R2", r2), ("R3", r3), ("R4", r4)] {
        let result = receiver.output(host, PATIENCE);
        assert_eq!((&result["sha256"], &result["matches"]), (&sha256, &Value::Bool(true)), "{host}");
    }
    // R6 has everything from J on.
    let joined = late.output("R6", PATIENCE)["joined_psn"].as_u64().expect("it joined late");
    let from = ((joined + (1 << 24) - 0xff_fff0) % (1 << 24)) as usize * 4096;
    let has = fs::read(network.path(&format!("R6-{second}"))).expect("R6 has written");
    assert!(from > 0 && from < OCTETS, "{from}");
    assert_eq!((has.len(), has[from..] == data[from..]), (OCTETS, true));
    drop(n4);
}

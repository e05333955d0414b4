//! Goodput of a group in the lab `figure1` with links of 200 Mbit/s, beside unicast to one receiver and to all at once.

use crate::own_lab::Lab;
use serde_json::Value;
use srdma_figures::{Figure, report};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

const RECEIVERS: [&str; 5] = ["R1", "R2", "R3", "R4", "R5"];
const SOURCE: &str = "2001:db8:aa::1";
const OCTETS: u64 = 32 << 20;
const RATE: &str = "200M";
const RATE_BITS_PER_S: u64 = 200_000_000;
const ROUNDS: usize = 3;

fn mbit_per_s(seconds: &Value) -> f64 {
    OCTETS as f64 * 8.0 / seconds.as_f64().expect("a duration") / 1e6
}

/// The goodput of the slowest receiver of a group.
fn of_group(list: &str) -> f64 {
    let mut lab = Command::new(env!("CARGO_BIN_EXE_srdma"));
    lab.args(["lab", "run", "figure1", "--instance", &format!("g{}", std::process::id()), "--json"]);
    lab.args(["--size", &OCTETS.to_string(), "--rate", RATE, "--list", list]);
    let output = lab.output().expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let receivers = result["receivers"].as_array().expect("receivers");
    assert!(receivers.len() == RECEIVERS.len() && receivers.iter().all(|it| it["is_identical"] == true), "{result}");
    receivers.iter().map(|receiver| mbit_per_s(&receiver["seconds"])).fold(f64::INFINITY, f64::min)
}

/// `srdma recv` at a host, which has printed how it is reached.
struct Receiver {
    process: Child,
    output: BufReader<std::process::ChildStdout>,
    info: String,
}

impl Receiver {
    fn start(lab: &Lab, host: &str, qpn: u32) -> Self {
        let mut recv = lab.existing(host).command(env!("CARGO_BIN_EXE_srdma"));
        recv.args(["recv", "--peer", SOURCE, "--peer-qpn", &qpn.to_string(), "--psn", "0", "--json"]);
        let mut process = recv.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut output = BufReader::new(process.stdout.take().expect("piped"));
        let mut info = String::new();
        output.read_line(&mut info).expect("a line");
        Receiver { process, output, info }
    }

    /// The result, once it has everything.
    fn ends(mut self) -> Value {
        let mut text = String::new();
        self.output.read_to_string(&mut text).expect("text");
        assert!(self.process.wait().expect("it ends").success(), "{text}");
        serde_json::from_str(&text).expect("JSON")
    }
}

/// The goodput of the slowest of some receivers, each of its own connection, all at once.
fn of_unicast(lab: &Lab, hosts: &[&str], window: &str) -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    let receivers: Vec<Receiver> = (0x100..).zip(hosts).map(|(qpn, host)| Receiver::start(lab, host, qpn)).collect();
    let send = |(host, receiver): (&&str, &Receiver)| {
        let info = folder.path().join(host);
        fs::write(&info, &receiver.info).expect("written");
        let mut send = lab.existing("S1").command(env!("CARGO_BIN_EXE_srdma"));
        send.args(["send", "--random", &OCTETS.to_string(), "--window", window, "--json", "--peer-info"]).arg(info);
        send.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let senders: Vec<Child> = hosts.iter().zip(&receivers).map(send).collect();
    let sent = senders.into_iter().map(|sender| {
        let output = sender.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    });
    let sent: Vec<Value> = sent.collect();
    let received = receivers.into_iter().map(Receiver::ends).zip(sent).map(|(received, sent)| {
        assert_eq!(received["sha256"], sent["sha256"].as_str().expect("a digest"));
        mbit_per_s(&received["seconds"])
    });
    received.fold(f64::INFINITY, f64::min)
}

/// The speeds are of the machine, and reported; what a test can say of them is that the data are right.
#[test]
#[ignore = "needs root"]
fn a_group_and_unicast_share_links_of_200_mbit_per_s() {
    let lab = Lab::new("figure1", &[("\nends = ", &format!("\nrate_bits_per_s = {RATE_BITS_PER_S}\nends = "))]);
    lab.up();
    let rounds = |goodput: &dyn Fn() -> f64| (0..ROUNDS).map(|_| goodput()).collect::<Vec<f64>>();
    let one = report("unicast to R1", "Mbit/s", rounds(&|| of_unicast(&lab, &RECEIVERS[..1], "128")));
    // With 128 the five overrun the links' queues.
    let five = report("unicast to R1 … R5 at once, to each", "Mbit/s", rounds(&|| of_unicast(&lab, &RECEIVERS, "64")));
    drop(lab);
    for (list, what) in [("tlv", "group, lists in TLVs"), ("provisioned", "group, lists provisioned")] {
        let group = report(format!("{what}, to each"), "Mbit/s", rounds(&|| of_group(list)));
        let ratio = |of: &Figure| group.median / of.median;
        report(format!("{what}: by unicast to R1, medians"), "", [ratio(&one)]);
        report(format!("{what}: by unicast to five at once, medians"), "", [ratio(&five)]);
    }
}

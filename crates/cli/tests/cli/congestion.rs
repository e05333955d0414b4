//! `srdma send` and `srdma recv` under congestion, across a veth link; and their refusals of options that cannot be
//! met.

use serde_json::Value;
use srdma_capture::Reader;
use srdma_frame::{Frame, Pool};
use srdma_io::namespace::{NamespaceGuard, VethEnd, veth};
use srdma_io::{AfPacket, Driver, Interest};
use srdma_wire::MacAddress;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const SRDMA: &str = env!("CARGO_BIN_EXE_srdma");

/// The hosts of the captured Fast CNPs, and the Destination QP that these name.
const SENDER: (MacAddress, &str) = (MacAddress([2, 0, 0, 0, 0, 1]), "2001:db8:1::1");
const RECEIVER: (MacAddress, &str) = (MacAddress([2, 0, 0, 0, 0, 2]), "2001:db8:2::1");
const RECEIVER_QPN: &str = "0xabcd";

/// The setting by which a kernel discards unknown destination options silently.
const SILENCE: [&str; 2] = ["ipv6/max_dst_opts_number", "-8"];

#[test]
fn options_that_a_udp_socket_cannot_support_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let info = directory.path().join("info");
    let text = r#"{"address":"::1","qpn":34,"rkey":90,"virtual_address":4096,"path_mtu":1024,"psn":0,"peer_qpn":17}"#;
    std::fs::write(&info, text).unwrap();
    let says = |arguments: &[&str], expected: &str| {
        let output = Command::new(SRDMA).args(arguments).output().expect("srdma starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(expected), "expected {expected:?}, found {stderr:?}");
    };
    let info = info.to_str().unwrap();
    let send = |options: &[&str], expected| {
        says(&[&["send", "--random", "1KiB", "--peer-info", info], options].concat(), expected);
    };
    send(&["--fast-cnp", "2001:db8:ff::/48"], "--fast-cnp needs --raw INTERFACE and --next-hop-mac MAC: the kernel");
    send(&["--rate-control", "hpcc"], "--rate-control hpcc needs --raw INTERFACE and --next-hop-mac MAC: a UDP socket");
    send(&["--rate-control", "dcqcn"], "--rate-control needs --rate");
    send(&["--paths", "paths.toml"], "--raw <INTERFACE>");
    let raw = ["--raw", "lo", "--next-hop-mac", "02:00:00:00:00:01"];
    let absent = directory.path().join("absent.toml");
    send(&[&raw[..], &["--paths", absent.to_str().unwrap()]].concat(), "absent.toml: No such file");
    let paths = directory.path().join("paths.toml");
    std::fs::write(&paths, "[[path]]\nsegments = [\"5f00:0:100::\"]\n").unwrap();
    send(
        &[&raw[..], &["--paths", paths.to_str().unwrap()]].concat(),
        "paths.toml:1: probes need an address of their own",
    );
    send(
        &["--rate-control", "dcqcn", "--rate", "100M", "--dcqcn-preset", "hpcc-vendor"],
        "rate control: min_rate_bits_per_s must be at least 1 and at most line_rate_bits_per_s, found 1000000000",
    );
    says(
        &["recv", "--peer", "::1", "--peer-qpn", "2", "--psn", "0", "--return-traces", "20us"],
        "--return-traces needs",
    );
}

struct Link {
    sender: NamespaceGuard,
    receiver: NamespaceGuard,
}

impl Link {
    fn new() -> Self {
        let [sender, receiver] = [(); 2].map(|()| NamespaceGuard::unique("srdma-t-cnp").expect("a namespace"));
        let ends = [
            VethEnd { namespace: &sender, interface: "wire", mac: Some(SENDER.0), addresses: &["2001:db8:1::1/32"] },
            VethEnd {
                namespace: &receiver,
                interface: "wire",
                mac: Some(RECEIVER.0),
                addresses: &["2001:db8:2::1/32"],
            },
        ];
        veth(4500, ends).expect("a link");
        Link { sender, receiver }
    }

    /// A transfer over packet sockets; `meanwhile` is called every few milliseconds while it runs. Returns the output
    /// of `send` and `recv`; that of `recv` is empty when `send` was refused.
    fn transfer(&self, size: &str, options: [&[&str]; 2], mut meanwhile: impl FnMut()) -> (Output, Option<Value>) {
        let directory = tempfile::tempdir().unwrap();
        let info_file = directory.path().join("info");
        let mut recv = self.receiver.command(SRDMA);
        recv.args(["recv", "--peer", SENDER.1, "--peer-qpn", "0x11", "--psn", "0", "--qpn", RECEIVER_QPN, "--json"]);
        recv.args(["--timeout", "60s", "--linger", "100ms", "--raw", "wire", "--next-hop-mac", "02:00:00:00:00:01"]);
        let mut recv = recv.args(options[1]).stdout(Stdio::piped()).spawn().expect("recv starts");
        let mut output = BufReader::new(recv.stdout.take().expect("piped"));
        let mut info = String::new();
        output.read_line(&mut info).expect("a line");
        std::fs::write(&info_file, info).expect("written");

        let mut send = self.sender.command(SRDMA);
        send.args(["send", "--random", size, "--json", "--timeout", "60s", "--peer-info"]).arg(&info_file);
        send.args(["--raw", "wire", "--next-hop-mac", "02:00:00:00:00:02"]).args(options[0]);
        let mut send = send.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("send starts");
        while send.try_wait().expect("it runs").is_none() {
            meanwhile();
            std::thread::sleep(Duration::from_millis(5));
        }
        let sent = send.wait_with_output().expect("send has run");
        if !sent.status.success() {
            recv.kill().expect("killed");
            recv.wait().expect("ended");
            return (sent, None);
        }
        let mut received = String::new();
        output.read_to_string(&mut received).expect("text");
        assert!(recv.wait().expect("ended").success(), "{received}");
        (sent, Some(json(received.as_bytes())))
    }

    /// Puts frames on the link, toward the sender.
    fn wire(&self) -> impl FnMut(&[Vec<u8>]) {
        let nothing = Interest::default();
        let mut driver = self.receiver.enter(|| AfPacket::open("wire", &nothing)).unwrap().expect("a packet socket");
        let mut pool = Pool::new(64);
        move |frames| {
            for octets in frames {
                driver.push(Frame::from_octets(octets, &mut pool).expect("room"), &mut pool);
            }
            driver.flush(&mut pool).expect("the link is up");
        }
    }

    /// ICMPv6 Parameter Problems that the sender's kernel has sent.
    fn parameter_problems(&self) -> u64 {
        let text = self.sender.run(&["cat", "/proc/net/snmp6"]).expect("it is there");
        let line = text.lines().find(|line| line.starts_with("Icmp6OutParmProblems")).expect("a counter");
        line.split_whitespace().last().and_then(|count| count.parse().ok()).expect("a number")
    }
}

fn json(text: &[u8]) -> Value {
    serde_json::from_slice(text).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(text)))
}

/// Fast CNPs that scapy made, to the sender: one whose ICRC is wrong, a good one from another switch, and a good one
/// with option 1.
fn fast_cnps() -> Vec<Vec<u8>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden/scapy_04_fastcnp.pcap");
    let frames: Vec<Vec<u8>> =
        Reader::open(&file).expect("a capture").map(|packet| packet.expect("whole").octets.to_vec()).collect();
    let (good, damaged) = (frames[5].clone(), frames[2].clone());
    let mut from_elsewhere = good.clone();
    from_elsewhere[14 + 8 + 15] = 9;
    // A good one is followed by an interval in which others are not looked at.
    let mut all = vec![damaged, from_elsewhere, good];
    for frame in &mut all {
        frame[..6].copy_from_slice(&SENDER.0.0);
    }
    all
}

/// FC-5-3, FC-4-7, FC-4-8: the rate follows an accepted Fast CNP and no other.
#[test]
#[ignore = "needs root"]
fn a_fast_cnp_slows_the_sender_down() {
    let link = Link::new();
    link.sender.set(SILENCE[0], SILENCE[1]).expect("a setting");
    let options =
        ["--rate-control", "dcqcn", "--rate", "200M", "--fast-cnp", "2001:db8:53::1", "--dscp", "26"].as_slice();
    let mut wire = link.wire();
    let frames = fast_cnps();
    let (sent, received) = link.transfer("4MiB", [options, &[]], || wire(&frames));
    let sent = json(&sent.stdout);
    let from_switches = sent["fast_cnps"]["from_switches"].as_u64().expect("a number");
    assert!(from_switches > 0, "{sent}");
    assert_eq!(sent["fast_cnps"]["by_switch"]["2001:db8:53::1"].as_u64(), Some(from_switches));
    for reason in ["bad_icrc", "fast_cnp_source"] {
        assert!(sent["refused"][reason].as_u64() > Some(0), "{reason}: {sent}");
    }
    assert_eq!(sent["rate"]["control"], "dcqcn");
    assert!(sent["rate"]["least_bits_per_s"].as_u64().expect("a rate") < 200_000_000, "{sent}");
    assert_eq!(received.expect("all came")["sha256"], sent["sha256"].as_str().expect("a digest"));
    assert_eq!(link.parameter_problems(), 0, "the kernel keeps out of it");
}

/// D47: an answer of the kernel would mark the host as one without Fast CNP.
#[test]
#[ignore = "needs root"]
fn a_kernel_that_answers_unknown_options_is_refused() {
    let link = Link::new();
    let (sent, received) = link.transfer("1KiB", [&["--fast-cnp", "2001:db8:53::1"], &[]], || {});
    let stderr = String::from_utf8_lossy(&sent.stderr);
    assert!(sent.status.code() == Some(2) && received.is_none(), "{stderr}");
    assert!(stderr.contains("sysctl -w net.ipv6.max_dst_opts_number=-8"), "{stderr}");
    let mut wire = link.wire();
    let frames = fast_cnps();
    let (sent, _) = link.transfer("1MiB", [&["--rate", "50M"], &[]], || wire(&frames));
    let sent = json(&sent.stdout);
    assert!(sent["refused"]["fast_cnp_disabled"].as_u64() > Some(0), "FC-5-4: {sent}");
    assert!(sent.get("fast_cnps").is_none() && sent.get("rate").is_none());
    assert!(link.parameter_problems() > 0, "this is what the setting is for");
}

/// FC-4-9: traces go there and come back. No switch fills them here.
#[test]
#[ignore = "needs root"]
fn traces_come_back_from_the_receiver() {
    let link = Link::new();
    link.sender.set(SILENCE[0], SILENCE[1]).expect("a setting");
    let mut options = vec!["--rate-control", "hpcc", "--rate", "200M", "--base-rtt", "1ms"];
    options.extend(["--fast-cnp", RECEIVER.1]);
    let (sent, received) = link.transfer("1MiB", [&options, &["--return-traces", "100us"]], || {});
    let (sent, received) = (json(&sent.stdout), received.expect("all came"));
    assert!(received["traces_returned"].as_u64() > Some(0), "{received}");
    let from_receivers = sent["fast_cnps"]["from_receivers"].as_u64().expect("a counter");
    assert!(from_receivers > 0, "{sent}");
    assert_eq!(sent["fast_cnps"]["with_trace"], from_receivers);
    assert_eq!(sent["rate"]["control"], "hpcc");
    assert_eq!(received["sha256"], sent["sha256"].as_str().expect("a digest"));
}

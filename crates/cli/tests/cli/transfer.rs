//! `srdma send` and `srdma recv` across a veth link, and their errors for bad input.

use serde_json::Value;
use srdma_io::namespace::{NamespaceGuard, VethEnd, veth};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const SRDMA: &str = env!("CARGO_BIN_EXE_srdma");

fn srdma(arguments: &[&str]) -> Output {
    Command::new(SRDMA).args(arguments).output().expect("srdma starts")
}

fn says(output: &Output, expected: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains(expected), "expected {expected:?}, found {stderr:?}");
}

const INFO: &str =
    r#"{"address":"::1","qpn":34,"rkey":90,"virtual_address":4096,"path_mtu":1024,"psn":0,"peer_qpn":17,"#;

#[test]
fn bad_input_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let data = file("data", "some data");
    let send = |info: &str| srdma(&["send", &data, "--peer-info", &file("info", info)]);
    says(&srdma(&["send", "/nowhere", "--peer-info", &file("info", &format!("{INFO}\"size\":9}}"))]), "/nowhere");
    says(&srdma(&["send", &data, "--peer-info", "/nowhere"]), "cannot read /nowhere");
    says(&send("qpn = 3"), "is no output of srdma recv: expected value at line 1 column 1");
    says(&send(&format!("{INFO}\"sise\":9}}")), "unknown field `sise`");
    says(&send(&format!("{INFO}\"size\":8}}")), "there are 9 octets to send, the peer's memory has 8");
    says(&send(&format!("{INFO}\"peer_address\":\"2001:db8::77\"}}")), "2001:db8::77 is not an address of this host");
    says(
        &srdma(&["send", &data, "--group", &file("group", "proxy = \"ff02::1\"")]),
        "group:1: expected a unicast IPv6",
    );
    says(&srdma(&["send", &data]), "--peer-info");
    says(&srdma(&["recv", "--peer", "::1", "--peer-qpn", "1", "--psn", "0"]), "from 2 to 0xffffff");
    says(
        &srdma(&["recv", "--peer", "::1", "--peer-qpn", "2", "--psn", "0", "--address", "2001:db8::77"]),
        "2001:db8::77",
    );
}

/// Two hosts and a link.
struct Link {
    ends: [NamespaceGuard; 2],
}

impl Link {
    fn new() -> Self {
        let ends = [(); 2].map(|()| NamespaceGuard::unique("srdma-t-send").expect("a namespace"));
        let end =
            |index: usize, addresses| VethEnd { namespace: &ends[index], interface: "wire", mac: None, addresses };
        let (a, b) = (end(0, &["2001:db8::1/64"]), end(1, &["2001:db8::2/64"]));
        veth(4300, [a, b]).expect("a link");
        Link { ends }
    }

    /// A transfer of a file; returns the output of `send` and `recv`, and the received octets.
    fn transfer(&self, file: &Path, options: [&[&str]; 2]) -> (Value, Value, Vec<u8>) {
        let out = file.with_extension("out");
        let mut recv = self.ends[1].command(SRDMA);
        recv.args(["recv", "--peer", "2001:db8::1", "--peer-qpn", "0x11", "--psn", "0xfffffe", "--json"]);
        recv.args(["--timeout", "60s", "--linger", "100ms", "--out"]).arg(&out).args(options[1]);
        let mut recv = recv.stdout(Stdio::piped()).spawn().expect("recv starts");
        let mut output = BufReader::new(recv.stdout.take().expect("piped"));
        let mut info = String::new();
        output.read_line(&mut info).expect("a line");
        let info_file = file.with_extension("info");
        std::fs::write(&info_file, info).expect("written");
        let mut send = self.ends[0].command(SRDMA);
        send.arg("send").arg(file).arg("--peer-info").arg(&info_file).args(["--json", "--timeout", "60s"]);
        let sent = send.args(options[0]).output().expect("send runs");
        let mut received = String::new();
        output.read_to_string(&mut received).expect("text");
        assert!(recv.wait().expect("ended").success(), "{received}");
        assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
        let json = |text: &[u8]| serde_json::from_slice(text).expect("JSON");
        (json(&sent.stdout), json(received.as_bytes()), std::fs::read(&out).expect("the file"))
    }
}

#[test]
#[ignore = "needs root"]
fn files_cross_a_link_by_write_and_by_send() {
    let directory = tempfile::tempdir().unwrap();
    let link = Link::new();
    for (number, len) in [0, 1, 4095, 4096, 4097, 10 << 20].into_iter().enumerate() {
        let data: Vec<u8> = (0..len as u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let file = directory.path().join(number.to_string());
        std::fs::write(&file, &data).unwrap();
        for options in [&["--op", "write"][..], &["--op", "send"], &["--op", "write", "--gso"]] {
            let (sent, received, copy) = link.transfer(&file, [options, &[]]);
            assert!(copy == data, "{len} octets");
            assert_eq!((&received["matches"], &received["sha256"]), (&Value::Bool(true), &sent["sha256"]));
            assert_eq!(received["octets"], len);
        }
    }
}

#[test]
#[ignore = "needs root"]
fn the_udp_port_is_bound_once() {
    let link = Link::new();
    let recv = || {
        let mut recv = link.ends[1].command(SRDMA);
        recv.args(["recv", "--peer", "2001:db8::1", "--peer-qpn", "0x11", "--psn", "0"]);
        recv
    };
    let mut first = recv().stdout(Stdio::piped()).spawn().expect("recv starts");
    let mut line = String::new();
    BufReader::new(first.stdout.as_mut().expect("piped")).read_line(&mut line).expect("a line");
    let second = recv().output().expect("recv runs");
    first.kill().expect("killed");
    first.wait().expect("ended");
    says(&second, "another RoCEv2 endpoint uses UDP port 4791 on 2001:db8::2");
}

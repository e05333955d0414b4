//! `srdma send` and `srdma recv` across a veth link, and their errors for bad input.

use serde_json::Value;
use srdma_io::namespace::{NamespaceGuard, VethEnd, veth};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
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
        let keeping = ["--out", out.to_str().expect("text")];
        let (sent, received) = self.transfer_inside(None, file, [options[0], &[&keeping, options[1]].concat()]);
        (sent, received, fs::read(&out).expect("the file"))
    }

    /// A transfer of a file whose two programs are in a control group.
    fn transfer_inside(&self, group: Option<&MemoryGroup>, file: &Path, options: [&[&str]; 2]) -> (Value, Value) {
        let program = |end: usize| match group {
            None => self.ends[end].command(SRDMA),
            Some(group) => {
                // Before `ip`, in whose mount namespace control groups are not to be seen.
                let mut shell = Command::new("sh");
                shell.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(group.path.join("cgroup.procs"));
                shell.args(["ip", "netns", "exec", self.ends[end].name(), SRDMA]);
                shell
            }
        };
        let mut recv = program(1);
        recv.args(["recv", "--peer", "2001:db8::1", "--peer-qpn", "0x11", "--psn", "0xfffffe", "--json"]);
        recv.args(["--timeout", "60s", "--linger", "100ms"]).args(options[1]);
        let mut recv = recv.stdout(Stdio::piped()).spawn().expect("recv starts");
        let mut output = BufReader::new(recv.stdout.take().expect("piped"));
        let mut info = String::new();
        output.read_line(&mut info).expect("a line");
        let info_file = file.with_extension("info");
        std::fs::write(&info_file, info).expect("written");
        let mut send = program(0);
        send.arg("send").arg(file).arg("--peer-info").arg(&info_file).args(["--json", "--timeout", "60s"]);
        let sent = send.args(options[0]).output().expect("send runs");
        let mut received = String::new();
        output.read_to_string(&mut received).expect("text");
        assert!(recv.wait().expect("ended").success(), "{received}");
        assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
        let json = |text: &[u8]| serde_json::from_slice(text).expect("JSON");
        (json(&sent.stdout), json(received.as_bytes()))
    }
}

/// A control group of this test's own with a limit of memory: version 2, or version 1 where that has the memory.
struct MemoryGroup {
    path: PathBuf,
    peak: &'static str,
}

impl MemoryGroup {
    fn new(limit_octets: u64) -> Self {
        let is_v2 = fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").is_ok_and(|names| names.contains("memory"));
        let (root, limit, peak) = match is_v2 {
            true => ("/sys/fs/cgroup", "memory.max", "memory.peak"),
            false => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes"),
        };
        if is_v2 {
            fs::write(Path::new(root).join("cgroup.subtree_control"), "+memory").expect("the controller");
        }
        let path = Path::new(root).join(format!("srdma-test-{}", std::process::id()));
        fs::create_dir(&path).expect("a control group");
        fs::write(path.join(limit), limit_octets.to_string()).expect("a limit");
        MemoryGroup { path, peak }
    }

    fn peak_octets(&self) -> u64 {
        let text = fs::read_to_string(self.path.join(self.peak)).expect("the peak");
        text.trim().parse().expect("a number")
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.path);
    }
}

/// D230: files several times as long as the memory of both ends, one of which is verified and discarded, one written.
#[test]
#[ignore = "needs root"]
fn a_long_file_crosses_a_link_in_little_memory() {
    const MEMORY: u64 = 200 << 20;
    let directory = tempfile::tempdir().unwrap();
    let link = Link::new();
    let group = MemoryGroup::new(MEMORY);
    for (name, octets, op, is_kept) in [("1", 1_u64 << 30, "write", false), ("2", 400 << 20, "send", true)] {
        let path = directory.path().join(name);
        let file = File::create(&path).unwrap();
        file.set_len(octets).unwrap();
        for place in [0, octets / 3, octets - 5] {
            file.write_all_at(b"octet", place).unwrap();
        }
        let out = directory.path().join("out");
        let keeping = ["--out", out.to_str().unwrap()];
        let receiving = if is_kept { &keeping[..] } else { &[] };
        let receiving = [receiving, &["--size", "2GiB", "--memory", "64MiB"]].concat();
        let (sent, received) = link.transfer_inside(Some(&group), &path, [&["--op", op], &receiving]);
        let digest = sent["sha256"].as_str().expect("a digest");
        assert_eq!((&received["matches"], &received["sha256"]), (&Value::Bool(true), &digest.into()));
        assert_eq!(received["octets"], octets);
        assert_eq!(out.exists(), is_kept);
        if is_kept {
            assert_eq!(fs::metadata(&out).unwrap().len(), octets);
            let mut end = [0; 5];
            File::open(&out).unwrap().read_exact_at(&mut end, octets - 5).unwrap();
            assert_eq!(&end, b"octet");
        }
    }
    let peak = group.peak_octets();
    assert!((10 << 20..=MEMORY).contains(&peak), "{peak}");
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
            let digest = sent["sha256"].as_str().expect("a digest");
            assert_eq!((&received["matches"], &received["sha256"]), (&Value::Bool(true), &digest.into()));
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

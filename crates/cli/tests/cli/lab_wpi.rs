//! `srdma wpi` in the lab `figure1-controller`: a driver at each host, operators and programs that use them (D210).

use crate::own_lab::{ControllerAccess, Lab, wait_until};
use crate::signals;
use nix::sys::signal::Signal;
use srdma::{Device, DeviceOptions, GroupOptions};
use srdma_io::namespace::Namespace;
use srdma_wpi::messages::{
    Invitation, NodePropagateRequest, NodeStageWeightRequest, NodeUnstageWeightRequest, PropagateMode, ShardAssignment,
};
use srdma_wpi::{CallError, Client};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const NAME: &str = "figure1-controller";
const MIB: usize = 1 << 20;
/// Port of drivers.
const PORT: u16 = 50052;
/// `--timeout` of the drivers.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Codes of gRPC.
const DEADLINE_EXCEEDED: i32 = 4;
const NOT_FOUND: i32 = 5;
const PERMISSION_DENIED: i32 = 7;
const FAILED_PRECONDITION: i32 = 9;
const UNAVAILABLE: i32 = 14;

struct Network {
    lab: Lab,
    access: ControllerAccess,
    directory: tempfile::TempDir,
}

/// A driver of a host; killed at the end whatever happens.
struct Driver {
    child: Child,
    sockets: PathBuf,
}

impl Drop for Driver {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn address(host: &str) -> String {
    match host.split_at(1) {
        ("R", number) => format!("2001:db8:bb::{number}"),
        _ => "2001:db8:aa::1".to_owned(),
    }
}

impl Network {
    fn start() -> Self {
        let lab = Lab::new(NAME, &[]);
        lab.up();
        let access = lab.controller();
        Network { lab, access, directory: tempfile::tempdir_in("/tmp").expect("a directory") }
    }

    fn namespace(&self, host: &str) -> Namespace {
        self.lab.existing(host)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Starts the driver of a host.
    fn driver(&self, host: &str) -> Driver {
        let sockets = self.path(host);
        let mut command = self.namespace(host).command(env!("CARGO_BIN_EXE_srdma"));
        self.access.set(&mut command);
        command.args(["wpi", "run", "--node", &address(host), "--node", host, "--toward", "2001:db8:cc::1"]);
        command.args(["--timeout", "60s", "--memory", "1GiB"]).arg("--socket-directory").arg(&sockets);
        let driver = Driver { child: command.spawn().expect("it starts"), sockets };
        let socket = driver.sockets.join("wpi-grpc.sock");
        wait_until(|| Client::by_socket(&socket).is_ok(), || format!("the driver of {host} is not ready"));
        driver
    }

    fn controller_client(&self) -> srdma_api::Client {
        let ControllerAccess([url, token_file, ca_file]) = &self.access;
        let token = fs::read_to_string(token_file).expect("a token").trim().to_owned();
        srdma_api::Client::new(url, Some(token), Some(Path::new(ca_file))).expect("a client")
    }

    /// Waits until a propagation is in the middle: its group is committed.
    fn wait_for_packets(&self) {
        self.at("S1", || {
            let client = self.controller_client();
            let is_sent = || {
                let groups = client.groups(None, None, None).expect("the controller answers").groups;
                groups.iter().any(|group| group.name.starts_with("wpi m ") && group.epoch > 0)
            };
            wait_until(is_sent, || "nothing is sent".to_owned());
        });
    }

    fn at<T: Send>(&self, host: &str, action: impl FnOnce() -> T + Send) -> T {
        self.namespace(host).enter(action).expect("the namespace can be entered")
    }

    /// A file with octets that depend on a number.
    fn content(&self, number: u64, octets: usize) -> PathBuf {
        let path = self.path(&format!("content-{number}-{octets}"));
        let word = |place: u64| (number << 40 ^ place).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes();
        let content: Vec<u8> = (0..octets as u64 / 8 + 1).flat_map(word).take(octets).collect();
        fs::write(&path, content).expect("a file");
        path
    }

    /// A part of a file.
    fn part(&self, file: &Path, offset: usize, length: usize) -> PathBuf {
        let path = self.path("part");
        fs::write(&path, &fs::read(file).expect("a file")[offset..offset + length]).expect("a file");
        path
    }
}

impl Driver {
    fn client(&self) -> Client {
        Client::by_socket(&self.sockets.join("wpi-grpc.sock")).expect("it listens")
    }

    #[track_caller]
    fn stage(&self, claim: &str, buffer: &str, octets: usize, shard: Option<(i32, i32)>) {
        let (shard_index, total_shards) = shard.unwrap_or((-1, 0));
        let request = NodeStageWeightRequest {
            claim_id: claim.to_owned(),
            buffer_id: buffer.to_owned(),
            source_path: String::new(),
            size_bytes: octets as u64,
            shard_index,
            total_shards,
        };
        self.client().stage(request).expect("staged");
    }

    fn propagate(&self, buffer: &str, targets: &[&str]) -> Result<(), CallError> {
        let request = NodePropagateRequest {
            buffer_id: buffer.to_owned(),
            target_node_ids: targets.iter().map(|target| (*target).to_owned()).collect(),
            ..Default::default()
        };
        self.client().propagate(request).map(|_| ())
    }

    fn scatter(&self, buffer: &str, shards: &[(&str, i32, usize, usize)]) -> Result<(), CallError> {
        let shard = |(target, index, offset, length): &(&str, i32, usize, usize)| ShardAssignment {
            target_node_id: (*target).to_owned(),
            shard_index: *index,
            offset_bytes: *offset as u64,
            length_bytes: *length as u64,
            target_gpu_id: 0,
        };
        let request = NodePropagateRequest {
            buffer_id: buffer.to_owned(),
            target_node_ids: shards.iter().map(|shard| shard.0.to_owned()).collect(),
            mode: PropagateMode::Scatter as i32,
            shard_assignments: shards.iter().map(shard).collect(),
            ..Default::default()
        };
        self.client().propagate(request).map(|_| ())
    }

    fn consumer(&self, buffer: &str) -> Command {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wpi/tests/wpi/consumer.py");
        let mut command = Command::new("/usr/bin/python3");
        command.arg(script).arg(&self.sockets).arg(buffer);
        command
    }

    #[track_caller]
    fn fill(&self, buffer: &str, file: &Path) {
        let status = self.consumer(buffer).arg("fill").arg(file).status().expect("python runs");
        assert!(status.success());
    }

    fn has(&self, buffer: &str, file: &Path, offset: usize) -> bool {
        let compare = self.consumer(buffer).arg("compare").arg(file).arg(offset.to_string()).output();
        let output = compare.expect("python runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() || text.contains("differs at octet"), "{text}");
        output.status.success()
    }
}

/// D213: two nodes get a buffer, and later its next content, in place; a third one with the same buffer does not. Then each
/// gets its shard, one of them to a buffer of the shard alone.
#[test]
#[ignore = "needs root"]
fn targets_have_the_octets_when_the_call_returns() {
    let network = Network::start();
    let [source, first, second, third] = ["S1", "R1", "R3", "R5"].map(|host| network.driver(host));
    let length = 3 * MIB + 77;
    for driver in [&source, &first, &second, &third] {
        driver.stage("claim", "m", length, None);
    }
    let mut watching = first.consumer("m").args(["notices", "4"]).stdout(Stdio::piped()).spawn().expect("python runs");
    let mut notices = BufReader::new(watching.stdout.take().expect("a pipe")).lines().map(|line| line.expect("text"));
    assert_eq!(notices.next().as_deref(), Some("connected"));
    for number in [1, 2] {
        let content = network.content(number, length);
        source.fill("m", &content);
        let begin = Instant::now();
        source.propagate("m", &[&address("R1"), &address("R3")]).expect("propagated");
        println!("{length} octets to two nodes after {:?}", begin.elapsed());
        assert!(first.has("m", &content, 0) && second.has("m", &content, 0), "content {number}");
        for expected in ["PRE_UPDATE", "READY"] {
            assert_eq!(notices.next().as_deref(), Some(expected));
        }
    }
    assert!(watching.wait().expect("a child").success());
    let zeros = network.path("zeros");
    fs::write(&zeros, vec![0; length]).expect("a file");
    assert!(third.has("m", &zeros, 0), "R5 is no target");

    let content = network.content(3, length);
    source.fill("m", &content);
    third.client().unstage(NodeUnstageWeightRequest { claim_id: "claim".to_owned() }).expect("unstaged");
    third.stage("shard", "m", length - 2 * MIB, Some((2, 3)));
    let shards =
        [(address("R1"), 0, 0, MIB), (address("R3"), 1, MIB, MIB), (address("R5"), 2, 2 * MIB, length - 2 * MIB)];
    let shards = shards.each_ref().map(|(target, index, offset, length)| (target.as_str(), *index, *offset, *length));
    source.scatter("m", &shards).expect("propagated");
    let former = network.content(2, length);
    for (driver, offset, length) in [(&first, 0, MIB), (&second, MIB, MIB)] {
        assert!(driver.has("m", &network.part(&content, offset, length), offset));
    }
    assert!(third.has("m__shard_2", &network.part(&content, 2 * MIB, length - 2 * MIB), 0));
    assert!(first.has("m", &network.part(&former, MIB, length - MIB), MIB), "R1 has no other shard");
    assert!(second.has("m", &network.part(&former, 0, MIB), 0), "R3 has no other shard");
    // Both ends say so in the group's name as well.
    let refused = source.scatter("m", &[(&address("R5"), 1, 0, MIB)]).expect_err("no such buffer there");
    assert_eq!((refused.code, refused.message.contains("buffer m is not staged at this node")), (NOT_FOUND, true));
}

/// A node that is gone, before and in the middle of a propagation, is named in time, and costs no other node more.
#[test]
#[ignore = "needs root"]
fn a_node_that_is_gone_is_named_and_the_others_are_not_held() {
    let network = Network::start();
    let [source, first, mut second] = ["S1", "R1", "R3"].map(|host| network.driver(host));
    let length = 48 * MIB;
    let targets = [address("R1"), address("R3")];
    let targets = targets.each_ref().map(String::as_str);
    source.stage("claim", "m", length, None);
    first.stage("claim", "m", length, None);
    let before = network.content(1, length);
    first.fill("m", &before);
    let unknown = source.propagate("m", &targets).expect_err("R3 has no buffer");
    let expected = format!("target {}: buffer m is not staged at this node", targets[1]);
    assert_eq!(unknown, CallError { code: NOT_FOUND, message: expected });
    assert!(first.has("m", &before, 0), "nothing is changed");
    second.stage("claim", "m", 5, None);
    let other = source.propagate("m", &targets).expect_err("R3 has another buffer");
    assert_eq!(other.code, FAILED_PRECONDITION, "{other}");
    second.client().unstage(NodeUnstageWeightRequest { claim_id: "claim".to_owned() }).expect("unstaged");
    second.stage("claim", "m", length, None);

    // In the middle: R3 has joined, and packets are on their way.
    let content = network.content(2, length);
    source.fill("m", &content);
    let begin = Instant::now();
    let result = thread::scope(|scope| {
        let propagating = scope.spawn(|| source.propagate("m", &targets));
        network.wait_for_packets();
        second.child.kill().expect("it runs");
        propagating.join().expect("no panic")
    });
    let gone = result.expect_err("R3 is gone");
    println!("after {:?}: {gone}", begin.elapsed());
    assert!(gone.message.contains(&format!("target {}", targets[1])) && !gone.message.contains(targets[0]), "{gone}");
    assert!(begin.elapsed() < TIMEOUT + Duration::from_secs(30));
    assert!(first.has("m", &content, 0), "R1 has its octets");

    // Its driver is not there; then it is there, and does not answer.
    let begin = Instant::now();
    let gone = source.propagate("m", &targets).expect_err("R3 has no driver");
    assert_eq!(gone.code, UNAVAILABLE, "{gone}");
    assert!(gone.message.starts_with(&format!("target {}: its driver at ", targets[1])), "{gone}");
    let nowhere = source.propagate("m", &["2001:db8:bb::77"]).expect_err("no such host");
    assert!([UNAVAILABLE, DEADLINE_EXCEEDED].contains(&nowhere.code), "{nowhere}");
    let unresolved = source.propagate("m", &["no-such-host.invalid"]).expect_err("no such host");
    assert_eq!(unresolved.code, UNAVAILABLE, "{unresolved}");
    println!("refusals after {:?}", begin.elapsed());
    drop(second);
    let second = network.driver("R3");
    second.stage("claim", "m", length, None);
    signals::send(Signal::SIGSTOP, second.child.id());
    let begin = Instant::now();
    let silent = source.propagate("m", &targets).expect_err("R3 is silent");
    println!("after {:?}: {silent}", begin.elapsed());
    assert!(silent.message.starts_with(&format!("target {}: ", targets[1])), "{silent}");
    assert!(begin.elapsed() < TIMEOUT);
    assert!(first.has("m", &content, 0), "nothing is changed");

    // The others go on.
    let content = network.content(3, length);
    source.fill("m", &content);
    source.propagate("m", &targets[..1]).expect("propagated");
    assert!(first.has("m", &content, 0));
    first.client().unstage(NodeUnstageWeightRequest { claim_id: "claim".to_owned() }).expect("not in use");
}

/// The driver of the source is killed in the middle: the target has its former octets (D213) and is free again, and the
/// next driver closes the group, whose Proxy Address it needs.
#[test]
#[ignore = "needs root"]
fn a_source_that_is_killed_leaves_nothing_behind() {
    let network = Network::start();
    let [mut source, target] = ["S1", "R1"].map(|host| network.driver(host));
    let length = 48 * MIB;
    source.stage("claim", "m", length, None);
    target.stage("claim", "m", length, None);
    let before = network.content(1, length);
    target.fill("m", &before);
    source.fill("m", &network.content(2, length));
    let caller = source.client();
    let request =
        NodePropagateRequest { buffer_id: "m".to_owned(), target_node_ids: vec![address("R1")], ..Default::default() };
    thread::scope(|scope| {
        let propagating = scope.spawn(|| caller.propagate(request));
        network.wait_for_packets();
        source.child.kill().expect("it runs");
        propagating.join().expect("no panic").expect_err("the driver is gone");
    });
    drop(source);
    let is_free = || target.client().unstage(NodeUnstageWeightRequest { claim_id: "claim".to_owned() }).is_ok();
    assert!(target.has("m", &before, 0), "a part of a buffer is not written");
    wait_until(is_free, || "the target waits for a source that is gone".to_owned());
    let source = network.driver("S1");
    source.stage("claim", "m", length, None);
    target.stage("claim", "m", length, None);
    let content = network.content(3, length);
    source.fill("m", &content);
    source.propagate("m", &[&address("R1")]).expect("propagated");
    assert!(target.has("m", &content, 0));
}

/// D211: a call that no group confirms is not followed; and what is not gRPC has no effect.
#[test]
#[ignore = "needs root"]
fn a_forged_invitation_is_not_followed() {
    let network = Network::start();
    let driver = network.driver("R1");
    driver.stage("claim", "m", 1000, None);
    let ControllerAccess([url, token_file, ca_file]) = &network.access;
    let options =
        DeviceOptions { token_file: Some(token_file.into()), ca_file: Some(ca_file.into()), ..DeviceOptions::new(url) };
    let source = network.at("S1", || {
        let group = GroupOptions { proxy: "2001:db8:cc::1".parse().ok(), ..GroupOptions::for_buffers([1000]) };
        Device::open(&options).expect("a device").create_group(&group).expect("a group")
    });
    let invitation = Invitation {
        group: source.group(),
        buffer_id: "m".to_owned(),
        length: 1000,
        is_whole: true,
        targets: vec![address("R1")],
        target: address("R1"),
        timeout_ms: 5000,
        ..Default::default()
    };
    let peer = format!("[{}]:{PORT}", address("R1"));
    let invite = |invitation: &Invitation| {
        network.at("S1", || Client::by_address(&peer).expect("it listens").invite(invitation.clone()))
    };
    for group in [source.group(), 4_000_000] {
        let refused = invite(&Invitation { group, ..invitation.clone() }).expect_err("forged");
        assert_eq!(refused.code, PERMISSION_DENIED, "{refused}");
        let expected = format!("group {group} at the controller is not of this invitation: it is not followed");
        assert_eq!(refused.message, expected);
    }
    let other = invite(&Invitation { target: address("R2"), ..invitation.clone() }).expect_err("not this node");
    assert_eq!(other.code, PERMISSION_DENIED, "{other}");
    let unknown = invite(&Invitation { buffer_id: "n".to_owned(), ..invitation.clone() }).expect_err("no such buffer");
    assert_eq!(unknown.code, NOT_FOUND, "{unknown}");
    // Operators' calls are not taken there.
    let call = network.at("S1", || Client::by_address(&peer).expect("it listens").info().expect_err("not there"));
    assert!(call.message.contains("is not a call of this driver"), "{call}");
    network.at("S1", || {
        for garbage in
            [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 4096], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff"]
        {
            let mut stream = TcpStream::connect(&peer).expect("it listens");
            stream.write_all(garbage).expect("taken");
            stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
            // Closed, with an error of HTTP/2 or without.
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
    assert_eq!(invite(&invitation).expect_err("forged").code, PERMISSION_DENIED);
    driver.client().unstage(NodeUnstageWeightRequest { claim_id: "claim".to_owned() }).expect("it is in no use");
}

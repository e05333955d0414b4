//! `srdma controller` as a process: killed, saved, restored, and given what it cannot use.

use srdma_api::{Client, NewGroup, NewReceiver, PROTOCOL, Registration, SourceAddress};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv6Addr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A controller; killed with SIGKILL when dropped.
pub(crate) struct Controller {
    child: Child,
    pub(crate) url: String,
}

impl Controller {
    pub(crate) fn start(folder: &Path) -> Self {
        Self::start_at(folder, "[::1]:0")
    }

    fn start_at(folder: &Path, address: &str) -> Self {
        Self::start_by(Command::new(env!("CARGO_BIN_EXE_srdma")), folder, address)
    }

    /// Begins by a command that becomes `srdma`.
    fn start_by(mut srdma: Command, folder: &Path, address: &str) -> Self {
        let config = folder.join("controller.toml");
        std::fs::write(&config, format!("listen = ['{address}']\n")).unwrap();
        let mut child = srdma
            .args(["controller", "run", "--config"])
            .arg(config)
            .arg("--store")
            .arg(folder.join("store"))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.split(' ').find_map(|word| word.strip_prefix("url=")).unwrap_or_else(|| panic!("{line}"));
        Controller { child, url: url.to_owned() }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(&self.url, None, None).unwrap()
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn srdma(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_srdma")).arg("controller").args(arguments).output().unwrap()
}

fn group(number: u16) -> NewGroup {
    let source = SourceAddress { address: "2001:db8:aa::1".parse().unwrap(), qpn: 0x100 + u32::from(number) };
    let proxy = Some(Ipv6Addr::new(0x2001, 0xdb8, 0xcc, 0, 0, 0, 0, 1 + number));
    NewGroup { proxy, ..NewGroup::new(source, 0xd0_0000) }
}

/// Every join that was answered is there after `kill -9`, whenever it comes.
#[test]
fn acknowledged_writes_survive_kill_9() {
    const CLIENTS: u16 = 8;
    let folder = tempfile::tempdir().unwrap();
    let mut expected: Vec<(u32, Ipv6Addr)> = Vec::new();
    for round in 0..4_u16 {
        let mut controller = Controller::start(folder.path());
        let answered = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for number in 0..CLIENTS {
                let (client, answered) = (controller.client(), &answered);
                scope.spawn(move || {
                    let id = client.create_group(&group(round * CLIENTS + number), None);
                    let Ok(id) = id.map(|created| created.summary.id) else { return };
                    for receiver in 1.. {
                        let address = Ipv6Addr::new(0x2001, 0xdb8, 0xbb, round, number, 0, 0, receiver);
                        let join = NewReceiver::new(0x1000, 4096);
                        // The first that is not answered is the end.
                        if client.join(id, address, &join).is_err() {
                            return;
                        }
                        answered.lock().unwrap().push((id, address));
                    }
                });
            }
            let deadline = Instant::now() + Duration::from_secs(60);
            while answered.lock().unwrap().len() <= 8 && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
            // Each round ends at another moment.
            std::thread::sleep(Duration::from_millis(70 * u64::from(round)));
            controller.child.kill().unwrap();
        });
        drop(controller);
        let answered = answered.into_inner().unwrap();
        assert!(answered.len() > 8, "only {} joins were answered", answered.len());
        expected.extend(answered);
        let client = Controller::start(folder.path());
        let mut members = std::collections::BTreeMap::new();
        for (id, address) in &expected {
            let members = members.entry(*id).or_insert_with(|| {
                let shown = client.client().group(*id).unwrap();
                shown.members.iter().map(|member| member.address).collect::<std::collections::BTreeSet<_>>()
            });
            assert!(members.contains(address), "round {round}: group {id} has lost {address}");
        }
    }
}

/// Text of nodes and tenants neither controls the terminal nor forges lines (D107).
#[test]
fn text_of_others_is_escaped() {
    let listener = TcpListener::bind("[::1]:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let event =
        r#"{"number":1,"unix_ms":0,"kind":"node-up","node":"N1\u001b[2J\u001b]0;owned\u0007\nnode N2 is up\u202e"}"#;
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nid: a-1\ndata: {event}\n\n");
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(answer.as_bytes()).unwrap();
        // The stream stays open until the client has ended.
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    let mut watch = Command::new(env!("CARGO_BIN_EXE_srdma"))
        .args(["group", "watch", "--controller", &url])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(watch.stdout.take().unwrap()).read_line(&mut line).unwrap();
    watch.kill().unwrap();
    watch.wait().unwrap();
    server.join().unwrap();
    assert_eq!(line, "node N1\\u{1b}[2J\\u{1b}]0;owned\\u{7}\\nnode N2 is up\\u{202e} is up\n");
}

/// D127
#[test]
fn nodes_are_listed_renamed_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let controller = Controller::start(folder.path());
    let registration = Registration {
        protocol: PROTOCOL,
        name: "N1".to_owned(),
        loopback: "2001:db8:ff:1::1".parse().unwrap(),
        end_mt: "2001:db8:ff:1::e".parse().ok(),
        replication: None,
        links: Vec::new(),
        hosts: vec!["2001:db8:bb::/64".parse().unwrap()],
        groups: Vec::new(),
        repairs: true,
    };
    controller.client().register(&registration).unwrap();
    let node = |arguments: &[&str]| {
        let output = srdma(&[&["node"], arguments, &["--controller", &controller.url]].concat());
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
        (output.status.code(), text)
    };
    let values = "0 groups: loopback 2001:db8:ff:1::1, End.MT SID 2001:db8:ff:1::e, hosts 2001:db8:bb::/64\n";
    assert_eq!(node(&["list"]), (Some(0), format!("node N1 is connected, {values}")));
    let (code, text) = node(&["remove", "N1"]);
    assert!(code == Some(1) && text.contains("`srdma controller node drain N1` first"), "{text}");
    assert_eq!(node(&["rename", "N1", "leaf1"]), (Some(0), format!("node leaf1 is connected, {values}")));
    assert_eq!(node(&["drain", "leaf1"]), (Some(0), format!("node leaf1 is connected and drained, {values}")));
    assert_eq!(node(&["release", "leaf1"]).0, Some(0));
    let (code, text) = node(&["confirm", "leaf1"]);
    assert!(code == Some(2) && text.contains("nothing that is not confirmed"), "{text}");
    assert_eq!(node(&["drain", "leaf1"]).0, Some(0));
    assert_eq!(node(&["remove", "leaf1"]), (Some(0), format!("node leaf1 is being removed, {values}")));
    assert_eq!(node(&["list"]), (Some(0), String::new()));
}

/// A watch continues with a restarted controller, and reports a possible gap.
#[test]
fn a_watch_survives_a_restart_of_the_controller() {
    let folder = tempfile::tempdir().unwrap();
    let controller = Controller::start(folder.path());
    let mut watch = Command::new(env!("CARGO_BIN_EXE_srdma"))
        .args(["group", "watch", "--json", "--timeout", "60s", "--controller", &controller.url])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let (heard, events) = std::sync::mpsc::channel();
    std::thread::spawn(move || lines.try_for_each(|line| heard.send(line.ok()?).ok()));
    let next = || {
        let line = events.recv_timeout(Duration::from_secs(60)).unwrap();
        serde_json::from_str::<serde_json::Value>(&line).unwrap()
    };
    // It listens once it has printed a line.
    let mut number = 0;
    let first = loop {
        controller.client().create_group(&group(number), None).unwrap();
        number += 1;
        if let Ok(line) = events.recv_timeout(Duration::from_millis(200)) {
            break serde_json::from_str::<serde_json::Value>(&line).unwrap();
        }
    };
    assert_eq!(first["kind"], "group-created");
    let address = controller.url.trim_start_matches("http://").to_owned();
    drop(controller);
    let again = Controller::start_at(folder.path(), &address);
    let id = again.client().create_group(&group(number), None).unwrap().summary.id;
    let missed = std::iter::repeat_with(next).find(|event| event["kind"] == "events-missed").unwrap();
    assert!(missed["missed"].is_null(), "{missed}");
    let created = next();
    assert_eq!((&created["kind"], &created["group"]), (&"group-created".into(), &id.into()));
    let _ = watch.kill();
    let _ = watch.wait();
}

/// A file system of 4 MiB, in a mount namespace of its own; gone when dropped.
struct SmallDisk {
    holder: Child,
    folder: tempfile::TempDir,
}

impl SmallDisk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "sh", "-c", "mount -t tmpfs -o size=4m tmpfs \"$0\" && echo ready && exec sleep 600"]);
        let mut holder = unshare.arg(folder.path()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        SmallDisk { holder, folder }
    }

    /// A program that sees the file system.
    fn inside(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--target", &self.holder.id().to_string(), program]);
        command
    }

    fn start(&self) -> Controller {
        // The configuration is written from outside, where the folder is another one.
        let configure =
            format!("echo \"listen = ['[::1]:0']\" > {}", self.folder.path().join("controller.toml").display());
        assert!(self.inside("sh").args(["-c", &configure]).status().unwrap().success());
        Controller::start_by(self.inside(env!("CARGO_BIN_EXE_srdma")), self.folder.path(), "[::1]:0")
    }

    fn enlarge(&self) {
        let mut mount = self.inside("mount");
        assert!(mount.args(["-o", "remount,size=64m"]).arg(self.folder.path()).status().unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// While the disk is full, joins are refused with a named problem, and acknowledged writes survive even `kill -9`.
/// Joins succeed again when there is room. The controller does not block on a stderr that no process reads.
#[test]
#[ignore = "needs root"]
fn a_full_file_system_loses_no_acknowledged_write() {
    let disk = SmallDisk::new();
    let controller = disk.start();
    let client = controller.client();
    let join = |client: &Client, number: u32| {
        let group_number = u16::try_from(number / 1000).unwrap();
        if number.is_multiple_of(1000) {
            client.create_group(&group(group_number), None)?;
        }
        let address =
            Ipv6Addr::from_bits(Ipv6Addr::new(0x2001, 0xdb8, 0xbb, 0, 0, 0, 0, 1).to_bits() + u128::from(number));
        let receiver = NewReceiver::new(0x1000, 4096);
        client.join(u32::from(group_number) + 1, address, &receiver).map(drop)
    };
    let sum = |page: &srdma_api::GroupPage| page.groups.iter().map(|group| group.receivers).sum::<u32>();
    let members = |client: &Client| sum(&client.groups(None, None, None).unwrap());
    let (answered, refused) = (0_u32..).find_map(|number| Some((number, join(&client, number).err()?))).unwrap();
    assert_eq!(refused.problem().expect("a problem").name(), "store-failed", "{refused}");
    assert!(answered > 1000, "{answered}");
    // The controller takes up what its store has, and refuses on.
    let members_if_any = || client.groups(None, None, None).ok().map(|page| sum(&page));
    let deadline = Instant::now() + Duration::from_secs(60);
    while members_if_any() != Some(answered) {
        assert!(Instant::now() < deadline, "{:?}", members_if_any());
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(controller);
    disk.enlarge();
    let controller = disk.start();
    let client = controller.client();
    assert_eq!(members(&client), answered);
    join(&client, answered).unwrap();
    assert_eq!(members(&client), answered + 1);
}

#[test]
fn a_store_is_restored_from_a_backup() {
    let folder = tempfile::tempdir().unwrap();
    let controller = Controller::start(folder.path());
    let id = controller.client().create_group(&group(0), None).unwrap().summary.id;
    let [live, offline, other] = ["live", "offline", "other"].map(|name| folder.path().join(name));
    let [live, offline] = [live.to_str().unwrap(), offline.to_str().unwrap()];
    assert!(srdma(&["backup", "--controller", &controller.url, "--out", live]).status.success());
    drop(controller);
    let store = folder.path().join("store");
    let store = store.to_str().unwrap();
    assert!(srdma(&["backup", "--store", store, "--out", offline]).status.success());
    assert_eq!(std::fs::read(live).unwrap(), std::fs::read(offline).unwrap());
    assert_eq!(srdma(&["restore", live, "--store", store]).status.code(), Some(2), "nothing is overwritten");
    std::fs::create_dir(&other).unwrap();
    let restored = other.join("store");
    assert!(srdma(&["restore", live, "--store", restored.to_str().unwrap()]).status.success());
    let controller = Controller::start(&other);
    assert_eq!(controller.client().group(id).unwrap().summary.id, id);
}

#[test]
fn unusable_files_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let controller = Controller::start(folder.path());
    let store = folder.path().join("store");
    let store = store.to_str().unwrap();
    let config = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let cut = config("cut", "half of something");
    let open = config("open.toml", "listen = ['[::]:0']\n");
    let wrong = config("wrong.toml", "listen = 7\n");
    for (arguments, expected) in [
        (vec!["run", "--store", store], "another controller has it open"),
        (vec!["run", "--store", &cut], "damaged, or not a store of a controller"),
        (vec!["run", "--config", &open, "--store", "x"], "only loopback addresses may be listened on"),
        (vec!["run", "--config", &wrong], "wrong.toml:1"),
        (vec!["run", "--config", "/nonexistent"], "/nonexistent"),
        (vec!["backup", "--store", "/nonexistent"], "the store does not exist"),
        (vec!["backup", "--controller", "nowhere"], "expected the URL of a controller"),
        (vec!["backup", "--controller", "http://[::1]:1"], "controller http://[::1]:1"),
        (vec!["restore", &cut, "--store", "/nonexistent/x"], "/nonexistent/x"),
        (vec!["restore", &cut, "--store", "etcd=http://[::1]:1"], "etcd does not respond"),
        (vec!["backup", "--store", "etcd=nowhere"], "expected the URL of an etcd server"),
        (vec!["backup", "--store", "etcd=http://[::1]:1", "--config", &wrong], "wrong.toml:1"),
    ] {
        let output = srdma(&arguments);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
        assert!(text.contains(expected), "{arguments:?}: {text}");
    }
    drop(controller);
    let description = srdma(&["openapi"]);
    let description: serde_json::Value = serde_json::from_slice(&description.stdout).unwrap();
    assert_eq!(description["openapi"], "3.1.0");
}

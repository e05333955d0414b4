//! `srdma perftest` between unmodified tools: a client and five servers, each in a guest with the soft-RoCE of an
//! unmodified Linux kernel, and the same client with each server on its own.

use crate::own_lab::{ControllerAccess, JsonLines, Lab};
use serde_json::Value;
use srdma_api::{Client, MemoryRegion, NewReceiver, ReceiverState};
use srdma_figures::report;
use std::io::{BufRead, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

/// Emulated machines are slow.
const PATIENCE: Duration = Duration::from_secs(120);
const RECEIVERS: [(&str, &str); 5] = [
    ("R1", "2001:db8:bb::1"),
    ("R2", "2001:db8:bb::2"),
    ("R3", "2001:db8:bb::3"),
    ("R4", "2001:db8:bb::4"),
    ("R5", "2001:db8:bb::5"),
];
/// The address of C, where `srdma perftest` runs.
const HELPER: &str = "2001:db8:ff:c::1";
const MESSAGES: u64 = 100;
const MESSAGE_OCTETS: u64 = 65536;
const PACKETS: u64 = MESSAGES * MESSAGE_OCTETS / 1024;

struct Site {
    lab: Lab,
    access: ControllerAccess,
    // Removed at the end.
    _directory: tempfile::TempDir,
}

impl Site {
    fn start() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let files = directory.path().join("files");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs/rxe/perftest.sh");
        let status = Command::new("sh").arg(script).arg(&files).status().expect("sh runs");
        assert!(status.success());
        let lab = Lab::new("figure1-controller-rxe", &[]);
        let begin = Instant::now();
        lab.up_with(&["--guest-files", files.to_str().expect("UTF-8")]);
        println!("up after {:?}", begin.elapsed());
        let access = lab.controller();
        Site { lab, access, _directory: directory }
    }

    /// Starts a server in each guest. They have ended, and their output is in a file, after one client.
    fn start_servers(&self, receivers: &[(&str, &str)], tool: &str, options: &str) {
        for (host, _) in receivers {
            self.lab.guest_shell(
                host,
                &format!("(perftest-server {tool} {options}; echo status $?) >/tmp/server 2>&1 </dev/null &"),
            );
        }
    }

    /// Waits until a server is reached at its port, which is 18516, or 4854 in hexadecimal.
    #[track_caller]
    fn wait_for_server(&self, host: &str) {
        self.lab.guest_shell(host, "until grep -q ':4854 ' /proc/net/tcp6; do usleep 50000; done");
    }

    /// What the servers have printed, each after its end.
    #[track_caller]
    fn servers(&self, receivers: &[(&str, &str)]) -> Vec<String> {
        let ended = |host: &str| {
            let begin = Instant::now();
            loop {
                let text = self.lab.guest_shell(host, "cat /tmp/server");
                if text.contains("status ") {
                    return text;
                }
                assert!(begin.elapsed() < PATIENCE, "{host}: {text}");
                sleep(Duration::from_millis(200));
            }
        };
        receivers.iter().map(|(host, _)| ended(host)).collect()
    }

    /// Starts `srdma perftest` at C.
    fn helper(&self, receivers: &[(&str, &str)]) -> JsonLines {
        let servers: Vec<String> = receivers.iter().map(|(_, address)| format!("[{address}]:18516")).collect();
        let servers = servers.join(",");
        let namespace = self.lab.existing("C");
        let mut command = namespace.command(env!("CARGO_BIN_EXE_srdma"));
        self.access.set(&mut command);
        command.args(["perftest", "--servers", &servers, "--proxy", "2001:db8:cc::1"]);
        command.args(["--ack-timeout", "19", "--timeout", "120s", "--json"]);
        JsonLines::start(command, "listening")
    }
}

/// What a test has measured, in bits per second.
struct Rate {
    /// From the longest silence of the client on its TCP connection, which is the run and what it does around it.
    by_wall_clock: f64,
    /// What the client has printed; 0 if it could not calibrate its clock, as on a busy machine under emulation.
    printed: f64,
}

impl Rate {
    fn new(silence: Duration, output: &str) -> Self {
        let octets = MESSAGES * MESSAGE_OCTETS;
        Rate { by_wall_clock: octets as f64 * 8.0 / silence.as_secs_f64(), printed: average(output) }
    }
}

/// The last column but one of the line with the result: the average in MB/sec, of 2^20 octets; as bits per second.
#[track_caller]
fn average(output: &str) -> f64 {
    let line = output.lines().find(|line| line.split_whitespace().next() == Some("65536"));
    let line = line.unwrap_or_else(|| panic!("no result: {output}"));
    let fields: Vec<&str> = line.split_whitespace().collect();
    assert_eq!((fields.len(), fields[1]), (5, "100"), "{line}");
    fields[3].parse::<f64>().expect("a number") * f64::from(8 << 20)
}

/// Passes one TCP connection on to a server; gives the longest silence of the client behind octets of the server.
fn relay(listener: &TcpListener, server: TcpStream) -> Duration {
    let (client, _) = listener.accept().expect("a client");
    let last_answer: Mutex<Option<Instant>> = Mutex::new(None);
    thread::scope(|scope| {
        scope.spawn(|| {
            pass(&server, &client, || *last_answer.lock().expect("no panic") = Some(Instant::now()));
            // Its client is not to wait for a server that has ended.
            let _ = client.shutdown(Shutdown::Write);
        });
        let mut longest = Duration::ZERO;
        pass(&client, &server, || {
            let since = last_answer.lock().expect("no panic").take();
            longest = longest.max(since.map_or(Duration::ZERO, |since| since.elapsed()));
        });
        let _ = server.shutdown(Shutdown::Write);
        longest
    })
}

fn pass(mut from: &TcpStream, mut to: &TcpStream, mut seen: impl FnMut()) {
    let mut octets = [0; 256];
    while let Ok(length @ 1..) = from.read(&mut octets) {
        seen();
        if to.write_all(&octets[..length]).is_err() {
            return;
        }
    }
}

/// The result of the group.
fn group(site: &Site, tool: &str, options: &str) -> Rate {
    let sent = site.lab.rxe_packets("S1", "sent_pkts");
    let received: Vec<u64> = RECEIVERS.iter().map(|(host, _)| site.lab.rxe_packets(host, "rcvd_pkts")).collect();
    site.start_servers(&RECEIVERS, tool, options);
    let helper = site.helper(&RECEIVERS);
    let output = site.lab.guest_shell("S1", &format!("perftest-client {HELPER} 18515 {tool} {options} -u 19 2>&1"));
    let (code, lines, errors) = helper.ends();
    assert_eq!((code, errors.as_str()), (Some(0), ""), "{lines:?}");
    let servers = site.servers(&RECEIVERS);
    assert!(servers.iter().all(|text| text.contains("status 0")), "{servers:?}");

    // One stream left the source, and each of five receivers got it.
    let sent = site.lab.rxe_packets("S1", "sent_pkts") - sent;
    println!("{tool}: {sent} packets sent for {PACKETS}");
    assert!((PACKETS..PACKETS * 2).contains(&sent), "{sent} packets sent");
    for ((host, _), before) in RECEIVERS.iter().zip(received) {
        let received = site.lab.rxe_packets(host, "rcvd_pkts") - before;
        assert!((PACKETS..PACKETS * 2).contains(&received), "{host}: {received} packets received");
    }
    let [begun, result] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!((&begun["receivers"], &begun["path_mtu"]), (&5.into(), &1024.into()), "{begun}");
    assert_eq!(begun["proxy"], "2001:db8:cc::1");
    let silence = Duration::from_secs_f64(result["seconds"].as_f64().expect("a number"));
    let rate = Rate::new(silence, &output);
    let operation = if tool == "ib_write_bw" { "write" } else { "send" };
    assert_eq!((&result["operation"], &result["receivers"]), (&operation.into(), &5.into()), "{result}");
    if operation == "write" {
        assert_eq!((&result["messages"], &result["message_octets"]), (&MESSAGES.into(), &MESSAGE_OCTETS.into()));
        // The client prints two decimals, and tells no rate if that is 0.
        let told = result["bits_per_second"].as_f64().unwrap_or_default();
        assert!((told - rate.printed).abs() < 1e5, "{told} {output}");
        assert!(servers.iter().all(|text| (average(text) - rate.printed).abs() < 1e5), "{servers:?} {output}");
    }
    rate
}

/// The results of each server on its own, one after the other.
fn unicast(site: &Site, tool: &str, options: &str) -> Vec<Rate> {
    site.start_servers(&RECEIVERS, tool, options);
    let namespace = site.lab.existing("C");
    let rate = |(host, address): &(&str, &str)| {
        site.wait_for_server(host);
        let sockets = namespace.enter(|| (TcpListener::bind("[::]:18515"), TcpStream::connect((*address, 18516))));
        let (listener, server) = sockets.expect("the lab is up");
        let (listener, server) = (listener.expect("a port"), server.expect("a server"));
        let relaying = thread::spawn(move || relay(&listener, server));
        let output = site.lab.guest_shell("S1", &format!("perftest-client {HELPER} 18515 {tool} {options} -u 19 2>&1"));
        Rate::new(relaying.join().expect("no panic"), &output)
    };
    let rates = RECEIVERS.iter().map(rate).collect();
    let servers = site.servers(&RECEIVERS);
    assert!(servers.iter().all(|text| text.contains("status 0")), "{servers:?}");
    rates
}

/// D205, D206: unmodified tools measure a group, beside five runs to each of its receivers on its own. D207: a receiver
/// that joins meanwhile gets nothing.
#[test]
#[ignore = "needs root"]
fn unmodified_tools_measure_a_group() {
    let site = Site::start();
    let options = "-d rxe0 -F -x 1 -m 1024 -s 65536 -n 100";
    // Servers of a SEND poll without -e: five that do leave two processors little time for the rest.
    for (tool, options) in [("ib_write_bw", options.to_owned()), ("ib_send_bw", format!("{options} -e"))] {
        let of_group = group(&site, tool, &options);
        let rates = unicast(&site, tool, &options);
        let in_turn = 1.0 / rates.iter().map(|rate| 1.0 / rate.by_wall_clock).sum::<f64>();
        report(format!("`{tool}` to the group of five"), "Mbit/s", [of_group.by_wall_clock / 1e6]);
        for ((host, _), rate) in RECEIVERS.iter().zip(&rates) {
            report(format!("`{tool}` to {host} alone"), "Mbit/s", [rate.by_wall_clock / 1e6]);
        }
        report(format!("`{tool}` to all five in turn"), "Mbit/s", [in_turn / 1e6]);
        report(format!("`{tool}`: the group by in turn"), "", [of_group.by_wall_clock / in_turn]);
    }
    late_join(&site);
    refused(&site);
}

/// D207: a client cannot pause. Who joins while it runs gets nothing, and the run ends well.
fn late_join(site: &Site) {
    let options = "-d rxe0 -F -x 1 -m 1024 -s 65536 -n 100";
    let members = &RECEIVERS[..4];
    let before = site.lab.rxe_packets("R5", "rcvd_pkts");
    site.start_servers(members, "ib_write_bw", options);
    let mut helper = site.helper(members);
    thread::scope(|scope| {
        let line = format!("perftest-client {HELPER} 18515 ib_write_bw {options} -u 19 2>&1");
        let client = scope.spawn(move || site.lab.guest_shell("S1", &line));
        let mut begun = String::new();
        helper.lines.read_line(&mut begun).expect("text");
        let begun: Value = serde_json::from_str(&begun).expect("JSON");
        let id = u32::try_from(begun["group"].as_u64().expect("a number")).expect("a group");
        let ControllerAccess([url, token_file, ca_file]) = &site.access;
        let token = std::fs::read_to_string(token_file).expect("a token");
        let controller = Client::new(url, Some(token), Some(Path::new(ca_file))).expect("a URL");
        let namespace = site.lab.existing("C");
        let region = Some(MemoryRegion { virtual_address: 0, rkey: 1 });
        let new = NewReceiver { region, ..NewReceiver::new(0x99, 1024) };
        let address = RECEIVERS[4].1.parse().expect("an address");
        let joined = namespace.enter(|| controller.join(id, address, &new)).expect("the lab is up");
        assert_eq!(joined.expect("it may").state, ReceiverState::Joining);
        assert!(average(&client.join().expect("no panic")) >= 0.0);
    });
    let (code, lines, errors) = helper.ends();
    assert_eq!((code, errors.as_str()), (Some(0), ""), "{lines:?}");
    assert_eq!((&lines[0]["receivers"], &lines[0]["messages"]), (&4.into(), &MESSAGES.into()), "{lines:?}");
    assert!(site.servers(members).iter().all(|text| text.contains("status 0")));
    assert_eq!(site.lab.rxe_packets("R5", "rcvd_pkts"), before);
}

/// What a group does not carry is refused by name, and all tools end.
fn refused(site: &Site) {
    let options = "-d rxe0 -F -x 1 -m 1024 -s 65536 -n 100 -q 2";
    site.start_servers(&RECEIVERS, "ib_write_bw", options);
    let helper = site.helper(&RECEIVERS);
    let output =
        site.lab.command("shell", &["S1", "--", &format!("perftest-client {HELPER} 18515 ib_write_bw {options} 2>&1")]);
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let (code, lines, errors) = helper.ends();
    assert_eq!(code, Some(1), "{lines:?}");
    assert!(errors.contains("the client has several queue pairs: run it with -q 1"), "{errors}");
    let servers = site.servers(&RECEIVERS);
    assert!(servers.iter().all(|text| text.contains("status 1")), "{servers:?}");
}

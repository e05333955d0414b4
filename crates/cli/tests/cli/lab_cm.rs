//! `srdma cm` between programs of librdmacm (`examples/rdma_cm.c`): a client that connects and sends, and five servers that
//! listen, each in a guest with the soft-RoCE of an unmodified Linux kernel.

use crate::own_lab::{ControllerAccess, JsonLines, Lab};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::BufRead;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Emulated machines are slow.
const PATIENCE: Duration = Duration::from_secs(120);
const RECEIVERS: [&str; 5] = ["R1", "R2", "R3", "R4", "R5"];
const OCTETS: u64 = 1_000_003;
/// Path MTU of the hosts' links, as Linux computes it.
const PATH_MTU: u64 = 4096;

/// A shipped lab, and the addresses of its group.
#[derive(Clone, Copy)]
struct Addresses {
    lab: &'static str,
    proxy: &'static str,
    client: &'static str,
    receivers: [&'static str; 5],
    /// Fields of tshark.
    fields: [&'static str; 2],
}

const IPV6: Addresses = Addresses {
    lab: "figure1-cm-rxe",
    proxy: "2001:db8:cc::1",
    client: "2001:db8:aa::1",
    receivers: ["2001:db8:bb::1", "2001:db8:bb::2", "2001:db8:bb::3", "2001:db8:bb::4", "2001:db8:bb::5"],
    fields: ["ipv6.src", "ipv6.dst"],
};

const IPV4: Addresses = Addresses {
    lab: "figure1-ipv4-rxe",
    proxy: "10.255.0.1",
    client: "10.1.0.1",
    receivers: ["10.2.1.1", "10.2.2.1", "10.2.3.1", "10.2.4.1", "10.2.5.1"],
    fields: ["ip.src", "ip.dst"],
};

struct Site {
    addresses: Addresses,
    lab: Lab,
    access: ControllerAccess,
    // Removed at the end.
    _directory: tempfile::TempDir,
}

impl Site {
    fn start(addresses: Addresses) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let files = directory.path().join("files");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs/rxe/cm.sh");
        let status = Command::new("sh").arg(script).arg(&files).status().expect("sh runs");
        assert!(status.success());
        let lab = Lab::new(addresses.lab, &[]);
        lab.up_with(&["--guest-files", files.to_str().expect("UTF-8")]);
        let access = lab.controller();
        Site { addresses, lab, access, _directory: directory }
    }

    /// Runs a line in a guest; gives its exit status as well.
    fn try_shell(&self, host: &str, line: &str) -> (bool, String) {
        let output = self.lab.command("shell", &[host, "--", line]);
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).expect("text"))
    }

    /// Starts programs that listen, and waits until they do.
    fn listen(&self, receivers: &[&str]) {
        for host in receivers {
            let line = "rm -f /tmp/got /tmp/server; \
                        (rdma_cm listen 7471 /tmp/got; echo status $?) >/tmp/server 2>&1 </dev/null &";
            self.lab.guest_shell(host, line);
        }
        for host in receivers {
            self.lab.guest_shell(host, "until grep -q listening /tmp/server; do usleep 50000; done");
        }
    }

    /// What a program has printed, after its end.
    #[track_caller]
    fn ended(&self, host: &str) -> String {
        let begin = Instant::now();
        loop {
            let text = self.lab.guest_shell(host, "cat /tmp/server");
            if text.contains("status ") {
                return text;
            }
            assert!(begin.elapsed() < PATIENCE, "{host}: {text}");
            sleep(Duration::from_millis(200));
        }
    }

    /// Starts `srdma cm` at C for so many clients of all receivers.
    fn service(&self, clients: u32) -> JsonLines {
        self.service_at(self.addresses.proxy, &self.addresses.receivers, clients)
    }

    fn service_at(&self, proxies: &str, receivers: &[&str], clients: u32) -> JsonLines {
        let servers = receivers.join(",");
        let namespace = self.lab.existing("C");
        let mut command = namespace.command(env!("CARGO_BIN_EXE_srdma"));
        self.access.set(&mut command);
        command.args(["cm", "--proxy", proxies, "--port", "7471", "--servers", &servers, "--json"]);
        command.args(["--clients", &clients.to_string()]);
        JsonLines::start(command, "answering")
    }
}

/// The lines that end with this key first.
fn until(service: &mut JsonLines, key: &str) -> Vec<Value> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        service.lines.read_line(&mut line).expect("text");
        lines.push(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}")));
        if line.starts_with(&format!("{{\"{key}\":")) {
            return lines;
        }
    }
}

/// What tshark reads of the messages on a link, one line for each.
fn messages(path: &Path, addresses: &Addresses) -> Vec<String> {
    let mut tshark = Command::new("tshark");
    tshark.args(["-n", "-Y", "infiniband.mad", "-T", "fields", "-E", "separator=,", "-r"]).arg(path);
    let [source, destination] = addresses.fields;
    let fields = [
        source,
        destination,
        "infiniband.mad.attributeid",
        "infiniband.cm.req.localqpn",
        "infiniband.cm.req.startpsn",
        "infiniband.cm.rep.localqpn",
        "infiniband.cm.rep.startpsn",
        "_ws.malformed",
    ];
    let output = tshark.args(fields.iter().flat_map(|field| ["-e", field])).output().expect("tshark runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

/// D250, D251, D253: programs that connect to the Proxy Address and send reach five programs that listen, one after the
/// other by one service: the second connection of the same hosts has other numbers (D271). None of them knows of groups,
/// and each receiver expects a PSN that its librdmacm has drawn (D270).
#[test]
#[ignore = "needs root"]
fn programs_of_librdmacm_are_a_group() {
    are_a_group(&Site::start(IPV6));
}

/// D292: the same over IPv4.
#[test]
#[ignore = "needs root"]
fn programs_of_librdmacm_are_a_group_of_ipv4() {
    are_a_group(&Site::start(IPV4));
}

fn are_a_group(site: &Site) {
    let line = format!("head -c {OCTETS} /dev/urandom >/tmp/file; sha256sum /tmp/file");
    let digest = site.lab.guest_shell("S1", &line).split_whitespace().next().expect("a digest").to_owned();
    let capturing = site.lab.starts_capture();
    let mut service = site.service(3);
    transfer(site, &mut service, &digest);
    transfer(site, &mut service, &digest);
    refused(site, service);
    capturing.ends();
    exchange_on_the_wire(site);
}

/// D294: two clients at the same time, each at a Proxy Address of its own. The first one is connected, and has sent half
/// of its file, while the second one connects, sends and disconnects; then the first one sends the rest.
#[test]
#[ignore = "needs root"]
fn two_clients_have_a_group_each_at_the_same_time() {
    let site = Site::start(IPV4);
    let proxies = ["10.255.0.1", "10.255.0.2"];
    let receivers = [("R1", "10.2.1.1"), ("R2", "10.2.2.1"), ("R3", "10.2.3.1")];
    let [first, second] = ["first", "second"].map(|name| {
        let line = format!("head -c {OCTETS} /dev/urandom >/tmp/{name}; sha256sum /tmp/{name}");
        site.lab.guest_shell("S1", &line).split_whitespace().next().expect("a digest").to_owned()
    });
    for (host, _) in receivers {
        let line = "(rdma_cm listen 7471 /tmp/got1 /tmp/got2; echo status $?) >/tmp/server 2>&1 </dev/null &";
        site.lab.guest_shell(host, line);
        site.lab.guest_shell(host, "until grep -q listening /tmp/server; do usleep 50000; done");
    }
    let mut service = site.service_at(&proxies.join(","), &receivers.map(|(_, address)| address), 1);
    let half = OCTETS / 2;
    let feed = format!(
        "mkfifo /tmp/pipe; \
         (head -c {half} /tmp/first; until [ -e /tmp/go ]; do usleep 50000; done; tail -c +{} /tmp/first) \
         >/tmp/pipe 2>/dev/null </dev/null & \
         (rdma_cm connect {} 7471 /tmp/pipe; echo status $?) >/tmp/client 2>&1 </dev/null &",
        half + 1,
        proxies[0]
    );
    site.lab.guest_shell("S1", &feed);
    let lines = until(&mut service, "connected");
    let connected = lines.last().expect("a line");
    assert_eq!((&connected["connected"], &connected["proxy"]), (&"10.1.0.1".into(), &proxies[0].into()));
    let output = site.lab.guest_shell("S1", &format!("rdma_cm connect {} 7471 /tmp/second", proxies[1]));
    assert!(output.contains(&format!("sent {OCTETS} octets")), "{output}");
    let is_connected = site.lab.guest_shell("S1", "cat /tmp/client");
    assert!(is_connected.contains("ESTABLISHED") && !is_connected.contains("DISCONNECTED"), "{is_connected}");
    site.lab.guest_shell("S1", "touch /tmp/go");
    let (code, lines, errors) = service.ends();
    assert_eq!(code, Some(0), "{lines:?} {errors}");
    // The group of the second client, and both results: its own first.
    let results: Vec<&Value> = lines.iter().filter(|line| line.get("seconds").is_some()).collect();
    let of = results.iter().map(|result| result["proxy"].as_str().expect("an address")).collect::<Vec<_>>();
    assert_eq!(of, [proxies[1], proxies[0]], "{lines:?}");
    assert!(results.iter().all(|result| result["receivers"] == 3 && result["client"] == "10.1.0.1"), "{lines:?}");
    for (host, _) in receivers {
        let text = site.ended(host);
        assert!(text.matches(&format!("received {OCTETS} octets")).count() == 2 && text.contains("status 0"), "{text}");
        let digests = site.lab.guest_shell(host, "sha256sum /tmp/got1 /tmp/got2");
        let digests: Vec<&str> = digests.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(digests, [first.as_str(), second.as_str()], "{host}");
    }
}

/// The client connects, sends a file and disconnects; every receiver has it.
fn transfer(site: &Site, service: &mut JsonLines, digest: &str) {
    let (proxy, client) = (site.addresses.proxy, site.addresses.client);
    let sent = site.lab.rxe_packets("S1", "sent_pkts");
    site.listen(&RECEIVERS);
    let output = site.lab.guest_shell("S1", &format!("rdma_cm connect {proxy} 7471 /tmp/file"));
    // What all programs answered comes to the client.
    assert!(output.contains("RDMA_CM_EVENT_ESTABLISHED 0 [ready]"), "{output}");
    assert!(output.contains(&format!("sent {OCTETS} octets")), "{output}");
    let lines = until(service, "answering");
    let [begun, connected, result, _] = &lines[..] else { panic!("{lines:?}") };
    let count = RECEIVERS.len();
    assert_eq!((&begun["receivers"], &begun["path_mtu"]), (&count.into(), &PATH_MTU.into()), "{begun}");
    assert_eq!((&connected["connected"], &result["receivers"]), (&client.into(), &count.into()));
    assert_eq!((&result["client"], &result["refused"]), (&client.into(), &serde_json::json!({})));
    for host in RECEIVERS {
        let text = site.ended(host);
        assert!(text.contains("RDMA_CM_EVENT_CONNECT_REQUEST 0 [file]"), "{host}: {text}");
        assert!(text.contains(&format!("received {OCTETS} octets")) && text.contains("status 0"), "{host}: {text}");
        assert!(site.lab.guest_shell(host, "sha256sum /tmp/got").starts_with(digest), "{host}");
    }
    // One stream left the source.
    let packets = OCTETS.div_ceil(PATH_MTU);
    let sent = site.lab.rxe_packets("S1", "sent_pkts") - sent;
    println!("{count} receivers: {sent} packets sent, {packets} of data");
    assert!((packets..2 * packets).contains(&sent), "{sent} packets for {count} receivers");
}

/// A port at which nothing listens, at one receiver of five, is told to the client; and all end.
fn refused(site: &Site, service: JsonLines) {
    site.listen(&RECEIVERS[..4]);
    let Addresses { proxy, receivers: [.., last], .. } = site.addresses;
    let (is_well, output) = site.try_shell("S1", &format!("rdma_cm connect {proxy} 7471 /tmp/file"));
    let rejected = format!("RDMA_CM_EVENT_REJECTED 28 [{last}: no program listens");
    assert!(!is_well && output.contains(&rejected), "{output}");
    let (code, lines, errors) = service.ends();
    assert_eq!((code, lines.len()), (Some(1), 1), "{lines:?}");
    let expected = format!("server {last} has rejected the connection: no program listens");
    assert!(errors.contains(&expected) && lines[0]["error"].as_str().is_some_and(|error| error.contains(&expected)));
    for host in &RECEIVERS[..4] {
        assert!(site.ended(host).contains("status"), "{host}");
    }
}

/// tshark reads the messages at the client and at a receiver as those of one connection each, to the Proxy Address.
fn exchange_on_the_wire(site: &Site) {
    let Addresses { proxy, client, receivers: [receiver, ..], .. } = site.addresses;
    let at_client = messages(&site.lab.capture("S1-N6"), &site.addresses);
    let of = |lines: &[String], from: &str, to: &str, attribute: &str| -> Vec<Vec<String>> {
        let fields = |line: &String| line.split(',').map(str::to_owned).collect::<Vec<_>>();
        let all = lines.iter().map(fields);
        all.filter(|fields| fields[0] == from && fields[1] == to && fields[2] == attribute).collect()
    };
    let asked = of(&at_client, client, proxy, "0x0010");
    let answered = of(&at_client, proxy, client, "0x0013");
    assert!(asked.len() >= 3 && answered.len() >= 2, "{at_client:#?}");
    for attribute in ["0x0014", "0x0015"] {
        assert!(of(&at_client, client, proxy, attribute).len() >= 2, "{attribute}: {at_client:#?}");
    }
    assert!(of(&at_client, proxy, client, "0x0011").len() >= 3, "{at_client:#?}");
    assert!(of(&at_client, proxy, client, "0x0012").len() == 1, "{at_client:#?}");
    let at_receiver = messages(&site.lab.capture("N1-R1"), &site.addresses);
    let asked_receiver = of(&at_receiver, proxy, receiver, "0x0010");
    assert!(asked_receiver.len() >= 2, "{at_receiver:#?}");
    // The receiver is asked with the Designated QPN and the PSN that the client is answered.
    assert_eq!((&asked_receiver[0][3], &asked_receiver[0][4]), (&answered[0][5], &answered[0][6]));
    let expected = of(&at_receiver, receiver, proxy, "0x0013");
    assert_ne!(expected[0][6], answered[0][6], "librdmacm draws the PSN that its queue pair expects");
    // A REQ may come again.
    let qpns: BTreeSet<&str> = asked_receiver.iter().map(|fields| fields[3].as_str()).collect();
    assert_eq!(qpns.len(), 3, "each connection has a Designated QPN of its own: {at_receiver:#?}");
    assert!(at_client.iter().chain(&at_receiver).all(|line| line.ends_with(',')), "nothing is malformed");
}

//! Memory of a controller whose clients hold TLS connections at the worst (D113).

use crate::in_etcd::again;
use crate::running::*;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use srdma_controller::{Config, OnDisk, StateStore, Tls, run};
use srdma_testkit::seeds;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The folder of the controller's store.
const FOLDER: &str = "SRDMA_TEST_TLS_MEMORY";

/// Connections of an attack: 200 in the fast tier.
fn connections() -> usize {
    5 * seeds::count(200) as usize
}

/// Budgets of bodies, responses, events and streams (docs/controller.md, "Memory"), and the target, KiB.
const BUDGETS_KIB: u64 = (64 + 80 + 16 + 16) << 10;
const MAX_KIB: u64 = 512 << 10;

/// A controller in this process, which the test below starts and kills. It writes its address when it is ready.
fn control(folder: &Path) {
    let store = Arc::new(OnDisk::open(&folder.join("store")).unwrap());
    let tls = Some(Tls { certificate: folder.join("certificate.pem"), key: folder.join("key.pem") });
    let config = Config { tls, connections_per_client: 2 * connections(), ..config() };
    run(config, StateStore::Own(store), None, || std::process::exit(1), &mut |addresses| {
        std::fs::write(folder.join("writing"), addresses[0].to_string()).unwrap();
        std::fs::rename(folder.join("writing"), folder.join("ready")).unwrap();
    })
    .unwrap();
}

/// What the clients make the controller hold.
#[derive(Clone, Copy, Debug)]
enum Attack {
    /// A handshake, and nothing more.
    Idle,
    /// A ClientHello of 64 KiB without its end.
    Handshake,
    /// The head of a request of 8 KiB and a record of 16 KiB, both without their ends.
    Head,
    /// The same with responses that are not read.
    Responses,
}

/// Octets of a record of a type, which announces one octet more than it has.
fn unfinished_record(kind: u8, octets: usize) -> Vec<u8> {
    let length = u16::try_from(octets + 1).unwrap().to_be_bytes();
    [vec![kind, 3, 3, length[0], length[1]], vec![0; octets]].concat()
}

/// A message of `length` octets in records of 16 KiB, without its last one.
fn unfinished_hello(length: usize) -> Vec<u8> {
    let mut message = vec![1, 0, 0xff, 0xf0];
    message.resize(length, 0);
    let records = message.chunks(16_384).map(|part| {
        let length = u16::try_from(part.len()).unwrap().to_be_bytes();
        [&[22, 3, 1, length[0], length[1]], part].concat()
    });
    records.collect::<Vec<_>>().concat()
}

impl Attack {
    fn connect(self, address: SocketAddr, tls: &Arc<ClientConfig>) -> TcpStream {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        if let Attack::Handshake = self {
            stream.write_all(&unfinished_hello(0xff00)).unwrap();
            return stream;
        }
        let mut client = ClientConnection::new(Arc::clone(tls), ServerName::try_from("localhost").unwrap()).unwrap();
        while client.is_handshaking() {
            client.complete_io(&mut stream).unwrap();
        }
        let text = match self {
            Attack::Idle | Attack::Handshake => return stream,
            Attack::Head => String::new(),
            Attack::Responses => "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(20),
        };
        let head = format!("{text}GET / HTTP/1.1\r\nhost: localhost\r\nx: {}", "a".repeat(8000));
        client.writer().write_all(head.as_bytes()).unwrap();
        while client.wants_write() {
            client.write_tls(&mut stream).unwrap();
        }
        stream.write_all(&unfinished_record(23, 16_000)).unwrap();
        if let Attack::Responses = self {
            // The first response has begun.
            stream.read_exact(&mut [0; 300]).unwrap();
        }
        stream
    }
}

/// Resident memory of a process, KiB (proc(5)), when it does not grow any more.
fn resident_kib(process: u32) -> u64 {
    let now = || {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    until("the memory does not grow any more", || {
        let before = now();
        std::thread::sleep(Duration::from_millis(300));
        (now() <= before + before / 200).then(now)
    })
}

/// D113: what TLS connections take at most is below 512 MiB, with all budgets.
#[test]
fn tls_connections_take_little_memory() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return control(Path::new(&folder));
    }
    let connections = connections();
    for attack in [Attack::Idle, Attack::Handshake, Attack::Head, Attack::Responses] {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| folder.path().join(name));
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        srdma_toml_error::write_private(&key, &made.signing_key.serialize_pem()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(&certificate).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let tls = Arc::new(tls.with_root_certificates(roots).with_no_client_auth());
        let name = "tls_memory::tls_connections_take_little_memory";
        let mut child = again(name, FOLDER, folder.path().to_str().unwrap());
        let address = until("the controller is ready", || std::fs::read_to_string(folder.path().join("ready")).ok());
        let address: SocketAddr = address.parse().unwrap();
        drop(attack.connect(address, &tls));
        let before = resident_kib(child.id());
        let held: Vec<_> = (0..connections).map(|_| attack.connect(address, &tls)).collect();
        let each = resident_kib(child.id()).saturating_sub(before) / connections as u64;
        child.kill().unwrap();
        child.wait().unwrap();
        drop(held);
        let all = Config::default().connections as u64 * each + BUDGETS_KIB;
        println!("{attack:?}: {each} KiB for each of {connections} connections, {all} KiB in all");
        assert!(all <= MAX_KIB, "{attack:?}: {each} KiB for each connection, {all} KiB in all");
    }
}

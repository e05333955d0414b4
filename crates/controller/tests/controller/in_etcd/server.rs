//! A real etcd in a folder of its own.

use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use srdma_controller::{EtcdTrust, Tls};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) struct Server {
    pub(crate) port: u16,
    peers: u16,
    folder: TempDir,
    child: Child,
}

impl Server {
    pub(crate) fn start() -> Self {
        let (folder, port, peers) = (TempDir::new().unwrap(), free_port(), free_port());
        let child = spawn(&folder, port, peers);
        let server = Server { port, peers, folder, child };
        server.wait();
        server
    }

    /// Stops it, and starts it again half a second later.
    pub(crate) fn restart(&mut self) {
        self.stop();
        let (folder, port, peers) = (self.folder.path().to_owned(), self.port, self.peers);
        std::thread::sleep(Duration::from_millis(500));
        self.child = command(&folder, &format!("http://127.0.0.1:{port}"), peers).spawn().unwrap();
    }

    fn stop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The keys with this prefix.
    pub(crate) fn keys(&self, prefix: &str) -> Vec<String> {
        let end = format!("{}\u{7f}", &prefix[..prefix.len() - 1]);
        let body = serde_json::json!({"key": base64(prefix), "range_end": base64(&end), "keys_only": true});
        let response = self.send("kv/range", &body).expect("a response of etcd");
        let keys = response["kvs"].as_array().cloned().unwrap_or_default();
        let text = |key: &serde_json::Value| {
            let key = base64::Engine::decode(&base64::prelude::BASE64_STANDARD, key["key"].as_str().unwrap());
            String::from_utf8(key.unwrap()).unwrap()
        };
        keys.iter().map(text).collect()
    }

    /// The URL of the controller that leads.
    pub(crate) fn leader(&self) -> Option<String> {
        let response =
            self.send("kv/range", &serde_json::json!({"key": base64("srdma/leader")})).expect("a response of etcd");
        let value = response["kvs"][0]["value"].as_str()?;
        let value = base64::Engine::decode(&base64::prelude::BASE64_STANDARD, value).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&value).unwrap();
        value["url"].as_str().map(str::to_owned)
    }

    pub(crate) fn delete(&self, key: &str) {
        let response =
            self.send("kv/deleterange", &serde_json::json!({"key": base64(key)})).expect("a response of etcd");
        assert_eq!(response["deleted"], "1", "{key} does not exist");
    }

    fn send(&self, path: &str, body: &serde_json::Value) -> Option<serde_json::Value> {
        let sent = ureq::post(format!("{}/v3/{path}", self.url())).send(body.to_string());
        let text = sent.ok()?.body_mut().read_to_string().ok()?;
        serde_json::from_str(&text).ok()
    }

    fn wait(&self) {
        let since = Instant::now();
        while self.send("kv/range", &serde_json::json!({"key": base64("x")})).is_none() {
            assert!(since.elapsed() < Duration::from_secs(60), "etcd does not respond");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn spawn(folder: &TempDir, port: u16, peers: u16) -> Child {
    let child = command(folder.path(), &format!("http://127.0.0.1:{port}"), peers).spawn();
    child.unwrap_or_else(|error| panic!("cannot start etcd ({error}): install the package etcd-server"))
}

fn command(folder: &Path, clients: &str, peers: u16) -> Command {
    let peers = format!("http://127.0.0.1:{peers}");
    let mut command = Command::new("etcd");
    command.arg("--data-dir").arg(folder.join("data"));
    command.args(["--listen-client-urls", clients, "--advertise-client-urls", clients]);
    command.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
    command.args(["--initial-cluster", &format!("default={peers}")]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn base64(text: &str) -> String {
    base64::Engine::encode(&base64::prelude::BASE64_STANDARD, text)
}

/// An etcd with TLS only, and only for clients with a certificate of its CA.
pub(crate) struct Secured {
    port: u16,
    folder: TempDir,
    child: Child,
}

impl Secured {
    pub(crate) fn start() -> Self {
        let (folder, port, peers) = (TempDir::new().unwrap(), free_port(), free_port());
        make_certificates(folder.path());
        let file = |name: &str| folder.path().join(name);
        let clients = format!("https://127.0.0.1:{port}");
        let mut command = command(folder.path(), &clients, peers);
        command.arg("--cert-file").arg(file("server.pem")).arg("--key-file").arg(file("server.key"));
        command.arg("--client-cert-auth").arg("--trusted-ca-file").arg(file("ca.pem"));
        let child = command.spawn().unwrap();
        Secured { port, folder, child }
    }

    pub(crate) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Configuration of a controller with or without the CA bundle, and with or without a client certificate.
    pub(crate) fn trust(&self, has_ca: bool, has_certificate: bool) -> EtcdTrust {
        let file = |name: &str| self.folder.path().join(name);
        let client = Tls { certificate: file("client.pem"), key: file("client.key") };
        EtcdTrust { ca: has_ca.then(|| file("ca.pem")), client: has_certificate.then_some(client) }
    }
}

impl Drop for Secured {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// A CA and certificates for server and client. etcd's gateway is a client of etcd with the server's certificate.
fn make_certificates(folder: &Path) {
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    write("ca.pem", authority.self_signed(&key).unwrap().pem());
    let authority = Issuer::new(authority, key);
    for name in ["server", "client"] {
        let key = KeyPair::generate().unwrap();
        let mut own = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        own.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        write(&format!("{name}.pem"), own.signed_by(&key, &authority).unwrap().pem());
        write(&format!("{name}.key"), key.serialize_pem());
    }
}

/// A port without a listener.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

//! A real etcd in a folder of its own.

use std::net::TcpListener;
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
        self.child = command(&folder, port, peers).spawn().unwrap();
    }

    fn stop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The keys that begin so.
    pub(crate) fn keys(&self, beginning: &str) -> Vec<String> {
        let end = format!("{}\u{7f}", &beginning[..beginning.len() - 1]);
        let question = serde_json::json!({"key": base64(beginning), "range_end": base64(&end), "keys_only": true});
        let answer = self.ask("kv/range", &question).expect("etcd answers");
        let keys = answer["kvs"].as_array().cloned().unwrap_or_default();
        let text = |key: &serde_json::Value| {
            let key = base64::Engine::decode(&base64::prelude::BASE64_STANDARD, key["key"].as_str().unwrap());
            String::from_utf8(key.unwrap()).unwrap()
        };
        keys.iter().map(text).collect()
    }

    pub(crate) fn delete(&self, key: &str) {
        let answer = self.ask("kv/deleterange", &serde_json::json!({"key": base64(key)})).expect("etcd answers");
        assert_eq!(answer["deleted"], "1", "{key} was not there");
    }

    fn ask(&self, path: &str, question: &serde_json::Value) -> Option<serde_json::Value> {
        let sent = ureq::post(format!("{}/v3/{path}", self.url())).send(question.to_string());
        let text = sent.ok()?.body_mut().read_to_string().ok()?;
        serde_json::from_str(&text).ok()
    }

    fn wait(&self) {
        let since = Instant::now();
        while self.ask("kv/range", &serde_json::json!({"key": base64("x")})).is_none() {
            assert!(since.elapsed() < Duration::from_secs(30), "etcd does not answer");
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
    let child = command(folder.path(), port, peers).spawn();
    child.unwrap_or_else(|error| panic!("cannot start etcd ({error}): install the package etcd-server"))
}

fn command(folder: &std::path::Path, port: u16, peers: u16) -> Command {
    let (clients, peers) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{peers}"));
    let mut command = Command::new("etcd");
    command.arg("--data-dir").arg(folder.join("data"));
    command.args(["--listen-client-urls", &clients, "--advertise-client-urls", &clients]);
    command.args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers]);
    command.args(["--initial-cluster", &format!("default={peers}")]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn base64(text: &str) -> String {
    base64::Engine::encode(&base64::prelude::BASE64_STANDARD, text)
}

/// A port that nobody listens at.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

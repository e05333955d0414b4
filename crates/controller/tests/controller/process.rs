//! Signals of a controller in a process of its own (D106).

use crate::in_etcd::again;
use crate::running::until;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sha2::{Digest, Sha256};
use srdma_api::{AuditPage, Client, GroupPage};
use srdma_controller::{Config, OnDisk, Row, StateStore, Store, StoreError, Write, run};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The folder of the configuration and the store.
const FOLDER: &str = "SRDMA_TEST_PROCESS";

/// A store whose audit log cannot be read: requests for it block a thread for good.
struct Hanging(OnDisk);

impl Store for Hanging {
    fn rows(&self, prefix: &str, after: Option<&str>, most: usize) -> Result<Vec<Row>, StoreError> {
        while prefix.starts_with("audit") {
            thread::park();
        }
        self.0.rows(prefix, after, most)
    }

    fn commit(&self, writes: &[&Write]) -> Result<(), StoreError> {
        self.0.commit(writes)
    }

    fn reopen(&self) -> Result<(), StoreError> {
        self.0.reopen()
    }
}

/// The controller, which the tests below start. It writes its address to a file.
fn control(folder: &Path) {
    let store = Hanging(OnDisk::open(&folder.join("store")).unwrap());
    let config = Config::read(&folder.join("controller.toml")).unwrap();
    run(config, StateStore::Own(Arc::new(store)), None, || std::process::exit(1), &mut |addresses| {
        std::fs::write(folder.join("part"), addresses[0].to_string()).unwrap();
        std::fs::rename(folder.join("part"), folder.join("ready")).unwrap();
    })
    .unwrap();
}

struct Controller {
    child: Child,
    folder: tempfile::TempDir,
    address: String,
}

impl Controller {
    /// Starts the test again as a controller with this configuration.
    fn start(test: &str, configuration: impl FnOnce(&Path) -> String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let text = configuration(folder.path());
        std::fs::write(folder.path().join("controller.toml"), text).unwrap();
        let child = again(&format!("process::{test}"), FOLDER, folder.path().to_str().unwrap());
        let address = until("the controller is ready", || std::fs::read_to_string(folder.path().join("ready")).ok());
        Controller { child, folder, address }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    /// Its end after SIGTERM.
    fn end(&mut self) -> ExitStatus {
        self.signal(Signal::SIGTERM);
        until("the controller has ended", || self.child.try_wait().unwrap())
    }

    fn accepts(&self, token: &str) -> bool {
        let client = Client::new(&format!("http://{}", self.address), Some(token.to_owned()), None).unwrap();
        match client.get::<GroupPage>("/v1/groups") {
            Ok(_) => true,
            Err(error) => {
                assert_eq!(error.problem().map(|problem| problem.name()), Some("invalid-token"), "{error}");
                false
            }
        }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn child() -> bool {
    std::env::var_os(FOLDER).map(|folder| control(Path::new(&folder))).is_some()
}

/// Tokens of these names, which are the tokens as well.
fn tokens(names: &[&str]) -> String {
    let token = |name: &&str| {
        let sha256 = hex::encode(Sha256::digest(name));
        format!("[[token]]\nname = \"{name}\"\nrole = \"admin\"\nsha256 = \"{sha256}\"\n")
    };
    format!("listen = [\"127.0.0.1:0\"]\n{}", names.iter().map(token).collect::<String>())
}

#[test]
fn sighup_replaces_tokens() {
    if child() {
        return;
    }
    let test = "sighup_replaces_tokens";
    let mut controller = Controller::start(test, |_| tokens(&["old", "both"]));
    assert!(controller.accepts("old") && controller.accepts("both") && !controller.accepts("new"));
    let get = |path: &str, token: &str| {
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n")
    };
    let mut open = TcpStream::connect(&controller.address).unwrap();
    open.write_all(get("/v1/events", "old").as_bytes()).unwrap();
    let is_accepted = |stream: &mut TcpStream| {
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        &status == b"HTTP/1.1 200"
    };
    assert!(is_accepted(&mut open));
    // A client that is about to send its first request is not disconnected.
    let mut early = TcpStream::connect(&controller.address).unwrap();
    early.write_all(b"GET /v1/gro").unwrap();
    std::fs::write(controller.file("controller.toml"), tokens(&["new", "both"])).unwrap();
    controller.signal(Signal::SIGHUP);
    until("the new token is accepted", || controller.accepts("new").then_some(()));
    assert!(!controller.accepts("old") && controller.accepts("both"));
    // The stream of events, which never ends by itself, ends since its token was withdrawn.
    open.read_to_end(&mut Vec::new()).unwrap();
    early.write_all(&get("/v1/groups", "both").as_bytes()["GET /v1/gro".len()..]).unwrap();
    assert!(is_accepted(&mut early));
    assert_eq!(controller.end().code(), Some(0));
}

/// The certificate of new connections is the file's; one that does not match its key is refused.
#[test]
fn sighup_replaces_the_certificate() {
    if child() {
        return;
    }
    let write = |folder: &Path, name: &str| {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        std::fs::write(folder.join(format!("{name}.pem")), made.cert.pem()).unwrap();
        let key = folder.join(format!("{name}.key"));
        srdma_toml_error::write_private(&key, &made.signing_key.serialize_pem()).unwrap();
    };
    let mut controller = Controller::start("sighup_replaces_the_certificate", |folder| {
        write(folder, "served");
        std::fs::copy(folder.join("served.pem"), folder.join("first.pem")).unwrap();
        let [certificate, key] = ["served.pem", "served.key"].map(|name| folder.join(name));
        let (certificate, key) = (certificate.display(), key.display());
        let tls = format!("[tls]\ncertificate = \"{certificate}\"\nkey = \"{key}\"\n");
        "listen = [\"127.0.0.1:0\"]\n".to_owned() + &tls
    });
    let port = controller.address.rsplit_once(':').unwrap().1.to_owned();
    let is_served = |controller: &Controller, name: &str| {
        let url = format!("https://localhost:{port}");
        let client = Client::new(&url, None, Some(&controller.file(name))).unwrap();
        client.get::<GroupPage>("/v1/groups").is_ok()
    };
    assert!(is_served(&controller, "first.pem"));
    // The certificate of another key.
    write(controller.folder.path(), "other");
    std::fs::copy(controller.file("other.pem"), controller.file("served.pem")).unwrap();
    controller.signal(Signal::SIGHUP);
    assert!(is_served(&controller, "first.pem"));
    std::fs::copy(controller.file("other.key"), controller.file("served.key")).unwrap();
    controller.signal(Signal::SIGHUP);
    until("the new certificate is served", || is_served(&controller, "other.pem").then_some(()));
    assert!(!is_served(&controller, "first.pem"));
    assert_eq!(controller.end().code(), Some(0));
}

/// D106: Requests that block every thread of the runtime, and connections that clients keep, do not delay the end.
#[test]
fn sigterm_ends_a_controller_whose_requests_hang() {
    if child() {
        return;
    }
    let test = "sigterm_ends_a_controller_whose_requests_hang";
    let mut controller = Controller::start(test, |_| "listen = [\"127.0.0.1:0\"]\n".to_owned());
    let url = format!("http://{}", controller.address);
    let idle = TcpStream::connect(&controller.address).unwrap();
    let workers = thread::available_parallelism().unwrap().get();
    let hanging = (0..workers + 2).map(|_| {
        let mut stream = TcpStream::connect(&controller.address).unwrap();
        stream.write_all(b"GET /v1/audit HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        stream
    });
    let hanging: Vec<TcpStream> = hanging.collect();
    until("requests hang", || {
        let client = Client::new(&url, None, None).unwrap().with_timeout(Duration::from_millis(300));
        client.get::<AuditPage>("/v1/audit").is_err().then_some(())
    });
    assert_eq!(controller.end().code(), Some(0));
    drop((idle, hanging));
}

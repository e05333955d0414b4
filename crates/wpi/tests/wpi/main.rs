//! A driver by its sockets, without a network.

mod contract;
mod foreign;
mod refusals;
mod sockets;

use srdma::DeviceOptions;
use srdma_wpi::messages::NodeStageWeightRequest;
use srdma_wpi::{CallError, Client, Options, Service};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Longest wait for an event.
const PATIENCE: Duration = Duration::from_secs(60);

/// A driver of this process, whose controller is not there.
struct Running {
    service: Service,
    directory: tempfile::TempDir,
}

fn options(directory: &Path) -> Options {
    Options {
        socket_directory: directory.join("sockets"),
        socket_group: None,
        own_hosts: vec!["node-1".to_owned(), "10.0.0.1".to_owned()],
        listen: None,
        is_open: false,
        peer_listen: "[::1]:0".parse().expect("an address"),
        memory_octets: 1 << 20,
        source_directory: Some(directory.join("models")),
        timeout: Duration::from_secs(5),
        // Port 1 of this machine: no controller.
        device: DeviceOptions {
            address: Some("::1".parse().expect("an address")),
            ..DeviceOptions::new("http://[::1]:1")
        },
        toward: None,
        proxy: None,
    }
}

impl Running {
    fn start() -> Self {
        Running::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Options)) -> Self {
        let directory = tempfile::tempdir_in("/tmp").expect("a directory");
        std::fs::create_dir(directory.path().join("models")).expect("a directory");
        let mut options = options(directory.path());
        change(&mut options);
        Running { service: Service::start(&options).expect("it starts"), directory }
    }

    fn socket(&self, name: &str) -> PathBuf {
        self.directory.path().join("sockets").join(name)
    }

    fn client(&self) -> Client {
        Client::by_socket(&self.socket("wpi-grpc.sock")).expect("it listens")
    }

    fn peer(&self) -> String {
        self.service.peer_address().to_string()
    }

    fn consumer(&self, buffer: &str, arguments: &[&str]) -> Command {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wpi/consumer.py");
        let mut command = Command::new("/usr/bin/python3");
        command.arg(script).arg(self.directory.path().join("sockets")).arg(buffer).args(arguments);
        command
    }
}

fn stage(claim: &str, buffer: &str, octets: u64) -> NodeStageWeightRequest {
    NodeStageWeightRequest {
        claim_id: claim.to_owned(),
        buffer_id: buffer.to_owned(),
        size_bytes: octets,
        shard_index: -1,
        ..Default::default()
    }
}

/// A refusal with its code of gRPC.
#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, CallError>, code: i32) -> String {
    let error = result.expect_err("refused");
    assert_eq!(error.code, code, "{error}");
    error.message
}

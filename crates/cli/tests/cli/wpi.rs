//! `srdma wpi`: outputs, refusals and exit codes.

use crate::own_lab::wait_until;
use crate::signals;
use nix::sys::signal::Signal;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A driver whose controller is not there; killed at the end whatever happens.
struct Driver {
    child: Child,
    directory: tempfile::TempDir,
}

impl Drop for Driver {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(sockets: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_srdma"));
    command.arg("wpi").args(arguments).arg("--socket-directory").arg(sockets);
    // Those of the machine are not meant.
    command.env_remove("WPI_DRIVER_ADDRESS").env("SRDMA_CONTROLLER", "http://[::1]:1");
    command
}

const RUN: [&str; 4] = ["run", "--node=node-1", "--address=::1", "--peer-listen=[::1]:0"];

impl Driver {
    fn start() -> Self {
        let directory = tempfile::tempdir_in("/tmp").expect("a directory");
        let mut run = command(&directory.path().join("sockets"), &RUN);
        let child = run.stderr(Stdio::null()).spawn().expect("it starts");
        let driver = Driver { child, directory };
        let is_ready = || driver.call(&["info"]).status.success();
        wait_until(is_ready, || "the driver is not ready".to_owned());
        driver
    }

    fn sockets(&self) -> PathBuf {
        self.directory.path().join("sockets")
    }

    fn call(&self, arguments: &[&str]) -> Output {
        command(&self.sockets(), arguments).output().expect("it runs")
    }
}

/// Exit code, and what was printed.
fn result(output: &Output) -> (i32, String) {
    let [out, errors] = [&output.stdout, &output.stderr].map(|octets| String::from_utf8_lossy(octets).into_owned());
    (output.status.code().expect("it has ended by itself"), (out + &errors).trim().to_owned())
}

#[test]
fn calls_print_what_the_driver_answers() {
    let mut driver = Driver::start();
    let info = result(&driver.call(&["info"]));
    assert_eq!(info, (0, format!("{{\"name\":\"srdma\",\"version\":\"{}\"}}", env!("CARGO_PKG_VERSION"))));
    let path = |name: &str| driver.sockets().join(name).display().to_string();
    let stage = |arguments: &[&str]| result(&driver.call(&[&["stage", "m", "--claim=c"], arguments].concat()));
    assert_eq!(stage(&["--size=4KiB"]), (0, path("m.sock")));
    assert_eq!(stage(&["--size=4KiB"]), (0, path("m.sock")));
    assert_eq!(stage(&["--size=5KiB"]).0, 1);
    let shard = result(&driver.call(&["stage", "m", "--claim=d", "--size=1", "--shard=3/4"]));
    assert_eq!(shard, (0, path("m__shard_3.sock")));
    let unknown = result(&driver.call(&["propagate", "n", "--to=10.0.0.2"]));
    assert_eq!(unknown, (1, "srdma: buffer n is not staged at this node (gRPC code 5)".to_owned()));
    let beyond = result(&driver.call(&["propagate", "m", "--scatter=10.0.0.2=4000+97"]));
    let expected = "srdma: octets 4000 to 4000 + 97 are not in buffer m, which has 4096 (gRPC code 11)";
    assert_eq!(beyond, (1, expected.to_owned()));
    for _ in 0..2 {
        assert_eq!(result(&driver.call(&["unstage", "c"])), (0, String::new()));
    }
    assert!(!driver.sockets().join("m.sock").exists());
    signals::send(Signal::SIGTERM, driver.child.id());
    assert!(driver.child.wait().expect("a child").success());
    assert!(!driver.sockets().join("wpi-grpc.sock").exists());
}

#[test]
fn what_does_not_start_says_why() {
    let driver = Driver::start();
    let refused = |sockets: &Path, arguments: &[&str]| {
        let (code, text) = result(&command(sockets, arguments).output().expect("it runs"));
        assert_eq!(code, 2, "{text}");
        text
    };
    let second = refused(&driver.sockets(), &RUN);
    assert!(second.ends_with(": another driver has its sockets there"), "{second}");
    let open = driver.directory.path().join("open");
    fs::create_dir(&open).expect("a directory");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("its mode");
    let open = refused(&open, &RUN);
    assert!(open.contains("open: others may write there (mode 777), and so could put sockets in place"), "{open}");
    let other = driver.directory.path().join("other");
    let reached = refused(&other, &[&RUN[..], &["--listen=[::]:0"]].concat());
    assert!(reached.contains("callers are not authenticated: a loopback address, or --open"), "{reached}");
    let unnamed = refused(&other, &["run"]);
    assert!(unnamed.contains("--node <HOST>"), "{unnamed}");
    let name = refused(&other, &["run", "--node=a b"]);
    assert!(name.contains("\"a b\" is no target"), "{name}");
    let nothing = refused(&other, &["info"]);
    assert!(nothing.contains("other/wpi-grpc.sock: "), "{nothing}");
}

//! `srdma node` without interfaces, and without privileges.

use std::fs::File;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

fn node(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_srdma")).arg("node").args(arguments).output().expect("the binary runs")
}

fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

#[test]
fn the_help_has_an_example() {
    let output = node(&["--help"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success() && text.contains("srdma node --config /etc/srdma/leaf1.toml"), "{text}");
    let (_, example) = text.split_once("  [node]\n").expect("a configuration");
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("node.toml");
    // All its names are valid except the port, which is left out.
    let ports = example.matches("[[port]]").count();
    assert_eq!(ports, 2);
    std::fs::write(&file, format!("[node]\n{example}zzz = 1\n")).expect("written");
    let error = refused(&node(&["--config", file.to_str().expect("UTF-8")]));
    assert!(error.contains("unknown key `zzz`"), "{error}");
}

#[test]
fn a_file_that_is_missing_or_wrong_is_named() {
    let error = refused(&node(&["--config", "/nowhere/node.toml"]));
    assert!(error.starts_with("srdma: /nowhere/node.toml: No such file"), "{error}");
}

/// Without a right the message names the capability.
#[test]
#[ignore = "needs root"]
fn a_missing_capability_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("node.toml");
    let text = format!(
        "[node]\nloopback = '2001:db8::1'\n[daemon]\nstatus = '{}'\n[[port]]\nname = 'lo'\n",
        directory.path().join("status.sock").display()
    );
    std::fs::write(&file, text).expect("written");
    let output = Command::new("setpriv")
        .args(["--bounding-set=-all", "--inh-caps=-all", env!("CARGO_BIN_EXE_srdma"), "node", "--config"])
        .arg(&file)
        .output()
        .expect("setpriv runs");
    let error = refused(&output);
    assert!(error.contains("port lo: ") && error.contains("CAP_NET_RAW"), "{error}");
}

/// A full disk under stderr, or a reader of it that has ended, does not end the node.
#[test]
#[ignore = "needs root"]
fn a_node_runs_without_a_writable_stderr() {
    let full = || Stdio::from(File::options().write(true).open("/dev/full").expect("/dev/full"));
    let closed = || {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        Stdio::from(writer)
    };
    for stderr in [full(), closed()] {
        let directory = tempfile::tempdir().expect("a directory");
        let (file, status) = (directory.path().join("node.toml"), directory.path().join("status.sock"));
        let text =
            |more: &str| format!("[node]\nloopback = '2001:db8::1'\n[daemon]\nstatus = '{}'\n{more}", status.display());
        std::fs::write(&file, text("")).expect("written");
        let mut node = Command::new("unshare")
            .args(["--net", env!("CARGO_BIN_EXE_srdma"), "node", "--config"])
            .arg(&file)
            .stderr(stderr)
            .spawn()
            .expect("unshare runs");
        let until = |what: &str, is_so: &mut dyn FnMut() -> bool| {
            let deadline = Instant::now() + Duration::from_secs(20);
            while !is_so() {
                assert!(Instant::now() < deadline, "{what}");
                thread::sleep(Duration::from_millis(20));
            }
        };
        until("no status", &mut || status.exists());
        // More lines: a file that is refused, and one that is not.
        for more in ["[wrong]\n", ""] {
            std::fs::write(&file, text(more)).expect("written");
            let signalled = Command::new("kill").args(["-HUP", &node.id().to_string()]).status().expect("kill runs");
            assert!(signalled.success(), "the node is there");
            thread::sleep(Duration::from_millis(200));
        }
        assert!(node.try_wait().expect("a child").is_none(), "the node runs");
        Command::new("kill").arg(node.id().to_string()).status().expect("kill runs");
        assert!(node.wait().expect("a child").success());
    }
}

/// Neither does it hide the exit code of a node that does not start.
#[test]
fn the_exit_code_does_not_depend_on_stderr() {
    let full = File::options().write(true).open("/dev/full").expect("/dev/full");
    let mut node = Command::new(env!("CARGO_BIN_EXE_srdma"));
    let status = node.args(["node", "--config", "/nowhere/node.toml"]).stderr(full).status().expect("the binary runs");
    assert_eq!(status.code(), Some(2));
}

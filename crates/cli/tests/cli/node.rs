//! `srdma node` without interfaces, and without privileges.

use std::process::{Command, Output};

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

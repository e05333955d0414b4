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

/// The sides are those that the start of a node logs (D129).
#[test]
fn a_check_names_the_side_of_each_port() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("node.toml");
    let path = file.to_str().expect("UTF-8");
    let ports = "[[port]]\nname = 'p0'\n[[port]]\nname = 'p1'\n[[port]]\nname = 'p2'\n";
    let domain = "[domain]\nsids = ['5f00::/16']\ninfrastructure = ['2001:db8::/32']\n[[inside]]\nport = 'p0'\n\
                  [[border]]\nport = 'p1'\nsources = ['2001:db9:1::/64']\n";
    let sid = "[[sid]]\nsid = '5f00:0:100::/48'\nbehavior = 'uN'\n";
    std::fs::write(&file, format!("[node]\nloopback = '2001:db8::1'\n{ports}{domain}{sid}")).expect("written");
    let output = node(&["check", "--config", path]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let sides = "port p0: inside\nport p1: border, sources 2001:db9:1::/64\nport p2: border, no sources\n";
    assert_eq!(text, format!("{sides}the configuration is valid\n"), "{:?}", String::from_utf8(output.stderr));
    let doctor = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_srdma")).arg("doctor").args(arguments).output();
        String::from_utf8(output.expect("the binary runs").stdout).expect("UTF-8")
    };
    let report: serde_json::Value = serde_json::from_str(&doctor(&["--json", "--config", path])).expect("JSON");
    let findings = report["findings"].as_array().expect("findings").iter();
    let boundary = findings.filter(|finding| finding["theme"] == "Boundary");
    let named: Vec<_> = boundary.map(|finding| format!("port {}: {}\n", finding["name"], finding["detail"])).collect();
    assert_eq!(named.concat().replace('"', ""), sides);
    let open = format!("[node]\nloopback = '2001:db8::1'\nopen = true\n{ports}{sid}");
    std::fs::write(&file, &open).expect("written");
    let text = String::from_utf8(node(&["check", "--config", path]).stdout).expect("UTF-8");
    assert!(text.starts_with("the SIDs are open to every sender: there is no [domain]\n"), "{text}");
    assert!(doctor(&["--config", path]).contains("open to every sender: there is no [domain]"));
    std::fs::write(&file, open.replace("open = true", "")).expect("written");
    assert!(refused(&node(&["check", "--config", path])).contains("open = true"));
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

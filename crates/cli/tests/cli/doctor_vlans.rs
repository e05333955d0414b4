//! `srdma doctor` about the VLAN tags of interfaces, which ethtool switches (D257).

use serde_json::{Value, json};
use srdma_io::namespace::{Namespace, NamespaceGuard, VethEnd, veth};
use std::fs;

/// The finding about the parent of VLANs in a namespace, whose port has this driver.
fn finding(namespace: &Namespace, driver: &str) -> Value {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("node.toml");
    let text = format!(
        "[node]\nloopback = '2001:db8:ff:1::1'\n[[port]]\nname = 'up'\ninterface = 'left'\nmac = '02:00:00:00:00:01'\n\
         driver = '{driver}'\n[[port]]\nname = 'v100'\nparent = 'up'\nvlan = 100\nmac = '02:00:00:00:00:01'\n"
    );
    fs::write(&file, text).expect("written");
    let mut doctor = namespace.command(env!("CARGO_BIN_EXE_srdma"));
    let output = doctor.args(["doctor", "--json", "--config"]).arg(&file).output().expect("the program runs");
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let mut findings = report["findings"].as_array().expect("findings").iter();
    findings.find(|finding| finding["theme"] == "VLANs").expect("a finding about VLANs").clone()
}

#[test]
#[ignore = "needs root"]
fn an_interface_that_takes_tags_off_is_found() {
    let [left, right] = ["left", "right"].map(|_| NamespaceGuard::unique("srdma-doctor-vlan").expect("a namespace"));
    let end = |namespace, interface| VethEnd { namespace, interface, mac: None, addresses: &[] };
    veth(1500, [end(&left, "left"), end(&right, "right")]).expect("a link");
    let switch = |state: &str| left.run(&["ethtool", "-K", "left", "rxvlan", state]).expect("ethtool switches it");
    switch("on");
    let found = finding(&left, "af_xdp");
    assert_eq!((&found["name"], &found["state"]), (&json!("left"), &json!("degraded")), "{found}");
    let remedy = found["remedy"].as_str().expect("a remedy").to_owned();
    assert_eq!(finding(&left, "auto")["state"], "info");
    left.run(&remedy.split(' ').collect::<Vec<_>>()).expect("the remedy works");
    for driver in ["af_xdp", "auto"] {
        let found = finding(&left, driver);
        assert_eq!((&found["state"], &found["remedy"]), (&json!("ok"), &Value::Null), "{found}");
    }
}

//! `srdma conform` with our own node as the device, over captures.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn srdma(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_srdma")).args(arguments).output().expect("the program runs")
}

fn text(octets: &[u8]) -> String {
    String::from_utf8(octets.to_vec()).expect("UTF-8")
}

/// `srdma process` as the device of a profile with these ports.
fn own_node(ports: &[&str]) -> String {
    let inputs: String = ports.iter().map(|port| format!(" --in {port}={{in}}/{port}.pcapng")).collect();
    format!("{} process --config {{config}}{inputs} --out {{out}}", env!("CARGO_BIN_EXE_srdma"))
}

/// All cases of a profile pass, and each requirement that a case names.
fn passes(profile: &str, ports: &[&str]) {
    let output = srdma(&["conform", "run", profile, "--json", "--command", &own_node(ports)]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let cases = report["cases"].as_array().expect("cases");
    for case in cases {
        assert_eq!(case["verdict"], "pass", "{case:#}");
    }
    assert!(cases.len() > 3);
    for requirement in report["requirements"].as_array().expect("requirements") {
        let is_open = requirement["cases"].as_array().expect("cases").is_empty();
        let verdict = if is_open { "not_tested" } else { "pass" };
        assert_eq!(requirement["verdict"], verdict, "{requirement}");
        assert_eq!(requirement["reason"].is_string(), is_open, "{requirement}");
    }
    assert_eq!(output.status.code(), Some(0));
}

/// The node conforms to RFC 8754, RFC 8986 and RFC 9800 (PP-4-3, PP-4-4, PP-5.1-1, PP-5.2-2, PP-5.2-3, PP-7-2).
#[test]
fn our_node_passes_usid() {
    passes("usid", &["up", "down"]);
}

/// End.DX6, End.DX2, End.B6.Encaps, H.Encaps and H.Encaps.L2.Red, and errors of each (D233, D243).
#[test]
fn our_node_passes_rfc8986() {
    passes("rfc8986", &["up", "down", "circuit"]);
}

/// End.DX4, End.DT4, End.DT46, H.Encaps and H.Encaps.Red of IPv4 packets, and errors of each (D258).
#[test]
fn our_node_passes_ipv4() {
    passes("ipv4", &["up", "down"]);
}

/// Copies, lists, and responses aggregated at an edge: each MT requirement that a packet can show.
#[test]
fn our_node_passes_end_mt() {
    passes("end-mt", &["up", "down"]);
}

/// Replication, the headend, and responses at the root and below it.
#[test]
fn our_node_passes_end_replicate() {
    passes("end-replicate", &["up", "left", "right"]);
}

/// Immediate notification of senders, a first hop, borders.
#[test]
fn our_node_passes_fast_cnp() {
    passes("fast-cnp", &["hosts", "core", "outside"]);
}

/// Requests of a congested WAN to a PE.
#[test]
fn our_node_passes_end_c_and_end_e() {
    passes("end-c", &["wan", "gateway"]);
    passes("end-e", &["wan", "dc"]);
}

#[test]
fn profiles_are_listed_and_described() {
    let list = text(&srdma(&["conform", "list"]).stdout);
    let names: Vec<&str> = list.lines().filter_map(|line| line.split("  ").next()).collect();
    assert_eq!(names, ["end-mt", "end-replicate", "usid", "rfc8986", "ipv4", "fast-cnp", "end-c", "end-e"]);
    let output = srdma(&["conform", "describe", "usid"]);
    let described = text(&output.stdout);
    for expected in
        ["up: the device has 02:00:00:00:01:01", "5f00:0:100::/48 is uN", "un-shift [RFC 9800 4.1", "PP-4-1: "]
    {
        assert!(described.contains(expected), "{expected}: {described}");
    }
}

/// The tests of VPP and of Linux that a case is written after stand behind it, in text and in JSON.
#[test]
fn sources_of_cases_are_named() {
    let described = text(&srdma(&["conform", "describe", "usid"]).stdout);
    let (_, case) = described.split_once("\n  end-x-psp [RFC 8986 4.2, RFC 8986 4.16.1]\n").expect("the case");
    let sources = case.lines().nth(1).expect("a line behind its sentence");
    assert_eq!(sources, "      sources: VPP test_srv6.py: test_SRv6_End_X_with_PSP");
    let (_, case) = described.split_once("\n  end-x-upper-layer [").expect("the case");
    assert!(case.lines().nth(2).expect("the next case").starts_with("  end-dt6 ["), "{case}");

    let output = srdma(&["conform", "describe", "ipv4", "--json"]);
    let described: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let found = described["cases"].as_array().expect("cases").iter().find(|case| case["name"] == "end-dt46-ipv6");
    let sources = found.expect("the case")["sources"].as_array().expect("sources").clone();
    let names: Vec<&str> = sources.iter().map(|source| source.as_str().expect("a name")).collect();
    let expected = ["Linux selftests: srv6_hencap_red_l3vpn_test.sh", "Linux selftests: srv6_end_dt46_l3vpn_test.sh"];
    assert_eq!(names, expected);
    assert_eq!(described["name"], "ipv4");
    assert_eq!(described["ports"][1]["device_mac"], "02:00:00:00:02:01");
    for part in ["configuration", "parameters"] {
        assert!(!described[part].as_array().expect(part).is_empty(), "{part}");
    }

    let wire = "cp {in}/up.pcapng {out}/down.pcapng";
    let output = srdma(&["conform", "run", "usid", "--case", "end-x-psp-too-early", "--json", "--command", wire]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(report["cases"][0]["sources"][0], "VPP test_srv6.py: test_SRv6_End_X_with_PSP");
}

/// The node passes with other parameters: expected octets follow the parameters.
#[test]
fn parameters_can_be_chosen() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("lab.toml");
    let all = text(&srdma(&["conform", "describe", "usid", "--parameter-file"]).stdout);
    let changed = all
        .replace("un = \"5f00:0:100::\"", "un = \"5f00:1:4242::\"")
        .replace("un_down = \"5f00:0:200::\"", "un_down = \"5f00:1:4343::\"")
        .replace("un_up = \"5f00:0:300::\"", "un_up = \"5f00:1:4444::\"")
        .replace("ua = \"5f00:0:e001::\"", "ua = \"5f00:1:e777::\"")
        .replace("02:00:00:00:01:01", "02:00:00:00:aa:01");
    assert_ne!(changed, all);
    std::fs::write(&file, changed).expect("written");
    let file = file.display().to_string();
    let configuration = text(&srdma(&["conform", "describe", "usid", "--parameters", &file, "--node-toml"]).stdout);
    assert!(configuration.contains("5f00:1:4242::/48") && configuration.contains("02:00:00:00:aa:01"));
    assert!(!configuration.contains("5f00:0:"), "{configuration}");
    let command = own_node(&["up", "down"]);
    let output = srdma(&["conform", "run", "usid", "--case", "u", "--parameters", &file, "--command", &command]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
}

/// A wire instead of a device: its output is wrong, and the report shows the octets that differ.
#[test]
fn failures_show_the_octets_that_differ() {
    let wire = "cp {in}/up.pcapng {out}/down.pcapng";
    let output = srdma(&["conform", "run", "usid", "--case", "un-shift", "--command", wire]);
    assert_eq!(output.status.code(), Some(1));
    let report = text(&output.stdout);
    for expected in [
        "FAIL un-shift [RFC 9800 4.1, PP-5.1-1, PP-5.2-2]",
        "octet 21, IPv6 Hop Limit: expected 63, got 64",
        "octet 38, IPv6 Destination Address: expected 5f00:0:200:300::, got 5f00:0:100:200:300::",
        "RFC 9800 4.1  FAIL",
        "0 cases pass, 3 fail",
    ] {
        assert!(report.contains(expected), "{expected}: {report}");
    }
}

/// The same as a page: each requirement with its verdict, the octets that differ, and how to do it again.
#[test]
fn a_report_is_a_page() {
    let page = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conform.html");
    let wire = "cp {in}/up.pcapng {out}/down.pcapng #<wire>";
    let named = page.to_str().expect("UTF-8");
    let output = srdma(&["conform", "run", "usid", "--case", "un-shift", "--command", wire, "--html", named]);
    assert_eq!(output.status.code(), Some(1));
    let html = std::fs::read_to_string(&page).expect("a page");
    for expected in [
        "<title>Profile usid</title>",
        "Device: command `cp {in}/up.pcapng {out}/down.pcapng #&lt;wire&gt;`",
        "of 3 cases 0 pass, 3 fail and 0 could not be tested.",
        "<table class=\"words\">",
        "PP-5.1-1</th><td>✗ fail",
        "– not tested",
        ">un-shift (RFC 9800 4.1, PP-5.1-1, PP-5.2-2)</h3>",
        "octet 21, IPv6 Hop Limit: expected 63, got 64",
        "srdma conform run usid --case un-shift --command &#39;cp {in}/up.pcapng",
    ] {
        assert!(html.contains(expected), "{expected}");
    }
    assert!(!html.contains("<wire>") && !html.contains("http://") && !html.contains("https://"), "nothing is loaded");
    let nowhere = srdma(&["conform", "run", "usid", "--command", "true", "--html", "/nonexistent/page.html"]);
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(text(&nowhere.stderr).contains("cannot write the report /nonexistent/page.html"));
}

#[test]
fn contradictory_arguments_are_refused_with_a_remedy() {
    let refused = |arguments: &[&str]| {
        let output = srdma(&[&["conform"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        text(&output.stderr)
    };
    let run = |arguments: &[&str]| refused(&[&["run", "usid"], arguments].concat());
    assert!(
        refused(&["describe", "nothing"])
            .contains("unknown profile \"nothing\": there are end-mt, end-replicate, usid, ")
    );
    assert!(run(&["--interface", "left=lo"]).contains("profile usid has no port left, it has up, down"));
    assert!(run(&["--interface", "up=lo"]).contains("--interface down=INTERFACE is missing"));
    assert!(run(&["--command", "true", "--case", "nowhere"]).contains("`srdma conform describe usid` lists them"));
    assert!(run(&["--command", "false"]).contains("no case could be run on the device: the command ended with"));
    assert!(run(&["--command", "true"]).contains("wrote neither {out}/up.pcapng"));
    let missing = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml").display().to_string();
    assert!(run(&["--command", "true", "--parameters", &missing]).contains("Cargo.toml:11: unknown key `bin`"));
}

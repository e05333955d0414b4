//! References from outside, as their generators make or take them today.

use std::process::Command;

/// What a generator prints when it compares; its path is from the top of the repository. It runs with Debian's
/// interpreter, for which `cargo xtask ci` installs scapy.
fn compared(program: &str) -> String {
    let mut python = Command::new("/usr/bin/python3");
    let program = format!("{}/../../{program}", env!("CARGO_MANIFEST_DIR"));
    let output = python.args([&program, "--check"]).env("PYTHONDONTWRITEBYTECODE", "1").output();
    let output = output.expect("python3 is installed");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The captures of scapy in testdata/golden are what tools/golden makes of the RFCs and of the decisions, and those of
/// NICs what is published.
#[test]
fn golden_captures_are_made_again() {
    assert_eq!(compared("tools/golden/captures.py"), "12 captures are as made\n");
    assert_eq!(compared("tools/golden/isis.py"), "2 captures are as made\n");
    assert_eq!(compared("tools/golden/hardware.py"), "2 captures are as made\n");
}

/// So are the other files below testdata that have a generator. One that leaves a file out says so, and fails here.
#[test]
fn other_references_are_made_again() {
    assert_eq!(compared("testdata/bfd/make.py"), "1 capture is as made\n");
    assert_eq!(compared("testdata/capture/make.py"), "5 files are as made\n");
    assert_eq!(compared("testdata/cm/make.py"), "1 file is as made\n");
    assert_eq!(compared("testdata/decode/make.py"), "2 files are as made\n");
    assert_eq!(compared("tools/fragments.py"), "1 file is as made\n");
}

/// The kernel of this machine sends the packets of its captures: twelve cases on four links, and multicast on three.
#[test]
#[ignore = "needs root"]
fn the_kernels_golden_captures_are_taken_again() {
    let text = compared("tools/golden/kernel.py");
    assert_eq!(text.lines().filter(|line| line.ends_with("packets, the same")).count(), 51, "{text}");
}

/// FRR floods what it flooded when its captures were taken: a LAN with IS-IS, and a link with OSPFv3.
#[test]
#[ignore = "needs root"]
fn frrs_golden_captures_are_taken_again() {
    assert_eq!(compared("tools/golden/frr.py"), "frr84_isis_lan: the same\nfrr84_ospf6: the same\n");
}

/// Unmodified soft-RoCE of two guests says what it said when its captures were taken, also after losses.
#[test]
#[ignore = "needs root"]
fn soft_roces_golden_captures_are_taken_again() {
    assert_eq!(compared("tools/golden/rxe.py"), "8 captures are as made\n");
}

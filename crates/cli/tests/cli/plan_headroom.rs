//! `srdma plan headroom`: figures that were computed by hand, and refusals.

use serde_json::Value;
use std::process::{Command, Output};

fn headroom(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_srdma")).args(["plan", "headroom"]).args(arguments).output().unwrap()
}

/// D67: 100 Gbit/s are 12.5 octets a nanosecond. Two frames of 1,500 + 38 octets and a PAUSE of 84 take 252.8 ns, so
/// 253; 2 km and back 20 µs; 1 µs of response: 21,253 ns, 265,662.5 octets.
#[test]
fn a_link_is_as_by_hand() {
    let arguments = ["--rate", "100G", "--distance", "2km", "--mtu", "1500", "--response", "1us", "--json"];
    let answer: Value = serde_json::from_slice(&headroom(&arguments).stdout).unwrap();
    assert_eq!((&answer["pfc"]["stop_ns"], &answer["pfc"]["headroom_octets"]), (&21_253.into(), &265_663.into()));
    assert!(answer.get("end_c").is_none());
}

/// CN-4.1-1: PE and node 5 km apart, so 50 µs; at the gateway's 400 Gbit/s two frames of 1,538 and the PAUSE take 63.2
/// ns, so 64: a loop of 50,064 ns. 300 Gbit/s are 37.5 octets a nanosecond, 100 Gbit/s 12.5; plus two frames. Of 100
/// km, 100 Gbit/s times 1 ms are 12.5 million octets.
#[test]
fn end_c_is_as_by_hand() {
    let arguments = ["--rate", "100G", "--distance", "5km", "--mtu", "1500", "--response", "0", "--overload", "4:1"];
    let answer = headroom(&[&arguments[..], &["--path", "100km", "--json"]].concat());
    let answer: Value = serde_json::from_slice(&answer.stdout).unwrap();
    let end_c = &answer["end_c"];
    assert_eq!(end_c["loop_ns"], 50_064);
    assert_eq!(end_c["stop_octets"], 1_877_400 + 3_076);
    assert_eq!(end_c["restart_octets"], 625_800 + 3_076);
    assert_eq!(end_c["shares"]["path_octets"], 12_500_000);
    let text = String::from_utf8(headroom(&arguments).stdout).unwrap();
    assert!(text.contains("to stop            1,880,476 octets, beyond XOFF\n"), "{text}");
}

#[test]
fn refusals_name_the_expected_value() {
    let refused = |arguments: &[&str], expected: &str| {
        let output = headroom(arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{error}");
        assert!(error.contains(expected), "{error}");
    };
    let link = ["--rate", "100G", "--distance", "5km"];
    let with = |more: &[&'static str], expected| refused(&[&link[..], more].concat(), expected);
    refused(&["--rate", "100G", "--distance", "5"], "500m or 2.5km");
    refused(&["--rate", "fast", "--distance", "5km"], "such as 100G");
    with(&["--mtu", "500"], "--mtu 500: expected 1280 to 65535 octets");
    with(&["--overload", "0.5"], "expected a ratio from 1 to 1000");
    with(&["--overload", "2", "--path", "1km"], "the whole path is shorter than --distance");
    with(&["--path", "10km"], "--overload");
}

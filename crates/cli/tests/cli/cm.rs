//! What `srdma cm` refuses before it answers.

use std::process::Command;

/// Exit code and error of `srdma cm` with these arguments, and a controller that does not answer.
fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    let mut srdma = Command::new(env!("CARGO_BIN_EXE_srdma"));
    srdma.args(["cm", "--controller", "http://[::1]:1"]).args(arguments);
    let output = srdma.output().expect("it runs");
    assert!(output.stdout.is_empty());
    (output.status.code(), String::from_utf8(output.stderr).expect("text"))
}

#[track_caller]
fn is_refused(arguments: &[&str], text: &str) {
    let (code, error) = refused(arguments);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains(text), "{error}");
}

const PROXY: [&str; 4] = ["--proxy", "2001:db8:cc::1", "--port", "7471"];

#[test]
fn options_that_make_no_group() {
    let with = |servers: &'static str| [&PROXY[..], &["--servers", servers]].concat();
    is_refused(&with("r1"), "expected an address, or one with its port, such as [2001:db8::1]:7471 or 192.0.2.1:7471");
    is_refused(&with("fe80::1"), "no receiver can have the address fe80::1");
    is_refused(&with("2001:db8::1,2001:db8::1"), "an address of its own");
    is_refused(&["--proxy", "2001:db8:cc::1", "--port", "0", "--servers", "2001:db8::1"], "--port");
    is_refused(&PROXY, "--servers");
    is_refused(&with("2001:db8::1,192.0.2.1"), "of the IP version of --proxy");
    is_refused(&["--proxy", "10.0.0.1", "--port", "1", "--servers", "2001:db8::1"], "of the IP version of --proxy");
    let twice = ["--proxy", "10.0.0.1,10.0.0.1", "--port", "1", "--servers", "192.0.2.1"];
    is_refused(&twice, "--proxy: each client at the same time needs a Proxy Address of its own");
}

/// Options that make a group: the controller is asked.
#[test]
fn several_receivers() {
    let (code, error) = refused(&[&PROXY[..], &["--servers", "2001:db8::1,2001:db8::2"]].concat());
    assert_eq!(code, Some(2));
    assert!(error.contains("http://[::1]:1"), "{error}");
}

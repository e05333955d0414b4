//! The path of a packet in `srdma decode` (D254): the value in UDP source port and flow label, and its uSIDs. The packet
//! is scapy's, with the fields of a value put in by hand; tshark reads the same fields.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The fourth packet of the capture, with this label in its inner IPv6 header and this source port.
fn capture(directory: &Path, label: u32, port: u16) -> PathBuf {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden/scapy_02_endmt_in.pcap");
    let packet = srdma_capture::Reader::open(&golden).expect("a capture").nth(3).expect("it is there");
    let mut octets = packet.expect("undamaged").octets;
    // Ethernet, the outer IPv6 header, an SRH of 192 octets: the inner IPv6 header.
    let inner = 14 + 40 + 192;
    assert_eq!((octets[inner] >> 4, &octets[inner + 40 + 2..inner + 44]), (6, &[0x12, 0xB7][..]));
    octets[inner + 1] = octets[inner + 1] & 0xF0 | (label >> 16) as u8;
    octets[inner + 2..inner + 4].copy_from_slice(&(label as u16).to_be_bytes());
    octets[inner + 40..inner + 42].copy_from_slice(&port.to_be_bytes());
    let file = directory.join(format!("{label}-{port}.pcapng"));
    let mut writer = srdma_capture::Writer::new(std::fs::File::create(&file).expect("a file")).expect("written");
    let interface = writer.add_interface("port").expect("written");
    writer.write_packet(interface, 0, &[&octets]).expect("written");
    writer.finish().expect("written");
    file
}

fn decode(file: &Path, more: &[&str]) -> Output {
    let mut srdma = Command::new(env!("CARGO_BIN_EXE_srdma"));
    srdma.arg("decode").arg(file).args(more).output().expect("the program runs")
}

fn text(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// `udp.entropy` of its only packet.
fn entropy(file: &Path, more: &[&str]) -> Value {
    let object = text(decode(file, &[&["--json"], more].concat()));
    serde_json::from_str::<Value>(&object).expect("JSON")["udp"]["entropy"].clone()
}

#[test]
fn the_value_and_its_usids_are_shown() {
    let directory = tempfile::tempdir().expect("a directory");
    let routes = directory.path().join("routes.toml");
    let template =
        "{ base = '5f00:0:1:4801:2::', choice = [{ bits = 15, choices = 3, step = '0:0:0:1::' }], values = [2] }";
    let route = format!("[[route]]\nprefix = '2001:db8:ff::/64'\n[[route.path]]\ntemplate = {template}\n");
    std::fs::write(&routes, &route).expect("written");
    let with = ["--routes", routes.to_str().expect("UTF-8")];

    // 0x4001 is 1 above 14 bits of 1; 2 has a path.
    let (odd, two) = (capture(directory.path(), 0x80001, 0xC001), capture(directory.path(), 0x80000, 0xC002));
    assert_eq!(entropy(&odd, &[]), json!({ "value": 0x4001 }));
    assert_eq!(entropy(&odd, &with), json!({ "value": 0x4001, "segments": [], "usids": [] }));
    let path = json!({ "value": 2, "segments": ["5f00:0:1:4803:2::"], "usids": ["1", "4803", "2"] });
    assert_eq!(entropy(&two, &with), path);
    assert!(text(decode(&two, &[])).contains("UDP 49154 > 4791 entropy 0x2 |"), "{}", text(decode(&two, &[])));
    assert!(text(decode(&two, &with)).contains("UDP 49154 > 4791 entropy 0x2 by 1 4803 2 |"));
    assert!(text(decode(&odd, &with)).contains("entropy 0x4001 no path |"));
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&two).args(["-T", "fields", "-e", "ipv6.flow", "-e", "udp.srcport"]);
    let fields = tshark.output().expect("tshark is installed, as `cargo xtask ci` sees to");
    let fields = String::from_utf8(fields.stdout).expect("UTF-8");
    assert!(fields.contains("0x080000") && fields.trim_end().ends_with("49154"), "{fields}");

    // Other ports and labels carry none.
    for (label, port) in [(0, 0xC002), (0x7FFFF, 0xC002), (0xC0000, 0xC002), (0x80000, 0xBFFF)] {
        assert_eq!(entropy(&capture(directory.path(), label, port), &with), Value::Null, "{label:#x}");
    }
    std::fs::write(&routes, "[node]\nloopback = '::1'\n").expect("written");
    let output = decode(&two, &with);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("routes.toml:1: there is no [[route]] with entropy values"), "{error}");
}

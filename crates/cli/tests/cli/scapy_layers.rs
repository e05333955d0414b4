//! The layers for scapy, by their own tests, which use none of this project's code; and packets that scapy builds with
//! them, as `srdma decode` reads them.

use serde_json::Value;
use std::process::Command;

const PACKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/scapy");

/// Debian's interpreter, for which `cargo xtask ci` installs scapy.
fn python(arguments: &[&str]) -> String {
    let mut python = Command::new("/usr/bin/python3");
    python.args(arguments).current_dir(PACKAGE).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = python.output().expect("python3 is installed, as `cargo xtask ci` sees to");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

#[test]
fn the_packages_own_tests_pass() {
    let said = python(&["-m", "unittest", "discover", "-s", "tests"]);
    assert!(said.contains("Ran 10 tests") && said.trim_end().ends_with("OK"), "{said}");
}

const SCRIPT: &str = r"
import sys
from scapy.layers.inet import UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrSegmentRouting, PadN
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import wrpcap
from srdma_scapy import *
bth = bytes.fromhex('04 00 ffff 00 000111 80000064') + b'data'
ports = dict(sport=0xd001, dport=4791, chksum=0)
data = with_icrc(IPv6(src='2001:db8:1::1', dst='2001:db8:ff::100') / UDP(**ports) / Raw(bth + bytes(4)))
lists = [EndMt(edge='2001:db8:a::1', receivers=[EndMtReceiver(address='2001:db8:2::1', qpn=5)]),
         Mr(edge='2001:db8:a::1', regions=[MrRegion(virtual_address=0x1000, rkey=7)])]
srh = IPv6ExtHdrSegmentRouting(nh=41, addresses=['2001:db8:ff::100'], segleft=1, tlv_objects=lists)
copy = IPv6(src='2001:db8:6::1', dst='5f00:0:1:e000::') / srh / data
cnp = Raw(bytes.fromhex('81 00 ffff 40 000111 00000000') + bytes(20))
options = IPv6ExtHdrDestOpt(nh=17, options=[FastCnp(original_destination='2001:db8:2::1'), PadN(optdata=bytes(2))])
told = with_icrc(IPv6(src='2001:db8:53::1', dst='2001:db8:1::1') / options / UDP(**ports) / cnp)
pause = IPv6(src='2001:db8:53::2', dst='5f00:0:9:c000::') / CongestionNotification(
    traffic_class=3, level=192, sequence=9, hold_us=10000, congested='2001:db8:53::2')
around = IPv6(src='2001:db8:53::2', dst='5f00:0:9:c000::') / pause
link = dict(src='02:00:00:00:00:01', dst='02:00:00:00:00:02')
wrpcap(sys.argv[1], [Ether(**link) / packet for packet in (copy, told, around)])
";

#[test]
fn decode_reads_the_packets_of_scapy() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("made.pcap");
    python(&["-c", SCRIPT, file.to_str().expect("UTF-8")]);
    let output = Command::new(env!("CARGO_BIN_EXE_srdma")).arg("decode").arg(&file).arg("--json").output();
    let text = String::from_utf8(output.expect("it runs").stdout).expect("UTF-8");
    let frames: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let [copy, told, pause] = &frames[..] else { panic!("{text}") };
    assert!(frames.iter().all(|frame| frame["error"].is_null()), "{text}");
    assert_eq!((&copy["icrc"], &told["icrc"]), (&"ok".into(), &"ok".into()), "{text}");
    let receiver = &copy["end_mt"][0]["receivers"][0];
    assert_eq!((&receiver["address"], &receiver["qpn"]), (&"2001:db8:2::1".into(), &5.into()));
    assert_eq!(copy["mr"][0]["regions"][0]["rkey"], 7, "{text}");
    assert_eq!(copy["srh"][0]["segments"][0], "2001:db8:ff::100");
    let options = told["destination_options"][0]["options"].as_array().expect("options");
    let original = options.iter().find_map(|option| option["fast_cnp"]["original_destination"].as_str());
    assert_eq!(original, Some("2001:db8:2::1"), "{text}");
    let notification = &pause["icmpv6"]["notification"];
    assert_eq!((&notification["ask"], &notification["hold_us"]), (&"pause".into(), &10_000.into()), "{text}");
}

//! The dissector for Wireshark against `srdma decode`, which shares no code with it, over captures of others and our own.

use crate::tshark;
use serde_json::Value;
use srdma_capture::{Reader, Writer};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/wireshark/srdma.lua");

/// The columns that are compared.
const FIELDS: [&str; 23] = [
    "srdma.icrc.status",
    "srdma.end_mt.edge",
    "srdma.end_mt.receiver.address",
    "srdma.end_mt.receiver.qpn",
    "srdma.mr.edge",
    "srdma.mr.region.virtual_address",
    "srdma.mr.region.rkey",
    "srdma.hmac.key_id",
    "srdma.fast_cnp.option",
    "srdma.fast_cnp.original_destination",
    "srdma.end_c.ask",
    "srdma.end_c.traffic_class",
    "srdma.end_c.level",
    "srdma.end_c.sequence",
    "srdma.end_c.hold_us",
    "srdma.end_c.congested",
    "srdma.repair.psn",
    "srdma.repair.packets",
    "srdma.cnp.count",
    "srdma.cnp.load",
    "srdma.cnp.rate_mbit_per_s",
    "srdma.cnp.flows",
    "srdma.cnp.period_us",
];

/// The fields that the dissector finds in each frame of captures, with numbers as numbers.
fn dissected(files: &[PathBuf], fields: &[&str]) -> Vec<Vec<Vec<String>>> {
    let script = format!("lua_script:{SCRIPT}");
    let cells = |cell: &str| cell.split(',').filter(|value| !value.is_empty()).map(plain).collect();
    let lines = tshark::lines(files, &["-X", &script], fields);
    lines.iter().map(|line| line.split('\t').map(cells).collect()).collect()
}

/// A number in decimal notation; everything else as it is.
fn plain(value: &str) -> String {
    let number = value.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number.map_or(value.to_owned(), |number| number.to_string())
}

/// The same fields as `srdma decode` has them.
fn decoded(file: &Path) -> Vec<Vec<Vec<String>>> {
    let output = Command::new(env!("CARGO_BIN_EXE_srdma")).arg("decode").arg(file).arg("--json").output();
    let text = String::from_utf8(output.expect("it runs").stdout).expect("UTF-8");
    text.lines().map(|line| columns(&serde_json::from_str(line).expect("JSON"))).collect()
}

fn columns(frame: &Value) -> Vec<Vec<String>> {
    let list = |of: &str| frame[of].as_array().cloned().unwrap_or_default();
    let all = |of: &[Value], key: &str| of.iter().map(|entry| text(&entry[key])).collect::<Vec<_>>();
    let within = |of: &[Value], key: &str| -> Vec<Value> {
        of.iter().flat_map(|entry| entry[key].as_array().cloned().unwrap_or_default()).collect()
    };
    let (lists, regions, hmac) = (list("end_mt"), list("mr"), list("hmac_tlv"));
    let (receivers, keys) = (within(&lists, "receivers"), within(&regions, "regions"));
    let options = within(&list("destination_options"), "options");
    let fast_cnps: Vec<Value> =
        options.iter().map(|option| option["fast_cnp"].clone()).filter(|found| !found.is_null()).collect();
    let icrc: Vec<String> =
        frame["icrc"].as_str().filter(|status| *status != "absent").map(str::to_owned).into_iter().collect();
    let notification: Vec<Value> =
        [&frame["icmpv6"]["notification"]].into_iter().filter(|found| !found.is_null()).cloned().collect();
    // Syndrome 0x70: NAK, code 16.
    let requests: Vec<Value> = [&frame["aeth"]].into_iter().filter(|aeth| aeth["syndrome"] == 0x70).cloned().collect();
    let cnp = |key: &str| -> Vec<String> {
        let value = [&frame["cnp"][key], &frame["cnp"]["incast"][key]].into_iter().find_map(Value::as_u64);
        value.filter(|value| *value > 0).map(|value| value.to_string()).into_iter().collect()
    };
    let requested: Vec<Value> = requests.iter().map(|_| frame["bth"].clone()).collect();
    let ask = notification.iter().map(|found| u8::from(found["ask"] == "resume").to_string()).collect();
    vec![
        icrc,
        all(&lists, "edge"),
        all(&receivers, "address"),
        all(&receivers, "qpn"),
        all(&regions, "edge"),
        all(&keys, "virtual_address"),
        all(&keys, "rkey"),
        all(&hmac, "key_id"),
        all(&fast_cnps, "option"),
        all(&fast_cnps, "original_destination"),
        ask,
        all(&notification, "traffic_class"),
        all(&notification, "level"),
        all(&notification, "sequence"),
        all(&notification, "hold_us"),
        all(&notification, "congested"),
        all(&requested, "psn"),
        all(&requests, "msn"),
        cnp("count"),
        cnp("load"),
        cnp("rate_mbit_per_s"),
        cnp("flows"),
        cnp("period_us"),
    ]
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), plain)
}

fn captures(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("captures").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|extension| extension == "pcap" || extension == "pcapng"))
        .collect();
    files.sort();
    files
}

/// Compares all frames; the number of cells that have anything in them.
fn compare(files: &[PathBuf]) -> usize {
    let frames = |file: &PathBuf| {
        let name = file.display().to_string();
        (1..).zip(decoded(file)).map(move |(number, expected)| (format!("{name} frame {number}"), expected))
    };
    let expected: Vec<_> = files.iter().flat_map(frames).collect();
    let seen = dissected(files, &FIELDS);
    assert_eq!(seen.len(), expected.len());
    for (seen, (frame, expected)) in seen.iter().zip(&expected) {
        for ((field, seen), expected) in FIELDS.iter().zip(seen).zip(expected) {
            assert_eq!(seen, expected, "{frame}: {field}");
        }
    }
    seen.iter().flatten().filter(|cells| !cells.is_empty()).count()
}

#[test]
fn foreign_captures_are_dissected_as_by_decode() {
    let root = Path::new(ROOT).join("testdata");
    let files: Vec<_> =
        ["golden", "golden/rxe", "decode"].iter().flat_map(|folder| captures(&root.join(folder))).collect();
    let found = compare(&files);
    assert!(found > 300, "only {found} cells have anything in them");
}

/// The links of a demonstration: data with their lists, copies, acknowledgements.
#[test]
fn own_captures_are_dissected_as_by_decode() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut demo = Command::new(env!("CARGO_BIN_EXE_srdma"));
    demo.args(["demo", "--receivers", "4", "--size", "64KiB", "--pcap"]).arg(directory.path());
    let output = demo.output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let files = captures(directory.path());
    assert!(files.len() > 5, "{files:?}");
    assert!(compare(&files) > 108, "an ICRC in each frame, and lists");
}

/// D153: requests for data between nodes that repair are named.
#[test]
fn repair_requests_are_dissected_as_by_decode() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut demo = Command::new(env!("CARGO_BIN_EXE_srdma"));
    demo.args(["demo", "--receivers", "4", "--size", "1MiB", "--loss", "0.02", "--repair", "tree", "--pcap"]);
    let output = demo.arg(directory.path()).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let files = captures(directory.path());
    compare(&files);
    let requests = dissected(&files, &["srdma.repair.packets"]).into_iter().flatten().filter(|cells| !cells.is_empty());
    assert!(requests.count() > 2, "losses between nodes are requested");
}

/// D29, D240, D242, D284: what a CNP carries beside being one.
#[test]
fn values_of_cnps_are_dissected_as_by_decode() {
    let file = Path::new(ROOT).join("testdata/golden/scapy_11_cnp_values.pcap");
    let values = ["count", "load", "rate_mbit_per_s", "flows", "period_us"].map(|name| format!("srdma.cnp.{name}"));
    let fields = values.each_ref().map(String::as_str);
    let seen = dissected(std::slice::from_ref(&file), &fields);
    let texts: Vec<Vec<String>> =
        seen.into_iter().map(|frame| frame.into_iter().map(|cell| cell.join(",")).collect()).collect();
    let expected = [
        ["7", "", "", "", ""],
        ["", "90210", "", "", ""],
        ["", "", "2500", "", ""],
        ["", "", "", "", ""],
        ["", "", "", "12", "48"],
    ];
    assert_eq!(texts, expected);
    compare(&[file]);
}

/// The n-th frame of a capture, from 1.
fn frame(file: &str, number: usize) -> Vec<u8> {
    let mut reader = Reader::open(&Path::new(ROOT).join("testdata").join(file)).expect("a capture");
    let packet = reader.nth(number - 1).expect("so many frames").expect("a frame");
    packet.octets.to_vec()
}

/// Errors are reported as expert information, which can be filtered.
#[test]
fn errors_are_reported() {
    let changed = |mut octets: Vec<u8>, at: usize, octet: u8| {
        octets[at] = octet;
        octets
    };
    let list = frame("golden/scapy_02_endmt_in.pcap", 1);
    let notification = frame("decode/notifications.pcap", 1);
    let fast_cnp = frame("golden/scapy_04_fastcnp.pcap", 6);
    // Behind the Ethernet header: IPv6 40, SRH 8 and a segment; IPv6 twice; IPv6 and options of 24.
    let (tlv, message, bth) = (14 + 40 + 8 + 16, 14 + 40 + 40, 14 + 40 + 24 + 8);
    let last = list.len() - 6;
    let cases = [
        (list.clone(), ""),
        (changed(list.clone(), tlv + 20, 3), "Length and number of entries contradict each other"),
        (changed(list.clone(), tlv + 1, 255), "Runs over the header that it is in"),
        (changed(list.clone(), last, !list[last]), "Bad ICRC"),
        (changed(notification.clone(), message + 4, 9), "Bad checksum,Unknown version"),
        (changed(fast_cnp, bth, 0x04), "A Fast CNP option on a packet that is no CNP"),
    ];
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("wrong.pcapng");
    let mut writer = Writer::new(fs::File::create(&file).expect("a file")).expect("a capture");
    let interface = writer.add_interface("link").expect("an interface");
    for (octets, _) in &cases {
        writer.write_packet(interface, 0, &[octets]).expect("a frame");
    }
    writer.finish().expect("a whole capture");
    let seen = dissected(&[file], &["_ws.expert.message"]);
    assert_eq!(seen.len(), cases.len());
    for ((_, expected), seen) in cases.iter().zip(seen) {
        let messages = seen[0].join(",");
        assert!(messages.contains(expected), "{expected:?}: {messages:?}");
        let is_ours =
            |message: &String| ["Length and", "Runs over", "Bad", "Fast CNP"].iter().any(|w| message.contains(w));
        assert!(!expected.is_empty() || !seen[0].iter().any(is_ours), "{messages:?}");
    }
}

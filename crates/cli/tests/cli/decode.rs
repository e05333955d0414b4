//! `srdma decode` over the golden captures, over packets made for it, and over damaged files.

use crate::tshark;
use serde_json::{Value, json};
use srdma_testkit::seeds;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Key of the HMAC TLVs of `scapy_02_endmt_in.pcap`, for `--hmac-key`.
const GOLDEN_KEY: &str = "42=7365637265742d6b65792d666f722d74657374732d303132333435363738396162";

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

fn srdma(arguments: &[&str], file: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_srdma"));
    command.arg("decode").arg(file).args(arguments).output().expect("the binary runs")
}

/// The objects of a run, which must end well.
fn decode(file: &Path, arguments: &[&str]) -> Vec<Value> {
    let output = srdma(&[&["--json"], arguments].concat(), file);
    assert!(output.status.success(), "{}: {}", file.display(), String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Every golden capture.
fn golden() -> Vec<PathBuf> {
    let files = ["golden", "golden/rxe"].into_iter().flat_map(|directory| {
        let entries = std::fs::read_dir(testdata(directory)).expect("a directory");
        entries.map(|entry| entry.expect("an entry").path())
    });
    let mut files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "pcap")).collect();
    files.sort();
    assert!(files.len() > 50, "the golden captures are there");
    files
}

fn name(file: &Path) -> &str {
    file.file_stem().and_then(|stem| stem.to_str()).expect("a name")
}

/// One field of every object.
fn column<'a>(objects: &'a [Value], field: &str) -> Vec<&'a Value> {
    objects.iter().map(|object| &object[field]).collect()
}

fn write_changed(file: &Path, change: impl FnOnce(&mut Vec<u8>)) -> tempfile::NamedTempFile {
    let mut octets = std::fs::read(file).expect("a file");
    change(&mut octets);
    let changed = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(changed.path(), octets).expect("written");
    changed
}

/// The example in the documentation is the output of the command, and every layer has its description.
#[test]
fn the_documentation_shows_the_output() {
    let documentation = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/decode.md");
    let documentation = std::fs::read_to_string(documentation).expect("a text file");
    let (_, rest) = documentation.split_once("```json").expect("an example");
    let (example, _) = rest.split_once("```").expect("its end");
    let example: Value = serde_json::from_str(example).expect("JSON");
    let objects = decode(&testdata("golden/scapy_02_endmt_in.pcap"), &["--hmac-key", GOLDEN_KEY]);
    assert_eq!(objects[3], example);
    for file in golden().into_iter().chain([testdata("decode/layers.pcap")]) {
        for object in decode(&file, &[]) {
            for (layer, value) in object.as_object().expect("an object") {
                assert!(documentation.contains(&format!("`{layer}`")), "{layer} is not documented");
                let fields = value.as_array().map_or(value, |layers| &layers[0]);
                for field in fields.as_object().into_iter().flat_map(|fields| fields.keys()) {
                    assert!(documentation.contains(&format!("`{field}`")), "{layer}.{field} is not documented");
                }
            }
        }
    }
}

#[test]
fn every_line_is_an_object_whose_layers_are_its_fields() {
    let always = ["frame", "time_ns", "interface", "length_octets", "captured_octets", "icrc", "hmac", "error"];
    for file in golden().into_iter().chain([testdata("decode/layers.pcap"), testdata("capture/two_sections.pcapng")]) {
        let packets: Vec<_> = srdma_capture::Reader::open(&file).expect("a capture").collect();
        let objects = decode(&file, &[]);
        assert_eq!(objects.len(), packets.len(), "{}", file.display());
        for (object, packet) in objects.iter().zip(&packets) {
            let packet = packet.as_ref().expect("undamaged");
            assert_eq!(object["frame"], packet.frame);
            assert_eq!(object["time_ns"], packet.time_ns);
            assert_eq!(object["captured_octets"], packet.octets.len());
            let mut fields: Vec<_> = object.as_object().expect("an object").keys().map(String::as_str).collect();
            let mut expected = always.to_vec();
            expected.push("layers");
            expected
                .extend(object["layers"].as_array().expect("names").iter().map(|name| name.as_str().expect("text")));
            fields.sort_unstable();
            expected.sort_unstable();
            expected.dedup();
            assert_eq!(fields, expected, "{} frame {}", file.display(), packet.frame);
        }
    }
}

/// The verdicts of the golden README; its "ICRC include" counts extension headers, ours does not (D43).
#[test]
fn icrc_verdicts_equal_those_of_the_golden_readme() {
    for file in golden() {
        for object in decode(&file, &[]) {
            let frame = object["frame"].as_u64().expect("a number");
            let expected = match (name(&file), frame) {
                _ if object["bth"].is_null() => "absent",
                ("neg_icrc_mutations", 6..) | ("scapy_04_fastcnp", 2..=5) | ("scapy_05_endc_ende", _) => "bad",
                (ioam, 6) if ioam.starts_with("kernel_t17_ioam") => "bad",
                // Its datagrams are text, not RoCEv2.
                (transit, _) if transit.starts_with("kernel_t20_transit_encap") => "bad",
                _ => "ok",
            };
            assert_eq!(object["icrc"], expected, "{} frame {frame}", file.display());
        }
    }
}

#[test]
fn hmac_is_verified_with_the_cover_that_fits() {
    let file = testdata("golden/scapy_02_endmt_in.pcap");
    let objects = decode(&file, &["--hmac-key", GOLDEN_KEY]);
    let verdicts = ["absent", "absent", "ok", "ok", "absent", "absent", "absent", "absent"];
    assert_eq!(column(&objects, "hmac"), verdicts);
    let tlv = |frame: usize| &objects[frame - 1]["hmac_tlv"][0];
    assert_eq!((&tlv(3)["cover"], &tlv(3)["d_flag"]), (&json!("rfc8754"), &json!(true)));
    assert_eq!((&tlv(4)["cover"], &tlv(4)["key_id"]), (&json!("tlvs"), &json!(42)));

    let without_key = decode(&file, &[]);
    assert_eq!((&without_key[2]["hmac"], &without_key[3]["hmac"]), (&json!("unknown_key"), &json!("unknown_key")));
    let wrong_key = decode(&file, &["--hmac-key", "0x2a=00ff"]);
    assert_eq!((&wrong_key[2]["hmac"], &wrong_key[3]["hmac"]), (&json!("bad"), &json!("bad")));
}

/// A receiver's address that was tampered with is noticed by the cover "tlvs", not by RFC 8754's own (D9).
#[test]
fn only_one_cover_protects_the_receivers() {
    let receiver = "2001:db8:4::5".parse::<std::net::Ipv6Addr>().expect("an address").octets();
    let changed = write_changed(&testdata("golden/scapy_02_endmt_in.pcap"), |octets| {
        let places: Vec<_> = (0..octets.len() - 16).filter(|place| octets[*place..].starts_with(&receiver)).collect();
        places.into_iter().for_each(|place| octets[place + 15] = 6);
    });
    let objects = decode(changed.path(), &["--hmac-key", GOLDEN_KEY]);
    assert_eq!(objects[2]["end_mt"][1]["receivers"][1]["address"], "2001:db8:4::6");
    assert_eq!((&objects[2]["hmac"], &objects[3]["hmac"]), (&json!("ok"), &json!("bad")));
}

/// The HMAC does not cover Segments Left, which determines the destination address.
#[test]
fn a_destination_other_than_the_active_segment_invalidates_the_hmac() {
    let file = testdata("golden/scapy_02_endmt_in.pcap");
    let packets = srdma_capture::Reader::open(&file).expect("a capture");
    let offsets: Vec<_> = packets.map(|packet| packet.expect("undamaged").offset as usize).collect();
    let segments_left = offsets[2] + 16 + 14 + 40 + 3;
    let changed = write_changed(&file, |octets| octets[segments_left] = 0);
    let objects = decode(changed.path(), &["--hmac-key", GOLDEN_KEY]);
    assert_eq!((&objects[2]["srh"][0]["segments_left"], &objects[2]["hmac"]), (&json!(0), &json!("bad")));
    let reason = "the destination address is not Segment List[Segments Left]";
    assert_eq!(objects[2]["hmac_tlv"][0]["reason"], reason);
}

/// Linux leaves two octets out of the text, and D clear where RFC 8754 wants it set: a cover of its own (D9).
#[test]
fn hmac_of_linux_has_its_own_cover() {
    for file in ["kernel_t9_hmac_2r1-r2", "kernel_t10_hmac_red_2r1-r2"] {
        let file = testdata(&format!("golden/{file}.pcap"));
        let objects = decode(&file, &["--hmac-key", "42=7365637265746b6579"]);
        let signed: Vec<_> = objects.iter().filter(|object| !object["srh"].is_null()).collect();
        assert_eq!(signed.len(), 2);
        for object in signed {
            assert_eq!((&object["hmac"], &object["hmac_tlv"][0]["cover"]), (&json!("ok"), &json!("linux")));
        }
    }
}

#[test]
fn receivers_are_spelt_out() {
    let objects = decode(&testdata("golden/scapy_02_endmt_in.pcap"), &[]);
    let first = &objects[0];
    let layers = ["ethernet", "ipv6", "srh", "end_mt", "ipv6", "udp", "bth", "reth", "payload"];
    assert_eq!(first["layers"], json!(layers));
    let receiver = |address: &str, qpn: u32| json!({"address": address, "qpn": qpn});
    let receivers = [receiver("2001:db8:2::1", 0x111), receiver("2001:db8:2::2", 0x222)];
    assert_eq!(first["end_mt"], json!([{"edge": "2001:db8:a::1", "receivers": receivers}]));
    assert_eq!(first["ipv6"][0]["destination"], "5f00:0:1:e000::");
    assert_eq!(first["ipv6"][1]["destination"], "2001:db8:ff::100");
    assert_eq!(first["srh"][0]["segments"], json!(["2001:db8:ff::100"]));
    assert_eq!((&first["srh"][0]["segments_left"], &first["srh"][0]["last_entry"]), (&json!(1), &json!(0)));
    assert_eq!(objects[1]["end_mt"].as_array().map(Vec::len), Some(2));
    assert_eq!(objects[5]["end_mt"][0]["receivers"].as_array().map(Vec::len), Some(11));
}

/// The headers that `make.py` beside the capture wrote.
#[test]
fn every_operation_has_its_headers() {
    let objects = decode(&testdata("decode/layers.pcap"), &[]);
    let frame = |number: usize| &objects[number - 1];
    assert!(objects[..14].iter().all(|object| object["icrc"] == "ok"), "scapy made the ICRC of frames 1 to 14");

    assert_eq!(frame(1)["vlan"], json!([{"id": 5, "priority": 3, "drop_eligible": false, "ethertype": 0x86DD}]));
    assert_eq!(frame(1)["bth"]["solicited_event"], true);
    assert_eq!(frame(1)["payload"], json!({"protocol": "RDMA", "octets": 8}));
    assert_eq!(frame(2)["bth"]["operation"], "RDMA READ Request");
    assert_eq!(frame(2)["reth"], json!({"virtual_address": "0x7f0000001000", "rkey": 0x1234, "dma_length": 8192}));
    assert_eq!(frame(3)["aeth"]["msn"], 3);
    assert_eq!(frame(3)["payload"]["octets"], 1024);
    assert!(frame(4)["aeth"].is_null(), "a READ response Middle has no AETH");
    let (swap_or_add, compare) = ("0x8000000000000000", "0x1");
    let atomic = json!({"virtual_address": "0x2000", "rkey": 0x1234, "swap_or_add": swap_or_add, "compare": compare});
    assert_eq!(frame(5)["atomiceth"], atomic);
    assert_eq!((&frame(6)["aeth"]["code"], &frame(6)["aeth"]["msn"]), (&json!(5), &json!(4)));
    assert_eq!(frame(6)["atomicacketh"], json!({"original": "0x20000000000001"}));
    assert_eq!(frame(7)["ieth"], json!({"rkey": 0x4321}));
    assert_eq!(frame(8)["immdt"], json!({"data": "00c0ffee"}));
    assert_eq!((&frame(8)["bth"]["pad_count"], &frame(8)["payload"]["octets"]), (&json!(1), &json!(3)));
    assert_eq!((&frame(9)["bth"]["opcode"], &frame(9)["bth"]["operation"]), (&json!(0x64), &Value::Null));
    assert_eq!((&frame(10)["cnp"], &frame(10)["bth"]["becn"]), (&json!({"count": 3}), &json!(true)));
    let nak = json!({"syndrome": 0x62, "kind": "nak", "code": 2, "meaning": "NAK Remote Access Error", "msn": 5});
    assert_eq!(frame(11)["aeth"], nak);
    let rnr = json!({"syndrome": 0x20, "kind": "rnr_nak", "code": 0, "meaning": "RNR NAK, 655.36 ms", "msn": 5});
    assert_eq!(frame(12)["aeth"], rnr);
    let regions = json!([
        {"virtual_address": "0x1000", "rkey": 0xAA},
        {"virtual_address": "0xffffffffffff0000", "rkey": 0xBB},
    ]);
    assert_eq!(frame(13)["mr"], json!([{"edge": "2001:db8:a::1", "regions": regions}]));
    assert_eq!(frame(13)["tlv"], json!([{"type": 126, "value": "010203040506"}]));
    assert_eq!(frame(13)["srh"][0]["tag"], 9);
}

#[test]
fn fragments_errors_and_other_protocols_are_named() {
    let objects = decode(&testdata("decode/layers.pcap"), &[]);
    let frame = |number: usize| &objects[number - 1];
    assert_eq!((&frame(15)["fragment"][0]["more_fragments"], &frame(15)["udp"]), (&json!(true), &Value::Null));
    assert_eq!(frame(16)["fragment"][0]["offset_octets"], 24);
    let too_big = &frame(17)["icmpv6"];
    assert_eq!((&too_big["name"], &too_big["parameter"]), (&json!("Packet Too Big"), &json!(1280)));
    assert_eq!((&too_big["checksum"], &too_big["quoted"]["destination"]), (&json!("ok"), &json!("2001:db8:2::1")));
    assert_eq!(frame(18)["icmpv6"]["name"], "Parameter Problem: SR Upper-layer Header Error");
    assert_eq!(frame(19)["payload"], json!({"protocol": "UDP port 53", "octets": 8}));
    assert_eq!(frame(19)["udp"]["checksum"], "ok");
    assert_eq!(frame(20)["payload"], json!({"protocol": "TCP", "octets": 20}));
    assert!(objects[14..].iter().all(|object| object["icrc"] == "absent"));
}

#[test]
fn udp_checksum_zero_is_absent_and_others_are_verified() {
    let verdict = |file: &str, frame: usize| decode(&testdata(file), &[])[frame - 1]["udp"]["checksum"].clone();
    assert_eq!(verdict("golden/scapy_02_endmt_in.pcap", 1), "absent");
    assert_eq!(verdict("golden/scapy_01_rocev2_base.pcap", 6), "ok");
    assert_eq!(verdict("golden/neg_icrc_mutations.pcap", 4), "bad");
    // The pseudo-header has the final destination, not the segment that is due.
    assert_eq!(verdict("golden/kernel_t8_inline_1h1-r1.pcap", 1), "ok");
}

#[test]
fn a_damaged_tlv_is_reported_and_the_packet_is_shown() {
    let object = decode(&testdata("decode/layers.pcap"), &[])[13].clone();
    let error = json!({"within": "packet", "offset": 14 + 40 + 8 + 16, "reason": "TLV reaches beyond the SRH"});
    assert_eq!(object["error"], error);
    assert_eq!((&object["bth"]["psn"], &object["icrc"]), (&json!(7), &json!("ok")));
}

#[test]
fn other_link_types_and_cut_packets_are_reported() {
    let objects = decode(&testdata("capture/two_sections.pcapng"), &[]);
    assert_eq!(objects[2]["interface"], "tun0");
    assert_eq!(objects[2]["error"]["reason"], "expected Ethernet, found link type 101 (RAW)");
    assert_eq!(objects[0]["error"]["offset"], 54);
    let reason = "IPv6 header promises 76 octets, 6 left (the capture has 60 octets of 130)";
    assert_eq!(objects[0]["error"]["reason"], reason);
    assert_eq!((&objects[0]["length_octets"], &objects[0]["captured_octets"]), (&json!(130), &json!(60)));
    assert_eq!((&objects[1]["icrc"], &objects[1]["error"]), (&json!("ok"), &Value::Null));
}

#[test]
fn the_text_output_has_a_line_for_each_packet() {
    let output = srdma(&["--hmac-key", GOLDEN_KEY], &testdata("golden/scapy_02_endmt_in.pcap"));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(text.lines().count(), 8);
    let expected = "    4  0.000483000  2001:db8:6::1 > 5f00:0:1:e000:: | SRH SL 1 LE 0 [2001:db8:ff::100] \
                    | End.MT edge 2001:db8:a::1 {2001:db8:2::1 QPN 0x111, 2001:db8:2::2 QPN 0x222} \
                    | End.MT edge 2001:db8:a::3 {2001:db8:4::4 QPN 0x444, 2001:db8:4::5 QPN 0x555} \
                    | HMAC key 42 D ok (cover tlvs) | 2001:db8:1::1 > 2001:db8:ff::100 | UDP 53249 > 4791 \
                    | RDMA WRITE Only QPN 0xabcd PSN 100 AckReq | VA 0x7f0011223344 R_Key 0x1234 length 33 \
                    | 33 octets of RDMA  ICRC ok";
    assert_eq!(text.lines().nth(3), Some(expected));

    let output = srdma(&[], &testdata("golden/neg_icrc_mutations.pcap"));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(text.lines().filter(|line| line.contains("  ICRC BAD")).count(), 7);
    let damaged = "  ICRC BAD  DAMAGED at offset 54 of the packet: IPv6 header promises 77 octets, 76 left";
    assert!(text.lines().last().is_some_and(|line| line.ends_with(damaged)), "{text}");
}

#[test]
fn unreadable_files_are_named_with_exit_code_2() {
    let refused = |file: &Path, arguments: &[&str], expected: &[&str]| {
        let output = srdma(arguments, file);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(output.stdout.is_empty());
        expected.iter().for_each(|part| assert!(message.contains(part), "{part:?} is not in {message:?}"));
    };
    refused(Path::new("no-such-file.pcap"), &[], &["no-such-file.pcap", "No such file"]);
    let readme = testdata("golden/README.md");
    refused(&readme, &[], &["golden/README.md", "expected a pcap or pcapng capture", "23 20 47 6f"]);
    let capture = testdata("golden/scapy_01_rocev2_base.pcap");
    refused(&capture, &["--hmac-key", "42"], &["expected ID=HEX"]);
    refused(&capture, &["--hmac-key", "4294967296=00"], &["32-bit HMAC Key ID", "4294967296"]);
    refused(&capture, &["--hmac-key", "1=abc"], &["in hexadecimal", "Odd number of digits"]);
    refused(&capture, &["--hmac-key", "1="], &["at least one octet"]);
    refused(&capture, &["--hmac-key", "1=zz"], &["in hexadecimal", "Invalid character"]);
}

/// A file cut at every 7th octet: no panic, no exit code but 0 and 2, at most one damage, the last. Cuts of all golden
/// files, and flipped octets, are tested within the crate, without a process for each.
#[test]
fn a_cut_file_is_shown_up_to_the_cut() {
    let file = testdata("golden/scapy_02_endmt_in.pcap");
    let whole = std::fs::read(&file).expect("a file");
    let cut = tempfile::NamedTempFile::new().expect("a file");
    let step = (whole.len() / seeds::count(10_000) as usize).max(7);
    for len in (0..whole.len()).step_by(step) {
        std::fs::write(cut.path(), &whole[..len]).expect("written");
        let output = srdma(&["--json"], cut.path());
        assert_eq!(output.status.code(), Some(if len < 24 { 2 } else { 0 }), "cut at {len}");
        let lines = String::from_utf8(output.stdout).expect("UTF-8");
        let objects: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert!(objects.iter().rev().skip(1).all(|object| object["error"].is_null()), "cut at {len}");
        if let Some(Value::Object(error)) = objects.last().map(|object| &object["error"]) {
            assert_eq!(error["within"], "file", "cut at {len}");
        }
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let mut writer = srdma_capture::Writer::new(file.as_file()).expect("written");
    let interface = writer.add_interface("S1-N6").expect("written");
    for number in 0..5_000 {
        writer.write_packet(interface, number, &[&[0; 60]]).expect("written");
    }
    writer.finish().expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_srdma"));
    command.args(["decode", "--json"]).arg(file.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary runs");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    assert!(line.contains("S1-N6"));
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// The addresses of all IPv6 headers and the fields of the BTH are those that tshark sees.
#[test]
fn addresses_and_bth_equal_those_of_tshark() {
    let files: Vec<_> = golden().into_iter().chain([testdata("decode/layers.pcap")]).collect();
    let fields = ["ipv6.src", "ipv6.dst", "infiniband.bth.opcode", "infiniband.bth.psn", "infiniband.bth.destqp"];
    let seen = tshark::lines(&files, &["-E", "aggregator= "], &fields);
    let frames = |file: &PathBuf| {
        let name = name(file).to_owned();
        decode(file, &[]).into_iter().map(move |object| (format!("{name} frame {}", object["frame"]), object))
    };
    let objects: Vec<_> = files.iter().flat_map(frames).collect();
    assert_eq!(seen.len(), objects.len());
    for (line, (place, object)) in seen.iter().zip(&objects) {
        let columns: Vec<_> = line.split('\t').collect();
        if !object["ipv6"].is_null() {
            assert_eq!(addresses(object, "source"), columns[0], "{place}");
            assert_eq!(addresses(object, "destination"), columns[1], "{place}");
        }
        if !object["bth"].is_null() {
            let bth = |field: &str| object["bth"][field].as_u64().expect("a number");
            let found = [bth("opcode").to_string(), bth("psn").to_string(), format!("{:#08x}", bth("dest_qpn"))];
            assert_eq!(found, columns[2..5], "{place}");
        }
    }
}

/// The addresses of an object's IPv6 headers, the one that an ICMPv6 error quotes included.
fn addresses(object: &Value, end: &str) -> String {
    let headers = object["ipv6"].as_array().expect("an array").iter().chain([&object["icmpv6"]["quoted"]]);
    let addresses: Vec<_> = headers.filter_map(|header| header[end].as_str()).collect();
    addresses.join(" ")
}

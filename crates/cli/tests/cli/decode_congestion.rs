//! The output of `srdma decode` for congestion: Fast CNPs, traces, pauses, and the messages that connect queue pairs;
//! compared with tshark where that supports them.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

fn srdma(arguments: &[&str], file: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_srdma")).arg("decode").arg(file).args(arguments).output().expect("the binary runs")
}

fn lines(arguments: &[&str], file: &Path) -> Vec<String> {
    let output = srdma(arguments, file);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8").lines().map(str::to_owned).collect()
}

fn decode(file: &Path, arguments: &[&str]) -> Vec<Value> {
    let lines = lines(&[&["--json"], arguments].concat(), file);
    lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// One line for each packet: the fields as tshark sees them, tabs between them, commas between several of one.
fn tshark(file: &Path, fields: &[&str]) -> Vec<Vec<String>> {
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(file).args(["-T", "fields", "-E", "aggregator= "]);
    tshark.args(fields.iter().flat_map(|field| ["-e", field]));
    let output = tshark.output().expect("tshark is installed, as `cargo xtask ci` sees to");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// A copy of one packet of a capture, changed.
fn changed(file: &Path, frame: usize, change: impl FnOnce(&mut Vec<u8>)) -> tempfile::NamedTempFile {
    let packet = srdma_capture::Reader::open(file).expect("a capture").nth(frame - 1).expect("it is there");
    let mut octets = packet.expect("undamaged").octets;
    change(&mut octets);
    let copy = tempfile::NamedTempFile::new().expect("a file");
    let mut writer = srdma_capture::Writer::new(copy.as_file()).expect("written");
    let interface = writer.add_interface("port").expect("written");
    writer.write_packet(interface, 0, &[&octets]).expect("written");
    writer.finish().expect("written");
    copy
}

fn reason(file: &tempfile::NamedTempFile, arguments: &[&str]) -> (Value, Value) {
    let object = decode(file.path(), arguments).remove(0);
    (object["error"]["offset"].clone(), object["error"]["reason"].clone())
}

const TYPES: [&str; 2] = ["--fast-cnp-types", "0x9e,0x9d"];

#[test]
fn both_options_are_explained() {
    let file = testdata("golden/scapy_04_fastcnp.pcap");
    let objects = decode(&file, &TYPES);
    let option = |frame: usize| &objects[frame - 1]["destination_options"][0]["options"][0];
    for frame in [3, 4, 6, 7] {
        let expected = json!({"option": 1, "original_destination": "2001:db8:2::1"});
        assert_eq!((&option(frame)["fast_cnp"], &option(frame)["type"]), (&expected, &json!(0x9E)), "frame {frame}");
    }
    for frame in [5, 8] {
        let fast_cnp = &option(frame)["fast_cnp"];
        assert_eq!((&fast_cnp["option"], &option(frame)["type"]), (&json!(2), &json!(0x9D)), "frame {frame}");
        assert_eq!(fast_cnp["original_destination"], "2001:db8:2::1");
        // The trace is that of the data packet in frame 2.
        let carried = &objects[1]["hop_by_hop"][0]["options"][0]["ioam_trace"];
        assert_eq!(fast_cnp["trace"].as_object().expect("a trace"), carried.as_object().expect("a trace"));
        assert!(carried["nodes"].as_array().is_some_and(|nodes| !nodes.is_empty()), "{carried}");
    }
    assert!(objects.iter().all(|object| object["error"].is_null()));
    let expected = "2001:db8:53::1 > 2001:db8:1::1 | Destination Options Fast CNP option 1 about packets to \
                    2001:db8:2::1 | UDP 53249 > 4791 | CNP QPN 0xabcd PSN 0 BECN  ICRC ok";
    let lines = lines(&TYPES, &file);
    assert!(lines[5].ends_with(expected), "{}", lines[5]);
    assert!(lines[7].contains("Fast CNP option 2 about packets to 2001:db8:2::1 with IOAM trace"), "{}", lines[7]);
    // Without the types, option 2 is an option like any other.
    let unknown = &decode(&file, &[])[7];
    assert!(unknown["destination_options"][0]["options"][0].get("fast_cnp").is_none());
}

#[test]
fn errors_of_a_fast_cnp_are_reported() {
    let file = testdata("golden/scapy_04_fastcnp.pcap");
    // Ethernet 14, IPv6 40, options header 2, then option 1: type, length, address.
    const OPTION: usize = 14 + 40 + 2;
    let of = |frame, change: fn(&mut Vec<u8>)| reason(&changed(&file, frame, change), &TYPES);
    let is = |found: (Value, Value), offset: usize, text: &str| assert_eq!(found, (json!(offset), json!(text)));
    is(of(6, |octets| octets[OPTION + 1] = 15), OPTION, "Fast CNP option at offset 2 needs 16 octets, has 15");
    is(of(6, |octets| octets[OPTION + 1] = 18), OPTION, "Fast CNP option at offset 2 can use 16 octets, has 18");
    is(
        of(6, |octets| octets[14 + 40 + 24 + 8] = 0x11),
        OPTION,
        "a Fast CNP option in a packet with BTH opcode 0x11, no CNP",
    );
    is(
        of(6, |octets| {
            octets[14 + 6] = 0;
        }),
        OPTION,
        "a Fast CNP option in the header at offset 40, not directly before UDP",
    );
    let twice = |octets: &mut Vec<u8>| {
        let option: Vec<u8> = octets[OPTION..OPTION + 18].to_vec();
        let place = OPTION + 18..OPTION + 22;
        octets.splice(place, option.into_iter().chain([0, 0]));
        octets[14 + 40 + 1] = 4;
        octets[14 + 5] += 16;
    };
    is(of(6, twice), OPTION, "a second Fast CNP option at offset 20");
    // In option 2 the trace begins behind type and length; RemainingLen is its sixth octet.
    let (offset, text) = of(8, |octets| {
        let start = octets.windows(2).position(|two| two[0] == 0x9D && two[1] > 16).expect("option 2");
        octets[start + 2 + 5] |= 0x7F;
    });
    assert_eq!(text, "IOAM trace: RemainingLen 127 in a data space of 6 words", "at {offset}");
}

#[test]
fn traces_of_the_kernel_equal_those_of_tshark() {
    const FIELDS: [(&str, &str); 9] = [
        ("node_id", "ipv6.opt.ioam.trace.node.id"),
        ("hop_limit", "ipv6.opt.ioam.trace.node.hlim"),
        ("ingress", "ipv6.opt.ioam.trace.node.iif"),
        ("egress", "ipv6.opt.ioam.trace.node.eif"),
        ("queue_depth", "ipv6.opt.ioam.trace.node.qdepth"),
        ("timestamp_seconds", "ipv6.opt.ioam.trace.node.tss"),
        ("ingress", "ipv6.opt.ioam.trace.node.iif_wide"),
        ("egress", "ipv6.opt.ioam.trace.node.eif_wide"),
        ("namespace_data", "ipv6.opt.ioam.trace.node.nsdata"),
    ];
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).expect("a number"),
        None => text.parse().expect("a number"),
    };
    let mut compared = 0;
    for file in ["1h1-r1", "2r1-r2", "3r2-r3", "4r3-h2"].map(|end| format!("golden/kernel_t17_ioam_{end}.pcap")) {
        let file = testdata(&file);
        let whole = ["ipv6.opt.ioam.trace.ns", "ipv6.opt.ioam.trace.nodelen", "ipv6.opt.ioam.trace.remlen"];
        let seen = tshark(&file, &[&whole[..], &FIELDS.map(|(_, field)| field)].concat());
        for (object, columns) in decode(&file, &[]).iter().zip(seen) {
            let options = object["hop_by_hop"][0]["options"].as_array().cloned().unwrap_or_default();
            let trace = options.iter().find_map(|option| option.get("ioam_trace"));
            assert_eq!(trace.is_some(), !columns[0].is_empty(), "{}: {object}", file.display());
            let Some(trace) = trace else { continue };
            let header = ["namespace_id", "node_len_words", "remaining_len_words"].map(|name| trace[name].as_u64());
            assert_eq!(header.to_vec(), columns[..3].iter().map(|text| Some(number(text))).collect::<Vec<_>>());
            for (name, _) in FIELDS {
                let columns = FIELDS.iter().zip(&columns[3..]).filter(|((other, _), _)| *other == name);
                let numbers = columns.flat_map(|(_, column)| column.split(' ').filter(|text| !text.is_empty()));
                // Fields that a node did not fill are all ones, and left out here.
                let unknown = [0xFF_FFFF, 0xFFFF, 0xFFFF_FFFF];
                let expected: Vec<u64> = numbers.map(number).filter(|number| !unknown.contains(number)).collect();
                let nodes = trace["nodes"].as_array().expect("an array");
                let found: Vec<u64> = nodes.iter().filter_map(|node| node[name].as_u64()).collect();
                assert_eq!(found, expected, "{} {name}: {trace}", file.display());
                compared += found.len();
            }
        }
    }
    assert!(compared > 50, "{compared}");
}

#[test]
fn pauses_equal_those_of_tshark() {
    let file = testdata("golden/scapy_06_pfc.pcap");
    let classes: Vec<String> = (0..8).map(|class| format!("macc.cbfc.pause_time.c{class}")).collect();
    let mut fields = vec!["macc.cbfc.enbv", "macc.pause_time"];
    fields.extend(classes.iter().map(String::as_str));
    let objects = decode(&file, &["--link-rate", "100G"]);
    for (object, columns) in objects.iter().zip(tshark(&file, &fields)) {
        if object["pause"].is_object() {
            assert_eq!((&columns[0], object["pause"]["quanta"].to_string()), (&String::new(), columns[1].clone()));
            continue;
        }
        let enable = object["pfc"]["class_enable"].as_u64().expect("a number");
        assert_eq!(format!("{enable:#06x}"), columns[0]);
        for paused in object["pfc"]["classes"].as_array().expect("an array") {
            let (class, quanta) = (paused["class"].as_u64().expect("a number"), paused["quanta"].as_u64());
            assert!(enable >> class & 1 == 1);
            assert_eq!(quanta.expect("a number").to_string(), columns[2 + class as usize]);
        }
    }
    // 65,535 quanta of 512 bits at 100 Gbit/s are 335.539 µs.
    let classes = json!([{"class": 3, "quanta": 65535, "pause_ns": 335_539}]);
    assert_eq!(objects[0]["pfc"], json!({"class_enable": 8, "classes": classes}));
    assert_eq!(objects[3]["pause"], json!({"quanta": 5, "pause_ns": 25}));
    let lines = lines(&[], &file);
    let says = |frame: usize, text: &str| assert!(lines[frame - 1].ends_with(text), "{}", lines[frame - 1]);
    says(1, " | PFC classes 0x08 {pause 3 for 65535 quanta}");
    says(2, " | PFC classes 0x08 {resume 3}");
    says(4, " | PAUSE for 5 quanta");
    let cut = reason(&changed(&file, 1, |octets| octets.truncate(14 + 10)), &[]);
    assert_eq!(cut, (json!(14), json!("PFC needs 20 octets, 10 left")));
    let other = reason(&changed(&file, 1, |octets| octets[5] = 2), &[]);
    assert_eq!(other, (json!(0), json!("a pause goes to 01:80:c2:00:00:01, found 01:80:c2:00:00:02")));
}

#[test]
fn connections_equal_those_of_tshark() {
    let file = testdata("cm/connection.pcap");
    let fields = [
        "infiniband.mad.attributeid",
        "infiniband.mad.transactionid",
        "infiniband.deth.srcqp",
        "infiniband.cm.req.localqpn",
        "infiniband.cm.rep.localqpn",
        "infiniband.cm.rep.remotecommid",
        "infiniband.cm.dreq.remotecommid",
    ];
    let number = |value: &Value| value.as_u64().map(|number| format!("{number:#x}")).unwrap_or_default();
    let plain = |text: &str| text.replacen("0x", "", 1).trim_start_matches('0').to_owned();
    let objects = decode(&file, &[]);
    for (object, columns) in objects.iter().zip(tshark(&file, &fields)) {
        let cm = &object["cm"];
        assert_eq!(plain(&number(&cm["attribute_id"])), plain(&columns[0]), "{object}");
        assert_eq!(plain(cm["transaction_id"].as_str().expect("text")), plain(&columns[1]), "{object}");
        assert_eq!(plain(&number(&object["deth"]["source_qpn"])), plain(&columns[2]), "{object}");
        let qpns = match cm["name"].as_str() {
            // Of an XRC connection only the damage is reported.
            Some("ConnectRequest") if object["error"].is_null() => Some((&cm["local_qpn"], &columns[3])),
            Some("ConnectReply") => Some((&cm["local_qpn"], &columns[4])),
            _ => None,
        };
        if let Some((found, expected)) = qpns {
            assert_eq!(plain(&number(found)), plain(expected), "{object}");
        }
        let remote = format!("{}{}", columns[5], columns[6]);
        if !remote.is_empty() {
            assert_eq!(plain(&number(&cm["remote_id"])), plain(&remote), "{object}");
        }
    }
    let names: Vec<_> = objects.iter().map(|object| object["cm"]["name"].as_str().expect("a name")).collect();
    let expected = ["ConnectRequest", "ConnectReply", "ReadyToUse", "DisconnectRequest", "DisconnectReply"];
    assert_eq!(names, [&expected[..], &["ConnectRequest"]].concat());
    assert_eq!((&objects[3]["cm"]["remote_qpn"], &objects[0]["cm"]["remote_id"]), (&json!(0xABCD), &Value::Null));
    assert!(objects[5]["error"]["reason"].as_str().is_some_and(|reason| reason.starts_with("ConnectRequest of MAD")));
    let text = lines(&[], &file);
    assert!(text[1].contains(" | CM ConnectReply id ") && text[1].contains(" QPN 0xabcd  ICRC ok"), "{}", text[1]);
}

#[test]
fn contradictory_options_are_refused() {
    for (option, value, expected) in
        [("--fast-cnp-types", "0x1e,0x9e", "from 0x80 to 0x9f"), ("--link-rate", "fast", "expected bits per second")]
    {
        let output = srdma(&[option, value], &testdata("golden/scapy_06_pfc.pcap"));
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(expected), "{message}");
    }
}

/// D60: a pause and its end, for an END.C SID. tshark names the type, and accepts the checksum.
#[test]
fn notifications_are_named_with_their_fields() {
    let file = testdata("decode/notifications.pcap");
    let objects = decode(&file, &[]);
    let say = |index: usize| &objects[index]["icmpv6"]["notification"];
    let congested = "2001:db8:53::2";
    let pause = json!({"ask": "pause", "traffic_class": 3, "level": 192, "sequence": 7, "hold_us": 10000,
        "congested": congested});
    let resume = json!({"ask": "resume", "traffic_class": 3, "level": 0, "sequence": 5008, "hold_us": 0,
        "congested": congested});
    assert_eq!((say(0), say(1)), (&pause, &resume));
    let fields = ["icmpv6.type", "icmpv6.code", "icmpv6.checksum.status"];
    for (object, seen) in objects.iter().zip(tshark(&file, &fields)) {
        let icmpv6 = &object["icmpv6"];
        assert_eq!(seen, [icmpv6["type"].to_string(), icmpv6["code"].to_string(), "1".to_owned()]);
        assert_eq!(icmpv6["checksum"], "ok");
    }
    let text = lines(&[], &file).join("\n");
    let words = "ICMPv6 200/0 Congestion Notification: pause class 3 level 192 hold 10000 us sequence 7 congested";
    assert!(text.contains(words), "{text}");
    let damaged = changed(&file, 1, |octets| octets[14 + 40 + 40 + 4] = 9);
    assert_eq!(decode(damaged.path(), &[])[0]["icmpv6"]["notification"], Value::Null, "another version");
}

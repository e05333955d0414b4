//! The run itself: its errors, and that it leaves no incomplete file.

use crate::process::common::{Bench, golden, packets};
use srdma_capture::{Reader, Writer};
use std::net::Ipv6Addr;

const NODE: &str = "[node]
loopback = '2001:db8::1'
[[port]]
name = 'left'
mac = '02:00:00:00:00:02'
[[port]]
name = 'right'
mac = '02:00:00:00:00:03'
";

fn input() -> (&'static str, std::path::PathBuf) {
    ("left", golden("scapy_02_endmt_in"))
}

#[test]
fn wrong_arguments_are_named() {
    let bench = Bench::new(NODE);
    let says = |inputs: &[(&str, std::path::PathBuf)], arguments: &[&str]| bench.refused(inputs, arguments);
    assert_eq!(
        says(&[("middle", "in.pcap".into())], &[]),
        "srdma: --in middle=in.pcap: unknown port middle, node.toml has ports left, right\n"
    );
    assert_eq!(
        says(&[("left", "none.pcap".into())], &[]),
        "srdma: port left: cannot read none.pcap: No such file or directory (os error 2)\n"
    );
    assert_eq!(says(&[("left", ".".into())], &[]), "srdma: port left: cannot read .: Is a directory (os error 21)\n");
    let text = says(&[("left", "node.toml".into())], &[]);
    assert!(
        text.starts_with("srdma: port left: cannot read node.toml: expected a pcap or pcapng capture, found"),
        "{text}"
    );
    let text = says(&[input()], &["--run-on", "3"]);
    assert!(text.contains("expected a number and one of ns, us, ms, s, such as 200ms"), "{text}");
    assert!(says(&[], &["--in", "left"]).contains("expected PORT=FILE, found no '='"));
    assert!(says(&[], &["--in", "left="]).contains("expected PORT=FILE, found nothing beside '='"));
    assert!(says(&[], &[]).contains("--in <PORT=FILE>"));
    assert!(!bench.path("out").exists());
}

#[test]
fn a_wrong_configuration_is_named() {
    let bench = Bench::new(&NODE.replace("mac", "mca"));
    let text = bench.refused(&[input()], &[]);
    assert!(
        text.starts_with("srdma: node.toml:5: unknown key `mca`, expected one of `name`, `interface`, `driver`, `mac`"),
        "{text}"
    );
    assert!(!bench.path("out").exists());
    std::fs::remove_file(bench.path("node.toml")).expect("removed");
    assert_eq!(bench.refused(&[input()], &[]), "srdma: node.toml: No such file or directory (os error 2)\n");
}

/// The files of an earlier run stay; this one leaves none.
#[test]
fn a_failed_run_leaves_no_incomplete_file() {
    let bench = Bench::new(NODE);
    let whole = std::fs::read(golden("scapy_02_endmt_in")).expect("a capture");
    std::fs::write(bench.path("cut.pcap"), &whole[..700]).expect("written");
    bench.run(&[input()], &[]);
    let before = std::fs::read(bench.path("out/left.pcapng")).expect("a capture");
    assert_eq!(
        bench.refused(&[("left", "cut.pcap".into())], &[]),
        "srdma: port left: cut.pcap: packet 3 at offset 636: packet needs 362 octets, 48 left in the file\n"
    );
    let names = std::fs::read_dir(bench.path("out")).expect("a directory");
    let mut names: Vec<_> = names.map(|entry| entry.expect("an entry").file_name()).collect();
    names.sort();
    assert_eq!(names, ["left.pcapng", "right.pcapng"]);
    assert_eq!(std::fs::read(bench.path("out/left.pcapng")).expect("a capture"), before);

    std::fs::create_dir(bench.path("out/right.pcapng.d")).expect("made");
    std::fs::remove_file(bench.path("out/right.pcapng")).expect("removed");
    std::fs::rename(bench.path("out/right.pcapng.d"), bench.path("out/right.pcapng")).expect("renamed");
    let text = bench.refused(&[input()], &[]);
    assert_eq!(text, "srdma: cannot write out/right.pcapng: Is a directory (os error 21)\n");
}

#[test]
fn an_output_directory_that_cannot_be_made_is_named() {
    let bench = Bench::new(NODE);
    std::fs::write(bench.path("out"), "").expect("written");
    assert_eq!(bench.refused(&[input()], &[]), "srdma: cannot write out: File exists (os error 17)\n");
}

#[test]
fn other_link_layers_are_refused() {
    let bench = Bench::new(NODE);
    let mut capture = std::fs::read(golden("scapy_02_endmt_in")).expect("a capture");
    // The header's link type: 101 is raw IP.
    capture[20] = 101;
    std::fs::write(bench.path("raw.pcap"), capture).expect("written");
    let text = bench.refused(&[("right", "raw.pcap".into())], &[]);
    assert_eq!(
        text,
        "srdma: port right: raw.pcap: packet 1 has link type 101 (RAW), expected link type 1 (ETHERNET)\n"
    );
}

/// A packet to 2001:db8:2::1 for this MAC address, identified by its flow label.
fn packet(mac: u8, flow_label: u8) -> Vec<u8> {
    let mut packet = vec![2, 0, 0, 0, 0, mac, 2, 0, 0, 0, 0, 9, 0x86, 0xDD];
    packet.extend([0x60, 0, 0, flow_label, 0, 0, 59, 64]);
    for host in ["2001:db8:1::1", "2001:db8:2::1"] {
        packet.extend(host.parse::<Ipv6Addr>().expect("an address").octets());
    }
    packet
}

/// Captures of two ports, and two captures of one port, are one sequence of packets in time.
#[test]
fn captures_are_merged_by_time() {
    let bench = Bench::new(&format!(
        "{NODE}[[port]]\nname = 'out'\nmac = '02:00:00:00:00:04'\n\
         [[neighbour]]\naddress = '2001:db8:2::1%out'\nmac = '02:00:00:00:00:05'\n"
    ));
    let captures = [("left", 2, "1", [10, 40, 50]), ("left", 2, "2", [20, 60, 80]), ("right", 3, "3", [5, 30, 70])];
    let mut inputs = Vec::new();
    for (port, mac, name, times) in captures {
        let mut writer = Writer::new(Vec::new()).expect("memory");
        let interface = writer.add_interface(port).expect("memory");
        for time in times {
            writer.write_packet(interface, time.into(), &[&packet(mac, time)]).expect("memory");
        }
        std::fs::write(bench.path(name), writer.finish().expect("memory")).expect("written");
        inputs.push((port, name.into()));
    }
    bench.run(&inputs, &[]);
    let sent = bench.sent("out");
    let order: Vec<_> = sent.iter().map(|packet| (packet.time_ns, packet.ipv6()[3])).collect();
    assert_eq!(order, [5, 10, 20, 30, 40, 50, 60, 70, 80].map(|time| (u64::from(time), time)));
}

/// A capture may hold what no wire carries: segments that a host's network card has merged.
#[test]
fn packets_longer_than_a_frame_are_counted() {
    let bench = Bench::new(NODE);
    let mut writer = Writer::new(Vec::new()).expect("memory");
    let interface = writer.add_interface("left").expect("memory");
    for (time_ns, len) in [(5, 15_361), (4, 15_360), (6, 60)] {
        writer.write_packet(interface, time_ns, &[&vec![0; len]]).expect("memory");
    }
    std::fs::write(bench.path("merged.pcapng"), writer.finish().expect("memory")).expect("written");
    let report = bench.run(&[("left", "merged.pcapng".into())], &["--run-on", "0s"]);
    assert_eq!((&report["packets"], &report["too_long"]), (&3.into(), &1.into()));
    assert_eq!(report["ports"][0]["received"]["frames"], 2);
    // The second time stamp is before the first; the node's time does not go back.
    assert_eq!((&report["first_time_ns"], &report["end_time_ns"]), (&5.into(), &6.into()));
}

/// The captures name their ports, and a run without packets writes them, too.
#[test]
fn outputs_are_captures_even_without_packets() {
    let bench = Bench::new(NODE);
    let empty = Writer::new(Vec::new()).and_then(Writer::finish).expect("memory");
    std::fs::write(bench.path("empty.pcapng"), empty).expect("written");
    let report = bench.run(&[("left", "empty.pcapng".into())], &[]);
    assert!(report["first_time_ns"].is_null());
    let mut reader = Reader::open(&bench.path("out/right.pcapng")).expect("a capture");
    assert!(reader.next().is_none());
    assert_eq!(reader.interfaces()[0].name.as_deref(), Some("right"));
}

#[test]
fn the_text_report_names_drops() {
    let bench = Bench::new(NODE);
    let output = bench.try_run(&[input()], &["--run-on", "0ns"]);
    assert!(output.status.success());
    let sent = packets(&bench.path("out/right.pcapng"));
    assert_eq!(sent, []);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    // The node has no route for the ICMPv6 errors that it answers with either.
    let expected = "\
8 packets, 0.001179 s of the node's time

port     received          octets        sent          octets
left            8            2584           0               0
right           0               0           0               0

dropped, received at left: 1 no_multicast_route
dropped, received at left: 7 no_route
dropped, made by the node: 7 no_route
";
    assert_eq!(text, expected);
}

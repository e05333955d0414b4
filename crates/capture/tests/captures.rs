//! Captures written by others, captures written here and read by others, and damaged captures.

use srdma_capture::{LinkType, Merge, Packet, ReadError, Reader, Reason, Writer};
use std::path::{Path, PathBuf};
use std::process::Command;

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

fn read(octets: &[u8]) -> Vec<Result<Packet, ReadError>> {
    Reader::new(octets).expect("a capture").collect()
}

fn packets(name: &str) -> Vec<Packet> {
    let reader = Reader::open(&testdata(name)).expect("a capture");
    reader.collect::<Result<_, _>>().expect("an undamaged capture")
}

#[test]
fn packets_equal_those_of_tshark() {
    let expected = std::fs::read_to_string(testdata("capture/expected.tsv")).expect("a text file");
    let mut found = String::new();
    for name in ["be_us.pcap", "be_ns.pcap", "le_ns.pcap", "two_sections.pcapng"] {
        for packet in packets(&format!("capture/{name}")) {
            let (seconds, ns) = (packet.time_ns / 1_000_000_000, packet.time_ns % 1_000_000_000);
            let (captured, original) = (packet.octets.len(), packet.original_len);
            let interface = packet.interface.name.as_deref().unwrap_or("");
            found += &format!("{name}\t{seconds}.{ns:09}\t{captured}\t{original}\t{interface}\n");
        }
    }
    assert_eq!(found, expected);
}

#[test]
fn octets_are_the_same_in_every_format() {
    let frames: Vec<_> = packets("golden/scapy_01_rocev2_base.pcap").into_iter().map(|packet| packet.octets).collect();
    for name in ["be_us.pcap", "be_ns.pcap", "le_ns.pcap"] {
        let found: Vec<_> = packets(&format!("capture/{name}")).into_iter().map(|packet| packet.octets).collect();
        assert_eq!(found, frames, "{name}");
    }
    let found = packets("capture/two_sections.pcapng");
    let section = [&frames[0][..60], &frames[1], &frames[2][14..], &frames[3], &frames[4][..60]];
    assert_eq!(found.len(), 2 * section.len());
    for (packet, frame) in found.iter().zip(section.iter().cycle()) {
        assert_eq!(packet.octets, *frame, "frame {}", packet.frame);
    }
}

#[test]
fn interfaces_are_counted_across_sections() {
    let mut reader = Reader::open(&testdata("capture/two_sections.pcapng")).expect("a capture");
    assert!(reader.interfaces().is_empty(), "none is described before the first packet is read");
    let positions: Vec<_> = reader.by_ref().map(|packet| packet.expect("undamaged").interface.index).collect();
    assert_eq!(positions, [0, 1, 2, 1, 0, 3, 4, 5, 4, 3]);
    let link_types: Vec<_> = reader.interfaces().iter().map(|interface| interface.link_type.0).collect();
    assert_eq!(link_types, [1, 1, 101, 1, 1, 101]);
    assert_eq!(LinkType(101).to_string(), "link type 101 (RAW)");
    assert_eq!(LinkType(4000).to_string(), "link type 4000");
}

fn written() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new()).expect("memory takes all");
    let first = writer.add_interface("S1-N6").expect("a short name");
    writer.write_packet(first, 1_700_000_000_000_000_001, &[&[0xAA; 14], &[], &[1, 2, 3]]).expect("memory takes all");
    let second = writer.add_interface("N6-N4").expect("a short name");
    for len in 60..64 {
        writer.write_packet(second, 1_700_000_001_000_000_000 + len, &[&vec![7; len as usize]]).expect("memory");
    }
    writer.finish().expect("memory takes all")
}

#[test]
fn a_packet_written_in_pieces_is_read_as_one() {
    let octets = written();
    let found: Vec<_> = read(&octets).into_iter().map(|packet| packet.expect("undamaged")).collect();
    let first = &found[0];
    assert_eq!(first.octets, [&[0xAA; 14][..], &[1, 2, 3]].concat());
    assert_eq!((first.time_ns, first.original_len), (1_700_000_000_000_000_001, 17));
    assert_eq!((first.interface.name.as_deref(), first.interface.index), (Some("S1-N6"), 0));
    let others: Vec<_> = found[1..].iter().map(|packet| (packet.interface.index, packet.octets.len())).collect();
    assert_eq!(others, [(1, 60), (1, 61), (1, 62), (1, 63)]);
}

#[test]
fn tshark_reads_written_captures() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("written.pcapng");
    std::fs::write(&path, written()).expect("a file");
    let fields = ["frame.time_epoch", "frame.cap_len", "frame.len", "frame.interface_name"];
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&path).args(["-T", "fields"]).args(fields.iter().flat_map(|field| ["-e", field]));
    let output = tshark.output().expect("tshark is installed, as `cargo xtask ci` sees to");
    let expected = "1700000000.000000001\t17\t17\tS1-N6\n1700000001.000000060\t60\t60\tN6-N4\n\
                    1700000001.000000061\t61\t61\tN6-N4\n1700000001.000000062\t62\t62\tN6-N4\n\
                    1700000001.000000063\t63\t63\tN6-N4\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

#[test]
fn the_writer_refuses_invalid_packets() {
    let mut other = Writer::new(Vec::new()).expect("memory takes all");
    let foreign = other.add_interface("eth0").expect("a short name");
    let mut writer = Writer::new(Vec::new()).expect("memory takes all");
    let error = writer.write_packet(foreign, 0, &[&[0; 60]]).expect_err("an interface of another writer");
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    let interface = writer.add_interface("eth0").expect("a short name");
    let error = writer.write_packet(interface, 0, &[&vec![0; srdma_capture::MAX_BLOCK_LEN]]).expect_err("too long");
    assert_eq!(error.to_string(), "packet length must be at most 16777184, found 16777216");
    let error = writer.add_interface(&"x".repeat(65_536)).expect_err("too long a name");
    assert_eq!(error.to_string(), "interface name must be at most 65535, found 65536");
}

#[test]
fn merge_follows_time_then_position() {
    let file = |name: &str, times: &[u64]| {
        let mut writer = Writer::new(Vec::new()).expect("memory takes all");
        let interface = writer.add_interface(name).expect("a short name");
        for time_ns in times {
            writer.write_packet(interface, *time_ns, &[&[0; 60]]).expect("memory takes all");
        }
        writer.finish().expect("memory takes all")
    };
    let mut damaged = file("c", &[15, 40]);
    damaged.truncate(damaged.len() - 1);
    let files = [file("a", &[10, 30, 20, 50]), file("b", &[10, 25]), damaged, file("d", &[])];
    let readers = files.iter().map(|octets| Reader::new(octets.as_slice()).expect("a capture"));
    let order: Vec<_> = Merge::new(readers)
        .map(|(capture, packet)| (capture, packet.map(|packet| packet.time_ns).map_err(|error| error.frame)))
        .collect();
    let expected =
        [(0, Ok(10)), (1, Ok(10)), (2, Ok(15)), (2, Err(2)), (1, Ok(25)), (0, Ok(30)), (0, Ok(20)), (0, Ok(50))];
    assert_eq!(order, expected);
}

#[test]
fn a_file_that_is_no_capture_is_refused() {
    let refusal = |octets: &[u8]| Reader::new(octets).err().expect("no capture").reason.to_string();
    assert_eq!(refusal(b""), "expected a pcap or pcapng capture, found an empty file");
    assert_eq!(refusal(b"PNG!"), "expected a pcap or pcapng capture, found a file that begins with 50 4e 47 21");
    assert_eq!(
        refusal(&[0x1F, 0x8B, 8, 0]),
        "expected a pcap or pcapng capture, found a gzip file; decompress it first"
    );
    assert_eq!(refusal(&[0xD4, 0xC3, 0xB2, 0xA1, 2, 0]), "pcap file header needs 24 octets, 6 left in the file");
    assert_eq!(refusal(&[10, 13, 13, 10, 28]), "block needs 12 octets, 5 left in the file");
}

/// A file whose tail is damaged yields every packet before the damage, then one error, then nothing.
#[test]
fn a_cut_file_ends_with_one_error() {
    for name in ["capture/be_ns.pcap", "capture/two_sections.pcapng"] {
        let whole = std::fs::read(testdata(name)).expect("a file");
        let undamaged = packets(name);
        for len in 0..whole.len() {
            let Ok(reader) = Reader::new(&whole[..len]) else { continue };
            let found: Vec<_> = reader.collect();
            let good = found.iter().take_while(|packet| packet.is_ok()).count();
            assert!(found.len() - good <= 1, "{name} cut at {len}");
            assert_eq!(
                found[..good].iter().map(|packet| packet.as_ref().expect("good")).collect::<Vec<_>>(),
                undamaged[..good].iter().collect::<Vec<_>>()
            );
            if let Some(Err(error)) = found.last() {
                assert!(matches!(error.reason, Reason::Truncated { .. }), "{name} cut at {len}: {error}");
                assert!(error.offset < len as u64, "{name} cut at {len}: {error}");
                assert_eq!(error.frame, good as u64 + 1, "{name} cut at {len}: {error}");
            }
        }
    }
}

#[test]
fn flipped_octets_cause_no_panic_and_no_endless_loop() {
    for name in ["capture/be_us.pcap", "capture/le_ns.pcap", "capture/two_sections.pcapng"] {
        let whole = std::fs::read(testdata(name)).expect("a file");
        for position in 0..whole.len() {
            for flip in [0x01, 0x80, 0xFF] {
                let mut damaged = whole.clone();
                damaged[position] ^= flip;
                let Ok(reader) = Reader::new(damaged.as_slice()) else { continue };
                // Every item takes at least a block's 12 octets from the file.
                assert!(reader.count() <= whole.len() / 12, "{name}, octet {position}");
            }
        }
    }
}

#[test]
fn reading_continues_after_a_damaged_packet() {
    let mut pcap = std::fs::read(testdata("capture/le_ns.pcap")).expect("a file");
    pcap[24 + 4..24 + 8].copy_from_slice(&1_000_000_000_u32.to_le_bytes());
    let found = read(&pcap);
    let error = found[0].as_ref().expect_err("a fraction of a whole second");
    assert_eq!(
        error.to_string(),
        "packet 1 at offset 24: fraction of a second must be below 1000000000, found 1000000000"
    );
    assert_eq!(found[1].as_ref().expect("undamaged").frame, 2);
    assert_eq!(found.len(), 6);

    let mut pcapng = written();
    let first = read(&pcapng)[0].as_ref().expect("undamaged").offset as usize;
    pcapng[first + 8] = 9;
    let found = read(&pcapng);
    let error = found[0].as_ref().expect_err("an unknown interface").to_string();
    assert_eq!(error, format!("packet 1 at offset {first}: interface 9 is not described, the section has 1"));
    assert_eq!(found.iter().filter(|packet| packet.is_ok()).count(), 4);
}

#[test]
fn lengths_are_bounded_before_allocation() {
    let mut pcap = std::fs::read(testdata("capture/be_us.pcap")).expect("a file");
    pcap[32..36].copy_from_slice(&[0xFF; 4]);
    let error = read(&pcap).pop().expect("one item").expect_err("too long");
    assert_eq!(
        error.to_string(),
        "packet 1 at offset 24: packet record of 4294967295 octets, expected at most 16777216"
    );
    let mut pcapng = written();
    pcapng[4..8].copy_from_slice(&0xFFFF_FFFC_u32.to_le_bytes());
    let error = Reader::new(pcapng.as_slice()).err().expect("too long");
    assert_eq!(error.to_string(), "packet 1 at offset 0: block of 4294967292 octets, expected at most 16777216");
}

use super::*;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/golden/");

fn frames(name: &str) -> Vec<Vec<u8>> {
    let file = std::fs::File::open(format!("{GOLDEN}{name}")).unwrap();
    let reader = srdma_capture::Reader::new(std::io::BufReader::new(file)).unwrap();
    reader.map(|packet| packet.unwrap().octets.to_vec()).collect()
}

type Found = Option<(std::net::Ipv6Addr, std::net::Ipv6Addr, u32, Option<usize>)>;

fn found(frame: &[u8]) -> Found {
    let fields = Fields::of(frame)?;
    let (source, destination) = ((*fields.source).into(), (*fields.destination).into());
    Some((source, destination, fields.dest_qpn.get(), fields.trace.map(<[u8]>::len)))
}

fn data(source: &str, destination: &str, qpn: u32, trace: Option<usize>) -> Found {
    Some((source.parse().unwrap(), destination.parse().unwrap(), qpn, trace))
}

/// D46, on packets that the kernel has put into tunnels: uSID carriers without an SRH, SRHs in both forms, one SRH behind
/// another, an SRH without a tunnel. The sender's packet is the same in all.
#[test]
fn fields_are_those_of_the_innermost_packet() {
    for name in ["t1_usid_red", "t2_usid_encap", "t3_red3", "t4_encap3", "t5_psp", "t6_b6", "t7_usid2", "t9_hmac"] {
        for link in ["1h1-r1", "2r1-r2", "3r2-r3", "4r3-h2"] {
            let frame = &frames(&format!("kernel_{name}_{link}.pcap"))[0];
            assert_eq!(found(frame), data("fd00:a::1", "fd00:d::2", 0x333, None), "{name} {link}");
        }
    }
    for link in ["1h1-r1", "2r1-r2", "3r2-r3", "4r3-h2"] {
        let frame = &frames(&format!("kernel_t8_inline_{link}.pcap"))[0];
        let (source, destination, ..) = found(frame).unwrap();
        assert_eq!(source, "fd00:a::1".parse::<std::net::Ipv6Addr>().unwrap());
        assert_eq!(destination, "fd00:d::2".parse::<std::net::Ipv6Addr>().unwrap(), "the last segment, {link}");
    }
}

/// FC-4-2: a trace that routers have filled, and packets without one; D45: no ACK, NAK or CNP.
#[test]
fn traces_and_whom() {
    let capture = frames("scapy_04_fastcnp.pcap");
    assert_eq!(found(&capture[0]), data("2001:db8:1::1", "2001:db8:2::1", 0x111, None));
    assert_eq!(found(&capture[1]), data("2001:db8:1::1", "2001:db8:2::1", 0x111, Some(34)));
    assert!(capture[2..].iter().all(|frame| found(frame).is_none()), "a Fast CNP is no reason for another");
    let base: Vec<bool> = frames("scapy_01_rocev2_base.pcap").iter().map(|frame| found(frame).is_some()).collect();
    assert_eq!(base, [true, false, false, false, false, true]);
    let trace = Fields::of(&frames("kernel_t17_ioam_4r3-h2.pcap")[0]).unwrap().trace.unwrap().len();
    assert_eq!(trace, 46);
}

/// D45: fragments, multicast sources, and what cannot be followed.
#[test]
fn packets_without_a_notification() {
    let frame = &frames("scapy_04_fastcnp.pcap")[0];
    let changed = |changes: &[(usize, u8)]| {
        let mut frame = frame.clone();
        changes.iter().for_each(|(place, octet)| frame[*place] = *octet);
        found(&frame)
    };
    const BTH: usize = 14 + 40 + 8;
    assert!(changed(&[]).is_some());
    assert_eq!(changed(&[(14 + 6, 44)]), None, "a fragment");
    assert_eq!(changed(&[(14 + 8, 0xFF)]), None, "a multicast source");
    assert_eq!(changed(&[(BTH - 5, 0)]), None, "another UDP port");
    assert_eq!(changed(&[(BTH, 0x64)]), None, "a datagram");
    assert_eq!(changed(&[(BTH, 0x0C)]), None, "a READ request carries no data");
    assert!(changed(&[(BTH, 0x0D)]).is_some(), "a READ response does");
    assert!(changed(&[(BTH, 0x2A)]).is_some(), "UC");
    for len in 0..frame.len() {
        assert_eq!(found(&frame[..len]).is_some(), len >= BTH + 12, "{len} octets");
    }
}

/// Tunnel in tunnel, without end: given up.
#[test]
fn depth_is_bounded() {
    let frame = &frames("scapy_04_fastcnp.pcap")[0];
    for depth in 0..8 {
        let mut nested = frame[..14].to_vec();
        for _ in 0..depth {
            nested.extend([0x60, 0, 0, 0, 0, 0, 41, 64]);
            nested.extend([1; 32]);
        }
        nested.extend(&frame[14..]);
        assert_eq!(found(&nested).is_some(), depth < MAX_TUNNELS, "{depth}");
    }
}

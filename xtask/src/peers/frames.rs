//! Input frames of the other dataplane: those of `srdma bench dataplane`, in a pcap file.

use std::net::Ipv6Addr;

const ETHERNET: [u8; 14] = [2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0xFF, 0x86, 0xDD];
const NO_NEXT_HEADER: u8 = 59;
const IPV6: u8 = 41;
const ROUTING: u8 = 43;

/// Source of all packets.
const SOURCE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xb, 0, 0, 0, 0, 1);

/// A packet in an Ethernet frame.
fn frame(packet: &[u8]) -> Vec<u8> {
    [&ETHERNET, packet].concat()
}

fn packet(destination: Ipv6Addr, next_header: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 1, 0x23, 0x45];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([next_header, 64]);
    packet.extend(SOURCE.octets());
    packet.extend(destination.octets());
    packet.extend(payload);
    packet
}

fn plain(destination: Ipv6Addr, octets: usize) -> Vec<u8> {
    packet(destination, NO_NEXT_HEADER, &vec![0x5A; octets - 40])
}

/// A frame of `octets` around a plain packet.
pub(super) fn unencapsulated(destination: Ipv6Addr, octets: usize) -> Vec<u8> {
    frame(&plain(destination, octets - ETHERNET.len()))
}

/// A frame of `octets` to a SID, with an SRH of one segment, around a plain packet.
pub(super) fn with_srh(sid: Ipv6Addr, segment: Ipv6Addr, segments_left: u8, inner: Ipv6Addr, octets: usize) -> Vec<u8> {
    const SRH: usize = 8 + 16;
    let mut payload = vec![IPV6, 2, 4, segments_left, 0, 0, 0, 0];
    payload.extend(segment.octets());
    payload.extend(plain(inner, octets - ETHERNET.len() - 40 - SRH));
    frame(&packet(sid, ROUTING, &payload))
}

/// A frame of `octets` to a SID, without an SRH, around a plain packet.
pub(super) fn without_srh(sid: Ipv6Addr, inner: Ipv6Addr, octets: usize) -> Vec<u8> {
    frame(&packet(sid, IPV6, &plain(inner, octets - ETHERNET.len() - 40)))
}

/// The frames in a capture file (pcap 2.4, Ethernet).
pub(super) fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xA1B2_C3D4_u32, 0x0004_0002, 0, 0, 0xFFFF, 1] {
        file.extend(word.to_le_bytes());
    }
    for (number, frame) in frames.iter().enumerate() {
        for word in [0, number as u32, frame.len() as u32, frame.len() as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// As tshark reads them.
    #[test]
    fn frames_are_well_formed() {
        let sid = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 0x100);
        let inner = Ipv6Addr::new(0x2001, 0xdb8, 0x1000, 0, 0, 0, 0, 9);
        let frames = [unencapsulated(inner, 128), with_srh(sid, inner, 1, inner, 192), without_srh(sid, inner, 192)];
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("frames.pcap");
        std::fs::write(&path, pcap(&frames)).unwrap();
        let mut command = Command::new("tshark");
        command.args([
            "-T",
            "fields",
            "-E",
            "separator=/t",
            "-e",
            "frame.len",
            "-e",
            "ipv6.dst",
            "-e",
            "ipv6.routing.segleft",
        ]);
        let output = command.arg("-r").arg(&path).output().expect("tshark runs");
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(
            text.lines().collect::<Vec<_>>(),
            [
                "128\t2001:db8:1000::9\t",
                "192\t2001:db8:0:1::100,2001:db8:1000::9\t1",
                "192\t2001:db8:0:1::100,2001:db8:1000::9\t",
            ]
        );
    }
}

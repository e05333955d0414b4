//! Readers of captures: the packets that they read are written, and read again unchanged.

use srdma_capture::{Reader, Writer};

/// Any file: the reader ends, and returns no more octets than the file has. Its packets are written as pcapng, and read
/// again unchanged.
pub fn capture(input: &[u8]) {
    let Ok(reader) = Reader::new(input) else {
        return;
    };
    let mut written = Vec::new();
    let mut writer = Writer::new(&mut written).expect("writing to memory");
    let interface = writer.add_interface("p0").expect("writing to memory");
    let mut packets = Vec::new();
    let mut octets = 0;
    for (position, packet) in reader.enumerate() {
        assert!(position <= input.len(), "the reader does not end");
        let Ok(packet) = packet else { continue };
        octets += packet.octets.len();
        assert!(octets <= input.len(), "{octets} octets read of a file of {}", input.len());
        writer.write_packet(interface, packet.time_ns, &[&packet.octets]).expect("writing to memory");
        packets.push((packet.time_ns, packet.octets));
    }
    writer.finish().expect("writing to memory");
    let again = Reader::new(&written[..]).expect("a file that was just written");
    let again: Vec<_> = again.map(|packet| packet.map(|packet| (packet.time_ns, packet.octets))).collect();
    let again: Vec<_> = again.into_iter().map(|packet| packet.expect("a packet that was just written")).collect();
    assert_eq!(packets, again);
}

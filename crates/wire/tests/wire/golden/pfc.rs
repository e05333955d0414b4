//! PFC frames that scapy made; tshark reads them alike.

use crate::golden::captures::frames;
use srdma_wire::pfc::{Pfc, PfcError};
use srdma_wire::{EtherType, Ethernet, MacAddress};

#[test]
fn pauses_and_resumes() {
    let mut three = Pfc::default();
    (three.quanta[0], three.quanta[3], three.quanta[7]) = (Some(0x1234), Some(0x1234), Some(0x1234));
    let frames = frames("scapy_06_pfc.pcap");
    let expected = [Ok(Pfc::of_class(3, 0xFFFF)), Ok(Pfc::of_class(3, 0)), Ok(three), Err(PfcError::Opcode(1))];
    assert_eq!(frames.len(), expected.len());
    for (frame, expected) in frames.iter().zip(expected) {
        let (ethernet, rest) = Ethernet::parse(frame).unwrap();
        assert_eq!((ethernet.destination, ethernet.ethertype), (Pfc::DESTINATION, EtherType::MAC_CONTROL));
        assert_eq!(Pfc::parse(rest), expected);
        if let Ok(pfc) = expected {
            assert_eq!(pfc.frame(MacAddress([2, 0, 0, 0, 0, 1]))[..], frame[..]);
        }
    }
}

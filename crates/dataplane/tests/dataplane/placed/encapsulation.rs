//! Encapsulation of packets.

use crate::placed::support::*;
use srdma_dataplane::DropReason;
use srdma_dataplane::headend::{Headend, HeadendConfig, HeadendError, HeadendPath};
use srdma_frame::{Frame, Pool};
use srdma_steering::{Path, PathError, SetId};
use srdma_wire::Instant;

/// PP-4-3, PP-5.2-1: the draft's own address for GPU1→GPU3, no SRH, and the packet behind it as it was.
#[test]
fn the_drafts_example() {
    let mut nic = Nic::new(|_| ());
    let packet = data(QPN3, 100);
    let sent = nic.send(&packet);
    assert_eq!(destination_of(&sent), "5f00:0:100:500:300::");
    assert_eq!((sent[6], sent[7], sent.len()), (41, 64, 40 + packet.len()), "IPv6 follows at once");
    assert_eq!(sent[8..24], address(NIC1).octets());
    assert_eq!(sent[0] & 0xF, packet[0] & 0xF, "traffic class, ECN included, goes outward");
    assert_eq!(sent[1] & 0xF0, packet[1] & 0xF0);
    assert_eq!(sent[40..], packet);
}

/// PP-4-4, D81: seven ids take a second carrier, which the SRH carries alone.
#[test]
fn more_than_six_ids_take_an_srh() {
    let segments = ["5f00:0:1:2:3:4:5:6", "5f00:0:7::"].map(address);
    let long = HeadendPath { path: Path { segments: segments.to_vec(), ..Path::default() }, ..HeadendPath::default() };
    let mut nic = Nic::with(|_| (), &[long]);
    let sent = nic.send(&data(QPN3, 1));
    assert_eq!(destination_of(&sent), "5f00:0:1:2:3:4:5:6");
    let srh = [&[41, 2, 4, 1, 0, 0, 0, 0][..], &segments[1].octets()].concat();
    assert_eq!((sent[6], &sent[40..64]), (43, &srh[..]));
}

#[test]
fn packets_without_placed_paths_are_not_encapsulated() {
    let mut nic = Nic::new(|_| ());
    let octets = [&[0; 14][..], &rocev2(NIC1, "2001:db8:4::1", 0x04, QPN3, 1, &[1; 4])].concat();
    let mut frame = Frame::from_octets(&octets, &mut nic.pool).unwrap();
    assert_eq!(nic.headend.outgoing(nic.now, &mut frame, &mut nic.pool), Ok(None));
    assert_eq!(frame.to_vec(&nic.pool), octets);
    assert_eq!(nic.headend.encapsulate(nic.now, SetId(7), &mut frame, &mut nic.pool), Err(DropReason::NoPath));
    frame.release(&mut nic.pool);
    let mut short = Frame::from_octets(&octets[..20], &mut nic.pool).unwrap();
    assert_eq!(nic.headend.outgoing(nic.now, &mut short, &mut nic.pool), Err(DropReason::Truncated));
    short.release(&mut nic.pool);
}

#[test]
fn an_invalid_path_is_refused_and_named() {
    let mut headend = Headend::new(HeadendConfig::new(address(NIC1)));
    let mut set =
        |paths: &[HeadendPath]| headend.set_paths(Instant::ZERO, None, paths).map_err(|error| error.to_string());
    let denied = |mut path: HeadendPath| {
        path.path.is_denied = true;
        path
    };
    let none = HeadendError::Paths(PathError::NoPath).to_string();
    assert_eq!(set(&[]), Err(none.clone()));
    assert_eq!(set(&[denied(path(BY_SPINE5, SPINE5, 0))]), Err(none));
    let empty = HeadendPath::default();
    let error = set(&[path(BY_SPINE5, SPINE5, 0), empty]).unwrap_err();
    assert_eq!(error, "path 2: an encapsulation policy needs at least one segment");
    assert!(set(&vec![path(BY_SPINE5, SPINE5, 0); 65]).unwrap_err().contains("65 paths"));
}

/// A rejected configuration changes nothing; a repeated one keeps flows on their paths.
#[test]
fn paths_are_replaced_under_running_flows() {
    let mut nic = Nic::new(|_| ());
    nic.receive(&fast_cnp(SPINE5, QPN3));
    assert_eq!(nic.destination(1), BY_SPINE5, "the flow was not known yet");
    nic.receive(&fast_cnp(SPINE5, QPN3));
    assert_eq!(nic.destination(2), BY_SPINE6);
    let again = [path(BY_SPINE6, SPINE6, 1), path(BY_SPINE5, SPINE5, 0)];
    assert_eq!(nic.headend.set_paths(nic.now, Some(nic.set), &again), Ok(nic.set));
    assert_eq!(nic.destination(3), BY_SPINE6);
    assert!(nic.headend.set_paths(nic.now, Some(nic.set), &[]).is_err());
    assert_eq!(nic.destination(4), BY_SPINE6);
    let third = [path("5f00:0:100:700:300::", SPINE6, 0)];
    assert_eq!(nic.headend.set_paths(nic.now, Some(nic.set), &third), Ok(nic.set));
    assert_eq!(nic.destination(5), "5f00:0:100:700:300::");
    nic.headend.remove_set(nic.set);
    let mut pool = Pool::new(8);
    let mut frame = Frame::from_octets(&[&[0; 14][..], &data(QPN3, 6)].concat(), &mut pool).unwrap();
    assert_eq!(nic.headend.outgoing(nic.now, &mut frame, &mut pool), Err(DropReason::NoPath));
    frame.release(&mut pool);
}
